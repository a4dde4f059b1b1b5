//! How leases end.

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{NotRun, UnixMillis, WatchOutcome, WatchRun};

use super::budget::Cost;
use super::identity::Hash;
use super::lease::{Action, End, Ending, Finished, LeaseId, Taken};
use super::pending::Block;
use super::{Dispatcher, Running};

/// How long a host that runs something else is left alone: this and up to as much again, ms.
const BUSY_MILLIS: u64 = 2_000;

impl Dispatcher {
    /// A test ended, or could not begin.
    pub fn handle_finished(
        &mut self,
        now: UnixMillis,
        lease: LeaseId,
        finished: Finished,
    ) -> Taken {
        self.advance(now);
        let taken = match self.running_key(lease) {
            Some(key) => {
                self.finish(key, finished);
                Taken::Yes
            }
            None => Taken::Late,
        };
        self.dispatch();
        taken
    }

    fn finish(&mut self, grant: u64, finished: Finished) {
        let Some(running) = self.running.get(&grant) else {
            return;
        };
        let used = used(running, &finished);
        let moved = finished.bytes.map(|bytes| bytes.count() as f64);
        let moved = moved.filter(|_| matches!(finished.ending, Ending::Measured(_)));
        let Some(running) = self.take(grant, used, moved) else {
            return;
        };
        let started = finished.started.or(running.started);
        let ended = finished.ended;
        match finished.ending {
            Ending::Measured(mut figures) => {
                figures.with_traffic |= running.lease.with_traffic;
                let row = running.row(started, ended, WatchOutcome::Measured(figures));
                self.succeeded(running, row);
            }
            Ending::Invalid { why } => {
                // It shows neither that the pair works nor that it does not.
                let row = running.row(started, ended, WatchOutcome::Invalid { why });
                self.rows(running, row);
            }
            Ending::Failed { stage, why, at } => {
                let outcome = WatchOutcome::Failed {
                    stage,
                    why: why.clone(),
                };
                let row = running.row(started, ended, outcome);
                self.failed(running, row, Some(&why), at);
            }
            Ending::Refused { why } => {
                let outcome = WatchOutcome::NotRun {
                    reason: NotRun::Refused,
                    why,
                    held: Vec::new(),
                };
                let row = running.row(None, ended, outcome);
                self.rows(running, row);
            }
            Ending::Busy(end) => self.wait_again(running, end, Block::OtherHub(end)),
            Ending::Traffic(end, share) => {
                if let Some(pair) = running.pair {
                    let host = self.plan.pairs[pair].host(end);
                    self.hosts[host].traffic = Some((self.now, share));
                }
                self.wait_again(running, end, Block::BusyLink(end));
            }
        }
    }

    /// Frees what a test held and settles its budgets; `moved` are the bytes of one that measured.
    fn take(&mut self, grant: u64, used: Cost, moved: Option<f64>) -> Option<Running> {
        let running = self.running.remove(&grant)?;
        for &resource in &running.needs {
            self.resources[resource].free(grant, self.now, self.plan.window);
        }
        for &bucket in &running.buckets {
            self.buckets[bucket].settle(self.now, running.expected, used);
        }
        if let Some(pair) = running.pair {
            let state = &mut self.pairs[pair];
            state.running = None;
            state.moved = moved.or(state.moved);
        }
        self.reconsider();
        Some(running)
    }

    fn succeeded(&mut self, running: Running, row: WatchRun) {
        if let Some(pair) = running.pair {
            self.forget_failures(pair);
        }
        self.rows(running, row);
    }

    fn failed(
        &mut self,
        running: Running,
        row: WatchRun,
        why: Option<&PlainText>,
        at: Option<End>,
    ) {
        let ended = row.ended;
        let test = running.test.clone();
        let pair = running.pair;
        self.rows(running, row);
        let Some(pair) = pair else { return };
        if let (Some(at), Some(why)) = (at, why) {
            let host = self.plan.pairs[pair].host(at);
            self.count_failure_at(host, why);
        }
        if why.is_some() {
            self.count_failure(&test, ended);
        }
    }

    /// The test's row, then those of later tests that ended before it.
    fn rows(&mut self, running: Running, row: WatchRun) {
        self.actions.push_back(Action::Row(Box::new(row)));
        let after = running.after.into_iter();
        let after = after.map(|row| Action::Row(Box::new(row)));
        self.actions.extend(after);
    }

    /// The test waits again: an end runs something else, or others use its link.
    fn wait_again(&mut self, running: Running, end: End, block: Block) {
        let Some(pair) = running.pair else {
            let row = running.row_dropped(self.now);
            self.rows(running, row);
            return;
        };
        if matches!(block, Block::OtherHub(_)) {
            let host = self.plan.pairs[pair].host(end);
            let grant = Hash::new().number(running.lease.id.grant);
            let pause = BUSY_MILLIS + grant.below(BUSY_MILLIS);
            self.hosts[host].busy_until = self.now.plus_millis(pause);
        }
        let mut test = running.test;
        test.pair = pair;
        let late = self.now > test.latest_start();
        test.wait_for(Some(block), running.lease.granted);
        self.add(test);
        let slot = self.slots;
        if late {
            self.give_up(slot);
        }
        let after = running.after.into_iter();
        self.actions
            .extend(after.map(|row| Action::Row(Box::new(row))));
    }

    /// A lease expired: whatever became of the test, its hosts are free.
    pub(super) fn expire(&mut self, grant: u64) {
        let Some(running) = self.running.get(&grant) else {
            return;
        };
        let plan = running.pair.map(|pair| &self.plan.pairs[pair]);
        let (from, to) = (plan.map(|plan| plan.from), plan.map(|plan| plan.to));
        let mut ends = [from, to].into_iter().flatten();
        let lost = ends.find(|&host| self.is_away(host));
        let why = match lost {
            Some(host) => format!(
                "the agent of {} was lost and did not return with a result before the lease expired",
                self.host_name(host)
            ),
            None => format!(
                "neither end reported a result before the lease expired, {} s after its start",
                running.lease.expiry.since(running.lease.granted) / 1_000
            ),
        };
        let used = running.expected;
        let lease = running.lease.id;
        let Some(running) = self.take(grant, used, None) else {
            return;
        };
        self.actions.push_back(Action::Cancel { lease, from, to });
        let why = PlainText::from(why);
        let outcome = WatchOutcome::Failed {
            stage: "report".into(),
            why: why.clone(),
        };
        let row = running.row(running.started, self.now, outcome);
        // A lost agent is no failure of the pair: its next tests wait for the agent anyway.
        let counts = lost.is_none().then_some(&why);
        self.failed(running, row, counts, None);
    }
}

/// What a test used: nothing where it did not begin, what was expected where it is not known.
fn used(running: &Running, finished: &Finished) -> Cost {
    let Some(began) = finished.started.or(running.started) else {
        return Cost::default();
    };
    let bytes = finished.bytes.map(|bytes| bytes.count() as f64);
    Cost {
        bytes: bytes.unwrap_or(running.expected.bytes),
        seconds: finished.ended.since(began) as f64 / 1e3,
    }
}
