//! What alerts want kept, on its way to the archive: alerts as they are now, records that stay for ever, who accepted a level.

use std::collections::BTreeMap;

use linerate_archive::{Archive, ArchiveError, Keep};
use linerate_model::alert::{Acceptance, Alert, AlertId};
use linerate_model::watch::RunId;
use linerate_watch::alert::{Mark, Worth};

use super::past;

/// What the archive did not take yet.
#[derive(Default)]
pub(super) struct Keeping {
    alerts: BTreeMap<AlertId, Alert>,
    /// Records that stay (`true`) or need not stay, in order.
    records: Vec<(RunId, Keep, bool)>,
    acceptances: Vec<(AlertId, Acceptance)>,
}

impl Keeping {
    pub(super) fn is_empty(&self) -> bool {
        self.alerts.is_empty() && self.records.is_empty() && self.acceptances.is_empty()
    }

    pub(super) fn alert(&mut self, alert: Alert) {
        self.alerts.insert(alert.id, alert);
    }

    pub(super) fn record(&mut self, mark: Mark) {
        self.records.push(match mark {
            Mark::Keep(run, Worth::Regime) => (run, Keep::Regime, true),
            Mark::Keep(run, Worth::Alert) => (run, Keep::Alert, true),
            Mark::LetGo(run) => (run, Keep::Regime, false),
        });
    }

    pub(super) fn acceptance(&mut self, alert: AlertId, acceptance: Acceptance) {
        self.acceptances.push((alert, acceptance));
    }

    /// Hands all of it to the archive; whether pages have something new to show. What it does not take stays.
    pub(super) fn hand_over(&mut self, archive: &Archive) -> Result<bool, ArchiveError> {
        let shown = !self.alerts.is_empty();
        if !self.records.is_empty() {
            archive.keep_all(&self.records)?;
            self.records.clear();
        }
        while let Some(waiting) = self.alerts.first_entry() {
            past::put_alert(archive, waiting.get())?;
            waiting.remove();
        }
        while let Some((alert, acceptance)) = self.acceptances.first() {
            archive.put_acceptance(&alert.to_string(), &acceptance.by, acceptance.at)?;
            self.acceptances.remove(0);
        }
        Ok(shown)
    }
}

#[cfg(test)]
mod tests {
    use linerate_archive::{EventId, EventKind, Retention};
    use linerate_model::watch::{RunClass, UnixMillis, WatchFigures, WatchOutcome, WatchRun};

    use super::*;

    const START: u64 = 1_764_038_400_000;

    fn measured(number: u64) -> WatchRun {
        let due = UnixMillis(START + number);
        WatchRun {
            id: RunId::of(due, 1),
            task: "all".into(),
            from: "a".into(),
            to: "b".into(),
            class: RunClass::Regular,
            due,
            deadline: due.plus_millis(60_000),
            started: Some(due),
            ended: due.plus_millis(12_000),
            outcome: WatchOutcome::Measured(WatchFigures {
                goodput_bps: 1e9,
                ..WatchFigures::default()
            }),
        }
    }

    #[test]
    fn retention_leaves_the_records_that_alerts_want_and_takes_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path()).unwrap();
        let runs: Vec<WatchRun> = (0..6).map(measured).collect();
        for run in &runs {
            let record = format!("{{\"of\": \"{}\"}}", run.id);
            archive.append(run, Some(record.as_bytes())).unwrap();
        }
        let mut keeping = Keeping::default();
        keeping.record(Mark::Keep(runs[0].id, Worth::Regime));
        keeping.record(Mark::Keep(runs[1].id, Worth::Regime));
        keeping.record(Mark::Keep(runs[2].id, Worth::Alert));
        keeping.record(Mark::Keep(runs[3].id, Worth::Regime));
        keeping.record(Mark::Keep(runs[3].id, Worth::Alert));
        assert!(!keeping.hand_over(&archive).unwrap());
        // The level began elsewhere. What an alert rests on stays.
        keeping.record(Mark::LetGo(runs[1].id));
        keeping.record(Mark::LetGo(runs[3].id));
        // A test that never was changes nothing.
        keeping.record(Mark::Keep(measured(99).id, Worth::Alert));
        assert!(!keeping.is_empty());
        keeping.hand_over(&archive).unwrap();
        assert!(keeping.is_empty());
        let rules = Retention::default();
        let late = UnixMillis(START + 2 * rules.raw_millis);
        archive.retain(late, &rules).unwrap();
        let left: Vec<usize> = (0..runs.len())
            .filter(|place| archive.record(runs[*place].id).unwrap().is_some())
            .collect();
        assert_eq!(left, [0, 2, 3]);
    }

    #[test]
    fn who_accepted_a_level_and_when_is_an_event() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path()).unwrap();
        let alert = crate::hub::outbox::tests::alert(&[("a", "b")]);
        let at = UnixMillis(START);
        let mut keeping = Keeping::default();
        keeping.alert(alert.clone());
        keeping.acceptance(
            alert.id,
            Acceptance {
                at,
                by: "ann".into(),
            },
        );
        assert!(keeping.hand_over(&archive).unwrap());
        let events = archive.events(EventId(0), 10).unwrap();
        let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [EventKind::Alert, EventKind::Accepted]);
        assert_eq!(events[0].by, None);
        assert_eq!(events[1].by, Some(("ann".to_owned(), at)));
        assert_eq!(events[1].subject, alert.id.to_string());
    }
}
