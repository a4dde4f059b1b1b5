//! The thread that decides: it owns the dispatcher and the alerts, and does what they ask for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use linerate_archive::{Archive, FactsPut};
use linerate_hub::live::{AgentState, PlanSummary};
use linerate_hub::shared::Shared;
use linerate_hub::store::OutcomeKind;
use linerate_model::alert::{Acceptance, AlertId, AlertState};
use linerate_model::host::HostFacts;
use linerate_model::plain_text::PlainText;
use linerate_model::watch::{RunId, UnixMillis};
use linerate_watch::alert::{Alerts, Mark, PairName, Worth};
use linerate_watch::dispatch::{
    Action, Dispatcher, End, Ending, Finished, GRACE_MILLIS, Lease, LeaseId, Taken,
};
use linerate_watch::watched::{Reach, Watched, WatchedHost};

use super::asking::Asking;
use super::clock::HubClock;
use super::folder::{Folder, State};
use super::hosts::{Dialler, Hosts, Standing};
use super::ingest::{self, Row};
use super::keeping::Keeping;
use super::measuring::{self, Assignment, Made, Side};
use super::outbox::Outbox;
use super::plan_file::PlanFile;
use super::{Happened, facts, past, shown};
use crate::action::Failure;
use crate::between;
use crate::place::HostPlace;
use crate::printer::Printer;

/// The longest time between two looks at the plan's file, and two writes of the state.
const TICK_MILLIS: u64 = 1_000;
const TICK: Duration = Duration::from_millis(TICK_MILLIS);
/// How long tests may take to end once the hub is to end.
const ENDING: Duration = Duration::from_secs(30);
/// So many tests run at once at most: a thread each.
const MOST_TESTS: usize = 256;
/// A test has ended, or was given up, before its lease is over.
const _: () = assert!(GRACE_MILLIS * 1_000_000 > between::far::MARGIN.0);
/// A clock that is off by this was set by somebody, ms.
const CLOCK_MILLIS: u64 = 60_000;
/// The same trouble is printed again after this time, ms.
const COMPLAINT_MILLIS: u64 = 60_000;
/// Records of rows that wait for the archive take at most so many bytes; beyond them the rows go without.
const MOST_WAITING: usize = 64 << 20;
/// Alerts that learned of results and asked for nothing are written after this time at the latest, ms: the archive has those
/// results, and [`past::alerts`] reads them again.
const LEARNED_MILLIS: u64 = 60_000;
/// Events that are taken before the dispatcher's time goes on.
const MOST_EVENTS: usize = 1_000;

/// What the driver works with.
pub(super) struct Means<'a> {
    pub(super) clock: HubClock,
    pub(super) archive: Arc<Archive>,
    pub(super) folder: Folder,
    pub(super) shared: Arc<Shared>,
    pub(super) told: Sender<Happened>,
    pub(super) printer: &'a Printer,
}

/// The driver.
pub(super) struct Driver<'a> {
    means: Means<'a>,
    dispatcher: Dispatcher,
    alerts: Alerts,
    asking: Asking,
    plan: Option<PlanFile>,
    hosts: Hosts,
    outbox: Outbox,
    /// The hosts that answer.
    standing: BTreeMap<String, Arc<Standing>>,
    /// When a host's facts were last seen as the archive has them.
    facts_seen: BTreeMap<String, UnixMillis>,
    /// The tests that run.
    tests: BTreeMap<LeaseId, Test>,
    tests_changed: bool,
    /// By how much the clock was set when that was said last, ms.
    clock_set: i64,
    complained: RefCell<Option<(String, UnixMillis)>>,
    /// What came of tests whose row is not there yet.
    made: BTreeMap<RunId, Made>,
    /// Rows that the archive did not take yet.
    rows: Vec<Row>,
    /// What alerts want kept and the archive did not take yet.
    keeping: Keeping,
    /// The alerts did something that the archive does not say.
    alerts_changed: bool,
    /// Since when they know results of which nothing is written; absent = of all they know it is.
    alerts_learned: Option<UnixMillis>,
    epoch: u64,
    stopping: bool,
    /// The last moment at which the state was written and the plan's file looked at.
    looked: UnixMillis,
    owner: String,
}

