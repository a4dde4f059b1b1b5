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
    let caches = Caches::below(case, mount);
    if !caches.denied.is_empty() {
        return denied(mount, &caches.denied, off);
    }
    let Some(off) = off else {
        return holds("barriers on");
    };
    if !caches.volatile.is_empty() {
        let advice = Advice::new(format!(
            "{off}, and the cache of {} loses its data with the power: {UNPROTECTED}",
            disks(&caches.volatile)
        ));
        return with_barrier(advice, mount, off).fires();
    }
    if !caches.unknown.is_empty() {
        return Err(format!(
            "{off} is set, and sysfs does not show whether the cache of {} is volatile (queue/write_cache); remove the option unless you know that it is not",
            caches.unknown.join(", ")
        ));
    }
    holds(format!(
        "{off}, and all disks below report write through: the kernel would send no flush either way, so the option gains nothing"
    ))
}

/// What it means that a volatile cache is not flushed.
const UNPROTECTED: &str =
    "fsync does not protect files, and a power cut can destroy the file system itself";

/// The disks below a mount by what is known of their caches.
#[derive(Default)]
struct Caches<'a> {
    /// The kernel flushes them, unless the file system asks for none.
    volatile: Vec<&'a str>,
    /// The kernel was told that they are not volatile, but the disk says that they are.
    denied: Vec<&'a str>,
    unknown: Vec<&'a str>,
}

impl<'a> Caches<'a> {
    fn below(case: &'a Case<'_>, mount: &'a Mount) -> Self {
        use WriteCache::{WriteBack, WriteThrough};
        let mut found = Self::default();
        for name in &mount.devices {
            let stack = case.facts.storage.stack(name);
            if stack.is_empty() {
                found.unknown.push(name);
            }
            for one in stack.into_iter().filter(|one| is_ground(one)) {
                let name = &*one.device.name;
                match (one.queue.write_cache, one.queue.disk_cache) {
                    (Some(WriteThrough), Some(WriteBack)) => found.denied.push(name),
                    // Before Linux 4.7 there is no queue/write_cache.
                    (Some(WriteBack), _) | (None, Some(WriteBack)) => found.volatile.push(name),
                    (Some(WriteThrough), _) | (None, Some(WriteThrough)) => {}
                    (None, None) => found.unknown.push(name),
                }
            }
        }
        found
    }
}

fn disks(names: &[&str]) -> String {
    match names {
        [one] => format!("its disk {one}"),
        [first, ..] => format!("its {} disks ({first} …)", names.len()),
        [] => "its disks".to_owned(),
    }
}

/// A write to `queue/write_cache` changes what the kernel does and not the device
/// (Documentation/ABI/stable/sysfs-block).
fn denied(mount: &Mount, names: &[&str], off: Option<&str>) -> Answer {
    let advice = Advice::new(format!(
        "the kernel was told that the cache of {} is write through, which stops all flushes, but the disk says write back: {UNPROTECTED}",
        disks(names)
    ))
    .by_hand(
        format!("queue/write_cache of {}", names.join(" ")),
        "write back",
        "echo 'write back' into it, and remove what sets it at boot. Where the cache has a battery, choose write through in the controller's tool, never by queue/write_cache",
    )
    .now("write through");
    match off {
        Some(off) => with_barrier(advice, mount, off).fires(),
        None => advice.fires(),
    }
}

fn with_barrier(advice: Advice, mount: &Mount, off: &str) -> Advice {
    advice
        .by_hand(
            format!("mount option of {}", &*mount.place),
            "barrier",
            "now by mount -o remount,barrier, and in fstab. Where all caches have a battery, choose write through in the controller's tool, never by queue/write_cache; flushes then cost nothing",
        )
        .now(off)
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
    // `_ext4_show_options` of fs/ext4/super.c prints the mode wherever there is a journal.
    let mode = mount.value("data");
    let read_only = mount.ext4.iter().flatten().any(|one| **one == *"ro");
    if read_only && mode.is_none() {
        return holds("no journal in use, and it is read-only");
    }
    let mut exposed = Exposed::default();
    if mount.has("noauto_da_alloc") {
        exposed.option("noauto_da_alloc", "a file that was replaced by rename, or truncated and written again, is empty after a power cut",
            "auto_da_alloc", "its default; now by mount -o remount, and in fstab. Leave it where programs call fsync before they rename");
    }
    if mode == Some("writeback") {
        let why = if *mount.place == *"/" {
            ROOT_MODE
        } else {
            "its default; it needs umount and mount (or a boot), remount refuses it. Leave it for scratch data"
        };
        exposed.option(
            "data=writeback",
            "after a power cut files may hold old contents of the disk",
            "data=ordered",
            why,
        );
    }
    let severity = if exposed.wrong.is_empty() { 3 } else { 2 };
    let expire = case.number("vm.dirty_expire_centisecs");
    let expire = expire.map_or(EXPIRE_S, |hundredths| hundredths / 100);
    let commit = mount.number("commit");
    if mode.is_none() {
        exposed
            .wrong
            .push("no journal: after a power cut fsck may remove or truncate files".to_owned());
        exposed.no_journal = true;
    } else if let Some(commit) = commit.filter(|commit| *commit > expire) {
        let loses = format!(
            "a power cut loses up to {commit} s of changes, more than the {expire} s after which data is written back"
        );
        exposed.option(
            &format!("commit={commit}"),
            &loses,
            "commit=5",
            "its default; now by mount -o remount, and in fstab. Leave it where a disk is to sleep",
        );
    }
    if exposed.wrong.is_empty() {
        let commit = commit.map(|commit| format!(", commit={commit}"));
        return holds(format!(
            "data={}{}",
            mode.unwrap_or_default(),
            commit.unwrap_or_default()
        ));
    }
    exposed.advice(mount).severity(severity).fires()
}

/// Why the mode of the root is not set in fstab: ext4 takes no other on a remount (`ext4_check_opt_consistency`
/// of fs/ext4/super.c), and the boot remounts the root with what fstab says.
const ROOT_MODE: &str = "its default: change rootflags= of the boot loader, or run tune2fs -o ^journal_data_writeback where the superblock sets it. Not in fstab, where no data= should stand: the boot's remount would fail with \"Cannot change data mode on remount\" and leave the root read-only";

/// What a power cut may do to a file system, and what would keep it from that.
#[derive(Default)]
struct Exposed {
    wrong: Vec<String>,
    /// Option now, option to set, why.
    options: Vec<(String, &'static str, &'static str)>,
    no_journal: bool,
}

impl Exposed {
    fn option(&mut self, now: &str, means: &str, value: &'static str, why: &'static str) {
        self.wrong.push(format!("{now}: {means}"));
        self.options.push((now.to_owned(), value, why));
    }

    fn advice(self, mount: &Mount) -> Advice {
        let place = &*mount.place;
        let mut advice = Advice::new(self.wrong.join("; "));
        for (now, value, why) in self.options {
            advice = advice
                .by_hand(format!("mount option of {place}"), value, why)
                .now(now);
        }
        if !self.no_journal {
            return advice;
        }
        advice
            .by_hand(
                format!("journal of {place}"),
                "has_journal",
                "tune2fs -O has_journal on the unmounted file system (the root's from a rescue system). Leave it where everything is made anew after a crash",
            )
            .now("none")
    }
}
