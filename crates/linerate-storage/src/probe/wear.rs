//! How much probes wrote to each disk today: flash wears by writing.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use linerate_kernel::directory::{Access, Directory, Replacement};
use linerate_kernel::{clock, file, inventory::Root};
use linerate_model::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::error::ProbeError;

const FILE: &str = "disk-probe-written.json";
const LOCK: &str = "disk-probe-written.lock";
/// A longer file is none of ours.
const LONGEST: u64 = 1 << 20;
const DAY: Nanos = Nanos::from_millis(86_400_000);
/// A day may write a tenth of the disk, …
const SHARE: u64 = 10;
/// … and this much of a small one: two probes with the usual file at 200 MB/s.
const LEAST: Bytes = Bytes(16 << 30);

/// What is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Written {
    /// Days since 1970-01-01 (UTC).
    day: u64,
    /// Bytes by disk.
    disks: BTreeMap<String, u64>,
}

/// The account of one disk.
#[derive(Debug)]
pub(super) struct Account {
    folder: PathBuf,
    disk: String,
    /// Written by others on this day.
    pub(super) before: Bytes,
    pub(super) budget: Bytes,
}

/// The budget of a disk of this size, where the user sets none.
pub(super) fn usual_budget(size: Bytes) -> Bytes {
    Bytes(size.0 / SHARE).max(LEAST)
}

impl Account {
    /// Reads the account of a disk in a folder, which is made where there is none.
    pub(super) fn open(folder: &Path, disk: &str, budget: Bytes) -> Result<Self, ProbeError> {
        let mut account = Self {
            folder: folder.to_owned(),
            disk: disk.to_owned(),
            before: Bytes(0),
            budget,
        };
        account.before = account.add(Bytes(0))?;
        if account.before >= budget {
            return Err(ProbeError::Budget {
                written: account.before,
                budget,
            });
        }
        Ok(account)
    }

    /// What this probe may write in all.
    pub(super) fn left(&self) -> Bytes {
        Bytes(self.budget.0.saturating_sub(self.before.0))
    }

    /// Adds what was written, and says what was written today in all.
    pub(super) fn add(&self, bytes: Bytes) -> Result<Bytes, ProbeError> {
        let day = clock::wall().0 / DAY.0;
        self.kept(day, bytes).map_err(|source| ProbeError::State {
            path: self.folder.join(FILE),
            source,
        })
    }

    fn kept(&self, day: u64, bytes: Bytes) -> io::Result<Bytes> {
        let folder = Root::of_this_machine().make_directories(&self.folder, 0o700)?;
        // Held until this function ends: another probe may be at it.
        let held = folder.file(OsStr::new(LOCK), Access::CHANGE.or_make())?;
        file::lock(&held)?;
        let mut written = read(&folder)?;
        if written.day != day {
            written = Written {
                day,
                ..Written::default()
            };
        }
        let sum = written.disks.entry(self.disk.clone()).or_default();
        *sum = sum.saturating_add(bytes.0);
        let sum = Bytes(*sum);
        if bytes.0 > 0 {
            let mut new = Replacement::begin(folder, 0o600)?;
            new.file().write_all(&serde_json::to_vec(&written)?)?;
            new.take(OsStr::new(FILE))?;
        }
        Ok(sum)
    }
}

/// What is kept; nothing where there is no file. One that is not understood is an error: it may hold a budget that is used up.
fn read(folder: &Directory) -> io::Result<Written> {
    let file = match folder.file(OsStr::new(FILE), Access::READ) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Written::default()),
        other => other?,
    };
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let why = format!("it is not understood ({error}); remove it");
        io::Error::new(io::ErrorKind::InvalidData, why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_counts_until_the_day_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("state/linerate");
        let open = |disk: &str| Account::open(&folder, disk, Bytes(100));
        let one = open("vda").unwrap();
        assert_eq!(one.left(), Bytes(100));
        one.add(Bytes(30)).unwrap();
        assert_eq!(open("vda").unwrap().left(), Bytes(70));
        assert_eq!(open("vdb").unwrap().left(), Bytes(100));
        assert_eq!(one.add(Bytes(70)).unwrap(), Bytes(100));
        let error = open("vda").unwrap_err().to_string();
        assert!(error.contains("daily budget is 100 B"), "{error}");
        let today = clock::wall().0 / DAY.0;
        assert_eq!(one.kept(today + 1, Bytes(5)).unwrap(), Bytes(5));
    }

    #[test]
    fn what_is_not_understood_is_not_taken_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        let error = Account::open(folder.path(), "vda", Bytes(1)).unwrap_err();
        assert!(error.to_string().contains("remove it"), "{error}");
        std::fs::remove_file(folder.path().join(FILE)).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join(FILE)).unwrap();
        assert!(Account::open(folder.path(), "vda", Bytes(1)).is_err());
    }

    #[test]
    fn a_tenth_of_a_large_disk_is_a_day_s() {
        assert_eq!(usual_budget(Bytes(1 << 40)), Bytes((1 << 40) / 10));
        assert_eq!(usual_budget(Bytes(1 << 30)), LEAST);
    }
}
