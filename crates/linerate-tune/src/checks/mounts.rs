//! What is mounted, and how: S05, S07, S08, S10.

use linerate_model::block::BlockKind;
use linerate_model::host::{Mount, StorageDevice, WriteCache};
use linerate_model::units::Bytes;

use crate::case::{Advice, Answer, Case, does_not_apply, holds};

/// The unit of XFS's `sunit` and `swidth` (Documentation/admin-guide/xfs.rst).
const XFS_UNIT: u64 = 512;
/// ext4's blocks, unless it was made for less than 512 MiB (mke2fs.conf(5)).
const EXT4_BLOCK: u64 = 4096;
/// All sizes of them (mke2fs(8)).
const EXT4_BLOCKS: [u64; 7] = [
    1 << 10,
    1 << 11,
    1 << 12,
    1 << 13,
    1 << 14,
    1 << 15,
    1 << 16,
];
/// `vm.dirty_expire_centisecs` of the kernel, s.
const EXPIRE_S: u64 = 30;

/// S05
pub(crate) fn barriers(case: &Case<'_>, mount: &Mount) -> Answer {
    let off = ["nobarrier", "barrier=0", "barrier=none"]
        .into_iter()
        .find(|option| mount.has(option));
    let Some(off) = off else {
        return holds("caches are flushed (no nobarrier)");
    };
    let storage = &case.facts.storage;
    let mut volatile: Vec<&str> = Vec::new();
    let mut unknown: Vec<&str> = Vec::new();
    for name in &mount.devices {
        let stack = storage.stack(name);
        if stack.is_empty() {
            unknown.push(name);
        }
        for one in stack.iter().filter(|one| is_ground(one)) {
            match one.queue.write_cache {
                Some(WriteCache::WriteBack) => volatile.push(&one.device.name),
                Some(WriteCache::WriteThrough) => {}
                None => unknown.push(&one.device.name),
            }
        }
    }
    if let Some(first) = volatile.first() {
        let disks = match volatile.len() {
            1 => format!("its disk {first}"),
            many => format!("its {many} disks ({first} …)"),
        };
        return Advice::new(format!(
            "{off}, and the cache of {disks} loses its data with the power: fsync does not protect files, and a power cut can destroy the file system itself"
        ))
        .by_hand(
            format!("mount option of {}", &*mount.place),
            "barrier",
            "now by mount -o remount,barrier, and in fstab. Where all caches have a battery, set the controller so that it reports write through; flushes then cost nothing",
        )
        .now(off)
        .fires();
    }
    if !unknown.is_empty() {
        return Err(format!(
            "{off} is set, and sysfs does not show whether the cache of {} is volatile (queue/write_cache); remove the option unless you know that it is not",
            unknown.join(", ")
        ));
    }
    holds(format!(
        "{off}, and all disks below report write through: the kernel would send no flush either way, so the option gains nothing"
    ))
}

/// Whether nothing that the kernel knows of is below: a disk, what behaves like one, or a file.
fn is_ground(device: &StorageDevice) -> bool {
    !device.device.hidden
        && !device.is_partition()
        && (device.device.below.is_empty() || device.device.kind == BlockKind::NvmeMultipath)
}

/// The device whose queue a mount's requests pass first: a partition has its disk's.
fn top<'a>(case: &'a Case<'_>, mount: &Mount) -> Result<&'a StorageDevice, String> {
    let storage = &case.facts.storage;
    let name = mount.devices.first().ok_or("its device is not known")?;
    let device = storage.device(name);
    let device = match device {
        Some(part) if part.is_partition() => part
            .device
            .below
            .first()
            .and_then(|disk| storage.device(disk)),
        other => other,
    };
    let device = device.ok_or_else(|| format!("sysfs shows no device {}", &**name))?;
    if device.queue.minimum_io.is_none() {
        return Err(format!(
            "sysfs shows no queue/minimum_io_size of {}",
            &*device.device.name
        ));
    }
    Ok(device)
}

