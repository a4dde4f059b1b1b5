//! Agents that have connected, until somebody takes their sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::session::{Session, locked};

/// Sessions by the name that the agent enrolled with; one each, the latest.
#[derive(Debug, Default)]
pub struct Arrivals {
    waiting: Mutex<BTreeMap<String, Session>>,
    /// Who waits for a name: an arrival wakes those of its name alone, for there may be thousands.
    awaited: Mutex<BTreeMap<String, Arc<Condvar>>>,
    /// Names that somebody takes sessions of; absent = not said.
    expected: Mutex<Option<BTreeSet<String>>>,
}

impl Arrivals {
    /// An agent has connected. One that waits by the same name is ended: the host has started a new one.
    pub fn put(&self, session: Session) {
        let name = session.host().to_owned();
        let before = locked(&self.waiting).insert(name.clone(), session);
        // Who asked since finds it there.
        if let Some(came) = locked(&self.awaited).get(&name) {
            came.notify_all();
        }
        // It ends outside the lock: that may take a while.
        drop(before);
    }

    /// Waits for the agent of this name, at most so long.
    pub fn take(&self, name: &str, patience: Duration) -> Option<Session> {
        let absent = |waiting: &mut BTreeMap<String, Session>| !waiting.contains_key(name);
        let came = locked(&self.awaited)
            .entry(name.to_owned())
            .or_default()
            .clone();
        let waiting = locked(&self.waiting);
        let (mut waiting, _) = came
            .wait_timeout_while(waiting, patience, absent)
            .unwrap_or_else(PoisonError::into_inner);
        waiting.remove(name)
    }

    /// Says of which names sessions are taken from now on.
    pub fn expect(&self, names: impl IntoIterator<Item = String>) {
        let names: BTreeSet<String> = names.into_iter().collect();
        locked(&self.awaited)
            .retain(|name, came| names.contains(name) || Arc::strong_count(came) > 1);
        *locked(&self.expected) = Some(names);
    }

    /// Whether nobody takes sessions of this name.
    pub fn is_unexpected(&self, name: &str) -> bool {
        let expected = locked(&self.expected);
        expected.as_ref().is_some_and(|names| !names.contains(name))
    }

    /// Whether one of this name waits.
    pub fn has(&self, name: &str) -> bool {
        locked(&self.waiting).contains_key(name)
    }
}
