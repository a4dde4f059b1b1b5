//! What the archive knows of the time before this start.

use linerate_archive::{AlertFilter, AlertKey, Archive, ArchiveError, RunFilter};
use linerate_model::alert::{Alert, AlertState};
use linerate_model::record::{Flow, RunRecord};
use linerate_model::watch::{RunClass, RunId, UnixMillis, WatchOutcome, WatchRun};
use linerate_report::record;
use linerate_watch::alert::{Alerts, PairName};
use linerate_watch::dispatch::{Dispatcher, PairMemory, Resumption};
use linerate_watch::watched::Watched;

use super::figures::{self, Read};
use super::folder::{AlertsState, Asked, State};
use crate::action::Failure;

/// The seed of all moments at which tests are due: each hub has the same, so that a restart changes none.
const SEED: u64 = 1;
/// So many tests of a pair are read for its baseline.
const PAST: usize = 120;
/// So many of the latest rows of a pair are looked at for the latest regular one.
const LATEST: usize = 50;
/// The end of an alert is sent at most so long after it, ms.
const DAYS: u64 = 7 * 86_400_000;
/// Rows that ended so shortly before the alerts were written may be unknown to them, ms.
const BEFORE_ALERTS: u64 = 60_000;

/// Leaves out the tests that have a row: the archive took it after the state was written for the last time.
pub(super) fn forget_answered(archive: &Archive, requests: &mut Vec<Asked>) -> Result<(), Failure> {
    let mut waiting = Vec::new();
    for asked in requests.drain(..) {
        if archive.run(asked.run)?.is_none() {
            waiting.push(asked);
        }
    }
    *requests = waiting;
    Ok(())
}

/// A dispatcher that goes on where the one before stopped. The agents of hosts end with the hub that started them, so no
/// test of before runs on.
pub(super) fn dispatcher(
    archive: &Archive,
    before: &State,
    watched: Watched,
    now: UnixMillis,
) -> Result<Dispatcher, Failure> {
    if before.seen == UnixMillis(0) {
        return Ok(Dispatcher::new(watched, SEED, now));
    }
    let mut pairs = Vec::new();
    for pair in archive.pairs()? {
        let (task, from, to) = (pair.task, pair.from, pair.to);
        let filter = RunFilter {
            task: Some(task.clone()),
            from: Some(from.clone()),
            to: Some(to.clone()),
            limit: LATEST,
            ..RunFilter::default()
        };
        let runs = archive.runs(&filter)?;
        let mut runs = runs.iter().map(|stored| &stored.run);
        pairs.push(PairMemory {
            // A clock that was ahead has left rows of the future, which no test waits for.
            last_due: runs
                .find(|run| run.class == RunClass::Regular)
                .map(|run| run.due.min(now)),
            task,
            from,
            to,
            failures_in_a_row: pair.failures_in_a_row,
            latest: Some(pair.latest.run),
        });
    }
    let mut progress = before.progress.clone();
    progress.at = progress.at.min(now);
    let past = Resumption {
        seen: before.seen.min(now),
        progress,
        epoch: Some(now.0.max(before.epoch.saturating_add(1))),
        pairs,
        leases: Some(Vec::new()),
        budgets: before.budgets.clone(),
        requests: before
            .requests
            .iter()
            .map(|asked| asked.request.clone())
            .collect(),
    };
    Ok(Dispatcher::resume(watched, SEED, now, &past))
}

/// The alerts as they were, with what the archive took since they were written.
pub(super) fn alerts(
    archive: &Archive,
    before: Option<AlertsState<Alerts>>,
    watched: &Watched,
    now: UnixMillis,
) -> Result<Alerts, Failure> {
    let (mut alerts, seen) = match before {
        Some(before) => (before.alerts, before.seen),
        None => (Alerts::default(), UnixMillis(0)),
    };
    alerts.handle_plan(now, watched);
    let since = UnixMillis(seen.0.saturating_sub(BEFORE_ALERTS));
    let mut late = Vec::new();
    for pair in archive.pairs()? {
        let filter = RunFilter {
            task: Some(pair.task),
            from: Some(pair.from),
            to: Some(pair.to),
            limit: PAST,
            ..RunFilter::default()
        };
        for stored in archive.runs(&filter)?.into_iter().rev() {
            if stored.run.ended < since || seen == UnixMillis(0) {
                alerts.handle_past(&stored.run);
            } else {
                late.push(stored.run);
            }
        }
    }
    late.sort_by_key(|run| (run.ended, run.id));
    for run in late {
        // Those that the alerts know change nothing, and are part of the past.
        let read = again(archive, &run)?;
        if alerts.state(&PairName::of(&run)).is_some() {
            alerts.handle_run(now, &run, read.and_then(|read| read.finding));
        }
    }
    Ok(alerts)
}

