//! What a host is, and its counters ten times a second while anybody measures.
//!
//! One thread a process reads for all tests that run, and ends with the last of them.

use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

use linerate_kernel::counters::{Counters, QdiscCounters};
use linerate_kernel::{clock, counters, host, namespace, route};
use linerate_model::record::{HostFacts, InterfaceCounters, InterfaceFacts};
use linerate_model::series::{MAX_ROWS, Series};
use linerate_model::units::Nanos;

/// Between two readings.
const EVERY: Nanos = Nanos::from_millis(100);
/// The first one of a test comes at most so much later: it would be in the way of its beginning, and of all of a short test.
const FIRST: Nanos = Nanos::from_millis(10);
/// The most readings that are kept of a test: those of almost two hours.
const MOST_READINGS: usize = MAX_ROWS / 64;
/// Protocol counters that are kept over time; of the others only the growth is.
const KEPT: [&str; 14] = [
    "Tcp.RetransSegs",
    "Tcp.InErrs",
    "TcpExt.TCPTimeouts",
    "TcpExt.TCPLostRetransmit",
    "TcpExt.TCPSackRecovery",
    "TcpExt.TCPSpuriousRTOs",
    "TcpExt.TCPRcvCollapsed",
    "TcpExt.PruneCalled",
    "TcpExt.TCPBacklogDrop",
    "TcpExt.TCPRcvQDrop",
    "TcpExt.TCPZeroWindowDrop",
    "Udp.RcvbufErrors",
    "Udp.SndbufErrors",
    "Udp.InErrors",
];

/// What this host is.
pub(crate) fn facts() -> HostFacts {
    let facts = host::facts();
    HostFacts {
        hostname: Some(facts.hostname.into()),
        kernel: Some(facts.kernel_release.into()),
        architecture: Some(facts.architecture.into()),
        boot_id: facts.boot_id.map(Into::into),
        network_namespace: namespace::network_id().ok(),
        cpu_model: facts.cpu_model.map(Into::into),
        cpus: facts.cpus_online,
        memory_bytes: facts.memory_bytes,
        virtualisation: facts.virtualisation.map(Into::into),
        tcp_rmem: facts.tcp_rmem,
        tcp_wmem: facts.tcp_wmem,
        rmem_max: facts.rmem_max,
        wmem_max: facts.wmem_max,
        congestion: facts.default_congestion.map(Into::into),
        default_qdisc: facts.default_qdisc.map(Into::into),
    }
}

/// The interface that packets to `peer` leave by.
pub(crate) fn interface_to(peer: IpAddr) -> Option<InterfaceFacts> {
    Some(interface_and_root(peer)?.0)
}

/// As [`interface_to`], with its counters now: its queueing discipline is read once for both.
pub(crate) fn interface_and_counters(
    peer: IpAddr,
) -> Option<(InterfaceFacts, Option<InterfaceCounters>)> {
    let (facts, root) = interface_and_root(peer)?;
    let counters = interface_counters(facts.index, root.as_ref());
    Some((facts, counters))
}

fn interface_and_root(peer: IpAddr) -> Option<(InterfaceFacts, Option<QdiscCounters>)> {
    let route = route::to(peer).ok()??;
    let facts = route::interface_facts(route.interface_index).ok()??;
    let root = root_qdisc(route.interface_index);
    let facts = InterfaceFacts {
        name: facts.name.into(),
        index: facts.index,
        mtu_bytes: facts.mtu,
        kind: facts.kind.map(Into::into),
        driver: facts.driver.map(Into::into),
        speed_mbit_per_s: facts.speed_mbps.map(u64::from),
        qdisc: root.as_ref().map(|qdisc| qdisc.kind.as_str().into()),
    };
    Some((facts, root))
}

/// The interface's counters now, those of its queueing discipline among them.
pub(crate) fn counters_of(index: u32) -> Option<InterfaceCounters> {
    interface_counters(index, root_qdisc(index).as_ref())
}

/// The interface's counters now, with those of the queueing discipline at its root.
fn interface_counters(index: u32, root: Option<&QdiscCounters>) -> Option<InterfaceCounters> {
    let now = counters::interface(index).ok()??;
    Some(InterfaceCounters {
        rx_bytes: now.rx_bytes,
        tx_bytes: now.tx_bytes,
        rx_packets: now.rx_packets,
        tx_packets: now.tx_packets,
        rx_dropped: now.rx_dropped,
        tx_dropped: now.tx_dropped,
        qdisc_dropped: root.map(|qdisc| u64::from(qdisc.drops)),
    })
}

