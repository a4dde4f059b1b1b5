//! What becomes of the bytes that are written to the top of a stack: how many reach its disks, and how many should.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::block::{BlockDevice, BlockKind, MappedTarget};
use linerate_model::column::Column;
use linerate_model::disk_watch::WatchedDevice;
use linerate_model::plain_text::PlainText;
use serde::Serialize;

/// Bytes written to the tops of devices that belong together, and to what they stand on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Account {
    /// Devices that nothing watched stands on.
    pub tops: Vec<PlainText>,
    /// Disks and partitions that they stand on.
    pub leaves: Vec<PlainText>,
    /// Written to the tops, bytes.
    pub top_bytes: u64,
    /// Written to the leaves, bytes.
    pub leaf_bytes: u64,
    /// How many bytes should reach the leaves: the least, where each write fills whole stripes, and the most, where each is
    /// small. Absent where a level does not say what it makes of a write.
    pub expected_bytes: Option<[f64; 2]>,
    /// Devices that are not watched and write to the same leaves.
    pub also_write: Vec<PlainText>,
    /// Arrays that were copying beside it, with what they did.
    pub copying: Vec<[PlainText; 2]>,
}

impl Account {
    /// Bytes at the leaves for each byte at the tops; absent where none was written.
    pub fn factor(&self) -> Option<f64> {
        (self.top_bytes > 0).then(|| self.leaf_bytes as f64 / self.top_bytes as f64)
    }

    /// The least and the most that [`Account::factor`] should be.
    pub fn expected_factor(&self) -> Option<[f64; 2]> {
        let expected = self.expected_bytes.filter(|_| self.top_bytes > 0)?;
        Some(expected.map(|bytes| bytes / self.top_bytes as f64))
    }
}

/// One for each set of devices that stand on the same disks, if something stands on them at all.
pub fn accounts(devices: &[WatchedDevice]) -> Vec<Account> {
    let stack = Levels::of(devices);
    let mut accounts = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for top in stack.tops() {
        if seen.contains(top) {
            continue;
        }
        let members = stack.connected(top);
        seen.extend(members.iter().copied());
        if members.len() > 1 {
            accounts.push(stack.account(&members));
        }
    }
    accounts
}

/// The watched devices, and which stands on which, down to partitions and loop devices.
struct Levels<'a> {
    devices: BTreeMap<&'a str, &'a WatchedDevice>,
    above: BTreeMap<&'a str, Vec<&'a str>>,
    /// Disks of which a watched partition is a part.
    parted: BTreeSet<&'a str>,
}

/// What one byte at a device makes of bytes at its leaves; absent where that is not known, or being found out.
type Factors<'a> = BTreeMap<&'a str, Option<[f64; 2]>>;

impl<'a> Levels<'a> {
    fn of(devices: &'a [WatchedDevice]) -> Self {
        let named = devices.iter();
        let named = named.map(|watched| (watched.device.name.as_str(), watched));
        let mut levels = Self {
            devices: named.collect(),
            above: BTreeMap::new(),
            parted: BTreeSet::new(),
        };
        for name in levels.devices.keys().copied().collect::<Vec<_>>() {
            for below in levels.below(name).collect::<Vec<_>>() {
                levels.above.entry(below).or_default().push(name);
            }
        }
        let devices = devices.iter().map(|watched| &watched.device);
        let parts = devices.filter(|device| matches!(device.kind, BlockKind::Partition { .. }));
        let disks = parts.flat_map(|part| part.below.iter().map(PlainText::as_str));
        levels.parted = disks.collect();
        levels
    }

    fn below(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let device = self.devices.get(name).map(|watched| &watched.device);
        let whole = device.filter(|device| !ends_the_way(device));
        let below = whole.into_iter().flat_map(|device| device.below.iter());
        below.filter_map(|name| Some(self.devices.get_key_value(name.as_str())?.0).copied())
    }

    fn above(&self, name: &str) -> &[&'a str] {
        self.above.get(name).map_or(&[], Vec::as_slice)
    }

