//! The memory limit of the process: `memory.max` of its cgroups, version 2.

use std::path::{Path, PathBuf};

/// Groups within groups; deeper ones are not looked at.
const DEEPEST: usize = 32;

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
}
