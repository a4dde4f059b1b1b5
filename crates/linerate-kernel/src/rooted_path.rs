#![expect(unsafe_code, reason = "the C library has no function for openat2")]
//! Paths below a directory that stands for `/`, resolved by the kernel (`openat2` with `RESOLVE_IN_ROOT`).
//!
//! An absolute link begins at that directory and no `..` leads above it, as in a process that has it as its root
//! (`path_resolution(7)`), also while others rename directories and exchange links below it.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;

use libc::c_int;

use crate::directory::{ALWAYS, Directory, text};

/// So often a path with `..` is tried while directories are renamed on this machine (`EAGAIN`).
const TRIES: u32 = 1000;

/// Opens a path below a directory. Magic links, those of `/proc/PID/fd`, are refused.
///
/// # Errors
/// `Unsupported` before Linux 5.6; `ELOOP` after 40 links; otherwise those of `open`.
pub(crate) fn open(root: &Directory, path: &Path, flags: c_int) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() {
        Path::new("/")
    } else {
        path
    };
    let text = text(path.as_os_str())?;
    // Unlike open, it refuses flags that O_PATH does not have.
    let always = match flags & libc::O_PATH {
        0 => ALWAYS,
        _ => libc::O_CLOEXEC,
    };
    // SAFETY: three integers, for each of which 0 is a value.
    let mut how: libc::open_how = unsafe { zeroed() };
    how.flags = u64::from((flags | always).cast_unsigned());
    how.resolve = libc::RESOLVE_IN_ROOT;
    for _ in 0..TRIES {
        // SAFETY: text and structure outlive the call, and the size is the structure's.
        let result = unsafe {
            libc::syscall(
                libc::SYS_openat2,
                root.as_fd().as_raw_fd(),
                text.as_ptr(),
                &raw const how,
                size_of::<libc::open_how>(),
            )
        };
        if let Ok(descriptor) = c_int::try_from(result)
            && descriptor >= 0
        {
            // SAFETY: the call has just given us this descriptor, which nobody else has.
            return Ok(unsafe { OwnedFd::from_raw_fd(descriptor) });
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => {}
            Some(libc::ENOSYS) => return Err(io::Error::new(io::ErrorKind::Unsupported, OLD)),
            _ => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, BUSY))
}

const OLD: &str = "a folder used in place of / needs the system call openat2, which Linux 5.6 and newer have (a \
    container's seccomp filter can hide it): without it a symbolic link could lead out of the folder";
const BUSY: &str = "directories are renamed on this machine all the time, so that the kernel cannot resolve '..'; \
    try again";
