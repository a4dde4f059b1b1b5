#![expect(unsafe_code, reason = "recvmsg takes a raw header")]
//! Any socket: bytes in and out, buffers, marking, pacing, where its packets go.

use std::io::{self, IoSlice};
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use libc::c_int;
use linerate_model::units::BitRate;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::{
    self, AddressFamily, Protocol, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags,
    SocketType, ipproto, sendmsg, socket_with,
};

use crate::KernelError;
pub use crate::address::Family;
use crate::option::{self, check_size};

// Constants that the libc crate lacks on some targets (include/uapi/asm-generic/socket.h).
const SO_MAX_PACING_RATE: c_int = 47;
const SO_MEMINFO: c_int = 55;
// include/uapi/linux/in6.h
const IPV6_FL_ACTION_GET: u8 = 0;
const IPV6_FL_SHARE_ANY: u8 = 255;
const IPV6_FL_FLAG_CREATE: u16 = 1;
/// The kernel takes a buffer's size as `int`.
const MOST_BUFFER: usize = c_int::MAX as usize;
/// The flow label's 20 bits.
const FLOW_LABEL_MASK: u32 = 0xf_ffff;

/// Memory of a socket, bytes, as the kernel accounts it: with its own overhead, so 2 to 4 times the
/// payload (`SO_MEMINFO`, Linux 4.12).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Held by what was received and not yet read.
    pub rmem_alloc: u32,
    /// Bound of the former.
    pub rcvbuf: u32,
    /// Held by what is being sent (UDP: queued at the device).
    pub wmem_alloc: u32,
    /// Bound of the latter.
    pub sndbuf: u32,
    /// Reserved ahead.
    pub fwd_alloc: u32,
    /// Held by what was written and not yet acknowledged (TCP).
    pub wmem_queued: u32,
    /// Held by options.
    pub optmem: u32,
    /// Waiting in the backlog while the application holds the socket.
    pub backlog: u32,
    /// Packets dropped at this socket since it was made; 32 bits that wrap. For UDP it counts
    /// buffers, see [`crate::udp`].
    pub drops: u32,
}

/// Hands bytes to the kernel without waiting and without `SIGPIPE`; says how many it took.
///
/// # Errors
/// `WouldBlock` where the buffer is full; `BrokenPipe`, `ConnectionReset` …
pub fn send(fd: impl AsFd, data: &[u8]) -> io::Result<usize> {
    Ok(net::send(fd, data, NOW)?)
}

/// Without waiting and without `SIGPIPE`.
pub(crate) const NOW: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

/// Hands `length` bytes to the kernel as [`send`] does, `pattern` over and over: one call moves much and
/// touches little of the cache. At most [`MOST_PARTS`] times the pattern go in one call.
///
/// # Errors
/// As [`send`]; `InvalidInput` for an empty pattern.
pub fn send_repeated(fd: impl AsFd, pattern: &[u8], length: usize) -> io::Result<usize> {
    send_repeated_flags(fd, pattern, length, NOW)
}

/// `send_repeated` with other flags.
pub(crate) fn send_repeated_flags(
    fd: impl AsFd,
    pattern: &[u8],
    length: usize,
    flags: SendFlags,
) -> io::Result<usize> {
    let (count, last) = repeated(pattern.len(), length)?;
    let mut parts = [IoSlice::new(pattern); MOST_PARTS];
    parts[count - 1] = IoSlice::new(&pattern[..last]);
    let mut beside = SendAncillaryBuffer::default();
    Ok(sendmsg(fd, &parts[..count], &mut beside, flags)?)
}

