//! What comes next for a pair.

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{NotRun, RunClass, RunId, UnixMillis};

use super::Dispatcher;
use super::lease::Lease;
use super::pending::Pending;

/// What comes next for a pair.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlook {
    /// The test that runs now.
    pub running: Option<Lease>,
    /// Tests that are due and wait, the earlier first.
    pub waiting: Vec<Waiting>,
    /// When the next regular test is due.
    pub next_due: Option<UnixMillis>,
    /// Until when its regular tests rest after failures; absent = they do not.
    pub rests_until: Option<UnixMillis>,
    /// How many of its tests failed since one measured.
    pub failures_in_a_row: u32,
}

/// A test that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The test.
    pub run: RunId,
    /// Why it is due.
    pub class: RunClass,
    /// When it was due, or will be.
    pub due: UnixMillis,
    /// By when it has to end.
    pub deadline: UnixMillis,
    /// What it waits for, since when and as a sentence; absent = it is not due yet.
    pub blocked: Option<(NotRun, UnixMillis, PlainText)>,
}

/// A test of a pair that comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coming {
    /// The task.
    pub task: PlainText,
    /// The sending host.
    pub from: PlainText,
    /// The receiving host.
    pub to: PlainText,
    /// Why it is due.
    pub class: RunClass,
    /// When it was due, or will be.
    pub due: UnixMillis,
    /// By when it has to end; of one that will be due, that moment.
    pub deadline: UnixMillis,
    /// What it waits for, since when and as a sentence; absent = for its time alone.
    pub blocked: Option<(NotRun, UnixMillis, PlainText)>,
}

impl Dispatcher {
    /// The tests of all pairs that come next, the earliest first, at most so many: those that wait, and the next regular one
    /// of each pair.
    pub fn coming(&self, now: UnixMillis, most: usize) -> Vec<Coming> {
        let waiting = self.tests.values();
        let waiting = waiting.map(|test| (test.due, test.pair, Some(test)));
        let states = self.pairs.iter().enumerate();
        let next = states.filter_map(|(pair, state)| Some((state.next?.at, pair, None)));
        let mut found: Vec<(UnixMillis, usize, Option<&Pending>)> = waiting.chain(next).collect();
        found.sort_unstable_by_key(|(due, pair, test)| (*due, *pair, test.map(|test| test.id)));
        found.truncate(most);
        let coming = |(due, pair, test): (UnixMillis, usize, Option<&Pending>)| {
            let (task, from, to, _) = self.plan.pairs[pair].key.clone();
            Coming {
                task,
                from,
                to,
                class: test.map_or(RunClass::Regular, |test| test.class),
                due,
                deadline: test.map_or(due, |test| test.deadline),
                blocked: test.and_then(|test| self.blocked(test, now)),
            }
        };
        found.into_iter().map(coming).collect()
    }

    /// What a test waits for, since when and as a sentence.
    fn blocked(&self, test: &Pending, now: UnixMillis) -> Option<(NotRun, UnixMillis, PlainText)> {
        let (block, since) = test.waits_for()?;
        let why = self.sentence(test, block, now.since(*since));
        Some((block.reason(), *since, why))
    }

    /// What comes next for the pair of these names; none where the plan does not have it.
    pub fn outlook(&self, now: UnixMillis, task: &str, from: &str, to: &str) -> Option<Outlook> {
        let key = (task.into(), from.into(), to.into(), 0);
        let pair = *self.plan.places.get(&key)?;
        let state = &self.pairs[pair];
        let running = state.running.and_then(|key| self.running.get(&key));
        let tests = self.tests.values().filter(|test| test.pair == pair);
        let wait = |test: &Pending| Waiting {
            run: test.id,
            class: test.class,
            due: test.due,
            deadline: test.deadline,
            blocked: self.blocked(test, now),
        };
        let mut waiting: Vec<Waiting> = tests.map(wait).collect();
        waiting.sort_by_key(|test| (test.due, test.run));
        Some(Outlook {
            running: running.map(|running| running.lease.clone()),
            waiting,
            next_due: state.next.map(|due| due.at),
            rests_until: Some(state.rests_until).filter(|until| *until > now),
            failures_in_a_row: state.failures,
        })
    }
}
