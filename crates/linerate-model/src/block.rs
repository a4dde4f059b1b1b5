//! Block devices: what they are, what they stand on, and what the kernel counts of them.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::plain_text::PlainText;
use crate::units::Bytes;

/// The kernel's number of a device: major and minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceNumber {
    /// Which driver; most are given out when a module is loaded.
    pub major: u32,
    /// Which of its devices.
    pub minor: u32,
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceNumber {
    type Err = ParseIntError;

    /// As it is printed: `253:2`.
    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (major, minor) = text.trim().split_once(':').unwrap_or((text, ""));
        Ok(Self {
            major: major.parse()?,
            minor: minor.parse()?,
        })
    }
}

/// A block device, as sysfs describes it (Documentation/ABI/stable/sysfs-block of the kernel).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDevice {
    /// The kernel's name: `sda1`, `dm-2`.
    pub name: PlainText,
    /// Its number.
    pub number: DeviceNumber,
    /// What it is.
    pub kind: BlockKind,
    /// Kernel names of the devices directly below: a partition's disk, an array's members, the paths of a multipath `NVMe`
    /// namespace. Empty for what has none that the kernel names.
    #[serde(default)]
    pub below: Vec<PlainText>,
    /// Its size; absent = not readable.
    pub size: Option<Bytes>,
    /// What the device calls itself; absent = it does not.
    #[serde(default)]
    pub model: Option<PlainText>,
    /// Whether it reports to have spindles. Virtual disks often report so without any.
    #[serde(default)]
    pub rotational: Option<bool>,
    /// Requests that a queue of it holds (`nr_requests`). What is made of other devices has none, though Linux before 6.5
    /// says 128.
    #[serde(default)]
    pub queue_requests: Option<u64>,
    /// Queues of its hardware (`mq`); absent = it has none of its own, or the kernel is older than blk-mq.
    #[serde(default)]
    pub hardware_queues: Option<u64>,
    /// Whether the block layer counts what it does (`queue/iostats`); absent = not known. Bio-based devices count by themselves.
    #[serde(default)]
    pub counted: Option<bool>,
    /// Whether it is a path below a multipath `NVMe` namespace, for which no device file exists.
    #[serde(default)]
    pub hidden: bool,
}

impl BlockDevice {
    /// Whether its counters stand still because counting is off (`queue/iostats`). Md and the device mapper, which have no
    /// queues of their own, count by themselves and say 0 on some kernels.
    pub fn is_uncounted(&self) -> bool {
        self.counted == Some(false) && self.hardware_queues.is_some()
    }

    /// Whether a path such as `/dev/sda` is one of its names: of a mapped device also `/dev/vg0/home` and
    /// `/dev/mapper/vg0-home`. Other links of udev are not known.
    pub fn goes_by(&self, path: &str) -> bool {
        path.strip_prefix("/dev/")
            .is_some_and(|name| self.is_named(name))
    }

    /// The same of a name below `/dev`.
    pub fn is_named(&self, name: &str) -> bool {
        if self.name == *name || self.name.replace('!', "/") == name {
            return true;
        }
        let BlockKind::Mapped { name: mapped, .. } = &self.kind else {
            return false;
        };
        let name = name.strip_prefix("mapper/").unwrap_or(name);
        // libdm doubles the hyphens of both names and joins them by one.
        let joined = name.split_once('/').map(|(group, volume)| {
            format!("{}-{}", group.replace('-', "--"), volume.replace('-', "--"))
        });
        *mapped == *name || joined.is_some_and(|joined| *mapped == *joined)
    }
}

/// What a block device is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum BlockKind {
    /// A disk, or what behaves like one: virtual, of a cloud, an `NVMe` namespace.
    Disk,
    /// A part of a disk.
    Partition {
        /// Its number.
        number: u32,
    },
    /// Linux software RAID (md).
    Md {
        /// `raid0`, `raid1`, `raid10`, `raid5`, `raid6`, `linear`.
        level: PlainText,
        /// As `md/layout` says it; for RAID10 near, far and offset copies (md(4)).
        layout: Option<u32>,
        /// How many members make it up.
        disks: Option<u32>,
        /// A stripe's part on one member; absent = it has none.
        chunk: Option<Bytes>,
        /// What it does beside its work, as `md/sync_action` says it: `resync`, `recover`, `check`; absent = nothing, or
        /// its level has no copies.
        #[serde(default)]
        doing: Option<PlainText>,
    },
    /// Made by the device mapper: LVM, dm-crypt, multipath.
    Mapped {
        /// Its name, where `--` stands for a hyphen: `vg0-home`.
        name: PlainText,
        /// Who made it for what, `LVM-` and others in front; empty = nobody said.
        uuid: PlainText,
        /// Its table; empty = not readable without root.
        #[serde(default)]
        table: Vec<MappedTarget>,
    },
    /// A file.
    Loop {
        /// Its path, where the kernel knows one.
        file: Option<PlainText>,
    },
    /// Replicated to another host.
    Drbd,
    /// An `NVMe` namespace that is reached by several controllers.
    NvmeMultipath,
    /// RAM, compressed or not: `zram0`, `ram0`.
    Memory,
    /// Something else that has no disk below it that this host knows: `nbd0`, `rbd0`.
    Network,
}

/// A line of a device-mapper table (Documentation/admin-guide/device-mapper), without addresses and keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedTarget {
    /// `linear`, `striped`, `mirror`, `raid`, `crypt`, `multipath`, `thin`, `cache` …
    pub target: PlainText,
    /// What it covers.
    pub size: Bytes,
    /// Of `raid`, its level with its layout: `raid1`, `raid5_ls`, `raid10`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raid: Option<PlainText>,
    /// Of `striped`, `mirror` and `raid`, how many devices make it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<u32>,
    /// Of a RAID10, how many copies of each byte there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<u32>,
}

/// A device's line of `/proc/diskstats` (Documentation/admin-guide/iostats.rst), counted since the device was there.
///
/// Requests are counted after merging. The times are 32-bit counters of ms, also on 64-bit kernels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskCounters {
    /// Reads.
    pub read: RequestCounters,
    /// Writes.
    pub write: RequestCounters,
    /// Discards; absent before Linux 4.18.
    pub discard: Option<RequestCounters>,
    /// Flushes, and the ms that they took, summed; absent before Linux 5.5 and for partitions.
    pub flush: Option<(u64, u32)>,
    /// Requests under way; below 0 where the kernel's sum over CPUs is off.
    pub in_flight: i64,
    /// Time with at least one request under way, ms. Sampled between Linux 5.0 and 6.9.
    pub busy_ms: u32,
    /// Time of all requests, summed, ms.
    pub weighted_ms: u32,
}

/// Requests of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounters {
    /// Requests that ended.
    pub ios: u64,
    /// Requests that joined another one before it was sent.
    pub merges: u64,
    /// Sectors of 512 bytes, whatever the device's own are.
    pub sectors: u64,
    /// Time that they took, summed, the scheduler's queue included, ms.
    pub ms: u32,
}

/// The unit of [`RequestCounters::sectors`].
pub const SECTOR: u64 = 512;
