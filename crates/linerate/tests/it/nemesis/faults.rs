//! What goes wrong, and how it is mended.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use linerate_model::watch::UnixMillis;

use super::bed::Bed;
use super::verdict::Span;
use super::watcher::Watcher;
use crate::harness::{Running, say, start, wait_until};
use crate::hub::PATIENCE;
use crate::server::Dice;

/// A hub that could not start is started again after this time.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// The hub is killed and starts again soon.
    HubDies,
    /// It starts again after more than a period.
    HubStaysDead,
    AgentDies,
    /// What runs on the host that the hub reaches is killed.
    ReachedDies,
    BothDie,
    /// An agent stops for longer than the hub waits for a sign of it.
    AgentStops,
    /// The same for all that runs on the host that the hub reaches.
    ReachedStops,
    /// Nothing passes between an agent and the hub.
    NetworkIsCut,
    DiskIsFull,
    /// The same, and the hub dies meanwhile.
    HubDiesOfFullDisk,
}

const FAULTS: [Fault; 10] = [
    Fault::NetworkIsCut,
    Fault::HubDies,
    Fault::DiskIsFull,
    Fault::AgentDies,
    Fault::HubStaysDead,
    Fault::ReachedStops,
    Fault::BothDie,
    Fault::HubDiesOfFullDisk,
    Fault::ReachedDies,
    Fault::AgentStops,
];

/// What is to be done later.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mend {
    Hub,
    Agent(usize),
    GoOn(Vec<u32>),
    Join(usize),
    Disk,
    /// No mending: the hub dies while its disk is full.
    KillHub,
}

pub(super) struct Nemesis<'a> {
    bed: &'a Bed,
    dice: Dice,
    hub: Option<Running>,
    agents: [Option<Running>; 2],
    mends: Vec<(Instant, Mend)>,
    full: bool,
    /// Faults that come before any comes again.
    bag: Vec<Fault>,
    next: Instant,
    counts: BTreeMap<Fault, u32>,
    /// Since when there is a hub.
    since: UnixMillis,
    /// What was done, and what hubs said that are gone.
    log: String,
    /// Whether it is printed as well.
    aloud: bool,
}

fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    UnixMillis(since.unwrap().as_millis().try_into().unwrap())
}

impl<'a> Nemesis<'a> {
    /// A hub and its agents.
    pub(super) fn start(bed: &'a Bed, seed: u64) -> Self {
        let mut new = Self {
            bed,
            dice: Dice(seed),
            hub: None,
            agents: [None, None],
            mends: Vec::new(),
            full: false,
            bag: FAULTS.to_vec(),
            next: Instant::now(),
            counts: BTreeMap::new(),
            since: UnixMillis(0),
            log: String::new(),
            aloud: false,
        };
        new.hub = Some(start(&mut bed.hub()));
        new.wait_for_hub();
        new.since = now();
        let invitation = bed.invitation();
        for at in [0, 1] {
            let agent = start(&mut bed.agent(at, Some(&invitation)));
            let connected = wait_until(PATIENCE, || agent.error().contains("connected to"));
            assert!(connected, "{}", agent.error());
            new.agents[at] = Some(agent);
        }
        new.next = Instant::now() + Duration::from_secs(5);
        new
    }

    fn wait_for_hub(&mut self) {
        let is_up = wait_until(PATIENCE, || {
            self.watch_hub();
            let hub = self.hub.as_ref();
            hub.is_some_and(|hub| hub.out().contains("agents connect to"))
        });
        assert!(is_up, "{}", self.log());
    }

    /// Prints what it does.
    pub(super) fn aloud(mut self) -> Self {
        self.aloud = true;
        self
    }

    /// One moment: mends what is due, breaks something where that is due.
    pub(super) fn step(&mut self) {
        let now = Instant::now();
        while let Some(at) = self.mends.iter().position(|(due, _)| *due <= now) {
            let (_, mend) = self.mends.swap_remove(at);
            self.mend(mend);
        }
        if self.full {
            self.bed.fill_disk();
        }
        self.watch_hub();
        if now >= self.next {
            self.break_something();
            // In a long run there are whole periods without a fault as well.
            let [least, most] = if self.aloud { [5, 30] } else { [4, 9] };
            self.next = Instant::now() + self.between(least, most);
        }
    }

    fn between(&mut self, least: u64, most: u64) -> Duration {
        let span = usize::try_from((most - least) * 1000).unwrap();
        Duration::from_millis(least * 1000 + self.dice.below(span) as u64)
    }

    /// Starts the hub again where its disk was too full to start. It never ends by itself otherwise.
    fn watch_hub(&mut self) {
        let Some(hub) = &mut self.hub else { return };
        if !hub.ended() {
            return;
        }
        let hub = self.hub.take().unwrap();
        let done = hub.wait(PATIENCE);
        let why = format!("{:?}: {}", done.status, done.error);
        assert!(
            self.full || ["full", "No space"].iter().any(|word| why.contains(word)),
            "the hub ended: {why}\n{}",
            self.log
        );
        self.note(&format!("the hub ended: {why}"));
        self.mends.push((Instant::now() + AGAIN, Mend::Hub));
    }

    fn note(&mut self, line: &str) {
        let at = now().0;
        if self.aloud {
            say(&format!("{at} {line}"));
        }
        let _ = writeln!(self.log, "{at} {line}");
    }

    fn break_something(&mut self) {
        if self.bag.is_empty() {
            self.bag = FAULTS.to_vec();
            for at in (1..self.bag.len()).rev() {
                let other = self.dice.below(at + 1);
                self.bag.swap(at, other);
            }
        }
        let Some(at) = self.bag.iter().position(|fault| self.can(*fault)) else {
            return;
        };
        let fault = self.bag.remove(at);
        self.note(&format!("{fault:?}"));
        *self.counts.entry(fault).or_default() += 1;
        self.cause(fault);
    }

