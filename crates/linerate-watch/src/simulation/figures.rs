//! The figures of a simulated plan.

use std::collections::BTreeMap;

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{NotRun, RunClass, UnixMillis, WatchOutcome, WatchRun};

use super::overlaps::overlaps;
use crate::watched::Watched;

/// What became of the tests of a plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures {
    /// Tests that were due by their schedule.
    pub due: usize,
    /// Tests of all classes that measured.
    pub measured: usize,
    /// Those that failed or do not count.
    pub failed: usize,
    /// Those that did not run, by reason.
    pub not_run: BTreeMap<NotRun, usize>,
    /// Median of the time from when a test was due until its load began, ms.
    pub wait_p50_millis: u64,
    /// The same of the 99th percentile.
    pub wait_p99_millis: u64,
    /// The busiest host, and the share of the time in which tests used it, 0 to 1.
    pub busiest: Option<(PlainText, f64)>,
    /// Tests that used the same at the same time: none, if all is well.
    pub overlaps: usize,
}

impl Figures {
    /// The share of the tests that were due and did not run, 0 to 1.
    pub fn not_run_share(&self) -> f64 {
        let not_run: usize = self.not_run.values().sum();
        not_run as f64 / self.due.max(1) as f64
    }

    pub(super) fn of(
        watched: &Watched,
        rows: &[WatchRun],
        overhead_millis: u64,
        from: UnixMillis,
        until: UnixMillis,
    ) -> Self {
        let mut figures = Self {
            overlaps: overlaps(watched, rows).len(),
            ..Self::default()
        };
        let mut waits = Vec::new();
        let mut busy: BTreeMap<&PlainText, u64> = BTreeMap::new();
        for row in rows {
            figures.count(row);
            let Some(started) = row.started else { continue };
            waits.push(started.since(row.due));
            let used = row.ended.since(started) + overhead_millis;
            for host in [&row.from, &row.to] {
                *busy.entry(host).or_default() += used;
            }
        }
        waits.sort_unstable();
        figures.wait_p50_millis = percentile(&waits, 50);
        figures.wait_p99_millis = percentile(&waits, 99);
        let busiest = busy.into_iter().max_by_key(|(_, millis)| *millis);
        let span = until.since(from).max(1) as f64;
        figures.busiest = busiest.map(|(name, millis)| (name.clone(), millis as f64 / span));
        figures
    }

    fn count(&mut self, row: &WatchRun) {
        self.due += usize::from(row.class == RunClass::Regular);
        match &row.outcome {
            WatchOutcome::Measured(_) => self.measured += 1,
            WatchOutcome::Failed { .. } | WatchOutcome::Invalid { .. } => self.failed += 1,
            WatchOutcome::NotRun { reason, .. } => *self.not_run.entry(*reason).or_default() += 1,
        }
    }
}

/// The smallest value that so many percent of the sorted values do not exceed; 0 where there is none.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}
