//! Going on after a restart.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{NotRun, RunClass, RunId, UnixMillis, WatchOutcome, WatchRun};

use super::compiled::{longest, needs_without_pair};
use super::identity::Hash;
use super::lease::{Action, Lease, Request};
use super::moments::{DAY_MILLIS, Due};
use super::pending::Pending;
use super::progress::Progress;
use super::rows::{dropped, span};
use super::{BudgetLevel, Dispatcher, GRACE_MILLIS, Running, overhead_millis};
use crate::watched::Watched;

/// Of the tests of a pair that were due while the hub was away, so many have a row each; one row is for all before them.
const ROWS: u64 = 48;

/// Tests that were due longer ago have no row, ms.
const AT_MOST_MILLIS: u64 = 365 * DAY_MILLIS;

/// How long after a restart agents may report tests whose lease expired meanwhile, ms.
const LATE_MILLIS: u64 = 60_000;

/// What a hub knows of the time before its restart.
#[derive(Debug, Clone, Default)]
pub struct Resumption {
    /// When the hub before still ran: that of its last tick.
    pub seen: UnixMillis,
    /// Which tests have a row ([`Dispatcher::progress`]), as it was written down when all rows until then were archived.
    /// Rows that were archived later are in `pairs`.
    pub progress: Progress,
    /// Higher than every epoch before; absent = now.
    pub epoch: Option<u64>,
    /// What the archive knows of each pair.
    pub pairs: Vec<PairMemory>,
    /// The leases that were granted and not answered ([`Dispatcher::leases`]): their tests go on. Absent = not known;
    /// then nothing starts until the longest test could have ended.
    pub leases: Option<Vec<Lease>>,
    /// What was left of the budgets at `seen`; a budget that is not among them was spent.
    pub budgets: Vec<BudgetLevel>,
    /// Tests that were asked for and have no row.
    pub requests: Vec<Request>,
}

/// What the archive knows of a pair.
#[derive(Debug, Clone)]
pub struct PairMemory {
    /// Name of the task.
    pub task: PlainText,
    /// Name of the sending host.
    pub from: PlainText,
    /// Name of the receiving host.
    pub to: PlainText,
    /// When the latest regular test with a row was due.
    pub last_due: Option<UnixMillis>,
    /// How many of its tests failed since one measured.
    pub failures_in_a_row: u32,
    /// The latest row of any class.
    pub latest: Option<WatchRun>,
}

impl Dispatcher {
    /// A dispatcher that goes on where the one before stopped, with the same moments and ids.
    ///
    /// Each regular test that was due meanwhile and can no longer start gets a row with [`NotRun::HubAway`]: the latest 48 of
    /// a pair one each. Those before have one row together, which is the last of them and says how many they are. What
    /// was due more than 365 days ago has none. Tests that can still start do. A pair of which neither
    /// [`Resumption::progress`] nor [`Resumption::pairs`] know a test is new: its tests are due from now on.
    pub fn resume(watched: Watched, seed: u64, now: UnixMillis, past: &Resumption) -> Self {
        let mut new = Self::empty(watched, seed, now);
        new.epoch = past.epoch.unwrap_or(now.0);
        new.before = past.seen.min(now);
        for bucket in &mut new.buckets {
            let level = past.budgets.iter().find(|level| level.name == bucket.name);
            bucket.go_on(level, past.seen.min(now));
        }
        if let Some(leases) = &past.leases {
            for lease in leases {
                new.go_on(lease, past);
            }
        } else {
            let longest = longest(&new.watched);
            new.settled = now.plus_millis(longest + GRACE_MILLIS);
        }
        new.go_on_with_pairs(past);
        new.drop_pairs(past);
        for request in &past.requests {
            // A request whose pair is gone has no test either.
            let _ = new.request(request);
        }
        new.handle_tick(now);
        new
    }

