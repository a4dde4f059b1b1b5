#![expect(unsafe_code, reason = "recv without a buffer is a raw call")]
//! TCP sockets: the kernel's account of the connection, its settings and queues.
//!
//! How the counters count, measured on Linux 6.18 and held by `tests/kernel/tcp_account.rs`:
//!
//! - `bytes_acked` counts 1 for an active opener's SYN (none for a passive opener's) and 1 for the
//!   own FIN once it is acknowledged. `bytes_sent` and `bytes_retrans` count payload alone.
//! - `bytes_received` counts 1 for the peer's FIN as soon as it arrived in order, read or not;
//!   [`unread`] does not count it.
//! - [`unacknowledged`], [`unsent`] and `notsent_bytes` count 1 for a FIN that is queued; they are 0
//!   once it is acknowledged (or, the latter two, sent).
//! - After the connection ended, by both FINs or by a reset, [`info`] can still be read until the
//!   descriptor is closed: the state is 7 (CLOSE, never `TIME_WAIT`) and the counters stay as they
//!   were. What was in flight at a reset stays in [`unacknowledged`]; it is not in `bytes_acked`.

mod congestion;
mod zerocopy;

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use linerate_model::tcp_info::{LENGTH, TcpInfo};
use linerate_model::units::Nanos;
use rustix::io::ioctl_fionread;
use rustix::net::sockopt;

pub(crate) use congestion::bbr;
pub use congestion::{BbrInfo, congestion, set_congestion};
pub use zerocopy::{ZerocopyCompletions, enable_zerocopy, send_zerocopy, zerocopy_completions};

use crate::option::{self, check_size, queue_size};

/// `SIOCOUTQNSD` (include/uapi/linux/sockios.h).
const SIOCOUTQNSD: libc::c_ulong = 0x894B;

/// What the kernel knows of the connection, as long as this kernel makes it (280 bytes on 6.18).
///
/// # Errors
/// `ENOPROTOOPT` for a socket that is no TCP socket.
pub fn info(fd: impl AsFd) -> io::Result<TcpInfo> {
    let (raw, length) =
        option::get_with_length::<[u8; LENGTH]>(fd, libc::IPPROTO_TCP, libc::TCP_INFO)?;
    Ok(TcpInfo::new(raw, length))
}

/// Bounds the segment size, bytes without headers (88 to 32,767); set it before connecting.
///
/// # Errors
/// `EINVAL` out of range.
pub fn set_mss(fd: impl AsFd, bytes: u32) -> io::Result<()> {
    option::set(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes)
}

/// The segment size in use, bytes without headers; before connecting what was set, or 536.
pub fn mss(fd: impl AsFd) -> io::Result<u32> {
    option::get(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG)
}

/// Sends small writes at once instead of waiting for an acknowledgement (Nagle off).
pub fn set_nodelay(fd: impl AsFd, on: bool) -> io::Result<()> {
    Ok(sockopt::set_tcp_nodelay(fd, on)?)
}

/// How long data may stay unacknowledged before the connection is given up; rounded up to whole
/// milliseconds; 0 = the system's default (`tcp_retries2`).
///
/// # Errors
/// `EINVAL` beyond 24 days.
pub fn set_user_timeout(fd: impl AsFd, timeout: Nanos) -> io::Result<()> {
    let millis = u32::try_from(timeout.0.div_ceil(1_000_000)).unwrap_or(u32::MAX);
    Ok(sockopt::set_tcp_user_timeout(fd, millis)?)
}

/// When an idle connection is probed. What is absent keeps, or has, the system's setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keepalive {
    /// Seconds of silence before the first probe, 1 to 32,767 (`TCP_KEEPIDLE`).
    pub idle_s: Option<u32>,
    /// Seconds between probes, 1 to 32,767 (`TCP_KEEPINTVL`).
    pub interval_s: Option<u32>,
    /// Unanswered probes after which the connection is given up, 1 to 127 (`TCP_KEEPCNT`).
    pub count: Option<u32>,
}

impl Keepalive {
    /// With the settings of `system` where this has none.
    #[must_use]
    pub fn or(self, system: Self) -> Self {
        Self {
            idle_s: self.idle_s.or(system.idle_s),
            interval_s: self.interval_s.or(system.interval_s),
            count: self.count.or(system.count),
        }
    }

    /// Whether all probes together take at least as long as the silence before them, so that a connection that
    /// recovers meanwhile would be given up. False where one of the three is not known.
    pub fn probes_outlast_idle(self) -> bool {
        let probing = self.interval_s.zip(self.count);
        let probing = probing.map(|(interval, count)| u64::from(interval) * u64::from(count));
        self.idle_s
            .zip(probing)
            .is_some_and(|(idle, probing)| u64::from(idle) <= probing)
    }
}

/// Has the kernel probe a connection while it is idle.
///
/// # Errors
/// `EINVAL` out of range.
pub fn set_keepalive(fd: impl AsFd, asked: Keepalive) -> io::Result<()> {
    let fd = fd.as_fd();
    for (name, value) in [
        (libc::TCP_KEEPIDLE, asked.idle_s),
        (libc::TCP_KEEPINTVL, asked.interval_s),
        (libc::TCP_KEEPCNT, asked.count),
    ] {
        if let Some(value) = value {
            option::set(fd, libc::IPPROTO_TCP, name, value)?;
        }
    }
    Ok(sockopt::set_socket_keepalive(fd, true)?)
}

/// The times that apply to a connection, whether or not it is probed.
pub fn keepalive(fd: impl AsFd) -> io::Result<Keepalive> {
    let fd = fd.as_fd();
    let value = |name| option::get(fd, libc::IPPROTO_TCP, name).map(Some);
    Ok(Keepalive {
        idle_s: value(libc::TCP_KEEPIDLE)?,
        interval_s: value(libc::TCP_KEEPINTVL)?,
        count: value(libc::TCP_KEEPCNT)?,
    })
}

/// Bytes received in order and not yet read (`SIOCINQ`); the peer's FIN is not among them.
///
/// # Errors
/// `EINVAL` for a listener.
pub fn unread(fd: impl AsFd) -> io::Result<u64> {
    Ok(ioctl_fionread(fd)?)
}

/// Sequence numbers written and not yet acknowledged (`SIOCOUTQ`): bytes, and 1 for an
/// unacknowledged FIN.
///
/// # Errors
/// `EINVAL` for a listener.
pub fn unacknowledged(fd: impl AsFd) -> io::Result<u64> {
    queue_size(fd, libc::TIOCOUTQ)
}

/// Of [`unacknowledged`], what was not yet sent (`SIOCOUTQNSD`).
///
/// # Errors
/// `EINVAL` for a listener.
pub fn unsent(fd: impl AsFd) -> io::Result<u64> {
    queue_size(fd, SIOCOUTQNSD)
}

/// Takes up to `max` bytes from the receive queue without copying them anywhere and without
/// waiting; 0 is the peer's end of data. The bytes are not looked at: they cannot be checked.
///
/// # Errors
/// `WouldBlock` where nothing is there; `InvalidInput` for a `max` of 0; `ConnectionReset` …
pub fn discard(fd: impl AsFd, max: usize) -> io::Result<usize> {
    if max == 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    // SAFETY: with MSG_TRUNC a TCP socket writes nothing (tcp(7)); on any other kind of socket the
    // kernel answers EFAULT for the null pointer.
    check_size(unsafe { libc::recv(fd.as_fd().as_raw_fd(), std::ptr::null_mut(), max, flags) })
}
