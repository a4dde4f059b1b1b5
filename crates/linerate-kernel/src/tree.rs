//! Walking a tree of directories that others change meanwhile: directories below one that is held, their entries, and
//! what the kernel knows of an entry without opening it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use linerate_model::units::Bytes;
use linerate_model::watch::UnixMillis;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, StatxAttributes, StatxFlags, openat2,
    statx,
};
use rustix::io::Errno;

use crate::directory::{ALWAYS, Directory, open_at};

/// Room for entries of one system call, bytes.
const ENTRIES: usize = 64 << 10;
/// statx counts blocks of so many bytes (stat(2)).
const BLOCK: u64 = 512;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A link, device, pipe or socket.
    Other,
}

/// What the kernel knows of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryFacts {
    /// What it is.
    pub kind: EntryKind,
    /// Its size; of a directory that of its table.
    pub size: Bytes,
    /// Bytes that the file system has allocated to it, blocks of its attributes included.
    pub allocated: Bytes,
    /// The size of a block of the file system, or what it prefers for reads and writes.
    pub block: Bytes,
    /// When its data were last changed, as programs may set it (mtime). Times before 1970 read as 0.
    pub modified: UnixMillis,
    /// When the kernel last changed the entry itself; no program sets it (ctime).
    pub changed: UnixMillis,
    /// Major and minor number of its file system.
    pub device: (u32, u32),
    /// Whether a file system is mounted on it; `None` before Linux 5.8.
    pub is_mount_root: Option<bool>,
}

/// What the kernel knows of an entry of a directory: a link itself, and no file system is mounted to learn it.
///
/// # Errors
/// `ENOENT` where it is gone; `ENOSYS` before Linux 4.11.
pub fn entry(directory: impl AsFd, name: &OsStr) -> io::Result<EntryFacts> {
    facts(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// The same of what a descriptor holds.
///
/// # Errors
/// `ENOSYS` before Linux 4.11.
pub fn held(descriptor: impl AsFd) -> io::Result<EntryFacts> {
    facts(descriptor, OsStr::new(""), AtFlags::EMPTY_PATH)
}

fn facts(at: impl AsFd, name: &OsStr, flags: AtFlags) -> io::Result<EntryFacts> {
    let flags = flags | AtFlags::NO_AUTOMOUNT;
    let found = statx(at, name, flags, StatxFlags::BASIC_STATS)?;
    let root = StatxAttributes::MOUNT_ROOT;
    let millis = |seconds: i64, nanos: u32| {
        let seconds = u64::try_from(seconds).unwrap_or(0);
        UnixMillis(seconds.saturating_mul(1000) + u64::from(nanos / 1_000_000))
    };
    Ok(EntryFacts {
        kind: match FileType::from_raw_mode(found.stx_mode.into()) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            _ => EntryKind::Other,
        },
        size: Bytes(found.stx_size),
        allocated: Bytes(found.stx_blocks.saturating_mul(BLOCK)),
        block: Bytes(found.stx_blksize.into()),
        modified: millis(found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec),
        changed: millis(found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec),
        device: (found.stx_dev_major, found.stx_dev_minor),
        is_mount_root: found
            .stx_attributes_mask
            .contains(root)
            .then(|| found.stx_attributes.contains(root)),
    })
}

/// Opens a directory below another one to read its entries. No link is followed on the way, also none that somebody puts
/// there meanwhile; on a kernel without `openat2` (before 5.6) only the last place is safe from that.
///
/// # Errors
/// `ENOENT`, `EACCES`; `ELOOP` or `ENOTDIR` for a link; `ENAMETOOLONG` beyond 4095 bytes.
pub fn directory_below(root: &Directory, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    loop {
        match openat2(root, path, flags | ALWAYS, Mode::empty(), resolve) {
            // A path without `..` gives EAGAIN nowhere (openat2(2)); a signal may come at any time.
            Err(Errno::INTR) => {}
            Err(Errno::NOSYS) => return open_at(root.as_fd(), path, flags, 0).map(File::from),
            other => return Ok(other?.into()),
        }
    }
}

/// Calls `each` with the name of every entry but `.` and `..`, in no order, until it says that it has enough (`false`).
///
/// # Errors
/// `ENOENT` where the directory was removed meanwhile; `EIO`.
pub fn entries(directory: &File, mut each: impl FnMut(&OsStr) -> bool) -> io::Result<()> {
    let mut room = vec![MaybeUninit::uninit(); ENTRIES];
    let mut entries = RawDir::new(directory, &mut room);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." && !each(OsStr::from_bytes(name)) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::tempdir;

    use super::*;

    #[test]
    fn entries_are_named_and_links_are_not_followed() {
        let folder = tempdir().unwrap();
        std::fs::create_dir(folder.path().join("inner")).unwrap();
        std::fs::write(folder.path().join("inner/file"), "text").unwrap();
        symlink("inner", folder.path().join("link")).unwrap();
        let root = Directory::open(folder.path()).unwrap();
        let inner = directory_below(&root, Path::new("inner")).unwrap();
        let mut names = Vec::new();
        entries(&inner, |name| {
            names.push(name.to_owned());
            true
        })
        .unwrap();
        assert_eq!(names, ["file"]);
        let file = entry(&inner, OsStr::new("file")).unwrap();
        assert_eq!((file.kind, file.size), (EntryKind::File, Bytes(4)));
        assert_ne!(file.is_mount_root, Some(true));
        let link = entry(&root, OsStr::new("link")).unwrap();
        assert_eq!(link.kind, EntryKind::Other);
        for path in ["link", "link/file", "..", "inner/../..", "none"] {
            assert!(directory_below(&root, Path::new(path)).is_err(), "{path}");
        }
    }
}
