#![expect(
    unsafe_code,
    reason = "the ioctl that maps extents fills a structure of ours"
)]
//! Where a file has data and where it has holes: by its extents (FIEMAP), or by `SEEK_DATA` and `SEEK_HOLE` of lseek(2).
//!
//! For lseek, a range that is allocated and was never written (`fallocate`) is a hole, until somebody reads it: pages of the
//! page cache count as data there, zeros as they are. FIEMAP says what is on the disk. A file system without an answer of its
//! own says that all of a file is data.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::option::check;

// include/uapi/linux/fiemap.h; _IOWR('f', 11, struct fiemap).
const FIEMAP: libc::c_ulong = 0xC020_660B;
const SYNC: u32 = 1;
const LAST: u32 = 1;
const UNWRITTEN: u32 = 0x800;
/// Extents of one question.
const MANY: usize = 64;

#[repr(C)]
#[derive(Clone, Copy)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Question {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [Extent; MANY],
}

/// What a range of a file has on its disk, and in memory on the way there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Layout {
    /// Where its data end, bytes from the file's start; `None` where it has none.
    pub data_end: Option<u64>,
    /// Whether all before that are data.
    pub is_gapless: bool,
    /// Whether space is allocated that was never written.
    pub has_unwritten: bool,
}

/// The layout of a range of a file. With `sync` the kernel writes what of the file is dirty first: else data that are
/// on their way into space that was allocated before look unwritten.
///
/// # Errors
/// `EOPNOTSUPP` or `ENOTTY` where the file system does not map extents.
pub fn layout(file: &File, from: u64, to: u64, sync: bool) -> io::Result<Layout> {
    let mut found = Layout {
        is_gapless: true,
        ..Layout::default()
    };
    let (mut at, mut covered) = (from, from);
    // Each round moves on by an extent at least.
    while at < to {
        let mut question = Question {
            start: at,
            length: to - at,
            flags: if sync { SYNC } else { 0 },
            mapped: 0,
            room: u32::try_from(MANY).unwrap_or(0),
            reserved: 0,
            extents: [Extent {
                logical: 0,
                physical: 0,
                length: 0,
                reserved64: [0; 2],
                flags: 0,
                reserved: [0; 3],
            }; MANY],
        };
        // SAFETY: the structure has the kernel's layout, and room for as many extents as it says.
        check(unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP as _, &raw mut question) })?;
        let mapped = usize::try_from(question.mapped).unwrap_or(0).min(MANY);
        let mut is_last = mapped == 0;
        for extent in &question.extents[..mapped] {
            let (begin, end) = (extent.logical, extent.logical.saturating_add(extent.length));
            is_last |= extent.flags & LAST != 0 || end <= at;
            at = at.max(end);
            if begin >= to {
                break;
            }
            if extent.flags & UNWRITTEN != 0 {
                found.has_unwritten = true;
                continue;
            }
            found.is_gapless &= begin <= covered;
            covered = covered.max(end);
            found.data_end = Some(end.min(to));
        }
        if is_last {
            break;
        }
    }
    Ok(found)
}

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
    fn a_layout_has_the_end_of_data_and_gaps() {
        let file = tempfile::tempfile().unwrap();
        let (m, size) = (1 << 20, 5 << 20);
        file.set_len(size).unwrap();
        let of = |from| layout(&file, from, size, true);
        match of(0) {
            Err(error) => {
                let code = error.raw_os_error();
                assert!(
                    matches!(code, Some(libc::EOPNOTSUPP | libc::ENOTTY)),
                    "{error}"
                );
                return;
            }
            Ok(found) => assert_eq!((found.data_end, found.has_unwritten), (None, false)),
        }
        file.write_all_at(&[1; 4096], 0).unwrap();
        let found = of(0).unwrap();
        assert_eq!((found.data_end, found.is_gapless), (Some(4096), true));
        file.write_all_at(&[1; 4096], 2 * m).unwrap();
        let found = of(0).unwrap();
        assert_eq!(
            (found.data_end, found.is_gapless),
            (Some(2 * m + 4096), false)
        );
        assert_eq!(of(3 * m).unwrap().data_end, None);
        // More extents than one question holds.
        for number in 0..200 {
            file.write_all_at(&[1; 4096], 3 * m + number * 8192)
                .unwrap();
        }
        assert_eq!(of(0).unwrap().data_end, Some(3 * m + 199 * 8192 + 4096));
        crate::file::allocate(&file, size).unwrap();
        let found = of(0).unwrap();
        assert!(found.has_unwritten && found.data_end.is_some_and(|end| end < size));
    }

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
