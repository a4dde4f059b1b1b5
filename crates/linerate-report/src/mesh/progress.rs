//! Lines of a mesh that runs: what it is about to do, each round, each test.

use linerate_model::mesh::{MeshOutcome, MeshTest};
use linerate_model::units::{Bytes, Nanos};

use super::view::{bit_rate, counted};
use crate::words;

/// What a mesh is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Its hosts.
    pub hosts: usize,
    /// Its tests.
    pub tests: usize,
    /// Its rounds.
    pub rounds: u32,
    /// The fewest rounds that these tests need.
    pub bound: u32,
    /// How long it takes at most.
    pub time: Nanos,
    /// What it sends at most; absent = not known before.
    pub bytes: Option<Bytes>,
}

/// A round that begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Its number, from 1.
    pub number: u32,
    /// How many there are.
    pub rounds: u32,
    /// The tests in it.
    pub tests: usize,
    /// The time until the last round ends; absent = not known.
    pub left: Option<Nanos>,
}

/// `240 tests between 16 hosts in 15 rounds (lower bound 15): about 53 s, at most 282 GB`.
pub fn plan(plan: &Plan) -> String {
    let bytes = words::with(plan.bytes, |bytes| format!(", at most {bytes}"));
    format!(
        "{} between {} in {} (lower bound {}): about {}{bytes}",
        counted(plan.tests, "test"),
        counted(plan.hosts, "host"),
        counted(usize::try_from(plan.rounds).unwrap_or(usize::MAX), "round"),
        plan.bound,
        duration(plan.time)
    )
}

/// `round 3 of 15: 8 tests, 41 s left`.
pub fn round(round: &Round) -> String {
    let left = words::with(round.left, |left| format!(", {} left", duration(left)));
    format!(
        "round {} of {}: {}{left}",
        round.number,
        round.rounds,
        counted(round.tests, "test")
    )
}

/// `node01 → node02: 9.41 Gbit/s`, `node01 → node02: failed while connecting: refused`. Names come from the caller,
/// which has the hosts at hand.
pub fn ended(from: &str, to: &str, test: &MeshTest) -> String {
    let said = match &test.outcome {
        MeshOutcome::Measured(figures) => {
            let finding = words::with(figures.finding.as_deref(), |id| format!(", {id}"));
            format!("{}{finding}", bit_rate(figures.goodput_bps))
        }
        MeshOutcome::Failed { stage, why } => format!("failed, {stage}: {why}"),
        MeshOutcome::NotRun { why } => format!("did not begin: {why}"),
    };
    words::plain(&format!("{from} → {to}: {said}"))
}

/// `41 s`, `7 min`, `2.5 h`: a time in advance has no more digits.
fn duration(time: Nanos) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 120.0 {
        format!("{:.0} s", seconds.ceil())
    } else if seconds < 7200.0 {
        format!("{:.0} min", (seconds / 60.0).ceil())
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}
