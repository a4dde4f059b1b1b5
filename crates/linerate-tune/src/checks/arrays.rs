//! Arrays of md: S12, S13, S14.

use linerate_model::host::{Array, StorageDevice};
use linerate_model::tuning::BlockSetting;
use linerate_model::units::{Bytes, grouped};

use crate::case::{Advice, Answer, Case, does_not_apply, holds};

/// The kernel's own size of the stripe cache (Documentation/admin-guide/md.rst).
const STRIPE_CACHE: u64 = 256;
/// From this kernel on the stripe cache grows by itself (drivers/md/raid5.c, `R5_ALLOC_MORE`).
const CACHE_GROWS: (u32, u32) = (4, 1);
/// From members of this size on mdadm(8) adds a bitmap by itself.
const BITMAP_FROM: Bytes = Bytes(100 << 30);

/// RAID 4, 5, 6.
pub(super) fn has_parity(level: &str) -> bool {
    ["raid4", "raid5", "raid6"].contains(&level)
}

fn has_copies(level: &str) -> bool {
    ["raid1", "raid10"].contains(&level)
}

/// The array with its level, where that has redundancy.
fn redundant(device: &StorageDevice) -> Option<(&Array, &str)> {
    let level = device.level()?;
    let array = device.array.as_ref()?;
    (has_parity(level) || has_copies(level)).then_some((array, level))
}

/// What it synchronises now; absent = it rests.
fn busy(array: &Array) -> Option<&str> {
    let action = array.sync_action.as_deref()?;
    (!["idle", "frozen"].contains(&action)).then_some(action)
}

/// S12
pub(crate) fn health(case: &Case<'_>, device: &StorageDevice) -> Answer {
    let Some((array, level)) = redundant(device) else {
        return does_not_apply("it has no redundancy");
    };
    let name = &*device.device.name;
    let Some(degraded) = array.degraded else {
        return Err("sysfs shows no md/degraded of it".to_owned());
    };
    if degraded > 0 {
        let rebuilds = busy(array) == Some("recover");
        let (rebuilding, value, what_to_do) = if rebuilds {
            (
                ", and a spare is being rebuilt",
                "let the rebuild end",
                "another failure may lose everything until then: back up what has no copy, look at SMART of the members that are read, change nothing meanwhile. S13 says what limits it",
            )
        } else {
            (
                ", and nothing is being rebuilt",
                "complete",
                "mdadm --detail names the missing one; look at its cable and SMART first, back up, then add a disk (mdadm --manage --add). Never --create or --assemble --force over it: they can destroy what is left",
            )
        };
        return Advice::new(format!(
            "{degraded} of its members {} missing{rebuilding}",
            if degraded == 1 { "is" } else { "are" }
        ))
        .by_hand(format!("members of {name}"), value, what_to_do)
        .fires();
    }
    let Some(sectors) = array.mismatches else {
        return Err("sysfs shows no md/mismatch_cnt of it".to_owned());
    };
    if sectors == 0 {
        return holds("complete, no mismatches at the last check");
    }
    let counted = match busy(array) {
        Some(action) => format!("so far in the {action} that runs"),
        None => "at the last check".to_owned(),
    };
    let found = format!(
        "its members differed in {} sectors {counted}",
        grouped(sectors)
    );
    if has_copies(level) {
        let swap = case.facts.storage.swap.known().into_iter().flatten();
        let swaps = |on: &str| {
            let stack = case.facts.storage.stack(on);
            stack
                .iter()
                .any(|one| one.device.name == device.device.name)
        };
        if swap.into_iter().any(|on| swaps(on)) {
            return holds(format!(
                "{found}; swap on mirrors makes such differences, in pages that nobody reads again"
            ));
        }
        return Advice::new(format!(
            "{found}; on mirrors that may be pages that changed while they were written (md(4)), or a disk that returns wrong data"
        ))
        .by_hand(
            format!("check of {name}"),
            "once more",
            "while it is quiet (echo check > md/sync_action), and compare SMART of the members. A repair copies from the first member without knowing which is right: only with a backup",
        )
        .severity(3)
        .fires();
    }
    Advice::new(format!(
        "{found}; with parity only hardware does that (md(4)): a disk, controller or memory returned wrong data"
    ))
    .by_hand(
        format!("hardware below {name}"),
        "found and replaced",
        "SMART, kernel log, memory test; back up first. A repair recomputes parity from data that may be what is wrong: not before the cause is known",
    )
    .fires()
}

