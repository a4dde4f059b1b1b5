//! Watching TCP connections that other programs hold: the kernel's table of sockets, read at a cadence, into an
//! [`Observation`].
//!
//! One thread reads; nothing of what it watches is touched. Memory is bounded: [`MOST_CELLS`] numbers over all
//! connections, beyond which the busiest is thinned, and [`MOST_CONNECTIONS`], beyond which those that closed after
//! moving least are forgotten and counted.

mod holders;
mod scope;
mod store;
mod tracked;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use linerate_kernel::counters::ProtocolsBefore;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::process_sockets::Process;
use linerate_kernel::tcp_table::{Destroyed, TcpSocket, TcpTable};
use linerate_kernel::{clock, thread};
use linerate_model::observation::{
    Ended, Fate, Glimpse, Holder, Observation, Sampling, Sighting, Watch,
};
use linerate_model::plain_text::PlainText;
use linerate_model::record::{InterfaceFacts, Kind, Note, SCHEMA_VERSION};
use linerate_model::units::Nanos;

use crate::EngineError;
use crate::host::{self, HostSamples};
use crate::sample_pool::SamplePool;

use holders::Holders;
use scope::Scope;
use tracked::Tracked;

/// Samples of all connections together: 256 MiB.
pub const MOST_CELLS: usize = 1 << 25;
/// Connections that are kept, open or closed.
pub const MOST_CONNECTIONS: usize = 4096;
/// Memory for the readings of the host's counters: those of half an hour on a host of two CPUs, then every second one.
const HOST_BYTES: usize = 4 << 20;
/// A connection that is missing from so many readings in a row is gone: one may miss it.
const GONE_AFTER: u32 = 2;
/// For so long the kernel's last word may come later than that: it destroys a socket once nothing of it is left in
/// a queue of the host.
const LAST_WORD: Nanos = Nanos::from_millis(1000);
/// Between two questions for who holds the sockets.
const ASK_HOLDERS_EVERY: Nanos = Nanos::from_millis(500);
/// Readings that may fail in a row.
const MOST_FAILURES: u32 = 10;

/// Watches until `stop` becomes readable, the time is over, or the process that is watched has ended.
///
/// # Errors
/// A peer whose name has no address, a process that is not there or not ours, a kernel that does not tell. Once
/// watching has begun, what was seen is kept whatever happens.
pub fn run(
    watch: &Watch,
    stop: BorrowedFd<'_>,
    tell: &mut dyn FnMut(&Sighting),
) -> Result<Observation, EngineError> {
    let refuse = |source: linerate_kernel::KernelError| EngineError::Watch {
        reason: source.to_string(),
    };
    let mut table = TcpTable::open().map_err(refuse)?;
    let scope = Scope::new(watch, &mut table)?;
    // Before the first reading, so that no connection can close in between unheard.
    let destroyed = Destroyed::open().ok();
    let mut watcher = Watcher::new(watch, scope, table, destroyed);
    watcher.read(tell).map_err(|source| EngineError::Watch {
        reason: format!("cannot read the kernel's table of TCP sockets: {source}"),
    })?;
    let ended = watcher.watch(stop, tell);
    Ok(watcher.finish(ended))
}

/// An observation under way.
struct Watcher<'a> {
    watch: &'a Watch,
    scope: Scope,
    table: TcpTable,
    destroyed: Option<Destroyed>,
    hears_all: bool,
    start: Nanos,
    started_at_unix_ms: u64,
    connections: BTreeMap<u32, Tracked>,
    by_cookie: HashMap<u64, u32>,
    next_id: u32,
    /// Connections that are not watched, so that each is news but once.
    strangers: HashSet<u64>,
    interfaces: Interfaces,
    holders: Option<Holders>,
    asked_holders: Nanos,
    /// Sockets whose holder was asked for.
    asked: BTreeSet<u64>,
    sampling: Sampling,
    read_at: Nanos,
    counters: Arc<HostSamples>,
    protocols: ProtocolsBefore,
    cpu: Nanos,
    notes: Vec<Note>,
}

