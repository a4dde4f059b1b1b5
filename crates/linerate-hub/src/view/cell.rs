//! One pair of a task in the grid.

use std::collections::HashMap;

use linerate_model::alert::{Alert, AlertId, AlertKind, AlertState};
use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;
use linerate_model::watch::{RunId, UnixMillis, WatchOutcome, WatchRun};
use serde::Serialize;

use crate::store::PairState;

/// How a pair is, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CellState {
    /// An alert says that its tests fail, or the latest one did.
    Failing,
    /// An alert says that it is slow.
    Slow,
    /// An alert says that there has been no result for long.
    Silent,
    /// An alert says that its level fell.
    Changed,
    /// A test was bad, and confirming tests are due.
    Suspect,
    /// The latest test measured nothing that counts.
    Invalid,
    /// The latest test did not begin.
    NotRun,
    /// Nothing is wrong.
    Good,
}

impl CellState {
    /// All of them, the worst first.
    pub(crate) const ALL: [Self; 8] = [
        Self::Failing,
        Self::Slow,
        Self::Silent,
        Self::Changed,
        Self::Suspect,
        Self::Invalid,
        Self::NotRun,
        Self::Good,
    ];

    /// Its word for programs, which is also its class in style sheets.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Failing => "failing",
            Self::Slow => "slow",
            Self::Silent => "silent",
            Self::Changed => "changed",
            Self::Suspect => "suspect",
            Self::Invalid => "invalid",
            Self::NotRun => "not_run",
            Self::Good => "good",
        }
    }

    /// Its words for people.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Failing => "failed",
            Self::Slow => "slow",
            Self::Silent => "no result",
            Self::Changed => "lower than before",
            Self::Suspect => "suspect",
            Self::Invalid => "does not count",
            Self::NotRun => "not run",
            Self::Good => "good",
        }
    }

    /// What its cell means, as a key explains it.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Failing => "the latest test failed: there is no rate",
            Self::Slow => "confirmed: below what is expected",
            Self::Silent => "no result for 2.5 periods",
            Self::Changed => "below its own level of before",
            Self::Suspect => "one bad test; confirming tests are due",
            Self::Invalid => "the latest test does not count",
            Self::NotRun => "the latest test did not begin",
            Self::Good => "as expected",
        }
    }

    /// A sign of its own, so that nobody has to tell colours apart.
    pub(crate) const fn glyph(self) -> &'static str {
        match self {
            Self::Failing => "✕",
            Self::Slow => "▼",
            Self::Silent => "…",
            Self::Changed => "↘",
            Self::Suspect => "?",
            Self::Invalid => "!",
            Self::NotRun => "○",
            Self::Good => "✓",
        }
    }

    const fn of_alert(kind: AlertKind, state: AlertState) -> Option<Self> {
        match (state, kind) {
            (AlertState::Resolved, _) => None,
            (AlertState::Suspect, _) => Some(Self::Suspect),
            (AlertState::Firing, AlertKind::Slow) => Some(Self::Slow),
            (AlertState::Firing, AlertKind::Failing) => Some(Self::Failing),
            (AlertState::Firing, AlertKind::Silent) => Some(Self::Silent),
            (AlertState::Firing, AlertKind::Changed) => Some(Self::Changed),
        }
    }
}

/// A pair as it is shown: the figures are those of the latest test that was due, absent where it did not measure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Cell {
    /// The task.
    pub(crate) task: PlainText,
    /// The sending host.
    pub(crate) from: PlainText,
    /// The receiving host.
    pub(crate) to: PlainText,
    /// How it is.
    pub(crate) state: CellState,
    /// The alert that says so; null = none does.
    pub(crate) alert: Option<AlertId>,
    /// Whether that alert fires for the pair; absent = there is none.
    #[serde(skip)]
    pub(crate) alert_state: Option<AlertState>,
    /// The latest test that was due.
    pub(crate) latest: RunId,
    /// When it ended.
    pub(crate) ended: UnixMillis,
    /// What it came to: `measured`, `failed`, `not_run`, `invalid`.
    pub(crate) outcome: &'static str,
    /// Why it did not measure; null = it did.
    pub(crate) why: Option<PlainText>,
    /// Its goodput, bit/s; null = it did not measure.
    pub(crate) goodput_bps: Option<f64>,
    /// The 95 % interval of it, bit/s; null = not known.
    pub(crate) interval_bps: Option<(f64, f64)>,
    /// Its round-trip time, ns; null = not known.
    pub(crate) rtt_ns: Option<u64>,
    /// Share of segments that it retransmitted, 0 to 1; null = not known.
    pub(crate) retransmitted: Option<f64>,
    /// Ids of its findings.
    pub(crate) findings: Vec<String>,
    /// When the latest test that measured ended; null = none did.
    pub(crate) measured: Option<UnixMillis>,
    /// How many tests failed since then.
    pub(crate) failures_in_a_row: u32,
    /// The round trip of the latest test that measured one.
    #[serde(skip)]
    pub(crate) measured_rtt: Option<Nanos>,
}

/// Task, sender and receiver.
type Key<'a> = (&'a str, &'a str, &'a str);

/// Which open alert a pair is in.
#[derive(Debug)]
pub(crate) struct OpenAlerts<'a>(HashMap<Key<'a>, About>);

