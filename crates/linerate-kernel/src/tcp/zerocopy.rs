#![expect(unsafe_code, reason = "recvmsg on the error queue is a raw call")]
//! Sending without copying (`Documentation/networking/msg_zerocopy.rst`), for TCP and UDP.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::c_int;
use rustix::net::SendFlags;

use crate::address::array;
use crate::control::{self, Control};
use crate::option::{self, check_size};
use crate::socket::{NOW, send_repeated_flags};

const SO_ZEROCOPY: c_int = 60;
const MSG_ZEROCOPY: SendFlags = SendFlags::from_bits_retain(0x400_0000);
// include/uapi/linux/errqueue.h
const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;
/// Notifications taken in one call, at most.
const MOST_NOTIFICATIONS: usize = 64;

/// What became of zero-copy sends, as far as the kernel has told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ZerocopyCompletions {
    /// Sends whose buffers the kernel has let go.
    pub completed: u64,
    /// Of them, those that it copied all the same: loopback, a device without scatter-gather, …
    pub copied: u64,
    /// Other messages of the error queue (ICMP errors), which were taken from it with these.
    pub other: u64,
}

/// Allows [`send_zerocopy`] on the socket; Linux 4.14 for TCP, 5.0 for UDP.
///
/// # Errors
/// `ENOTSUPP` (524) for other sockets.
pub fn enable_zerocopy(fd: impl AsFd) -> io::Result<()> {
    option::set::<c_int>(fd, libc::SOL_SOCKET, SO_ZEROCOPY, 1)
}

/// Sends `length` bytes, `pattern` over and over as [`crate::socket::send_repeated`] does, without copying and
/// without waiting. Every success is one completion later on.
///
/// Until that completion the kernel (and a retransmission) reads `pattern` where it lies: leave it
/// unchanged and alive, or other bytes go out. That is no hazard to this process's memory, which
/// is why the function is safe, but it is one to what the peer gets.
///
/// # Errors
/// As [`crate::socket::send_repeated`], and `ENOBUFS` where `net.core.optmem_max` or the locked-memory limit
/// is used up: read completions, or send with a copy.
pub fn send_zerocopy(fd: impl AsFd, pattern: &[u8], length: usize) -> io::Result<usize> {
    send_repeated_flags(fd, pattern, length, NOW | MSG_ZEROCOPY)
}

/// Takes the completions that wait in the error queue, without waiting; a notification covers one
/// or more sends. At most 64 notifications a call: where the socket still polls as `error`, call again.
///
/// # Errors
/// Those of `recvmsg`; an empty queue is none.
pub fn zerocopy_completions(fd: impl AsFd) -> io::Result<ZerocopyCompletions> {
    let fd = fd.as_fd();
    let mut total = ZerocopyCompletions::default();
    let mut room = [0_u64; control::ROOM / 8];
    for _ in 0..MOST_NOTIFICATIONS {
        let length = match error_message(fd, &mut room) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        };
        let bytes = room.map(u64::to_ne_bytes);
        for message in control::messages(&bytes.as_flattened()[..length]) {
            book(&mut total, message);
        }
    }
    Ok(total)
}

/// Takes one message of the error queue; its length in `room`, bytes.
fn error_message(fd: impl AsFd, room: &mut [u64; control::ROOM / 8]) -> io::Result<usize> {
    // SAFETY: a msghdr of zeros is valid: null pointers with zero lengths.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_control = room.as_mut_ptr().cast();
    header.msg_controllen = control::ROOM as _;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the header points to `room`, whose size it tells, and to nothing else.
    check_size(unsafe { libc::recvmsg(fd.as_fd().as_raw_fd(), &raw mut header, flags) })?;
    Ok(control::length(&header))
}

/// Books one `struct sock_extended_err`: errno u32, origin, type, code, pad u8, info u32, data u32.
fn book(total: &mut ZerocopyCompletions, message: Control<'_>) {
    let is_error = matches!(
        (message.level, message.kind),
        (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
    );
    let word = |at| array(message.data, at).map(u32::from_ne_bytes);
    let (true, Some([origin, _, code, _]), Some(first), Some(last)) =
        (is_error, array::<4>(message.data, 4), word(8), word(12))
    else {
        return;
    };
    if origin != SO_EE_ORIGIN_ZEROCOPY {
        total.other += 1;
        return;
    }
    // Sends are numbered from 0 in 32 bits that wrap; the range is inclusive.
    let sends = u64::from(last.wrapping_sub(first)) + 1;
    total.completed += sends;
    if code & SO_EE_CODE_ZEROCOPY_COPIED != 0 {
        total.copied += sends;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(origin: u8, code: u8, first: u32, last: u32) -> Vec<u8> {
        let mut data = 0_u32.to_ne_bytes().to_vec();
        data.extend([origin, 0, code, 0]);
        data.extend(first.to_ne_bytes());
        data.extend(last.to_ne_bytes());
        data
    }

    #[test]
    fn ranges_wrap_and_foreign_errors_are_no_completions() {
        let mut total = ZerocopyCompletions::default();
        for data in [
            error(5, 0, 3, 5),
            error(5, 1, u32::MAX, 1),
            error(2, 3, 0, 0),
            vec![0; 15],
        ] {
            let message = Control {
                level: libc::IPPROTO_IP,
                kind: libc::IP_RECVERR,
                data: &data,
            };
            book(&mut total, message);
        }
        assert_eq!(
            total,
            ZerocopyCompletions {
                completed: 6,
                copied: 3,
                other: 1
            }
        );
    }
}
