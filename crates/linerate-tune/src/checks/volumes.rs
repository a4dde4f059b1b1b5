//! Logical volumes, and what waits in memory: S15, S16.

use linerate_model::block::BlockKind;
use linerate_model::units::Bytes;

use super::old_advice::Answers;
use crate::case::{Advice, Answer, Case, does_not_apply, holds};

/// `vm.dirty_expire_centisecs` of the kernel, s.
const EXPIRE_S: u64 = 30;
/// What is advised to wait at most, and from what on the kernel writes, s of the disks.
const WAIT_S: (u64, u64) = (10, 5);
const LVS: &str = "run as root: lvs -a -o +segtype,mirror_log,raid_sync_action,raid_mismatch_count,data_percent,metadata_percent,lv_health_status --reportformat json | linerate explain";

/// S15
pub(crate) fn logical(case: &Case<'_>) -> Answers {
    let devices = match case.facts.storage.devices.ask() {
        Ok(devices) => devices,
        Err(why) => return vec![(None, Err(why))],
    };
    let volumes: Vec<&str> = devices
        .iter()
        .filter_map(|one| match &one.device.kind {
            BlockKind::Mapped { name, uuid, .. } if uuid.starts_with("LVM-") => Some(&**name),
            _ => None,
        })
        .collect();
    if volumes.is_empty() {
        return vec![(None, does_not_apply("it has no logical volumes (LVM)"))];
    }
    // Names that lvm(8) reserves for the parts of a volume.
    let mut mirrors: Vec<&str> = volumes
        .iter()
        .filter_map(|name| name.split_once("_mimage_").map(|(whole, _)| whole))
        .collect();
    mirrors.sort_unstable();
    mirrors.dedup();
    let mut answers: Answers = mirrors
        .into_iter()
        .map(|mirror| {
            let log = format!("{mirror}_mlog");
            let in_memory = !volumes.iter().any(|name| name.starts_with(&log));
            (
                Some(full_name(mirror)),
                legacy(&full_name(mirror), in_memory),
            )
        })
        .collect();
    let has = |part: &str| volumes.iter().any(|name| name.contains(part));
    let (raid, thin) = (has("_rimage_"), has("_tdata"));
    if raid || thin {
        let what = match (raid, thin) {
            (true, true) => "the state of its RAID volumes and how full its thin pools are",
            (true, false) => "the state of its RAID volumes",
            _ => "how full its thin pools are",
        };
        answers.push((None, Err(format!("files do not show {what}; {LVS}"))));
    }
    if answers.is_empty() {
        answers.push((
            None,
            holds("its logical volumes are neither mirrors of the old kind, RAID nor thin"),
        ));
    }
    answers
}

fn legacy(name: &str, in_memory: bool) -> Answer {
    let log = if in_memory {
        " with its log in memory: each activation, so each boot, copies all of it again"
    } else {
        ""
    };
    Advice::new(format!("a mirror of the old kind (segment type mirror){log}"))
        .by_hand(
            format!("segment type of {name}"),
            "raid1",
            "lvconvert --type raid1, with a backup and once it is in sync; it needs an extent for metadata on each disk. Where its halves are striped, make a raid10 volume and copy",
        )
        .now("mirror")
        .fires()
}

/// `vg0/home` for `vg0-home`: the device mapper doubles the hyphens within names.
fn full_name(mapped: &str) -> String {
    let hidden = mapped.replace("--", "\0");
    hidden.replacen('-', "/", 1).replace('\0', "-")
}

/// S16
pub(crate) fn dirty_pages(case: &Case<'_>) -> Answer {
    let bytes = case.number("vm.dirty_bytes")?;
    let (limit, set) = if bytes > 0 {
        (bytes, format!("vm.dirty_bytes = {bytes}"))
    } else {
        let ratio = case.number("vm.dirty_ratio")?;
        let memory = *case.facts.system.memory_bytes.ask()?;
        let limit = u64::try_from(u128::from(memory) * u128::from(ratio) / 100);
        (
            limit.unwrap_or(u64::MAX),
            format!("vm.dirty_ratio = {ratio}"),
        )
    };
    let expire = case.number("vm.dirty_expire_centisecs");
    let expire = expire.map_or(EXPIRE_S, |hundredths| hundredths / 100);
    let all = Bytes(limit);
    let Some(rate) = case.target.disk_rate.filter(|rate| rate.0 > 0) else {
        return Err(format!(
            "up to {all} may wait in memory ({set}); how long the disks take for it needs --disk-rate"
        ));
    };
    let seconds = limit / rate.0;
    if seconds <= expire {
        return holds(format!(
            "up to {all} may wait in memory ({set}), which the disks write in {seconds} s"
        ));
    }
    let why = |seconds: u64| {
        format!(
            "{seconds} s of {rate}/s; leave it where files are mostly deleted or rewritten before they reach the disk"
        )
    };
    Advice::new(format!(
        "up to {all} may wait in memory ({set}), which the disks need {seconds} s to write: an fsync can take that long, and a power cut loses what waits"
    ))
    .sysctl("vm.dirty_bytes", rate.0.saturating_mul(WAIT_S.0), why(WAIT_S.0))
    .now(bytes)
    .sysctl("vm.dirty_background_bytes", rate.0.saturating_mul(WAIT_S.1), why(WAIT_S.1))
    .now_where_known(case.text("vm.dirty_background_bytes").ok())
    .set_by(case.set_by(if bytes > 0 { "vm.dirty_bytes" } else { "vm.dirty_ratio" }))
    .fires()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_device_mapper_are_those_of_lvm() {
        assert_eq!(full_name("vg0-home"), "vg0/home");
        assert_eq!(full_name("my--vg-a--b"), "my-vg/a-b");
    }
}
