//! An archive that is gone with the process: for tests and for the sample that `cargo run --example sample` serves.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

use linerate_archive::{CsvWriter, RecordHash, Stored};
use linerate_model::alert::{Alert, AlertState, HostChange, Silence};
use linerate_model::plain_text::PlainText;
use linerate_model::watch::{RunId, UnixMillis, WatchOutcome, WatchRun};

use crate::store::{Event, Happened, PairState, RunFilter, Store, StoreError};

/// Everything in memory, every read a copy.
#[derive(Debug, Default)]
pub struct MemoryStore {
    inside: RwLock<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    runs: BTreeMap<(PlainText, PlainText, PlainText), BTreeMap<RunId, WatchRun>>,
    places: BTreeMap<RunId, (PlainText, PlainText, PlainText)>,
    records: BTreeMap<RunId, Vec<u8>>,
    alerts: Vec<Alert>,
    silences: Vec<Silence>,
    facts: BTreeMap<String, (UnixMillis, Vec<u8>)>,
    changes: Vec<HostChange>,
    events: Vec<Event>,
}

impl Inside {
    fn happened(&mut self, what: Happened) {
        let id = self.events.len() as u64 + 1;
        self.events.push(Event { id, what });
    }

    fn silence(&mut self, silence: Silence) {
        self.silences.retain(|known| known.id != silence.id);
        self.silences.push(silence);
        self.happened(Happened::Alert);
    }
}

impl MemoryStore {
    fn read<T>(&self, of: impl FnOnce(&Inside) -> T) -> T {
        of(&self.inside.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, of: impl FnOnce(&mut Inside) -> T) -> T {
        of(&mut self.inside.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps a run, with the JSON of its record where there is one.
    pub fn append(&self, run: WatchRun, record: Option<Vec<u8>>) {
        self.write(|inside| {
            let (task, from, to) = (run.task.clone(), run.from.clone(), run.to.clone());
            let place = (task.clone(), from.clone(), to.clone());
            if let Some(record) = record {
                inside.records.insert(run.id, record);
            }
            inside.places.insert(run.id, place.clone());
            inside.runs.entry(place).or_default().insert(run.id, run);
            inside.happened(Happened::Run { task, from, to });
        });
    }

    /// Keeps an alert, in place of the one with the same id.
    pub fn put_alert(&self, alert: Alert) {
        self.write(|inside| {
            inside.alerts.retain(|known| known.id != alert.id);
            inside.alerts.push(alert);
            inside.happened(Happened::Alert);
        });
    }

    /// Keeps a silence.
    pub fn put_silence(&self, silence: Silence) {
        self.write(|inside| inside.silence(silence));
    }

    /// Keeps a host's facts, the JSON of a `HostFacts`.
    pub fn put_facts(&self, host: &str, at: UnixMillis, facts: Vec<u8>) {
        self.write(|inside| {
            inside.facts.insert(host.to_owned(), (at, facts));
            let host = host.into();
            inside.happened(Happened::Facts { host });
        });
    }

    /// Keeps a change of a host.
    pub fn put_change(&self, change: HostChange) {
        self.write(|inside| inside.changes.push(change));
    }
}

impl Store for MemoryStore {
    fn pairs(&self) -> Result<Vec<PairState>, StoreError> {
        Ok(self.read(|inside| inside.runs.values().filter_map(state).collect()))
    }

    fn run(&self, id: RunId) -> Result<Option<WatchRun>, StoreError> {
        Ok(self.read(|inside| inside.runs.get(inside.places.get(&id)?)?.get(&id).cloned()))
    }

    fn record(&self, id: RunId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.read(|inside| inside.records.get(&id).cloned()))
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<WatchRun>, StoreError> {
        let limit = if filter.limit == 0 {
            usize::MAX
        } else {
            filter.limit
        };
        let mut found: Vec<WatchRun> = self.read(|inside| {
            let all = inside.runs.values().flat_map(BTreeMap::values);
            all.filter(|run| filter.matches(run)).cloned().collect()
        });
        found.sort_by_key(|run| Reverse(run.id));
        found.truncate(limit);
        Ok(found)
    }

    fn runs_csv(&self, filter: &RunFilter, out: &mut dyn Write) -> Result<(), StoreError> {
        let mut write = |runs: Vec<WatchRun>| {
            let mut csv = CsvWriter::begin(out)?;
            runs.into_iter().try_for_each(|run| {
                let record = self.read(|inside| {
                    let record = inside.records.get(&run.id);
                    record.map(|json| RecordHash::of(json))
                });
                csv.row(&Stored {
                    run,
                    record,
                    record_gone: None,
                    computed_by: 0,
                })
            })
        };
        write(self.runs(filter)?).map_err(|error| StoreError {
            what: "tests",
            why: error.to_string(),
        })
    }

    fn alerts(&self, changed_since: UnixMillis) -> Result<Vec<Alert>, StoreError> {
        let wanted =
            |alert: &&Alert| alert.state != AlertState::Resolved || alert.changed >= changed_since;
        let mut found: Vec<Alert> =
            self.read(|inside| inside.alerts.iter().filter(wanted).cloned().collect());
        found.sort_by_key(|alert| Reverse(alert.since));
        Ok(found)
    }

    fn silences(&self, at: UnixMillis) -> Result<Vec<Silence>, StoreError> {
        let in_force = |silence: &&Silence| (silence.since..silence.until).contains(&at);
        Ok(self.read(|inside| inside.silences.iter().filter(in_force).cloned().collect()))
    }

    fn put_silence(&self, silence: &Silence) -> Result<(), StoreError> {
        self.write(|inside| inside.silence(silence.clone()));
        Ok(())
    }

    fn facts(&self, host: &str) -> Result<Option<(UnixMillis, Vec<u8>)>, StoreError> {
        Ok(self.read(|inside| inside.facts.get(host).cloned()))
    }

    fn host_changes(
        &self,
        host: &str,
        within: Range<UnixMillis>,
    ) -> Result<Vec<HostChange>, StoreError> {
        let wanted =
            |change: &&HostChange| change.host == *host && within.contains(&change.first_after);
        let mut found: Vec<HostChange> =
            self.read(|inside| inside.changes.iter().filter(wanted).cloned().collect());
        found.sort_by_key(|change| Reverse(change.first_after));
        Ok(found)
    }

    fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        Ok(self.read(|inside| {
            let later = inside.events.iter().filter(|event| event.id > after);
            later.take(limit).cloned().collect()
        }))
    }

    fn last_event(&self) -> Result<u64, StoreError> {
        Ok(self.read(|inside| inside.events.last().map_or(0, |event| event.id)))
    }
}

fn state(runs: &BTreeMap<RunId, WatchRun>) -> Option<PairState> {
    let latest = runs.values().next_back()?.clone();
    let measured = |run: &&WatchRun| matches!(run.outcome, WatchOutcome::Measured(_));
    let failed = |run: &&WatchRun| matches!(run.outcome, WatchOutcome::Failed { .. });
    let since = runs.values().rev().take_while(|run| !measured(run));
    Some(PairState {
        task: latest.task.clone(),
        from: latest.from.clone(),
        to: latest.to.clone(),
        failures_in_a_row: u32::try_from(since.filter(failed).count()).unwrap_or(u32::MAX),
        measured: runs.values().rev().find(measured).cloned(),
        latest,
    })
}