struct Test {
    lease: Lease,
    stop: Arc<AtomicBool>,
    /// The ports at which its ends may listen.
    ports: [Option<u16>; 2],
}

impl<'a> Driver<'a> {
    /// Goes on where the hub before stopped.
    pub(super) fn start(
        means: Means<'a>,
        mut before: State,
        plan: Option<PlanFile>,
        watched: Watched,
        hosts: Hosts,
    ) -> Result<Self, Failure> {
        let now = means.clock.now();
        past::forget_answered(&means.archive, &mut before.requests)?;
        let alerts = past::alerts(&means.archive, means.folder.alerts()?, &watched, now)?;
        past::end_lost_alerts(&means.archive, &alerts, now)?;
        let dispatcher = past::dispatcher(&means.archive, &before, watched, now)?;
        let outbox = Outbox::new(
            means.folder.path(),
            means.clock,
            means.archive.clone(),
            means.shared.clone(),
            past::told(&means.archive, now)?,
        );
        let mut new = Self {
            dispatcher,
            alerts,
            asking: Asking::of(before.requests),
            plan,
            hosts,
            outbox,
            standing: BTreeMap::new(),
            facts_seen: BTreeMap::new(),
            tests: BTreeMap::new(),
            tests_changed: false,
            clock_set: 0,
            complained: RefCell::default(),
            made: BTreeMap::new(),
            rows: Vec::new(),
            keeping: Keeping::default(),
            alerts_changed: true,
            alerts_learned: None,
            epoch: now.0.max(before.epoch.saturating_add(1)),
            stopping: false,
            looked: UnixMillis(0),
            owner: between::owner_of("hub"),
            means,
        };
        new.take_plan();
        new.act();
        new.write_state(now);
        Ok(new)
    }

    /// Whether nothing is watched.
    pub(super) fn is_empty(&self) -> bool {
        self.dispatcher.watched().tasks.is_empty()
    }

    /// Runs until the hub is to end, and all tests have ended.
    pub(super) fn run(mut self, news: &Receiver<Happened>) {
        while !self.stopping {
            self.wait(news);
            let now = self.means.clock.now();
            self.dispatcher.handle_tick(now);
            self.act();
            // Results that wait for the archive are no silence.
            if self.rows.is_empty() {
                self.alerts.handle_time(now);
            }
            self.act();
            self.look(now);
        }
        self.end(news);
    }

    /// Takes what has happened, or waits until something does or is due.
    fn wait(&mut self, news: &Receiver<Happened>) {
        let now = self.means.clock.now();
        let alerts = self.alerts.poll_timeout().filter(|_| self.rows.is_empty());
        let due = [self.dispatcher.poll_timeout(), alerts];
        let due = due.into_iter().flatten().min();
        let wait = due.map_or(TICK, |due| Duration::from_millis(due.since(now)));
        match news.recv_timeout(wait.min(TICK)) {
            Ok(happened) => self.take(happened),
            Err(RecvTimeoutError::Timeout) => return,
            Err(RecvTimeoutError::Disconnected) => self.stopping = true,
        }
        for _ in 0..MOST_EVENTS {
            let Ok(happened) = news.try_recv() else {
                return;
            };
            self.take(happened);
        }
    }