/// Takes up to `length` bytes from the kernel as [`receive`] does, and drops them: each part of the length of
/// `scratch` overwrites the one before, so that the copies stay in the cache. At most [`MOST_PARTS`] times
/// `scratch` come in one call.
///
/// # Errors
/// As [`receive`]; `InvalidInput` for an empty `scratch`.
pub fn receive_over(fd: impl AsFd, scratch: &mut [u8], length: usize) -> io::Result<usize> {
    let (count, last) = repeated(scratch.len(), length)?;
    let part = libc::iovec {
        iov_base: scratch.as_mut_ptr().cast(),
        iov_len: scratch.len(),
    };
    let mut parts = [part; MOST_PARTS];
    parts[count - 1].iov_len = last;
    // SAFETY: a msghdr of zeros is valid: null pointers with zero lengths.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = parts.as_mut_ptr();
    header.msg_iovlen = count as _;
    // SAFETY: the header points to `parts`, whose elements point to `scratch`; both outlive the call. That the
    // parts lie over one another is fine: the kernel writes them one after the other, each within its length.
    check_size(unsafe {
        libc::recvmsg(fd.as_fd().as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT)
    })
}

/// Parts of one [`send_repeated`], [`receive_over`] and the like, at most.
pub const MOST_PARTS: usize = 32;

/// How many parts of `part` bytes make up `length`, and how long the last one is.
fn repeated(part: usize, length: usize) -> io::Result<(usize, usize)> {
    if part == 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let length = length.min(part.saturating_mul(MOST_PARTS));
    let count = length.div_ceil(part).max(1);
    Ok((count, length - (count - 1) * part))
}

/// Takes bytes from the kernel without waiting; 0 is the peer's end of data (for a stream).
///
/// # Errors
/// `WouldBlock` where nothing is there; `ConnectionReset` …
pub fn receive(fd: impl AsFd, data: &mut [u8]) -> io::Result<usize> {
    let (_, length) = net::recv(fd, data, RecvFlags::DONTWAIT)?;
    Ok(length)
}

/// Asks for a send buffer of `bytes`; this ends autotuning. The kernel grants at most
/// `net.core.wmem_max` without saying so: read [`send_buffer`] afterwards.
pub fn set_send_buffer(fd: impl AsFd, bytes: usize) -> io::Result<()> {
    Ok(sockopt::set_socket_send_buffer_size(
        fd,
        bytes.min(MOST_BUFFER),
    )?)
}

/// Asks for a receive buffer of `bytes`; this ends autotuning. The kernel grants at most
/// `net.core.rmem_max` without saying so: read [`receive_buffer`] afterwards.
pub fn set_receive_buffer(fd: impl AsFd, bytes: usize) -> io::Result<()> {
    Ok(sockopt::set_socket_recv_buffer_size(
        fd,
        bytes.min(MOST_BUFFER),
    )?)
}

/// The send buffer as the kernel says it, bytes: twice what was granted, for its own overhead.
pub fn send_buffer(fd: impl AsFd) -> io::Result<usize> {
    Ok(sockopt::socket_send_buffer_size(fd)?)
}

/// The receive buffer as the kernel says it, bytes: twice what was granted, for its own overhead.
pub fn receive_buffer(fd: impl AsFd) -> io::Result<usize> {
    Ok(sockopt::socket_recv_buffer_size(fd)?)
}

/// The socket's memory.
///
/// # Errors
/// `ENOPROTOOPT` before Linux 4.12.
pub fn memory(fd: impl AsFd) -> io::Result<MemoryInfo> {
    let raw: [u32; 9] = option::get(fd, libc::SOL_SOCKET, SO_MEMINFO)?;
    let [
        rmem_alloc,
        rcvbuf,
        wmem_alloc,
        sndbuf,
        fwd_alloc,
        wmem_queued,
        optmem,
        backlog,
        drops,
    ] = raw;
    Ok(MemoryInfo {
        rmem_alloc,
        rcvbuf,
        wmem_alloc,
        sndbuf,
        fwd_alloc,
        wmem_queued,
        optmem,
        backlog,
        drops,
    })
}

/// Sets the type-of-service byte (DSCP in the upper six bits) for IPv4 and IPv6, both on an IPv6
/// socket. On a TCP socket the kernel keeps the lower two (ECN) bits to itself.
///
/// # Errors
/// `EPERM` for bits that need a privilege on old kernels.
pub fn set_tos(fd: impl AsFd, tos: u8) -> io::Result<()> {
    let fd = fd.as_fd();
    if sockopt::socket_domain(fd)? == AddressFamily::INET6 {
        sockopt::set_ipv6_tclass(fd, tos.into())?;
    }
    Ok(sockopt::set_ip_tos(fd, tos)?)
}

