//! Tests between the hosts of a set, in rounds, and what makes them slow.
//!
//! A cell of the matrix that was not measured has no rate: a failure is never a zero.

use serde::{Deserialize, Serialize};

use crate::plain_text::PlainText;
use crate::units::Nanos;

/// The version of the document that this build writes.
pub const SCHEMA_VERSION: u32 = 1;

/// What a mesh of tests came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mesh {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Seconds since 1970 when the first round began: a label.
    pub started_unix_s: u64,
    /// The hosts, in the order of their names.
    pub hosts: Vec<MeshHost>,
    /// Groups that several of the hosts share: racks and switches from files, kernels and drivers from their facts.
    pub groups: Vec<MeshGroup>,
    /// How many rounds were planned.
    pub rounds: u32,
    /// The fewest rounds in which these tests fit while no host is in two of them.
    pub bound: u32,
    /// What each test was asked for, as options of `linerate test`.
    pub options: PlainText,
    /// Whether both directions of a pair ran at once.
    pub both: bool,
    /// Whether the tests of a round began at the same moment.
    pub wave: bool,
    /// Every test that was due, whatever became of it.
    pub tests: Vec<MeshTest>,
}

/// A host of a mesh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshHost {
    /// Its name in the set.
    pub name: PlainText,
    /// Why no test could use it; absent = it was reached.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unreachable: Option<PlainText>,
}

/// Hosts that have something in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshGroup {
    /// What they have in common: `group` (from a file), `kernel`, `driver`, …
    pub of: PlainText,
    /// Its name or value: `rack2`, `5.14.0-503`.
    pub name: PlainText,
    /// Places of its members in [`Mesh::hosts`], ascending.
    pub members: Vec<usize>,
}

/// One test of a mesh: data from one host to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeshTest {
    /// The sending host's place in [`Mesh::hosts`].
    pub from: usize,
    /// The receiving host's.
    pub to: usize,
    /// The round that it belongs to, from 0.
    pub round: u32,
    /// The first source port of its data streams, where the ports are spread; absent = the kernel's choice.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source_port: Option<u16>,
    /// When data began and ceased to flow, by this program's monotonic clock since the first round; absent = none did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub span: Option<MeshSpan>,
    /// What became of it.
    pub outcome: MeshOutcome,
    /// The file of its record, below the mesh's folder.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub record: Option<PlainText>,
}

/// From when until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshSpan {
    /// The first moment.
    pub begin: Nanos,
    /// The last moment.
    pub end: Nanos,
}

/// What became of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum MeshOutcome {
    /// It ran.
    Measured(MeshFigures),
    /// It began and failed.
    Failed {
        /// What was being done.
        stage: PlainText,
        /// Why it failed.
        why: PlainText,
    },
    /// It did not begin.
    NotRun {
        /// Why not.
        why: PlainText,
    },
}

/// The figures of a test that ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeshFigures {
    /// Payload at the receiving application, bit/s, over the plateau.
    pub goodput_bps: f64,
    /// The 95 % interval of it, bit/s; absent = not known.
    pub interval_bps: Option<(f64, f64)>,
    /// Share of segments that were retransmitted, 0 to 1; absent = not known.
    pub retransmitted: Option<f64>,
    /// Smoothed round-trip time, median over the plateau; absent = not known.
    pub rtt: Option<Nanos>,
    /// The id of the first finding, such as `receiver-cpu`; absent = there was none.
    pub finding: Option<String>,
}

/// What makes tests of a mesh slow, or fail: the likeliest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeshCause {
    /// What kind of thing it is.
    pub kind: MeshCauseKind,
    /// Its name: a host, `A > B` for a pair, `group rack2`, `rack1 > rack2` for a trunk, `A > B ports 5, 13` …
    pub name: PlainText,
    /// The hosts that it is about, places in [`Mesh::hosts`]; of a pair or a trunk the senders.
    pub from: Vec<usize>,
    /// Of a pair or a trunk the receivers; else empty.
    pub to: Vec<usize>,
    /// Share of all slow and failed tests that it explains, 0 to 1.
    pub share: f64,
    /// Slow and failed tests that it explains.
    pub explained: usize,
    /// Tests that touch it, slow or not.
    pub touched: usize,
    /// Goodput with it as a share of that without it, 0 to 1: the median; absent where all of them failed.
    pub left: Option<f64>,
    /// Ids of findings that most of its tests have in common, with how many of them do.
    pub findings: Vec<(String, usize)>,
    /// What its hosts have and the others do not: `kernel 5.14.0-503`.
    pub in_common: Vec<PlainText>,
}

/// The kinds of cause in a mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeshCauseKind {
    /// What a host sends is slow.
    HostOut,
    /// What a host receives is slow.
    HostIn,
    /// Both directions of a host are slow, or nothing reaches it.
    Host,
    /// The hosts of a group are slow.
    Group,
    /// Tests that share a link between groups are slow while they run at once.
    Trunk,
    /// One pair is slow.
    Pair,
    /// Some source ports between the same hosts are slow: a member of a bond, or an uneven hash.
    Port,
}
