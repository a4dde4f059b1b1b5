//! Making mounts that nobody else sees.
#![expect(
    unsafe_code,
    reason = "unshare is unsafe for some of its flags; the ioctl that shuts a file system down"
)]

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::syncfs;
use rustix::ioctl::{Setter, ioctl, opcode};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::KernelError;

/// `FS_IOC_SHUTDOWN` of ext4, `XFS_IOC_GOINGDOWN` of XFS: one number (include/uapi/linux/fs.h).
const SHUTDOWN: rustix::ioctl::Opcode = opcode::read::<u32>(b'X', 125);

/// Takes the calling thread into a mount namespace of its own: nothing that it mounts from now on is seen elsewhere, and all
/// of it ends with the thread and its children. Threads that it starts later are in it as well.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`.
pub fn own_mounts() -> Result<(), KernelError> {
    // SAFETY: no table of descriptors of its own is asked for (`FILES`).
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
        .map_err(io::Error::from)
        .map_err(KernelError::of("make", "a mount namespace"))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private)
        .map_err(io::Error::from)
        .map_err(KernelError::of("make private the mounts below", "/"))
}

/// Mounts a file system, without set-user-ID programs and devices in it.
///
/// # Errors
/// Those of mount(2); they name source and type.
pub fn mount_at(
    source: &Path,
    point: &Path,
    file_system: &str,
    options: &str,
) -> Result<(), KernelError> {
    let object = format!(
        "{} ({file_system}) at {}",
        source.display(),
        point.display()
    );
    let cannot = KernelError::of("mount", &object);
    let Ok(options) = std::ffi::CString::new(options) else {
        return Err(cannot(io::ErrorKind::InvalidInput.into()));
    };
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount(source, point, file_system, flags, Some(&*options))
        .map_err(io::Error::from)
        .map_err(cannot)
}

/// Takes a mount away and waits until its file system is closed.
///
/// # Errors
/// `EBUSY` while something in it is in use.
pub fn unmount_at(point: &Path) -> Result<(), KernelError> {
    unmount(point, UnmountFlags::NOFOLLOW)
        .map_err(io::Error::from)
        .map_err(KernelError::of("unmount", &point.display().to_string()))
}

/// What a shutdown writes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutdownKind {
    /// The journal, and no data (`EXT4_GOING_FLAGS_LOGFLUSH`, `XFS_FSOP_GOING_FLAGS_LOGFLUSH`).
    Log,
    /// Nothing at all: what is in memory is lost (`…_NOLOGFLUSH`).
    NoLog,
}

/// Makes a file system behave as if its disk had vanished: nothing is written any more, until it is mounted again.
///
/// # Errors
/// `ENOTTY` where the file system does not know it; `EPERM` without `CAP_SYS_ADMIN`.
pub fn shut_down(file_system: &File, kind: ShutdownKind) -> io::Result<()> {
    let flags: u32 = match kind {
        ShutdownKind::Log => 1,
        ShutdownKind::NoLog => 2,
    };
    // SAFETY: both file systems read one u32 there.
    let call = unsafe { Setter::<SHUTDOWN, u32>::new(flags) };
    // SAFETY: the call reads the u32 above and writes nothing.
    Ok(unsafe { ioctl(file_system, call) }?)
}

/// Waits until all that is dirty in one file system is on its disk (syncfs(2)).
///
/// # Errors
/// `EIO`, `ENOSPC`.
pub fn sync_file_system(file: &File) -> io::Result<()> {
    Ok(syncfs(file)?)
}