/// S13
pub(crate) fn synchronisation(_: &Case<'_>, device: &StorageDevice) -> Answer {
    let Some((array, _)) = redundant(device) else {
        return does_not_apply("it has no redundancy");
    };
    let Some(action) = busy(array) else {
        if array.sync_action.is_none() {
            return Err("sysfs shows no md/sync_action of it".to_owned());
        }
        return does_not_apply("nothing is being synchronised");
    };
    let (Some(speed), Some(least), Some(most)) = (
        array.sync_speed_kib,
        array.sync_speed_min,
        array.sync_speed_max,
    ) else {
        return Err(format!(
            "a {action} runs, and sysfs does not show its speed and limits (md/sync_speed, sync_speed_min, sync_speed_max)"
        ));
    };
    let name = &*device.device.name;
    // Within 5 %.
    if speed.saturating_mul(20) >= most.kib.saturating_mul(19) {
        return Advice::new(format!(
            "the {action} runs at {} KiB/s, its cap of {}: the cap limits it, unless the disks end there too",
            grouped(speed),
            grouped(most.kib)
        ))
        .block(
            name,
            BlockSetting::SyncSpeedMax,
            2 * most.kib,
            "for the night, or while a member is missing, if users can spare the disks; watch whether the speed follows, and write 'system' to put it back",
        )
        .now(most.kib)
        .fires();
    }
    if speed.saturating_mul(20) <= least.kib.saturating_mul(21) {
        return Advice::new(format!(
            "the {action} runs at {} KiB/s, its minimum of {}: other I/O on the members holds it there",
            grouped(speed),
            grouped(least.kib)
        ))
        .by_hand(
            format!("sync_speed_min of {name}"),
            "higher",
            "it takes that rate from the users; do it at night, or where a missing member is the greater risk",
        )
        .now(least.kib)
        .fires();
    }
    holds(format!(
        "{action} at {} KiB/s, between {} and {}: the disks or the load limit it",
        grouped(speed),
        grouped(least.kib),
        grouped(most.kib)
    ))
}

/// S14
pub(crate) fn after_a_crash(case: &Case<'_>, device: &StorageDevice) -> Answer {
    let Some((array, level)) = redundant(device) else {
        return does_not_apply("it has no redundancy");
    };
    let name = &*device.device.name;
    let whole = match (array.consistency_policy.as_deref(), array.bitmap.as_deref()) {
        (Some(policy), _) => policy == "resync",
        (None, Some(bitmap)) => bitmap == "none",
        (None, None) => {
            return Err(
                "sysfs shows neither md/consistency_policy nor md/bitmap/location of it".to_owned(),
            );
        }
    };
    let members = device.device.below.iter();
    let sizes = members.filter_map(|member| case.facts.storage.device(member)?.device.size);
    let member = sizes.min();
    let mut wrong: Vec<String> = Vec::new();
    let mut changes: Vec<(String, String, &str)> = Vec::new();
    if let Some(member) = member.filter(|member| whole && *member >= BITMAP_FROM) {
        wrong.push(format!(
            "it has no bitmap: after a crash all {member} of each member are synchronised"
        ));
        changes.push((
            format!("bitmap of {name}"),
            "internal".to_owned(),
            "mdadm --grow --bitmap=internal, as mdadm does by itself from members of 100 GiB on; not while it synchronises. Leave it where the last per cent of small writes counts more",
        ));
    }
    let small = array.stripe_cache_size == Some(STRIPE_CACHE);
    let fixed = case.kernel().is_ok_and(|kernel| kernel < CACHE_GROWS);
    if has_parity(level) && small && fixed {
        wrong.push(format!(
            "its stripe cache has the default of {STRIPE_CACHE} pages a member, which this kernel does not let grow: writes read parity more often"
        ));
        changes.push((
            format!("md/stripe_cache_size of {name}"),
            "larger".to_owned(),
            "double it and measure; it takes 4 KiB × members × its value of memory, and never falls below it",
        ));
    }
    if wrong.is_empty() {
        return match (whole, member) {
            (true, None) => {
                Err("it has no bitmap, and the size of its members is not known".to_owned())
            }
            (true, Some(member)) => holds(format!("no bitmap, for members of {member}")),
            (false, _) => holds(match array.consistency_policy.as_deref() {
                Some(policy) => format!("consistent by {policy}"),
                None => "it has a bitmap".to_owned(),
            }),
        };
    }
    let mut advice = Advice::new(wrong.join("; "));
    for (what, value, why) in changes {
        advice = advice.by_hand(what, value, why);
    }
    advice.fires()
}
