//! Paths below a directory that stands for `/`, resolved by the kernel (`openat2` with `RESOLVE_IN_ROOT`).
//!
//! An absolute link begins at that directory and no `..` leads above it, as in a process that has it as its root
//! (`path_resolution(7)`), also while others rename directories and exchange links below it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use crate::directory::{ALWAYS, Directory};

/// So often a path with `..` is tried while directories are renamed on this machine (`EAGAIN`).
const TRIES: u32 = 1000;

/// Opens a path below a directory. Magic links, those of `/proc/PID/fd`, are refused.
///
/// # Errors
/// `Unsupported` before Linux 5.6; `ELOOP` after 40 links; otherwise those of `open`.
pub(crate) fn open(root: &Directory, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() {
        Path::new("/")
    } else {
        path
    };
    // Unlike open, it refuses flags that O_PATH does not have.
    let always = if flags.contains(OFlags::PATH) {
        OFlags::CLOEXEC
    } else {
        ALWAYS
    };
    for _ in 0..TRIES {
        match openat2(
            root,
            path,
            flags | always,
            Mode::empty(),
            ResolveFlags::IN_ROOT,
        ) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS) => return Err(io::Error::new(io::ErrorKind::Unsupported, OLD)),
            other => return Ok(other?),
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, BUSY))
}

const OLD: &str = "a folder used in place of / needs the system call openat2, which Linux 5.6 and newer have (a \
    container's seccomp filter can hide it): without it a symbolic link could lead out of the folder";
const BUSY: &str = "directories are renamed on this machine all the time, so that the kernel cannot resolve '..'; \
    try again";