/// Ends alerts that the archive has as open and nobody watches any more: their state was lost.
pub(super) fn end_lost_alerts(
    archive: &Archive,
    alerts: &Alerts,
    now: UnixMillis,
) -> Result<(), Failure> {
    let open = AlertFilter {
        states: [AlertState::Suspect, AlertState::Firing]
            .map(|state| state.word().to_owned())
            .to_vec(),
        ..AlertFilter::default()
    };
    for mut alert in archive.alerts::<Alert>(&open)? {
        if alerts.open().iter().any(|known| known.id == alert.id) {
            continue;
        }
        alert.state = AlertState::Resolved;
        (alert.until, alert.changed) = (Some(now), now);
        put_alert(archive, &alert)?;
    }
    Ok(())
}

/// Keeps an alert.
pub(super) fn put_alert(archive: &Archive, alert: &Alert) -> Result<(), ArchiveError> {
    let key = AlertKey {
        id: &alert.id.to_string(),
        task: &alert.task,
        state: alert.state.word(),
        since: alert.since,
        changed: alert.changed,
    };
    archive.put_alert(key, alert)
}

/// Alerts of which a channel may not know yet how they ended.
pub(super) fn told(archive: &Archive, now: UnixMillis) -> Result<Vec<Alert>, Failure> {
    let open = AlertFilter {
        states: vec![AlertState::Firing.word().to_owned()],
        ..AlertFilter::default()
    };
    let over = AlertFilter {
        states: vec![AlertState::Resolved.word().to_owned()],
        changed_since: Some(UnixMillis(now.0.saturating_sub(DAYS))),
        ..AlertFilter::default()
    };
    let mut alerts: Vec<Alert> = archive.alerts(&open)?;
    alerts.extend(archive.alerts::<Alert>(&over)?);
    Ok(alerts)
}

/// What the record of a test says; `None` where it has none.
fn again(archive: &Archive, run: &WatchRun) -> Result<Option<Read>, Failure> {
    if !matches!(run.outcome, WatchOutcome::Measured(_)) {
        return Ok(None);
    }
    let id: RunId = run.id;
    let Some(json) = archive.record(id)? else {
        return Ok(None);
    };
    let Ok(record) = record::from_json(&json) else {
        return Ok(None);
    };
    Ok(figures::read(&record, flow(run, &record), run.ended).ok())
}

/// Which direction of a record is that of its pair.
pub(crate) fn flow(run: &WatchRun, record: &RunRecord) -> Flow {
    let names = record.host_names.as_ref();
    if names.is_some_and(|names| names.server == run.from) {
        Flow::ServerToClient
    } else {
        Flow::ClientToServer
    }
}

#[cfg(test)]
mod tests {
    use linerate_watch::dispatch::Request;

    use super::*;

    #[test]
    fn a_test_that_has_its_row_is_not_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path()).unwrap();
        let due = UnixMillis(1_764_038_400_000);
        let asked = |number: u64| Asked {
            run: RunId::of(due, u128::from(number)),
            request: Request {
                task: "ring".into(),
                from: "a".into(),
                to: "b".into(),
                class: RunClass::Confirm,
                due,
                deadline: due.plus_millis(60_000),
                number,
                load_millis: None,
            },
            finding: None,
        };
        let failed = WatchRun {
            id: asked(0).run,
            task: "ring".into(),
            from: "a".into(),
            to: "b".into(),
            class: RunClass::Confirm,
            due,
            deadline: due.plus_millis(60_000),
            started: None,
            ended: due.plus_millis(20_000),
            outcome: WatchOutcome::Failed {
                stage: "starting the server".into(),
                why: "no end within 20.0 s".into(),
            },
        };
        archive.append(&failed, None).unwrap();
        let mut requests = vec![asked(0), asked(1)];
        forget_answered(&archive, &mut requests).unwrap();
        assert_eq!(requests, [asked(1)]);
    }
}
