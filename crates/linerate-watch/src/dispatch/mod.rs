//! Which test runs when: a state machine that grants leases.
//!
//! [`Dispatcher`] gets what happens by its `handle_*` functions, each with the moment at which it happened, and says
//! what it wants done by [`Dispatcher::poll_action`]. A caller takes all actions after each `handle_*`, and calls
//! [`Dispatcher::handle_tick`] at [`Dispatcher::poll_timeout`] at the latest. Hosts never negotiate: a lease is the right
//! to use both hosts until it expires.
//!
//! Each test that was due ends as exactly one [`WatchRun`]; only a long absence of the hub has one row for several tests, which
//! says so ([`Dispatcher::resume`]). What it waited for the longest is its reason where it did
//! not run; one that was missed names who held what it needed.
//!
//! - **When**: one test of a pair in each period, at a moment that a hash of the seed, the pair and the period decides.
//!   It may start until it can no longer end by its deadline.
//! - **Which first**: class, deadline, the busier host, a hash. Whatever fits is started. The regular test of a pair whose
//!   last one was missed takes turns with confirming tests, so that these never keep a pair from being tested for long.
//! - **What it holds**: both hosts, or one direction of each where they are [`Duplex::Independent`]; its share of each
//!   segment between them, all of it where its rate is not known. A paced test of at most 1 % of both links holds
//!   a slot of light tests, and nothing else.
//! - **Failures**: a regular test that fails is tried once more after 30 to 90 s, as a test of [`RunClass::Confirm`].
//!   From the second failure in a row on the pair rests for 1, 2, 4, then 8 periods. A host at which two tests in a row
//!   failed is checked first ([`Action::Check`]); until a check succeeds, its peers wait for it without holding anything.
//! - **Asked for**: a test on demand or to confirm ignores hours, back-off and the quiet-link rule, but no budget and
//!   no maintenance.
//!
//! ```
//! use linerate_model::watch::UnixMillis;
//! use linerate_watch::dispatch::Dispatcher;
//! use linerate_watch::watched::Watched;
//!
//! let mut dispatcher = Dispatcher::new(Watched::default(), 1, UnixMillis(0));
//! assert_eq!((dispatcher.poll_action(), dispatcher.poll_timeout()), (None, None));
//! ```
//!
//! [`Duplex::Independent`]: crate::watched::Duplex::Independent

mod budget;
mod compiled;
mod ending;
mod failures;
mod identity;
mod lease;
mod moments;
mod outlook;
mod pending;
mod progress;
mod reload;
mod resource;
mod resume;
mod rows;
mod start;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{RunClass, RunId, UnixMillis, WatchRun};

use crate::watched::{Maintenance, Watched};
use budget::Bucket;
use compiled::{Compiled, PairPlan};
use failures::Failing;
use identity::Order;
use pending::Pending;
use resource::Resource;

pub use budget::BudgetLevel;
pub(crate) use compiled::overhead_millis;
pub use compiled::{LOOK_MILLIS, OVERHEAD_MILLIS};
pub use lease::{Action, End, Ending, Finished, Lease, LeaseId, Request, RequestError, Taken};
pub use outlook::{Coming, Outlook, Waiting};
pub use progress::{OpenPair, Progress};
pub use resume::{PairMemory, Resumption};

/// How much longer than its test a lease lasts, ms: answers come late.
pub const GRACE_MILLIS: u64 = 25_000;

/// Decides which test runs when; see the module.
#[derive(Debug)]
pub struct Dispatcher {
    watched: Watched,
    plan: Compiled,
    seed: u64,
    epoch: u64,
    grants: u64,
    /// The latest moment that was heard of, and the one before: time does not go back.
    now: UnixMillis,
    before: UnixMillis,
    /// Nothing starts earlier: tests of a hub before this one may still run.
    settled: UnixMillis,
    hosts: Vec<HostState>,
    pairs: Vec<PairState>,
    resources: Vec<Resource>,
    buckets: Vec<Bucket>,
    /// When each pair's next test is due.
    releases: BinaryHeap<Reverse<(UnixMillis, usize)>>,
    slots: u64,
    tests: BTreeMap<u64, Pending>,
    /// Those that may start as soon as what they hold is free.
    ready: BTreeSet<Order>,
    /// When tests are looked at again, or can no longer start.
    wakes: BinaryHeap<Reverse<(UnixMillis, u64)>>,
    running: BTreeMap<u64, Running>,
    expiries: BinaryHeap<Reverse<(UnixMillis, u64)>>,
    actions: VecDeque<Action>,
    changed: bool,
}