    fn tops(&self) -> impl Iterator<Item = &'a str> {
        let names = self.devices.keys().copied();
        names.filter(|name| self.above(name).is_empty())
    }

    fn connected(&self, name: &'a str) -> BTreeSet<&'a str> {
        let mut members = BTreeSet::new();
        let mut open = vec![name];
        while let Some(name) = open.pop() {
            if members.insert(name) {
                open.extend(self.below(name));
                open.extend(self.above(name).iter().copied());
            }
        }
        members
    }

    fn account(&self, members: &BTreeSet<&'a str>) -> Account {
        let all = || members.iter().copied();
        let tops: Vec<&str> = all().filter(|name| self.above(name).is_empty()).collect();
        let leaves: Vec<&str> = all()
            .filter(|name| self.below(name).next().is_none())
            .collect();
        let sum = |names: &[&str]| names.iter().map(|name| self.written(name)).sum();
        let names = |names: &[&str]| names.iter().map(|name| (*name).into()).collect();
        let mut known = Factors::new();
        let expected = tops.iter().map(|top| {
            let [least, most] = self.factor(top, &mut known)?;
            let bytes = self.written(top) as f64;
            Some([least * bytes, most * bytes])
        });
        let expected: Option<Vec<[f64; 2]>> = expected.collect();
        let strange = all().filter_map(|name| self.devices.get(name));
        let mut also_write: Vec<PlainText> = strange
            .filter(|watched| !self.parted.contains(watched.device.name.as_str()))
            .flat_map(|watched| watched.also_carries.iter().cloned())
            .collect();
        also_write.sort();
        also_write.dedup();
        Account {
            top_bytes: sum(&tops),
            leaf_bytes: sum(&leaves),
            expected_bytes: expected.map(|each| {
                each.iter().fold([0.0, 0.0], |[least, most], one| {
                    [least + one[0], most + one[1]]
                })
            }),
            tops: names(&tops),
            leaves: names(&leaves),
            also_write,
            copying: all().filter_map(|name| self.copying(name)).collect(),
        }
    }

    fn written(&self, name: &str) -> u64 {
        let watched = self.devices.get(name);
        let growth = watched.and_then(|one| one.samples.growth(Column::disk_written_bytes));
        growth.unwrap_or(0)
    }

    fn copying(&self, name: &str) -> Option<[PlainText; 2]> {
        let device = &self.devices.get(name)?.device;
        match &device.kind {
            BlockKind::Md {
                doing: Some(doing), ..
            } => Some([device.name.clone(), doing.clone()]),
            _ => None,
        }
    }

    /// What one byte at a device makes of bytes at its leaves, the least and the most.
    fn factor(&self, name: &'a str, known: &mut Factors<'a>) -> Option<[f64; 2]> {
        if let Some(factor) = known.get(name) {
            return *factor;
        }
        // What stands on itself comes here again, and is not known.
        known.insert(name, None);
        let factor = self.factor_through(name, known);
        known.insert(name, factor);
        factor
    }

    fn factor_through(&self, name: &'a str, known: &mut Factors<'a>) -> Option<[f64; 2]> {
        let below: Vec<&str> = self.below(name).collect();
        if below.is_empty() {
            return Some([1.0, 1.0]);
        }
        let device = &self.devices.get(name)?.device;
        let own = own_factor(device, &below, &|name| self.mapped_name(name))?;
        let parts = below.iter().map(|below| self.factor(below, known));
        let parts: Vec<[f64; 2]> = parts.collect::<Option<_>>()?;
        let [least, most] = range(&parts);
        Some([own[0] * least, own[1] * most])
    }

    fn mapped_name(&self, name: &str) -> Option<&'a str> {
        match &self.devices.get(name)?.device.kind {
            BlockKind::Mapped { name, .. } => Some(name.as_str()),
            _ => None,
        }
    }
}

/// A partition's disk carries others, and a loop device's file is one of many on its file system.
const fn ends_the_way(device: &BlockDevice) -> bool {
    matches!(
        device.kind,
        BlockKind::Partition { .. } | BlockKind::Loop { .. }
    )
}

/// The least and the most of all.
fn range(parts: &[[f64; 2]]) -> [f64; 2] {
    parts.iter().fold([f64::MAX, 0.0], |[least, most], part| {
        [least.min(part[0]), most.max(part[1])]
    })
}