/// Whether md or the device mapper made it: its stripe is computed, and no guess of firmware.
fn is_array(device: &StorageDevice) -> bool {
    matches!(
        device.device.kind,
        BlockKind::Md { .. } | BlockKind::Mapped { .. }
    )
}

/// S07
pub(crate) fn xfs_stripe(case: &Case<'_>, mount: &Mount) -> Answer {
    if *mount.file_system != *"xfs" {
        return does_not_apply("it is not XFS");
    }
    let device = top(case, mount)?;
    let of = |option| {
        let units = mount.number(option).unwrap_or(0);
        Bytes(units.saturating_mul(XFS_UNIT))
    };
    let (unit, width) = (of("sunit"), of("swidth"));
    let Some((chunk, stripe)) = device.stripe() else {
        return holds(match unit.0 {
            0 => "neither the device nor XFS has a stripe".to_owned(),
            _ => format!(
                "XFS assumes {unit} × {}; the device states none, so compare it with the RAID",
                width.0 / unit.0.max(1)
            ),
        });
    };
    if (unit, width) == (chunk, stripe) {
        return holds(format!("{unit} and {width}, as the device"));
    }
    let make = format!("mkfs.xfs -d su={},sw={}", chunk.0, stripe.0 / chunk.0);
    if unit.0 == 0 {
        if !is_array(device) {
            return holds(format!(
                "XFS has no stripe; the device states {chunk} and {stripe}, which only a RAID controller means as one"
            ));
        }
        return Advice::new(format!(
            "XFS knows nothing of the stripe below ({chunk} and {stripe}): large files are not laid out by it"
        ))
        .by_hand(
            format!("geometry of {}", &*mount.place),
            make,
            "only when it is made anew: it erases, and a mount option cannot add a stripe later. Little to gain on mirrors of stripes, most with parity",
        )
        .now("none")
        .severity(if has_parity(case, mount) { 3 } else { 4 })
        .fires();
    }
    // xfs.rst: the unit may only grow, by powers of two.
    let grows = chunk.0 % unit.0 == 0 && (chunk.0 / unit.0).is_power_of_two();
    let advice = Advice::new(format!(
        "XFS assumes stripes of {unit} and {width}, the device below has {chunk} and {stripe}"
    ));
    let now = format!("sunit={},swidth={}", unit.0 / XFS_UNIT, width.0 / XFS_UNIT);
    let advice = if grows {
        advice.by_hand(
            format!("mount options of {}", &*mount.place),
            format!("sunit={},swidth={}", chunk.0 / XFS_UNIT, stripe.0 / XFS_UNIT),
            "once, at the next mount: XFS writes them to its superblock and cannot go back to a smaller unit. Check first that the device states its real geometry",
        )
    } else {
        advice.by_hand(
            format!("geometry of {}", &*mount.place),
            make,
            "only when it is made anew, which erases: XFS takes no smaller unit, nor one that is no power of two times its own",
        )
    };
    advice.now(now).fires()
}

fn has_parity(case: &Case<'_>, mount: &Mount) -> bool {
    let stacks = mount.devices.iter();
    stacks
        .flat_map(|name| case.facts.storage.stack(name))
        .filter_map(StorageDevice::level)
        .any(super::arrays::has_parity)
}

