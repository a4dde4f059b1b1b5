//! What a server allows.

use std::net::IpAddr;
use std::str::FromStr;

use linerate_kernel::{counters, host, thread};
use linerate_model::plan::{Direction, End, Pace, Plan, Protocol};
use linerate_model::units::{BitRate, Bytes, Nanos};

use crate::stream::udp_receive_bytes;

use super::occupancy::Demand;

/// iperf3's error numbers (`iperf_api.h`).
pub(crate) const RATE_TOO_HIGH: i32 = 27;
pub(crate) const TOO_LONG: i32 = 37;
pub(crate) const NOT_AUTHENTICATED: i32 = 142;
pub(crate) const EXPIRED: i32 = 160;
pub(crate) const UNUSABLE_PARAMETERS: i32 = 114;
pub(crate) const BUSY: i32 = 121;
pub(crate) const NO_COOKIE: i32 = 106;
pub(crate) const CONTROL_CLOSED: i32 = 109;
pub(crate) const UNKNOWN_MESSAGE: i32 = 110;
pub(crate) const NOTHING_SENT: i32 = 111;
pub(crate) const NOTHING_READ: i32 = 112;
pub(crate) const UNUSABLE_RESULTS: i32 = 117;
pub(crate) const CLIENT_STOPPED: i32 = 119;
pub(crate) const FILE: i32 = 14;
pub(crate) const FILE_OVER_UDP: i32 = 34;
pub(crate) const AFFINITY: i32 = 132;
pub(crate) const BUFFERS: i32 = 141;
pub(crate) const NOTHING_RECEIVED: i32 = 144;
pub(crate) const STREAM_LISTENER: i32 = 202;
pub(crate) const STREAM_CONNECT: i32 = 203;

/// What a test's thread, messages, counters of the host and a short answer take, bytes.
const TEST_BYTES: usize = 384 << 10;
/// A short half of a record, bytes; that of a second with four streams has 20 KiB.
pub(super) const ANSWER_BYTES: usize = 64 << 10;
/// What a stream's thread takes, with its first samples, bytes: it reads into 32 KiB.
const TCP_STREAM_BYTES: usize = 128 << 10;
/// Of UDP it has a window of a million datagrams, and what it receives into.
const UDP_STREAM_BYTES: usize = 192 << 10;
/// Bytes of each stream that show that a test is one, where it asked for no rate.
const MOVED_A_STREAM: u64 = 4 << 10;
/// And at least of all together, whatever rate it asked for.
const LEAST_MOVED: u64 = 1 << 10;

/// The longest test of `linerate serve` where nothing else is asked for.
const LONGEST: Nanos = Nanos::from_millis(3_600_000);
/// The longest transfer of files: a day carries 10 TB at 1 Gbit/s.
const LONGEST_TRANSFER: Nanos = Nanos::from_millis(86_400_000);
/// Memory of all tests where the host would give more or less, bytes.
const MOST_MEMORY: u64 = 1 << 30;
const LEAST_MEMORY: u64 = 64 << 20;
/// Streams of all tests for each CPU, and what that is at least and at most.
const STREAMS_A_CPU: usize = 256;
const LEAST_STREAMS: usize = 512;
const MOST_STREAMS: usize = 4096;
/// Samples a second for each CPU: a fifth of it is spent on them then.
const SAMPLES_A_CPU: u64 = 10_000;
const LEAST_SAMPLES: u64 = 20_000;
/// Descriptors that a stream takes at most: its socket, its thread's times, a pipe, and one to spare.
const DESCRIPTORS_A_STREAM: usize = 5;
/// Streams that are tried whatever there are of descriptors.
const LEAST_FIT: usize = 8;
/// Descriptors that are left to everything else: listeners, connections that wait, tests.
const OTHER_DESCRIPTORS: usize = 512;