    fn take(&mut self, happened: Happened) {
        let now = self.means.clock.now();
        match happened {
            Happened::Up(name, standing) => self.host_is_up(now, name, standing),
            Happened::Lost(name, why) | Happened::Away(name, why) => {
                self.host_is_away(now, &name, why);
            }
            Happened::Facts(name, facts, _permit) => self.host_is(now, &name, &facts),
            Happened::Started(lease) => drop(self.dispatcher.handle_started(now, lease)),
            Happened::Finished(made) => self.test_ended(now, *made),
            Happened::Checked(name, found) => {
                if let Some(host) = self.place(&name) {
                    self.dispatcher.handle_checked(now, host, found);
                }
            }
            Happened::Wanted(wanted, answer) => {
                let asked = self.asking.ask_now(&mut self.dispatcher, now, &wanted);
                drop(answer.send(asked));
            }
            Happened::Accepted(alert, by, answer) => {
                drop(answer.send(self.accept(now, alert, &by)));
            }
            Happened::Silences => self.outbox.wake(),
            Happened::Reload => self.reload(now),
            Happened::Stop => self.stopping = true,
        }
    }

    /// Somebody says that an alert's level is right. It is on disk before the answer.
    fn accept(&mut self, now: UnixMillis, id: AlertId, by: &PlainText) -> Result<usize, String> {
        let accepted = self.alerts.accept_alert(now, id, by);
        let pairs = accepted.map_err(|error| error.to_string())?;
        let (at, by) = (now, by.clone());
        self.keeping.acceptance(id, Acceptance { at, by });
        self.act();
        self.keep_alerts();
        if self.write_state(now) {
            Ok(pairs)
        } else {
            Err("The level is accepted, but the hub could not write that down: its log says why. If the hub ends now, accept it again."
                .to_owned())
        }
    }

    fn place(&self, name: &str) -> Option<usize> {
        let mut hosts = self.dispatcher.watched().hosts.iter();
        hosts.position(|host| host.name == name)
    }

    fn host_is_up(&mut self, now: UnixMillis, name: String, standing: Arc<Standing>) {
        let software = standing.session.hello().version.clone();
        self.agent(&name, |agent| {
            agent.connected = true;
            agent.last_seen = Some(now);
            agent.software = Some(software);
            agent.why = None;
        });
        if let Some(host) = self.place(&name) {
            self.standing.insert(name, standing);
            self.dispatcher.handle_connected(now, host);
        }
    }

    fn host_is_away(&mut self, now: UnixMillis, name: &str, why: PlainText) {
        let stood = self.standing.remove(name).is_some();
        self.agent(name, |agent| {
            agent.connected = false;
            agent.why = Some(why);
            if stood {
                agent.last_seen = Some(now);
            }
        });
        if let Some(host) = self.place(name) {
            self.dispatcher.handle_lost(now, host);
        }
    }

    fn agent(&self, name: &str, change: impl FnOnce(&mut AgentState)) {
        self.means.shared.live().update(|live| {
            let mut agents = live.agents.iter_mut();
            if let Some(agent) = agents.find(|agent| agent.host == name) {
                change(agent);
            }
        });
    }

    /// A host said what it is like.
    fn host_is(&mut self, now: UnixMillis, name: &str, new: &HostFacts) {
        let Ok(json) = serde_json::to_vec(new) else {
            return;
        };
        let archive = &self.means.archive;
        let before = archive.facts(name, now).ok().flatten();
        let fresh = linerate_archive::Facts {
            host: name.to_owned(),
            since: now,
            json,
        };
        let seen = self.facts_seen.insert(name.to_owned(), now);
        let changes = before.as_ref().map(|before| {
            let seen = seen.unwrap_or(before.since);
            facts::changes(before, &fresh, seen)
        });
        if changes.as_ref().is_some_and(Vec::is_empty) {
            return;
        }
        match archive.put_facts(name, now, &fresh.json) {
            Ok(FactsPut::Changed) => self.means.shared.live().wake(),
            Ok(FactsPut::Same) => {}
            Err(error) => self.complain(&error.to_string()),
        }
        if let Some(changes) = changes {
            self.alerts.handle_host_changes(now, &changes);
            self.alerts_changed = true;
        }
    }

