//! Whether a file is another one than before.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What differs where a file was written or replaced: inode, time and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(u64, i64, i64, u64);

impl Stamp {
    /// Of a file as it is now; `None` where there is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        let (second, nano) = (found.mtime(), found.mtime_nsec());
        Some(Self(found.ino(), second, nano, found.len()))
    }
}