/// The bounds of a server. Those of all tests together hold whatever each of them is allowed.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// Tests at once.
    pub clients: usize,
    /// Tests at once from one address; IPv6 counts by networks of 64 bits.
    pub clients_per_address: usize,
    /// Connections whose test is not admitted yet, and those of one address.
    pub waiting: usize,
    /// See [`ServerLimits::waiting`].
    pub waiting_per_address: usize,
    /// Streams of a test, both directions together.
    pub streams: u16,
    /// Streams of all tests together; each has a thread. An address gets half of them at most, and a quarter is kept for
    /// addresses that run no test yet.
    pub all_streams: usize,
    /// Memory that all tests together may take, bytes: a quarter of it for samples, three eighths for streams and
    /// what is sent to clients, the rest for making records and reports of them.
    pub memory: Bytes,
    /// Samples a second of all streams together; with more streams each is sampled less often.
    pub samples_per_second: u64,
    /// Longest test, without the omitted part.
    pub duration: Nanos,
    /// Longest transfer of files.
    pub transfer: Nanos,
    /// Whether the omitted part counts in [`ServerLimits::duration`] and a test that does not end by time is refused, as
    /// iperf3 does where a longest duration was asked for; otherwise such a test ends after that.
    pub counts_as_iperf3: bool,
    /// Highest rate of a test, all streams together; `None` = any.
    pub rate: Option<BitRate>,
    /// Over how long that rate is averaged.
    pub rate_window: Nanos,
    /// A test that moves next to nothing for this long is ended: less than 4 KiB a minute and stream, or half of
    /// what the rate that it asked for gives.
    pub idle: Nanos,
    /// Networks that may test; empty = all.
    pub allowed: Vec<Network>,
}

impl Default for ServerLimits {
    /// By the memory and the CPUs of this machine, and by what its control group leaves.
    fn default() -> Self {
        let cpus = thread::available_cpus().max(1);
        let memory = host::facts()
            .memory_bytes
            .map_or(LEAST_MEMORY, |all| all / 8);
        let granted = counters::memory_limit().map_or(memory, |limit| memory.min(limit / 2));
        Self {
            clients: 256,
            clients_per_address: 8,
            waiting: 64,
            waiting_per_address: 8,
            streams: 256,
            all_streams: (STREAMS_A_CPU * cpus).clamp(LEAST_STREAMS, MOST_STREAMS),
            memory: Bytes(granted.clamp(LEAST_MEMORY, MOST_MEMORY)),
            samples_per_second: (SAMPLES_A_CPU * cpus as u64).max(LEAST_SAMPLES),
            duration: LONGEST,
            transfer: LONGEST_TRANSFER,
            counts_as_iperf3: false,
            rate: None,
            rate_window: Nanos::from_millis(5000),
            idle: Nanos::from_millis(60_000),
            allowed: Vec::new(),
        }
    }
}

impl ServerLimits {
    /// Memory for samples while they are taken, bytes.
    pub(crate) fn sample_bytes(&self) -> usize {
        usize::try_from(self.memory.count() / 4).unwrap_or(usize::MAX)
    }

