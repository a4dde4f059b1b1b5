//! How well a test that was to end by its interval knows its rate.

use linerate_analysis::evidence::{DirectionEvidence, Evidence, Place};
use linerate_analysis::precision;
use linerate_model::record::{Flow, Outcome};
use serde::Serialize;

use crate::words;

/// What became of `--precision`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PrecisionView {
    /// Asked for: half the width of the interval as a share of the mean.
    pub asked: f64,
    /// Whether every direction reached it.
    pub reached: bool,
    /// Time that was measured, ns: of the longest direction.
    pub after_ns: u64,
    /// Each direction.
    pub directions: Vec<DirectionPrecision>,
}

/// What became of it in one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectionPrecision {
    /// Which.
    pub flow: Flow,
    /// Half the width of the interval as a share of the mean; absent where there is no interval.
    pub half_width: Option<f64>,
    /// Whether it is narrow enough, of a steady rate, and rests on enough samples.
    pub reached: bool,
    /// Time that would probably be needed at this variation, ns; absent where it was reached or cannot be told.
    pub needs_ns: Option<u64>,
    /// Why it was not reached, where the width is not the reason.
    pub reason: Option<String>,
}

impl PrecisionView {
    /// `None` where the plan asks for no precision.
    pub(super) fn of(evidence: &Evidence<'_>) -> Option<Self> {
        let asked = evidence.record.plan.precision?;
        let directions = evidence.directions.iter();
        let directions: Vec<DirectionPrecision> = directions
            .map(|direction| of_direction(direction, asked))
            .collect();
        let spans = evidence
            .directions
            .iter()
            .map(|direction| direction.span_ns);
        let completed = matches!(evidence.record.outcome, Outcome::Completed);
        Some(Self {
            asked,
            reached: completed
                && !directions.is_empty()
                && directions.iter().all(|direction| direction.reached),
            after_ns: spans.max().unwrap_or(0),
            directions,
        })
    }
}

fn of_direction(direction: &DirectionEvidence, asked: f64) -> DirectionPrecision {
    let plateau = direction
        .plateau
        .filter(|_| direction.measured_at != Place::SendingApplication);
    let half_width = plateau.as_ref().map(precision::half_width);
    let reached = plateau.is_some_and(|plateau| precision::reached(&plateau, asked));
    let steady = plateau.filter(|plateau| plateau.unsteady.is_none());
    let longer = steady.and_then(|plateau| precision::times_longer(&plateau, asked));
    let reason = match plateau {
        None => Some("there is no interval: what arrived was not sampled".to_owned()),
        Some(plateau) => plateau.unsteady.map(|why| why.reason().to_owned()),
    };
    DirectionPrecision {
        flow: direction.flow,
        half_width: half_width.and_then(words::finite),
        reached,
        needs_ns: longer
            .filter(|_| !reached)
            .map(|times| words::whole(times * direction.span_ns as f64)),
        reason: reason.filter(|_| !reached),
    }
}
