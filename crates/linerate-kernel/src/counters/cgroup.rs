//! How far a CPU quota holds the process back: `cpu.stat` of its cgroups, version 2.

use std::io;
use std::path::{Path, PathBuf};

use linerate_model::units::Nanos;

use crate::proc_file::ProcFile;

/// Groups within groups; deeper ones are not looked at.
const DEEPEST: usize = 32;

/// What CPU quotas did, summed over the process's cgroup and those above it that are visible: a
/// quota may sit at any of them (a pod's, a service's).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods of the quota that passed with something to run; 0 where no quota is set.
    pub periods: u64,
    /// Of them, those in which the quota was used up.
    pub throttled: u64,
    /// Time that CPUs stood still for it, summed over CPUs; to the microsecond.
    pub throttled_time: Nanos,
}

/// Opens the `cpu.stat` files that count throttling, from the own group upwards.
pub(crate) fn open() -> Vec<ProcFile> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let counts = |file: &mut ProcFile| file.read().is_ok_and(|text| parse(text).is_some());
    groups(&own, &mounts)
        .into_iter()
        .filter_map(|group| ProcFile::open(group.join("cpu.stat")).ok())
        .filter_map(|mut file| counts(&mut file).then_some(file))
        .collect()
}

/// The least `memory.max` of the own group and those above it, bytes; `None` where none is set, or no group is seen.
pub fn memory_limit() -> Option<u64> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let limit = |group: &PathBuf| -> Option<u64> {
        let text = std::fs::read_to_string(group.join("memory.max")).ok()?;
        // "max" where there is none.
        text.trim().parse().ok()
    };
    groups(&own, &mounts).iter().filter_map(limit).min()
}

/// `None` where no group counts throttling.
pub(crate) fn read(files: &mut [ProcFile]) -> io::Result<Option<Throttling>> {
    let mut sum = None;
    for file in files {
        let Some(one) = parse(file.read()?) else {
            continue;
        };
        let sum = sum.get_or_insert_with(Throttling::default);
        sum.periods += one.periods;
        sum.throttled += one.throttled;
        sum.throttled_time = sum.throttled_time.plus(one.throttled_time);
    }
    Ok(sum)
}

/// The directories of the own group and of those above it.
fn groups(own: &str, mounts: &str) -> Vec<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"));
    let mount = mounts.lines().find_map(mount_of_version_2);
    let (Some(own), Some((root, at))) = (own, mount) else {
        return Vec::new();
    };
    // The mount may show a part of the tree only, and the process may be outside of it.
    let Ok(below) = Path::new(own).strip_prefix(root) else {
        return Vec::new();
    };
    if below.components().any(|part| part.as_os_str() == "..") {
        return Vec::new();
    }
    below
        .ancestors()
        .take(DEEPEST)
        .map(|part| Path::new(at).join(part))
        .collect()
}

/// `36 35 98:0 /root /mount/point options - cgroup2 …`: root and mount point.
fn mount_of_version_2(line: &str) -> Option<(&str, &str)> {
    let (mount, filesystem) = line.split_once(" - ")?;
    if filesystem.split_ascii_whitespace().next() != Some("cgroup2") {
        return None;
    }
    let mut fields = mount.split_ascii_whitespace().skip(3);
    Some((fields.next()?, fields.next()?))
}

fn parse(text: &str) -> Option<Throttling> {
    let value = |name: &str| {
        text.lines().find_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix(' ')?
                .trim()
                .parse::<u64>()
                .ok()
        })
    };
    Some(Throttling {
        periods: value("nr_periods")?,
        throttled: value("nr_throttled")?,
        throttled_time: Nanos(value("throttled_usec")?.saturating_mul(1000)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "22 1 0:20 / /sys rw - sysfs sysfs rw\n\
        30 22 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn groups_go_from_the_own_one_upwards() {
        let own = "9:cpu:/elsewhere\n0::/system.slice/linerate.service\n";
        let at = Path::new("/sys/fs/cgroup");
        let expected = [
            at.join("system.slice/linerate.service"),
            at.join("system.slice"),
            at.join(""),
        ];
        assert_eq!(groups(own, MOUNTS), expected);
    }

    #[test]
    fn groups_outside_of_the_mount_and_version_1_have_none() {
        assert!(groups("0::/../other\n", MOUNTS).is_empty());
        assert!(groups("4:memory:/a\n", MOUNTS).is_empty());
        assert!(groups("0::/a\n", "").is_empty());
        let part = MOUNTS.replace("0:26 / ", "0:26 /docker/1 ");
        assert!(groups("0::/other\n", &part).is_empty());
        assert_eq!(groups("0::/docker/1/x\n", &part).len(), 2);
    }

    #[test]
    fn a_group_without_the_cpu_controller_does_not_count() {
        let text = "usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 2500\n";
        let throttling = Throttling {
            periods: 10,
            throttled: 3,
            throttled_time: Nanos(2_500_000),
        };
        assert_eq!(parse(text), Some(throttling));
        assert_eq!(parse("usage_usec 5\nuser_usec 3\n"), None);
    }
}