/// What one byte at a device makes of bytes at the devices below it, the least and the most (md(4), lvmraid(7)).
fn own_factor<'a>(
    device: &BlockDevice,
    below: &[&str],
    mapped_name: &dyn Fn(&str) -> Option<&'a str>,
) -> Option<[f64; 2]> {
    let exactly = |factor: f64| Some([factor, factor]);
    match &device.kind {
        BlockKind::Md {
            level,
            layout,
            disks,
            ..
        } => raid_factor(level, *disks, layout.map(raid10_copies)),
        BlockKind::Mapped { table, .. } if !table.is_empty() => {
            let each = table.iter().map(target_factor);
            Some(range(&each.collect::<Option<Vec<_>>>()?))
        }
        BlockKind::Mapped { .. } => {
            let has = |part: &str| {
                let names = below.iter().filter_map(|name| mapped_name(name));
                names.filter(|name| name.contains(part)).count()
            };
            let mirrors = has("_mimage_");
            if mirrors > 0 {
                // Its log is written for each region, not for each write.
                return exactly(mirrors as f64);
            }
            // Of these the level does not show without the table: RAID1, 5, 10; thin, cache and snapshot write more at first.
            let unknown = ["_rimage_", "_tdata", "_cdata", "_corig", "-cow", "_vdata"];
            if unknown.iter().any(|part| has(part) > 0) {
                return None;
            }
            exactly(1.0)
        }
        BlockKind::Partition { .. } | BlockKind::NvmeMultipath | BlockKind::Drbd => exactly(1.0),
        // Something below that this build does not know, as bcache: its cache is written, and the disk later.
        BlockKind::Disk | BlockKind::Loop { .. } | BlockKind::Memory | BlockKind::Network => None,
    }
}

/// The same of a line of a mapped device's table.
fn target_factor(target: &MappedTarget) -> Option<[f64; 2]> {
    let exactly = |factor: f64| Some([factor, factor]);
    match target.target.as_str() {
        "linear" | "striped" | "crypt" | "multipath" | "delay" | "error" | "flakey" => exactly(1.0),
        "mirror" => exactly(f64::from(target.members?)),
        "raid" => raid_factor(target.raid.as_deref()?, target.members, target.copies),
        // They write more at first, or write elsewhere.
        _ => None,
    }
}

/// What a level makes of a write; names of dm-raid add the layout: `raid5_ls`.
fn raid_factor(level: &str, disks: Option<u32>, copies: Option<u32>) -> Option<[f64; 2]> {
    let exactly = |factor: f64| Some([factor, factor]);
    let disks = f64::from(disks?);
    let level = level.split('_').next().unwrap_or(level);
    match level {
        "raid0" | "linear" => exactly(1.0),
        "raid1" => exactly(disks),
        "raid10" => exactly(f64::from(copies?)),
        // Whole stripes add the parity's share; a small write adds as much as it has itself.
        "raid4" | "raid5" if disks >= 2.0 => Some([disks / (disks - 1.0), 2.0]),
        "raid6" if disks >= 3.0 => Some([disks / (disks - 2.0), 3.0]),
        _ => None,
    }
}

