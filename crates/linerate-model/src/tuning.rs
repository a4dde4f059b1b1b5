//! A plan to change a host's settings: each with its value now, the one that is wanted, the risk, and who else
//! sets it. A plan changes nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::audit::Risk;

/// The version of [`TuningPlan`] as a document.
pub const SCHEMA_VERSION: u32 = 1;

/// Something of a host that has a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Object {
    /// A setting of the kernel.
    Sysctl {
        /// Its key with dots.
        key: String,
    },
    /// A setting of an interface.
    Interface {
        /// Its name.
        interface: String,
        /// Which setting.
        setting: InterfaceSetting,
    },
    /// The frequency governor of all CPUs.
    Governor,
    /// A setting of a block device.
    Block {
        /// Its kernel name: `sda`, `md0`, `dm-2`.
        device: String,
        /// Which setting.
        setting: BlockSetting,
    },
}

/// What files of sysfs set on a block device (Documentation/ABI/stable/sysfs-block, Documentation/admin-guide/md.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockSetting {
    /// The scheduler of requests. Setting it gives `nr_requests` another value.
    Scheduler,
    /// Requests that the queue holds.
    NrRequests,
    /// Read-ahead, KiB.
    ReadAheadKb,
    /// KiB/s that a synchronisation of md keeps under load, or `system`.
    SyncSpeedMin,
    /// KiB/s that a synchronisation of md never exceeds, or `system`.
    SyncSpeedMax,
}

impl BlockSetting {
    /// All of them with the keys that profiles give them, in the order in which they are applied.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Scheduler, "scheduler"),
        (Self::NrRequests, "nr_requests"),
        (Self::ReadAheadKb, "read_ahead_kb"),
        (Self::SyncSpeedMin, "sync_speed_min"),
        (Self::SyncSpeedMax, "sync_speed_max"),
    ];

    /// The key that profiles give it.
    pub fn key(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(each, _)| *each == self)
            .map_or("", |(_, key)| key)
    }

    /// Its file below the folder of the device.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Scheduler => "queue/scheduler",
            Self::NrRequests => "queue/nr_requests",
            Self::ReadAheadKb => "queue/read_ahead_kb",
            Self::SyncSpeedMin => "md/sync_speed_min",
            Self::SyncSpeedMax => "md/sync_speed_max",
        }
    }
}

/// What `ip link`, `tc` and `ethtool` set on an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterfaceSetting {
    /// Largest packet, bytes.
    Mtu,
    /// Length of the transmit queue, packets.
    Txqueuelen,
    /// The discipline of every leaf.
    Qdisc,
    /// Receive ring, descriptors.
    RxRing,
    /// Transmit ring, descriptors.
    TxRing,
    /// Combined channels.
    Channels,
    /// Whether the driver adapts the wait of interrupts.
    AdaptiveRx,
    /// Wait of an interrupt, µs.
    RxUsecs,
    /// TCP segmentation by the device.
    Tso,
    /// Segmentation below the stack.
    Gso,
    /// Merging of received packets.
    Gro,
    /// Merging by the device.
    Lro,
    /// CPUs that received packets are handed to, the same for each receive queue (RPS).
    RpsCpus,
    /// CPUs that send by the transmit queues, each by one of them (XPS).
    XpsCpus,
    /// CPUs that the interrupts of the queues go to, one a queue, in turn.
    IrqCpus,
}

impl InterfaceSetting {
    /// All of them with the keys that profiles give them, in the order in which they are applied.
    pub const ALL: [(Self, &'static str); 15] = [
        (Self::Txqueuelen, "txqueuelen"),
        (Self::AdaptiveRx, "adaptive_rx"),
        (Self::RxUsecs, "rx_usecs"),
        (Self::Tso, "tso"),
        (Self::Gso, "gso"),
        (Self::Gro, "gro"),
        (Self::Lro, "lro"),
        (Self::RxRing, "rx_ring"),
        (Self::TxRing, "tx_ring"),
        (Self::Channels, "channels"),
        // What is set for each queue comes after the number of queues.
        (Self::Qdisc, "qdisc"),
        (Self::RpsCpus, "rps_cpus"),
        (Self::XpsCpus, "xps_cpus"),
        (Self::IrqCpus, "irq_cpus"),
        (Self::Mtu, "mtu"),
    ];

    /// The key that profiles give it.
    pub fn key(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(each, _)| *each == self)
            .map_or("", |(_, key)| key)
    }

    /// Whether it is set queue by queue, so that another number of queues undoes it.
    pub const fn is_per_queue(self) -> bool {
        matches!(
            self,
            Self::Qdisc | Self::RpsCpus | Self::XpsCpus | Self::IrqCpus
        )
    }

    /// What setting it may cost.
    pub const fn risk(self) -> Risk {
        match self {
            Self::Txqueuelen
            | Self::AdaptiveRx
            | Self::RxUsecs
            | Self::RpsCpus
            | Self::XpsCpus
            | Self::IrqCpus => Risk::None,
            Self::Qdisc | Self::Tso | Self::Gso | Self::Gro | Self::Lro => Risk::QueueReset,
            // Most drivers take their link down to make rings, queues and buffers anew.
            Self::RxRing | Self::TxRing | Self::Channels | Self::Mtu => Risk::LinkFlap,
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sysctl { key } => f.write_str(key),
            Self::Interface { interface, setting } => {
                write!(f, "{} of {interface}", setting.key())
            }
            Self::Governor => f.write_str("governor"),
            Self::Block { device, setting } => write!(f, "{} of {device}", setting.key()),
        }
    }
}

/// A change of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What is changed.
    pub object: Object,
    /// Its value now.
    pub now: String,
    /// The value that is wanted.
    pub wanted: String,
    /// What it may cost.
    pub risk: Risk,
    /// Who else sets it: files with their lines, programs that run. Empty = nobody.
    pub owners: Vec<String>,
    /// The programs among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    /// What an audit says of the wish: dead, harmful, below the kernel's default.
    pub warnings: Vec<String>,
    /// Where the wish is from: `profile.toml:7`, `T01` of the audit.
    pub from: String,
}

/// A wish that the host cannot be given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What was to be changed.
    pub object: Object,
    /// The value that was wanted.
    pub wanted: String,
    /// Where the wish is from.
    pub from: String,
    /// Why not, and what to do.
    pub why: String,
}

/// What would be changed, in which order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuningPlan {
    /// Format of this document: [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Changes in the order in which they would be applied: without risk first, an interface before what stands on it.
    pub steps: Vec<Step>,
    /// Wishes that are so already.
    pub fulfilled: Vec<Object>,
    /// Wishes that the host cannot be given. A plan with one of them must not be applied.
    pub refused: Vec<Refusal>,
}
