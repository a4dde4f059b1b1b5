//! Mounts of the calling thread's namespace (/proc/thread-self/mountinfo), and making some that nobody else sees.
#![expect(
    unsafe_code,
    reason = "unshare is unsafe for some of its flags; the ioctl that shuts a file system down"
)]

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use linerate_model::plain_text::PlainText;
use rustix::fs::{fstatvfs, syncfs};
use rustix::ioctl::{Setter, ioctl, opcode};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::{KernelError, tree};

/// `FS_IOC_SHUTDOWN` of ext4, `XFS_IOC_GOINGDOWN` of XFS: one number (include/uapi/linux/fs.h).
const SHUTDOWN: rustix::ioctl::Opcode = opcode::read::<u32>(b'X', 125);

/// A line of mountinfo (`proc_pid_mountinfo(5)`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountFacts {
    /// Its number.
    pub id: u64,
    /// Major and minor number of its file system.
    pub device: (u32, u32),
    /// Where it is mounted.
    pub point: PlainText,
    /// Type of the file system: `ext4`, `nfs4`, `fuse.sshfs`.
    pub file_system: PlainText,
    /// What is mounted: `/dev/sda1`, `server:/export`.
    pub source: PlainText,
    /// Options of the mount and of the file system, separated by commas.
    pub options: PlainText,
}

/// The mount that a descriptor's file or directory is on; `None` where mountinfo does not list it.
///
/// # Errors
/// Where /proc is not mounted.
pub fn mount_of(descriptor: impl AsFd) -> io::Result<Option<MountFacts>> {
    let held = tree::held(descriptor)?;
    let bytes = std::fs::read("/proc/thread-self/mountinfo")?;
    let text = String::from_utf8_lossy(&bytes);
    let mut mounts: Vec<MountFacts> = text.lines().filter_map(line).collect();
    mounts.retain(|mount| match held.mount {
        Some(id) => mount.id == id,
        None => mount.device == held.device,
    });
    Ok(mounts.pop())
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn line(text: &str) -> Option<MountFacts> {
    let (front, behind) = text.split_once(" - ")?;
    let mut front = front.split(' ');
    let id = front.next()?.parse().ok()?;
    let (major, minor) = front.nth(1)?.split_once(':')?;
    let point = front.nth(1)?;
    let own = front.next()?;
    let mut behind = behind.split(' ');
    let (file_system, source) = (behind.next()?, behind.next()?);
    let mut options: Vec<&str> = own.split(',').collect();
    for option in behind.next().unwrap_or_default().split(',') {
        // `rw` is an option of both.
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    Some(MountFacts {
        id,
        device: (major.parse().ok()?, minor.parse().ok()?),
        point: (&*unescaped(point)).into(),
        file_system: file_system.into(),
        source: (&*unescaped(source)).into(),
        options: (&*options.join(",")).into(),
    })
}

/// Blanks, tabs, line ends and backslashes are `\040`, `\011`, `\012` and `\134`.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let code = after
            .get(..3)
            .and_then(|code| u8::from_str_radix(code, 8).ok());
        if let Some(code) = code.filter(u8::is_ascii) {
            out.push(code.into());
            rest = &after[3..];
        } else {
            out.push('\\');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

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

/// Bytes that an ordinary user may still write to the file system of a file or folder.
///
/// # Errors
/// Those of statvfs.
pub fn free_bytes(descriptor: impl AsFd) -> io::Result<u64> {
    let found = fstatvfs(descriptor)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_is_read_with_its_escapes() {
        let text = r"36 35 98:0 /a /mnt\0402 rw,noatime master:1 shared:2 - fuse.sshfs u@h:/x\134y rw,user_id=0";
        let found = line(text).unwrap();
        assert_eq!((found.id, found.device), (36, (98, 0)));
        assert_eq!(found.point.as_str(), "/mnt 2");
        assert_eq!(found.file_system.as_str(), "fuse.sshfs");
        assert_eq!(found.source.as_str(), r"u@h:/x\y");
        assert_eq!(found.options.as_str(), "rw,noatime,user_id=0");
        for text in ["", "1 2 3", "36 35 98 / / rw - ext4 x rw", r"a \"] {
            assert_eq!(line(text), None, "{text}");
        }
        assert_eq!(unescaped(r"a\04"), r"a\04");
        assert_eq!(unescaped(r"\é\777\"), r"\é\777\");
    }

    #[test]
    fn the_mount_of_proc_is_found() {
        let found = mount_of(File::open("/proc/self/status").unwrap()).unwrap();
        assert_eq!(found.unwrap().file_system.as_str(), "proc");
    }
}
