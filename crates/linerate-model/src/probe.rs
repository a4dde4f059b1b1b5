//! What a probe of a disk did and counted: `linerate disk probe`.

use serde::{Deserialize, Serialize};

use crate::block::BlockDevice;
use crate::latency::Latencies;
use crate::plain_text::PlainText;
use crate::storage::FioJob;
use crate::units::{Bytes, Nanos};

/// The version of the document that this build writes.
pub const SCHEMA_VERSION: u32 = 1;

/// A probe of one directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// When it began, ms since 1970-01-01 UTC.
    pub started_at_unix_ms: u64,
    /// Kernel release; absent = not known.
    pub kernel: Option<PlainText>,
    /// Where.
    pub place: ProbePlace,
    /// How direct I/O went.
    pub direct: Direct,
    /// Part of the file that has data, which patterns stay within.
    pub file: Bytes,
    /// Writing that part for the first time.
    pub layout: Option<Layout>,
    /// Half a percent as 0.005: the precision that ended the patterns; absent = they had a fixed time.
    pub precision: Option<f64>,
    /// What the user says the disk is made of.
    #[serde(default)]
    pub spindles: Option<Spindles>,
    /// The patterns, in the order in which they ran.
    pub runs: Vec<PatternRun>,
    /// Why it ended before all was done; absent = all was done.
    pub ended: Option<ProbeEnd>,
    /// What fio measured in the same file.
    #[serde(default)]
    pub fio: Option<FioRun>,
    /// Bytes written, for the daily budget.
    pub wear: Wear,
}

/// The directory that was probed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbePlace {
    /// Its path, as it was given.
    pub folder: PlainText,
    /// The kind of file system: `ext4`, `nfs4`; absent = not known.
    pub file_system: Option<PlainText>,
    /// Where that is mounted; absent = not known.
    pub mounted_at: Option<PlainText>,
    /// Its size.
    pub size: Bytes,
    /// What was free before.
    pub free: Bytes,
    /// Whether the files are, or may be, on another host.
    pub network: bool,
    /// The device of its files; absent = the kernel names none (btrfs, overlay, network).
    pub device: Option<BlockDevice>,
    /// The disk of that device, where it is a partition.
    pub disk: Option<BlockDevice>,
}

/// Whether the page cache was passed by (`O_DIRECT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "direct", rename_all = "snake_case")]
pub enum Direct {
    /// It was.
    Yes {
        /// Multiple at which buffers begin, bytes.
        memory: u64,
        /// Multiple of offsets and lengths, bytes.
        offset: u64,
    },
    /// The file system takes `O_DIRECT` and keeps pages all the same.
    Kept,
    /// The file system has no direct I/O for this file.
    Refused,
    /// It has, at a larger multiple than the blocks of the patterns.
    TooCoarse {
        /// That multiple, bytes.
        offset: u64,
    },
}

/// What was written before the first pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Bytes.
    pub bytes: Bytes,
    /// Time that they took, the sync behind them included.
    pub time_ns: Nanos,
}

macro_rules! patterns {
    ($($(#[doc = $doc:literal])+ $pattern:ident = $name:literal,)+) => {
        /// What is done to the file.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Pattern {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $pattern,)+
        }

        impl Pattern {
            /// All of them, in the order in which they run.
            pub const ALL: &[Self] = &[$(Self::$pattern),+];

            /// Its name in options and documents.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$pattern => $name,)+
                }
            }
        }
    };
}

// What writes most comes last: the day's budget may end it.
patterns! {
    /// Reads of 1 MiB one after the other, 4 at a time.
    SequentialRead = "seq-read",
    /// Reads of 4 KiB anywhere, one at a time.
    RandomRead = "rand-read",
    /// Reads of 4 KiB anywhere, 32 at a time.
    RandomReadDeep = "rand-read-32",
    /// Writes of 4 KiB one after the other, each followed by fdatasync(2).
    Sync = "sync",
    /// The file written once by the page cache, in writes of 1 MiB, and an fsync(2) at the end.
    Buffered = "buffered",
    /// Writes of 4 KiB anywhere, one at a time.
    RandomWrite = "rand-write",
    /// Writes of 4 KiB anywhere, 32 at a time.
    RandomWriteDeep = "rand-write-32",
    /// Writes of 1 MiB one after the other, 4 at a time.
    SequentialWrite = "seq-write",
}

impl Pattern {
    /// Bytes of a request.
    pub const fn block(self) -> u64 {
        match self {
            Self::SequentialWrite | Self::SequentialRead | Self::Buffered => 1 << 20,
            _ => 4096,
        }
    }

    /// Requests at a time.
    pub const fn depth(self) -> usize {
        match self {
            Self::SequentialWrite | Self::SequentialRead => 4,
            Self::RandomReadDeep | Self::RandomWriteDeep => 32,
            _ => 1,
        }
    }

    /// Whether it writes.
    pub const fn writes(self) -> bool {
        !matches!(
            self,
            Self::SequentialRead | Self::RandomRead | Self::RandomReadDeep
        )
    }

    /// Whether its blocks are anywhere in the file.
    pub const fn random(self) -> bool {
        matches!(
            self,
            Self::RandomRead | Self::RandomReadDeep | Self::RandomWrite | Self::RandomWriteDeep
        )
    }

