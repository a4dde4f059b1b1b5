//! What a host carries by itself, with no network in between: an upper bound of what a test from it or to it can
//! give; and how late it wakes.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// The version of the document that this build writes.
pub const SCHEMA_VERSION: u32 = 1;

/// A host's own limits, as measured once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostLimit {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Kernel release; absent = not known.
    pub kernel: Option<String>,
    /// Processors online; absent = not known.
    pub cpus: Option<u32>,
    /// How long each run lasted.
    pub run_ns: Nanos,
    /// What was carried, path by path.
    pub paths: Vec<PathLimit>,
    /// How late timed waits ended.
    pub timers: Vec<TimerLateness>,
    /// From a thread that raises an event to another one, which slept, that goes on; absent = not measured.
    pub wake_up: Option<Latency>,
    /// What could not be measured, and why.
    pub left_out: Vec<String>,
    /// Who had the CPUs while the runs lasted; absent = not known.
    pub cpu_time: Option<CpuTime>,
}

/// A path inside a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LocalPath {
    /// The loopback interface.
    Loopback,
    /// A veth pair between two network namespaces.
    Veth,
}

/// What one path carried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathLimit {
    /// Which.
    pub path: LocalPath,
    /// Largest packet, IP header included, bytes; absent = not known.
    pub mtu_bytes: Option<u32>,
    /// One for each kind of traffic, in the order in which they ran.
    pub runs: Vec<Carried>,
}

/// What one kind of traffic came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// What it is, in words.
    pub traffic: String,
    /// The options of `linerate test` that make it.
    pub options: String,
    /// Why there are no figures.
    pub error: Option<String>,
    /// Payload at the receiving application, bit/s.
    pub goodput_bps: Option<u64>,
    /// UDP: payload that the sender gave to the kernel, bit/s.
    pub sent_bps: Option<u64>,
    /// UDP: what became of the datagrams, over the whole run; absent = not known.
    pub datagrams: Option<DatagramCounts>,
    /// CPU time of the sending process, s per 10^9 bytes of payload.
    pub sender_seconds_per_gigabyte: Option<f64>,
    /// The same of the receiving process.
    pub receiver_seconds_per_gigabyte: Option<f64>,
    /// How the payload reached the sending kernel; absent = not known.
    pub sending: Option<Sending>,
    /// Who had the CPUs meanwhile; absent = not known.
    pub cpu_time: Option<CpuTime>,
}

/// Datagrams of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramCounts {
    /// Handed to the sending kernel.
    pub sent: u64,
    /// Of these, not delivered to the receiving application.
    pub lost: u64,
    /// Of the lost, dropped at the receiver's socket, whose buffer was full; absent = not known.
    pub socket_dropped: Option<u64>,
}

/// How payload reached the sending kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sending {
    /// It was copied.
    Copied,
    /// By reference, through a pipe (splice(2)).
    Spliced,
    /// By reference (`MSG_ZEROCOPY`).
    Zerocopy,
    /// `MSG_ZEROCOPY` was asked for, and the kernel copied all the same.
    ZerocopyCopied,
}

/// A machine's CPU time over a span, in shares of it all: 1 = all CPUs all the time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CpuTime {
    /// In the two processes of the runs, as the kernel books it to them.
    pub own: f64,
    /// Busy with everything else: other programs, and interrupts, some of which the runs caused.
    pub others: f64,
    /// Taken by the hypervisor for others.
    pub stolen: f64,
}

impl CpuTime {
    /// From milliseconds of all CPUs together: `busy` here, `stolen`, and `all`; and what the runs used, ns.
    /// `None` where no time passed.
    pub fn of(busy_ms: u64, stolen_ms: u64, all_ms: u64, own_ns: u64) -> Option<Self> {
        let all = all_ms as f64;
        let own = own_ns as f64 / 1e6;
        (all_ms > 0).then(|| Self {
            own: (own / all).min(1.0),
            others: (busy_ms as f64 - own).max(0.0) / all,
            stolen: stolen_ms as f64 / all,
        })
    }

    /// The mean of several, each of which lasted as long; `None` of nothing.
    pub fn mean(all: &[Self]) -> Option<Self> {
        let count = all.len() as f64;
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / count;
        (!all.is_empty()).then(|| Self {
            own: mean(|one| one.own),
            others: mean(|one| one.others),
            stolen: mean(|one| one.stolen),
        })
    }
}

/// How late timed waits of one length ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerLateness {
    /// How long each wait was asked to last.
    pub asked_ns: Nanos,
    /// Beyond that.
    pub late: Latency,
}

/// Times that something took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// How often it was looked at.
    pub count: usize,
    /// Half of them took no longer.
    pub median_ns: Nanos,
    /// 99 % of them took no longer.
    pub p99_ns: Nanos,
    /// The longest.
    pub max_ns: Nanos,
}

impl Latency {
    /// Of what was measured, by nearest rank; `None` of nothing.
    pub fn of(mut times: Vec<Nanos>) -> Option<Self> {
        times.sort_unstable();
        let rank = |percent: usize| times.get((times.len() * percent).div_ceil(100).max(1) - 1);
        Some(Self {
            count: times.len(),
            median_ns: *rank(50)?,
            p99_ns: *rank(99)?,
            max_ns: *times.last()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_of_what_was_measured() {
        let latency = Latency::of((1..=200).rev().map(Nanos).collect()).unwrap();
        assert_eq!(
            (latency.median_ns, latency.p99_ns, latency.max_ns),
            (Nanos(100), Nanos(198), Nanos(200))
        );
        let one = Latency::of(vec![Nanos(7)]).unwrap();
        assert_eq!(
            (one.count, one.median_ns, one.p99_ns),
            (1, Nanos(7), Nanos(7))
        );
        assert_eq!(Latency::of(Vec::new()), None);
    }

    #[test]
    fn cpu_time_is_shared_out() {
        let time = CpuTime::of(1500, 200, 4000, 1_000_000_000).unwrap();
        assert!((time.own - 0.25).abs() < 1e-9);
        assert!((time.others - 0.125).abs() < 1e-9);
        assert!((time.stolen - 0.05).abs() < 1e-9);
        // The kernel's ticks are coarse: a process may seem to have had more than all.
        assert!(CpuTime::of(900, 0, 1000, 950_000_000).unwrap().others.abs() < 1e-9);
        assert_eq!(CpuTime::of(0, 0, 0, 5), None);
        let mean = CpuTime::mean(&[time, CpuTime::of(0, 0, 1, 0).unwrap()]).unwrap();
        assert!((mean.own - 0.125).abs() < 1e-9);
        assert_eq!(CpuTime::mean(&[]), None);
    }
}