/// Copies of a RAID10: near ones times far ones (drivers/md/raid10.c, `setup_geo`).
const fn raid10_copies(layout: u32) -> u32 {
    (layout & 0xff) * (layout >> 8 & 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::disk_watch::{DiskTotals, RequestTotals};
    use linerate_testing::disks;

    const MIB: u64 = 1 << 20;

    fn device(name: &str, kind: BlockKind, below: &[&str], written: u64) -> WatchedDevice {
        let write = RequestTotals {
            bytes: written * MIB,
            ..RequestTotals::default()
        };
        let totals = DiskTotals {
            write,
            ..DiskTotals::default()
        };
        disks::watched(disks::device(name, kind, below), &[totals])
    }

    fn disk(name: &str, written: u64) -> WatchedDevice {
        device(name, BlockKind::Disk, &[], written)
    }

    fn md(level: &str, layout: u32, disks: u32) -> BlockKind {
        BlockKind::Md {
            level: level.into(),
            layout: Some(layout),
            disks: Some(disks),
            chunk: None,
            doing: None,
        }
    }

    fn mapped(name: &str, table: Vec<MappedTarget>) -> BlockKind {
        BlockKind::Mapped {
            name: name.into(),
            uuid: "LVM-x".into(),
            table,
        }
    }

    fn only(devices: &[WatchedDevice]) -> Account {
        let mut all = accounts(devices);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    fn expected(devices: &[WatchedDevice]) -> Option<[f64; 2]> {
        let expected = only(devices).expected_factor();
        expected.map(|both| both.map(|factor| (factor * 100.0).round() / 100.0))
    }

    #[test]
    fn each_byte_of_a_raid10_is_on_two_disks() {
        let devices = [
            disk("sda", 50),
            disk("sdb", 50),
            disk("sdc", 50),
            disk("sdd", 50),
            device(
                "md0",
                md("raid10", 258, 4),
                &["sda", "sdb", "sdc", "sdd"],
                100,
            ),
        ];
        let account = only(&devices);
        assert_eq!(account.factor(), Some(2.0));
        assert_eq!(account.expected_factor(), Some([2.0, 2.0]));
        assert_eq!((&*account.tops[0], account.leaves.len()), ("md0", 4));
    }

    #[test]
    fn parity_costs_a_share_of_whole_stripes_and_all_of_small_writes() {
        let members = ["sda", "sdb", "sdc", "sdd"];
        let with = |level: &str| {
            let mut devices: Vec<WatchedDevice> =
                members.iter().map(|name| disk(name, 1)).collect();
            devices.push(device("md0", md(level, 2, 4), &members, 1));
            expected(&devices)
        };
        assert_eq!(with("raid5"), Some([1.33, 2.0]));
        assert_eq!(with("raid6"), Some([2.0, 3.0]));
        assert_eq!(with("raid0"), Some([1.0, 1.0]));
        assert_eq!(with("raid1"), Some([4.0, 4.0]));
        assert_eq!(with("multipath"), None);
    }

    #[test]
    fn a_mirror_of_stripes_is_known_by_the_names_of_its_parts_or_its_table() {
        let parts = |table: Vec<MappedTarget>| {
            [
                disk("sda", 1),
                disk("sdb", 1),
                device("dm-0", mapped("vg-home_mimage_0", Vec::new()), &["sda"], 1),
                device("dm-1", mapped("vg-home_mimage_1", Vec::new()), &["sdb"], 1),
                device("dm-2", mapped("vg-home", table), &["dm-0", "dm-1"], 1),
            ]
        };
        assert_eq!(expected(&parts(Vec::new())), Some([2.0, 2.0]));
        let raid = MappedTarget {
            target: "raid".into(),
            size: linerate_model::units::Bytes(1),
            raid: Some("raid5_ls".into()),
            members: Some(3),
            copies: None,
        };
        assert_eq!(expected(&parts(vec![raid])), Some([1.5, 2.0]));
        let thin = [
            disk("sda", 1),
            device("dm-0", mapped("vg-pool_tdata", Vec::new()), &["sda"], 1),
            device("dm-1", mapped("vg-pool-tpool", Vec::new()), &["dm-0"], 1),
        ];
        assert_eq!(expected(&thin), None);
    }

    #[test]
    fn volumes_on_the_same_disks_are_added_up_together_and_partitions_end_the_way() {
        let partition = |name: &str, on: &str, written: u64| {
            device(name, BlockKind::Partition { number: 1 }, &[on], written)
        };
        let mut devices = vec![
            disk("sda", 900),
            partition("sda1", "sda", 30),
            device("dm-0", mapped("vg-a", Vec::new()), &["sda1"], 10),
            device("dm-1", mapped("vg-b", Vec::new()), &["sda1"], 20),
        ];
        let account = only(&devices);
        assert_eq!(
            (account.top_bytes, account.leaf_bytes),
            (30 * MIB, 30 * MIB)
        );
        assert_eq!(account.leaves, ["sda1"]);
        // Another volume on the partition is not watched; partitions beside it on the disk do not matter.
        devices[1].also_carries = vec!["dm-9".into()];
        devices[0].also_carries = vec!["sda2".into()];
        assert_eq!(only(&devices).also_write, ["dm-9"]);
    }

    #[test]
    fn what_stands_on_itself_ends() {
        let devices = [
            disk("sda", 1),
            device("dm-0", mapped("a", Vec::new()), &["dm-1", "sda"], 1),
            device("dm-1", mapped("b", Vec::new()), &["dm-0"], 1),
            device("dm-2", mapped("c", Vec::new()), &["dm-0"], 1),
        ];
        assert_eq!(expected(&devices), None);
    }

    #[test]
    fn copies_of_raid10_are_those_of_its_layout() {
        // 258 is what md says of two near copies.
        assert_eq!(raid10_copies(258), 2);
        assert_eq!(raid10_copies(0x301), 3);
        assert_eq!(raid10_copies(0x1_0201), 2);
    }
}
