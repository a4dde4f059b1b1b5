//! When the last boot ended, as far as its traces tell an ordinary user.
//!
//! Each file that was last written before this boot began is a trace: the last boot did not end before that. The latest of
//! the logs' counts; wtmp's records have times of their own.

use std::fs::Metadata;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use linerate_model::storage::{BootEnd, LastBoot};
use linerate_model::watch::UnixMillis;

/// Folders of logs, and files that time services write while a host runs.
const PLACES: [&str; 6] = [
    "var/log",
    "var/lib/systemd/timesync/clock",
    "var/lib/systemd/random-seed",
    "var/lib/chrony",
    "var/lib/NetworkManager",
    "var/spool/cron",
];
/// So many entries are looked at, so far below a folder of [`PLACES`].
const MOST: usize = 20_000;
const DEEPEST: usize = 3;
/// So many of wtmp's last bytes are read.
const WTMP: u64 = 1 << 20;
/// A record of this boot can be written before the clock was set: its time is at most so much before the boot's, ms.
const CLOCK_SET: u64 = 60_000;
// utmp(5): types of records.
const RUN_LEVEL: i16 = 1;
const BOOT: i16 = 2;

/// When this boot began (`btime` of /proc/stat), by the clock as it is now.
pub(super) fn this_boot() -> Option<UnixMillis> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let seconds = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    let seconds: u64 = seconds.trim().parse().ok()?;
    Some(UnixMillis(seconds.checked_mul(1000)?))
}

/// The last boot by the traces below `root` (`/`), where this one began at `begun`; `None` without a trace.
pub fn last_boot(root: &Path, begun: UnixMillis) -> Option<LastBoot> {
    let mut traces = Traces {
        begun,
        latest: None,
        journal: None,
        left: MOST,
    };
    for place in PLACES {
        traces.look(&root.join(place), 0);
    }
    let path = root.join("var/log/wtmp");
    let records = records(&path);
    let before = |record: &&Record| record.at < begun;
    if let Some(last) = records.iter().rev().find(before) {
        traces.take(last.at, &path);
    }
    let (earliest, trace) = traces.latest?;
    let unclosed = || {
        let (_, is_unclosed) = traces.journal?;
        is_unclosed.then_some(BootEnd::NotInOrder)
    };
    Some(LastBoot {
        earliest_unix_ms: earliest,
        latest_unix_ms: begun,
        trace: trace.to_string_lossy().as_ref().into(),
        end: end(&records, begun).or_else(unclosed),
    })
}

struct Traces {
    begun: UnixMillis,
    latest: Option<(UnixMillis, PathBuf)>,
    /// The journal that was last written before this boot, and whether it was not closed.
    journal: Option<(UnixMillis, bool)>,
    left: usize,
}

impl Traces {
    fn look(&mut self, path: &Path, depth: usize) {
        let Some(left) = self.left.checked_sub(1) else {
            return;
        };
        self.left = left;
        let Ok(facts) = std::fs::symlink_metadata(path) else {
            return;
        };
        if facts.is_dir() && depth < DEEPEST {
            for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
                self.look(&entry.path(), depth + 1);
            }
        }
        if facts.is_file() {
            self.take_file(path, &facts);
        }
    }

    fn take_file(&mut self, path: &Path, facts: &Metadata) {
        let at = millis(facts.mtime(), facts.mtime_nsec());
        // A file that was unpacked with the time of another host was changed later, or is no trace of this one.
        let changed = millis(facts.ctime(), facts.ctime_nsec());
        if changed < at || at >= self.begun {
            return;
        }
        let name = path.as_os_str().as_bytes();
        let unclosed = name.ends_with(b".journal~");
        if (unclosed || name.ends_with(b".journal"))
            && self.journal.is_none_or(|(held, _)| held < at)
        {
            self.journal = Some((at, unclosed));
        }
        self.take(at, path);
    }

    fn take(&mut self, at: UnixMillis, path: &Path) {
        if at.0 > 0 && self.latest.as_ref().is_none_or(|(held, _)| *held < at) {
            self.latest = Some((at, path.to_owned()));
        }
    }
}

fn millis(seconds: i64, nanos: i64) -> UnixMillis {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    let nanos = u64::try_from(nanos).unwrap_or(0);
    UnixMillis(seconds.saturating_mul(1000) + nanos / 1_000_000)
}

/// A record of wtmp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Record {
    kind: i16,
    is_shutdown: bool,
    at: UnixMillis,
}

