//! Files that are no files: devices and pipes.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::{Errno, ioctl_fionbio, retry_on_intr};

/// Opens what is there for writing at its end, as it stands, and never waits: a pipe that nobody reads is an
/// error, where a plain open would block until somebody does.
///
/// # Errors
/// `ENXIO` for a pipe without a reader; otherwise those of `open`.
pub fn append_without_waiting(path: &Path) -> io::Result<File> {
    let file = File::options()
        .append(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ENXIO) => io::Error::new(error.kind(), "nobody reads from this pipe"),
            _ => error,
        })?;
    // A writer that must not lose a byte waits for room.
    ioctl_fionbio(&file, false)?;
    Ok(file)
}

/// Waits until no other process holds the lock of this file or folder (`flock(2)`), and holds it until the file is
/// closed, by the kernel's hand even where this process is killed.
///
/// # Errors
/// Those of `flock`; a file system without locks.
pub fn lock(file: &File) -> io::Result<()> {
    Ok(retry_on_intr(|| {
        flock(file, FlockOperation::LockExclusive)
    })?)
}

/// Takes the lock of this file or folder as [`lock`] does, or says that another process holds it.
///
/// # Errors
/// Those of `flock`; a file system without locks.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Ok(false),
        other => Ok(other.map(|()| true)?),
    }
}

/// Makes a file at least so long and reserves room for all of it, which reads as zeros until it is written
/// (fallocate(2)).
///
/// # Errors
/// `ENOSPC`; `EOPNOTSUPP` where the file system has no such thing.
pub fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    Ok(retry_on_intr(|| {
        fallocate(file, FallocateFlags::empty(), 0, bytes)
    })?)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_device_is_written_and_its_refusal_shows() {
        append_without_waiting(Path::new("/dev/null"))
            .unwrap()
            .write_all(b"gone")
            .unwrap();
        let error = append_without_waiting(Path::new("/dev/full"))
            .unwrap()
            .write_all(b"no room")
            .unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        assert!(append_without_waiting(Path::new("/dev")).is_err());
    }

    #[test]
    fn a_lock_is_had_once() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let one = path.reopen().unwrap();
        let other = path.reopen().unwrap();
        assert!(try_lock(&one).unwrap());
        assert!(!try_lock(&other).unwrap());
        drop(one);
        assert!(try_lock(&other).unwrap());
    }
}
