//! The rows of tests that did not run, and why they did not.

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{Holding, NotRun, RunClass, UnixMillis, WatchOutcome, WatchRun};

use super::lease::{Action, End};
use super::pending::{Block, Pending};
use super::resource::holdings;
use super::{Dispatcher, Running};

impl Running {
    pub(super) fn row(
        &self,
        started: Option<UnixMillis>,
        ended: UnixMillis,
        outcome: WatchOutcome,
    ) -> WatchRun {
        WatchRun {
            id: self.test.id,
            task: self.lease.task.clone(),
            from: self.lease.from.clone(),
            to: self.lease.to.clone(),
            class: self.test.class,
            due: self.test.due,
            deadline: self.test.deadline,
            started,
            ended,
            outcome,
        }
    }

    pub(super) fn row_dropped(&self, now: UnixMillis) -> WatchRun {
        self.row(None, now, dropped())
    }
}

pub(super) fn dropped() -> WatchOutcome {
    WatchOutcome::NotRun {
        reason: NotRun::Dropped,
        why: "the plan was changed, and no longer has this test".into(),
        held: Vec::new(),
    }
}

impl Dispatcher {
    /// The row of a test without a lease.
    pub(super) fn row(&self, test: &Pending, outcome: WatchOutcome) -> WatchRun {
        let (task, from, to, _) = self.plan_of(test).key.clone();
        WatchRun {
            id: test.id,
            task,
            from,
            to,
            class: test.class,
            due: test.due,
            deadline: test.deadline,
            started: None,
            ended: self.now,
            outcome,
        }
    }

    pub(super) fn row_unreachable(&mut self, test: &Pending) {
        let plan = self.plan_of(test);
        let (from, to) = (self.host_name(plan.from), self.host_name(plan.to));
        let why = format!(
            "no end can begin: one has to run an agent, and the other one has to accept connections; {from} and {to} do not"
        );
        self.not_run(test, NotRun::Unreachable, why.into(), Vec::new());
    }

    pub(super) fn row_of_dropped(&self, test: &Pending) -> Action {
        Action::Row(Box::new(self.row(test, dropped())))
    }

    /// A test can no longer start.
    pub(super) fn give_up(&mut self, slot: u64) {
        let Some(mut test) = self.tests.remove(&slot) else {
            return;
        };
        let order = self.order(&test, slot);
        self.ready.remove(&order);
        let cause = test.cause(self.now);
        let (reason, why, held) = match cause {
            None => (NotRun::HubAway, self.why_not_looked_at(&test), Vec::new()),
            Some((Block::Resources, millis)) => self.missed(&test, millis),
            Some((block, millis)) => {
                let why = self.sentence(&test, &block, millis);
                (block.reason(), why, self.in_the_way(&test, &block, millis))
            }
        };
        self.not_run(&test, reason, why, held);
    }

    pub(super) fn not_run(
        &mut self,
        test: &Pending,
        reason: NotRun,
        why: PlainText,
        held: Vec<Holding>,
    ) {
        if test.class == RunClass::Regular {
            self.pairs[test.pair].missed = reason == NotRun::Missed;
        }
        let row = self.row(test, WatchOutcome::NotRun { reason, why, held });
        let running = self.pairs[test.pair].running;
        // An earlier test of the pair still runs: its row comes first.
        if let Some(running) = running.and_then(|grant| self.running.get_mut(&grant)) {
            running.after.push(row);
        } else {
            self.actions.push_back(Action::Row(Box::new(row)));
        }
    }

    fn why_not_looked_at(&self, test: &Pending) -> PlainText {
        let away = span(self.now.since(self.before.max(test.due)));
        format!("the hub did not run for {away}").into()
    }

    fn missed(&self, test: &Pending, millis: u64) -> (NotRun, PlainText, Vec<Holding>) {
        let needs = &self.plan_of(test).needs;
        let resources = needs.iter().map(|(resource, _)| &self.resources[*resource]);
        let held = holdings(resources, test.due, self.now);
        let waited = span(millis);
        let why = match held.first() {
            Some(most) => format!(
                "other tests used what it needs for {waited}; {} used {} for {} of them",
                most.by,
                most.resource,
                span(most.millis)
            ),
            None => format!("an earlier test of the pair ran for {waited}"),
        };
        (NotRun::Missed, why.into(), held)
    }

    /// The host that stood in the way, and why: another hub's test, or an agent that was away.
    fn in_the_way(&self, test: &Pending, block: &Block, millis: u64) -> Vec<Holding> {
        let (end, by) = match block {
            Block::OtherHub(end) => (end, "something that this hub did not start"),
            Block::Away(end) => (end, "its agent, which was not connected"),
            _ => return Vec::new(),
        };
        vec![Holding {
            resource: self.host_of(test, *end).clone(),
            by: by.into(),
            millis,
        }]
    }

    fn host_of(&self, test: &Pending, end: End) -> &PlainText {
        self.host_name(self.plan_of(test).host(end))
    }

    /// What a test waits for, and for how long it has.
    pub(super) fn sentence(&self, test: &Pending, block: &Block, millis: u64) -> PlainText {
        let (waited, window) = (span(millis), span(self.now.since(test.due)));
        let why = match block {
            Block::Settling => {
                format!(
                    "the hub had just started, and tests of its predecessor could run for {waited}"
                )
            }
            Block::Maintenance(why) => format!("maintenance for {waited} of {window}: {why}"),
            Block::Away(end) => {
                let host = self.host_of(test, *end);
                format!("the agent of {host} was not connected for {waited} of {window}")
            }
            Block::PairFailed => format!(
                "the pair rested for {waited} of {window}, because {} tests in a row failed",
                self.pairs[test.pair].failures
            ),
            Block::HostFailed(end) => {
                let host = self.plan_of(test).host(*end);
                format!(
                    "{} could not be reached for {waited} of {window}: {}",
                    self.host_name(host),
                    self.hosts[host].failing.why
                )
            }
            Block::Hours => format!("the task's hours allow no test for {waited} of {window}"),
            Block::OtherHub(end) => format!(
                "{} ran something else for {waited} of {window}",
                self.host_of(test, *end)
            ),
            Block::Budget(name) => {
                format!("the budget of {name} was spent for {waited} of {window}")
            }
            Block::BusyLink(end) => format!(
                "other traffic used the link of {} for {waited} of {window}",
                self.host_of(test, *end)
            ),
            Block::Resources => format!("other tests used what it needs for {waited} of {window}"),
        };
        why.into()
    }
}

/// A time in words: its two largest units.
pub(super) fn span(millis: u64) -> String {
    let seconds = millis / 1_000;
    let two = |large: u64, first: &str, small: u64, second: &str| match small {
        0 => format!("{large} {first}"),
        _ => format!("{large} {first} {small} {second}"),
    };
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{seconds} s"),
        60..3_600 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds / 60 % 60, "min"),
        _ => two(seconds / 86_400, "d", seconds / 3_600 % 24, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn a_time_has_two_units() {
        let spans = [400, 59_000, 61_000, 3_600_000, 93_600_000].map(span);
        assert_eq!(spans, ["400 ms", "59 s", "1 min 1 s", "1 h", "1 d 2 h"]);
    }
}