/// Size of a record, and where its seconds are: glibc keeps them in 4 bytes on most machines, in 8 on others (bits/utmp.h).
const LAYOUT: (usize, usize, usize) = if cfg!(any(target_arch = "aarch64", target_arch = "riscv64"))
{
    (400, 344, 8)
} else {
    (384, 340, 4)
};

fn records(path: &Path) -> Vec<Record> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(path)?;
        let (size, _, _) = LAYOUT;
        let length = file.metadata()?.len();
        let length = length - length % size as u64;
        let begin = length.saturating_sub(WTMP - WTMP % size as u64);
        file.seek(SeekFrom::Start(begin))?;
        let mut bytes = Vec::new();
        file.take(length - begin).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    bytes.chunks_exact(LAYOUT.0).filter_map(record).collect()
}

fn record(bytes: &[u8]) -> Option<Record> {
    let (_, at, width) = LAYOUT;
    let kind = i16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
    let user = bytes.get(44..76)?;
    let time = bytes.get(at..at + width)?;
    let seconds = if width == 4 {
        u32::from_ne_bytes(time.try_into().ok()?).into()
    } else {
        u64::from_ne_bytes(time.try_into().ok()?)
    };
    Some(Record {
        kind,
        is_shutdown: kind == RUN_LEVEL && user.starts_with(b"shutdown\0"),
        at: UnixMillis(seconds.saturating_mul(1000)),
    })
}

/// What stands before this boot's record: a shutdown, or another boot.
fn end(records: &[Record], begun: UnixMillis) -> Option<BootEnd> {
    let mut rest = records
        .iter()
        .rev()
        .filter(|record| record.kind == BOOT || record.is_shutdown)
        .skip_while(|record| record.kind == BOOT && record.at.0 + CLOCK_SET >= begun.0);
    Some(if rest.next()?.is_shutdown {
        BootEnd::InOrder
    } else {
        BootEnd::NotInOrder
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes, create_dir_all, write};
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    const BEGUN: u64 = 1_700_000_000;

    fn bytes(kind: i16, user: &str, seconds: u64) -> Vec<u8> {
        let (size, at, width) = LAYOUT;
        let mut record = vec![0; size];
        record[..2].copy_from_slice(&kind.to_ne_bytes());
        record[44..44 + user.len()].copy_from_slice(user.as_bytes());
        let time = seconds.to_le_bytes();
        record[at..at + width].copy_from_slice(&time[..width]);
        record
    }

    fn log(root: &Path, name: &str, seconds: u64) {
        let path = root.join("var/log").join(name);
        create_dir_all(path.parent().unwrap()).unwrap();
        let at = UNIX_EPOCH + Duration::from_secs(seconds);
        let file = File::create(path).unwrap();
        file.set_times(FileTimes::new().set_modified(at)).unwrap();
    }

    fn found(root: &Path) -> Option<(u64, String, Option<BootEnd>)> {
        let found = last_boot(root, UnixMillis(BEGUN * 1000))?;
        let trace = Path::new(found.trace.as_str()).strip_prefix(root).unwrap();
        let trace = trace.to_str().unwrap().to_owned();
        Some((found.earliest_unix_ms.0 / 1000, trace, found.end))
    }

    #[test]
    fn the_latest_trace_before_this_boot_counts() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(found(root), None);
        log(root, "syslog", BEGUN + 5);
        assert_eq!(found(root), None);
        log(root, "apt/history.log", BEGUN - 900);
        log(root, "journal/id/system@1.journal~", BEGUN - 70);
        log(root, "journal/id/system@0.journal", BEGUN - 9000);
        let journal = "var/log/journal/id/system@1.journal~".to_owned();
        assert_eq!(
            found(root),
            Some((BEGUN - 70, journal, Some(BootEnd::NotInOrder)))
        );
        // wtmp knows better how it ended, and when.
        let mut wtmp = bytes(BOOT, "reboot", BEGUN - 5000);
        wtmp.extend(bytes(7, "user", BEGUN - 30));
        write(root.join("var/log/wtmp"), &wtmp).unwrap();
        let (at, trace, end) = found(root).unwrap();
        assert_eq!(
            (at, &*trace, end),
            (BEGUN - 30, "var/log/wtmp", Some(BootEnd::NotInOrder))
        );
        wtmp.extend(bytes(RUN_LEVEL, "shutdown", BEGUN - 20));
        wtmp.extend(bytes(BOOT, "reboot", BEGUN + 1));
        wtmp.extend(b"a torn record");
        write(root.join("var/log/wtmp"), &wtmp).unwrap();
        let (at, _, end) = found(root).unwrap();
        assert_eq!((at, end), (BEGUN - 20, Some(BootEnd::InOrder)));
    }
}
