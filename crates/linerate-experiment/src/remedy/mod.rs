//! Remedies applied: is the rate that a finding promises the rate that is then measured?
//!
//! Each graded run whose findings name a remedy and the rate to expect after it is made once more, with the
//! scenario changed as the remedy says ([`Change`]) and other dice: the same ones would lose the same packets again, and a
//! promise made from them would look better than it is. A promise is kept when the goodput of the
//! plateau then lies within 15 % of what was promised. A remedy that a lab cannot apply is listed as such,
//! never counted.

mod change;
mod table;

use linerate_lab::scenario::Scenario;
use linerate_model::finding::{Expected, Finding};
use linerate_model::remedy::Remedy;
use serde::{Deserialize, Serialize};

use crate::grade::{self, Observed, Step};

pub use change::{Change, Unmapped};

/// What is measured may differ by this share from what was promised.
pub const WITHIN: f64 = 0.15;
/// Of the promises that could be judged, at least this share must be kept.
pub const ENOUGH: f64 = 0.9;
/// How much more the seed of a run with a remedy is.
pub const AFTERWARDS: u64 = 1_000_000;
/// A run that the machine disturbed is made at most so often.
const ATTEMPTS: u32 = 3;

/// A finding's remedy, and the rate that it promises.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// Its id: `receive-window`.
    pub finding: String,
    /// What to change.
    pub remedy: Remedy,
    /// The rate to expect then; `None` where no model gives one.
    pub expected: Option<Expected>,
}

impl Promise {
    /// What a finding promises; `None` where it names no remedy.
    pub fn of(finding: &Finding) -> Option<Self> {
        Some(Self {
            finding: finding.id.clone(),
            remedy: finding.remedy.clone()?,
            expected: finding.expected.clone(),
        })
    }
}

/// How a promise came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// What was measured lies within 15 % of it.
    Kept {
        /// Goodput of the plateau with the remedy, bit/s.
        measured_bps: f64,
    },
    /// It does not.
    Broken {
        /// Goodput of the plateau with the remedy, bit/s.
        measured_bps: f64,
    },
    /// It does not, but the lab itself may have been the bottleneck.
    Disturbed {
        /// Goodput of the plateau with the remedy, bit/s.
        measured_bps: f64,
        /// Why the run shows nothing.
        why: Vec<String>,
    },
    /// There is no rate to hold against what would be measured.
    NoRate,
    /// A lab cannot apply the remedy.
    NotApplied {
        /// What a lab lacks for it.
        why: String,
    },
    /// The run with the remedy failed.
    Failed {
        /// The error of the run.
        why: String,
    },
}

/// A remedy that was applied.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// The scenario's name.
    pub scenario: String,
    /// Seed of the run that promised; that of the one with the remedy is [`AFTERWARDS`] more.
    pub seed: u64,
    /// Goodput of the plateau without the remedy, bit/s.
    pub before_bps: Option<f64>,
    /// What was promised.
    #[serde(flatten)]
    pub promise: Promise,
    /// What the remedy changed, where a lab can apply it.
    pub change: Option<Change>,
    /// How it came out.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// All remedies.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(transparent)]
pub struct Report {
    /// In the order in which they were tried.
    pub trials: Vec<Trial>,
}