    /// Memory for what streams, tests and answers to clients hold, bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        usize::try_from(self.memory.count() / 8 * 3).unwrap_or(usize::MAX)
    }

    /// The longest record that is sent to a client, bytes: while it is made it stands in memory three times.
    pub(crate) fn record_bytes(&self) -> usize {
        usize::try_from(self.memory.count() / 16).unwrap_or(usize::MAX)
    }

    /// The same with no more streams than there are descriptors for.
    pub(crate) fn within_descriptors(mut self, descriptors: u64) -> Self {
        let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
        let fit = descriptors.saturating_sub(OTHER_DESCRIPTORS) / DESCRIPTORS_A_STREAM;
        self.all_streams = self.all_streams.min(fit.max(LEAST_FIT));
        self
    }

    /// What a test of this plan takes from its admission to its end.
    pub(crate) fn demand(plan: &Plan) -> Demand {
        let streams = usize::from(plan.total_streams());
        let of_stream = match plan.protocol {
            Protocol::Tcp | Protocol::Sctp => TCP_STREAM_BYTES,
            Protocol::Udp => UDP_STREAM_BYTES + udp_receive_bytes(streams),
        };
        // A probe connection has a thread and a descriptor as a stream has, and less memory.
        let probes = usize::from(plan.latency);
        let spins = plan.pace == Pace::Spin && plan.direction != Direction::Send;
        Demand {
            streams: streams + probes,
            bytes: TEST_BYTES + streams * of_stream + probes * TCP_STREAM_BYTES,
            spinning: if spins { usize::from(plan.streams) } else { 0 },
        }
    }

    /// Bytes that a test has to move in [`ServerLimits::idle`] so that it counts as one.
    pub(crate) fn bytes_that_matter(&self, plan: &Plan) -> u64 {
        let streams = u64::from(plan.total_streams());
        let asked = plan.rate_bps.map_or(u64::MAX, |rate| {
            let bits = u128::from(rate.0) * u128::from(streams) * u128::from(self.idle.0);
            u64::try_from(bits / 8 / 2 / 1_000_000_000).unwrap_or(u64::MAX)
        });
        // By the minute.
        let in_idle = |bytes: u64| {
            let bytes = u128::from(bytes) * u128::from(self.idle.0) / 60_000_000_000;
            u64::try_from(bytes).unwrap_or(u64::MAX).max(1)
        };
        asked.clamp(
            in_idle(LEAST_MOVED),
            in_idle(MOVED_A_STREAM * streams.max(1)),
        )
    }

    /// Why a plan is not run: iperf3's error number and a sentence.
    pub(crate) fn refuse(&self, plan: &Plan) -> Option<(i32, String)> {
        if plan.total_streams() > self.streams {
            let text = format!(
                "{} streams requested, {} allowed",
                plan.total_streams(),
                self.streams
            );
            return Some((UNUSABLE_PARAMETERS, text));
        }
        let asked = match plan.end {
            End::TimeNs(asked) => asked,
            End::Bytes(_) | End::Blocks(_) => Nanos::ZERO,
        };
        let (all, endless) = if self.counts_as_iperf3 {
            (asked.plus(plan.omit_ns), asked == Nanos::ZERO)
        } else {
            (asked, false)
        };
        if all > self.duration || endless {
            return Some((
                TOO_LONG,
                format!("a test of {all} requested, {} allowed", self.duration),
            ));
        }
        if let (Some(most), Some(asked)) = (self.rate, plan.rate_bps) {
            let all = asked.0.saturating_mul(u64::from(plan.total_streams()));
            if all > most.0 {
                return Some((
                    RATE_TOO_HIGH,
                    format!("{} requested, {most} allowed", BitRate(all)),
                ));
            }
        }
        None
    }

    pub(crate) fn allows(&self, peer: IpAddr) -> bool {
        self.allowed.is_empty() || self.allowed.iter().any(|network| network.contains(peer))
    }
}

/// A network: an address and the length of its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u32,
}

/// A text that is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a network: give an address, or an address and a prefix length such as 192.0.2.0/24"
)]
pub struct NetworkError(String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let wrong = || NetworkError(text.to_owned());
        let (address, prefix) = text
            .split_once('/')
            .map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let longest = longest_prefix(address);
        let prefix = prefix.map_or(Ok(longest), |prefix| prefix.parse().map_err(|_| wrong()))?;
        if prefix > longest {
            Err(wrong())
        } else {
            Ok(Self { address, prefix })
        }
    }
}

impl Network {
    /// One address alone.
    pub fn of(address: IpAddr) -> Self {
        let prefix = longest_prefix(address);
        Self { address, prefix }
    }

    /// An address of it.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Length of its prefix: 0 to 32, or to 128.
    pub const fn prefix(&self) -> u32 {
        self.prefix
    }

