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
    /// The rate that every test is expected to reach, bit/s of payload; absent = nobody said.
    pub expected_bps: Option<f64>,
    /// The command line by which the hosts were reached; absent = ssh.
    pub via: Option<PlainText>,
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
    /// Whether the group says where its hosts are or how they are made.
    pub kind: MeshGroupKind,
    /// Its name or value: `rack2`, `5.14.0-503`.
    pub name: PlainText,
    /// Places of its members in [`Mesh::hosts`], ascending.
    pub members: Vec<usize>,
}

/// What a group says of its hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeshGroupKind {
    /// Where they are: a rack, a switch, a site. A link (a trunk) may lead from one such group to another.
    Place,
    /// What they have or run: a kernel, a driver, a firmware.
    Fact,
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
    /// Whether it repeats an earlier test while no other test of the mesh runs.
    #[serde(skip_serializing_if = "is_false", default)]
    pub alone: bool,
    /// The source port of its first data stream, where ports are spread; absent = the kernel's choice.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source_port: Option<u16>,
    /// When data began and ceased to flow, by this program's monotonic clock since the first round; absent = none did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub span: Option<MeshSpan>,
    /// What became of it: the key `outcome`, beside it the figures or the reason.
    #[serde(flatten)]
    pub outcome: MeshOutcome,
    /// The file of its record, below the mesh's folder.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub record: Option<PlainText>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn is_false(value: &bool) -> bool {
    !value
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
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interval_bps: Option<(f64, f64)>,
    /// Share of segments that were retransmitted, 0 to 1; absent = not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retransmitted: Option<f64>,
    /// Smoothed round-trip time, median over the plateau; absent = not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rtt: Option<Nanos>,
    /// The id of the first finding, such as `receiver-cpu`; absent = there was none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub finding: Option<String>,
    /// Goodput by source port, where ports are spread over the streams of this test; else empty.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub streams: Vec<MeshStream>,
}

/// One data stream of a test with several source ports.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MeshStream {
    /// Its source port.
    pub source_port: u16,
    /// Payload at the receiving application, bit/s, the mean of the whole test without its omitted part.
    pub goodput_bps: f64,
    /// Share of its segments that were retransmitted, 0 to 1; absent = not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retransmitted: Option<f64>,
}

/// What makes tests of a mesh slow, or fail: the likeliest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeshCause {
    /// What kind of thing it is.
    pub kind: MeshCauseKind,
    /// Its name for people: `node17`; `node17 > node20` (a pair or its ports; `<>` where both directions are slow);
    /// `rack2` or `kernel 5.14.0-503` (a group); `rack1 > rack2`, `rack1 > others` (a trunk).
    pub name: PlainText,
    /// Which of its data is slow.
    pub direction: MeshDirection,
    /// The hosts that it is about, places in [`Mesh::hosts`]; of a pair, a trunk or ports the senders.
    pub from: Vec<usize>,
    /// Of a pair, a trunk or ports the receivers; else empty.
    pub to: Vec<usize>,
    /// Its source ports, ascending; empty unless the kind is [`MeshCauseKind::Port`].
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub ports: Vec<u16>,
    /// Share of all slow and failed tests that it explains, 0 to 1; of ports the share of the ports.
    pub share: f64,
    /// Slow and failed tests that it explains; of ports the slow ports, counted once for each pair.
    pub explained: usize,
    /// Tests that touch it, slow or not; of ports all ports, counted once for each pair.
    pub touched: usize,
    /// How many of [`Self::explained`] failed or could not begin.
    pub failed: usize,
    /// Goodput with it as a share of that without it, 0 to 1: the median; absent where all of them failed.
    pub left: Option<f64>,
    /// Of a trunk that several tests share: the sum of their goodput where it stops growing, bit/s; absent = not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub capacity_bps: Option<f64>,
    /// Whether its tests were slow again when each ran alone; absent = none ran alone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub slow_alone: Option<bool>,
    /// Ids of findings that most of its tests have in common, with how many of them do; the most frequent first.
    pub findings: Vec<(String, usize)>,
    /// What its hosts have and the others do not: `kernel 5.14.0-503`.
    pub in_common: Vec<PlainText>,
}

/// Which data of a cause's hosts is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeshDirection {
    /// What its hosts ([`MeshCause::from`]) send: to any host, or to those in [`MeshCause::to`].
    Out,
    /// What its hosts receive.
    In,
    /// Both.
    Both,
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
    /// Tests that share a link between groups are slow, mostly while several of them run at once.
    Trunk,
    /// One pair is slow.
    Pair,
    /// Some source ports between the same hosts are slow: a member of a bond, or an uneven hash.
    Port,
}

/// What a link between two sets of hosts carries: disjoint pairs were added until the sum stopped growing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrunkRamp {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Seconds since 1970 when the first step began: a label.
    pub started_unix_s: u64,
    /// The hosts of both sets, in the order of their names.
    pub hosts: Vec<MeshHost>,
    /// What each test was asked for, as options of `linerate test`.
    pub options: PlainText,
    /// The steps, in the order in which they ran.
    pub steps: Vec<TrunkStep>,
    /// Why no further step was made.
    pub ended: TrunkEnd,
    /// The sum of goodput where it stopped growing, bit/s: the median of the steps there. Absent = it never stopped, and
    /// the link carries at least [`TrunkStep::sum_bps`] of the last step.
    pub capacity_bps: Option<f64>,
    /// Jain's index of the last step's goodput, 1/n (one pair has all) to 1 (all have the same); absent below two pairs.
    pub fairness: Option<f64>,
    /// Tests of the last step with less than half of the median goodput of that step, or with none: places in
    /// [`TrunkStep::tests`].
    pub losers: Vec<usize>,
}

/// One step of a [`TrunkRamp`]: some disjoint pairs at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrunkStep {
    /// Its tests; [`MeshTest::round`] is the step's place.
    pub tests: Vec<MeshTest>,
    /// The sum of their goodput, bit/s; absent = no test was measured.
    pub sum_bps: Option<f64>,
    /// The 95 % interval of the sum, bit/s, from the intervals of its tests; absent = not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interval_bps: Option<(f64, f64)>,
}

/// Why a [`TrunkRamp`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrunkEnd {
    /// More pairs brought no more.
    Saturated,
    /// No further pair was left.
    NoMorePairs,
    /// Most tests of a step failed.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_has_outcome_and_goodput_beside_its_ends() {
        let test = MeshTest {
            from: 0,
            to: 1,
            round: 2,
            alone: false,
            source_port: None,
            span: None,
            outcome: MeshOutcome::Measured(MeshFigures {
                goodput_bps: 9.4e9,
                interval_bps: Some((9.3e9, 9.5e9)),
                retransmitted: None,
                rtt: None,
                finding: None,
                streams: Vec::new(),
            }),
            record: None,
        };
        let text = serde_json::to_string(&test).unwrap();
        assert_eq!(
            text,
            r#"{"from":0,"to":1,"round":2,"outcome":"measured","goodput_bps":9400000000.0,"interval_bps":[9300000000.0,9500000000.0]}"#
        );
        assert_eq!(serde_json::from_str::<MeshTest>(&text).unwrap(), test);
    }

    #[test]
    fn a_failed_test_has_a_reason_and_no_rate() {
        let text = r#"{"from":0,"to":1,"round":2,"outcome":"failed","stage":"connecting","why":"refused"}"#;
        let test: MeshTest = serde_json::from_str(text).unwrap();
        assert!(matches!(test.outcome, MeshOutcome::Failed { .. }));
        assert_eq!(serde_json::to_string(&test).unwrap(), text);
    }
}