/// Applies every remedy that the graded runs name and runs the changed scenario, with a seed that is
/// [`AFTERWARDS`] more than that of the run that named it.
///
/// Of two findings whose remedies change the same the first one counts. A run that breaks a promise while the lab
/// itself was disturbed is made again, up to three times in all. `run` makes one run, or says why it could
/// not; `before` hears of each run to come.
pub fn run(
    scenarios: &[Scenario],
    graded: &grade::Report,
    mut run: impl FnMut(&Scenario, u64) -> Result<Observed, String>,
    mut before: impl FnMut(Step<'_>),
) -> Report {
    let mut trials = planned(scenarios, graded);
    let applied =
        |trial: &Trial| matches!(trial.outcome, Outcome::NoRate) && trial.rate().is_some();
    let of = trials.iter().filter(|(_, trial)| applied(trial)).count();
    let mut done = 0;
    for (scenario, trial) in &mut trials {
        let (Some(expected), Some(change)) = (trial.rate(), &trial.change) else {
            continue;
        };
        before(Step {
            done,
            of,
            name: &trial.scenario,
            seed: trial.seed,
        });
        let mut changed = change.applied(scenario);
        changed.name = name_with(&trial.scenario, &trial.promise.remedy);
        for _ in 0..ATTEMPTS {
            trial.outcome =
                Outcome::of(expected, run(&changed, trial.seed.wrapping_add(AFTERWARDS)));
            if !matches!(trial.outcome, Outcome::Disturbed { .. }) {
                break;
            }
        }
        done += 1;
    }
    Report {
        trials: trials.into_iter().map(|(_, trial)| trial).collect(),
    }
}

/// The name of a scenario with a remedy: another value is another name, so that runs that were kept are never
/// taken for those of another remedy.
fn name_with(scenario: &str, remedy: &Remedy) -> String {
    let fits = |c: char| {
        if c.is_ascii_alphanumeric() { c } else { '-' }
    };
    let what: String = [remedy.fix.setting(), "-", &remedy.fix.value()]
        .into_iter()
        .flat_map(str::chars)
        .map(fits)
        .take(80)
        .collect();
    format!("{scenario}+{}", what.trim_matches('-'))
}

/// What is to be tried, each remedy of a run once.
fn planned<'a>(scenarios: &'a [Scenario], graded: &grade::Report) -> Vec<(&'a Scenario, Trial)> {
    let mut trials: Vec<(&Scenario, Trial)> = Vec::new();
    for (scenario, row) in scenarios.iter().zip(&graded.rows) {
        for run in &row.runs {
            let seed = run.observed.seed;
            for promise in &run.observed.promises {
                let trial = Trial::new(scenario, &run.observed, promise);
                // The other end may need the same change.
                let known = trials.iter().any(|(other, known)| {
                    other.name == scenario.name
                        && known.seed == seed
                        && (known.promise.remedy == promise.remedy
                            || known.change.is_some() && known.change == trial.change)
                });
                if !known {
                    trials.push((scenario, trial));
                }
            }
        }
    }
    trials
}

impl Trial {
    /// Not tried yet.
    fn new(scenario: &Scenario, observed: &Observed, promise: &Promise) -> Self {
        let (change, outcome) = match Change::of(&promise.remedy) {
            Ok(change) => (Some(change), Outcome::NoRate),
            Err(error) => {
                let why = error.to_string();
                (None, Outcome::NotApplied { why })
            }
        };
        Self {
            scenario: scenario.name.clone(),
            seed: observed.seed,
            before_bps: observed.goodput_bps,
            promise: promise.clone(),
            change,
            outcome,
        }
    }

    fn rate(&self) -> Option<f64> {
        let expected = self.promise.expected.as_ref()?;
        Some(expected.rate_bps).filter(|rate| *rate > 0.0)
    }

    /// How much more, or less, was measured than promised, as a share of the promise; `None` where nothing
    /// could be judged.
    pub fn off(&self) -> Option<f64> {
        match self.outcome {
            Outcome::Kept { measured_bps }
            | Outcome::Broken { measured_bps }
            | Outcome::Disturbed { measured_bps, .. } => Some(measured_bps / self.rate()? - 1.0),
            Outcome::NoRate | Outcome::NotApplied { .. } | Outcome::Failed { .. } => None,
        }
    }
}

impl Outcome {
    fn of(expected_bps: f64, run: Result<Observed, String>) -> Self {
        let observed = match run {
            Ok(observed) => observed,
            Err(why) => return Self::Failed { why },
        };
        let Some(measured_bps) = observed.goodput_bps else {
            let why = "nothing arrived with the remedy".to_owned();
            return Self::Failed { why };
        };
        if (measured_bps / expected_bps - 1.0).abs() <= WITHIN {
            Self::Kept { measured_bps }
        } else if observed.bottleneck.is_empty() {
            Self::Broken { measured_bps }
        } else {
            let why = observed.bottleneck;
            Self::Disturbed { measured_bps, why }
        }
    }
}

impl Report {
    /// Promises kept, of those that could be judged. A run that failed broke its promise; one that the machine
    /// disturbed shows nothing.
    pub fn kept(&self) -> (usize, usize) {
        let count = |of: fn(&Outcome) -> bool| {
            let outcomes = self.trials.iter().map(|trial| &trial.outcome);
            outcomes.filter(|outcome| of(outcome)).count()
        };
        let kept = count(|outcome| matches!(outcome, Outcome::Kept { .. }));
        let not =
            count(|outcome| matches!(outcome, Outcome::Broken { .. } | Outcome::Failed { .. }));
        (kept, kept + not)
    }

    /// Whether at least nine in ten promises were kept, of at least one.
    pub fn passed(&self) -> bool {
        let (kept, judged) = self.kept();
        judged > 0 && kept as f64 >= ENOUGH * judged as f64
    }

    /// As text: a row a remedy, what is to be said of it, and a summary.
    pub fn text(&self) -> String {
        table::text(self)
    }
}
