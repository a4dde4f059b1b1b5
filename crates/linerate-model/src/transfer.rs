//! A transfer from disk to disk: what the stage at one end read or wrote, and how full its ring was meanwhile.
//!
//! A transfer has three stages: the source reads files into a ring, the data streams carry the ring's pieces to the other end's
//! ring, and the target writes them from there. A ring that is empty waits for the stage before it, a full one for the stage
//! behind it, so that its times tell which stage limits.

use serde::{Deserialize, Serialize};

use crate::plain_text::PlainText;
use crate::record::Outcome;
use crate::units::{Bytes, Nanos};

/// Samples of a ring that a record keeps at most.
pub const MAX_RING_SAMPLES: usize = 4096;

/// Which of the two stages at the ends of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageRole {
    /// It reads what is sent.
    Source,
    /// It writes what arrives.
    Target,
}

/// Where a stage's bytes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Medium {
    /// They are made, or checked and dropped.
    Memory,
    /// In files.
    Disk(StagePlace),
}

/// Where files are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagePlace {
    /// The file or folder that was asked for.
    pub path: PlainText,
    /// The kind of file system, as `/proc/mounts` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<PlainText>,
    /// The block device of the file system, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<PlainText>,
    /// More than half of the bytes were read or written past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Of the source, in the page cache before it was read; absent where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Bytes>,
    /// The same, when the kernel had been asked to drop it: what is still cached is read from memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub still_cached: Option<Bytes>,
    /// Bytes that the kernel counts at that device from the beginning to the end: read for a source, written for a target, by
    /// whomever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_bytes: Option<Bytes>,
}

/// What a stage did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageRecord {
    /// Which stage.
    pub role: StageRole,
    /// Where its bytes are.
    pub medium: Medium,
    /// Files that were read, or written whole.
    pub files: u64,
    /// Entries below the source that were not sent: links, sockets, devices.
    #[serde(default)]
    pub left_out: u64,
    /// Files of the source whose size or time of modification was another one when they had been read: what was sent of them may
    /// be of two moments.
    #[serde(default)]
    pub changed: u64,
    /// Bytes of files that were read, or written.
    pub bytes: Bytes,
    /// The longest part of a file that is read or written at once, bytes.
    pub piece: Bytes,
    /// Threads that read or write.
    pub threads: u32,
    /// Their time in `read` and `write`, and in `fsync` of files while others were still coming, of all together.
    pub moving: Nanos,
    /// Their time in `open`, `mkdir`, `close` and whatever else each file costs beside its bytes.
    pub opening: Nanos,
    /// The first read, or the first byte that arrived; this end's monotonic clock.
    pub began: Nanos,
    /// When the last byte had been read, or handed to the kernel by `write`.
    pub handed_over: Nanos,
    /// When the last fsync had returned; absent for a source, and where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disk: Option<Nanos>,
    /// The checksum of all pieces with their files and places, the same at both ends of a transfer that is right: the XXH3 of
    /// each, 128 bits, added up modulo 2^128; 32 hexadecimal digits.
    pub checksum: PlainText,
    /// The ring between this stage and the streams.
    pub ring: RingRecord,
    /// Why it ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<PlainText>,
}

/// How full a ring was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingRecord {
    /// What it holds at most, bytes.
    pub capacity: Bytes,
    /// Somebody waited for a piece, and there was none.
    pub empty: Nanos,
    /// Somebody waited for room, and there was none.
    pub full: Nanos,
    /// Neither.
    pub between: Nanos,
    /// Its state in time, at most [`MAX_RING_SAMPLES`] of them.
    #[serde(default)]
    pub samples: Vec<RingSample>,
}

/// A ring at an instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingSample {
    /// This end's monotonic clock.
    pub at: Nanos,
    /// Bytes of files that had been taken out of it.
    pub moved: Bytes,
    /// Bytes in it.
    pub held: Bytes,
    /// [`RingRecord::empty`] until then.
    pub empty: Nanos,
    /// [`RingRecord::full`] until then.
    pub full: Nanos,
}

/// The test without one of its disks, or both, which tells what each stage of a transfer can do alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cell {
    /// The source alone, without a network: what it reads is dropped.
    Read,
    /// Bytes from memory are sent, checked and dropped.
    MemoryToMemory,
    /// Files are sent, checked and dropped.
    DiskToMemory,
    /// Bytes from memory are written, into a file without a name.
    MemoryToDisk,
}

/// A run of a cell: as many bytes as the transfer has, over as many streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellRun {
    /// Which cell.
    pub cell: Cell,
    /// How it ended.
    pub outcome: Outcome,
    /// Bytes of files that the last stage took.
    #[serde(default)]
    pub bytes: Bytes,
    /// From the beginning until the last of them was handed over, and on disk where there is one.
    #[serde(default)]
    pub time: Nanos,
}

impl CellRun {
    /// Its rate, bit/s; absent where nothing moved.
    pub fn rate(&self) -> Option<f64> {
        let known = self.bytes.0 > 0 && self.time.0 > 0;
        known.then(|| self.bytes.0 as f64 * 8e9 / self.time.0 as f64)
    }
}
