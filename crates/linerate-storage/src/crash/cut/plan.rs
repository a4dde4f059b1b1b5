//! Which power cuts are made.

use linerate_model::units::Nanos;

/// A file system that power cuts are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystemKind {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs, which has no shutdown.
    Btrfs,
}

impl FileSystemKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ext4, Self::Xfs, Self::Btrfs];

    /// As mount knows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// The program that makes it with its options, and the package that has it.
    pub(super) const fn maker(self) -> (&'static str, &'static [&'static str], &'static str) {
        match self {
            Self::Ext4 => ("mkfs.ext4", &["-q", "-F", "-E", "nodiscard"], "e2fsprogs"),
            Self::Xfs => ("mkfs.xfs", &["-q", "-f", "-K"], "xfsprogs"),
            Self::Btrfs => ("mkfs.btrfs", &["-q", "-f", "-K"], "btrfs-progs"),
        }
    }

    /// Size of its image, bytes: XFS takes no less than 300 MiB (mkfs.xfs(8)).
    pub(super) const fn image_bytes(self) -> u64 {
        match self {
            Self::Ext4 | Self::Xfs => 320 << 20,
            Self::Btrfs => 256 << 20,
        }
    }
}

/// How power is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Nothing more is written.
    NoLog,
    /// The journal is written, and no data.
    Log,
    /// The image is copied while the file system is quiet: all that it has sent to its disk is kept.
    Copy,
}

impl How {
    /// As records have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoLog => "nolog",
            Self::Log => "log",
            Self::Copy => "copy",
        }
    }
}

/// What comes between writing and the cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// Nothing.
    Nothing,
    /// Another program's fsync of another file.
    OtherFsync,
    /// So much time.
    Wait(Nanos),
}

impl Before {
    /// As records have it: `none`, `other-fsync`, `36s`.
    pub fn name(self) -> String {
        match self {
            Self::Nothing => "none".to_owned(),
            Self::OtherFsync => "other-fsync".to_owned(),
            Self::Wait(time) => format!("{}s", time.as_secs_f64()),
        }
    }
}

/// A power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Of which file system.
    pub file_system: FileSystemKind,
    /// Its mount options; empty = defaults.
    pub options: &'static str,
    /// How.
    pub how: How,
    /// What comes before it.
    pub before: Before,
}

const EXT4_OPTIONS: [&str; 5] = [
    "",
    "noauto_da_alloc",
    "nodelalloc",
    "data=writeback",
    "data=journal",
];
/// Around the times at which ext4 (5 s, 40 s), XFS and btrfs (30 s, 35 s) write data and journal with their defaults, s.
const WAITS: [u64; 6] = [6, 31, 33, 36, 41, 46];

/// A cut right behind the journal races with data that are on their way: ext4 and XFS were seen to leave `new` or NUL, and
/// `new` or EMPTY. So often it is made.
const RACES: usize = 5;

/// The power cuts of these file systems: those that come at once, and with `window` also those after a time, which take
/// 46 s together.
pub fn plan(file_systems: &[FileSystemKind], window: bool) -> Vec<Cut> {
    let mut cuts = Vec::new();
    for file_system in file_systems.iter().copied() {
        let options = match file_system {
            FileSystemKind::Ext4 => &EXT4_OPTIONS[..],
            FileSystemKind::Xfs | FileSystemKind::Btrfs => &EXT4_OPTIONS[..1],
        };
        for options in options.iter().copied() {
            for how in ways(file_system, options).iter().copied() {
                let cut = |before| Cut {
                    file_system,
                    options,
                    how,
                    before,
                };
                let times = if how == How::Log { RACES } else { 1 };
                cuts.extend(std::iter::repeat_n(cut(Before::Nothing), times));
                cuts.push(cut(Before::OtherFsync));
            }
        }
    }
    if window {
        for seconds in WAITS {
            cuts.extend(file_systems.iter().map(|file_system| Cut {
                file_system: *file_system,
                options: "",
                how: ways(*file_system, "")[0],
                before: Before::Wait(Nanos(seconds * 1_000_000_000)),
            }));
        }
    }
    cuts
}

fn ways(file_system: FileSystemKind, options: &str) -> &'static [How] {
    match (file_system, options) {
        (FileSystemKind::Btrfs, _) => &[How::Copy],
        (_, "") => &[How::NoLog, How::Log, How::Copy],
        _ => &[How::NoLog, How::Log],
    }
}