    /// Whether it passes the page cache by, where that is possible.
    pub const fn direct(self) -> bool {
        !matches!(self, Self::Sync | Self::Buffered)
    }
}

/// Time of a tick of [`PatternRun::ticks`].
pub const TICK: Nanos = Nanos::from_millis(50);
/// So many are a second.
pub const TICKS_PER_SECOND: usize = 20;

/// What one pattern came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PatternRun {
    /// Which.
    pub pattern: Pattern,
    /// Whether it passed the page cache by.
    pub direct: bool,
    /// Who made the requests.
    pub engine: Engine,
    /// Requests that ended in each [`TICK`] since it began; the last one may be shorter.
    pub ticks: Vec<u64>,
    /// Ticks at the begin that are the ramp.
    pub ramp_ticks: usize,
    /// The measured time behind the ramp.
    pub measured_ns: Nanos,
    /// Requests that ended in it.
    pub requests: u64,
    /// How long each of them took.
    pub latency: Latencies,
    /// Bytes that were read or written from its begin to its end, ramp included.
    pub bytes: Bytes,
    /// Of [`Pattern::Buffered`]: how long the fsync took that its measured time ends with; absent = it did not end.
    pub sync_ns: Option<Nanos>,
    /// What the device below did meanwhile, whoever asked for it; absent = not counted.
    pub device: Option<DeviceWork>,
    /// Processes that read or wrote meanwhile, on whatever disk, those that did most first: as far as this user may see it.
    #[serde(default)]
    pub busy: Vec<BusyProcess>,
    /// How much of the file the page cache held when it ended; absent = not known.
    pub cached: Option<Bytes>,
    /// Why it ended early; absent = it did not.
    pub ended: Option<ProbeEnd>,
}

/// Who makes the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "engine", rename_all = "snake_case")]
pub enum Engine {
    /// One thread, by `io_uring`.
    IoUring,
    /// A thread for each request at a time, by pread(2) and pwrite(2), because there is no ring.
    Threads {
        /// Why.
        because: NoRing,
    },
    /// One thread, by pwrite(2), as the pattern is.
    OneThread,
}

/// Why there is no ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum NoRing {
    /// The kernel or a filter of system calls forbids it.
    Forbidden,
    /// The kernel has none, or a filter says so.
    Absent,
    /// The kernel's has not all that is needed (Linux 5.6).
    TooOld,
    /// It may not lock the memory.
    NoMemory,
    /// Another error of the kernel.
    Other {
        /// Its number.
        errno: i32,
    },
}

/// A process that used disks while a pattern ran, by /proc/PID/io.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusyProcess {
    /// Its number.
    pub pid: u32,
    /// Its program's name, at most 15 bytes.
    pub program: PlainText,
    /// Bytes read from disks.
    pub read: Bytes,
    /// Bytes written to disks, or to be written.
    pub written: Bytes,
}

/// What a device did, by /proc/diskstats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceWork {
    /// Bytes read.
    pub read: Bytes,
    /// Bytes written.
    pub written: Bytes,
}

/// Why a pattern or the whole probe ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum ProbeEnd {
    /// The user stopped it.
    Stopped,
    /// Nothing more may be written today.
    Budget,
    /// Requests did not end in time.
    NoAnswer,
    /// What was written could not be kept for the budget.
    NoAccount,
    /// The kernel refused a request.
    Failed {
        /// Its error: ENOSPC, EIO, EDQUOT …
        errno: i32,
    },
}

/// Bytes written, for the daily budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wear {
    /// By this probe.
    pub written: Bytes,
    /// By earlier ones on the same day (UTC).
    pub before: Bytes,
    /// What all of a day may write.
    pub budget: Bytes,
}

/// What the user says the disk is made of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spindles {
    /// How many disks.
    pub count: u32,
    /// Their rotations a minute.
    pub rpm: u32,
    /// Their mean seek, ms.
    pub seek_ms: f64,
    /// How they are joined.
    pub raid: Raid,
}

macro_rules! raids {
    ($($(#[doc = $doc:literal])+ $raid:ident = $name:literal,)+) => {
        /// How disks are joined.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Raid {
            $($(#[doc = $doc])+ $raid,)+
        }

        impl Raid {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$raid),+];

            /// As options name it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$raid => $name,)+
                }
            }
        }
    };
}

raids! {
    /// Striped, or one disk.
    Raid0 = "raid0",
    /// All disks hold the same.
    Raid1 = "raid1",
    /// Striped pairs.
    Raid10 = "raid10",
    /// One parity.
    Raid5 = "raid5",
    /// Two parities.
    Raid6 = "raid6",
}

/// What fio measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FioRun {
    /// Its jobs.
    pub jobs: Vec<FioJob>,
    /// The exit code; absent = a signal ended it.
    pub exit_code: Option<i32>,
    /// Whether it was ended before it ended by itself: its time or the day's budget was over, or the user stopped it.
    pub cut: bool,
    /// What it said on standard error.
    pub said: PlainText,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_documents_are_those_of_the_options() {
        for pattern in Pattern::ALL {
            let text = serde_json::to_string(pattern).unwrap();
            assert_eq!(text, format!("\"{}\"", pattern.name()));
        }
        for raid in Raid::ALL {
            let text = serde_json::to_string(raid).unwrap();
            assert_eq!(text, format!("\"{}\"", raid.name()));
        }
    }
}
