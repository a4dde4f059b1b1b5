//! Scenarios held against what they expect.
//!
//! A run passes when its first finding is an expected one, what must accompany it does, nothing stands
//! there that was not allowed, goodput lies in its range, and the path's own counters show that it did what
//! the scenario says. Findings that no rule can make yet are not judged and said so.
//!
//! A run during which the lab itself may have been the bottleneck is made again, whether it passed or missed: to
//! repeat only what missed would choose in favour of passing. The last attempt counts as it stands.

mod drawn;
mod judge;
mod table;

use linerate_lab::scenario::{Checked, Scenario};
use serde::{Deserialize, Serialize};

use crate::remedy::Promise;

pub use judge::{Remark, Standing};

/// A run that the machine disturbed is worth so many attempts.
pub const ATTEMPTS: u32 = 3;

/// Which runs are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounds {
    /// How often each scenario is run.
    pub runs: u32,
    /// What the first round adds to a scenario's seed; each further round adds one more.
    pub seeds_from: u64,
    /// Attempts at a run that is disturbed each time, at least 1: [`ATTEMPTS`] where runs are made, 1 where what
    /// was made is judged again.
    pub attempts: u32,
}

/// What one run gave.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Observed {
    /// Seed of everything random on the path.
    pub seed: u64,
    /// Which attempt this is, from 1 on; those before it were disturbed.
    #[serde(default = "first_attempt")]
    pub attempt: u32,
    /// Ids of the findings, the first one first.
    pub findings: Vec<String>,
    /// Goodput at the receiving application, bits per second; `None` where nothing arrived.
    pub goodput_bps: Option<f64>,
    /// What the findings advise and promise. Runs that were kept have them computed again from their records.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub promises: Vec<Promise>,
    /// What carried the packets.
    pub engine: String,
    /// `packet` or `bulk`.
    pub mode: String,
    /// What the path's counters say of the scenario's claims.
    pub claims: Vec<Checked>,
    /// Why the lab itself may have been the bottleneck; empty where it was not, or by netem, which does not tell of
    /// lateness, where nothing else says so.
    pub bottleneck: Vec<String>,
}

const fn first_attempt() -> u32 {
    1
}

/// One run, judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// What it gave.
    #[serde(flatten)]
    pub observed: Observed,
    /// How it stands.
    pub standing: Standing,
    /// Whether the lab itself may have been the bottleneck: it was disturbed in each attempt, or is judged without
    /// another one.
    pub disturbed: bool,
    /// What is to be said about it.
    pub remarks: Vec<Remark>,
}

/// A scenario and its runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The scenario's name.
    pub name: String,
    /// Acceptable first findings.
    pub expected: Vec<String>,
    /// Its runs, in the order in which they were made.
    pub runs: Vec<Run>,
}

/// All scenarios; as JSON a list of rows.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(transparent)]
pub struct Report {
    /// In the order in which they were handed in.
    pub rows: Vec<Row>,
}

/// What is about to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step<'a> {
    /// How many runs were made before, of all scenarios.
    pub done: usize,
    /// How many there will be.
    pub of: usize,
    /// The scenario's name.
    pub name: &'a str,
    /// Seed of the lab's path.
    pub seed: u64,
}

/// Runs each scenario in each of the `rounds`, with different seeds, and judges them.
///
/// The scenarios take turns: one round of all, then the next. So a machine that changes meanwhile changes
/// for all alike. A run while the lab itself was disturbed is made again, with the same seed, whether it passed or
/// missed, up to `rounds.attempts` times in all; the last one counts. `run` makes one run with a seed, as the given
/// attempt, or says why it could not; `before` hears of each run to come.
pub fn run(
    scenarios: &[Scenario],
    rounds: Rounds,
    mut run: impl FnMut(&Scenario, u64, u32) -> Result<Observed, String>,
    mut before: impl FnMut(Step<'_>),
) -> Report {
    let mut report = Report {
        rows: scenarios.iter().map(Row::new).collect(),
    };
    let of = scenarios.len() * rounds.runs as usize;
    let mut done = 0;
    for round in 0..u64::from(rounds.runs) {
        for (scenario, row) in scenarios.iter().zip(&mut report.rows) {
            let seed = scenario
                .seed
                .wrapping_add(rounds.seeds_from)
                .wrapping_add(round);
            before(Step {
                done,
                of,
                name: &scenario.name,
                seed,
            });
            let mut attempt = 1;
            // Ends: each turn is at least one attempt further. One that was kept may be a later one.
            let made = loop {
                let mut made = Run::of(scenario, seed, run(scenario, seed, attempt));
                attempt = made.observed.attempt.max(attempt);
                made.observed.attempt = attempt;
                if !made.disturbed || attempt >= rounds.attempts {
                    break made;
                }
                attempt += 1;
            };
            row.runs.push(made);
            done += 1;
        }
    }
    report
}

impl Row {
    fn new(scenario: &Scenario) -> Self {
        Self {
            name: scenario.name.clone(),
            expected: scenario.expect.top.clone(),
            runs: Vec::new(),
        }
    }
}

impl Run {
    /// Judges what a run gave.
    pub fn of(scenario: &Scenario, seed: u64, outcome: Result<Observed, String>) -> Self {
        let (observed, remarks) = match outcome {
            Ok(observed) => {
                let remarks = judge::remarks(&scenario.expect, &observed);
                (observed, remarks)
            }
            Err(why) => {
                let observed = Observed {
                    seed,
                    attempt: first_attempt(),
                    ..Observed::default()
                };
                (observed, vec![Remark::Failed { why }])
            }
        };
        Self {
            disturbed: !observed.bottleneck.is_empty(),
            observed,
            standing: Standing::of(&remarks),
            remarks,
        }
    }
}

impl Report {
    /// Whether no run missed.
    pub fn passed(&self) -> bool {
        let mut runs = self.rows.iter().flat_map(|row| &row.runs);
        runs.all(|run| run.standing != Standing::Missed)
    }

    /// As text: a row a scenario, what is to be said of it, the confusion table, and a summary.
    pub fn text(&self) -> String {
        table::text(self)
    }

    /// The same for paths drawn at random: those that missed, how to repeat each, and the confusion table.
    pub fn drawn_text(&self) -> String {
        drawn::text(self)
    }

    /// Whether the first finding is right in at least 97 of 100 draws whose path did what was drawn.
    pub fn drawn_passed(&self) -> bool {
        drawn::Tally::of(self).passed()
    }
}
