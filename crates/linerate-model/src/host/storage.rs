//! A host's storage: its block devices with their queues, arrays of md, and what is mounted from them.

use serde::{Deserialize, Serialize};

use super::Fact;
use crate::block::{BlockDevice, BlockKind};
use crate::plain_text::PlainText;
use crate::units::Bytes;

/// What stores a host's data, as sysfs and proc describe it. No device is opened and no file system asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Storage {
    /// Devices with a size, by number. Loop devices and RAM are there where a file system of theirs is mounted.
    pub devices: Fact<Vec<StorageDevice>>,
    /// File systems on these devices, each once however often it is mounted.
    pub mounts: Fact<Vec<Mount>>,
    /// Devices that hold swap space, by kernel name (`/proc/swaps`).
    pub swap: Fact<Vec<PlainText>>,
}

/// A block device with the settings of its queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageDevice {
    /// What it is and what it stands on.
    #[serde(flatten)]
    pub device: BlockDevice,
    /// Settings and limits of its queue; all absent for partitions, which use their disk's.
    #[serde(default)]
    pub queue: BlockQueue,
    /// Bytes by which its start misses a boundary of the physical blocks below (`alignment_offset`); −1 where the
    /// parts of a stacked device contradict each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alignment_offset: Option<i64>,
    /// Where a partition starts on its disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Bytes>,
    /// What md knows of it; absent for what is no array of md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Array>,
}

/// Settings and limits of a device's queue (Documentation/ABI/stable/sysfs-block). What a kernel or a kind of device
/// has not is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockQueue {
    /// The scheduler of requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Scheduler>,
    /// Read-ahead, KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ahead_kib: Option<u64>,
    /// 0 merges requests, 1 only with the last one, 2 never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nomerges: Option<u8>,
    /// Whether zones of it take writes only in order (`queue/zoned`, since Linux 4.10).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zoned: Option<Zoned>,
    /// Whether the kernel takes the device's cache for a volatile one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<WriteCache>,
    /// What a SCSI or SATA disk says of its own cache (`device/scsi_disk/*/cache_type`), whatever the kernel was told
    /// to take it for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_cache: Option<WriteCache>,
    /// Smallest request without a penalty: a physical block, or an array's chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_io: Option<Bytes>,
    /// Preferred size of a sustained request: an array's stripe. Absent = the device states none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimal_io: Option<Bytes>,
    /// What the device writes at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub physical_block: Option<Bytes>,
    /// The largest request, KiB (`max_sectors_kb`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_request_kib: Option<u64>,
    /// The largest that the device takes, KiB (`max_hw_sectors_kb`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_request_kib: Option<u64>,
    /// Commands that a SCSI or SATA device is given at once (`device/queue_depth`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Commands that its controller takes at once (`scsi_host/can_queue`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller_depth: Option<u32>,
}

/// Which request goes to the device next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduler {
    /// The one in use: `none`, `mq-deadline`, `kyber`, `bfq`; `noop`, `deadline`, `cfq` before Linux 5.0.
    pub chosen: PlainText,
    /// All that this kernel has for the device now; further ones may be modules.
    pub offered: Vec<PlainText>,
}

/// Whether a device has zones that are written from their start on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Zoned {
    /// It has none.
    None,
    /// It takes other writes too, slowly.
    HostAware,
    /// It refuses other writes.
    HostManaged,
}

/// What the kernel does about a device's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteCache {
    /// It sends flushes: the cache loses its data with the power.
    WriteBack,
    /// It sends none.
    WriteThrough,
}

/// An array of md (Documentation/admin-guide/md.rst). What a level has not is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Array {
    /// Members that are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degraded: Option<u32>,
    /// `idle`, `resync`, `recover`, `reshape`, `check`, `repair`, `frozen`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_action: Option<PlainText>,
    /// KiB/s of the last half minute; absent while nothing is synchronised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_speed_kib: Option<u64>,
    /// KiB/s that a synchronisation keeps while others use the members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_speed_min: Option<SpeedLimit>,
    /// KiB/s that a synchronisation never exceeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_speed_max: Option<SpeedLimit>,
    /// Sectors that differed between members at the last check or repair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mismatches: Option<u64>,
    /// Stripes that RAID 4, 5 and 6 keep in memory, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stripe_cache_size: Option<u64>,
    /// Where the write-intent bitmap is: `none`, `+8` (sectors from the superblock), a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bitmap: Option<PlainText>,
    /// What makes it consistent after a power cut: `none`, `resync`, `bitmap`, `journal`, `ppl`. Since Linux 4.12.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consistency_policy: Option<PlainText>,
}

/// A limit of md's synchronisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpeedLimit {
    /// KiB/s.
    pub kib: u64,
    /// Whether it is `dev.raid.speed_limit_*`, and not this array's own.
    pub of_system: bool,
}

/// A file system that is mounted from block devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where; of several places the first that shows the whole file system.
    pub place: PlainText,
    /// `ext4`, `xfs`, `btrfs` …
    pub file_system: PlainText,
    /// Kernel names of its devices: several with btrfs alone.
    pub devices: Vec<PlainText>,
    /// Options of the place and of the file system, as `/proc/self/mountinfo` has them: what is default is left out.
    pub options: Vec<PlainText>,
    /// All options of ext4 with their values, the defaults too (`/proc/fs/ext4/DEVICE/options`); absent for others, and
    /// where it is not readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ext4: Option<Vec<PlainText>>,
}

