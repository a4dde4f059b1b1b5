//! A scenario, parsed.

use std::collections::BTreeMap;

use linerate_model::units::{BitRate, Nanos};
use serde::{Deserialize, Serialize};

use crate::path::DirectionSpec;

/// The congestion control of both hosts where a scenario names none.
pub const DEFAULT_CONGESTION: &str = "cubic";

/// A lab: the path, the hosts, the test and what is expected of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scenario {
    /// Its name, as its file's.
    pub name: String,
    /// What it shows, in one sentence.
    pub about: String,
    /// Seed of everything random on the path.
    pub seed: u64,
    /// What was asked for; [`Scenario::mode`] is what follows.
    pub mode: ModeWish,
    /// What shall carry the packets.
    pub engine: EngineWish,
    /// Addresses of the hosts.
    pub family: Family,
    /// The path.
    pub path: PathSpec,
    /// Where `linerate test` runs.
    pub sender: HostSpec,
    /// Where `linerate serve` runs.
    pub receiver: HostSpec,
    /// The test.
    pub test: TestSpec,
    /// What is expected; empty where the file says nothing.
    pub expect: Expect,
}

/// How packets shall be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModeWish {
    /// As the scenario needs it.
    #[default]
    Auto,
    /// One by one; the hosts' segmentation offload is off.
    Packet,
    /// As super-segments, with the hosts' offload on.
    Bulk,
}

/// What shall carry the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineWish {
    /// Packet queues where they are to be had, else netem where it can do what the scenario asks.
    #[default]
    Auto,
    /// Packet queues, decided on by this program.
    Nfqueue,
    /// The kernel's disciplines netem and tbf.
    Netem,
}

impl EngineWish {
    /// The engine by disciplines, in scenarios and in results.
    pub const NETEM: &'static str = "netem";
    /// Each by the word that stands for it in a scenario.
    pub const WORDS: [(&'static str, Self); 3] = [
        ("auto", Self::Auto),
        ("nfqueue", Self::Nfqueue),
        (Self::NETEM, Self::Netem),
    ];
}

/// How packets are decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One by one.
    Packet,
    /// As super-segments.
    Bulk,
}

impl Mode {
    /// The word that stands for it in results.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Packet => "packet",
            Self::Bulk => "bulk",
        }
    }
}

/// The hosts' addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4.
    #[default]
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// One of the two directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From the sender (client) to the receiver (server).
    Forward,
    /// From the receiver to the sender.
    Back,
}

/// Both directions and what competes on them.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PathSpec {
    /// Sender to receiver.
    pub forward: DirectionSpec,
    /// Receiver to sender.
    pub back: DirectionSpec,
    /// Competing traffic.
    pub cross: Vec<Cross>,
}

impl PathSpec {
    /// One of the two directions.
    pub const fn direction(&self, way: Way) -> &DirectionSpec {
        match way {
            Way::Forward => &self.forward,
            Way::Back => &self.back,
        }
    }

    /// Round trip without any queue or jitter, at the start.
    pub fn rtt(&self) -> Nanos {
        let back = self.back.settings.delay;
        self.forward.settings.delay.plus(back)
    }
}

/// Competing traffic through the same bottleneck, from hosts of its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cross {
    /// What it is.
    pub kind: CrossKind,
    /// Which direction it goes.
    pub way: Way,
    /// When it starts, after the test's start.
    pub from: Nanos,
    /// When it ends; `None` = with the test.
    pub to: Option<Nanos>,
}

/// The kind of competing traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum CrossKind {
    /// Datagrams at a constant rate.
    Udp {
        /// Bits per second of UDP payload.
        rate: BitRate,
    },
    /// TCP connections that take what they get.
    Tcp {
        /// Connections, 1 to 128.
        streams: u16,
        /// All of them together at most this, bits per second of payload; `None` = unlimited.
        rate: Option<BitRate>,
    },
}

/// How a host is set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostSpec {
    /// Congestion control of its connections.
    pub congestion: String,
    /// `net.ipv4.tcp_wmem`: least, initial, most bytes; `None` = as the namespace has it.
    pub tcp_wmem: Option<[u64; 3]>,
    /// `net.ipv4.tcp_rmem`: least, initial, most bytes; `None` = as the namespace has it.
    pub tcp_rmem: Option<[u64; 3]>,
    /// MTU of its interface, bytes.
    pub mtu: u32,
    /// Length of its interface's transmit queue, packets; `None` = as the kernel makes it. The interface has no queue of
    /// its own (veth: `noqueue`), so the kernel keeps the number and uses it nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub txqueuelen: Option<u32>,
    /// Share of one core that its program may use, above 0 and below 1.
    pub cpu: Option<f64>,
    /// The application reads no faster than this, bits per second.
    pub read_rate: Option<BitRate>,
    /// Other per-namespace settings: `net.…` → value.
    pub sysctl: BTreeMap<String, String>,
}

impl Default for HostSpec {
    fn default() -> Self {
        Self {
            congestion: DEFAULT_CONGESTION.to_owned(),
            tcp_wmem: None,
            tcp_rmem: None,
            mtu: 1500,
            txqueuelen: None,
            cpu: None,
            read_rate: None,
            sysctl: BTreeMap::new(),
        }
    }
}

/// The test.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TestSpec {
    /// Arguments of `linerate test`, without the host.
    pub args: Vec<String>,
}

/// What a run of the scenario shall find.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Expect {
    /// Acceptable first findings; empty = nothing said.
    pub top: Vec<String>,
    /// Findings that must stand beside it.
    pub with: Vec<String>,
    /// Findings that may stand beside it.
    pub also: Vec<String>,
    /// Any finding may stand beside it.
    pub any_beside: bool,
    /// Findings that must not appear.
    pub never: Vec<String>,
    /// Goodput of the test.
    pub goodput: Option<RateRange>,
    /// What part of the bottleneck's rate the path carries in the direction of the data, by its own counters, from the
    /// start of the test on.
    pub utilisation: Option<ShareRange>,
}

impl Expect {
    /// Every finding that it names.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        let lists = [&self.top, &self.with, &self.also, &self.never];
        lists.into_iter().flatten().map(String::as_str)
    }
}

/// A range of rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RateRange {
    /// At least.
    pub least: BitRate,
    /// At most.
    pub most: BitRate,
}

impl RateRange {
    /// Whether `bits_per_second` lies in it.
    pub fn holds(&self, bits_per_second: f64) -> bool {
        bits_per_second >= self.least.0 as f64 && bits_per_second <= self.most.0 as f64
    }
}

/// A range of shares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ShareRange {
    /// At least.
    pub least: f64,
    /// At most; above 1 where the queue's content counts.
    pub most: f64,
}