    fn test_ended(&mut self, now: UnixMillis, made: Made) {
        if let Some(test) = self.tests.remove(&made.lease) {
            self.tests_changed = true;
            let (run, lease, finished) = (test.lease.run, made.lease, made.finished.clone());
            self.made.insert(run, made);
            // Of an agent that went with the test, nobody has told yet: the next test would only fail as well.
            for name in [&test.lease.from, &test.lease.to] {
                let standing = self.standing.get(name.as_str());
                if standing.is_some_and(|standing| !standing.session.is_open())
                    && let Some(host) = self.place(name)
                {
                    self.dispatcher.handle_lost(now, host);
                }
            }
            if self.dispatcher.handle_finished(now, lease, finished) == Taken::Late {
                // Its row is there since its lease expired.
                self.made.remove(&run);
            }
        }
    }

    /// Does what the dispatcher and the alerts want, until they want nothing.
    fn act(&mut self) {
        loop {
            let mut acted = false;
            while let Some(action) = self.dispatcher.poll_action() {
                acted = true;
                self.dispatch(action);
            }
            acted |= self.ingest();
            acted |= self.heed_alerts();
            if !acted {
                break;
            }
        }
        // After the rows of those that ended: a test is always shown as running or by its row.
        if std::mem::take(&mut self.tests_changed) {
            let running = self.tests.values();
            let running = running.map(|test| shown::running(&test.lease)).collect();
            let live = self.means.shared.live();
            live.update(|live| live.running = running);
        }
    }

    fn dispatch(&mut self, action: Action) {
        match action {
            Action::Start { lease, task, pair } => self.start_test(lease, task, pair),
            Action::Cancel { lease, .. } => {
                if let Some(test) = self.tests.get(&lease) {
                    test.stop.store(true, Ordering::Relaxed);
                }
            }
            Action::Check { host, peer } => self.check(host, peer),
            Action::Row(run) => {
                let made = self.made.remove(&run.id);
                let (record, finding) =
                    made.map_or((None, None), |made| (made.record, made.finding));
                let waiting = self.rows.iter().filter_map(|row| row.record.as_ref());
                let bytes: usize = waiting.map(Vec::len).sum();
                self.rows.push(Row {
                    run: *run,
                    record: record.filter(|record| bytes + record.len() <= MOST_WAITING),
                    finding,
                });
            }
        }
    }

    fn start_test(&mut self, lease: Lease, task: usize, pair: usize) {
        let id = lease.id;
        let started = self.assignment(&lease, task, pair).and_then(|assignment| {
            let (stop, ports) = (assignment.stop.clone(), assignment.ports);
            let (clock, told) = (self.means.clock, self.means.told.clone());
            let make = move || measuring::make(&assignment, clock, &told);
            let thread = std::thread::Builder::new().name("test".to_owned());
            match thread.spawn(make) {
                Ok(_) => Ok((stop, ports)),
                Err(error) => Err(failed(&format!("no thread for the test: {error}"), None)),
            }
        });
        match started {
            Ok((stop, ports)) => {
                let pair = PairName::of_lease(&lease);
                self.alerts.handle_lease(&pair, lease.expiry);
                self.tests.insert(id, Test { lease, stop, ports });
                self.tests_changed = true;
            }
            Err(ending) => {
                let now = self.means.clock.now();
                let finished = Finished {
                    started: None,
                    ended: now,
                    bytes: None,
                    ending: *ending,
                };
                self.dispatcher.handle_finished(now, id, finished);
            }
        }
    }

