//! Hosts, agents and a hub on virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};

use linerate_model::plain_text::PlainText;
use linerate_model::units::Bytes;
use linerate_model::watch::{RunClass, RunId, UnixMillis, WatchFigures, WatchOutcome, WatchRun};

use super::{Conditions, Event, Happening};
use crate::dispatch::{
    Action, BudgetLevel, Dispatcher, End, Ending, Finished, LOOK_MILLIS, Lease, LeaseId,
    PairMemory, Progress, Request, Resumption,
};
use crate::random::Random;
use crate::watched::Watched;

/// How long a test at a host that fails takes until that is known, and a check of it, ms.
const FAILS_AFTER_MILLIS: u64 = 2_000;

/// How often an agent tries to report while it is away or the hub is, ms.
const REPORT_AGAIN_MILLIS: u64 = 5_000;

/// An agent gives up a report after this time, ms.
const REPORT_AT_MOST_MILLIS: u64 = 600_000;

/// How often a hub writes down which tests have no row, ms.
const PROGRESS_MILLIS: u64 = 60_000;

/// What an agent says to the hub.
enum Report {
    Started(LeaseId),
    Finished(LeaseId, Finished),
    Checked(usize, Result<(), PlainText>),
    HubStarts { keeps_leases: bool },
    Event(Happening),
}

#[derive(Default, Clone)]
struct SimulatedHost {
    away: bool,
    fails: bool,
    busy_until: UnixMillis,
    /// The share of its link that others use.
    traffic: f64,
}

pub(super) struct World<'a> {
    conditions: &'a Conditions,
    watched: Watched,
    hub: Option<Dispatcher>,
    hosts: Vec<SimulatedHost>,
    random: Random,
    now: UnixMillis,
    coming: BinaryHeap<Reverse<(UnixMillis, u64)>>,
    reports: HashMap<u64, (UnixMillis, Report)>,
    count: u64,
    rows: Vec<WatchRun>,
    ids: HashSet<RunId>,
    twice: Vec<RunId>,
    /// What a hub writes down as it runs.
    seen: UnixMillis,
    progress: Progress,
    /// How often it writes down its progress, ms: never where it is not restarted.
    progress_every: u64,
    leases: Vec<Lease>,
    budgets: Vec<BudgetLevel>,
    requests: Vec<(RunId, Request)>,
}

impl<'a> World<'a> {
    pub(super) fn new(watched: &Watched, conditions: &'a Conditions, from: UnixMillis) -> Self {
        let hub_dies = |event: &Event| matches!(event.what, Happening::HubAway { .. });
        let dies = conditions.events.iter().any(hub_dies);
        let mut world = Self {
            conditions,
            watched: watched.clone(),
            hub: Some(Dispatcher::new(watched.clone(), conditions.seed, from)),
            hosts: vec![SimulatedHost::default(); watched.hosts.len()],
            random: Random::new(conditions.seed ^ 0x5eed),
            now: from,
            coming: BinaryHeap::new(),
            reports: HashMap::new(),
            count: 0,
            rows: Vec::new(),
            ids: HashSet::new(),
            twice: Vec::new(),
            seen: from,
            progress: Progress::default(),
            progress_every: if dies { PROGRESS_MILLIS } else { u64::MAX },
            leases: Vec::new(),
            budgets: Vec::new(),
            requests: Vec::new(),
        };
        for Event { at, what } in &conditions.events {
            world.comes(*at, Report::Event(what.clone()));
        }
        world.connect_all();
        world
    }

    pub(super) fn end(self) -> (Vec<WatchRun>, Vec<RunId>, Vec<BudgetLevel>) {
        let budgets = self.hub.map_or(self.budgets, |hub| hub.budgets());
        (self.rows, self.twice, budgets)
    }

    fn comes(&mut self, at: UnixMillis, report: Report) {
        self.count += 1;
        self.coming.push(Reverse((at, self.count)));
        self.reports.insert(self.count, (at, report));
    }

    fn connect_all(&mut self) {
        for host in 0..self.hosts.len() {
            if let (Some(hub), false) = (&mut self.hub, self.hosts[host].away) {
                hub.handle_connected(self.now, host);
            }
        }
        self.take_actions();
    }

    pub(super) fn run(&mut self, until: UnixMillis) {
        // Ends when nothing of the span is outstanding: every test has a deadline and every lease expires.
        loop {
            let tick = self.hub.as_ref().and_then(Dispatcher::poll_timeout);
            let report = self.coming.peek().map(|Reverse((at, _))| *at);
            let Some(next) = [tick, report].into_iter().flatten().min() else {
                break;
            };
            if next >= until && self.is_done(until) {
                break;
            }
            self.now = self.now.max(next);
            if report == Some(next) {
                self.report();
            } else if let Some(hub) = &mut self.hub {
                hub.handle_tick(self.now);
            }
            self.take_actions();
        }
    }

