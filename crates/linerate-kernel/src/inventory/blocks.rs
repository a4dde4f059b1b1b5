//! Block devices by sysfs, and what the kernel counts of them.

use std::str::FromStr;

use linerate_model::block::{
    BlockDevice, BlockKind, DeviceNumber, DiskCounters, RequestCounters, SECTOR,
};
use linerate_model::plain_text::PlainText;
use linerate_model::units::Bytes;

use super::Root;

const FOLDER: &str = "/sys/class/block";
/// Majors of the kernel's list that no driver gives out anew (Documentation/admin-guide/devices.txt).
const RAM: u32 = 1;

/// All block devices with what is known of each, in the order of their numbers.
///
/// # Errors
/// Where sysfs is not mounted.
pub fn devices(root: &Root) -> Result<Vec<BlockDevice>, String> {
    if !root.has(FOLDER) {
        return Err(format!("there is no {FOLDER}"));
    }
    let names = root.names(FOLDER);
    let mut devices: Vec<BlockDevice> = names
        .iter()
        .filter_map(|name| device(root, name, &names))
        .collect();
    join_paths(&mut devices);
    devices.sort_by_key(|device| device.number);
    Ok(devices)
}

fn device(root: &Root, name: &str, all: &[String]) -> Option<BlockDevice> {
    let of = |file: &str| format!("{FOLDER}/{name}/{file}");
    let word = |file: &str| root.word(&of(file)).ok();
    let hidden = word("hidden").as_deref() == Some("1");
    // A hidden path has a number of 0:0, or none.
    let number = word("dev").and_then(|text| text.parse().ok());
    let number = number.or_else(|| hidden.then_some(DeviceNumber { major: 0, minor: 0 }))?;
    let mut below: Vec<PlainText> = root
        .names(&of("slaves"))
        .iter()
        .map(|name| name.as_str().into())
        .collect();
    let kind = kind(root, name, number, all);
    if let BlockKind::Partition { .. } = kind {
        below.extend(disk_of(root, name).map(PlainText::from));
    }
    below.sort();
    Some(BlockDevice {
        name: name.into(),
        number,
        kind,
        below,
        size: root
            .value::<u64>(&of("size"))
            .ok()
            .and_then(|sectors| sectors.checked_mul(SECTOR))
            .map(Bytes),
        model: word("device/model").map(|text| text.trim().into()),
        rotational: word("queue/rotational").map(|text| text == "1"),
        queue_requests: root.value(&of("queue/nr_requests")).ok(),
        hardware_queues: u64::try_from(root.names(&of("mq")).len())
            .ok()
            .filter(|queues| *queues > 0),
        counted: word("queue/iostats").map(|text| text != "0"),
        hidden,
    })
}

fn kind(root: &Root, name: &str, number: DeviceNumber, all: &[String]) -> BlockKind {
    let of = |file: &str| format!("{FOLDER}/{name}/{file}");
    let word = |file: &str| root.word(&of(file)).ok();
    if let Ok(number) = root.value(&of("partition")) {
        return BlockKind::Partition { number };
    }
    if let Some(level) = word("md/level") {
        return BlockKind::Md {
            level: level.into(),
            layout: root.value(&of("md/layout")).ok(),
            disks: root.value(&of("md/raid_disks")).ok(),
            chunk: root
                .value(&of("md/chunk_size"))
                .ok()
                .filter(|bytes| *bytes > 0)
                .map(Bytes),
            doing: word("md/sync_action")
                .filter(|action| action != "idle")
                .map(PlainText::from),
        };
    }
    if let Some(mapped) = word("dm/name") {
        return BlockKind::Mapped {
            name: mapped.into(),
            uuid: word("dm/uuid").unwrap_or_default().into(),
            table: Vec::new(),
        };
    }
    let driver = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    match driver {
        "loop" => BlockKind::Loop {
            file: word("loop/backing_file").map(PlainText::from),
        },
        "drbd" => BlockKind::Drbd,
        "zram" | "pmem" => BlockKind::Memory,
        _ if number.major == RAM => BlockKind::Memory,
        "nbd" | "rbd" => BlockKind::Network,
        _ if all
            .iter()
            .any(|other| path_of(other).as_deref() == Some(name)) =>
        {
            BlockKind::NvmeMultipath
        }
        _ => BlockKind::Disk,
    }
}

/// The disk of a partition: the folder that its folder is in.
fn disk_of(root: &Root, name: &str) -> Option<String> {
    let target = root.target(&format!("{FOLDER}/{name}"))?;
    let above = target.rsplit('/').nth(1)?;
    root.has(&format!("{FOLDER}/{above}")).then(|| above.into())
}

/// The namespace that a path leads to: `nvme0n1` for `nvme0c1n1` (drivers/nvme/host/multipath.c).
fn path_of(name: &str) -> Option<String> {
    let rest = name.strip_prefix("nvme")?;
    let (subsystem, rest) = rest.split_once('c')?;
    let (controller, namespace) = rest.split_once('n')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(subsystem) && digits(controller) && digits(namespace))
        .then(|| format!("nvme{subsystem}n{namespace}"))
}

