//! Why a run was not faster: rules that turn the evidence of a record into findings.
//!
//! The first finding is the answer, the verdict; what follows is worth knowing. A healthy run gets
//! one finding and no alarm: a false alarm is the worst fault of a rule. Where the peer or the
//! kernel does not say enough, the answer is `cannot-tell`, with the reason and with what would
//! decide it. Thresholds stand as constants in the rules' files, each with its reason. [`transcript`] says the
//! same of what other tools printed, and of the connections in a packet capture; [`replication`] of the records of both
//! ends of a device that DRBD replicates, [`same_share`] of tests over links of different speeds.
//!
//! What it is not: it touches no host, runs no second test and guesses no cause that the record
//! does not show. A finding's `next` names the run that would confirm or refute it. What a path should give is
//! computed by [`expect`](mod@expect), before anything is measured.
//!
//! ```
//! use linerate_analysis::evidence::Evidence;
//! use linerate_model::plan::Plan;
//! use linerate_testing::fixture;
//!
//! let traffic = fixture::Traffic {
//!     receive_window: 0.83,
//!     receive_window_bytes: 217_088,
//!     in_flight_bytes: 215_000,
//!     rate_bps: 143e6,
//!     rtt_us: 12_000,
//!     min_rtt_us: 11_900,
//!     ..Default::default()
//! };
//! let record = fixture::run(&Plan::new("server"), &traffic);
//! let findings = linerate_explain::explain(&Evidence::of(&record));
//! assert_eq!(findings[0].id, "receive-window");
//! ```

mod advice;
mod capture;
mod command;
pub mod disk;
mod draft;
pub mod expect;
mod facts;
mod phrases;
pub mod probe;
pub mod replication;
mod rules;
pub mod same_share;
pub mod transcript;
mod words;
mod would_pass;

use linerate_analysis::evidence::Evidence;
use linerate_model::finding::{Finding, Quantity, Severity};
use linerate_model::plan::Plan;
use linerate_model::units::BitRate;

use crate::facts::case::Case;

/// What the evidence says, the verdict first.
pub fn explain(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = evidence
        .directions
        .iter()
        .flat_map(|direction| rules::findings(&Case::new(evidence, direction)))
        .collect();
    findings.sort_by_key(rank);
    findings
}

/// The command line of a plan, as the findings suggest it: what is a default stays out.
pub fn command_of(plan: &Plan) -> String {
    command::test(plan)
}

/// A rate in bit/s as an option takes it, rounded down to two digits: 86,000,000.
pub fn round_rate(bps: f64) -> BitRate {
    BitRate(command::round_rate(bps))
}

/// The ids of all findings that there are rules for.
pub fn rule_ids() -> impl Iterator<Item = &'static str> {
    rules::RULES.iter().map(|(id, _)| *id)
}

/// The ids of the findings that only a transcript, a packet capture or a record of disks can give.
pub fn reading_ids() -> impl Iterator<Item = &'static str> {
    READING_IDS.into_iter()
}

/// The ids of the findings about a probe of a disk.
pub fn probe_ids() -> impl Iterator<Item = &'static str> {
    probe::IDS.into_iter()
}

/// In the order of the alphabet.
const READING_IDS: [&str; 24] = [
    "capture-gaps",
    "cluster-lock",
    "cluster-state",
    "copy-rate",
    "counter-wrap",
    "crash-exposure",
    "disk-busy",
    "disk-room",
    "disk-speed",
    "disk-stuck",
    "figures-disagree",
    "log-errors",
    "mirror-log",
    "nodes-out",
    "raid-state",
    "replication-state",
    "resync-rate",
    "same-share",
    "stripe-geometry",
    "summary-hides-ramp",
    "units-mixed",
    "write-factor",
    "write-size",
    "writes-merged",
];

/// What is said first: figures that cannot be trusted, then what stopped the run, then what limited
/// it, then what is healthy, then what is merely worth knowing.
fn rank(finding: &Finding) -> (u8, u32) {
    let class = match (finding.id.as_str(), finding.severity) {
        (_, Severity::Fault) => 0,
        ("stall" | "mtu-black-hole", _) => 1,
        (_, Severity::Limit) => 2,
        ("path-change" | "bimodal" | "unstable", _) => 3,
        (_, Severity::Healthy) => 4,
        ("cannot-tell", _) => 5,
        (_, Severity::Note) => 6,
    };
    (class, u32::MAX - parts_per_million(finding))
}

/// What a finding about datagrams took from what was asked for: of two, the larger one is the answer.
fn parts_per_million(finding: &Finding) -> u32 {
    let figure = |quantity| finding.figure(quantity);
    let (part, whole) = match finding.id.as_str() {
        "udp-sender-short" => {
            let (asked, sent) = (figure(Quantity::RateAsked), figure(Quantity::RateSent));
            (asked.zip(sent).map(|(asked, sent)| asked - sent), asked)
        }
        "udp-receiver-drop" => (figure(Quantity::Dropped), figure(Quantity::Datagrams)),
        "udp-path-loss" => (figure(Quantity::Lost), figure(Quantity::Datagrams)),
        _ => return 0,
    };
    let share = part
        .zip(whole)
        .map_or(0.0, |(part, whole)| part / whole.max(1.0));
    u32::try_from(words::whole(share * 1e6)).unwrap_or(u32::MAX)
}