    fn is_done(&self, until: UnixMillis) -> bool {
        let due = |hub: &Dispatcher| hub.outstanding().any(|run| run.due() < until);
        self.hub.as_ref().is_some_and(|hub| !due(hub))
    }

    fn report(&mut self) {
        let Some(Reverse((_, key))) = self.coming.pop() else {
            return;
        };
        let Some((since, report)) = self.reports.remove(&key) else {
            return;
        };
        match report {
            Report::Event(what) => self.happens(what),
            Report::HubStarts { keeps_leases } => self.start_hub(keeps_leases),
            report => self.tell(since, report),
        }
    }

    /// An agent tells the hub, or tries again later.
    fn tell(&mut self, since: UnixMillis, report: Report) {
        let id = match &report {
            Report::Started(id) | Report::Finished(id, _) => Some(*id),
            _ => None,
        };
        let lease = self.leases.iter().find(|lease| Some(lease.id) == id);
        let away = |name: &PlainText| {
            let mut hosts = self.watched.hosts.iter();
            let place = hosts.position(|host| host.name == *name);
            place.is_some_and(|place| self.hosts[place].away)
        };
        let away = lease.is_some_and(|lease| away(&lease.from) || away(&lease.to));
        let now = self.now;
        let Some(hub) = self.hub.as_mut().filter(|_| !away) else {
            if now.since(since) < REPORT_AT_MOST_MILLIS {
                self.count += 1;
                let at = now.plus_millis(REPORT_AGAIN_MILLIS);
                self.coming.push(Reverse((at, self.count)));
                self.reports.insert(self.count, (since, report));
            }
            return;
        };
        match report {
            Report::Started(lease) => {
                hub.handle_started(now, lease);
            }
            Report::Finished(lease, finished) => {
                hub.handle_finished(now, lease, finished);
            }
            Report::Checked(host, found) => hub.handle_checked(now, host, found),
            Report::HubStarts { .. } | Report::Event(_) => {}
        }
    }

    fn happens(&mut self, what: Happening) {
        let now = self.now;
        match what {
            Happening::Lost(host) => {
                self.hosts[host].away = true;
                self.with_hub(|hub| hub.handle_lost(now, host));
            }
            Happening::Connected(host) => {
                self.hosts[host].away = false;
                self.with_hub(|hub| hub.handle_connected(now, host));
            }
            Happening::Fails(host) => self.hosts[host].fails = true,
            Happening::Works(host) => self.hosts[host].fails = false,
            Happening::Busy(host, until) => self.hosts[host].busy_until = until,
            Happening::Traffic(host, share) => self.hosts[host].traffic = share,
            Happening::HubAway {
                until,
                keeps_leases,
            } => {
                if self.hub.take().is_some() {
                    self.comes(until, Report::HubStarts { keeps_leases });
                }
            }
            Happening::Asked { task, pair, class } => self.ask(task, pair, class),
            Happening::Plan(watched) => {
                self.watched = (*watched).clone();
                self.hosts
                    .resize(watched.hosts.len(), SimulatedHost::default());
                if self.hub.is_some() {
                    // It is written down again with the new plan.
                    self.progress = Progress::default();
                }
                self.with_hub(|hub| hub.handle_plan(now, *watched));
                self.connect_all();
            }
        }
    }

    fn with_hub(&mut self, act: impl FnOnce(&mut Dispatcher)) {
        if let Some(hub) = &mut self.hub {
            act(hub);
        }
    }

    fn ask(&mut self, task: usize, pair: usize, class: RunClass) {
        let Some(asked) = self.watched.tasks.get(task) else {
            return;
        };
        let Some(pair) = asked.pairs.get(pair) else {
            return;
        };
        let request = Request {
            task: asked.name.clone(),
            from: self.watched.hosts[pair.from].name.clone(),
            to: self.watched.hosts[pair.to].name.clone(),
            class,
            due: self.now,
            deadline: self.now.plus_millis(600_000),
            number: self.count,
            load_millis: None,
        };
        if let Some(hub) = &mut self.hub
            && let Ok(id) = hub.handle_request(self.now, &request)
        {
            self.requests.push((id, request));
        }
    }

    fn take_actions(&mut self) {
        let Some(hub) = &mut self.hub else { return };
        let mut actions = Vec::new();
        while let Some(action) = hub.poll_action() {
            actions.push(action);
        }
        if !actions.is_empty() {
            self.leases = hub.leases().cloned().collect();
            self.budgets = hub.budgets();
        }
        self.seen = self.now;
        if self.now.since(self.progress.at) >= self.progress_every {
            self.progress = hub.progress();
        }
        for action in actions {
            match action {
                Action::Start { lease, task, pair } => self.start(&lease, task, pair),
                Action::Check { host, .. } => {
                    let found = if self.hosts[host].fails {
                        Err("no answer within 2 s".into())
                    } else {
                        Ok(())
                    };
                    let at = self.now.plus_millis(FAILS_AFTER_MILLIS);
                    self.comes(at, Report::Checked(host, found));
                }
                Action::Row(row) => self.archive(*row),
                Action::Cancel { .. } => {}
            }
        }
    }

