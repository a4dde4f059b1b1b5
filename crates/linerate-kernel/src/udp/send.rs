#![expect(unsafe_code, reason = "sendmsg takes a raw message header")]
//! Sending: one buffer that the kernel cuts into datagrams.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::control::{SegmentControl, segment_size};
use crate::option::check_size;

/// Datagrams in one buffer, at most (`UDP_MAX_SEGMENTS`; 128 since Linux 6.9, 64 before).
pub const MAX_SEGMENTS: usize = 64;
/// Bytes in one buffer, at most: what an IPv4 packet holds beside its headers.
pub const MAX_PAYLOAD: usize = 65_507;

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
