#![expect(unsafe_code, reason = "sendmsg and sendmmsg take raw message headers")]
//! Sending: one buffer that the kernel cuts into datagrams, or several such buffers at once.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::control::{SegmentControl, segment_size};
use crate::option::{check, check_size};

/// Datagrams in one buffer, at most (`UDP_MAX_SEGMENTS`; 128 since Linux 6.9, 64 before).
pub const MAX_SEGMENTS: usize = 64;
/// Bytes in one buffer, at most: what an IPv4 packet holds beside its headers.
pub const MAX_PAYLOAD: usize = 65_507;
/// Buffers in one [`send_batch`], at most.
pub const MAX_BATCH: usize = 16;

const FLAGS: libc::c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

/// Sends `buffer` on a connected socket as datagrams of `segment` bytes, the last one shorter where
/// it must be, without waiting, and says how many bytes went: all, or where `buffer` exceeds
/// [`MAX_SEGMENTS`] datagrams or [`MAX_PAYLOAD`] bytes, that much of it in whole datagrams.
///
/// # Errors
/// `InvalidInput` for a `segment` of 0. `WouldBlock`. `EINVAL` where a datagram exceeds the path's
/// MTU, `EIO` where the device cannot checksum: send such datagrams one by one.
/// `ConnectionRefused` where an earlier one met a closed port.
pub fn send_segments(fd: impl AsFd, buffer: &[u8], segment: u16) -> io::Result<usize> {
    let buffer = &buffer[..buffer.len().min(most_bytes(segment)?)];
    let mut control = segment_size(segment);
    let mut data = io_vector(buffer);
    let header = header(&mut data, &mut control, buffer.len() > usize::from(segment));
    // SAFETY: the header points to `data`, which points to `buffer`, and to `control`; all outlive
    // the call, and the kernel only reads them.
    check_size(unsafe { libc::sendmsg(fd.as_fd().as_raw_fd(), &raw const header, FLAGS) })
}

/// Sends several buffers on a connected socket in one system call, each as [`send_segments`] would,
/// and says how many buffers went; those behind them were not touched. Takes [`MAX_BATCH`] at most.
///
/// An error behind the first buffer shows at the next call only (sendmmsg(2)).
///
/// # Errors
/// As [`send_segments`]; `InvalidInput` also for a buffer beyond the limits, which a count of
/// buffers could not tell.
pub fn send_batch(fd: impl AsFd, buffers: &[&[u8]], segment: u16) -> io::Result<usize> {
    let most = most_bytes(segment)?;
    let buffers = &buffers[..buffers.len().min(MAX_BATCH)];
    if buffers.iter().any(|buffer| buffer.len() > most) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut control = segment_size(segment);
    let mut data = [io_vector(&[]); MAX_BATCH];
    // SAFETY: message headers of zeros are valid: null pointers with zero lengths.
    let mut headers: [libc::mmsghdr; MAX_BATCH] = unsafe { std::mem::zeroed() };
    for ((buffer, data), message) in buffers.iter().zip(&mut data).zip(&mut headers) {
        *data = io_vector(buffer);
        message.msg_hdr = header(data, &mut control, buffer.len() > usize::from(segment));
    }
    let count = libc::c_uint::try_from(buffers.len()).unwrap_or(0);
    // SAFETY: the first `count` headers point to elements of `data`, which point to `buffers`, and to
    // `control`; all outlive the call, and the kernel writes nothing but each `msg_len`.
    let sent = check(unsafe {
        libc::sendmmsg(
            fd.as_fd().as_raw_fd(),
            headers.as_mut_ptr(),
            count,
            FLAGS as _,
        )
    })?;
    Ok(usize::try_from(sent).unwrap_or(0))
}

/// Bytes that one buffer may hold, in whole datagrams.
fn most_bytes(segment: u16) -> io::Result<usize> {
    let segment = usize::from(segment);
    if segment == 0 || segment > MAX_PAYLOAD {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(segment * MAX_SEGMENTS.min(MAX_PAYLOAD / segment))
}

fn io_vector(buffer: &[u8]) -> libc::iovec {
    libc::iovec {
        iov_base: buffer.as_ptr().cast_mut().cast(),
        iov_len: buffer.len(),
    }
}

/// A header for one buffer, with the control message where it is to be cut.
fn header(data: &mut libc::iovec, control: &mut SegmentControl, cut: bool) -> libc::msghdr {
    // SAFETY: a msghdr of zeros is valid: null pointers with zero lengths.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = std::ptr::from_mut(data);
    header.msg_iovlen = 1;
    if cut {
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of::<SegmentControl>() as _;
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_holds_whole_datagrams() {
        assert_eq!(most_bytes(1472).unwrap(), 44 * 1472);
        assert_eq!(most_bytes(100).unwrap(), 6400);
        assert_eq!(most_bytes(65_507).unwrap(), 65_507);
        assert_eq!(most_bytes(40_000).unwrap(), 40_000);
        assert!(most_bytes(0).is_err());
        assert!(most_bytes(65_508).is_err());
    }
}