    fn archive(&mut self, row: WatchRun) {
        self.requests.retain(|(id, _)| *id != row.id);
        if self.ids.insert(row.id) {
            self.rows.push(row);
        } else {
            self.twice.push(row.id);
        }
    }

    /// A test begins; when its end and whether it fails is decided now.
    fn start(&mut self, lease: &Lease, task: usize, pair: usize) {
        let asked = &self.watched.tasks[task];
        let pair = &asked.pairs[pair];
        let places = [(pair.from, End::From), (pair.to, End::To)];
        let at = |(host, end): (usize, End), is: &dyn Fn(&SimulatedHost) -> bool| {
            is(&self.hosts[host]).then_some(end)
        };
        let now = self.now;
        let busy = places
            .into_iter()
            .find_map(|p| at(p, &|host| host.busy_until > now));
        let fails = places.into_iter().find_map(|p| at(p, &|host| host.fails));
        let rate = asked.rate.map_or(1_000_000_000, |rate| rate.0);
        let by_chance = self.random.unit() < self.conditions.failures;
        if let Some(end) = busy {
            self.ends(lease, now.plus_millis(100), None, Ending::Busy(end));
            return;
        }
        if fails.is_some() {
            let ending = failed("connect", "connection timed out", fails);
            self.ends(lease, now.plus_millis(FAILS_AFTER_MILLIS), None, ending);
            return;
        }
        let mut before = self.conditions.overhead_millis / 2;
        if let Some(quiet) = lease.quiet {
            let share = |(host, end): (usize, End)| (self.hosts[host].traffic, end);
            let others = places
                .into_iter()
                .map(share)
                .find(|(share, _)| *share > quiet);
            if let Some((share, end)) = others {
                let looked = now.plus_millis(LOOK_MILLIS);
                self.ends(lease, looked, None, Ending::Traffic(end, share));
                return;
            }
            before += LOOK_MILLIS;
        }
        let started = now.plus_millis(before);
        let ended = started.plus_millis(lease.load_millis);
        self.comes(started, Report::Started(lease.id));
        let ending = if by_chance {
            failed("run", "connection reset by peer", None)
        } else {
            Ending::Measured(WatchFigures {
                goodput_bps: rate as f64,
                ..WatchFigures::default()
            })
        };
        self.ends(lease, ended, Some((started, rate)), ending);
    }

    fn ends(
        &mut self,
        lease: &Lease,
        ended: UnixMillis,
        ran: Option<(UnixMillis, u64)>,
        ending: Ending,
    ) {
        let overhead = self.conditions.overhead_millis;
        let finished = Finished {
            started: ran.map(|(started, _)| started),
            ended,
            bytes: ran.map(|(started, rate)| Bytes(rate / 8 * ended.since(started) / 1_000)),
            ending,
        };
        let report = Report::Finished(lease.id, finished);
        self.comes(ended.plus_millis(overhead - overhead / 2), report);
    }

    fn start_hub(&mut self, keeps_leases: bool) {
        let past = Resumption {
            seen: self.seen,
            progress: self.progress.clone(),
            epoch: None,
            pairs: self.memory(),
            leases: keeps_leases.then(|| self.leases.clone()),
            budgets: self.budgets.clone(),
            requests: self.requests.iter().map(|(_, r)| r.clone()).collect(),
        };
        let seed = self.conditions.seed;
        let hub = Dispatcher::resume(self.watched.clone(), seed, self.now, &past);
        self.hub = Some(hub);
        self.connect_all();
    }

    /// What an archive says of the pairs.
    fn memory(&self) -> Vec<PairMemory> {
        let mut pairs: BTreeMap<(PlainText, PlainText, PlainText), PairMemory> = BTreeMap::new();
        for row in &self.rows {
            let key = (row.task.clone(), row.from.clone(), row.to.clone());
            let memory = pairs.entry(key).or_insert_with(|| PairMemory {
                task: row.task.clone(),
                from: row.from.clone(),
                to: row.to.clone(),
                last_due: None,
                failures_in_a_row: 0,
                latest: None,
            });
            if row.class == RunClass::Regular {
                memory.last_due = memory.last_due.max(Some(row.due));
            }
            match row.outcome {
                WatchOutcome::Failed { .. } => memory.failures_in_a_row += 1,
                WatchOutcome::Measured(_) | WatchOutcome::Invalid { .. } => {
                    memory.failures_in_a_row = 0;
                }
                WatchOutcome::NotRun { .. } => {}
            }
            memory.latest = Some(row.clone());
        }
        pairs.into_values().collect()
    }
}

fn failed(stage: &str, why: &str, at: Option<End>) -> Ending {
    Ending::Failed {
        stage: stage.into(),
        why: why.into(),
        at,
    }
}
