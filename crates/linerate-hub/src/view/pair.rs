//! A pair of a task over time.

use std::cmp::Reverse;

use linerate_model::alert::HostChange;
use linerate_model::plain_text::PlainText;
use linerate_model::watch::{RunId, UnixMillis};
use serde::Serialize;

use super::alert::AlertView;
use super::cell::{Cell, OpenAlerts};
use super::run::RunRow;
use crate::moment::DAY;
use crate::shared::Shared;
use crate::store::{OutcomeKind, PairState, RunFilter, StoreError};

/// The times that a page offers, days.
pub(crate) const TIMES: [u64; 5] = [1, 7, 30, 90, 365];
/// Runs in the table of a page.
pub(crate) const ROWS: usize = 60;
/// More runs than this are not drawn; the earliest are left out.
const MOST_RUNS: usize = 20_000;
/// Measured tests that are further apart than this many usual distances have a gap between them.
const GAP: f64 = 2.5;

/// Which pair, and when.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) task: PlainText,
    pub(crate) from: PlainText,
    pub(crate) to: PlainText,
    pub(crate) days: u64,
    pub(crate) before: Option<RunId>,
}

/// Everything that the page of a pair shows.
#[derive(Debug, Serialize)]
pub(crate) struct PairView {
    /// The task.
    pub(crate) task: PlainText,
    /// The sending host.
    pub(crate) from: PlainText,
    /// The receiving host.
    pub(crate) to: PlainText,
    /// When it was made.
    pub(crate) now: UnixMillis,
    /// From when on.
    pub(crate) since: UnixMillis,
    /// How many days.
    pub(crate) days: u64,
    /// How it is now; null = no test was due yet.
    pub(crate) cell: Option<Cell>,
    /// The alerts that it is part of, open ones first.
    pub(crate) alerts: Vec<AlertView>,
    /// How many tests came to what: measured, failed, not run, invalid.
    pub(crate) counts: [usize; 4],
    /// The median of goodput of this time, bit/s; null = nothing was measured.
    pub(crate) median_bps: Option<f64>,
    /// Times of one level of goodput, the first one first.
    pub(crate) regimes: Vec<Regime>,
    /// What changed on both hosts, the latest first.
    pub(crate) host_changes: Vec<HostChange>,
    /// The tests, the latest first.
    pub(crate) runs: Vec<RunRow>,
    /// The test before which the page's table begins.
    pub(crate) before: Option<RunId>,
    /// The distance above which there is a gap in the line, ms.
    pub(crate) gap_millis: u64,
}

/// A time in which goodput had one level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Regime {
    /// When its first test ended.
    pub(crate) since: UnixMillis,
    /// When its last test ended.
    pub(crate) until: UnixMillis,
    /// The median of its goodput, bit/s.
    pub(crate) median_bps: f64,
}

impl PairView {
    /// `None` where the archive has no test of such a pair.
    pub(crate) fn of(shared: &Shared, wanted: &Wanted) -> Result<Option<Self>, StoreError> {
        let now = shared.now();
        let since = UnixMillis(now.0.saturating_sub(wanted.days.saturating_mul(DAY)));
        let store = shared.store();
        let filter = RunFilter {
            task: Some(wanted.task.clone()),
            from: Some(wanted.from.clone()),
            to: Some(wanted.to.clone()),
            since: Some(since),
            limit: MOST_RUNS,
            ..RunFilter::default()
        };
        let runs = store.runs(&filter)?;
        let Some(state) = state(shared, wanted, &filter, &runs)? else {
            return Ok(None);
        };
        let alerts = store.alerts(since)?;
        let silences = store.silences(now)?;
        let mut host_changes = Vec::new();
        for host in [&wanted.from, &wanted.to] {
            host_changes.extend(store.host_changes(host, since..now.plus_millis(1))?);
        }
        host_changes.sort_by_key(|change| Reverse(change.first_after));
        let cell = Cell::of(&state, &OpenAlerts::of(&alerts));
        let mut inside = AlertView::open(&alerts, &silences, now);
        inside.retain(|view| view.alert.task == wanted.task && has(view, wanted));
        let runs: Vec<RunRow> = runs.into_iter().map(RunRow::from).collect();
        Ok(Some(Self {
            task: wanted.task.clone(),
            from: wanted.from.clone(),
            to: wanted.to.clone(),
            now,
            since,
            days: wanted.days,
            cell: Some(cell),
            alerts: inside,
            counts: counts(&runs),
            median_bps: median(runs.iter().filter_map(|run| run.goodput_bps)),
            regimes: crate::regimes::of(&runs),
            host_changes,
            gap_millis: gap(&runs),
            runs,
            before: wanted.before,
        }))
    }

    /// The tests in the page's table.
    pub(crate) fn rows(&self) -> &[RunRow] {
        let earlier = |run: &RunRow| self.before.is_none_or(|before| run.id < before);
        let first = self
            .runs
            .iter()
            .position(earlier)
            .unwrap_or(self.runs.len());
        let rest = &self.runs[first..];
        &rest[..rest.len().min(ROWS)]
    }

    /// Where the next page of the table begins; `None` where there is none.
    pub(crate) fn next(&self) -> Option<RunId> {
        let last = self.rows().last()?;
        let more = self.runs.last().is_some_and(|run| run.id < last.id);
        more.then_some(last.id)
    }
}

fn has(view: &AlertView, wanted: &Wanted) -> bool {
    let mut pairs = view.alert.pairs.iter();
    pairs.any(|pair| pair.from == wanted.from && pair.to == wanted.to)
}

/// How the pair is now, also where its latest test was due before the time that is shown.
fn state(
    shared: &Shared,
    wanted: &Wanted,
    filter: &RunFilter,
    runs: &[linerate_model::watch::WatchRun],
) -> Result<Option<PairState>, StoreError> {
    let latest = if let Some(run) = runs.first() {
        Some(run.clone())
    } else {
        let any = RunFilter {
            since: None,
            limit: 1,
            ..filter.clone()
        };
        shared.store().runs(&any)?.pop()
    };
    let kinds = runs.iter().map(OutcomeKind::of);
    let since: Vec<OutcomeKind> = kinds
        .take_while(|kind| *kind != OutcomeKind::Measured)
        .collect();
    let failures = since
        .iter()
        .filter(|kind| **kind == OutcomeKind::Failed)
        .count();
    Ok(latest.map(|latest| PairState {
        task: wanted.task.clone(),
        from: wanted.from.clone(),
        to: wanted.to.clone(),
        measured: runs
            .iter()
            .find(|run| OutcomeKind::of(run) == OutcomeKind::Measured)
            .cloned(),
        failures_in_a_row: u32::try_from(failures).unwrap_or(u32::MAX),
        latest,
    }))
}

fn counts(runs: &[RunRow]) -> [usize; 4] {
    let mut counts = [0; 4];
    for run in runs {
        counts[run.outcome as usize] += 1;
    }
    counts
}

/// The middle one of some figures.
pub(crate) fn median(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

/// 2.5 times the usual distance between tests that were due.
fn gap(runs: &[RunRow]) -> u64 {
    let distances = runs
        .windows(2)
        .map(|two| two[0].due.since(two[1].due) as f64);
    let usual = median(distances).unwrap_or(DAY as f64);
    linerate_model::units::whole(usual * GAP).max(60_000)
}
