//! Block devices and their queues: S01, S02, S03, S09, S11.

use linerate_model::audit::Role;
use linerate_model::block::BlockKind;
use linerate_model::host::{NO_STRIPE, Scheduler, StorageDevice, Zoned};
use linerate_model::tuning::BlockSetting;
use linerate_model::units::Bytes;

use crate::case::{Advice, Answer, Case, Place, does_not_apply, holds};

/// What tuned's profiles raise it to where it is less (`readahead=>4096`, KiB).
const TUNED_READ_AHEAD_KIB: u64 = 4096;
/// Commands that a SATA disk takes at most (native command queueing, ATA8-ACS).
const SATA_DEPTH: u32 = 32;
/// The physical block of today's disks and the page of today's flash.
const PHYSICAL: u64 = 4096;
/// What no longer needs a scheduler that keeps the writes to a zone in order: zone write plugging (zonedstorage.io,
/// Kernel Configuration, Write Ordering Control).
const ZONE_WRITE_PLUGGING: (u32, u32) = (6, 10);
/// The first that knows zones and has `queue/zoned` (Documentation/ABI/stable/sysfs-block).
const ZONES: (u32, u32) = (4, 10);
/// Extended partitions, and those that only a boot loader reads, are smaller.
const WITHOUT_DATA: Bytes = Bytes(4 << 20);

fn is_disk(device: &StorageDevice) -> bool {
    matches!(
        device.device.kind,
        BlockKind::Disk | BlockKind::NvmeMultipath
    )
}

/// S01
pub(crate) fn scheduler(case: &Case<'_>, device: &StorageDevice) -> Answer {
    let Some(scheduler) = &device.queue.scheduler else {
        if is_disk(device) && !device.is_nvme() {
            return Err("sysfs shows no queue/scheduler of it".to_owned());
        }
        return does_not_apply("requests are scheduled in the devices below it");
    };
    let chosen = &*scheduler.chosen;
    let alone = scheduler.offered.len() == 1 && chosen == "none";
    match device.queue.zoned {
        // A disk whose module mq-deadline is not loaded has none alone too.
        Some(zoned @ (Zoned::HostAware | Zoned::HostManaged))
            if !alone || device.device.kind == BlockKind::Disk =>
        {
            return of_zones(case, device, scheduler, zoned);
        }
        _ if alone => {
            return does_not_apply("requests are scheduled in the devices below it, or not at all");
        }
        _ => {}
    }
    let advise = |sentence: String, to: &str, severity: u8, why: &str| {
        let has_zones = !case.kernel().is_ok_and(|kernel| kernel < ZONES);
        if ["none", "noop"].contains(&to) && device.queue.zoned.is_none() && has_zones {
            return Err(format!(
                "sysfs shows no queue/zoned of it, so that {to} instead of {chosen} may be wrong for it"
            ));
        }
        Advice::new(sentence)
            .block(&device.device.name, BlockSetting::Scheduler, to, why)
            .now(chosen)
            .severity(severity)
            .fires()
    };
    if device.is_nvme() {
        return match chosen {
            "none" => holds("none, as the kernel chooses for NVMe"),
            // It is made for fast devices, and is worth a comparison.
            "kyber" => advise(
                "kyber holds requests back to keep latency targets; NVMe's default is none"
                    .to_owned(),
                "none",
                4,
                "compare both under your load; keep kyber if reads beside heavy writes get slow without it",
            ),
            _ => advise(
                format!(
                    "{chosen} sorts requests for an NVMe device, which orders them itself: it costs CPU time and IOPS"
                ),
                "none",
                3,
                "the kernel's default for NVMe; keep the scheduler if control groups share this device by io.bfq.weight",
            ),
        };
    }
    let rotates = device.device.rotational;
    let (sorting, passing) = sorting_and_passing(scheduler);
    match chosen {
        "kyber" => advise(
            "kyber holds requests back to keep latency targets".to_owned(),
            if rotates == Some(false) {
                passing
            } else {
                sorting
            },
            4,
            "compare both under your load; keep kyber if reads beside heavy writes get slow without it",
        ),
        "bfq" | "cfq" => advise(
            format!("{chosen} favours latency of interactive work over throughput"),
            if rotates == Some(false) {
                passing
            } else {
                sorting
            },
            3,
            "for data of servers; leave it on a desktop, and where control groups use its weights (io.bfq.weight)",
        ),
        "none" | "noop" if rotates == Some(true) && case.storage_place() == Place::BareMetal => {
            advise(
                format!("{chosen} sends requests to a rotating disk unsorted"),
                sorting,
                4,
                "compare both; leave it behind a RAID controller, which sorts by itself and only looks like a disk",
            )
        }
        _ => holds(chosen),
    }
}

/// The scheduler that sorts requests, and the one that passes them on; Linux before 5.0 may have those of one queue.
fn sorting_and_passing(scheduler: &Scheduler) -> (&'static str, &'static str) {
    let offers = |name: &str| scheduler.offered.iter().any(|one| **one == *name);
    if offers("mq-deadline") || !offers("deadline") {
        ("mq-deadline", "none")
    } else {
        ("deadline", "noop")
    }
}