/// What is known of a host.
#[derive(Debug, Clone, Default)]
struct HostState {
    connected: bool,
    /// Tests that wait for a change of it.
    parked: Vec<u64>,
    /// Until when it does something else.
    busy_until: UnixMillis,
    /// The share of its link that others use, and when that was measured.
    traffic: Option<(UnixMillis, f64)>,
    failing: Failing,
}

/// What is known of a pair.
#[derive(Debug, Clone, Default)]
struct PairState {
    /// When its latest regular test was due; 0 = none was since the pair is in the plan.
    last_due: UnixMillis,
    /// Whether others used what its latest regular test needed.
    missed: bool,
    /// Its next one.
    next: Option<moments::Due>,
    running: Option<u64>,
    /// Failures in a row.
    failures: u32,
    rests_until: UnixMillis,
    /// Bytes of its latest test, where the plan does not tell the rate.
    moved: Option<f64>,
}

/// A test with a lease.
#[derive(Debug, Clone)]
struct Running {
    lease: Lease,
    test: Pending,
    /// Its pair's place; absent = no longer in the plan.
    pair: Option<usize>,
    needs: Vec<usize>,
    buckets: Vec<usize>,
    expected: budget::Cost,
    started: Option<UnixMillis>,
    /// Rows of later tests of the pair: rows of a pair are in the order in which its tests were due.
    after: Vec<WatchRun>,
}

impl Dispatcher {
    /// A dispatcher that knows no past: tests are due from now on. The same seed gives the same moments.
    ///
    /// Hosts with an agent are away until [`Self::handle_connected`]. Its epoch is `now`.
    pub fn new(watched: Watched, seed: u64, now: UnixMillis) -> Self {
        let mut new = Self::empty(watched, seed, now);
        for pair in 0..new.pairs.len() {
            let next = new.moments(pair).first_from(now);
            new.schedule(pair, next);
        }
        new
    }

    /// One in which nothing is due.
    fn empty(watched: Watched, seed: u64, now: UnixMillis) -> Self {
        let plan = Compiled::new(&watched, seed);
        let host = |host: &crate::watched::WatchedHost| HostState {
            connected: !host.reach.commands(),
            ..HostState::default()
        };
        Self {
            hosts: watched.hosts.iter().map(host).collect(),
            pairs: vec![PairState::default(); plan.pairs.len()],
            resources: compiled::resources(&watched),
            buckets: compiled::all_buckets(&watched, now),
            watched,
            plan,
            seed,
            epoch: now.0,
            grants: 0,
            now,
            before: now,
            settled: UnixMillis(0),
            releases: BinaryHeap::new(),
            slots: 0,
            tests: BTreeMap::new(),
            ready: BTreeSet::new(),
            wakes: BinaryHeap::new(),
            running: BTreeMap::new(),
            expiries: BinaryHeap::new(),
            actions: VecDeque::new(),
            changed: false,
        }
    }

    /// The plan as it is now.
    pub const fn watched(&self) -> &Watched {
        &self.watched
    }

    /// What the caller has to do next; none = nothing until [`Self::poll_timeout`] or an event.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Self::handle_tick`] has to be called at the latest; none = nothing will be due.
    pub fn poll_timeout(&self) -> Option<UnixMillis> {
        let release = self.releases.peek().map(|Reverse((at, _))| *at);
        let wake = self.wakes.peek().map(|Reverse((at, _))| *at);
        let expiry = self.expiries.peek().map(|Reverse((at, _))| *at);
        [release, wake, expiry].into_iter().flatten().min()
    }

