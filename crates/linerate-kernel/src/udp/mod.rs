//! UDP in batches: several datagrams in a buffer (GSO, GRO), several buffers in a system call.
//!
//! What the drop counters count is said at [`enable_drop_counter`]: not always datagrams.

mod receive;
mod send;

use std::io;
use std::os::fd::AsFd;

use libc::c_int;
use rustix::net::{AddressFamily, sockopt};

pub use receive::{Message, Receiver};
pub use send::{MAX_PAYLOAD, MAX_SEGMENTS, send_segments};

use crate::option;

/// Lets the kernel hand over several datagrams of a flow as one message (Linux 5.0); read them with
/// a [`Receiver`] and [`Message::datagrams`], each message's buffer being 64 KiB.
pub fn enable_gro(fd: impl AsFd) -> io::Result<()> {
    option::set::<c_int>(fd, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Adds to each message how much was dropped at the socket before it ([`Message::drops`]).
///
/// The kernel counts buffers, once each, whatever they hold. Measured on Linux 6.18 over loopback and
/// veth: without [`enable_gro`] a buffer is a datagram, and this counter, `SO_MEMINFO`'s `drops` and
/// `Udp.RcvbufErrors` all equal sent − delivered exactly. With it a buffer is what GSO or GRO merged:
/// 40 datagrams a buffer gave 817 where 32,680 were missing (`Udp.InDatagrams` counts buffers likewise).
/// So with GRO the counter is a lower bound of the datagrams dropped, and [`MAX_SEGMENTS`] (128 since
/// Linux 6.9) times it an upper bound; no growth still means that nothing was dropped here.
///
/// [`crate::socket::memory`] gives the last value when no further message comes.
pub fn enable_drop_counter(fd: impl AsFd) -> io::Result<()> {
    option::set::<c_int>(fd, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)
}

/// Adds to each message when the kernel took it from the interface ([`Message::arrived`]). Packet sockets have it too.
///
/// # Errors
/// None is known for an open socket.
pub fn enable_arrival_times(fd: impl AsFd) -> io::Result<()> {
    option::set::<c_int>(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Adds to each message the address that it was sent to ([`Message::destination`]).
pub fn enable_packet_info(fd: impl AsFd) -> io::Result<()> {
    let fd = fd.as_fd();
    if sockopt::socket_domain(fd)? == AddressFamily::INET6 {
        option::set::<c_int>(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)
    } else {
        option::set::<c_int>(fd, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)
    }
}
