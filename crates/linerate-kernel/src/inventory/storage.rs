//! A host's storage from files of sysfs and proc alone.
//!
//! No device is opened and no file system asked (`statfs`): a dead disk or NFS server keeps none of these reads waiting.

use std::collections::BTreeSet;

use linerate_model::block::{BlockDevice, BlockKind, SECTOR};
use linerate_model::host::{
    Array, BlockQueue, Fact, Mount, Scheduler, SpeedLimit, Storage, StorageDevice, WriteCache,
    Zoned,
};
use linerate_model::plain_text::PlainText;
use linerate_model::units::Bytes;

use super::blocks::of_btrfs;
use super::{Root, blocks};
use crate::mount_table;

/// Types of SCSI devices that are disks (`include/scsi/scsi_proto.h`): direct access, reduced block commands, zoned.
const SCSI_DISKS: [&str; 3] = ["0", "14", "20"];
/// Floppy disks (Documentation/admin-guide/devices.txt).
const FLOPPY: u32 = 2;

/// All that is known of a host's storage.
pub(super) fn read(root: &Root) -> Storage {
    let all = match blocks::devices(root) {
        Ok(all) => all,
        Err(why) => {
            return Storage {
                devices: Fact::unknown(why.clone()),
                mounts: Fact::unknown(why.clone()),
                swap: Fact::unknown(why),
            };
        }
    };
    let mounts = mounts(root, &all);
    let mounted: BTreeSet<&PlainText> = mounts
        .iter()
        .flatten()
        .flat_map(|mount| &mount.devices)
        .collect();
    let devices = all
        .iter()
        .filter(|one| is_storage(root, one, mounted.contains(&one.name)))
        .map(|one| describe(root, one))
        .collect();
    Storage {
        devices: Fact::Known(devices),
        swap: swap(root, &all).into(),
        mounts: mounts.into(),
    }
}

fn is_storage(root: &Root, device: &BlockDevice, mounted: bool) -> bool {
    let empty = device.size.is_some_and(|size| size.0 == 0);
    match device.kind {
        BlockKind::Loop { .. } | BlockKind::Memory => mounted,
        BlockKind::Disk => {
            let kind = root.word(&file(device, "device/type"));
            let other = kind.is_ok_and(|kind| !SCSI_DISKS.contains(&kind.as_str()));
            !empty && !other && device.number.major != FLOPPY
        }
        _ => !empty,
    }
}

fn file(device: &BlockDevice, file: &str) -> String {
    format!("/sys/class/block/{}/{file}", &*device.name)
}

fn describe(root: &Root, device: &BlockDevice) -> StorageDevice {
    let is_partition = matches!(device.kind, BlockKind::Partition { .. });
    let is_md = matches!(device.kind, BlockKind::Md { .. });
    let start = root.value::<u64>(&file(device, "start")).ok();
    let start = start.filter(|_| is_partition);
    StorageDevice {
        queue: if is_partition {
            BlockQueue::default()
        } else {
            queue(root, device)
        },
        alignment_offset: root.value(&file(device, "alignment_offset")).ok(),
        start: start
            .and_then(|sectors| sectors.checked_mul(SECTOR))
            .map(Bytes),
        array: is_md.then(|| array(root, device)),
        device: device.clone(),
    }
}

fn queue(root: &Root, device: &BlockDevice) -> BlockQueue {
    let word = |name: &str| root.word(&file(device, name)).ok();
    let number = |name: &str| root.value::<u64>(&file(device, name)).ok();
    // 0 is how the kernel says that a device states none.
    let size = |name: &str| number(name).filter(|bytes| *bytes > 0).map(Bytes);
    BlockQueue {
        scheduler: word("queue/scheduler").and_then(|text| scheduler(&text)),
        read_ahead_kib: number("queue/read_ahead_kb"),
        nomerges: root.value(&file(device, "queue/nomerges")).ok(),
        zoned: word("queue/zoned").and_then(|text| zoned(&text)),
        write_cache: word("queue/write_cache").and_then(|text| write_cache(&text)),
        disk_cache: disk_cache(root, device),
        minimum_io: size("queue/minimum_io_size"),
        optimal_io: size("queue/optimal_io_size"),
        physical_block: size("queue/physical_block_size"),
        largest_request_kib: number("queue/max_sectors_kb"),
        hardware_request_kib: number("queue/max_hw_sectors_kb"),
        depth: root.value(&file(device, "device/queue_depth")).ok(),
        controller_depth: controller_depth(root, device),
    }
}