/// What an open alert says of a pair.
#[derive(Debug, Clone, Copy)]
struct About {
    shown: CellState,
    state: AlertState,
    id: AlertId,
}

impl<'a> OpenAlerts<'a> {
    pub(crate) fn of(alerts: &'a [Alert]) -> Self {
        let mut open: HashMap<Key<'a>, About> = HashMap::new();
        for alert in alerts {
            for pair in &alert.pairs {
                // A pair may be over in an alert that is not; of an alert that is over, all pairs are.
                let state = pair.state;
                let over = alert.state == AlertState::Resolved;
                let shown = CellState::of_alert(pair.kind, state).filter(|_| !over);
                let Some(shown) = shown else {
                    continue;
                };
                let about = About {
                    shown,
                    state,
                    id: alert.id,
                };
                let key = (&*alert.task, &*pair.from, &*pair.to);
                let entry = open.entry(key).or_insert(about);
                if shown < entry.shown {
                    *entry = about;
                }
            }
        }
        Self(open)
    }

    fn about(&self, pair: &PairState) -> Option<About> {
        let key: Key<'_> = (&pair.task, &pair.from, &pair.to);
        self.0.get(&key).copied()
    }
}

impl Cell {
    pub(crate) fn of(pair: &PairState, alerts: &OpenAlerts<'_>) -> Self {
        let alert = alerts.about(pair);
        let latest = &pair.latest;
        let (state, outcome, why, figures) = match &latest.outcome {
            WatchOutcome::Measured(figures) => (CellState::Good, "measured", None, Some(figures)),
            WatchOutcome::Failed { stage, why } => {
                let why = format!("{stage}: {why}").into();
                (CellState::Failing, "failed", Some(why), None)
            }
            WatchOutcome::NotRun { why, .. } => {
                (CellState::NotRun, "not_run", Some(why.clone()), None)
            }
            WatchOutcome::Invalid { why } => {
                (CellState::Invalid, "invalid", Some(why.clone()), None)
            }
        };
        Self {
            task: pair.task.clone(),
            from: pair.from.clone(),
            to: pair.to.clone(),
            state: alert.map_or(state, |about| about.shown.min(state)),
            alert: alert.map(|about| about.id),
            alert_state: alert.map(|about| about.state),
            latest: latest.id,
            ended: latest.ended,
            outcome,
            why,
            goodput_bps: figures.map(|figures| figures.goodput_bps),
            interval_bps: figures.and_then(|figures| figures.interval_bps),
            rtt_ns: figures.and_then(|figures| figures.rtt).map(|rtt| rtt.0),
            retransmitted: figures.and_then(|figures| figures.retransmitted),
            findings: figures.map_or_else(Vec::new, |figures| figures.findings.clone()),
            measured: pair.measured.as_ref().map(|run| run.ended),
            measured_rtt: pair.measured.as_ref().and_then(round_trip),
            failures_in_a_row: pair.failures_in_a_row,
        }
    }
}

fn round_trip(run: &WatchRun) -> Option<Nanos> {
    match &run.outcome {
        WatchOutcome::Measured(figures) => figures.rtt,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::alert::{AlertCause, AlertPair};
    use linerate_model::mesh::{MeshCauseKind, MeshDirection};
    use linerate_model::watch::{RunClass, WatchRun};

    use super::*;

    #[test]
    fn a_suspect_pair_whose_latest_test_failed_is_no_firing_alert() {
        let at = UnixMillis(1_764_038_400_000);
        let (task, from, to): (PlainText, PlainText, PlainText) =
            ("mesh".into(), "a".into(), "b".into());
        let run = WatchRun {
            id: RunId::of(at, 1),
            task: task.clone(),
            from: from.clone(),
            to: to.clone(),
            class: RunClass::Regular,
            due: at,
            deadline: at,
            started: Some(at),
            ended: at,
            outcome: WatchOutcome::Failed {
                stage: "connecting".into(),
                why: "timed out".into(),
            },
        };
        let pair = PairState {
            task: task.clone(),
            from: from.clone(),
            to: to.clone(),
            latest: run,
            measured: None,
            failures_in_a_row: 1,
        };
        let mut alert = Alert {
            id: AlertId::of(at, 1),
            task,
            kind: AlertKind::Failing,
            state: AlertState::Suspect,
            cause: AlertCause {
                kind: MeshCauseKind::Pair,
                name: "a > b".into(),
                direction: MeshDirection::Out,
                from: vec![from.clone()],
                to: vec![to.clone()],
                in_common: Vec::new(),
            },
            since: at,
            fired: None,
            until: None,
            merged_into: None,
            accepted: None,
            changed: at,
            finding: None,
            host_changes: Vec::new(),
            pairs: vec![AlertPair {
                from,
                to,
                kind: AlertKind::Failing,
                state: AlertState::Suspect,
                since: at,
                compared: None,
                failure: None,
                passes: 0,
                runs: Vec::new(),
            }],
        };
        let cell = |alert: &Alert| Cell::of(&pair, &OpenAlerts::of(std::slice::from_ref(alert)));
        let suspect = cell(&alert);
        assert_eq!(suspect.state, CellState::Failing);
        assert_eq!(suspect.alert_state, Some(AlertState::Suspect));
        // One that is over, in an alert that fires for others.
        alert.state = AlertState::Firing;
        alert.pairs[0].state = AlertState::Resolved;
        assert_eq!(cell(&alert).alert, None);
    }
}
