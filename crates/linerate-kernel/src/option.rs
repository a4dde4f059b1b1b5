#![expect(unsafe_code, reason = "getsockopt, setsockopt and ioctl take pointers")]
//! Socket options and socket ioctls, typed: the one place where they are called.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, c_ulong, socklen_t};

/// Types without padding or invalid bit patterns, so the kernel may read and write every byte.
///
/// # Safety
/// Every bit pattern must be a valid value, and no byte may be padding.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: an integer has no padding and every bit pattern is valid.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: an array adds no padding to its elements.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// 0 or more is success, −1 means `errno`.
pub(crate) fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The same for calls that return a size.
pub(crate) fn check_size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// A length that the kernel wants as `int`, held at its largest value.
pub(crate) fn clamp_int(value: usize) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

/// Sets an option.
pub(crate) fn set<T: Plain>(fd: impl AsFd, level: c_int, name: c_int, value: T) -> io::Result<()> {
    let length = socklen_t::try_from(size_of::<T>()).unwrap_or(0);
    // SAFETY: `value` lives through the call and is `length` bytes long.
    let result = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            length,
        )
    };
    check(result).map(drop)
}

/// Sets an option whose value is a text or another run of bytes.
pub(crate) fn set_bytes(fd: impl AsFd, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    let length = socklen_t::try_from(value.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: `value` lives through the call and is `length` bytes long.
    let result = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            name,
            value.as_ptr().cast(),
            length,
        )
    };
    check(result).map(drop)
}

/// Reads an option; the second value is the number of bytes that the kernel wrote, the rest is 0.
pub(crate) fn get_with_length<T: Plain>(
    fd: impl AsFd,
    level: c_int,
    name: c_int,
) -> io::Result<(T, usize)> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = socklen_t::try_from(size_of::<T>()).unwrap_or(0);
    // SAFETY: the kernel writes at most `length` bytes, which is the size of `value`.
    let result = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            name,
            value.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    check(result)?;
    // SAFETY: it was zeroed, and `Plain` types hold any bit pattern.
    let value = unsafe { value.assume_init() };
    Ok((value, usize::try_from(length).unwrap_or(0)))
}

/// Reads an option that must come whole.
pub(crate) fn get<T: Plain>(fd: impl AsFd, level: c_int, name: c_int) -> io::Result<T> {
    let (value, length) = get_with_length(fd, level, name)?;
    if length < size_of::<T>() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("socket option {level}/{name} came {length} bytes long"),
        ));
    }
    Ok(value)
}

/// An ioctl that answers one `int` count, as the socket queue sizes do.
pub(crate) fn queue_size(fd: impl AsFd, request: c_ulong) -> io::Result<u64> {
    let mut count: c_int = 0;
    // SAFETY: these requests write one `int`; `request as _` because musl declares it signed.
    let result = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), request as _, &raw mut count) };
    check(result)?;
    u64::try_from(count).map_err(|_| io::ErrorKind::InvalidData.into())
}