/// `none [mq-deadline] kyber`: the one in use stands in brackets, or alone where there is one.
pub fn scheduler(text: &str) -> Option<Scheduler> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let bare = |word: &str| word.trim_matches(['[', ']']).to_owned();
    let chosen = match words.as_slice() {
        [one] => *one,
        _ => words.iter().find(|word| word.starts_with('['))?,
    };
    Some(Scheduler {
        chosen: bare(chosen).into(),
        offered: words.iter().map(|word| bare(word).into()).collect(),
    })
}

fn write_cache(text: &str) -> Option<WriteCache> {
    match text {
        "write back" => Some(WriteCache::WriteBack),
        "write through" => Some(WriteCache::WriteThrough),
        _ => None,
    }
}

fn zoned(text: &str) -> Option<Zoned> {
    match text {
        "none" => Some(Zoned::None),
        "host-aware" => Some(Zoned::HostAware),
        "host-managed" => Some(Zoned::HostManaged),
        _ => None,
    }
}

/// The words of `sd_cache_types` (drivers/scsi/sd.c); `none` is a cache for neither reads nor writes.
fn disk_cache(root: &Root, device: &BlockDevice) -> Option<WriteCache> {
    let folder = file(device, "device/scsi_disk");
    let address = root.names(&folder).into_iter().next()?;
    let text = root.word(&format!("{folder}/{address}/cache_type")).ok()?;
    match text.as_str() {
        "write back" | "write back, no read (daft)" => Some(WriteCache::WriteBack),
        "write through" | "none" => Some(WriteCache::WriteThrough),
        _ => None,
    }
}

/// What the SCSI host above the device takes: `…/host2/target2:0:0/2:0:0:0`.
fn controller_depth(root: &Root, device: &BlockDevice) -> Option<u32> {
    if !root.has(&file(device, "device/queue_depth")) {
        return None;
    }
    let target = root.target(&file(device, "device"))?;
    let (above, _) = target.split_once("/target")?;
    let host = above.rsplit('/').next()?;
    root.value(&format!("{above}/scsi_host/{host}/can_queue"))
        .ok()
}

fn array(root: &Root, device: &BlockDevice) -> Array {
    let word = |name: &str| root.word(&file(device, &format!("md/{name}"))).ok();
    let plain = |name: &str| word(name).map(PlainText::from);
    let number = |name: &str| word(name)?.parse::<u64>().ok();
    let limit = |name: &str| word(name).and_then(|text| limit(&text));
    Array {
        degraded: word("degraded").and_then(|text| text.parse().ok()),
        sync_action: plain("sync_action"),
        // `none` while nothing is synchronised.
        sync_speed_kib: number("sync_speed"),
        sync_speed_min: limit("sync_speed_min"),
        sync_speed_max: limit("sync_speed_max"),
        mismatches: number("mismatch_cnt"),
        stripe_cache_size: number("stripe_cache_size"),
        bitmap: plain("bitmap/location"),
        consistency_policy: plain("consistency_policy"),
    }
}

/// `200000 (system)`, `50000 (local)` (`sync_min_show` of drivers/md/md.c).
fn limit(text: &str) -> Option<SpeedLimit> {
    let (number, whose) = text.split_once(' ')?;
    Some(SpeedLimit {
        kib: number.parse().ok()?,
        of_system: whose == "(system)",
    })
}

fn named<'a>(source: &str, all: &'a [BlockDevice]) -> Option<&'a BlockDevice> {
    all.iter().find(|one| one.goes_by(source))
}

fn swap(root: &Root, all: &[BlockDevice]) -> Result<Vec<PlainText>, String> {
    let text = root.text("/proc/swaps")?;
    let sources = text.lines().skip(1);
    let sources = sources.filter_map(|line| line.split_ascii_whitespace().next());
    Ok(sources
        .filter_map(|source| named(source, all))
        .map(|device| device.name.clone())
        .collect())
}