fn of_zones(
    case: &Case<'_>,
    device: &StorageDevice,
    scheduler: &Scheduler,
    zoned: Zoned,
) -> Answer {
    let chosen = &*scheduler.chosen;
    if ["mq-deadline", "deadline"].contains(&chosen) {
        return holds(format!(
            "{chosen}, which keeps the writes to a zone in order"
        ));
    }
    if case.kernel()? >= ZONE_WRITE_PLUGGING {
        return holds(format!(
            "{chosen}; since Linux 6.10 any scheduler suits a zoned device"
        ));
    }
    let (sorting, _) = sorting_and_passing(scheduler);
    let (kind, out_of_order) = match zoned {
        Zoned::HostManaged => ("host-managed", "fail"),
        _ => ("host-aware", "are slow"),
    };
    Advice::new(format!(
        "it is zoned ({kind}), and {chosen} does not keep the writes to a zone in order: writes out of order {out_of_order}"
    ))
    .block(
        &device.device.name,
        BlockSetting::Scheduler,
        sorting,
        "zoned devices need it before Linux 6.10; leave it where the distribution's kernel has zone write plugging",
    )
    .now(chosen)
    .severity(1)
    .fires()
}

/// S02
pub(crate) fn read_ahead(case: &Case<'_>, device: &StorageDevice) -> Answer {
    if case.target.role != Role::Transfer {
        return does_not_apply("it is about large sequential reads (--role transfer)");
    }
    let striped = match (&device.device.kind, device.level()) {
        (_, Some(level)) => ["raid0", "raid4", "raid5", "raid6", "raid10"].contains(&level),
        (BlockKind::Mapped { .. }, None) => device.stripe().is_some(),
        _ => false,
    };
    if !striped {
        return does_not_apply("it is no striped array");
    }
    // A file is read with the settings of the device that is mounted; a partition has none of its own.
    let mut all = case.facts.storage.devices.known().into_iter().flatten();
    if all.any(|one| !one.is_partition() && one.device.below.contains(&device.device.name)) {
        return does_not_apply("the device that stands on it reads ahead");
    }
    let Some((chunk, stripe)) = device.stripe() else {
        return Err("it states no stripe (queue/minimum_io_size and optimal_io_size)".to_owned());
    };
    let Some(now) = device.queue.read_ahead_kib else {
        return Err("sysfs shows no queue/read_ahead_kb of it".to_owned());
    };
    // block/blk-settings.c (blk_apply_bdi_limits): "at least twice the optimal I/O size".
    let least = (2 * stripe.0).div_ceil(1024);
    let wanted = least.max(TUNED_READ_AHEAD_KIB);
    let why = "sequential reads then keep all members busy; leave it for random reads, which pay for what they do not use";
    let members = stripe.0 / chunk.0;
    if now < least {
        let sentence = format!(
            "read-ahead of {now} KiB is less than two stripes of {stripe} ({members} × {chunk}): a sequential reader does not keep all members busy"
        );
        return Advice::new(sentence)
            .block(&device.device.name, BlockSetting::ReadAheadKb, wanted, why)
            .now(now)
            .fires();
    }
    if now < TUNED_READ_AHEAD_KIB {
        let sentence = format!("read-ahead of {now} KiB is below what tuned gives for throughput");
        return Advice::new(sentence)
            .block(&device.device.name, BlockSetting::ReadAheadKb, wanted, why)
            .now(now)
            .severity(4)
            .fires();
    }
    holds(format!("read-ahead of {now} KiB, stripe of {stripe}"))
}

/// S03
pub(crate) fn queue(_: &Case<'_>, device: &StorageDevice) -> Answer {
    if !is_disk(device) {
        return does_not_apply("it is no disk");
    }
    let queue = &device.queue;
    let name = &device.device.name;
    let Some(nomerges) = queue.nomerges else {
        return Err("sysfs shows no queue of it".to_owned());
    };
    let mut wrong: Vec<String> = Vec::new();
    let mut changes: Vec<(String, String, String, &str)> = Vec::new();
    if let (Some(1), Some(most @ 2..)) = (queue.depth, queue.controller_depth) {
        wrong.push(format!(
            "it is given one command at a time, though its controller takes {most}"
        ));
        changes.push((
            format!("device/queue_depth of {name}"),
            most.min(SATA_DEPTH).to_string(),
            "1".to_owned(),
            "the disk can then order commands; leave it if the kernel log says that this model's NCQ is switched off (libata quirk), or the disk has none",
        ));
    }
    if nomerges != 0 && device.device.rotational == Some(true) {
        wrong.push(
            "adjacent requests are not merged, and it reports to rotate: more, smaller requests"
                .to_owned(),
        );
        changes.push((
            format!("queue/nomerges of {name}"),
            "0".to_owned(),
            nomerges.to_string(),
            "the kernel's default; leave it during a benchmark that must not merge",
        ));
    }
    let uncounted = device.device.counted == Some(false);
    if uncounted {
        wrong.push("the kernel counts nothing of it, so no tool shows its load".to_owned());
        changes.push((
            format!("queue/iostats of {name}"),
            "1".to_owned(),
            "0".to_owned(),
            "the kernel's default",
        ));
    }
    if wrong.is_empty() {
        let depth = queue.depth.map(|depth| format!("depth {depth}, "));
        let counted = device.device.counted.map(|_| ", iostats 1");
        return holds(format!(
            "{}nomerges {nomerges}{}",
            depth.unwrap_or_default(),
            counted.unwrap_or_default()
        ));
    }
    let mut advice = Advice::new(wrong.join("; "));
    for (what, value, now, why) in changes {
        advice = advice.by_hand(what, value, why).now(now);
    }
    if wrong.len() == 1 && uncounted {
        advice = advice.severity(4);
    }
    advice.fires()
}

