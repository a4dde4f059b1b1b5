//! The file system below a descriptor, and how a file there is read and written: directly, by the page cache, with room
//! kept for it.
#![expect(unsafe_code, reason = "cachestat and mincore have no wrapper")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::PathBuf;

use linerate_model::block::DeviceNumber;
use linerate_model::plain_text::PlainText;
use linerate_model::units::Bytes;
use rustix::fs::{
    Advice, AtFlags, FallocateFlags, OFlags, StatVfsMountFlags, StatxFlags, fadvise, fallocate,
    fcntl_getfl, fcntl_setfl, fstatfs, fstatvfs, statx,
};
use rustix::io::Errno;

use crate::aligned::Aligned;
use crate::mount_table::{self, Mount};
use crate::option::check;

/// Where a descriptor's file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystem {
    /// Its kind as a number (statfs(2), `include/uapi/linux/magic.h`).
    pub magic: u64,
    /// Its kind as its mount names it: `ext4`, `nfs4`, `fuse.sshfs`; `None` where `/proc` does not tell.
    pub name: Option<PlainText>,
    /// Where it is mounted.
    pub mounted_at: Option<PlainText>,
    /// Of an overlay: the directory that takes its writes, as its mount names it.
    pub upper: Option<PathBuf>,
    /// Its size.
    pub size: Bytes,
    /// What this user may still write.
    pub free: Bytes,
    /// Files that this user may still make, of all that it has room for; 0 of 0 where it has no such bound.
    pub files: [u64; 2],
    /// Whether the mount takes no writes.
    pub read_only: bool,
    /// The device of its files (`st_dev`): major 0 is none that is a block device.
    pub device: DeviceNumber,
}

/// The file system of an open file or directory.
///
/// # Errors
/// Those of statfs(2).
pub fn of(descriptor: impl AsFd) -> io::Result<FileSystem> {
    let descriptor = descriptor.as_fd();
    let kind = fstatfs(descriptor)?;
    let room = fstatvfs(descriptor)?;
    let facts = statx(
        descriptor,
        c"",
        AtFlags::EMPTY_PATH,
        StatxFlags::BASIC_STATS,
    )?;
    let mount = mount_table::of_descriptor(descriptor).ok().flatten();
    let (mounted_at, name, upper) = mount.map_or((None, None, None), |mount| {
        let upper = upper(&mount);
        (
            Some(mount.mounted_on.into()),
            Some(mount.kind.into()),
            upper,
        )
    });
    #[expect(
        clippy::cast_possible_truncation,
        reason = "magic numbers have 32 bits; the field's type differs between targets"
    )]
    let magic = u64::from(kind.f_type as u32);
    Ok(FileSystem {
        magic,
        name,
        mounted_at,
        upper,
        size: Bytes(room.f_blocks.saturating_mul(room.f_frsize)),
        free: Bytes(room.f_bavail.saturating_mul(room.f_frsize)),
        files: [room.f_favail, room.f_files],
        read_only: room.f_flag.contains(StatVfsMountFlags::RDONLY),
        device: DeviceNumber {
            major: facts.stx_dev_major,
            minor: facts.stx_dev_minor,
        },
    })
}

/// Of an overlay: the directory that takes its writes.
fn upper(mount: &Mount) -> Option<PathBuf> {
    let mut options = mount.options.iter();
    options.find_map(|option| option.strip_prefix("upperdir=").map(PathBuf::from))
}

/// What direct I/O on a file has to keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectAlignment {
    /// Buffers begin at multiples of it, bytes.
    pub memory: usize,
    /// Offsets and lengths are multiples of it, bytes.
    pub offset: usize,
}

/// The alignments of direct I/O as the file system says them (`STATX_DIOALIGN`, Linux 6.1). `Ok(None)`: it has no direct
/// I/O for this file.
///
/// # Errors
/// `Unsupported` where it does not say.
pub fn direct_alignment(file: &File) -> io::Result<Option<DirectAlignment>> {
    let facts = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)?;
    if facts.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let size = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
    Ok((facts.stx_dio_offset_align > 0).then(|| DirectAlignment {
        memory: size(facts.stx_dio_mem_align),
        offset: size(facts.stx_dio_offset_align),
    }))
}

/// Has a file read and written directly (`O_DIRECT`), or by the page cache.
///
/// # Errors
/// `EINVAL` where the file system has no direct I/O.
pub fn set_direct(file: &File, direct: bool) -> io::Result<()> {
    let mut flags = fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, direct);
    Ok(fcntl_setfl(file, flags)?)
}

/// Whether a file, opened for direct I/O, takes a direct read of this length at its begin: some file systems refuse only then.
///
/// # Errors
/// `EINVAL` where it does not.
pub fn try_direct(file: &File, length: usize) -> io::Result<()> {
    let mut buffer = Aligned::new(length, length);
    file.read_at(buffer.bytes(), 0).map(drop)
}

/// Keeps room for a file of this size (`fallocate(2)`), so that a full disk shows at once. `false`: the file system cannot.
///
/// # Errors
/// `ENOSPC`, `EDQUOT` and the others of `fallocate`.
pub fn allocate(file: &File, size: Bytes) -> io::Result<bool> {
    match fallocate(file, FallocateFlags::empty(), 0, size.0) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
        other => Ok(other.map(|()| true)?),
    }
}