    /// Whether an address is in it; IPv4 mapped into IPv6 counts as IPv4.
    pub fn contains(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address),
        };
        let differing = bits(self.address) ^ bits(peer);
        // All bits may be free, which a shift does not take.
        let of_prefix = differing.checked_shr(longest_prefix(self.address) - self.prefix);
        self.address.is_ipv4() == peer.is_ipv4() && of_prefix.unwrap_or(0) == 0
    }
}

/// The length of the prefix of one address alone.
const fn longest_prefix(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_own() {
        let network: Network = "192.0.2.0/24".parse().unwrap();
        assert!(network.contains("192.0.2.77".parse().unwrap()));
        assert!(network.contains("::ffff:192.0.2.77".parse().unwrap()));
        assert!(!network.contains("192.0.3.1".parse().unwrap()));
        assert!(
            "0.0.0.0/0"
                .parse::<Network>()
                .unwrap()
                .contains("203.0.113.9".parse().unwrap())
        );
        assert!(
            "::/0"
                .parse::<Network>()
                .unwrap()
                .contains("2001:db8::1".parse().unwrap())
        );
        assert!(
            "2001:db8::/32"
                .parse::<Network>()
                .unwrap()
                .contains("2001:db8::1".parse().unwrap())
        );
        for wrong in ["", "x", "1.2.3.4/33", "1.2.3.4/-1", "::/129"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn plans_over_the_limits_are_refused_with_iperf3s_numbers() {
        let mut limits = ServerLimits {
            duration: Nanos::from_millis(5000),
            ..ServerLimits::default()
        };
        let mut plan = Plan::new("h");
        assert_eq!(limits.refuse(&plan).unwrap().0, TOO_LONG);
        limits.duration = LONGEST;
        limits.rate = Some(BitRate(1000));
        assert_eq!(limits.refuse(&plan), None);
        plan.rate_bps = Some(BitRate(1001));
        assert_eq!(limits.refuse(&plan).unwrap().0, RATE_TOO_HIGH);
    }

    #[test]
    fn a_test_without_an_end_is_refused_only_where_iperf3_does() {
        let mut limits = ServerLimits::default();
        let mut plan = Plan::new("h");
        plan.end = End::TimeNs(Nanos::ZERO);
        assert_eq!(limits.refuse(&plan), None);
        limits.counts_as_iperf3 = true;
        assert_eq!(limits.refuse(&plan).unwrap().0, TOO_LONG);
        plan.end = End::Bytes(Bytes(1));
        assert_eq!(limits.refuse(&plan).unwrap().0, TOO_LONG);
        // What is omitted counts, to the second.
        limits.duration = Nanos::from_millis(3000);
        plan.end = End::TimeNs(Nanos::from_millis(2000));
        plan.omit_ns = Nanos::from_millis(1000);
        assert_eq!(limits.refuse(&plan), None);
        plan.omit_ns = Nanos::from_millis(2000);
        assert_eq!(limits.refuse(&plan).unwrap().0, TOO_LONG);
        limits.counts_as_iperf3 = false;
        assert_eq!(limits.refuse(&plan), None);
    }

    #[test]
    fn next_to_nothing_is_nothing() {
        let limits = ServerLimits::default();
        let mut plan = Plan::new("h");
        assert_eq!(limits.bytes_that_matter(&plan), 4096);
        plan.streams = 128;
        assert_eq!(limits.bytes_that_matter(&plan), 128 * 4096);
        // 1000 bit/s are 7500 bytes a minute and stream.
        plan.streams = 1;
        plan.rate_bps = Some(BitRate(1000));
        assert_eq!(limits.bytes_that_matter(&plan), 3750);
        plan.rate_bps = Some(BitRate(1));
        assert_eq!(limits.bytes_that_matter(&plan), 1024);
    }

    #[test]
    fn the_defaults_fit_the_machine() {
        let limits = ServerLimits::default();
        assert!((LEAST_MEMORY..=MOST_MEMORY).contains(&limits.memory.count()));
        assert_eq!(limits.within_descriptors(1024).all_streams, 102);
    }
}
