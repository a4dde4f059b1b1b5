//! Arrays of md and volumes of LVM: what is missing, what is being copied, what a volume is made of.
//!
//! Sources: `md_seq_show` and `status_resync` of drivers/md/md.c, Documentation/admin-guide/md.rst; lvs(8), lvmraid(7).

use std::collections::HashMap;
use std::fmt::Write as _;

use linerate_model::finding::{Finding, Severity};
use linerate_model::plain_text::PlainText;
use linerate_model::storage::{Array, ArraySync, Arrays, LogicalVolume, VolumeGroup, Volumes};
use linerate_model::units::{Bytes, grouped};

use crate::draft::{Draft, limit_if};

/// `dev.raid.speed_limit_max` by default, KiB/s (`SYSCTL_SPEED_LIMIT_MAX` of md.c).
const SPEED_MAX: u64 = 200_000;
/// From this share of the limit on it is reached.
const REACHED: f64 = 0.95;

pub(super) fn arrays(held: &Arrays) -> (String, Vec<Finding>) {
    let title = format!("/proc/mdstat: {} array(s)", held.arrays.len());
    if held.arrays.is_empty() {
        let none = Finding::new(
            "raid-state",
            Severity::Note,
            "No md array is set up".to_owned(),
        );
        return (title, vec![none]);
    }
    (title, held.arrays.iter().map(array).collect())
}

fn array(array: &Array) -> Finding {
    let faulty = names(array, 'F');
    let missing = missing(array);
    let mut sentence = match &array.level {
        Some(level) => format!("{}: {level}", array.name),
        None => format!("{}: {}", array.name, array.state),
    };
    if let Some([disks, up]) = array.disks {
        let _ = write!(sentence, " of {disks}, {up} up");
    }
    sentence.extend(missing.clone());
    if !faulty.is_empty() {
        let _ = write!(sentence, "; faulty: {}", faulty.join(", "));
    }
    sentence.push_str(&spares(array));
    if let Some(sync) = &array.sync {
        sentence.push_str(&progress(array, sync));
    }
    let mismatches = array.mismatches.filter(|count| *count > 0);
    sentence.extend(mismatches.map(|count| differ(array, count)));
    let severity = match &array.sync {
        _ if missing.is_some() || is_down(array) || !faulty.is_empty() => Severity::Limit,
        Some(_) => Severity::Note,
        None if mismatches.is_some() || array.disks.is_none() => Severity::Note,
        None => Severity::Healthy,
    };
    let done = array.sync.as_ref().and_then(|sync| sync.done_percent);
    Draft::new("raid-state", severity, sentence)
        .figure(
            "done, %",
            done.map(|done| done.value),
            format!("line {}", array.line),
        )
        .finding
}

/// Not assembled, or given up by the kernel.
fn is_down(array: &Array) -> bool {
    !array.state.starts_with("active")
}

/// Said where members that are added, or an array that is created, may end what is left of the data.
const NOTHING: &str = "Add, create and zero nothing: compare `mdadm --examine` of all members (Events), and try to assemble copies \
                       of them only";

/// What is missing, and what to do about it.
fn missing(array: &Array) -> Option<String> {
    if array.state.starts_with("inactive") {
        let members: Vec<&str> = array.members.iter().map(|one| one.name.as_str()).collect();
        return Some(format!(
            ": not assembled (a container of external metadata is always so); its members here: {}. {NOTHING}",
            members.join(", ")
        ));
    }
    let lost = array.up.chars().filter(|c| *c == '_').count();
    let lost = lost.max(names(array, 'F').len() * usize::from(array.up.is_empty()));
    if lost == 0 {
        return is_down(array).then(|| format!(": the kernel gave it up. {NOTHING}"));
    }
    let shown = if array.up.is_empty() {
        String::new()
    } else {
        format!(" ([{}])", array.up)
    };
    let level = array.level.as_ref().map_or("", |level| level.as_str());
    let rebuilt = array
        .sync
        .as_ref()
        .is_some_and(|sync| sync.action == "recovery");
    let (sure, may) = survives(array);
    Some(if lost > may {
        format!(": {lost} missing{shown}, more than {level} survives. {NOTHING}")
    } else if lost > sure {
        format!(": {lost} missing{shown}, which may be more than {level} survives. {NOTHING}")
    } else if rebuilt {
        format!(": {lost} missing{shown}, which a spare replaces")
    } else {
        format!(
            ": {lost} missing{shown}. Replace the disk, `mdadm /dev/{} --add DEVICE`",
            array.name
        )
    })
}

