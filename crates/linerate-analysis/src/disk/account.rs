//! What becomes of the bytes that are written to the top of a stack: how many reach its disks, and how many should.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::block::{BlockDevice, BlockKind, MappedTarget};
use linerate_model::column::Column;
use linerate_model::disk_watch::{DiskWatch, WatchedDevice};
use linerate_model::plain_text::PlainText;
use serde::Serialize;

/// A stack is no higher: what is deeper stands on itself.
const HIGHEST: usize = 32;

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
pub fn accounts(record: &DiskWatch) -> Vec<Account> {
    let stack = Levels::of(record);
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

/// The watched devices, and which stands on which: a partition is the end of the way down, since its disk carries others.
struct Levels<'a> {
    devices: BTreeMap<&'a str, &'a WatchedDevice>,
}

impl<'a> Levels<'a> {
    fn of(record: &'a DiskWatch) -> Self {
        let devices = record.devices.iter();
        let named = devices.map(|watched| (watched.device.name.as_str(), watched));
        Self {
            devices: named.collect(),
        }
    }

    fn below(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let device = self.devices.get(name).map(|watched| &watched.device);
        let whole = device.filter(|device| !matches!(device.kind, BlockKind::Partition { .. }));
        let below = whole.into_iter().flat_map(|device| device.below.iter());
        below.filter_map(|name| Some(self.devices.get_key_value(name.as_str())?.0).copied())
    }

    fn above(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let names = self.devices.keys().copied();
        names.filter(move |above| self.below(above).any(|below| below == name))
    }

    fn tops(&self) -> impl Iterator<Item = &'a str> {
        let names = self.devices.keys().copied();
        names.filter(|name| self.above(name).next().is_none())
    }

    fn connected(&self, name: &'a str) -> BTreeSet<&'a str> {
        let mut members = BTreeSet::new();
        let mut open = vec![name];
        while let Some(name) = open.pop() {
            if members.insert(name) {
                open.extend(self.below(name));
                open.extend(self.above(name));
            }
        }
        members
    }

    fn account(&self, members: &BTreeSet<&'a str>) -> Account {
        let all = || members.iter().copied();
        let tops: Vec<&str> = all()
            .filter(|name| self.above(name).next().is_none())
            .collect();
        let leaves: Vec<&str> = all()
            .filter(|name| self.below(name).next().is_none())
            .collect();
        let sum = |names: &[&str]| names.iter().map(|name| self.written(name)).sum();
        let names = |names: &[&str]| names.iter().map(|name| (*name).into()).collect();
        let expected = tops.iter().map(|top| {
            let [least, most] = self.factor(top, 0)?;
            let bytes = self.written(top) as f64;
            Some([least * bytes, most * bytes])
        });
        let expected: Option<Vec<[f64; 2]>> = expected.collect();
        let strange = all().filter_map(|name| self.devices.get(name));
        let mut also_write: Vec<PlainText> = strange
            .filter(|watched| !is_disk_of_partitions(&watched.device, self))
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
    fn factor(&self, name: &str, depth: usize) -> Option<[f64; 2]> {
        let below: Vec<&str> = self.below(name).collect();
        if below.is_empty() {
            return Some([1.0, 1.0]);
        }
        if depth > HIGHEST {
            return None;
        }
        let device = &self.devices.get(name)?.device;
        let own = own_factor(device, &below, &|name| self.mapped_name(name))?;
        let parts: Option<Vec<[f64; 2]>> = below
            .iter()
            .map(|below| self.factor(below, depth + 1))
            .collect();
        let parts = parts?;
        let least = parts.iter().map(|part| part[0]).fold(f64::MAX, f64::min);
        let most = parts.iter().map(|part| part[1]).fold(0.0, f64::max);
        Some([own[0] * least, own[1] * most])
    }

    fn mapped_name(&self, name: &str) -> Option<&'a str> {
        match &self.devices.get(name)?.device.kind {
            BlockKind::Mapped { name, .. } => Some(name.as_str()),
            _ => None,
        }
    }
}

/// A disk of which a watched partition is a part; the partition is the leaf then.
fn is_disk_of_partitions(device: &BlockDevice, levels: &Levels<'_>) -> bool {
    let mut all = levels.devices.values();
    all.any(|other| {
        matches!(other.device.kind, BlockKind::Partition { .. })
            && other.device.below.contains(&device.name)
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
            let each: Option<Vec<[f64; 2]>> = table.iter().map(target_factor).collect();
            let each = each?;
            let least = each.iter().map(|one| one[0]).fold(f64::MAX, f64::min);
            let most = each.iter().map(|one| one[1]).fold(0.0, f64::max);
            Some([least, most])
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
        BlockKind::Partition { .. }
        | BlockKind::Disk
        | BlockKind::NvmeMultipath
        | BlockKind::Drbd => exactly(1.0),
        // The file system below writes its own metadata and its journal.
        BlockKind::Loop { .. } | BlockKind::Memory | BlockKind::Network => None,
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

    #[test]
    fn copies_of_raid10_are_those_of_its_layout() {
        // 258 is what md says of two near copies.
        assert_eq!(raid10_copies(258), 2);
        assert_eq!(raid10_copies(0x301), 3);
        assert_eq!(raid10_copies(0x1_0201), 2);
    }
}
