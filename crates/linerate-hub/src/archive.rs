//! Pages read linerate's archive, and write silences to it.

use std::cmp::Reverse;
use std::io::Write;
use std::ops::Range;

use linerate_archive::{
    AlertFilter, Archive, ArchiveError, CsvWriter, EventId, EventKind, SilenceKey, Stored,
};
use linerate_model::alert::{Alert, AlertState, HostChange, Silence};
use linerate_model::watch::{RunId, UnixMillis, WatchRun};

use crate::store::{Event, Happened, OutcomeKind, PairState, RunFilter, Store, StoreError};
use crate::view::host;

fn cannot(what: &'static str) -> impl Fn(ArchiveError) -> StoreError {
    move |error| StoreError {
        what,
        why: error.to_string(),
    }
}

impl Store for Archive {
    fn pairs(&self) -> Result<Vec<PairState>, StoreError> {
        let pairs = self.pairs().map_err(cannot("pairs"))?;
        let pairs = pairs.into_iter().map(|pair| PairState {
            task: pair.task,
            from: pair.from,
            to: pair.to,
            latest: pair.latest.run,
            measured: pair.measured.map(|stored| stored.run),
            failures_in_a_row: pair.failures_in_a_row,
        });
        Ok(pairs.collect())
    }

    fn run(&self, id: RunId) -> Result<Option<WatchRun>, StoreError> {
        let stored = self.run(id).map_err(cannot("a test"))?;
        Ok(stored.map(|stored| stored.run))
    }

    fn record(&self, id: RunId) -> Result<Option<Vec<u8>>, StoreError> {
        self.record(id).map_err(cannot("a record"))
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<WatchRun>, StoreError> {
        let stored = self.runs(&theirs(filter)).map_err(cannot("tests"))?;
        Ok(stored.into_iter().map(|Stored { run, .. }| run).collect())
    }

    fn runs_csv(&self, filter: &RunFilter, out: &mut dyn Write) -> Result<(), StoreError> {
        let mut write = || {
            let mut csv = CsvWriter::begin(out)?;
            self.each_run(&theirs(filter), false, |stored| csv.row(&stored))
        };
        write().map_err(cannot("tests"))
    }

    fn alerts(&self, changed_since: UnixMillis) -> Result<Vec<Alert>, StoreError> {
        let open = [AlertState::Suspect, AlertState::Firing].map(|state| state.word().to_owned());
        let open = AlertFilter {
            states: open.to_vec(),
            ..AlertFilter::default()
        };
        let over = AlertFilter {
            states: vec![AlertState::Resolved.word().to_owned()],
            changed_since: Some(changed_since),
            ..AlertFilter::default()
        };
        let mut alerts: Vec<Alert> = self.alerts(&open).map_err(cannot("alerts"))?;
        alerts.extend(self.alerts::<Alert>(&over).map_err(cannot("alerts"))?);
        alerts.sort_by_key(|alert| Reverse(alert.since));
        Ok(alerts)
    }

    fn silences(&self, at: UnixMillis) -> Result<Vec<Silence>, StoreError> {
        let mut silences: Vec<Silence> = self.silences(at).map_err(cannot("silences"))?;
        silences.retain(|silence| silence.since <= at);
        Ok(silences)
    }

    fn put_silence(&self, silence: &Silence) -> Result<(), StoreError> {
        let id = silence.id.to_string();
        let key = SilenceKey {
            id: &id,
            since: silence.since,
            until: silence.until,
        };
        self.put_silence(key, silence).map_err(cannot("a silence"))
    }

    fn facts(&self, host: &str) -> Result<Option<(UnixMillis, Vec<u8>)>, StoreError> {
        let latest = UnixMillis(i64::MAX.unsigned_abs());
        let facts = self.facts(host, latest).map_err(cannot("facts"))?;
        Ok(facts.map(|facts| (facts.since, facts.json)))
    }

    fn host_changes(
        &self,
        host: &str,
        within: Range<UnixMillis>,
    ) -> Result<Vec<HostChange>, StoreError> {
        let facts = self
            .fact_changes(host, within.start)
            .map_err(cannot("facts"))?;
        let mut changes: Vec<HostChange> = facts
            .windows(2)
            .filter(|two| within.contains(&two[1].since))
            .flat_map(|two| {
                let [before, after] = [&two[0], &two[1]];
                host::changes(
                    host,
                    (before.since, &before.json),
                    (after.since, &after.json),
                )
            })
            .collect();
        changes.reverse();
        Ok(changes)
    }

    fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        let events = self
            .events(EventId(after), limit)
            .map_err(cannot("events"))?;
        events
            .into_iter()
            .map(|event| {
                Ok(Event {
                    id: event.id.0,
                    what: happened(self, event.kind, event.subject)?,
                })
            })
            .collect()
    }

    fn last_event(&self) -> Result<u64, StoreError> {
        Ok(self.newest_event().0)
    }
}

/// What an event is about.
fn happened(archive: &Archive, kind: EventKind, subject: String) -> Result<Happened, StoreError> {
    Ok(match kind {
        EventKind::Alert | EventKind::Silence | EventKind::Accepted => Happened::Alert,
        EventKind::Facts => Happened::Facts {
            host: subject.into(),
        },
        EventKind::Run => {
            let run = match subject.parse() {
                Ok(id) => Store::run(archive, id)?,
                Err(_) => None,
            };
            // A row that is gone by now changes what pages show as an alert does: they are loaded again.
            run.map_or(Happened::Alert, |run| Happened::Run {
                task: run.task,
                from: run.from,
                to: run.to,
            })
        }
    })
}

fn theirs(filter: &RunFilter) -> linerate_archive::RunFilter {
    use linerate_archive::OutcomeKind as Theirs;
    let kind = filter.outcome.map(|kind| match kind {
        OutcomeKind::Measured => Theirs::Measured,
        OutcomeKind::Failed => Theirs::Failed,
        OutcomeKind::NotRun => Theirs::NotRun,
        OutcomeKind::Invalid => Theirs::Invalid,
    });
    linerate_archive::RunFilter {
        task: filter.task.clone(),
        from: filter.from.clone(),
        to: filter.to.clone(),
        since: filter.since,
        until: filter.until,
        kinds: kind.into_iter().collect(),
        limit: filter.limit,
        before: filter.before,
    }
}
