//! An interface: its place among others, its queues, its device.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CpuSet, Fact};

/// A network interface. Sizes in bytes, lengths of queues in packets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// As `ip link` prints it, at most 15 bytes.
    pub name: String,
    /// `ifindex`, unique within its network namespace.
    pub index: u32,
    /// `hardware`, `loopback`, or the kind of virtual device: `vlan`, `bond`, `bridge`, `veth`, `tun` …
    /// A virtual machine's network card is hardware to its kernel.
    pub kind: String,
    /// Link-layer address, lower case with colons; absent where it has none.
    pub mac: Option<String>,
    /// The address that the device has of its own, whatever it has now; absent where the kernel does not tell (before Linux
    /// 5.6, and for interfaces without a device).
    pub permanent_mac: Option<String>,
    /// Whether somebody set it up (`IFF_UP`).
    pub up: bool,
    /// State after RFC 2863: `up`, `down`, `lowerlayerdown` …
    pub operstate: Fact<String>,
    /// Largest packet, IP header included.
    pub mtu: Fact<u32>,
    /// Largest that the driver accepts.
    pub max_mtu: Fact<u32>,
    /// Length of the transmit queue.
    pub tx_queue_len: Fact<u32>,
    /// Transmit queues that exist.
    pub tx_queues: Fact<u32>,
    /// Receive queues that exist.
    pub rx_queues: Fact<u32>,
    /// Largest packet that the stack hands down to be cut.
    pub gso_max_size: Fact<u32>,
    /// Largest packet that receiving may merge.
    pub gro_max_size: Fact<u32>,
    /// Largest packet that the device itself can cut.
    pub tso_max_size: Fact<u32>,
    /// The interface below (a VLAN's device), or `None` where there is none.
    pub parent: Fact<Option<String>>,
    /// The bond, bridge or VRF that it is a member of.
    pub master: Option<String>,
    /// A VLAN's number.
    pub vlan: Option<u16>,
    /// A bond's settings.
    pub bond: Option<Bond>,
    /// Addresses with their prefix length.
    pub addresses: Fact<Vec<String>>,
    /// Queueing disciplines, the root first.
    pub qdiscs: Fact<Vec<Qdisc>>,
    /// What passed since it was made.
    pub counters: Fact<LinkCounters>,
    /// Times that the carrier came or went.
    pub carrier_changes: Fact<u64>,
    /// The driver and its device.
    pub driver: Fact<Driver>,
    /// Speed and duplex.
    pub link: Fact<Link>,
    /// Descriptor rings.
    pub rings: Fact<Rings>,
    /// Queues that are in use.
    pub channels: Fact<Channels>,
    /// How long interrupts wait for more packets.
    pub coalescing: Fact<Coalescing>,
    /// Flow control.
    pub pause: Fact<Pause>,
    /// Offloads by the names of `ethtool -k`'s kernel strings: `tx-tcp-segmentation` …
    pub features: Fact<BTreeMap<String, Feature>>,
    /// The driver's own counters.
    pub statistics: Fact<BTreeMap<String, u64>>,
    /// Share of each receive queue in the table that spreads flows, entries.
    pub indirection: Fact<Vec<u32>>,
    /// The NUMA node of the device; `None` on a machine with one.
    pub numa_node: Fact<Option<u32>>,
    /// CPUs of that node.
    pub local_cpus: Fact<CpuSet>,
    /// The PCI Express link; `None` for a device that is not on one.
    pub pcie: Fact<Option<Pcie>>,
    /// Receive and transmit queues with their CPUs.
    pub queues: Fact<Vec<Queue>>,
    /// Interrupts of the device.
    pub interrupts: Fact<Vec<Interrupt>>,
}

/// Kinds of interfaces that are made of others, and have the link-layer address of one of them.
const STACKED: [&str; 7] = [
    "vlan", "bond", "bridge", "team", "macvlan", "ipvlan", "macvtap",
];

impl Interface {
    /// The address by which it is found again: its own, else the one that it has.
    pub fn lasting_mac(&self) -> Option<&str> {
        self.permanent_mac.as_deref().or(self.mac.as_deref())
    }

    /// Whether it stands on other interfaces: a VLAN, a bond, a bridge, a macvlan …
    pub fn is_stacked(&self) -> bool {
        STACKED.contains(&self.kind.as_str())
    }
}

/// A bond's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bond {
    /// `802.3ad`, `active-backup` …
    pub mode: String,
    /// What its hash takes: `layer2`, `layer3+4` …
    pub hash: String,
}

/// A queueing discipline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qdisc {
    /// `fq`, `mq`, `pfifo_fast` …
    pub kind: String,
    /// Its number as tc writes it: `8001:`, `0:` for one that was never set.
    pub handle: String,
    /// The class that it hangs from: `root`, `:1` …
    pub parent: String,
    /// Whether packets wait in it and not in others below.
    pub leaf: bool,
    /// The rate of a token bucket, bit/s.
    pub rate_bps: Option<u64>,
    /// The greatest rate of a flow in fq, bit/s.
    pub flow_max_rate_bps: Option<u64>,
    /// Packets dropped.
    pub drops: u64,
}