/// The queueing discipline that the interface's packets leave by.
fn root_qdisc(index: u32) -> Option<QdiscCounters> {
    counters::qdiscs(index)
        .ok()?
        .into_iter()
        .find(|qdisc| qdisc.parent == ROOT)
}

/// `TC_H_ROOT`.
const ROOT: u32 = u32::MAX;

/// One reading of everything that all tests share.
#[derive(Debug, Clone)]
struct Reading {
    at_ns: u64,
    values: Vec<(String, u64)>,
}

/// Readings of one test. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct HostSamples {
    interface: Option<u32>,
    kept: Mutex<Kept>,
}

/// Readings, at most so many: when they are too many every second one goes, and of those to come as well.
#[derive(Debug)]
struct Kept {
    rows: Vec<Reading>,
    most: usize,
    /// One reading in so many is kept.
    one_in: u64,
    seen: u64,
}

impl Kept {
    fn new(most: usize) -> Self {
        Self {
            rows: Vec::new(),
            most,
            one_in: 1,
            seen: 0,
        }
    }

    fn push(&mut self, reading: Reading) {
        if self.rows.len() >= self.most {
            let mut number = 0_u64;
            self.rows.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.one_in = self.one_in.saturating_mul(2);
        }
        if self.seen.is_multiple_of(self.one_in) {
            self.rows.push(reading);
        }
        self.seen += 1;
    }
}

impl HostSamples {
    /// Begins to read, with the counters of one interface beside those of the host.
    pub(crate) fn begin(interface: Option<u32>) -> Arc<Self> {
        Self::begin_within(interface, MOST_READINGS)
    }

    /// The same with a bound of readings.
    pub(crate) fn begin_within(interface: Option<u32>, most: usize) -> Arc<Self> {
        let samples = Arc::new(Self {
            interface,
            kept: Mutex::new(Kept::new(most)),
        });
        READER.subscribe(&samples);
        samples
    }

    /// No readings.
    pub(crate) fn none() -> Arc<Self> {
        Arc::new(Self {
            interface: None,
            kept: Mutex::new(Kept::new(0)),
        })
    }

    /// All readings so far as columns. A counter that came or went in between is left out.
    pub(crate) fn series(&self) -> Series {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = &kept.rows;
        let Some(first) = rows.first() else {
            return Series::default();
        };
        let same: Vec<&Reading> = rows
            .iter()
            .filter(|row| row.values.len() == first.values.len())
            .collect();
        let mut series = Series::new(same.iter().map(|row| row.at_ns).collect());
        for (index, (name, _)) in first.values.iter().enumerate() {
            if same.iter().all(|row| row.values[index].0 == *name) {
                let inserted = series.insert(
                    name.clone(),
                    same.iter().map(|row| row.values[index].1).collect(),
                );
                debug_assert!(inserted.is_ok(), "a value a row");
            }
        }
        series
    }

    fn keep(&self, shared: &Reading) {
        let mut reading = shared.clone();
        if let Some(index) = self.interface {
            let root = root_qdisc(index);
            if let Some(now) = interface_counters(index, root.as_ref()) {
                let named = [
                    ("if.rx_bytes", now.rx_bytes),
                    ("if.tx_bytes", now.tx_bytes),
                    ("if.rx_packets", now.rx_packets),
                    ("if.tx_packets", now.tx_packets),
                    ("if.rx_dropped", now.rx_dropped),
                    ("if.tx_dropped", now.tx_dropped),
                ];
                reading.values.extend(
                    named
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value)),
                );
            }
            if let Some(qdisc) = root {
                let named = [
                    ("qdisc.bytes", qdisc.bytes),
                    ("qdisc.packets", qdisc.packets),
                    ("qdisc.drops", u64::from(qdisc.drops)),
                    ("qdisc.overlimits", u64::from(qdisc.overlimits)),
                    ("qdisc.backlog_bytes", u64::from(qdisc.backlog_bytes)),
                ];
                reading.values.extend(
                    named
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value)),
                );
            }
        }
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(reading);
    }
}

/// The process's one reader.
struct Reader {
    state: Mutex<ReaderState>,
    changed: Condvar,
}

