//! What programs that measure disks or copy files print, and what a file system keeps after a power cut.

use serde::{Deserialize, Serialize};

use crate::plain_text::PlainText;
use crate::units::Nanos;

/// One kind of requests of a fio job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FioWay {
    /// `read`, `write`, `trim` or `sync`.
    pub name: PlainText,
    /// Requests; of `sync` the count of `lat_ns`, as fio's own total is 0.
    pub requests: u64,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// Requests a second.
    pub iops: f64,
    /// Mean time of a request, ns.
    pub mean_ns: Option<f64>,
    /// 99 % of the requests took no longer, ns; absent where nothing was done.
    pub p99_ns: Option<f64>,
}

/// A job of fio.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FioJob {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// Its name.
    pub name: PlainText,
    /// Its error, as a number of errno; 0 = none.
    pub error: u64,
    /// Its options: `rw`, `bs`, `iodepth`, `ioengine`, `direct` …, global ones included.
    pub options: Vec<(PlainText, PlainText)>,
    /// Kinds of requests that it made.
    pub ways: Vec<FioWay>,
}

impl FioJob {
    /// The value of an option.
    pub fn option(&self, key: &str) -> Option<&str> {
        let find = self.options.iter().rev().find(|(name, _)| name == key);
        find.map(|(_, value)| value.as_str())
    }
}

/// A table of iozone: rates in kB/s.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Iozone {
    /// Whether `-I` is in its command line (`O_DIRECT`); `None` where that is not printed.
    pub direct: Option<bool>,
    /// Names of the columns behind file and record size.
    pub columns: Vec<PlainText>,
    /// Line, file size and record size in kB, and a rate in kB/s for each column.
    pub rows: Vec<(usize, [u64; 2], Vec<f64>)>,
}

/// A program that copied something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyTool {
    /// rsync's last lines.
    Rsync,
    /// scp's or sftp's line of a file.
    Scp,
    /// mbuffer's summary.
    Mbuffer,
    /// iperf3's line about the file of `-F`.
    Iperf3,
    /// What was found in the output file afterwards.
    File,
}

/// What was copied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CopySummary {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// By which program.
    pub tool: CopyTool,
    /// The file, where it is named.
    pub name: PlainText,
    /// Bytes that were sent or copied.
    pub bytes: Option<f64>,
    /// Bytes that the file has, or should have.
    pub file_bytes: Option<f64>,
    /// Bytes a second, as printed.
    pub bytes_per_second: Option<f64>,
    /// Share of mbuffer's buffer that was full at the end, %.
    pub buffer_percent: Option<f64>,
}

/// Power was cut once: what files had afterwards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashRun {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// The file system.
    pub file_system: PlainText,
    /// Its mount options; empty = defaults.
    pub options: PlainText,
    /// How power was cut: `nolog` (nothing more is written), `log` (the journal is), `copy` (the disk as it was, copied).
    #[serde(default)]
    pub cut: PlainText,
    /// What came between writing and the cut: `none`, `other-fsync`, `36s`.
    pub before: PlainText,
    /// How long it took, rounded to 10 ms; `None` where it is not printed.
    #[serde(default)]
    pub took_ns: Option<Nanos>,
    /// The kernel's release; `None` where it is not printed.
    #[serde(default)]
    pub kernel: Option<PlainText>,
    /// Why power could not be cut; then there are no results.
    #[serde(default)]
    pub error: Option<PlainText>,
    /// What was done to a file, and what it had afterwards: `new`, `old`, `EMPTY`, `NUL×65536`, `absent`.
    pub results: Vec<(PlainText, PlainText)>,
}

impl CrashRun {
    /// What a file had after the cut.
    pub fn result(&self, what: &str) -> Option<&str> {
        let find = self.results.iter().find(|(name, _)| name == what);
        find.map(|(_, result)| result.as_str())
    }

    /// Time between writing and the cut, s, where that is what came between.
    pub fn seconds(&self) -> Option<f64> {
        self.before.strip_suffix('s')?.parse().ok()
    }
}
