//! The stack below each file system.

use std::collections::BTreeSet;

use crate::block::BlockKind;
use crate::host::{HostFacts, Mount, Storage, StorageDevice, WriteCache};
use crate::plain_text::PlainText;

use super::{Key, Subject};

/// Places where desktops mount what is plugged in.
const PASSING: [&str; 2] = ["/run/", "/media/"];

/// Each file system that stays: not one in a file, in memory, or on what was plugged in.
pub(super) fn facts(host: &HostFacts) -> impl Iterator<Item = (Key, PlainText)> {
    let storage = &host.storage;
    let mounts = storage.mounts.known().into_iter().flatten();
    let lasting =
        mounts.filter(|mount| !PASSING.iter().any(|place| mount.place.starts_with(place)));
    lasting.filter_map(|mount| {
        let key = Key::named(Subject::Storage, &mount.place);
        Some((key, stack(storage, mount)?.into()))
    })
}

/// Options that protect and cost nothing, and that systemd adds to what a confined service sees (`systemd.exec(5)`).
const PROTECTION: [&str; 4] = ["nodev", "noexec", "nosuid", "nosymfollow"];

/// The options that bear on speed, in the alphabet's order. Of a file system that can be written, seen from where only
/// reading is allowed (`ProtectSystem=`), the place's `ro` comes before the file system's `rw`.
fn options(mount: &Mount) -> String {
    let at = |option: &str| mount.options.iter().position(|one| **one == *option);
    let seen_read_only = at("ro").is_some_and(|ro| at("rw").is_some_and(|rw| ro < rw));
    let kept = mount.options.iter().map(|one| &**one);
    let dropped = |one: &str| PROTECTION.contains(&one) || seen_read_only && one == "ro";
    let kept = kept.filter(|one| !dropped(one));
    let kept: BTreeSet<&str> = kept.collect();
    kept.into_iter().collect::<Vec<_>>().join(",")
}

/// `ext4 relatime,rw on md raid10 (read-ahead 4096 KiB) on 4 × disk (mq-deadline, read-ahead 128 KiB, write back)`.
/// Kernel names are left out: disks get them in another order at the next boot.
fn stack(storage: &Storage, mount: &Mount) -> Option<String> {
    let mut levels: Vec<(String, usize)> = Vec::new();
    for name in &mount.devices {
        for one in storage.stack(name) {
            if matches!(one.device.kind, BlockKind::Loop { .. } | BlockKind::Memory) {
                return None;
            }
            if one.is_partition() {
                continue;
            }
            let words = level(one);
            match levels.iter_mut().find(|(other, _)| *other == words) {
                Some((_, count)) => *count += 1,
                None => levels.push((words, 1)),
            }
        }
    }
    let head = format!("{} {}", mount.file_system, options(mount));
    let below = levels.into_iter().map(|(words, count)| match count {
        1 => words,
        count => format!("{count} × {words}"),
    });
    let parts: Vec<String> = std::iter::once(head).chain(below).collect();
    Some(parts.join(" on "))
}

fn level(one: &StorageDevice) -> String {
    let kind = match &one.device.kind {
        BlockKind::Md { level, chunk, .. } => {
            let chunk = chunk.map(|chunk| format!(" chunk {chunk}"));
            format!("md {level}{}", chunk.unwrap_or_default())
        }
        // Its table needs root; the part before the hyphen says who made it.
        BlockKind::Mapped { uuid, .. } => match uuid.split('-').next() {
            Some(maker) if !maker.is_empty() => maker.to_lowercase(),
            _ => "dm".to_owned(),
        },
        BlockKind::Drbd => "drbd".to_owned(),
        BlockKind::NvmeMultipath => "nvme multipath".to_owned(),
        BlockKind::Network => "network".to_owned(),
        _ => "disk".to_owned(),
    };
    let queue = &one.queue;
    let cache = |cache: WriteCache| match cache {
        WriteCache::WriteBack => "write back".to_owned(),
        WriteCache::WriteThrough => "write through".to_owned(),
    };
    let array = one.array.as_ref();
    let settings: Vec<String> = [
        queue.scheduler.as_ref().map(|one| one.chosen.to_string()),
        queue
            .read_ahead_kib
            .map(|kib| format!("read-ahead {kib} KiB")),
        queue.depth.map(|depth| format!("depth {depth}")),
        queue.write_cache.map(cache),
        array
            .and_then(|array| array.stripe_cache_size)
            .map(|size| format!("stripe cache {size}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if settings.is_empty() {
        return kind;
    }
    format!("{kind} ({})", settings.join(", "))
}
