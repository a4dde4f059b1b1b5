//! What runs, what is due, and why tests did not run.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use linerate_model::watch::{UnixMillis, WatchOutcome};
use serde::Serialize;

use super::run::RunRow;
use crate::live::Snapshot;
use crate::moment::DAY;
use crate::shared::Shared;
use crate::store::{OutcomeKind, RunFilter, StoreError};

/// More tests than this that did not run are not looked at.
const MOST: usize = 5000;
/// Examples that are listed.
const EXAMPLES: usize = 20;

/// Everything that the page of plan and schedule shows.
#[derive(Debug, Serialize)]
pub(crate) struct PlanView {
    /// When it was made.
    pub(crate) now: UnixMillis,
    /// What the hub does at the moment.
    #[serde(flatten)]
    pub(crate) live: Snapshot,
    /// How many tests did not run in the last 24 hours, by the word for why; the most frequent first.
    pub(crate) not_run: Vec<(&'static str, usize)>,
    /// Whether there were more of them than were counted.
    pub(crate) more: bool,
    /// The latest of them.
    pub(crate) examples: Vec<RunRow>,
}

impl PlanView {
    pub(crate) fn of(shared: &Shared) -> Result<Self, StoreError> {
        let now = shared.now();
        let runs = shared.store().runs(&RunFilter {
            since: Some(UnixMillis(now.0.saturating_sub(DAY))),
            outcome: Some(OutcomeKind::NotRun),
            limit: MOST,
            ..RunFilter::default()
        })?;
        let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
        for run in &runs {
            if let WatchOutcome::NotRun { reason, .. } = &run.outcome {
                *counts.entry(reason.word()).or_default() += 1;
            }
        }
        let mut not_run: Vec<_> = counts.into_iter().collect();
        not_run.sort_by_key(|(_, count)| Reverse(*count));
        Ok(Self {
            now,
            live: shared.live().snapshot(),
            not_run,
            more: runs.len() == MOST,
            examples: runs.into_iter().take(EXAMPLES).map(RunRow::from).collect(),
        })
    }
}
