//! Loop devices: a file as a block device (loop(4)).
#![expect(
    unsafe_code,
    reason = "ioctls of loop devices take pointers to C structures"
)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::path::{Path, PathBuf};

use crate::KernelError;
use crate::option::check;

// include/uapi/linux/loop.h.
const CONTROL: &str = "/dev/loop-control";
const SET_FD: libc::c_ulong = 0x4C00;
const CLEAR_FD: libc::c_ulong = 0x4C01;
const SET_STATUS64: libc::c_ulong = 0x4C04;
const CONFIGURE: libc::c_ulong = 0x4C0A;
const GET_FREE: libc::c_ulong = 0x4C82;
const AUTOCLEAR: u32 = 4;
/// Another program may take the device that the kernel says is free; so often a further one is tried.
const TRIES: u32 = 64;

#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// A loop device over a file. The kernel frees it when nothing has it open or mounted any more
/// (`LO_FLAGS_AUTOCLEAR`), however this process ends.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    // Held so that the device stays attached.
    _open: File,
}

impl LoopDevice {
    /// Attaches a free loop device to a file that is open to be read and written.
    ///
    /// # Errors
    /// `ENOENT` where the kernel has no loop devices, and then says what to do; `EPERM`, `EACCES` without root.
    pub fn attach(file: &File) -> Result<Self, KernelError> {
        Self::try_attach(file).map_err(|error| {
            let why = match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => io::Error::new(
                    error.kind(),
                    format!(
                        "{error}; the kernel has no loop devices, or /dev lacks them: run `modprobe loop`, and not in a container"
                    ),
                ),
                _ => error,
            };
            KernelError::of("attach", "a loop device")(why)
        })
    }

    fn try_attach(file: &File) -> io::Result<Self> {
        let control = File::options().read(true).write(true).open(CONTROL)?;
        let mut last = io::Error::from_raw_os_error(libc::EBUSY);
        for _ in 0..TRIES {
            // SAFETY: this call takes no argument.
            let number = check(unsafe { libc::ioctl(control.as_raw_fd(), GET_FREE as _) })?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = File::options().read(true).write(true).open(&path)?;
            match configure(&device, file.as_raw_fd()) {
                Ok(()) => {
                    return Ok(Self {
                        path,
                        _open: device,
                    });
                }
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// `/dev/loop7`.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn configure(device: &File, file: RawFd) -> io::Result<()> {
    let fd = u32::try_from(file).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut config = LoopConfig {
        fd,
        block_size: 0,
        info: LoopInfo {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            size_limit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags: AUTOCLEAR,
            file_name: [0; 64],
            crypt_name: [0; 64],
            encrypt_key: [0; 32],
            init: [0; 2],
        },
        reserved: [0; 8],
    };
    // SAFETY: the structure has the kernel's layout and outlives the call.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), CONFIGURE as _, &raw mut config) };
    match check(done) {
        // Before Linux 5.8.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTTY)) => {
            configure_in_two_steps(device, file, &mut config.info)
        }
        other => other.map(drop),
    }
}

fn configure_in_two_steps(device: &File, file: RawFd, info: &mut LoopInfo) -> io::Result<()> {
    // SAFETY: the argument is a descriptor.
    check(unsafe { libc::ioctl(device.as_raw_fd(), SET_FD as _, file) })?;
    // SAFETY: the structure has the kernel's layout and outlives the call.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), SET_STATUS64 as _, &raw mut *info) };
    if let Err(error) = check(done) {
        // SAFETY: this call takes no argument.
        unsafe { libc::ioctl(device.as_raw_fd(), CLEAR_FD as _) };
        return Err(error);
    }
    Ok(())
}
