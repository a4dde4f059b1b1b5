//! The archive, as the hub's pages read it.

use std::ops::Range;
use std::sync::Arc;

use linerate_archive::{self as archive, AlertFilter, Archive, ArchiveError, EventId};
use linerate_hub::store::{
    Event, Happened, OutcomeKind, PairState, RunFilter, Store, StoreError,
};
use linerate_model::alert::{Alert, AlertState, HostChange, Silence};
use linerate_model::watch::{RunId, UnixMillis, WatchRun};

use super::facts;

/// The archive behind the pages.
pub(super) struct Archived(pub(super) Arc<Archive>);

type Answer<T> = Result<T, StoreError>;

fn cannot(what: &'static str) -> impl FnOnce(ArchiveError) -> StoreError {
    move |error| StoreError {
        what,
        why: error.to_string(),
    }
}

impl Store for Archived {
    fn pairs(&self) -> Answer<Vec<PairState>> {
        let pairs = self.0.pairs().map_err(cannot("the pairs"))?;
        let state = |pair: archive::PairState| PairState {
            task: pair.task,
            from: pair.from,
            to: pair.to,
            latest: pair.latest.run,
            measured: pair.measured.map(|stored| stored.run),
            failures_in_a_row: pair.failures_in_a_row,
        };
        Ok(pairs.into_iter().map(state).collect())
    }

    fn run(&self, id: RunId) -> Answer<Option<WatchRun>> {
        let stored = self.0.run(id).map_err(cannot("a test"))?;
        Ok(stored.map(|stored| stored.run))
    }

    fn record(&self, id: RunId) -> Answer<Option<Vec<u8>>> {
        self.0.record(id).map_err(cannot("the record of a test"))
    }

    fn runs(&self, filter: &RunFilter) -> Answer<Vec<WatchRun>> {
        let filter = archive::RunFilter {
            task: filter.task.clone(),
            from: filter.from.clone(),
            to: filter.to.clone(),
            since: filter.since,
            until: filter.until,
            kinds: filter.outcome.map(kind).into_iter().collect(),
            limit: filter.limit,
            before: filter.before,
        };
        let runs = self.0.runs(&filter).map_err(cannot("the tests"))?;
        Ok(runs.into_iter().map(|stored| stored.run).collect())
    }

    fn alerts(&self, changed_since: UnixMillis) -> Answer<Vec<Alert>> {
        let open = AlertFilter {
            states: [AlertState::Suspect, AlertState::Firing]
                .map(|state| state.word().to_owned())
                .to_vec(),
            ..AlertFilter::default()
        };
        let changed = AlertFilter {
            changed_since: Some(changed_since),
            ..AlertFilter::default()
        };
        let read = |filter| self.0.alerts::<Alert>(filter).map_err(cannot("the alerts"));
        let mut alerts = read(&open)?;
        alerts.extend(read(&changed)?);
        alerts.sort_by(|one, other| (other.since, other.id).cmp(&(one.since, one.id)));
        alerts.dedup_by_key(|alert| alert.id);
        Ok(alerts)
    }

    fn silences(&self, at: UnixMillis) -> Answer<Vec<Silence>> {
        let mut silences: Vec<Silence> = self.0.silences(at).map_err(cannot("the silences"))?;
        silences.retain(|silence| silence.since <= at);
        Ok(silences)
    }

    fn facts(&self, host: &str) -> Answer<Option<(UnixMillis, Vec<u8>)>> {
        let latest = UnixMillis(u64::MAX);
        let facts = self.0.facts(host, latest);
        let facts = facts.map_err(cannot("the facts of a host"))?;
        Ok(facts.map(|facts| (facts.since, facts.json)))
    }

    fn host_changes(&self, host: &str, within: Range<UnixMillis>) -> Answer<Vec<HostChange>> {
        let known = self
            .0
            .fact_changes(host, within.start)
            .map_err(cannot("what changed on a host"))?;
        let mut changes: Vec<HostChange> = known
            .windows(2)
            .filter(|two| within.contains(&two[1].since))
            .flat_map(|two| facts::changes(&two[0], &two[1], two[0].since))
            .collect();
        changes.reverse();
        Ok(changes)
    }

    fn events(&self, after: u64, limit: usize) -> Answer<Vec<Event>> {
        let events = self
            .0
            .events(EventId(after), limit)
            .map_err(cannot("the events"))?;
        let mut found = Vec::new();
        for event in events {
            let what = match event.kind {
                archive::EventKind::Run => match self.happened(&event.subject)? {
                    Some(what) => what,
                    None => continue,
                },
                archive::EventKind::Alert | archive::EventKind::Silence => Happened::Alert,
                archive::EventKind::Facts => Happened::Facts {
                    host: event.subject.into(),
                },
            };
            found.push(Event {
                id: event.id.0,
                what,
            });
        }
        Ok(found)
    }

    fn last_event(&self) -> Answer<u64> {
        Ok(self.0.newest_event().0)
    }
}

impl Archived {
    /// The pair of a test that has its row.
    fn happened(&self, id: &str) -> Answer<Option<Happened>> {
        let Ok(id) = id.parse::<RunId>() else {
            return Ok(None);
        };
        let run = self.run(id)?;
        Ok(run.map(|run| Happened::Run {
            task: run.task,
            from: run.from,
            to: run.to,
        }))
    }
}

const fn kind(kind: OutcomeKind) -> archive::OutcomeKind {
    match kind {
        OutcomeKind::Measured => archive::OutcomeKind::Measured,
        OutcomeKind::Failed => archive::OutcomeKind::Failed,
        OutcomeKind::NotRun => archive::OutcomeKind::NotRun,
        OutcomeKind::Invalid => archive::OutcomeKind::Invalid,
    }
}
