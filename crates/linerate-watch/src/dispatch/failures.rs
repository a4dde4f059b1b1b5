//! What failed is tried less often.

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{RunClass, RunId, UnixMillis};

use super::Dispatcher;
use super::identity::Hash;
use super::pending::Pending;

/// So many failures at a host in a row, and it is checked before the next test.
const CHECKED_FROM: u32 = 2;

/// The first check that failed is followed by another after this time, the next ones after twice the time each, ms.
const CHECK_AGAIN_MILLIS: u64 = 60_000;

/// The longest time between two checks, ms.
const CHECK_AGAIN_AT_MOST_MILLIS: u64 = 1_800_000;

/// How long a test that is tried again may wait, ms.
const RETRY_WAIT_MILLIS: u64 = 600_000;

/// How a host fails.
#[derive(Debug, Clone, Default)]
pub(super) struct Failing {
    /// Failures in a row at it.
    failures: u32,
    pub(super) why: PlainText,
    checks: u32,
    /// No check before this moment.
    next: UnixMillis,
}

impl Failing {
    pub(super) const fn is_failing(&self) -> bool {
        self.failures >= CHECKED_FROM
    }

    /// When a test is looked at again, and whether to check now.
    pub(super) fn check(&mut self, now: UnixMillis, again: UnixMillis) -> (UnixMillis, bool) {
        let ask = self.next <= now;
        if ask {
            self.next = again;
        }
        (self.next, ask)
    }

    fn failed(&mut self, why: &PlainText) {
        self.failures += 1;
        self.why = why.clone();
    }

    fn check_failed(&mut self, now: UnixMillis, why: PlainText) {
        let wait = CHECK_AGAIN_MILLIS << self.checks.min(10);
        self.next = now.plus_millis(wait.min(CHECK_AGAIN_AT_MOST_MILLIS));
        self.checks += 1;
        self.why = why;
    }

    /// It can be reached: the next failure counts as the second.
    fn check_succeeded(&mut self) {
        self.failures = self.failures.min(CHECKED_FROM - 1);
        self.checks = 0;
        self.next = UnixMillis(0);
    }
}

impl Dispatcher {
    /// What [`super::Action::Check`] found; the error says why the host cannot be reached.
    pub fn handle_checked(&mut self, now: UnixMillis, host: usize, found: Result<(), PlainText>) {
        self.advance(now);
        if let Some(state) = self.hosts.get_mut(host) {
            match found {
                Ok(()) => state.failing.check_succeeded(),
                Err(why) => state.failing.check_failed(self.now, why),
            }
            self.unpark_host(host);
        }
        self.dispatch();
    }

    /// A test of the pair failed: one that is regular is tried again soon, the next ones later and later.
    pub(super) fn count_failure(&mut self, test: &Pending, ended: UnixMillis) {
        let state = &mut self.pairs[test.pair];
        state.failures += 1;
        if state.failures >= 2 {
            self.rest_after_failures(test.pair, ended);
        } else if test.class == RunClass::Regular {
            self.retry(test.pair, test.id, ended);
        }
    }

    /// The pair's regular tests rest for 1, 2, 4, at last 8 periods.
    pub(super) fn rest_after_failures(&mut self, pair: usize, ended: UnixMillis) {
        let period = self.moments(pair).period();
        let state = &mut self.pairs[pair];
        let doubled = state.failures.saturating_sub(2).min(3);
        state.rests_until = ended.plus_millis(period.saturating_mul(1 << doubled));
    }

    /// The test is tried again after 30 to 90 s; returns what it is known by.
    pub(super) fn retry(&mut self, pair: usize, failed: RunId, ended: UnixMillis) {
        let test = self.retry_of(pair, failed, ended);
        self.add(test);
    }

    pub(super) fn retry_of(&self, pair: usize, failed: RunId, ended: UnixMillis) -> Pending {
        let plan = &self.plan.pairs[pair];
        let hash = plan.hash.number(RunClass::Confirm as u64);
        let hash = hash.text(&failed.to_string());
        let wait = Hash::new().number(hash.narrow()).below(60_000);
        let due = ended.plus_millis(30_000 + wait);
        let times = [plan.load, plan.booked()];
        let deadline = due.plus_millis(times[1] + RETRY_WAIT_MILLIS);
        let id = RunId::of(due, hash.wide());
        Pending::new(id, RunClass::Confirm, pair, deadline, times, hash.narrow())
    }

    /// A test failed at this host.
    pub(super) fn count_failure_at(&mut self, host: usize, why: &PlainText) {
        self.hosts[host].failing.failed(why);
    }

    /// A test of the pair measured.
    pub(super) fn forget_failures(&mut self, pair: usize) {
        let state = &mut self.pairs[pair];
        if state.failures > 0 {
            state.failures = 0;
            state.rests_until = UnixMillis(0);
            self.unpark_pair(pair);
        }
        let plan = &self.plan.pairs[pair];
        for host in [plan.from, plan.to] {
            let failing = &mut self.hosts[host].failing;
            if std::mem::take(failing).is_failing() {
                self.unpark_host(host);
            }
        }
    }

    fn unpark_pair(&mut self, pair: usize) {
        let of_pair = self.tests.iter().filter(|(_, test)| test.pair == pair);
        let slots: Vec<u64> = of_pair.map(|(slot, _)| *slot).collect();
        for slot in slots {
            self.unpark(slot);
        }
    }
}
