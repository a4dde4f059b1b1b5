//! Where a file has data and where it has holes (`SEEK_DATA` and `SEEK_HOLE` of lseek(2)).
//!
//! Ranges that are allocated and were never written (`fallocate`) are holes here, unless they are dirty in the page cache.
//! A file system without an answer of its own says that all of a file is data.

use std::fs::File;
use std::io;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// Where the first data at or behind `from` begins, bytes from the file's start; `None` where no data follows.
///
/// # Errors
/// `EINVAL` where the file system does not know `SEEK_DATA`.
pub fn data_from(file: &File, from: u64) -> io::Result<Option<u64>> {
    match seek(file, SeekFrom::Data(from)) {
        Err(Errno::NXIO) => Ok(None),
        other => Ok(Some(other?)),
    }
}

/// Where the first hole at or behind `from` begins, bytes from the file's start: its size where no other hole follows;
/// `None` where `from` is behind its end.
///
/// # Errors
/// `EINVAL` where the file system does not know `SEEK_HOLE`.
pub fn hole_from(file: &File, from: u64) -> io::Result<Option<u64>> {
    match seek(file, SeekFrom::Hole(from)) {
        Err(Errno::NXIO) => Ok(None),
        other => Ok(Some(other?)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn data_between_two_holes_is_found() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(3 << 20).unwrap();
        file.write_all_at(b"data", 1 << 20).unwrap();
        assert_eq!(hole_from(&file, 3 << 20).unwrap(), None);
        assert_eq!(data_from(&file, 2 << 20).unwrap(), None);
        assert_eq!(data_from(&file, 0).unwrap(), Some(1 << 20));
        let hole = hole_from(&file, 1 << 20).unwrap().unwrap();
        assert!(hole > 1 << 20 && hole < 2 << 20, "{hole}");
    }
}