/// An interface's counters since it was made (`struct rtnl_link_stats64`): all traffic, with Ethernet headers. Packets
/// are counted as they pass the device, so with offloads a large one may be one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkCounters {
    /// Received, Ethernet headers included.
    pub rx_bytes: u64,
    /// Bytes out.
    pub tx_bytes: u64,
    /// Received; merged ones (GRO in hardware) count once.
    pub rx_packets: u64,
    /// Packets out.
    pub tx_packets: u64,
    /// Bad packets in.
    pub rx_errors: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
    /// Packets in that the host dropped (no memory, no protocol, backlog full).
    pub rx_dropped: u64,
    /// Packets out that the host dropped.
    pub tx_dropped: u64,
    /// Packets that the device dropped because the host did not take them in time: for want of a descriptor.
    pub rx_missed: u64,
}

/// A driver and its device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// `ixgbe`, `virtio_net`, `veth` …
    pub name: String,
    /// Its version; mostly the kernel's.
    pub version: Option<String>,
    /// The device's firmware.
    pub firmware: Option<String>,
    /// Where the device is: `0000:3b:00.0`.
    pub bus: Option<String>,
}

/// A link as the device sees it. Speeds in Mbit/s.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Link {
    /// The speed now; absent where the device does not know (link down, virtual machines).
    pub speed_mbps: Option<u32>,
    /// `full`, `half`; absent for unknown.
    pub duplex: Option<String>,
    /// Whether the speed is negotiated.
    pub autonegotiation: Option<bool>,
    /// The best that the device can do; absent where it does not report modes.
    pub best_supported_mbps: Option<u32>,
    /// The best that it offers.
    pub best_advertised_mbps: Option<u32>,
    /// The best that the partner offers.
    pub best_partner_mbps: Option<u32>,
}

/// Descriptor rings, in descriptors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rings {
    /// Receive ring.
    pub rx: u32,
    /// Its maximum.
    pub rx_max: u32,
    /// Transmit ring.
    pub tx: u32,
    /// Its maximum.
    pub tx_max: u32,
}

/// Channels: queues with their interrupt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    /// Receive only.
    pub rx: u32,
    /// Their maximum.
    pub rx_max: u32,
    /// Transmit only.
    pub tx: u32,
    /// Their maximum.
    pub tx_max: u32,
    /// Both ways.
    pub combined: u32,
    /// Their maximum.
    pub combined_max: u32,
}

/// Interrupt coalescing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coalescing {
    /// Wait after a received packet, µs.
    pub rx_usecs: u32,
    /// Received packets that end the wait; 0 = no bound.
    pub rx_frames: u32,
    /// Wait after a sent packet, µs.
    pub tx_usecs: u32,
    /// Sent packets that end the wait; 0 = no bound.
    pub tx_frames: u32,
    /// Whether the driver chooses the receiving side's values.
    pub adaptive_rx: bool,
    /// Whether it chooses the sending side's.
    pub adaptive_tx: bool,
}

/// Ethernet flow control.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Whether it is negotiated.
    pub autonegotiation: bool,
    /// Whether the device stops for pause frames.
    pub rx: bool,
    /// Whether it sends them.
    pub tx: bool,
}

/// An offload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feature {
    /// Whether it is at work.
    pub on: bool,
    /// Whether it can be switched.
    pub fixed: bool,
}

/// A PCI Express link. Speeds in MT/s (million transfers a second).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pcie {
    /// Speed of a lane now.
    pub speed_mts: u32,
    /// Lanes now.
    pub width: u32,
    /// Speed that device and slot can do.
    pub max_speed_mts: u32,
    /// Lanes that the device has.
    pub max_width: u32,
}

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueSide {
    /// Receiving.
    Rx,
    /// Transmitting.
    Tx,
}

/// A queue of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Which way.
    pub side: QueueSide,
    /// Its number.
    pub index: u32,
    /// CPUs that its packets are steered to (RPS), or that send by it (XPS); empty = none set.
    pub cpus: Fact<CpuSet>,
}

/// An interrupt of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupt {
    /// As in the first column of `/proc/interrupts`.
    pub number: u32,
    /// Its name: `eth0-TxRx-3`.
    pub name: String,
    /// The number of its queue, the first of several; absent where kernel or driver do not tell (netdev's generic
    /// netlink, Linux 6.8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// CPUs that it may go to.
    pub allowed: Fact<CpuSet>,
    /// CPUs that it does go to.
    pub effective: Fact<CpuSet>,
    /// How often it came, all CPUs together.
    pub count: u64,
    /// The CPU that took most of them; absent where none came.
    pub busiest_cpu: Option<u32>,
}