/// How many members may be missing: of whatever place, and of the best places.
fn survives(array: &Array) -> (usize, usize) {
    let disks = array
        .disks
        .map_or(array.members.len() as u64, |[disks, _]| disks);
    let disks = usize::try_from(disks).unwrap_or(usize::MAX);
    match array.level.as_ref().map_or("", |level| level.as_str()) {
        "raid1" => (disks.saturating_sub(1), disks.saturating_sub(1)),
        "raid4" | "raid5" => (1, 1),
        "raid6" => (2, 2),
        "raid10" => {
            let copies = usize::try_from(array.copies.unwrap_or(2))
                .unwrap_or(2)
                .max(1);
            (copies - 1, disks - disks.div_ceil(copies))
        }
        _ => (0, 0),
    }
}

/// `; spare: sde1`; members of an array that is not assembled all bear that letter.
fn spares(array: &Array) -> String {
    let spares = names(array, 'S');
    if spares.is_empty() || array.state.starts_with("inactive") {
        return String::new();
    }
    format!("; spare: {}", spares.join(", "))
}

/// What a check found.
fn differ(array: &Array, count: u64) -> String {
    let what = match array.level.as_ref().map_or("", |level| level.as_str()) {
        "raid4" | "raid5" | "raid6" => "data and parity differ",
        _ => "copies differ (harmless for swap on RAID1 and RAID10, md(4))",
    };
    format!("; mismatch_cnt is {} sectors: {what}", grouped(count))
}

/// Members with this mark.
fn names(array: &Array, mark: char) -> Vec<&str> {
    let marked = array.members.iter().filter(|one| one.marks.contains(mark));
    marked.map(|one| one.name.as_str()).collect()
}

/// `; resync 74.0 % done, 49,856 KiB left at 72,352 KiB/s = 1 s`, and what its rate is near to.
fn progress(array: &Array, sync: &ArraySync) -> String {
    if let Some(waits) = &sync.waits {
        let why = match waits.as_str() {
            "DELAYED" => "another array that shares its disks is first",
            "PENDING" => "it begins with the first write, as the array is read-only until then",
            _ => "another node of the cluster does it",
        };
        return format!("; {} is {waits}: {why}", sync.action);
    }
    let mut text = format!("; {}", sync.action);
    if let Some(done) = sync.done_percent {
        let _ = write!(text, " {} % done", done.value);
    }
    let left = sync
        .done_whole_kib
        .map(|[done, whole]| whole.saturating_sub(done));
    if let (Some(left), Some(rate)) = (left, sync.kib_per_second.filter(|rate| *rate > 0)) {
        let _ = write!(
            text,
            ", {} KiB left at {} KiB/s = {} s",
            grouped(left),
            grouped(rate),
            grouped(left.div_ceil(rate))
        );
        let [least, most] = array.speed_limits_kib_s;
        let near = |limit: u64| rate as f64 >= REACHED * limit as f64;
        let limit = most.unwrap_or(SPEED_MAX);
        let whose = if most.is_some() { "" } else { "'s default" };
        if near(limit) && rate <= limit.saturating_mul(2) {
            let unchanged = if most.is_some() {
                ""
            } else {
                ", if it is unchanged"
            };
            let _ = write!(
                text,
                ": sync_speed_max{whose} ({} KiB/s) limits it{unchanged}; raise it while the disks are idle",
                grouped(limit)
            );
        } else if least.is_some_and(|least| rate <= least.saturating_add(least / 20)) {
            text.push_str(": down to sync_speed_min, as others use the disks");
        } else {
            let _ = write!(
                text,
                ", {:.0} % of sync_speed_max{whose} ({} KiB/s), which is not the limit{}",
                rate as f64 / limit.max(1) as f64 * 100.0,
                grouped(limit),
                if most.is_some() {
                    ""
                } else {
                    ", if it is unchanged"
                },
            );
        }
    }
    text
}

pub(super) fn volumes(held: &Volumes) -> (String, Vec<Finding>) {
    let shown = held.volumes.iter().filter(|one| !one.name.starts_with('['));
    let title = format!(
        "LVM: {} volume group(s), {} logical volume(s){}",
        held.groups.len(),
        shown.clone().count(),
        match held.physical.len() {
            0 => String::new(),
            count => format!(", {count} physical volume(s)"),
        }
    );
    // A volume that is listed again, in another form, is said once.
    let mut last: HashMap<[&str; 2], &LogicalVolume> = HashMap::new();
    for one in shown.clone() {
        let known = last.entry([&one.group, &one.name]).or_insert(one);
        if one.segment.is_some() || known.segment.is_none() {
            *known = one;
        }
    }
    let findings = shown.filter_map(|one| {
        let key: [&str; 2] = [&one.group, &one.name];
        last.remove(&key).and_then(volume)
    });
    let partial = held.groups.iter().filter_map(group);
    (title, partial.chain(findings).collect())
}

/// A group of which a device is missing: the fourth letter of its attributes (vgs(8)).
fn group(group: &VolumeGroup) -> Option<Finding> {
    (group.attributes.as_bytes().get(3) == Some(&b'p')).then(|| {
        Finding::new(
            "raid-state",
            Severity::Limit,
            format!(
                "{}: a physical volume of the group is missing (partial): find it by `pvs`; `vgreduce --removemissing` gives up what \
                 was on it",
                group.name
            ),
        )
    })
}