struct ReaderState {
    subscribers: Vec<Weak<HostSamples>>,
    running: bool,
    /// When to read next.
    due: Nanos,
}

static READER: Reader = Reader {
    state: Mutex::new(ReaderState {
        subscribers: Vec::new(),
        running: false,
        due: Nanos::ZERO,
    }),
    changed: Condvar::new(),
};

impl Reader {
    fn subscribe(&'static self, samples: &Arc<HostSamples>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.subscribers.push(Arc::downgrade(samples));
        let first = clock::monotonic().plus(FIRST);
        if state.running {
            state.due = state.due.min(first);
        } else {
            state.due = first;
            let thread = std::thread::Builder::new()
                .name("host counters".to_owned())
                .stack_size(256 << 10);
            // Without the thread the record has no host counters, which it shows by having none.
            state.running = thread.spawn(|| self.run()).is_ok();
        }
        self.changed.notify_all();
    }

    fn run(&self) {
        // A host without /proc has no counters: the rows then hold the interface's alone.
        let mut open = None;
        while let Some(subscribers) = self.wait_until_due() {
            let reading = read(open.get_or_insert_with(|| Counters::open().ok()).as_mut());
            for samples in subscribers {
                samples.keep(&reading);
            }
        }
    }

    /// Who gets the reading that is due; `None` = nobody wants any more, and this thread is to end.
    fn wait_until_due(&self) -> Option<Vec<Arc<HostSamples>>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = clock::monotonic();
            let left = state.due.since(now);
            if left == Nanos::ZERO {
                state.due = now.plus(EVERY);
                break;
            }
            let waited = self.changed.wait_timeout(state, left.as_duration());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state
            .subscribers
            .retain(|subscriber| subscriber.strong_count() > 0);
        state.running = !state.subscribers.is_empty();
        let upgraded = || state.subscribers.iter().filter_map(Weak::upgrade).collect();
        state.running.then(upgraded)
    }
}

fn read(open: Option<&mut Counters>) -> Reading {
    let at_ns = clock::monotonic().0;
    let mut values = Vec::with_capacity(64);
    let Some(open) = open else {
        return Reading { at_ns, values };
    };
    for times in open.cpu().unwrap_or_default() {
        let cpu = times.cpu;
        values.push((format!("cpu{cpu}.busy_ms"), times.busy()));
        values.push((format!("cpu{cpu}.softirq_ms"), times.softirq));
        values.push((format!("cpu{cpu}.steal_ms"), times.steal));
    }
    let rows = open.softnet().unwrap_or_default();
    let total = |of: fn(&counters::Softnet) -> u64| rows.iter().map(of).sum::<u64>();
    values.push((
        "softnet.processed".to_owned(),
        total(|row| u64::from(row.processed)),
    ));
    values.push((
        "softnet.dropped".to_owned(),
        total(|row| u64::from(row.dropped)),
    ));
    values.push((
        "softnet.time_squeeze".to_owned(),
        total(|row| u64::from(row.time_squeeze)),
    ));
    let protocols = open.protocols().unwrap_or_default();
    for name in KEPT {
        if let Some(value) = protocols.get(name) {
            values.push((name.to_owned(), *value));
        }
    }
    Reading { at_ns, values }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for so many readings, ten seconds at most.
    fn has(samples: &HostSamples, rows: usize) -> bool {
        let until = clock::monotonic().plus(Nanos::from_millis(10_000));
        while samples.series().len() < rows {
            if clock::monotonic() >= until {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    #[test]
    fn every_test_gets_readings_of_its_own_time_while_and_after_others_run() {
        let one = HostSamples::begin(None);
        assert!(has(&one, 1));
        let began = clock::monotonic();
        let other = HostSamples::begin(None);
        assert!(has(&other, 2) && has(&one, 3));
        assert!(other.series().at_ns()[0] >= began.0);
        drop((one, other));
        let later = HostSamples::begin(None);
        assert!(has(&later, 1));
    }

    #[test]
    fn readings_beyond_the_bound_come_less_often() {
        let mut kept = Kept::new(4);
        for at_ns in 0..33 {
            kept.push(Reading {
                at_ns,
                values: Vec::new(),
            });
        }
        let at: Vec<u64> = kept.rows.iter().map(|row| row.at_ns).collect();
        assert_eq!(at, [0, 16, 32]);
        assert_eq!(kept.one_in, 16);
    }
}