    /// What a thread needs to make a test; how the test ends where it cannot begin.
    fn assignment(
        &self,
        lease: &Lease,
        task: usize,
        pair: usize,
    ) -> Result<Assignment, Box<Ending>> {
        if self.tests.len() >= MOST_TESTS {
            return Err(Box::new(Ending::Busy(End::From)));
        }
        let watched = self.dispatcher.watched();
        let gone = || failed("the plan no longer has it", None);
        let task = watched.tasks.get(task).ok_or_else(gone)?;
        let pair = task.pairs.get(pair).ok_or_else(gone)?;
        let ends = [watched.hosts.get(pair.from), watched.hosts.get(pair.to)];
        let [Some(from), Some(to)] = ends else {
            return Err(gone());
        };
        let request = HostPlace::request("host", &task.options)
            .map_err(|error| failed(&error.to_string(), None))?;
        let side = |host: &WatchedHost, at| match &host.reach {
            Reach::Linerate(port) | Reach::Iperf3(port) => Ok(Side::Server(*port)),
            Reach::Ssh | Reach::Agent => self
                .standing
                .get(host.name.as_str())
                .map(|standing| Side::Agent(standing.clone()))
                .ok_or_else(|| failed(&format!("{} is not connected", host.name), Some(at))),
        };
        let address =
            |own: &Option<PlainText>, host: &PlainText| own.as_ref().unwrap_or(host).to_string();
        let load = linerate_model::units::Nanos::from_millis(lease.load_millis);
        Ok(Assignment {
            lease: lease.id,
            words: between::words(&request.arguments),
            plan: request.plan,
            counter_test: self.asking.finding(lease.run).is_some(),
            quiet: lease.quiet,
            links: [from.link, to.link],
            sides: [side(from, End::From)?, side(to, End::To)?],
            addresses: [
                address(&pair.from_address, &from.address),
                address(&pair.to_address, &to.address),
            ],
            names: [from.name.to_string(), to.name.to_string()],
            ports: [self.port(from, End::From)?, self.port(to, End::To)?],
            first: lease.client,
            owner: self.owner.clone(),
            within: load.plus(between::far::MARGIN),
            stop: Arc::default(),
        })
    }

    /// A port of the host's range that no test uses.
    fn port(&self, host: &WatchedHost, end: End) -> Result<Option<u16>, Box<Ending>> {
        let Some((first, last)) = host.ports else {
            return Ok(None);
        };
        let used = |test: &Test| {
            let names = [&test.lease.from, &test.lease.to];
            let own = names.into_iter().zip(test.ports);
            own.filter(|(name, _)| **name == host.name)
                .find_map(|(_, port)| port)
        };
        let used: Vec<u16> = self.tests.values().filter_map(used).collect();
        let free = (first..=last).find(|port| !used.contains(port));
        let none = || Box::new(Ending::Busy(end));
        free.map(Some).ok_or_else(none)
    }

    /// Tries whether a host can be reached.
    fn check(&self, host: usize, peer: usize) {
        let hosts = &self.dispatcher.watched().hosts;
        let (Some(host), Some(peer)) = (hosts.get(host), hosts.get(peer)) else {
            return;
        };
        let told = self.means.told.clone();
        let name = host.name.to_string();
        let by = self.standing.get(peer.name.as_str()).cloned();
        let standing = self.standing.get(host.name.as_str()).cloned();
        let (reach, address) = (host.reach.clone(), host.address.to_string());
        let try_it = move || {
            let found = measuring::check(&reach, &address, standing.as_deref(), by.as_deref());
            drop(told.send(Happened::Checked(name, found)));
        };
        let thread = std::thread::Builder::new().name("check".to_owned());
        if let Err(error) = thread.spawn(try_it) {
            self.complain(&format!("no thread to check a host: {error}"));
        }
    }

