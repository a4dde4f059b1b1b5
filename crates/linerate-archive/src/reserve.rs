//! Some disk space that is given back when the disk is full, so that the rows of removed records can still be changed.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

use crate::error::ArchiveError;

/// Bytes that are set aside.
const BYTES: u64 = 1 << 20;

/// The file `reserve`. Where it cannot be had, the archive works without it.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    /// Sets the space aside, unless it is already.
    pub(crate) fn keep(folder: &Path) -> Self {
        let reserve = Self {
            path: folder.join("reserve"),
        };
        reserve.refill();
        reserve
    }

    /// Gives the space back.
    pub(crate) fn release(&self) {
        drop(fs::remove_file(&self.path));
    }

    /// Sets it aside again, where there is room.
    pub(crate) fn refill(&self) {
        let filled = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.path)
            .and_then(|file| Ok(fallocate(&file, FallocateFlags::empty(), 0, BYTES)?));
        if filled.is_err() {
            self.release();
        }
    }
}

/// Bytes that this user may still write to the disk of a folder, and those of the whole file system.
pub(crate) fn space(folder: &Path) -> Result<(u64, u64), ArchiveError> {
    let found = statvfs(folder)
        .map_err(|error| ArchiveError::file("ask for the free space of", folder)(error.into()))?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Ok((bytes(found.f_bavail), bytes(found.f_blocks)))
}