/// S09
pub(crate) fn preferred_size(_: &Case<'_>, device: &StorageDevice) -> Answer {
    if !is_disk(device) {
        return does_not_apply("an array computes it from its members");
    }
    let Some(optimal) = device.queue.optimal_io else {
        return does_not_apply("it states no preferred size");
    };
    let Some(minimum) = device.queue.minimum_io else {
        return Err("sysfs shows no queue/minimum_io_size of it".to_owned());
    };
    let sentence = if optimal == NO_STRIPE {
        format!(
            "it states a preferred size of {} bytes: the largest number of its field and no stripe",
            optimal.0
        )
    } else if optimal.0 % minimum.0 != 0 {
        format!(
            "it states a preferred size of {} bytes, which is not a multiple of its minimum of {}",
            optimal.0, minimum.0
        )
    } else {
        return holds(format!("{optimal}, a multiple of {minimum}"));
    };
    Advice::new(format!(
        "{sentence}; tools that align by it (mkfs, fdisk, pvcreate) may choose odd starts and stripes"
    ))
    .by_hand(
        "alignment and stripe of what is made on it",
        "by hand",
        "fdisk and pvcreate --dataalignment 1m; mkfs.xfs -d su=,sw= or mkfs.ext4 -E stride=,stripe_width= by the real RAID, none for a single disk. All of these erase: only when it is made anew",
    )
    .fires()
}

/// S11
pub(crate) fn alignment(case: &Case<'_>, device: &StorageDevice) -> Answer {
    if device.device.hidden {
        return does_not_apply("it is a path of another device");
    }
    let Some(offset) = device.alignment_offset else {
        return Err("sysfs shows no alignment_offset of it".to_owned());
    };
    let small = device.device.size.is_some_and(|size| size < WITHOUT_DATA);
    if device.is_partition() && (small || !is_used(case, device)) {
        return does_not_apply("nothing mounted or assembled uses it");
    }
    let anew = "it takes a new partition or volume and a copy of the data: when it is made anew. Not worth it for a boot partition";
    if offset != 0 {
        let sentence = if offset < 0 {
            "the devices below it do not agree on where blocks begin: some requests read and write blocks twice".to_owned()
        } else {
            format!(
                "it begins {offset} bytes off the physical blocks below it: each write at its edges reads first"
            )
        };
        return Advice::new(sentence)
            .by_hand(
                "start of it, or of its volumes (pvs -o +pe_start)",
                "a multiple of 1 MiB",
                anew,
            )
            .fires();
    }
    let Some(start) = device.start else {
        return holds("aligned");
    };
    if start.0 % PHYSICAL != 0 {
        return Advice::new(format!(
            "it starts at byte {}, which is not a multiple of 4096: on disks with 4096-byte blocks that say 512 (virtual ones too), writes read first",
            start.0
        ))
        .by_hand("start of it", "a multiple of 1 MiB", anew)
        .now(start.0)
        .severity(3)
        .fires();
    }
    let disk = device
        .device
        .below
        .first()
        .and_then(|disk| case.facts.storage.device(disk));
    let parity = disk
        .and_then(StorageDevice::level)
        .is_some_and(super::arrays::has_parity);
    if let Some((_, stripe)) = disk.and_then(StorageDevice::stripe).filter(|_| parity)
        && start.0 % stripe.0 != 0
    {
        return Advice::new(format!(
            "it starts at byte {}, inside a stripe of {stripe} of the parity RAID below: writes of whole stripes touch two",
            start.0
        ))
        .by_hand("start of it", format!("a multiple of {stripe}"), anew)
        .now(start.0)
        .severity(3)
        .fires();
    }
    holds(format!("starts at byte {}", start.0))
}

/// Whether a file system, swap space or another device stands on it.
fn is_used(case: &Case<'_>, device: &StorageDevice) -> bool {
    let storage = &case.facts.storage;
    let name = &device.device.name;
    let mut mounts = storage.mounts.known().into_iter().flatten();
    let mut swap = storage.swap.known().into_iter().flatten();
    let mut devices = storage.devices.known().into_iter().flatten();
    mounts.any(|mount| mount.devices.contains(name))
        || swap.any(|other| other == name)
        || devices.any(|other| other.device.below.contains(name))
}