    /// Leases that are granted and neither answered nor expired. A hub that writes them down before it sends
    /// [`Action::Start`] gives them to [`Self::resume`] after a restart.
    pub fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.running.values().map(|running| &running.lease)
    }

    /// Tests that are due, or asked for, and have no row yet.
    pub fn outstanding(&self) -> impl Iterator<Item = RunId> {
        let waiting = self.tests.values().map(|test| test.id);
        waiting.chain(self.running.values().map(|running| running.test.id))
    }

    /// What is left of each budget that is limited.
    pub fn budgets(&self) -> Vec<BudgetLevel> {
        let limited = self.buckets.iter().filter(|bucket| bucket.is_limited());
        limited.map(Bucket::level).collect()
    }

    /// Time went by.
    pub fn handle_tick(&mut self, now: UnixMillis) {
        self.advance(now);
        self.dispatch();
    }

    /// An agent connected, a place in [`Watched::hosts`]. Hosts that are only tested against need none.
    pub fn handle_connected(&mut self, now: UnixMillis, host: usize) {
        self.advance(now);
        if let Some(state) = self.hosts.get_mut(host) {
            state.connected = true;
            self.unpark_host(host);
        }
        self.dispatch();
    }

    /// An agent was lost. Its leases go on until they expire: it may come back with the result.
    pub fn handle_lost(&mut self, now: UnixMillis, host: usize) {
        self.advance(now);
        let commands = |host: &crate::watched::WatchedHost| host.reach.commands();
        if self.watched.hosts.get(host).is_some_and(commands) {
            self.hosts[host].connected = false;
            self.reconsider();
        }
        self.dispatch();
    }

    /// Other times of maintenance than those of the plan, until it is loaded again.
    pub fn handle_maintenance(&mut self, now: UnixMillis, maintenance: Vec<Maintenance>) {
        self.advance(now);
        self.watched.maintenance = maintenance;
        let parked: Vec<u64> = self.tests.keys().copied().collect();
        for slot in parked {
            self.unpark(slot);
        }
        self.dispatch();
    }

    /// The load of a test began.
    pub fn handle_started(&mut self, now: UnixMillis, lease: LeaseId) -> Taken {
        self.advance(now);
        let running = self
            .running_key(lease)
            .and_then(|key| self.running.get_mut(&key));
        let taken = running.map(|running| running.started = Some(now));
        self.dispatch();
        taken.map_or(Taken::Late, |()| Taken::Yes)
    }

    /// Somebody asks for a test. The same request twice is one test.
    pub fn handle_request(
        &mut self,
        now: UnixMillis,
        request: &Request,
    ) -> Result<RunId, RequestError> {
        self.advance(now);
        let asked = self.request(request);
        self.dispatch();
        asked
    }

    fn request(&mut self, request: &Request) -> Result<RunId, RequestError> {
        let (task, from, to) = (&request.task, &request.from, &request.to);
        let key = (task.clone(), from.clone(), to.clone(), 0);
        let Some(&pair) = self.plan.places.get(&key) else {
            let (task, from, to, _) = key;
            return Err(RequestError::UnknownPair { task, from, to });
        };
        if request.class == RunClass::Regular {
            return Err(RequestError::Regular);
        }
        let plan = &self.plan.pairs[pair];
        let load = request.load_millis.unwrap_or(plan.load);
        let needed = load.saturating_add(plan.overhead);
        let given = request.deadline.since(request.due);
        if given < needed {
            return Err(RequestError::TooShort { needed, given });
        }
        let hash = plan.hash.number(request.class as u64);
        let hash = hash.number(request.number);
        let id = RunId::of(request.due, hash.wide());
        if !self.outstanding().any(|known| known == id) {
            let times = [load, needed];
            let (class, deadline, tie) = (request.class, request.deadline, hash.narrow());
            self.add(Pending::new(id, class, pair, deadline, times, tie));
        }
        Ok(id)
    }

    fn moments(&self, pair: usize) -> moments::Moments<'_> {
        self.plan.pairs[pair].moments(&self.watched)
    }

    /// The pair's next test.
    fn schedule(&mut self, pair: usize, next: moments::Due) {
        self.pairs[pair].next = Some(next);
        self.releases.push(Reverse((next.at, pair)));
    }

    fn running_key(&self, lease: LeaseId) -> Option<u64> {
        let same = |(_, running): &(&u64, &Running)| running.lease.id == lease;
        self.running.iter().find(same).map(|(key, _)| *key)
    }

    /// Moves the time on: leases expire, tests become due, others can no longer start.
    fn advance(&mut self, now: UnixMillis) {
        if now > self.now {
            self.before = self.now;
            self.now = now;
        }
        while let Some(Reverse((at, grant))) = self.expiries.peek().copied()
            && at <= self.now
        {
            self.expiries.pop();
            self.expire(grant);
        }
        while let Some(Reverse((at, pair))) = self.releases.peek().copied()
            && at <= self.now
        {
            self.releases.pop();
            self.release(pair);
        }
        while let Some(Reverse((at, slot))) = self.wakes.peek().copied()
            && at <= self.now
        {
            self.wakes.pop();
            self.wake(slot);
        }
    }

    /// The pair's next test is due.
    fn release(&mut self, pair: usize) {
        let Some(due) = self.pairs[pair].next.take() else {
            return;
        };
        let next = self.catch_up(pair, due, self.before.max(due.at));
        self.schedule(pair, next);
    }

    fn add_regular(&mut self, pair: usize, due: moments::Due) {
        self.pairs[pair].last_due = due.at;
        let deadline = self.moments(pair).deadline(due);
        let test = self.regular(pair, due, deadline);
        if self.plan.pairs[pair].client.is_some() {
            self.add(test);
        } else {
            self.row_unreachable(&test);
        }
    }

    fn regular(&self, pair: usize, due: moments::Due, deadline: UnixMillis) -> Pending {
        let plan = &self.plan.pairs[pair];
        let hash = plan.hash.number(RunClass::Regular as u64);
        let hash = hash.number(due.number);
        let id = RunId::of(due.at, hash.wide());
        let times = [plan.load, plan.booked()];
        Pending::new(id, RunClass::Regular, pair, deadline, times, hash.narrow())
    }

    /// A test waits from now on, or from when it is due on.
    fn add(&mut self, test: Pending) {
        self.slots += 1;
        let slot = self.slots;
        self.wakes
            .push(Reverse((test.latest_start().plus_millis(1), slot)));
        let later = test.due > self.now;
        if later {
            self.wakes.push(Reverse((test.due, slot)));
        }
        let mut test = test;
        if self.pairs[test.pair].missed {
            test.turn = test.turn.min(RunClass::Confirm);
        }
        test.parked = later;
        if !later {
            self.ready.insert(self.order(&test, slot));
            self.changed = true;
        }
        self.tests.insert(slot, test);
    }

    fn order(&self, test: &Pending, slot: u64) -> Order {
        let degree = Reverse(self.plan.pairs[test.pair].degree);
        (test.turn, test.deadline, degree, test.tie, slot)
    }

    /// A test is looked at again, or can no longer start.
    fn wake(&mut self, slot: u64) {
        let Some(test) = self.tests.get(&slot) else {
            return;
        };
        if self.now > test.latest_start() {
            self.give_up(slot);
        } else {
            self.unpark(slot);
        }
    }

    fn unpark(&mut self, slot: u64) {
        let now = self.now;
        let waits = |test: &&mut Pending| test.parked && test.due <= now;
        let Some(test) = self.tests.get_mut(&slot).filter(waits) else {
            return;
        };
        test.parked = false;
        let order = self.order(&self.tests[&slot], slot);
        self.ready.insert(order);
        self.changed = true;
    }

    /// A test is not looked at before it is woken.
    fn park(&mut self, order: Order, until: Option<UnixMillis>, host: Option<usize>) {
        let slot = order.4;
        self.ready.remove(&order);
        if let Some(test) = self.tests.get_mut(&slot) {
            test.parked = true;
        }
        self.wakes.extend(until.map(|until| Reverse((until, slot))));
        if let Some(host) = host {
            self.hosts[host].parked.push(slot);
        }
    }

    /// All tests that wait for a change of a host are looked at again.
    fn unpark_host(&mut self, host: usize) {
        let parked = std::mem::take(&mut self.hosts[host].parked);
        for slot in parked {
            self.unpark(slot);
        }
    }

    /// What waits for resources may now wait for something else.
    fn reconsider(&mut self) {
        self.changed = true;
    }

    fn plan_of(&self, test: &Pending) -> &PairPlan {
        &self.plan.pairs[test.pair]
    }

    fn is_away(&self, host: usize) -> bool {
        !self.hosts[host].connected
    }

    fn host_name(&self, host: usize) -> &PlainText {
        &self.watched.hosts[host].name
    }
}
