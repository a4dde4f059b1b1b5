//! How long a file system may keep in memory what was written.

use linerate_model::storage::{Delay, Exposed, Exposure};
use linerate_model::units::Nanos;

const SECOND: u64 = 1_000_000_000;
/// `commit=` of ext4, and what `commit=0` means (Documentation/admin-guide/ext4.rst), s.
const EXT4_COMMIT: u64 = 5;
/// `commit=` of btrfs (btrfs(5)), s.
const BTRFS_COMMIT: u64 = 30;

/// The kernel's settings of writeback, in hundredths of a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Writeback {
    /// `vm.dirty_expire_centisecs`: data that are dirty for longer are written (Documentation/admin-guide/sysctl/vm.rst).
    pub expire: Option<u64>,
    /// `vm.dirty_writeback_centisecs`: how often the threads that write them wake up; 0 = never.
    pub wake: Option<u64>,
    /// `fs.xfs.xfssyncd_centisecs`: how often XFS writes its log (Documentation/admin-guide/xfs.rst).
    pub xfs_log: Option<u64>,
}

impl Writeback {
    /// This kernel's.
    pub fn read() -> Self {
        let value = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
            text.trim().parse().ok()
        };
        Self {
            expire: value("vm/dirty_expire_centisecs"),
            wake: value("vm/dirty_writeback_centisecs"),
            xfs_log: value("fs/xfs/xfssyncd_centisecs"),
        }
    }
}

/// What a file system of this type with these options (separated by commas) may keep in memory of files that no program
/// has synced; `None` where that is not known.
///
/// A sum of what each setting may delay at most: memory pressure and an fsync by any program shorten it. Data written with
/// delayed allocation leave memory first, then the journal says how long the file is; so both times count.
pub fn exposure(file_system: &str, options: &str, writeback: Writeback) -> Option<Exposure> {
    let options: Vec<&str> = options.split(',').collect();
    let has = |name: &str| options.contains(&name);
    if has("sync") {
        return Some(sum(Exposed::Whole, &[("sync", 0)]));
    }
    let commit = |default: u64| {
        let value = options
            .iter()
            .rev()
            .find_map(|one| one.strip_prefix("commit="));
        let value = value.and_then(|value| value.parse().ok());
        let seconds = value.filter(|value| *value != 0).unwrap_or(default);
        ("commit", seconds.saturating_mul(100))
    };
    // With 0 nothing is written by age at all.
    let wake = writeback.wake.filter(|wake| *wake != 0)?;
    let data = [
        ("vm.dirty_expire_centisecs", writeback.expire?),
        ("vm.dirty_writeback_centisecs", wake),
    ];
    match file_system {
        // Without delayed allocation data=ordered writes data before the journal's commit; data=journal has them in it.
        "ext4" if has("data=journal") || (has("nodelalloc") && !has("data=writeback")) => {
            Some(sum(Exposed::Whole, &[commit(EXT4_COMMIT)]))
        }
        // The driver of ext4 mounts it, without delayed allocation.
        "ext3" if !has("data=writeback") => Some(sum(Exposed::Whole, &[commit(EXT4_COMMIT)])),
        "ext4" | "ext3" => Some(sum(Exposed::Data, &[data[0], data[1], commit(EXT4_COMMIT)])),
        "xfs" => {
            let log = ("fs.xfs.xfssyncd_centisecs", writeback.xfs_log?);
            Some(sum(Exposed::Data, &[data[0], data[1], log]))
        }
        "btrfs" if has("flushoncommit") => Some(sum(Exposed::Whole, &[commit(BTRFS_COMMIT)])),
        "btrfs" => Some(sum(
            Exposed::Data,
            &[data[0], data[1], commit(BTRFS_COMMIT)],
        )),
        _ => None,
    }
}

fn sum(exposed: Exposed, delays: &[(&str, u64)]) -> Exposure {
    let time = |centiseconds: u64| centiseconds.saturating_mul(SECOND / 100);
    let longest = delays
        .iter()
        .fold(0_u64, |all, (_, delay)| all.saturating_add(time(*delay)));
    let delays = delays.iter().map(|(setting, delay)| Delay {
        setting: (*setting).into(),
        time_ns: Nanos(time(*delay)),
    });
    Exposure {
        longest_ns: Nanos(longest),
        delays: delays.collect(),
        exposed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Writeback = Writeback {
        expire: Some(3000),
        wake: Some(500),
        xfs_log: Some(3000),
    };

    fn seconds(file_system: &str, options: &str) -> Option<(u64, Exposed)> {
        let found = exposure(file_system, options, USUAL)?;
        Some((found.longest_ns.0 / SECOND, found.exposed))
    }

    #[test]
    fn the_sum_follows_the_options() {
        use Exposed::{Data, Whole};
        for (file_system, options, expected) in [
            ("ext4", "rw,relatime", Some((40, Data))),
            ("ext4", "rw,commit=30,noauto_da_alloc", Some((65, Data))),
            ("ext4", "rw,commit=0", Some((40, Data))),
            ("ext4", "rw,nodelalloc", Some((5, Whole))),
            ("ext4", "rw,nodelalloc,data=writeback", Some((40, Data))),
            ("ext4", "rw,data=journal,commit=1", Some((1, Whole))),
            ("ext3", "rw", Some((5, Whole))),
            ("ext4", "rw,sync", Some((0, Whole))),
            ("xfs", "rw,attr2", Some((65, Data))),
            ("btrfs", "rw,commit=120", Some((155, Data))),
            ("btrfs", "rw,flushoncommit", Some((30, Whole))),
            ("zfs", "rw", None),
            ("ext4", "rw,commit=x", Some((40, Data))),
        ] {
            assert_eq!(
                seconds(file_system, options),
                expected,
                "{file_system} {options}"
            );
        }
        let never = Writeback {
            wake: Some(0),
            ..USUAL
        };
        assert_eq!(exposure("ext4", "rw", never), None);
        assert_eq!(exposure("xfs", "rw", Writeback::default()), None);
        let endless = exposure("ext4", "rw,commit=18446744073709551615", USUAL).unwrap();
        assert_eq!(endless.longest_ns, Nanos(u64::MAX));
    }
}