fn join_paths(devices: &mut [BlockDevice]) {
    let paths: Vec<(String, PlainText)> = devices
        .iter()
        .filter_map(|device| Some((path_of(&device.name)?, device.name.clone())))
        .collect();
    for device in devices {
        let its = paths.iter().filter(|(head, _)| *head == *device.name);
        device.below.extend(its.map(|(_, path)| path.clone()));
    }
}

/// The kernel's names of the devices of each mounted btrfs.
pub fn of_btrfs(root: &Root) -> Vec<Vec<PlainText>> {
    const BTRFS: &str = "/sys/fs/btrfs";
    let systems = root.names(BTRFS).into_iter();
    let devices = systems.map(|id| {
        let names = root.names(&format!("{BTRFS}/{id}/devices"));
        names.iter().map(|name| name.as_str().into()).collect()
    });
    devices
        .filter(|its: &Vec<PlainText>| !its.is_empty())
        .collect()
}

/// What the kernel counts of each device, from `/proc/diskstats`.
///
/// # Errors
/// Where it cannot be read. Lines of another layout are left out.
pub fn counters(root: &Root) -> Result<Vec<(PlainText, DiskCounters)>, String> {
    let text = root.text("/proc/diskstats")?;
    Ok(text.lines().filter_map(line_of_counters).collect())
}

/// A line of `/proc/diskstats`: 11 fields behind the name, 15 from 4.18, 17 from 5.5 on; newer kernels may add more.
fn line_of_counters(line: &str) -> Option<(PlainText, DiskCounters)> {
    let mut words = line.split_ascii_whitespace();
    let _ = (words.next()?, words.next()?);
    let name = words.next()?;
    let words: Vec<&str> = words.collect();
    let number = |at: usize| words.get(at).and_then(|word| u64::from_str(word).ok());
    // The kernel prints them with 32 bits, or with 64 where it keeps more: both wrap alike in their low half.
    let milliseconds = |at: usize| number(at).map(low_half);
    let requests = |at: usize| {
        Some(RequestCounters {
            ios: number(at)?,
            merges: number(at + 1)?,
            sectors: number(at + 2)?,
            ms: milliseconds(at + 3)?,
        })
    };
    let counters = DiskCounters {
        read: requests(0)?,
        write: requests(4)?,
        in_flight: words.get(8)?.parse().ok()?,
        busy_ms: milliseconds(9)?,
        weighted_ms: milliseconds(10)?,
        discard: requests(11),
        flush: number(15).zip(milliseconds(16)),
    };
    // As sysfs has it: diskstats writes `cciss/c0d0`.
    Some((name.replace('/', "!").into(), counters))
}

fn low_half(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_kernels_are_read() {
        let (name, old) =
            line_of_counters("   8       0 sda 1 2 3 4 5 6 7 8 0 9 4294967295").unwrap();
        assert_eq!(name, "sda");
        assert_eq!((old.read.ios, old.write.ms), (1, 8));
        assert_eq!((old.busy_ms, old.weighted_ms), (9, u32::MAX));
        assert_eq!((old.discard, old.flush), (None, None));
        let new = "254 0 vda 186 1438 196064 3021 53 57 4498 316 -1 2608 3409 2 0 194562 0 44 71";
        let (_, new) = line_of_counters(new).unwrap();
        assert_eq!(new.in_flight, -1);
        assert_eq!(new.discard.unwrap().sectors, 194_562);
        assert_eq!(new.flush, Some((44, 71)));
        let more = "254 0 vda 1 2 3 4 5 6 7 8 0 9 10 11 12 13 14 15 16 17 18 19 20";
        assert_eq!(line_of_counters(more).unwrap().1.flush, Some((15, 16)));
    }

    #[test]
    fn what_is_no_line_of_counters_is_left_out() {
        let slash = "104 0 cciss/c0d0 1 2 3 4 5 6 7 8 0 9 10";
        assert_eq!(line_of_counters(slash).unwrap().0, "cciss!c0d0");
        // A partition before Linux 2.6.25, and garbage.
        assert_eq!(line_of_counters("8 1 sda1 1 2 3 4"), None);
        assert_eq!(line_of_counters("8 1 sda1 1 2 x 4 5 6 7 8 9 10 11"), None);
        assert_eq!(line_of_counters(""), None);
    }

    #[test]
    fn paths_of_nvme_are_told_from_namespaces() {
        assert_eq!(path_of("nvme0c1n2").as_deref(), Some("nvme0n2"));
        for other in ["nvme0n1", "nvme0n1p1", "nvmec1n1", "sda", "nvme0c1"] {
            assert_eq!(path_of(other), None, "{other}");
        }
    }
}