/// S08
pub(crate) fn ext4_stripe(case: &Case<'_>, mount: &Mount) -> Answer {
    if *mount.file_system != *"ext4" {
        return does_not_apply("it is not ext4");
    }
    let device = top(case, mount)?;
    let blocks = mount.number("stripe").unwrap_or(0);
    let Some((_, stripe)) = device.stripe() else {
        return holds(match blocks {
            0 => "neither the device nor ext4 has a stripe".to_owned(),
            _ => format!(
                "ext4 assumes stripes of {blocks} blocks; the device states none, so compare it with the RAID"
            ),
        });
    };
    if blocks.checked_mul(EXT4_BLOCK) == Some(stripe.0) {
        return holds(format!(
            "stripe={blocks}, as the device with blocks of 4 KiB"
        ));
    }
    // They are no larger than a page.
    let page = case.facts.system.page_bytes.known().copied();
    let sizes = EXT4_BLOCKS
        .iter()
        .filter(|block| page.is_none_or(|page| **block <= page));
    if blocks > 0
        && let Some(block) = sizes
            .copied()
            .find(|block| blocks.checked_mul(*block) == Some(stripe.0))
    {
        return Err(format!(
            "stripe={blocks} is right if its blocks have {block} bytes: run dumpe2fs -h /dev/{} | grep 'Block size' as root",
            mount.devices.first().map_or("", |name| &**name)
        ));
    }
    if blocks == 0 && !is_array(device) {
        return holds(format!(
            "ext4 has no stripe; the device states {stripe}, which only a RAID controller means as one"
        ));
    }
    let wanted = stripe.0 / EXT4_BLOCK;
    if wanted == 0 || !stripe.0.is_multiple_of(EXT4_BLOCK) {
        return does_not_apply("the stripe below is smaller than a block");
    }
    let sentence = match blocks {
        0 => format!("ext4 knows nothing of the stripe of {stripe} below"),
        _ => format!(
            "ext4 assumes stripes of {blocks} blocks, the device below has stripes of {stripe}"
        ),
    };
    Advice::new(sentence)
        .by_hand(
            format!("mount option stripe of {}", &*mount.place),
            wanted,
            "with blocks of 4 KiB, in fstab for the next mount. tune2fs -E stripe_width writes it down, but only while it is not mounted. Most to gain with parity (RAID 5 and 6)",
        )
        .now(blocks)
        .severity(if has_parity(case, mount) { 3 } else { 4 })
        .fires()
}

/// S10
pub(crate) fn crash_exposure(case: &Case<'_>, mount: &Mount) -> Answer {
    if !["ext3", "ext4"].contains(&&*mount.file_system) {
        return does_not_apply("it is neither ext4 nor ext3");
    }
    if mount.ext4.is_none() {
        let device = mount.devices.first().map_or("", |name| &**name);
        return Err(format!(
            "/proc/fs/ext4/{device}/options is not readable, and other files leave out what the superblock sets"
        ));
    }
    let expire = case.number("vm.dirty_expire_centisecs");
    let expire = expire.map_or(EXPIRE_S, |hundredths| hundredths / 100);
    let mut wrong: Vec<String> = Vec::new();
    let mut severity = 2;
    let place = &*mount.place;
    let mut changes: Vec<(&str, &str, String)> = Vec::new();
    if mount.has("noauto_da_alloc") {
        wrong.push("noauto_da_alloc: a file that was replaced by rename, or truncated and written again, is empty after a power cut".to_owned());
        changes.push(("auto_da_alloc", "its default; now by mount -o remount, and in fstab. Leave it where programs call fsync before they rename", "noauto_da_alloc".to_owned()));
    }
    if mount.has("data=writeback") {
        wrong.push(
            "data=writeback: after a power cut files may hold old contents of the disk".to_owned(),
        );
        changes.push(("data=ordered", "its default; it needs umount and mount (or a boot), remount refuses it. Leave it for scratch data", "data=writeback".to_owned()));
    }
    if let Some(commit) = mount.number("commit").filter(|commit| *commit > expire) {
        wrong.push(format!("commit={commit}: a power cut loses up to {commit} s of changes, more than the {expire} s after which data is written back"));
        if changes.is_empty() {
            severity = 3;
        }
        changes.push((
            "commit=5",
            "its default; now by mount -o remount, and in fstab. Leave it where a disk is to sleep",
            format!("commit={commit}"),
        ));
    }
    if wrong.is_empty() {
        let commit = mount
            .number("commit")
            .map(|commit| format!(", commit={commit}"));
        let journal = match mount.value("data") {
            Some(mode) => format!("data={mode}"),
            None => "no journal, so that fsck repairs it after a power cut".to_owned(),
        };
        return holds(format!("{journal}{}", commit.unwrap_or_default()));
    }
    let mut advice = Advice::new(wrong.join("; ")).severity(severity);
    for (value, why, now) in changes {
        advice = advice
            .by_hand(format!("mount option of {place}"), value, why)
            .now(now);
    }
    advice.fires()
}
