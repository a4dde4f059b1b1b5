//! Files that a power cut left empty or without their data.

use serde::{Deserialize, Serialize};

use crate::plain_text::PlainText;
use crate::units::{Bytes, Nanos};
use crate::watch::UnixMillis;

/// What is wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuspectKind {
    /// Its size is 0.
    Empty,
    /// It has a size and space on the disk, and no data: programs read NUL.
    NoData,
    /// Data, and behind them a hole up to its end: programs read NUL there.
    NulTail,
    /// All of its data are NUL that were written; found only by reading.
    Zeros,
}

/// A file that a power cut may have damaged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspectFile {
    /// Below the folder that was scanned. Bytes that are no UTF-8 are `\xff`, a backslash is `\\`.
    pub path: PlainText,
    /// What is wrong with it.
    pub kind: SuspectKind,
    /// Its size.
    pub size: Bytes,
    /// Where its data end, of [`SuspectKind::NulTail`].
    pub data_end: Option<Bytes>,
    /// When its data were changed, as programs may set it.
    pub modified_unix_ms: UnixMillis,
    /// When the kernel last changed its inode.
    pub changed_unix_ms: UnixMillis,
}

/// How the last boot ended, as far as something says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BootEnd {
    /// wtmp has a record of the shutdown.
    InOrder,
    /// journald found a journal that was not closed (`….journal~`).
    NotInOrder,
}

/// Between which moments the last boot ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastBoot {
    /// The latest trace of it: it did not end before.
    pub earliest_unix_ms: UnixMillis,
    /// When this boot began (`btime` of /proc/stat): it ended before.
    pub latest_unix_ms: UnixMillis,
    /// The file that has the trace.
    pub trace: PlainText,
    /// How it ended; `None` where nothing says so.
    pub end: Option<BootEnd>,
}

/// Where the window of a scan comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum WindowSource {
    /// The end of the last boot.
    LastBoot(LastBoot),
    /// The user.
    Given,
}

/// Files are looked at whose data or inode were changed from one moment to another, both included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanWindow {
    /// Its begin.
    pub from_unix_ms: UnixMillis,
    /// Its end.
    pub until_unix_ms: UnixMillis,
    /// The earliest moment at which power can have been cut.
    pub cut_unix_ms: UnixMillis,
    /// Where it comes from.
    pub source: WindowSource,
}

/// A setting that delays what is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delay {
    /// Its name: `vm.dirty_expire_centisecs`, `commit`.
    pub setting: PlainText,
    /// How long it can delay.
    pub time_ns: Nanos,
}

/// What a power cut can leave of a file that no program has synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exposed {
    /// Its size or name, and not its data: it can be empty or NUL.
    Data,
    /// All of what was written last, and never a part of it: it is old or absent.
    Whole,
}

/// How long a file system with its options may keep what was written in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exposure {
    /// The longest time; each fsync by another program may shorten it.
    pub longest_ns: Nanos,
    /// The settings whose sum it is.
    pub delays: Vec<Delay>,
    /// What is lost in it.
    pub exposed: Exposed,
}

/// What a scan came across.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanCounts {
    /// Directories that were read.
    pub directories: u64,
    /// Regular files.
    pub files: u64,
    /// Files within the window.
    pub in_window: u64,
    /// Of these the ones that were changed no longer before the cut than the mount may keep them in memory; `None` where
    /// that time is not known.
    pub exposed: Option<u64>,
    /// Files that were last changed before the window.
    pub older: u64,
    /// Of these the empty ones, names that are known to be empty left out.
    pub older_empty: u64,
    /// Empty files within the window whose names are known to be empty (`.keep`, `__init__.py`, lock files).
    pub known_empty: u64,
    /// Files within the window that are a hole, or have one behind their data, and no space allocated to it: sparse ones.
    pub sparse: u64,
    /// Files that changed while they were looked at.
    pub changing: u64,
    /// Files that could not be opened or read.
    pub unreadable_files: u64,
    /// Directories that could not be read.
    pub unreadable_directories: u64,
    /// Entries that were removed before they could be looked at.
    pub vanished: u64,
    /// Mount points that were left out.
    pub other_mounts: u64,
}

/// How many files were found of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundCounts {
    /// See [`SuspectKind::Empty`].
    pub empty: u64,
    /// See [`SuspectKind::NoData`].
    pub no_data: u64,
    /// See [`SuspectKind::NulTail`].
    pub nul_tail: u64,
    /// See [`SuspectKind::Zeros`]; `None` where no data were read.
    pub zeros: Option<u64>,
}

impl FoundCounts {
    /// One more of a kind.
    pub fn add(&mut self, kind: SuspectKind) {
        match kind {
            SuspectKind::Empty => self.empty += 1,
            SuspectKind::NoData => self.no_data += 1,
            SuspectKind::NulTail => self.nul_tail += 1,
            SuspectKind::Zeros => *self.zeros.get_or_insert(0) += 1,
        }
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        self.empty + self.no_data + self.nul_tail + self.zeros.unwrap_or(0)
    }
}

/// A scan for files that a power cut damaged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashScan {
    /// The folder.
    pub folder: PlainText,
    /// Type of its file system; `None` where mountinfo does not list it.
    pub file_system: Option<PlainText>,
    /// What is mounted there.
    pub source: Option<PlainText>,
    /// Options of the mount and of the file system.
    pub options: Option<PlainText>,
    /// The window.
    pub window: ScanWindow,
    /// What the mount may keep in memory; `None` where that is not known.
    pub exposure: Option<Exposure>,
    /// What the scan came across.
    pub counts: ScanCounts,
    /// What was found.
    pub found: FoundCounts,
    /// The files, in the order of their paths; at most so many as the user asked for.
    pub files: Vec<SuspectFile>,
    /// Whether the time limit ended the scan before all was seen.
    pub cut_short: bool,
    /// How long it took.
    pub took_ns: Nanos,
}
