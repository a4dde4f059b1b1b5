//! The interface of a test, and the counters of its host ten times a second while anybody measures.
//!
//! One thread a process reads for all tests that run, and ends with the last of them.

use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

use linerate_kernel::counters::{Counters, QdiscCounters};
use linerate_kernel::inventory::{self, Root, RunningKernel};
use linerate_kernel::{clock, counters, route};
use linerate_model::column::{Column, CpuTime};
use linerate_model::fingerprint::Fingerprint;
use linerate_model::record::{InterfaceCounters, InterfaceFacts};
use linerate_model::series::Series;
use linerate_model::units::Nanos;

use crate::sample_pool::SamplePool;
use crate::samples::SampleStore;

/// Between two readings.
const EVERY: Nanos = Nanos::from_millis(100);
/// The first one of a test comes at most so much later: it would be in the way of its beginning, and of all of a short test.
const FIRST: Nanos = Nanos::from_millis(10);
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

/// The fingerprint of this host for what leaves by an interface.
pub(crate) fn fingerprint(interface: Option<&str>) -> Fingerprint {
    let root = Root::of_this_machine();
    inventory::of_fingerprint(&root, &RunningKernel, interface).fingerprint(interface)
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
    let mut facts = route::interface_facts(route.interface_index).ok()??;
    let root = root_qdisc(route.interface_index);
    facts.qdisc = root.as_ref().map(|qdisc| qdisc.kind.as_str().into());
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

fn named<const N: usize>(values: [(Column, u64); N]) -> impl Iterator<Item = (String, u64)> {
    values
        .into_iter()
        .map(|(column, value)| (column.to_string(), value))
}

/// Readings of one test. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct HostSamples {
    interface: Option<u32>,
    kept: Mutex<Kept>,
}

/// Readings, within the pool: when it grants no more every second one goes, and of those to come as well.
#[derive(Debug)]
struct Kept {
    pool: Arc<SamplePool>,
    /// With the names of the first reading as its columns.
    store: Option<SampleStore>,
    seen: u64,
}

impl Kept {
    /// Keeps a reading. One with other counters than the first, as a CPU or a qdisc came or went, is left out.
    fn push(&mut self, reading: &Reading) {
        let store = self.store.get_or_insert_with(|| {
            let names = reading.values.iter().map(|(name, _)| name.clone());
            SampleStore::new(names.collect(), EVERY, &self.pool)
        });
        let names = reading.values.iter().map(|(name, _)| name);
        if self.seen.is_multiple_of(u64::from(store.thinned())) && store.names().iter().eq(names) {
            let values = reading.values.iter().map(|(_, value)| *value);
            store.push(Nanos(reading.at_ns), values);
        }
        self.seen += 1;
    }
}

impl HostSamples {
    /// Begins to read, with the counters of one interface beside those of the host.
    pub(crate) fn begin(interface: Option<u32>, pool: &Arc<SamplePool>) -> Arc<Self> {
        let samples = Arc::new(Self {
            interface,
            kept: Mutex::new(Kept {
                pool: Arc::clone(pool),
                store: None,
                seen: 0,
            }),
        });
        READER.subscribe(&samples);
        samples
    }

    /// All readings so far as columns.
    pub(crate) fn series(&self) -> Series {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.store
            .as_ref()
            .map_or_else(Series::default, SampleStore::series)
    }

    fn keep(&self, shared: &Reading) {
        let mut reading = shared.clone();
        if let Some(index) = self.interface {
            let root = root_qdisc(index);
            if let Some(now) = interface_counters(index, root.as_ref()) {
                reading.values.extend(named([
                    (Column::if_rx_bytes, now.rx_bytes),
                    (Column::if_tx_bytes, now.tx_bytes),
                    (Column::if_rx_packets, now.rx_packets),
                    (Column::if_tx_packets, now.tx_packets),
                    (Column::if_rx_dropped, now.rx_dropped),
                    (Column::if_tx_dropped, now.tx_dropped),
                ]));
            }
            if let Some(qdisc) = root {
                reading.values.extend(named([
                    (Column::qdisc_bytes, qdisc.bytes),
                    (Column::qdisc_packets, qdisc.packets),
                    (Column::qdisc_drops, u64::from(qdisc.drops)),
                    (Column::qdisc_overlimits, u64::from(qdisc.overlimits)),
                    (Column::qdisc_backlog_bytes, u64::from(qdisc.backlog_bytes)),
                ]));
            }
        }
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(&reading);
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
        let cpu = u32::try_from(times.cpu).unwrap_or(u32::MAX);
        values.push((CpuTime::Busy.of(cpu), times.busy()));
        values.push((CpuTime::Softirq.of(cpu), times.softirq));
        values.push((CpuTime::Steal.of(cpu), times.steal));
    }
    let rows = open.softnet().unwrap_or_default();
    let total = |of: fn(&counters::Softnet) -> u32| rows.iter().map(|row| u64::from(of(row))).sum();
    values.extend(named([
        (Column::softnet_processed, total(|row| row.processed)),
        (Column::softnet_dropped, total(|row| row.dropped)),
        (Column::softnet_time_squeeze, total(|row| row.time_squeeze)),
    ]));
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

    fn pool(bytes: usize) -> Arc<SamplePool> {
        SamplePool::new(bytes, u64::MAX)
    }

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
        let one = HostSamples::begin(None, &pool(1 << 20));
        assert!(has(&one, 1));
        let began = clock::monotonic();
        let other = HostSamples::begin(None, &pool(1 << 20));
        assert!(has(&other, 2) && has(&one, 3));
        assert!(other.series().at_ns()[0] >= began.0);
        drop((one, other));
        let later = HostSamples::begin(None, &pool(1 << 20));
        assert!(has(&later, 1));
    }

    fn reading(at_ns: u64, names: &[&str]) -> Reading {
        let values = names.iter().map(|name| ((*name).to_owned(), at_ns));
        Reading {
            at_ns,
            values: values.collect(),
        }
    }

    #[test]
    fn readings_beyond_the_bound_come_less_often() {
        // One chunk of the pool is always granted.
        let mut kept = Kept {
            pool: pool(1),
            store: None,
            seen: 0,
        };
        for at_ns in 0..=1024 {
            kept.push(&reading(at_ns, &["a"]));
        }
        let series = kept.store.as_ref().unwrap().series();
        assert!((32..=64).contains(&series.len()), "{}", series.len());
        let at = series.at_ns();
        assert!(at.windows(2).all(|pair| pair[1] - pair[0] == 32), "{at:?}");
        assert_eq!(kept.store.unwrap().thinned(), 32);
    }

    #[test]
    fn a_reading_with_other_counters_is_left_out() {
        let mut kept = Kept {
            pool: pool(1 << 20),
            store: None,
            seen: 0,
        };
        kept.push(&reading(1, &["a", "b"]));
        kept.push(&reading(2, &["a"]));
        kept.push(&reading(3, &["a", "c"]));
        kept.push(&reading(4, &["a", "b"]));
        let series = kept.store.unwrap().series();
        assert_eq!(series.at_ns(), [1, 4]);
        assert_eq!(series.named("b").unwrap(), [1, 4]);
    }
}