/// Asks the kernel to drop a file's pages; those that are dirty or mapped stay.
///
/// # Errors
/// None is known for a regular file.
pub fn evict(file: &File) -> io::Result<()> {
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Has the kernel write what the page cache holds for a file, without waiting for it (`sync_file_range(2)`). It promises nothing:
/// fsync has to follow.
///
/// # Errors
/// `ENOSYS` and `ESPIPE` where there is no such thing; `EIO`, `ENOSPC` of earlier writes.
pub fn begin_to_write_back(file: &File) -> io::Result<()> {
    // SAFETY: takes numbers only.
    let result =
        unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
    check(result).map(drop)
}

/// How much of the begin of a file the page cache holds: by `cachestat(2)`, and before Linux 6.5 by `mincore(2)`.
///
/// # Errors
/// `EOPNOTSUPP` for files of hugetlbfs; before Linux 6.5 `EPERM` for a file that is another user's and that this one may not write.
pub fn cached(file: &File, length: Bytes) -> io::Result<Bytes> {
    match cachestat(file, length) {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => resident(file, length),
        counted => counted,
    }
}

fn cachestat(file: &File, length: Bytes) -> io::Result<Bytes> {
    /// `__NR_cachestat`, the same on all architectures.
    const CACHESTAT: libc::c_long = 451;
    // struct cachestat_range: off, len; struct cachestat: nr_cache, dirty, writeback, evicted, recently_evicted
    // (include/uapi/linux/mman.h).
    let range: [u64; 2] = [0, length.0];
    let mut counts = [0_u64; 5];
    // SAFETY: the range is read and the counts are written during the call.
    let result = unsafe {
        libc::syscall(
            CACHESTAT,
            file.as_raw_fd(),
            range.as_ptr(),
            counts.as_mut_ptr(),
            0,
        )
    };
    check(i32::try_from(result).unwrap_or(-1))?;
    Ok(Bytes(
        counts[0].saturating_mul(rustix::param::page_size() as u64),
    ))
}

/// The same by a mapping of which no page is touched. A byte a page is looked at, 256 MiB at a time.
fn resident(file: &File, length: Bytes) -> io::Result<Bytes> {
    const WINDOW: u64 = 256 << 20;
    let facts = file.metadata()?;
    // To others the kernel says that all is there (can_do_mincore in mm/mincore.c, Linux 5.2).
    let owned = facts.uid() == rustix::process::geteuid().as_raw();
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    if !owned && rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_err() {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    let page = rustix::param::page_size();
    let length = length.0.min(facts.len());
    let mut pages = 0;
    let mut at = 0;
    while at < length {
        let bytes = usize::try_from(WINDOW.min(length - at)).unwrap_or(usize::MAX);
        pages += resident_pages(file, at, bytes, page)?;
        at += WINDOW;
    }
    Ok(Bytes(pages * page as u64))
}

fn resident_pages(file: &File, at: u64, bytes: usize, page: usize) -> io::Result<u64> {
    let offset = libc::off_t::try_from(at).map_err(io::Error::other)?;
    let mut states = vec![0_u8; bytes.div_ceil(page)];
    // SAFETY: a new mapping at an address of the kernel's choice, which nothing reads; it is gone before this returns, and `states`
    // has a byte for each of its pages.
    unsafe {
        let map = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            offset,
        );
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let told = check(libc::mincore(map, bytes, states.as_mut_ptr()));
        libc::munmap(map, bytes);
        told?;
    }
    Ok(states.iter().filter(|state| *state & 1 == 1).count() as u64)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_mount_is_found_by_its_number() {
        let overlay =
            "5 27 0:9 / / rw - overlay overlay rw,lowerdir=/ro,upperdir=/run/up,workdir=/run/w";
        let mount = mount_table::parse(overlay).remove(0);
        assert_eq!(upper(&mount), Some(PathBuf::from("/run/up")));
        let proc = of(File::open("/proc").unwrap()).unwrap();
        assert_eq!(proc.magic, 0x9fa0, "PROC_SUPER_MAGIC");
        assert_eq!(proc.name.as_deref(), Some("proc"));
        assert_eq!(proc.device.major, 0);
    }

    #[test]
    fn what_is_written_is_cached_until_it_is_dropped() {
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let size = Bytes(1 << 20);
        allocate(&file, size).unwrap();
        file.write_all(&vec![1; 1 << 20]).unwrap();
        let both = || [cached(&file, size), resident(&file, size)].map(Result::unwrap);
        assert_eq!(both(), [size; 2]);
        file.sync_all().unwrap();
        evict(&file).unwrap();
        let [counted, mapped] = both();
        assert!(counted < size && mapped < size, "{counted} {mapped}");
    }

    #[test]
    fn direct_io_is_offered_or_refused() {
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.set_len(8192).unwrap();
        if let Ok(Some(alignment)) = direct_alignment(&file) {
            assert!(alignment.memory.is_power_of_two(), "{alignment:?}");
            assert!(alignment.offset.is_power_of_two(), "{alignment:?}");
            set_direct(&file, true).unwrap();
            try_direct(&file, 4096).unwrap();
            set_direct(&file, false).unwrap();
        }
        assert!(set_direct(&File::open("/proc/self/status").unwrap(), true).is_err());
    }
}