fn mounts(root: &Root, all: &[BlockDevice]) -> Result<Vec<Mount>, String> {
    let lines = mount_table::below(root)?;
    let arrays = of_btrfs(root);
    let mut found: Vec<(bool, Mount)> = Vec::new();
    for line in lines {
        let by_number = all
            .iter()
            .find(|one| !one.hidden && one.number == line.device);
        // btrfs has a number of its own for each subvolume.
        let by_source = || named(&line.source, all).filter(|_| line.kind == "btrfs");
        let Some(device) = by_number.or_else(by_source) else {
            continue;
        };
        let together = arrays.iter().find(|names| names.contains(&device.name));
        let devices = together
            .cloned()
            .unwrap_or_else(|| vec![device.name.clone()]);
        let whole = line.shown == "/";
        let ext4 = root.text(&format!("/proc/fs/ext4/{}/options", &*device.name));
        let mount = Mount {
            place: line.mounted_on.into(),
            file_system: line.kind.into(),
            ext4: ext4
                .ok()
                .map(|text| text.lines().map(PlainText::from).collect()),
            devices,
            options: line.options.into_iter().map(PlainText::from).collect(),
        };
        let same = found
            .iter_mut()
            .find(|(_, other)| other.devices == mount.devices);
        match same {
            Some(other) if whole && !other.0 => *other = (whole, mount),
            Some(_) => {}
            None => found.push((whole, mount)),
        }
    }
    Ok(found.into_iter().map(|(_, mount)| mount).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn put(folder: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    /// A RAID10 of four disks behind a SCSI host, with an ext4 and a CD drive beside it.
    fn host(folder: &Path) {
        let scsi = "sys/devices/pci0000:00/host0";
        let mut files = vec![
            (format!("{scsi}/scsi_host/host0/can_queue"), "31\n"),
            ("sys/fs/btrfs/features/x".to_owned(), ""),
            (
                "proc/swaps".to_owned(),
                "Filename\tType\n/dev/sda1 partition 1 0 -2\n/swapfile file 1 0 -3\n",
            ),
            (
                "proc/self/mountinfo".to_owned(),
                "22 27 0:21 / /proc rw - proc proc rw\n\
                 28 27 9:0 /sub /bound rw - ext4 /dev/md0 rw,stripe=64\n\
                 27 1 9:0 / /srv/a\\040b rw,relatime shared:1 - ext4 /dev/md0 rw,stripe=64\n\
                 29 27 0:40 / /far rw - nfs4 dead:/x rw,hard\n",
            ),
            ("proc/fs/ext4/md0/options".to_owned(), "rw\ncommit=5\n"),
            ("sys/class/block/md0/dev".to_owned(), "9:0\n"),
            ("sys/class/block/md0/size".to_owned(), "4000\n"),
            ("sys/class/block/md0/md/level".to_owned(), "raid10\n"),
            ("sys/class/block/md0/md/degraded".to_owned(), "0\n"),
            ("sys/class/block/md0/md/sync_speed".to_owned(), "none\n"),
            (
                "sys/class/block/md0/md/sync_speed_max".to_owned(),
                "200000 (system)\n",
            ),
            (
                "sys/class/block/md0/queue/minimum_io_size".to_owned(),
                "65536\n",
            ),
            (
                "sys/class/block/md0/queue/optimal_io_size".to_owned(),
                "0\n",
            ),
        ];
        for (number, (name, kind)) in [("sda", "0"), ("sr0", "5")].into_iter().enumerate() {
            let device = format!("{scsi}/target0:0:{number}/0:0:{number}:0");
            let block = format!("{device}/block/{name}");
            files.extend([
                (format!("{device}/type"), kind),
                (format!("{device}/queue_depth"), "1\n"),
                (
                    format!("{block}/dev"),
                    if number == 0 { "8:0" } else { "11:0" },
                ),
                (format!("{block}/size"), "5000\n"),
                (
                    format!("{block}/queue/scheduler"),
                    "none [mq-deadline] bfq\n",
                ),
                (format!("{block}/queue/write_cache"), "write through\n"),
                (format!("{block}/queue/zoned"), "host-managed\n"),
            ]);
        }
        files.extend([
            (
                format!("{scsi}/target0:0:0/0:0:0:0/scsi_disk/0:0:0:0/cache_type"),
                "write back\n",
            ),
            (
                format!("{scsi}/target0:0:0/0:0:0:0/block/sda/sda1/partition"),
                "1\n",
            ),
            (
                format!("{scsi}/target0:0:0/0:0:0:0/block/sda/sda1/start"),
                "63\n",
            ),
            (
                format!("{scsi}/target0:0:0/0:0:0:0/block/sda/sda1/size"),
                "100\n",
            ),
            (
                format!("{scsi}/target0:0:0/0:0:0:0/block/sda/sda1/dev"),
                "8:1\n",
            ),
            (
                format!("{scsi}/target0:0:0/0:0:0:0/block/sda/sda1/alignment_offset"),
                "-1\n",
            ),
        ]);
        for (path, text) in &files {
            put(folder, &[(path, text)]);
        }
        let class = folder.join("sys/class/block");
        for (number, name) in [(0, "sda"), (1, "sr0")] {
            let device =
                format!("../../devices/pci0000:00/host0/target0:0:{number}/0:0:{number}:0");
            let block = format!("{device}/block/{name}");
            symlink(&block, class.join(name)).unwrap();
            symlink("../..", class.join(name).join("device")).unwrap();
            if number == 0 {
                symlink(format!("{block}/sda1"), class.join("sda1")).unwrap();
            }
        }
    }

    #[test]
    fn a_copied_host_shows_its_disks_arrays_and_mounts() {
        let folder = tempfile::tempdir().unwrap();
        host(folder.path());
        let storage = read(&Root::at(folder.path()).unwrap());
        let names: Vec<String> = storage
            .devices
            .known()
            .unwrap()
            .iter()
            .map(|one| one.device.name.to_string())
            .collect();
        // The CD drive is no storage.
        assert_eq!(names, ["sda", "sda1", "md0"]);
        let disk = storage.device("sda").unwrap();
        assert_eq!(
            (disk.queue.depth, disk.queue.controller_depth),
            (Some(1), Some(31))
        );
        // The kernel was told otherwise than the disk says.
        assert_eq!(disk.queue.write_cache, Some(WriteCache::WriteThrough));
        assert_eq!(disk.queue.disk_cache, Some(WriteCache::WriteBack));
        assert_eq!(disk.queue.zoned, Some(Zoned::HostManaged));
        let scheduler = disk.queue.scheduler.as_ref().unwrap();
        assert_eq!(
            (&*scheduler.chosen, scheduler.offered.len()),
            ("mq-deadline", 3)
        );
        let part = storage.device("sda1").unwrap();
        assert_eq!(
            (part.start, part.alignment_offset),
            (Some(Bytes(32_256)), Some(-1))
        );
        let md = storage.device("md0").unwrap();
        let array = md.array.as_ref().unwrap();
        let most = array.sync_speed_max.unwrap();
        assert_eq!(
            (array.degraded, array.sync_speed_kib, most.kib),
            (Some(0), None, 200_000)
        );
        assert!(most.of_system && array.stripe_cache_size.is_none());
        assert_eq!((md.queue.zoned, md.queue.disk_cache), (None, None));
        // 0 is no size, and a missing file no 0.
        assert_eq!((md.queue.optimal_io, md.queue.read_ahead_kib), (None, None));
        let mounts = storage.mounts.known().unwrap();
        assert_eq!(mounts.len(), 1, "{mounts:?}");
        assert_eq!(&*mounts[0].place, "/srv/a b");
        assert_eq!(mounts[0].number("stripe"), Some(64));
        assert_eq!(mounts[0].number("commit"), Some(5));
        assert_eq!(storage.swap.known().unwrap()[0], "sda1");
    }

    #[test]
    fn a_host_without_sysfs_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let storage = read(&Root::at(folder.path()).unwrap());
        assert_eq!(storage.devices.why(), "there is no /sys/class/block");
        assert!(storage.mounts.known().is_none());
    }

    #[test]
    fn btrfs_is_found_by_its_source_with_all_its_devices() {
        let folder = tempfile::tempdir().unwrap();
        put(
            folder.path(),
            &[
                ("sys/class/block/sda/dev", "8:0"),
                ("sys/class/block/sda/size", "8"),
                ("sys/class/block/sdb/dev", "8:16"),
                ("sys/class/block/sdb/size", "8"),
                ("sys/fs/btrfs/u/devices/sda", ""),
                ("sys/fs/btrfs/u/devices/sdb", ""),
                (
                    "proc/self/mountinfo",
                    "27 1 0:33 /@ / rw - btrfs /dev/sda rw,nobarrier\n\
                     28 1 0:34 /@home /home rw - btrfs /dev/sda rw,nobarrier\n",
                ),
            ],
        );
        let storage = read(&Root::at(folder.path()).unwrap());
        let mounts = storage.mounts.known().unwrap();
        assert_eq!(mounts.len(), 1, "{mounts:?}");
        assert_eq!(mounts[0].devices, ["sda", "sdb"]);
        assert!(mounts[0].has("nobarrier"));
    }

    #[test]
    fn a_scheduler_is_chosen_from_those_that_are_there() {
        assert_eq!(scheduler("none").unwrap().chosen, "none");
        assert!(scheduler("none mq-deadline").is_none());
        assert!(limit("200000").is_none());
    }
}