    /// Whether there is what it breaks.
    fn can(&self, fault: Fault) -> bool {
        let agents = self.agents.iter().any(Option::is_some);
        match fault {
            Fault::HubDies | Fault::HubStaysDead => self.hub.is_some(),
            Fault::AgentDies | Fault::AgentStops => agents,
            Fault::BothDie => self.hub.is_some() && agents,
            Fault::NetworkIsCut => true,
            Fault::ReachedDies | Fault::ReachedStops => !self.bed.reached().is_empty(),
            Fault::DiskIsFull | Fault::HubDiesOfFullDisk => {
                !self.bed.has_a_disk() || (self.hub.is_some() && !self.full)
            }
        }
    }

    fn cause(&mut self, fault: Fault) {
        match fault {
            Fault::HubDies => self.kill_hub(0, 4),
            Fault::HubStaysDead => self.kill_hub(11, 25),
            Fault::AgentDies => self.kill_agent(),
            Fault::BothDie => {
                self.kill_agent();
                self.kill_hub(0, 8);
            }
            Fault::ReachedDies => self
                .bed
                .reached()
                .into_iter()
                .for_each(|pid| signal(pid, "KILL")),
            Fault::ReachedStops => {
                let pids = self.bed.reached();
                self.stop_processes(pids);
            }
            Fault::AgentStops => {
                let at = self.an_agent();
                let pids = at.and_then(|at| self.agents[at].as_ref()).map(Running::pid);
                self.stop_processes(pids.into_iter().collect());
            }
            Fault::NetworkIsCut => {
                let at = self.dice.below(2);
                self.bed.relays[at].cut(true);
                let until = self.between(3, 45);
                self.later(until, Mend::Join(at));
            }
            Fault::DiskIsFull | Fault::HubDiesOfFullDisk => self.fill(fault),
        }
    }

    fn fill(&mut self, fault: Fault) {
        if !self.bed.has_a_disk() {
            return;
        }
        self.full = true;
        let until = self.between(8, 16);
        self.later(until, Mend::Disk);
        if fault == Fault::HubDiesOfFullDisk {
            let dies = self.between(1, 7);
            self.later(dies, Mend::KillHub);
        }
    }

    fn later(&mut self, after: Duration, mend: Mend) {
        self.mends.push((Instant::now() + after, mend));
    }

    fn stop_processes(&mut self, pids: Vec<u32>) {
        for pid in &pids {
            signal(*pid, "STOP");
        }
        let until = self.between(32, 40);
        self.later(until, Mend::GoOn(pids));
    }

    fn kill_hub(&mut self, least: u64, most: u64) {
        if let Some(mut hub) = self.hub.take() {
            hub.kill();
            let said = hub.error();
            self.note(&format!(
                "the hub is killed, which said: {}",
                said.trim_end()
            ));
            let after = self.between(least, most);
            self.later(after, Mend::Hub);
        }
    }

    /// One of the agents that live.
    fn an_agent(&mut self) -> Option<usize> {
        let first = self.dice.below(2);
        let alive = |at: &usize| self.agents[*at].is_some();
        [first, 1 - first].into_iter().find(alive)
    }

    fn kill_agent(&mut self) {
        let Some(at) = self.an_agent() else { return };
        if let Some(mut agent) = self.agents[at].take() {
            agent.kill();
            let after = self.between(0, 8);
            self.later(after, Mend::Agent(at));
        }
    }

    fn mend(&mut self, mend: Mend) {
        match mend {
            Mend::Hub => self.hub = Some(start(&mut self.bed.hub())),
            Mend::Agent(at) => self.agents[at] = Some(start(&mut self.bed.agent(at, None))),
            Mend::GoOn(pids) => pids.into_iter().for_each(|pid| signal(pid, "CONT")),
            Mend::Join(at) => self.bed.relays[at].cut(false),
            Mend::Disk => {
                self.full = false;
                self.bed.empty_disk();
            }
            Mend::KillHub => self.kill_hub(0, 3),
        }
    }

    /// Everything runs again.
    pub(super) fn mend_all(&mut self) {
        self.mends.retain(|(_, mend)| *mend != Mend::KillHub);
        while let Some((_, mend)) = self.mends.pop() {
            self.mend(mend);
        }
        self.wait_for_hub();
    }

    /// Waits until tests are measured again.
    pub(super) fn wait_for_tests(&mut self, watcher: &Watcher, patience: Duration) {
        let before = watcher.measured();
        let measured = wait_until(patience, || {
            self.watch_hub();
            watcher.measured() > before + 1
        });
        assert!(measured, "no test is measured: {}", self.log());
    }

    /// Ends the hub, and says for what time there are rows.
    pub(super) fn stop(&mut self) -> Span {
        let until = now();
        let hub = self.hub.take().unwrap();
        hub.signal("TERM");
        let done = hub.wait(PATIENCE).expect(0);
        self.log.push_str(&done.error);
        Span {
            since: self.since,
            until,
        }
    }

    /// How often each fault was.
    pub(super) fn done(&self) -> String {
        format!("{:?}", self.counts)
    }

    /// What was done and what hubs said, the last part of it.
    pub(super) fn log(&self) -> String {
        let hub = self.hub.as_ref().map(Running::error).unwrap_or_default();
        let all = format!("{}{hub}", self.log);
        let lines: Vec<&str> = all.lines().collect();
        lines[lines.len().saturating_sub(200)..].join("\n")
    }
}

/// A process that is gone needs no signal.
fn signal(pid: u32, name: &str) {
    drop(
        Command::new("kill")
            .args([&format!("-{name}"), &pid.to_string()])
            .output(),
    );
}