impl<'a> Watcher<'a> {
    fn new(watch: &'a Watch, scope: Scope, table: TcpTable, destroyed: Option<Destroyed>) -> Self {
        let holders = if scope.knows_holders() {
            None
        } else {
            Holders::start()
        };
        Self {
            watch,
            hears_all: destroyed.is_some(),
            scope,
            table,
            destroyed,
            start: clock::monotonic(),
            started_at_unix_ms: clock::wall().0 / 1_000_000,
            connections: BTreeMap::new(),
            by_cookie: HashMap::new(),
            next_id: 1,
            strangers: HashSet::new(),
            interfaces: Interfaces::default(),
            holders,
            asked_holders: Nanos::ZERO,
            asked: BTreeSet::new(),
            sampling: Sampling::default(),
            read_at: Nanos::ZERO,
            counters: HostSamples::begin(None, &SamplePool::new(HOST_BYTES, u64::MAX)),
            protocols: ProtocolsBefore::read(),
            cpu: clock::thread_cpu(),
            notes: Vec::new(),
        }
    }

    /// Reads at the cadence until something ends it.
    fn watch(&mut self, stop: BorrowedFd<'_>, tell: &mut dyn FnMut(&Sighting)) -> Ended {
        // The kernel's default lets a wait end 50 µs late; where it cannot be less, that is all.
        drop(thread::set_timer_slack(Nanos(1000)));
        let every = self.watch.sample_ns;
        let end = self.watch.time_ns.map(|time| self.start.plus(time));
        let (mut next, mut shown) = (self.start.plus(every), self.start);
        let mut failures = 0;
        loop {
            let until = end.map_or(next, |end| end.min(next));
            let mut entries = [PollEntry::new(stop, Interest::READ)];
            let waited = poll::wait(&mut entries, Some(until.since(clock::monotonic())));
            if waited.is_ok() && entries[0].readiness().any() {
                drop(self.read(tell));
                return Ended::Stopped;
            }
            let now = clock::monotonic();
            if now < until {
                continue;
            }
            failures = match self.read(tell) {
                Ok(()) => 0,
                Err(error) => {
                    self.doubt(&error.to_string(), tell);
                    failures + 1
                }
            };
            if end.is_some_and(|end| now >= end) {
                self.show(&mut shown, end, tell);
                return Ended::TimeIsOver;
            }
            if failures > MOST_FAILURES {
                return Ended::Unreadable;
            }
            if !self.look(now) {
                return Ended::ProcessEnded;
            }
            if now.since(shown) >= self.watch.interval_ns {
                self.show(&mut shown, end, tell);
            }
            let done = clock::monotonic();
            let behind = done.since(next).0 / every.0.max(1);
            self.sampling.missed += behind;
            next = next.plus(Nanos(every.0.saturating_mul(behind + 1)));
        }
    }

    /// One reading of the table, and what it tells of connections that came and went.
    fn read(&mut self, tell: &mut dyn FnMut(&Sighting)) -> std::io::Result<()> {
        let began = clock::monotonic();
        if self.sampling.readings > 0 {
            let gap = began.since(self.read_at).0;
            self.sampling.longest_gap_ns = self.sampling.longest_gap_ns.max(gap);
        }
        self.read_at = began;
        self.sampling.readings += 1;
        let mut fresh = Vec::new();
        let mut news = false;
        let result = {
            let Self {
                table,
                scope,
                connections,
                by_cookie,
                strangers,
                next_id,
                sampling,
                watch,
                ..
            } = self;
            let reading = sampling.readings;
            table.connections(scope.filter(), |at, socket| {
                if let Some(tracked) = by_cookie
                    .get(&socket.cookie)
                    .and_then(|id| connections.get_mut(id))
                {
                    // Twice in one reading is once.
                    if tracked.reading != reading {
                        tracked.reading = reading;
                        tracked.missing = 0;
                        // It had only been missed.
                        tracked.fate = None;
                        tracked.sample(at, socket);
                    }
                    return;
                }
                if !scope.admits(socket) {
                    news |= strangers.insert(socket.cookie);
                    return;
                }
                let listened = scope.listens(socket.local.port());
                let made = Tracked::new(*next_id, socket, watch.sample_ns, reading == 1, listened);
                if let Some(mut tracked) = made {
                    tracked.reading = reading;
                    tracked.sample(at, socket);
                    by_cookie.insert(socket.cookie, *next_id);
                    connections.insert(*next_id, tracked);
                    fresh.push(*next_id);
                    *next_id += 1;
                }
            })
        };
        self.welcome(&fresh, began, tell);
        self.hear(tell);
        match result {
            Ok(true) => self.miss(tell),
            Ok(false) => self.sampling.not_whole += 1,
            Err(error) => {
                self.sampling.not_whole += 1;
                return Err(error);
            }
        }
        if news {
            self.scope.look(began, true, &mut self.table);
        }
        self.keep_within_bounds();
        Ok(())
    }