impl Storage {
    /// The device of this kernel name.
    pub fn device(&self, name: &str) -> Option<&StorageDevice> {
        let mut all = self.devices.known().into_iter().flatten();
        all.find(|one| *one.device.name == *name)
    }

    /// The device of this name and all that it stands on, at whatever depth, each once.
    pub fn stack<'a>(&'a self, name: &str) -> Vec<&'a StorageDevice> {
        let mut found: Vec<&StorageDevice> = self.device(name).into_iter().collect();
        let mut at = 0;
        // Each device is added once, so that a ring of them ends too.
        while let Some(one) = found.get(at).copied() {
            for below in &one.device.below {
                let known = found.iter().any(|other| other.device.name == *below);
                found.extend(self.device(below).filter(|_| !known));
            }
            at += 1;
        }
        found
    }
}

impl StorageDevice {
    /// Whether it is an `NVMe` namespace, or a path to one.
    pub fn is_nvme(&self) -> bool {
        self.device.name.starts_with("nvme") && !self.is_partition()
    }

    /// Whether it is a part of a disk.
    pub const fn is_partition(&self) -> bool {
        matches!(self.device.kind, BlockKind::Partition { .. })
    }

    /// md's level, where it is an array of md.
    pub fn level(&self) -> Option<&str> {
        match &self.device.kind {
            BlockKind::Md { level, .. } => Some(level),
            _ => None,
        }
    }

    /// Chunk and stripe, where the device states two that go together: the stripe is several whole chunks.
    pub fn stripe(&self) -> Option<(Bytes, Bytes)> {
        let (chunk, stripe) = (self.queue.minimum_io?, self.queue.optimal_io?);
        let whole = chunk.0 > 0 && stripe.0 > chunk.0 && stripe.0 % chunk.0 == 0;
        (whole && stripe != NO_STRIPE).then_some((chunk, stripe))
    }
}

/// What firmware without a preferred size states: the most blocks that the field of SCSI's VPD page B0 in older devices
/// holds, 65535 of 512 bytes.
pub const NO_STRIPE: Bytes = Bytes(65_535 * 512);

impl Mount {
    /// Whether an option without value is in force.
    pub fn has(&self, option: &str) -> bool {
        self.all().any(|one| **one == *option)
    }

    /// The value of an option.
    pub fn value(&self, option: &str) -> Option<&str> {
        self.all()
            .filter_map(|one| one.split_once('='))
            .find(|(name, _)| *name == option)
            .map(|(_, value)| value)
    }

    /// A number that an option has; 0 where ext4 says so.
    pub fn number(&self, option: &str) -> Option<u64> {
        self.value(option)?.parse().ok()
    }

    fn all(&self) -> impl Iterator<Item = &PlainText> {
        self.ext4.iter().flatten().chain(&self.options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, below: &[&str]) -> StorageDevice {
        let text = serde_json::json!({
            "name": name, "number": {"major": 8, "minor": 0}, "kind": {"is": "disk"}, "below": below, "size": 1,
        });
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn a_stack_is_walked_to_its_ground_and_a_ring_once() {
        let storage = Storage {
            devices: Fact::Known(vec![
                device("sda", &[]),
                device("md0", &["sda", "sdb"]),
                device("dm-0", &["md0", "dm-1"]),
                device("dm-1", &["dm-0"]),
            ]),
            ..Storage::default()
        };
        let names = |name: &str| -> Vec<String> {
            let stack = storage.stack(name);
            stack
                .iter()
                .map(|one| one.device.name.to_string())
                .collect()
        };
        assert_eq!(names("dm-0"), ["dm-0", "md0", "dm-1", "sda"]);
        assert_eq!(names("sdx"), Vec::<String>::new());
    }

    #[test]
    fn a_stripe_is_several_whole_chunks() {
        let stripe = |minimum: u64, optimal: u64| {
            let mut one = device("md0", &[]);
            one.queue.minimum_io = Some(Bytes(minimum));
            one.queue.optimal_io = Some(Bytes(optimal)).filter(|bytes| bytes.0 > 0);
            one.stripe().is_some()
        };
        assert!(stripe(65_536, 262_144));
        for (minimum, optimal) in [
            (4096, 0),
            (4096, 4096),
            (4096, 100_000),
            (0, 4096),
            (512, 33_553_920),
        ] {
            assert!(!stripe(minimum, optimal), "{minimum} {optimal}");
        }
    }

    #[test]
    fn facts_of_storage_survive_json() {
        let mut one = device("sda", &[]);
        one.queue.write_cache = Some(WriteCache::WriteBack);
        one.array = Some(Array::default());
        let text = serde_json::to_string(&one).unwrap();
        assert!(text.contains(r#""write_cache":"write_back""#), "{text}");
        assert_eq!(serde_json::from_str::<StorageDevice>(&text).unwrap(), one);
    }
}