    /// Hands rows to the archive, then to the alerts.
    fn ingest(&mut self) -> bool {
        if self.rows.is_empty() {
            return false;
        }
        let rows = std::mem::take(&mut self.rows);
        let (kept, left, error) = ingest::append(&self.means.archive, rows);
        self.rows = left;
        if let Some(error) = error {
            self.complain(&error.to_string());
        }
        let now = self.means.clock.now();
        for row in &kept {
            let finding = row.finding.clone();
            if let Some(asked) = self.asking.ended(&row.run) {
                let shown = finding.as_ref().filter(|finding| finding.id == asked);
                if let Some(shown) = shown.and_then(|finding| finding.counter_test.clone()) {
                    let pair = PairName::of(&row.run);
                    self.alerts.handle_counter_test(now, &pair, &asked, shown);
                    // Of a pair that is still suspect, it is kept with the others that make it fire.
                    if self.alerts.state(&pair) == Some(AlertState::Firing) {
                        self.keeping.record(Mark::Keep(row.run.id, Worth::Alert));
                    }
                }
            }
            self.alerts.handle_run(now, &row.run, finding);
            self.alerts_learned.get_or_insert(now);
        }
        self.means.shared.live().update(|live| {
            for row in &kept {
                live.ended.count(OutcomeKind::of(&row.run));
            }
        });
        !kept.is_empty()
    }

    fn heed_alerts(&mut self) -> bool {
        use linerate_watch::alert::Action;
        let mut acted = false;
        while let Some(action) = self.alerts.poll_action() {
            (acted, self.alerts_changed) = (true, true);
            let now = self.means.clock.now();
            match action {
                Action::AskConfirm { pair, at } => {
                    let dispatcher = &mut self.dispatcher;
                    self.asking.ask(dispatcher, now, &pair, at, None);
                }
                Action::AskCounterTest { pair, finding } => {
                    let dispatcher = &mut self.dispatcher;
                    self.asking.ask(dispatcher, now, &pair, now, Some(finding));
                }
                Action::Record(mark) => self.keeping.record(mark),
                Action::AskFacts { host } => self.hosts.ask_facts(&host),
                Action::AlertChanged(alert) => {
                    self.outbox.put(&alert);
                    self.keeping.alert(alert);
                }
            }
        }
        if acted {
            self.keep_alerts();
        }
        acted
    }

    /// Hands to the archive what alerts want kept; what it does not take stays.
    fn keep_alerts(&mut self) {
        match self.keeping.hand_over(&self.means.archive) {
            Ok(true) => self.means.shared.live().wake(),
            Ok(false) => {}
            Err(error) => self.complain(&error.to_string()),
        }
    }

    /// Once a second: the plan's file, the state on disk, what pages show.
    fn look(&mut self, now: UnixMillis) {
        if now.since(self.looked) < TICK_MILLIS {
            return;
        }
        self.looked = now;
        if self.plan.as_ref().is_some_and(PlanFile::changed) {
            self.reload(now);
            self.act();
        }
        self.look_at_clock();
        self.keep_alerts();
        self.show(now);
        self.write_state(now);
    }

    fn show(&self, now: UnixMillis) {
        let next = shown::next(&self.dispatcher, now);
        let standing = |name: &PlainText| self.standing.contains_key(name.as_str());
        self.means.shared.live().update(|live| {
            live.next = next;
            for agent in &mut live.agents {
                if standing(&agent.host) {
                    agent.last_seen = Some(now);
                }
            }
        });
    }

    /// Writes what the next start needs. While rows or alerts wait for the archive, the older state stays true.
    fn write_state(&mut self, now: UnixMillis) -> bool {
        if !self.rows.is_empty() || !self.keeping.is_empty() {
            return false;
        }
        let state = State {
            seen: now,
            progress: self.dispatcher.progress(),
            epoch: self.epoch,
            budgets: self.dispatcher.budgets(),
            requests: self.asking.open().to_vec(),
            ended: self.stopping,
            file: self.plan.as_ref().map(|plan| plan.path().to_owned()),
            plan_trouble: self.plan_trouble(),
        };
        let folder = &self.means.folder;
        let mut written = Ok(());
        let is_late = |since: UnixMillis| self.stopping || now.since(since) >= LEARNED_MILLIS;
        if self.alerts_changed || self.alerts_learned.is_some_and(is_late) {
            (self.alerts_changed, self.alerts_learned) = (false, None);
            written = folder.write_alerts(now, &self.alerts);
        }
        let written = written.and_then(|()| folder.write_state(&state));
        if let Err(error) = &written {
            self.alerts_changed = true;
            self.complain(&format!("cannot write the hub's state: {error}"));
        }
        written.is_ok()
    }

