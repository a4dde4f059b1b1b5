//! Which of the tests that wait can start.

use std::cmp::Reverse;
use std::sync::Arc;

use linerate_model::watch::{RunClass, UnixMillis};

use super::budget::Cost;
use super::identity::Order;
use super::lease::{Action, End, Lease, LeaseId};
use super::moments::opening;
use super::pending::{Block, Pending};
use super::{Dispatcher, GRACE_MILLIS, Running};

/// How long a measurement of other traffic counts, ms.
const TRAFFIC_MILLIS: u64 = 60_000;

/// A test that waits for a quiet link no longer waits when it has so little time left, ms.
const QUIET_UNTIL_MILLIS: u64 = 120_000;

/// How long a check of a host may take until it is asked for again, ms.
const CHECK_MILLIS: u64 = 15_000;

/// Whether a test can start.
enum Verdict {
    Start {
        with_traffic: bool,
    },
    /// It is looked at whenever something is freed.
    Stay(Block),
    /// It is looked at again at a moment, or when something about the host changes.
    Park(Block, Option<UnixMillis>, Option<usize>),
}

impl Dispatcher {
    /// Starts whatever can start.
    pub(super) fn dispatch(&mut self) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        let orders: Vec<Order> = self.ready.iter().copied().collect();
        for order in orders {
            let slot = order.4;
            match self.verdict(slot) {
                Some(Verdict::Start { with_traffic }) => self.start(order, with_traffic),
                Some(Verdict::Stay(block)) => self.wait_for(slot, block),
                Some(Verdict::Park(block, until, host)) => {
                    self.wait_for(slot, block);
                    self.park(order, until, host);
                }
                None => {}
            }
        }
    }

    fn wait_for(&mut self, slot: u64, block: Block) {
        if let Some(test) = self.tests.get_mut(&slot) {
            test.wait_for(Some(block), self.now);
        }
    }

    fn verdict(&mut self, slot: u64) -> Option<Verdict> {
        let test = self.tests.get(&slot)?;
        let regular = test.class == RunClass::Regular;
        let by_hand = test.class == RunClass::OnDemand;
        let settling = (self.now < self.settled).then_some(Verdict::Park(
            Block::Settling,
            Some(self.settled),
            None,
        ));
        let by_plan = settling
            .or_else(|| self.maintenance(test))
            .or_else(|| self.away(test))
            .or_else(|| regular.then(|| self.rest(test)).flatten())
            .or_else(|| regular.then(|| self.hours(test)).flatten())
            .or_else(|| self.other_hub(test));
        if by_plan.is_some() {
            return by_plan;
        }
        let traffic = regular.then(|| self.traffic(test)).flatten();
        if let Some(Err(wait)) = traffic {
            return Some(wait);
        }
        let stops = self
            .budget(slot)
            .or_else(|| (!by_hand).then(|| self.check(slot)).flatten())
            .or_else(|| self.in_use(slot));
        let with_traffic = traffic.is_some();
        Some(stops.unwrap_or(Verdict::Start { with_traffic }))
    }

    fn maintenance(&self, test: &Pending) -> Option<Verdict> {
        let plan = self.plan_of(test);
        let end = self.now.plus_millis(test.booked);
        let found = self.watched.maintenance.iter().filter(|window| {
            let hosts = &window.hosts;
            let concerns = |host: &usize| *host == plan.from || *host == plan.to;
            let (from, until) = (seconds(window.from_unix_s), seconds(window.until_unix_s));
            (hosts.is_empty() || hosts.iter().any(concerns)) && from < end && self.now < until
        });
        let window = found.max_by_key(|window| window.until_unix_s)?;
        let until = seconds(window.until_unix_s);
        let block = Block::Maintenance(window.why.clone());
        Some(Verdict::Park(block, Some(until), None))
    }

    fn away(&self, test: &Pending) -> Option<Verdict> {
        let plan = self.plan_of(test);
        let end = End::BOTH
            .into_iter()
            .find(|end| self.is_away(plan.host(*end)))?;
        Some(Verdict::Park(Block::Away(end), None, Some(plan.host(end))))
    }

    fn rest(&self, test: &Pending) -> Option<Verdict> {
        let until = self.pairs[test.pair].rests_until;
        let rests = self.now < until;
        rests.then_some(Verdict::Park(Block::PairFailed, Some(until), None))
    }

    fn hours(&self, test: &Pending) -> Option<Verdict> {
        let hours = &self.watched.tasks[self.plan_of(test).task].schedule.hours;
        let opens = opening(hours, self.now, test.booked).map(|(opens, _)| opens);
        let closed = opens != Some(self.now);
        closed.then_some(Verdict::Park(Block::Hours, opens, None))
    }

    fn other_hub(&self, test: &Pending) -> Option<Verdict> {
        let plan = self.plan_of(test);
        let until = |end: &End| self.hosts[plan.host(*end)].busy_until;
        let end = End::BOTH.into_iter().find(|end| until(end) > self.now)?;
        Some(Verdict::Park(Block::OtherHub(end), Some(until(&end)), None))
    }

    /// Waits while others use the link; `Ok` where it has waited long enough.
    fn traffic(&self, test: &Pending) -> Option<Result<(), Verdict>> {
        let plan = self.plan_of(test);
        let quiet = self.watched.tasks[plan.task].quiet?;
        let used = |end: &End| {
            let (at, share) = self.hosts[plan.host(*end)].traffic?;
            let until = at.plus_millis(TRAFFIC_MILLIS);
            (share > quiet && until > self.now).then_some((*end, until))
        };
        let (end, until) = End::BOTH.iter().find_map(used)?;
        let window = test.latest_start().since(test.due);
        let left = test.latest_start().since(self.now);
        if left <= QUIET_UNTIL_MILLIS.min(window / 2) {
            return Some(Ok(()));
        }
        let last = UnixMillis(test.latest_start().0 - QUIET_UNTIL_MILLIS.min(window / 2));
        let host = plan.host(end);
        let block = Block::BusyLink(end);
        Some(Err(Verdict::Park(block, Some(until.min(last)), Some(host))))
    }

    /// What a test is expected to use.
    pub(super) fn cost(&self, test: &Pending) -> Cost {
        let plan = self.plan_of(test);
        let moved = self.pairs[test.pair].moved.filter(|_| plan.rate.is_none());
        let share = test.load as f64 / plan.load.max(1) as f64;
        Cost {
            bytes: moved.unwrap_or(plan.cost.bytes) * share,
            seconds: test.load as f64 / 1e3,
        }
    }

    fn budget(&mut self, slot: u64) -> Option<Verdict> {
        let test = self.tests.get(&slot)?;
        let cost = self.cost(test);
        for &bucket in &self.plan.pairs[test.pair].buckets {
            let bucket = &mut self.buckets[bucket];
            let enough = bucket.enough_at(self.now, cost);
            if enough != Some(self.now) {
                let block = Block::Budget(bucket.name.clone());
                return Some(Verdict::Park(block, enough, None));
            }
        }
        None
    }

    /// A host at which tests failed is checked before it gets another one.
    fn check(&mut self, slot: u64) -> Option<Verdict> {
        let plan = self.plan_of(self.tests.get(&slot)?);
        let failing = |end: &End| self.hosts[plan.host(*end)].failing.is_failing();
        let end = End::BOTH.into_iter().find(failing)?;
        let (host, peer) = (plan.host(end), plan.host(end.other()));
        let again = self.now.plus_millis(CHECK_MILLIS);
        let (until, ask) = self.hosts[host].failing.check(self.now, again);
        if ask {
            self.actions.push_back(Action::Check { host, peer });
        }
        Some(Verdict::Park(
            Block::HostFailed(end),
            Some(until),
            Some(host),
        ))
    }

    fn in_use(&self, slot: u64) -> Option<Verdict> {
        let test = self.tests.get(&slot)?;
        let taken = |(resource, amount): &(usize, u64)| !self.resources[*resource].is_free(*amount);
        let running = self.pairs[test.pair].running.is_some();
        let waits = running || self.plan_of(test).needs.iter().any(taken);
        waits.then_some(Verdict::Stay(Block::Resources))
    }

    fn start(&mut self, order: Order, with_traffic: bool) {
        let slot = order.4;
        self.ready.remove(&order);
        let Some(test) = self.tests.remove(&slot) else {
            return;
        };
        self.grants += 1;
        let grant = self.grants;
        let expected = self.cost(&test);
        let plan = &self.plan.pairs[test.pair];
        for &(resource, amount) in &plan.needs {
            let by = Arc::clone(&plan.label);
            self.resources[resource].hold(grant, &by, amount, self.now);
        }
        for &bucket in &plan.buckets {
            self.buckets[bucket].debit(self.now, expected);
        }
        let lease = self.lease(&test, with_traffic);
        let (task, pair) = (plan.task, plan.place);
        self.expiries.push(Reverse((lease.expiry, grant)));
        self.pairs[test.pair].running = Some(grant);
        self.pairs[test.pair].missed = false;
        let running = Running {
            pair: Some(test.pair),
            needs: plan.needs.iter().map(|(resource, _)| *resource).collect(),
            buckets: plan.buckets.clone(),
            lease: lease.clone(),
            test,
            expected,
            started: None,
            after: Vec::new(),
        };
        self.running.insert(grant, running);
        self.actions.push_back(Action::Start { lease, task, pair });
    }

    /// The lease of the grant that was counted last.
    fn lease(&self, test: &Pending, with_traffic: bool) -> Lease {
        let plan = self.plan_of(test);
        let (task, from, to, nth) = plan.key.clone();
        let quiet = self.watched.tasks[plan.task].quiet;
        let heeds = test.class == RunClass::Regular && !with_traffic;
        Lease {
            id: LeaseId {
                epoch: self.epoch,
                grant: self.grants,
            },
            run: test.id,
            task,
            from,
            to,
            class: test.class,
            due: test.due,
            deadline: test.deadline,
            granted: self.now,
            expiry: self.now.plus_millis(test.booked + GRACE_MILLIS),
            load_millis: test.load,
            client: plan.client.unwrap_or(End::From),
            quiet: quiet.filter(|_| heeds),
            with_traffic,
            nth,
        }
    }
}

const fn seconds(seconds: u64) -> UnixMillis {
    UnixMillis(seconds.saturating_mul(1_000))
}