    /// Learns of new connections what the table does not tell.
    fn welcome(&mut self, fresh: &[u32], now: Nanos, tell: &mut dyn FnMut(&Sighting)) {
        for id in fresh {
            let Some(tracked) = self.connections.get_mut(id) else {
                continue;
            };
            tracked.interface = self.interfaces.towards(tracked.remote.ip());
            tracked.process = tracked
                .inode
                .and_then(|inode| self.scope.holder(inode))
                .map(holder);
            let found = tracked.found(now.since(self.start));
            tell(&found);
        }
        let open = self.connections.values().filter(|one| one.fate.is_none());
        self.sampling.most_connections = self.sampling.most_connections.max(open.count() as u64);
    }

    /// Takes the kernel's last word on connections that it destroyed.
    fn hear(&mut self, tell: &mut dyn FnMut(&Sighting)) {
        let now = clock::monotonic();
        let Self {
            destroyed: Some(destroyed),
            connections,
            by_cookie,
            start,
            hears_all,
            strangers,
            ..
        } = self
        else {
            return;
        };
        let whole = destroyed.each(|socket: &TcpSocket<'_>| {
            strangers.remove(&socket.cookie);
            let Some(tracked) = by_cookie
                .remove(&socket.cookie)
                .and_then(|id| connections.get_mut(&id))
            else {
                return;
            };
            tracked.sample(now, socket);
            // What was given up already is not told again.
            if tracked.fate.replace(Fate::ClosedAndTold).is_none() {
                tell(&tracked.gone(now.since(*start)));
            }
        });
        *hears_all &= whole;
    }

    /// Parts with connections that the last reading did not have.
    fn miss(&mut self, tell: &mut dyn FnMut(&Sighting)) {
        let now = clock::monotonic();
        let patience = if self.destroyed.is_some() {
            LAST_WORD
        } else {
            Nanos::ZERO
        };
        for tracked in self.connections.values_mut() {
            if tracked.fate.is_some() || tracked.reading == self.sampling.readings {
                continue;
            }
            tracked.missing += 1;
            if tracked.missing >= GONE_AFTER && now.since(tracked.seen()) >= patience {
                tracked.fate = Some(Fate::Closed);
                tell(&tracked.gone(now.since(self.start)));
            }
        }
    }

    /// Thins and forgets where memory would grow beyond its bounds.
    fn keep_within_bounds(&mut self) {
        let cells: usize = self.connections.values().map(|one| one.store.cells()).sum();
        if cells > MOST_CELLS
            && let Some(largest) = self
                .connections
                .values_mut()
                .max_by_key(|one| one.store.cells())
        {
            largest.store.thin();
        }
        if self.connections.len() > MOST_CONNECTIONS {
            let mut closed: Vec<(u64, u32)> = self
                .connections
                .values()
                .filter(|one| one.fate.is_some())
                .map(|one| (one.moved(), one.id))
                .collect();
            closed.sort_unstable();
            closed.truncate((closed.len() / 4).max(1));
            for (_, id) in &closed {
                if let Some(forgotten) = self.connections.remove(id) {
                    self.by_cookie.remove(&forgotten.cookie);
                }
            }
            self.sampling.not_kept += closed.len() as u64;
        }
        // Cookies are never used again, so the set may be begun anew; each is then news once more.
        if self.strangers.len() > 64 * MOST_CONNECTIONS {
            self.strangers.clear();
        }
    }

    /// Looks at what the table does not tell. False once the process that is watched has ended.
    fn look(&mut self, now: Nanos) -> bool {
        let lives = self.scope.look(now, false, &mut self.table);
        if self.scope.knows_holders() {
            learn_holders(&mut self.connections, |inode| self.scope.holder(inode));
            return lives;
        }
        let Some(holders) = &mut self.holders else {
            return lives;
        };
        if let Some(found) = holders.answer() {
            learn_holders(&mut self.connections, |inode| found.get(&inode));
        }
        if now.since(self.asked_holders) >= ASK_HOLDERS_EVERY {
            let unknown = self
                .connections
                .values()
                .filter(|one| one.process.is_none());
            let inodes: BTreeSet<u64> = unknown
                .filter_map(|one| one.inode)
                .filter(|inode| !self.asked.contains(inode))
                .collect();
            if holders.ask(inodes.clone()) {
                self.asked.extend(inodes);
                self.asked_holders = now;
            }
        }
        lives
    }

    /// Tells what the connections did since the last time.
    fn show(&mut self, shown: &mut Nanos, end: Option<Nanos>, tell: &mut dyn FnMut(&Sighting)) {
        let now = self.read_at;
        let mut connections: Vec<Glimpse> = self
            .connections
            .values_mut()
            .filter(|one| one.fate.is_none() && one.missing < GONE_AFTER)
            .filter_map(Tracked::glimpse)
            .collect();
        connections
            .sort_by_key(|one| std::cmp::Reverse(one.sent_bps.saturating_add(one.received_bps)));
        tell(&Sighting::Interval {
            from_ns: shown.since(self.start),
            to_ns: now.since(self.start),
            connections,
            left_ns: end.map(|end| end.since(now)),
        });
        *shown = now;
    }

    /// Notes that a reading failed, once.
    fn doubt(&mut self, reason: &str, tell: &mut dyn FnMut(&Sighting)) {
        if self.notes.iter().any(|note| note.id == "reading-failed") {
            return;
        }
        let text = format!("a reading of the kernel's table of sockets failed: {reason}");
        tell(&Sighting::Warning {
            text: text.clone().into(),
        });
        self.notes.push(Note {
            id: "reading-failed".into(),
            text: text.into(),
        });
    }

    fn finish(mut self, ended: Ended) -> Observation {
        self.sampling.cpu_ns = clock::thread_cpu().since(self.cpu).0;
        self.sampling.hears_last_words = self.hears_all;
        for tracked in self.connections.values_mut() {
            if tracked.fate.is_none() && tracked.missing >= GONE_AFTER {
                tracked.fate = Some(Fate::Closed);
            }
        }
        let closed_to_us = self.scope.closed_to_us();
        if closed_to_us > 0 {
            self.notes.push(Note {
                id: "processes-closed".into(),
                text: format!(
                    "{closed_to_us} descendants of the process belong to other users: their sockets could not be \
                     seen; as root they can"
                ).into(),
            });
        }
        // Connections over several interfaces have the facts of none of them in common.
        let interface = match self.interfaces.facts.as_slice() {
            [only] => Some(&*only.name),
            _ => None,
        };
        let host = linerate_model::record::HostFacts {
            fingerprint: Some(crate::host::fingerprint(interface)),
            ..linerate_kernel::host::facts()
        };
        Observation {
            schema_version: SCHEMA_VERSION,
            kind: Kind::Observation,
            software: linerate_model::record::Software::this_program(),
            started_at_unix_ms: self.started_at_unix_ms,
            watch: self.watch.clone(),
            ended,
            host,
            start_ns: self.start,
            end_ns: self.read_at.max(self.start),
            interfaces: self.interfaces.facts,
            counters: self.counters.series(),
            protocol_growth: self.protocols.growth(),
            sampling: self.sampling,
            connections: self
                .connections
                .into_values()
                .map(Tracked::finish)
                .collect(),
            notes: self.notes,
        }
    }
}