    /// Reads the plan again; one that is wrong changes nothing.
    fn reload(&mut self, now: UnixMillis) {
        let Some(plan) = &mut self.plan else { return };
        match plan.read() {
            Ok(watched) => {
                self.alerts.handle_plan(now, &watched);
                self.alerts_changed = true;
                self.dispatcher.handle_plan(now, watched);
                self.take_plan();
                self.means
                    .printer
                    .tell("linerate hub: the plan was read again");
            }
            Err(error) => self.complain(&format!("the plan stays as it was: {error}")),
        }
        let trouble = self.plan_trouble();
        let live = self.means.shared.live();
        live.update(|live| live.plan_trouble = trouble);
    }

    fn plan_trouble(&self) -> Option<PlainText> {
        self.plan.as_ref().and_then(PlanFile::trouble).cloned()
    }

    /// Keeps sessions to the hosts of the plan, and shows it.
    fn take_plan(&mut self) {
        let watched = self.dispatcher.watched();
        let hosts = watched.hosts.iter();
        let names: BTreeMap<String, Dialler> = hosts
            .filter_map(|host| Some((host.name.to_string(), Dialler::of(&host.reach)?)))
            .collect();
        self.hosts.keep(&names);
        self.standing.retain(|name, _| names.contains_key(name));
        self.outbox.keep(watched);
        let summary = PlanSummary::of(watched);
        self.means.shared.live().update(|live| {
            let before = std::mem::take(&mut live.agents);
            live.agents = shown::agents(watched, &before);
            live.plan = summary;
        });
    }

    /// Says so once where somebody set the clock of this machine.
    fn look_at_clock(&mut self) {
        let set = self.means.clock.set_since();
        let moved = set.saturating_sub(self.clock_set).unsigned_abs();
        if moved > CLOCK_MILLIS {
            self.clock_set = set;
            self.complain(&format!(
                "the clock of this machine was set by {} s since the start; the hub goes on with its own time until it is started again",
                set / 1_000
            ));
        }
    }

    /// Prints a trouble, the same one again after a minute at the earliest.
    fn complain(&self, why: &str) {
        let now = self.means.clock.now();
        let mut before = self.complained.borrow_mut();
        let again = before
            .as_ref()
            .is_some_and(|(said, at)| said == why && now.since(*at) < COMPLAINT_MILLIS);
        if !again {
            self.means.printer.tell(&format!("linerate hub: {why}"));
            *before = Some((why.to_owned(), now));
        }
    }

    /// Ends the tests that run, keeps their rows, and ends the sessions.
    fn end(&mut self, news: &Receiver<Happened>) {
        for test in self.tests.values() {
            test.stop.store(true, Ordering::Relaxed);
        }
        let until = std::time::Instant::now() + ENDING;
        while !self.tests.is_empty() {
            let left = until.saturating_duration_since(std::time::Instant::now());
            match news.recv_timeout(left) {
                Ok(happened @ Happened::Finished(_)) => {
                    self.take(happened);
                    self.drain();
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        self.ingest();
        self.heed_alerts();
        self.keep_alerts();
        self.write_state(self.means.clock.now());
        self.outbox.end();
        self.hosts.end();
    }

    /// Rows alone: nothing new begins.
    fn drain(&mut self) {
        while let Some(action) = self.dispatcher.poll_action() {
            if matches!(action, Action::Row(_)) {
                self.dispatch(action);
            }
        }
        self.ingest();
    }
}

fn failed(why: &str, at: Option<End>) -> Box<Ending> {
    Box::new(Ending::Failed {
        stage: "prepare".into(),
        why: why.into(),
        at,
    })
}
