//! What a rule found.

use serde::{Deserialize, Serialize};

use crate::counter_test::Tested;
use crate::record::Flow;
use crate::remedy::Remedy;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// As it should be.
    Healthy,
    /// Worth knowing.
    Note,
    /// It costs throughput.
    Limit,
    /// A figure cannot be trusted.
    Fault,
}

/// One figure that a finding rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is, with its unit: `rwnd_limited share of the plateau, %`.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Where it was measured: `client kernel`, `server application` …
    pub place: String,
}

/// The rate to expect after the remedy, and what would limit then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// Payload rate of the direction, all streams together, bit/s.
    pub rate_bps: f64,
    /// Lower end of what the model's uncertainty allows, bit/s.
    pub low_bps: f64,
    /// Upper end, bit/s.
    pub high_bps: f64,
    /// What would limit next, in words: `the path itself`, `the send buffer` …
    pub then: String,
}

/// What was found, and on what it rests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule's stable name, as in docs/findings: `receive-window`, `path-full` …
    pub id: String,
    /// How much it matters.
    pub severity: Severity,
    /// The direction it is about; absent = the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// One sentence that a network engineer would write.
    pub sentence: String,
    /// Share of the time that it explains, 0 to 1, where it explains time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_of_time: Option<f64>,
    /// Span of the samples that it rests on, ns since the start of the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<[u64; 2]>,
    /// The figures used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// What to change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    /// The rate to expect after the remedy, where a model gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
    /// Where the same would have been enough, a part of a sentence: `this window is enough for 1 Gbit/s up to
    /// 5.3 ms`; the figures in it are among `figures`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_pass: Option<String>,
    /// The page that explains it, a path in the project: `docs/findings/path-full.md`.
    #[serde(default)]
    pub page: String,
    /// The next command, which would confirm or refute it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What counter-tests made of it; absent where none were run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tested: Option<Tested>,
}