    fn go_on_with_pairs(&mut self, past: &Resumption) {
        let key = |pair: &PairMemory| {
            let (task, from, to) = (&pair.task, &pair.from, &pair.to);
            (task.clone(), from.clone(), to.clone())
        };
        let known: HashMap<_, &PairMemory> =
            past.pairs.iter().map(|pair| (key(pair), pair)).collect();
        let open = past.progress.open.iter();
        let open: HashMap<_, UnixMillis> = open.map(|open| (open.key(), open.since)).collect();
        let fresh: HashSet<u64> = past.progress.fresh.iter().copied().collect();
        for pair in 0..self.pairs.len() {
            let hash = self.plan.pairs[pair].hash.narrow();
            let key = self.plan.pairs[pair].key.clone();
            let since = open.get(&key).copied();
            let (task, from, to, _) = key;
            let memory = known.get(&(task, from, to)).copied();
            if let Some(memory) = memory {
                self.remember_failures(pair, memory);
                self.pairs[pair].last_due = memory.last_due.unwrap_or_default();
            }
            let last = memory.and_then(|memory| memory.last_due);
            let first = if since.is_some() || memory.is_some() || fresh.contains(&hash) {
                first_without_row(since, last, past.progress.at)
            } else {
                self.now
            };
            self.go_on_with_pair(pair, first, past.seen);
        }
    }

    /// Pairs with open tests that the plan no longer has: one row for those tests, as if the plan had changed now.
    fn drop_pairs(&mut self, past: &Resumption) {
        for open in &past.progress.open {
            let (task, from, to) = (&open.task, &open.from, &open.to);
            let has_row = past.pairs.iter().any(|pair| {
                let same = (&pair.task, &pair.from, &pair.to) == (task, from, to);
                same && pair.last_due.is_some_and(|last| last >= open.since)
            });
            if has_row || self.plan.places.contains_key(&open.key()) {
                continue;
            }
            let hash = Hash::new().text(task).text(from).text(to).number(open.nth);
            self.actions.push_back(Action::Row(Box::new(WatchRun {
                id: RunId::of(open.since, hash.wide()),
                task: task.clone(),
                from: from.clone(),
                to: to.clone(),
                class: RunClass::Regular,
                due: open.since,
                deadline: self.now.max(open.since),
                started: None,
                ended: self.now,
                outcome: dropped(),
            })));
        }
    }

    /// The pair's tests go on with the first that is due at a moment or later.
    fn go_on_with_pair(&mut self, pair: usize, first: UnixMillis, seen: UnixMillis) {
        let year = UnixMillis(self.now.0.saturating_sub(AT_MOST_MILLIS));
        let mut due = self.moments(pair).first_from(first.max(year));
        let running = self.pairs[pair]
            .running
            .and_then(|grant| self.running.get(&grant));
        let regular = running.filter(|running| running.test.class == RunClass::Regular);
        if let Some(running) = regular
            && running.test.due >= due.at
        {
            let after = running.test.due.plus_millis(1);
            due = self.moments(pair).first_from(after);
        }
        let next = self.catch_up(pair, due, seen);
        self.schedule(pair, next);
    }

    /// A pair that failed rests on, or its test is tried again.
    fn remember_failures(&mut self, pair: usize, memory: &PairMemory) {
        self.pairs[pair].failures = memory.failures_in_a_row;
        let Some(latest) = &memory.latest else { return };
        let failed = matches!(latest.outcome, WatchOutcome::Failed { .. });
        if memory.failures_in_a_row >= 2 {
            self.rest_after_failures(pair, latest.ended);
        } else if failed && latest.class == RunClass::Regular && memory.failures_in_a_row == 1 {
            let test = self.retry_of(pair, latest.id, latest.ended);
            let known = self
                .running
                .values()
                .any(|running| running.test.id == test.id);
            let recent = self.now.since(test.due) < AT_MOST_MILLIS;
            if !known && recent {
                self.add(test);
            }
        }
    }

    /// Adds the tests of a pair from one on that are due by now; returns the first of those that are not.
    ///
    /// Those that can no longer start get rows at once, with the span since `seen` as their reason.
    pub(super) fn catch_up(&mut self, pair: usize, first: Due, seen: UnixMillis) -> Due {
        let now = self.now;
        let mut due = self.fold(pair, first, seen);
        while due.at <= now {
            let next = self.moments(pair).after(due);
            let deadline = self.moments(pair).deadline(due);
            let booked = self.plan.pairs[pair].booked();
            if now.plus_millis(booked) > deadline && self.plan.pairs[pair].client.is_some() {
                self.pairs[pair].last_due = due.at;
                self.row_hub_away(pair, due, seen, 1);
            } else {
                self.add_regular(pair, due);
            }
            due = next;
        }
        due
    }