/// Reserves an IPv6 flow label towards `address` and lets the socket send it. The connect that
/// follows must carry the label in its address (`SocketAddrV6::set_flowinfo`).
///
/// # Errors
/// `InvalidInput` for a label of 0 or above 20 bits; `EPERM` where another process holds it.
pub fn set_flow_label(fd: impl AsFd, address: Ipv6Addr, label: u32) -> io::Result<()> {
    if label == 0 || label > FLOW_LABEL_MASK {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let fd = fd.as_fd();
    // struct in6_flowlabel_req: dst 16, label be32, action u8, share u8, flags u16, expires u16,
    // linger u16, pad u32.
    let mut request = [0_u8; 32];
    request[..16].copy_from_slice(&address.octets());
    request[16..20].copy_from_slice(&label.to_be_bytes());
    request[20] = IPV6_FL_ACTION_GET;
    request[21] = IPV6_FL_SHARE_ANY;
    request[22..24].copy_from_slice(&IPV6_FL_FLAG_CREATE.to_ne_bytes());
    option::set(fd, libc::IPPROTO_IPV6, libc::IPV6_FLOWLABEL_MGR, request)?;
    option::set::<c_int>(fd, libc::IPPROTO_IPV6, libc::IPV6_FLOWINFO_SEND, 1)
}

/// Forbids fragments: a datagram larger than the path's MTU is an error (`EMSGSIZE`).
pub fn set_dont_fragment(fd: impl AsFd, family: Family) -> io::Result<()> {
    let fd = fd.as_fd();
    if family == Family::V6 {
        sockopt::set_ipv6_mtu_discover(fd, Ipv6PathMtuDiscovery::DO)?;
        option::set::<c_int>(fd, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, 1)?;
    }
    Ok(sockopt::set_ip_mtu_discover(fd, Ipv4PathMtuDiscovery::DO)?)
}

/// Binds the socket to an interface. Unprivileged since Linux 5.7, unless it is bound already.
///
/// # Errors
/// `ENODEV` where there is no such interface, `EPERM`.
pub fn bind_device(fd: impl AsFd, name: &str) -> Result<(), KernelError> {
    option::set_bytes(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, name.as_bytes())
        .map_err(KernelError::of("bind the socket to interface", name))
}

/// Bounds the rate at which the kernel paces the socket. `BitRate(u64::MAX)` lifts the bound; the
/// kernel counts whole bytes per second, at least 1. TCP paces by itself, other sockets need the
/// `fq` queueing discipline.
///
/// # Errors
/// `EINVAL` before Linux 4.20 for the 64-bit form.
pub fn set_max_pacing_rate(fd: impl AsFd, rate: BitRate) -> io::Result<()> {
    let bytes_per_second = match rate.bits_per_second() {
        u64::MAX => u64::MAX,
        bits => (bits / 8).max(1),
    };
    option::set(fd, libc::SOL_SOCKET, SO_MAX_PACING_RATE, bytes_per_second)
}

/// Lets a listener bind while old connections of its port are still in `TIME_WAIT`.
pub fn set_reuse_address(fd: impl AsFd, on: bool) -> io::Result<()> {
    Ok(sockopt::set_socket_reuseaddr(fd, on)?)
}

/// Takes the error that waits on the socket, for example how a non-blocking connect ended.
pub fn pending_error(fd: impl AsFd) -> io::Result<Option<io::Error>> {
    Ok(sockopt::socket_error(fd)?.err().map(io::Error::from))
}

/// A Multipath TCP stream socket, blocking, closed on exec.
///
/// # Errors
/// `EPROTONOSUPPORT` where the kernel is built without it, `ENOPROTOOPT` where it is switched off.
pub fn mptcp_stream_socket(family: Family) -> io::Result<OwnedFd> {
    stream_socket(family, ipproto::MPTCP)
}

/// A stream socket of a protocol, blocking, closed on exec.
pub(crate) fn stream_socket(family: Family, protocol: Protocol) -> io::Result<OwnedFd> {
    let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC);
    let family = family.number();
    Ok(socket_with(family, kind, flags, Some(protocol))?)
}
