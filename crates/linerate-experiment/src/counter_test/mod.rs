//! Counter-tests: the next runs that would prove a finding, or withdraw it.
//!
//! A finding is a guess from one run's evidence. Each says what one change must do if it is right ([`trials`]):
//! another window, four streams, pacing just below or above, datagrams at the same rate, small segments, the other
//! direction. The changes are made in turn with runs as the test was, A B A B, so that a path that changes
//! meanwhile changes for both ([`Schedule`]); then [`judge`] compares each changed run with those around it.
//!
//! A finding is *confirmed* where the ratio's whole interval lies on the side that it predicts, *refuted* where
//! it lies on the other, and else not decided. What is refuted is withdrawn: the next candidate comes first.

mod judge;
mod plan;

use linerate_model::counter_test::{CounterRun, Variation};
use linerate_model::plan::{End, Plan};
use linerate_model::units::Nanos;

pub use judge::judge;
pub(crate) use plan::Known;
pub use plan::{Trial, of_finding, trials};

/// Each change is made so often.
const ROUNDS: usize = 2;
/// A run is at least so long, and at most, where the test itself was no shorter.
const LEAST: Nanos = Nanos::from_millis(4000);
const MOST: Nanos = Nanos::from_millis(8000);
/// The longest run of a diagnosis.
const LONGEST: Nanos = Nanos::from_millis(20_000);
/// What a run takes beside its own time: connections, slow start, results.
const AROUND: Nanos = Nanos::from_millis(1000);

/// The plan of a run that follows a test: as the test was, but short.
///
/// `ramp` is the time that the test took to its plateau; the run is four times as long, within 4 to 8 seconds and the
/// length of the test itself.
pub fn shorter(plan: &Plan, ramp: Option<Nanos>) -> Plan {
    let wanted = Nanos(ramp.unwrap_or(Nanos::ZERO).0.saturating_mul(4)).clamp(LEAST, MOST);
    let mut plan = plan.clone();
    plan.end = End::TimeNs(match plan.end {
        End::TimeNs(span) => wanted.min(span),
        End::Bytes(_) | End::Blocks(_) => wanted,
    });
    // These are questions to the test itself.
    (plan.precision, plan.expect, plan.provisioned_bps) = (None, None, None);
    plan
}

/// The plan of a run of a diagnosis: short, but where another congestion control is asked for as long as the test itself was,
/// within 20 seconds: one slow start fills a path as well whatever comes after it.
pub fn follow_up(plan: &Plan, ramp: Option<Nanos>, variation: &Variation) -> Plan {
    let mut next = shorter(plan, ramp);
    if let (Variation::Congestion { .. }, End::TimeNs(span)) = (variation, plan.end) {
        next.end = End::TimeNs(span.min(LONGEST));
    }
    variation.applied(&next)
}

/// How long a run takes, about, with what is around it.
pub fn takes(plan: &Plan) -> Nanos {
    span(plan).plus(AROUND)
}

fn span(plan: &Plan) -> Nanos {
    match plan.end {
        End::TimeNs(span) => span.plus(plan.omit_ns),
        End::Bytes(_) | End::Blocks(_) => Nanos::ZERO,
    }
}

/// The runs to be made, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// The plan of each run before its change, of the schedule's length.
    plan: Plan,
    /// What each changes; `None` = nothing.
    pub runs: Vec<Option<Variation>>,
}

impl Schedule {
    /// The changes of all trials, each once a round, and between two of them the test as it was.
    ///
    /// `ramp` is the time that the test took to its plateau, as for [`shorter`].
    pub fn of(plan: &Plan, trials: &[Trial], ramp: Option<Nanos>) -> Self {
        let mut changes: Vec<&Variation> = Vec::new();
        for trial in trials {
            if !changes.contains(&&trial.variation) {
                changes.push(&trial.variation);
            }
        }
        let mut runs: Vec<Option<Variation>> = Vec::new();
        for _ in 0..ROUNDS {
            for change in &changes {
                // The test itself stands before the first one.
                if !runs.is_empty() {
                    runs.push(None);
                }
                runs.push(Some((*change).clone()));
            }
        }
        Self {
            plan: shorter(plan, ramp),
            runs,
        }
    }

    /// How long each run measures, with what it omits.
    pub fn span(&self) -> Nanos {
        span(&self.plan)
    }

    /// How long all of it takes, about.
    pub fn total(&self) -> Nanos {
        Nanos(takes(&self.plan).0.saturating_mul(self.runs.len() as u64))
    }

    /// Makes the runs, until one says that it was stopped.
    ///
    /// `run` makes one; `Ok(None)` means that the user wants no more. What fails is kept as having failed.
    /// `before` hears the number of each run to come, from 0, and what it changes.
    pub fn make(
        &self,
        mut run: impl FnMut(&Plan, Option<&Variation>) -> Result<Option<CounterRun>, String>,
        mut before: impl FnMut(usize, Option<&Variation>),
    ) -> Vec<CounterRun> {
        let mut made = Vec::new();
        for (number, variation) in self.runs.iter().enumerate() {
            before(number, variation.as_ref());
            let plan = variation.as_ref().map_or_else(
                || self.plan.clone(),
                |variation| variation.applied(&self.plan),
            );
            match run(&plan, variation.as_ref()) {
                Ok(Some(run)) => made.push(run),
                Ok(None) => break,
                Err(error) => made.push(CounterRun::failed(variation.clone(), error)),
            }
        }
        made
    }
}