    /// One row for all tests from one on but the latest 48; returns the first that it is not for.
    fn fold(&mut self, pair: usize, first: Due, seen: UnixMillis) -> Due {
        let moments = self.moments(pair);
        let kept = moments.period().saturating_mul(ROWS);
        let floor = UnixMillis(self.now.0.saturating_sub(kept));
        if first.at >= floor {
            return first;
        }
        let next = moments.first_from(floor);
        let Some(last) = moments
            .last_before(next.at)
            .filter(|last| last.at >= first.at)
        else {
            return next;
        };
        let count = moments.count(first, next).max(1);
        self.pairs[pair].last_due = last.at;
        self.row_hub_away(pair, last, seen, count);
        next
    }

    fn row_hub_away(&mut self, pair: usize, due: Due, seen: UnixMillis, count: u64) {
        let deadline = self.moments(pair).deadline(due);
        let test = self.regular(pair, due, deadline);
        let away = span(self.now.since(seen.min(self.now)));
        let why = match count {
            1 => format!("the hub did not run for {away}"),
            _ => format!(
                "the hub did not run for {away}: this row is for {count} tests, of which this is the last"
            ),
        };
        let why = PlainText::from(why);
        self.not_run(&test, NotRun::HubAway, why, Vec::new());
    }

    /// A lease of the hub before holds what it held, until its agents had time to report.
    fn go_on(&mut self, lease: &Lease, past: &Resumption) {
        let has_row = |pair: &PairMemory| {
            let same = (&pair.task, &pair.from, &pair.to) == (&lease.task, &lease.from, &lease.to);
            let regular = lease.class == RunClass::Regular && lease.nth == 0;
            same && regular && pair.last_due.is_some_and(|last| last >= lease.due)
        };
        if past.pairs.iter().any(has_row) {
            return;
        }
        let (task, from, to) = (lease.task.clone(), lease.from.clone(), lease.to.clone());
        let key = (task, from, to, lease.nth);
        let pair = self.plan.places.get(&key).copied();
        let overhead = overhead_millis(lease.quiet);
        let times = [lease.load_millis, lease.load_millis + overhead];
        let place = pair.unwrap_or(0);
        let tie = lease.id.grant;
        let test = Pending::new(lease.run, lease.class, place, lease.deadline, times, tie);
        let late = self.now.plus_millis(LATE_MILLIS);
        let running = Running {
            lease: lease.clone(),
            pair,
            needs: Vec::new(),
            buckets: Vec::new(),
            expected: pair.map(|_| self.cost(&test)).unwrap_or_default(),
            test,
            started: None,
            after: Vec::new(),
        };
        self.adopt(running, lease.expiry.max(late));
    }

    /// A test with a lease of an earlier hub or plan goes on, and holds what it needs whether that is free or not.
    pub(super) fn adopt(&mut self, mut running: Running, expiry: UnixMillis) {
        self.grants += 1;
        let key = self.grants;
        let lease = &running.lease;
        let (needs, by) = if let Some(pair) = running.pair {
            let plan = &self.plan.pairs[pair];
            running.test.pair = pair;
            running.buckets.clone_from(&plan.buckets);
            self.pairs[pair].running = Some(key);
            (plan.needs.clone(), Arc::clone(&plan.label))
        } else {
            let needs = needs_without_pair(&self.watched, &lease.from, &lease.to);
            let by = format!("{} {} > {}", lease.task, lease.from, lease.to);
            running.buckets.clear();
            (needs, by.into())
        };
        for &(resource, amount) in &needs {
            self.resources[resource].hold(key, &by, amount, lease.granted);
        }
        running.needs = needs.into_iter().map(|(resource, _)| resource).collect();
        self.expiries.push(Reverse((expiry, key)));
        self.running.insert(key, running);
    }
}

/// From when on tests of a pair can be without a row. `open` is when the first of those was due that had none at `at`. `last`,
/// when the latest one with a row was due, may be newer: rows of a pair come in the order of their tests, so that all
/// until then have one.
fn first_without_row(
    open: Option<UnixMillis>,
    last: Option<UnixMillis>,
    at: UnixMillis,
) -> UnixMillis {
    let after = |moment: UnixMillis| moment.plus_millis(1);
    let first = open.unwrap_or(after(at));
    first.max(last.map_or(first, after))
}
