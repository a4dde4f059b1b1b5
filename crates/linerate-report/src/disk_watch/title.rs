//! Devices in words, and in the order of their stacks.

use std::collections::HashMap;

use linerate_model::block::{BlockDevice, BlockKind, MappedTarget};

use crate::words;

/// A stack is shown no deeper.
const DEEPEST: usize = 16;

/// Places of the devices with how many levels are above each: the tops first, then what is below. A device below two
/// others is shown below the first one.
pub(super) fn tree(devices: &[&BlockDevice]) -> Vec<(usize, usize)> {
    let named = devices.iter().enumerate();
    let places: HashMap<&str, usize> = named
        .map(|(place, one)| (one.name.as_str(), place))
        .collect();
    let below = |place: usize| {
        let names = devices[place].below.iter();
        names.filter_map(|name| places.get(name.as_str()).copied())
    };
    let mut is_below = vec![false; devices.len()];
    for place in 0..devices.len() {
        for other in below(place).filter(|other| *other != place) {
            is_below[other] = true;
        }
    }
    let tops = (0..devices.len()).filter(|place| !is_below[*place]);
    // What stands on itself has no top.
    let starts = tops.chain(0..devices.len());
    let mut tree = Vec::new();
    let mut shown = vec![false; devices.len()];
    for start in starts {
        let mut open = vec![(start, 0)];
        while let Some((place, depth)) = open.pop() {
            if depth > DEEPEST || std::mem::replace(&mut shown[place], true) {
                continue;
            }
            tree.push((place, depth));
            let under: Vec<usize> = below(place).collect();
            open.extend(under.into_iter().rev().map(|place| (place, depth + 1)));
        }
    }
    tree
}

/// What a device is: `LVM vg0/home`, `RAID 10 of 4, 64 KiB chunks`, `partition 1`.
pub(super) fn title(device: &BlockDevice) -> String {
    let size = words::with(device.size, |size| format!(", {size}"));
    match &device.kind {
        BlockKind::Disk => {
            let model = device.model.as_deref().filter(|model| !model.is_empty());
            format!("{}{size}", model.unwrap_or("disk"))
        }
        BlockKind::Partition { number } => format!("partition {number}{size}"),
        BlockKind::Md {
            level,
            disks,
            chunk,
            doing,
            ..
        } => {
            let of = words::with(*disks, |disks| format!(" of {disks}"));
            let chunk = words::with(*chunk, |chunk| format!(", {chunk} chunks"));
            let doing = words::with(doing.as_ref(), |doing| format!(", {doing}"));
            format!("{level}{of}{chunk}{size}{doing}")
        }
        BlockKind::Mapped { name, uuid, table } => {
            format!("{}{size}", mapped(name, uuid, table, device))
        }
        BlockKind::Loop { file: Some(file) } => format!("loop of {file}{size}"),
        BlockKind::Loop { file: None } => "loop without a file".to_owned(),
        BlockKind::Drbd => format!("DRBD{size}"),
        BlockKind::NvmeMultipath => format!("NVMe multipath, {} paths{size}", device.below.len()),
        BlockKind::Memory => format!("memory{size}"),
        BlockKind::Network => format!("network block device{size}"),
    }
}

/// Who made a mapped device says its UUID (libdm); the kind of a sub-volume says its name (lvmraid(7)).
fn mapped(name: &str, uuid: &str, table: &[MappedTarget], device: &BlockDevice) -> String {
    let target = words::with(table.first(), |first| {
        let kind = first.raid.as_ref().unwrap_or(&first.target);
        let members = words::with(first.members, |members| format!(" of {members}"));
        format!(", {kind}{members}")
    });
    if uuid.starts_with("LVM-") {
        return format!("LVM {}{target}", volume(name));
    }
    let kind = ["CRYPT-", "mpath-"]
        .iter()
        .find(|kind| uuid.starts_with(**kind));
    match kind {
        Some(&"CRYPT-") => format!("encrypted {name}"),
        Some(_) => format!("multipath {name}, {} paths", device.below.len()),
        None => format!("{name}{target}"),
    }
}

/// `vg0/home` for `vg0-home`; a hyphen in a name is doubled (libdm's `dm_build_dm_name`).
fn volume(name: &str) -> String {
    let bytes = name.as_bytes();
    let single = (0..bytes.len()).find(|at| {
        let is_hyphen = |at: usize| bytes.get(at) == Some(&b'-');
        let before = at.checked_sub(1).is_some_and(is_hyphen);
        is_hyphen(*at) && !before && !is_hyphen(at + 1)
    });
    let plain = |part: &str| part.replace("--", "-");
    single.map_or_else(
        || plain(name),
        |at| format!("{}/{}", plain(&name[..at]), plain(&name[at + 1..])),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::units::Bytes;
    use linerate_testing::disks::device;

    #[test]
    fn names_of_volumes_are_those_that_lvm_prints() {
        assert_eq!(volume("vg0-home"), "vg0/home");
        assert_eq!(volume("vg--a-home--b"), "vg-a/home-b");
        assert_eq!(volume("luks"), "luks");
        assert_eq!(volume("a--b"), "a-b");
    }

    #[test]
    fn a_device_is_called_what_it_is() {
        let mapped = |name: &str, uuid: &str| BlockKind::Mapped {
            name: name.into(),
            uuid: uuid.into(),
            table: vec![MappedTarget {
                target: "raid".into(),
                size: Bytes(1 << 30),
                raid: Some("raid10".into()),
                members: Some(4),
                copies: None,
            }],
        };
        let raid = BlockKind::Md {
            level: "raid10".into(),
            layout: Some(258),
            disks: Some(4),
            chunk: Some(Bytes(512 << 10)),
            doing: Some("resync".into()),
        };
        for (kind, title) in [
            (BlockKind::Disk, "disk"),
            (BlockKind::Partition { number: 3 }, "partition 3"),
            (raid, "raid10 of 4, 512 KiB chunks, resync"),
            (mapped("vg0-home", "LVM-x"), "LVM vg0/home, raid10 of 4"),
            (mapped("luks", "CRYPT-LUKS2-x"), "encrypted luks"),
            (mapped("mpatha", "mpath-3600"), "multipath mpatha, 2 paths"),
            (
                BlockKind::Loop {
                    file: Some("/images/one".into()),
                },
                "loop of /images/one",
            ),
            (BlockKind::Drbd, "DRBD"),
            (BlockKind::NvmeMultipath, "NVMe multipath, 2 paths"),
            (BlockKind::Memory, "memory"),
            (BlockKind::Network, "network block device"),
        ] {
            assert_eq!(super::title(&device("x", kind, &["a", "b"])), title);
        }
    }

    #[test]
    fn each_device_is_shown_once_below_the_first_that_stands_on_it() {
        let devices = [
            device("a", BlockKind::Disk, &[]),
            device("b", BlockKind::Disk, &[]),
            device("top", BlockKind::Disk, &["a", "b"]),
            device("other", BlockKind::Disk, &["b"]),
            device("ring", BlockKind::Disk, &["ring"]),
        ];
        let all: Vec<&BlockDevice> = devices.iter().collect();
        let names: Vec<(&str, usize)> = tree(&all)
            .into_iter()
            .map(|(place, depth)| (devices[place].name.as_str(), depth))
            .collect();
        let expected = [("top", 0), ("a", 1), ("b", 1), ("other", 0), ("ring", 0)];
        assert_eq!(names, expected);
    }
}
