//! Which tests have no row yet: what a hub writes down so that the next one leaves out none.

use std::collections::BTreeMap;

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{RunClass, UnixMillis};
use serde::{Deserialize, Serialize};

use super::compiled::PairKey;
use super::{Dispatcher, Running};

/// How far the rows of the regular tests of a plan go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Each regular test that was due by this moment has a row, but for those of `open`.
    pub at: UnixMillis,
    /// The pairs with tests that wait or run.
    pub open: Vec<OpenPair>,
    /// Hashes of the names of the pairs of which no test was due yet.
    #[serde(default)]
    pub fresh: Vec<u64>,
}

/// A pair with regular tests that have no row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenPair {
    /// Name of the task.
    pub task: PlainText,
    /// Name of the sending host.
    pub from: PlainText,
    /// Name of the receiving host.
    pub to: PlainText,
    /// When the first of them was due.
    pub since: UnixMillis,
    /// Which of several pairs of the task with the same hosts.
    #[serde(default)]
    pub(super) nth: u64,
}

impl OpenPair {
    /// The first pair of a task with these hosts.
    pub const fn new(task: PlainText, from: PlainText, to: PlainText, since: UnixMillis) -> Self {
        Self {
            task,
            from,
            to,
            since,
            nth: 0,
        }
    }

    pub(super) fn key(&self) -> PairKey {
        let (task, from, to) = (&self.task, &self.from, &self.to);
        (task.clone(), from.clone(), to.clone(), self.nth)
    }
}

impl Running {
    /// When the regular tests were due whose rows come when this one ends.
    fn regular_dues(&self) -> impl Iterator<Item = UnixMillis> {
        let rows = self.after.iter().map(|row| (row.class, row.due));
        let tests = rows.chain([(self.test.class, self.test.due)]);
        tests.filter_map(|(class, due)| (class == RunClass::Regular).then_some(due))
    }
}

impl Dispatcher {
    /// How far the rows go that [`Self::poll_action`] gave out. A hub writes it down when all of them are archived, and
    /// gives it to [`Self::resume`] after a restart.
    pub fn progress(&self) -> Progress {
        let mut open: BTreeMap<usize, UnixMillis> = BTreeMap::new();
        let mut add = |pair: usize, due: UnixMillis| {
            let since = open.entry(pair).or_insert(due);
            *since = due.min(*since);
        };
        let waiting = self.tests.values();
        for test in waiting.filter(|test| test.class == RunClass::Regular) {
            add(test.pair, test.due);
        }
        for running in self.running.values() {
            // Rows of a pair that the plan no longer has are of no use to the next hub.
            let Some(pair) = running.pair else { continue };
            running.regular_dues().for_each(|due| add(pair, due));
        }
        let open = open.into_iter().map(|(pair, since)| {
            let (task, from, to, nth) = self.plan.pairs[pair].key.clone();
            OpenPair {
                task,
                from,
                to,
                since,
                nth,
            }
        });
        let pairs = self.pairs.iter().zip(&self.plan.pairs);
        let fresh = pairs.filter(|(state, _)| state.last_due == UnixMillis(0));
        Progress {
            at: self.now,
            open: open.collect(),
            fresh: fresh.map(|(_, plan)| plan.hash.narrow()).collect(),
        }
    }
}