/// Notes who holds the sockets of which that was not known.
fn learn_holders<'a>(
    connections: &mut BTreeMap<u32, Tracked>,
    of: impl Fn(u64) -> Option<&'a Process>,
) {
    for tracked in connections.values_mut() {
        if tracked.process.is_none() {
            tracked.process = tracked.inode.and_then(&of).map(holder);
        }
    }
}

fn holder(process: &Process) -> Holder {
    Holder {
        pid: process.pid,
        name: process.name.clone().into(),
    }
}

/// The interfaces towards the peers.
#[derive(Default)]
struct Interfaces {
    by_peer: HashMap<IpAddr, Option<PlainText>>,
    facts: Vec<InterfaceFacts>,
}

impl Interfaces {
    /// The name of the interface that packets to a peer leave by, as the routes are now.
    fn towards(&mut self, peer: IpAddr) -> Option<PlainText> {
        if let Some(known) = self.by_peer.get(&peer) {
            return known.clone();
        }
        let facts = host::interface_to(peer);
        let name = facts.as_ref().map(|facts| facts.name.clone());
        if let Some(facts) = facts
            && !self.facts.iter().any(|one| one.name == facts.name)
        {
            self.facts.push(facts);
        }
        if self.by_peer.len() < MOST_CONNECTIONS {
            self.by_peer.insert(peer, name.clone());
        }
        name
    }
}