/// From this share on a thin pool is to be extended, %.
const POOL_FULL: f64 = 80.0;

/// Thin pools that run full, and snapshots that did.
fn full(volume: &LogicalVolume, name: &str) -> Option<Finding> {
    if volume.attributes.as_bytes().get(4) == Some(&b'I') {
        let sentence = format!(
            "{name}: the snapshot is invalid, as it ran full: what it held is lost, the origin is not touched"
        );
        return Some(Finding::new("raid-state", Severity::Limit, sentence));
    }
    let is_pool = volume.attributes.starts_with('t');
    let most = volume.used_percent.iter().flatten().copied();
    let most = most.fold(0.0, f64::max);
    if !is_pool || most < POOL_FULL {
        return None;
    }
    let share = |value: Option<f64>| {
        value.map_or_else(|| "not printed".to_owned(), |share| format!("{share} %"))
    };
    let [data, metadata] = volume.used_percent;
    let sentence = format!(
        "{name}: the thin pool's data are used to {}, its metadata to {}: when one is full, writes of all its volumes fail. Extend \
         it first (`lvextend -L`, `lvextend --poolmetadatasize`)",
        share(data),
        share(metadata)
    );
    let place = format!("line {}", volume.line);
    Draft::new("raid-state", Severity::Limit, sentence)
        .figure("data, % used", data, &*place)
        .figure("metadata, % used", metadata, place)
        .done()
}

/// A size: bytes where it has no unit, as in JSON with `--units b --nosuffix`.
fn size(text: &PlainText) -> String {
    text.parse().map_or_else(
        |_| text.as_str().to_owned(),
        |bytes| Bytes(bytes).to_string(),
    )
}

fn volume(volume: &LogicalVolume) -> Option<Finding> {
    let name = format!("{}/{} ({})", volume.group, volume.name, size(&volume.size));
    if let Some(finding) = full(volume, &name) {
        return Some(finding);
    }
    let place = format!("line {}", volume.line);
    let copied = volume.copied_percent;
    let kind = volume.attributes.chars().next().unwrap_or('-');
    // The ninth letter of the attributes (lvs(8)).
    let health = match volume.attributes.as_bytes().get(8) {
        Some(b'p') => "; a device of it is missing (partial)",
        Some(b'r') => "; a device failed for a while: `lvchange --refresh`",
        Some(b'm') => "; copies differ (mismatches)",
        _ => "",
    };
    let draft = match (kind, volume.segment.as_ref().map(PlainText::as_str)) {
        ('m' | 'M', _) => {
            let log = match &volume.log {
                Some(log) => format!("its log is on {log}"),
                None => {
                    "mirror log in memory: full resynchronisation at each activation".to_owned()
                }
            };
            let copied =
                copied.map_or_else(String::new, |percent| format!("; {percent} % are copied"));
            let sentence = format!(
                "{name}: legacy mirror segment type (attribute {kind}), {log}{copied}{health}; `lvconvert --type raid1 {}/{}` \
                 makes it raid1, which keeps its state on disk (lvmraid(7))",
                volume.group, volume.name
            );
            Draft::new("mirror-log", limit_if(volume.log.is_none()), sentence)
        }
        ('r' | 'R', segment) if !segment.is_some_and(|name| name.starts_with("raid0")) => {
            let action = volume
                .action
                .as_ref()
                .map_or_else(String::new, |action| format!(", {action}"));
            let synced =
                copied.map_or_else(String::new, |percent| format!(", {percent} % in sync"));
            let differ = volume.mismatches.filter(|count| *count > 0);
            let differ_said =
                differ.map_or_else(String::new, |count| format!("; {count} sectors differ"));
            let on = match volume.devices.len() {
                0 => String::new(),
                count => format!(" over {count} images"),
            };
            let severity = match (health, differ) {
                ("", None) if copied.is_none_or(|percent| percent >= 100.0) => Severity::Healthy,
                ("", None) => Severity::Note,
                _ => Severity::Limit,
            };
            let sentence = format!(
                "{name}: {}{on}{synced}{action}{differ_said}{health}",
                segment.unwrap_or("raid")
            );
            Draft::new("raid-state", severity, sentence)
        }
        (_, Some("striped" | "raid0" | "raid0_meta")) => Draft::new(
            "raid-state",
            Severity::Note,
            format!(
                "{name}: striped over {} devices without a copy: one disk that fails takes all of it{health}",
                volume.stripes.unwrap_or(0)
            ),
        ),
        _ if !health.is_empty() => {
            Draft::new("raid-state", Severity::Limit, format!("{name}{health}"))
        }
        _ => return None,
    };
    draft.figure("copied, %", copied, place).done()
}
