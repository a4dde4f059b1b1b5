//! SCTP (RFC 9260) with its one-to-one style sockets (RFC 6458): one association a socket, read and written like a stream.
//!
//! The kernel has no `TCP_INFO` for them, and its queue sizes (`SIOCINQ`, `SIOCOUTQ`) say something else or nothing.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use libc::c_int;

use rustix::net::ipproto;

use crate::option;
use crate::socket::{self, Family};

// include/uapi/linux/sctp.h
const SCTP_SOCKOPT_BINDX_ADD: c_int = 100;

/// A one-to-one style socket, blocking, closed on exec.
///
/// # Errors
/// `EPROTONOSUPPORT` where the kernel has no SCTP.
pub fn stream_socket(family: Family) -> io::Result<OwnedFd> {
    socket::stream_socket(family, ipproto::SCTP)
}

/// Sends small messages at once, without waiting for more to go into the same packet.
pub fn set_nodelay(fd: impl AsFd, on: bool) -> io::Result<()> {
    option::set(fd, libc::IPPROTO_SCTP, libc::SCTP_NODELAY, c_int::from(on))
}

/// The largest payload of a packet, bytes: longer messages are cut (`libc::SCTP_MAXSEG`).
///
/// # Errors
/// `EINVAL` for a size that the kernel does not have.
pub fn set_max_segment(fd: impl AsFd, bytes: u32) -> io::Result<()> {
    // struct sctp_assoc_value: 0 means the association to come.
    option::set(fd, libc::IPPROTO_SCTP, libc::SCTP_MAXSEG, [0, bytes])
}

/// Streams that an association to come asks for in the direction in which this end sends.
pub fn set_streams(fd: impl AsFd, streams: u16) -> io::Result<()> {
    // struct sctp_initmsg: the other fields keep the kernel's defaults.
    option::set(
        fd,
        libc::IPPROTO_SCTP,
        libc::SCTP_INITMSG,
        [streams, 0, 0, 0],
    )
}

/// Adds local addresses, so that the association may go over any of them (`sctp_bindx`). The first of a socket that is not bound
/// binds it; the others take its port where they have none.
///
/// # Errors
/// `EADDRNOTAVAIL` for an address that this host does not have, `EINVAL` for one of another family or port.
pub fn add_addresses(fd: impl AsFd, addresses: &[SocketAddr]) -> io::Result<()> {
    let packed: Vec<u8> = addresses.iter().flat_map(packed).collect();
    option::set_bytes(fd, libc::IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, &packed)
}

/// An address as the kernel reads it in a row of them: `sockaddr_in` or `sockaddr_in6`, without a gap after it.
fn packed(address: &SocketAddr) -> Vec<u8> {
    let family = |number: c_int| u16::try_from(number).unwrap_or(0).to_ne_bytes();
    let port = address.port().to_be_bytes();
    match address {
        SocketAddr::V4(v4) => [
            &family(libc::AF_INET)[..],
            &port,
            &v4.ip().octets(),
            &[0; 8],
        ]
        .concat(),
        SocketAddr::V6(v6) => [
            &family(libc::AF_INET6)[..],
            &port,
            &v6.flowinfo().to_ne_bytes(),
            &v6.ip().octets(),
            &v6.scope_id().to_ne_bytes(),
        ]
        .concat(),
    }
}

/// Memory of what was written and is not yet acknowledged, bytes with the kernel's overhead; 0 = the peer's kernel has all of it.
pub fn unacknowledged(fd: impl AsFd) -> io::Result<u64> {
    Ok(u64::from(socket::memory(fd)?.wmem_queued))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_kernels_layout() {
        let v4 = packed(&"192.0.2.1:5201".parse().unwrap());
        assert_eq!(v4.len(), size_of::<libc::sockaddr_in>());
        assert_eq!(v4[2..8], [0x14, 0x51, 192, 0, 2, 1]);
        let v6 = packed(&"[2001:db8::1]:5201".parse().unwrap());
        assert_eq!(v6.len(), size_of::<libc::sockaddr_in6>());
        assert_eq!(v6[8..12], [0x20, 0x01, 0x0d, 0xb8]);
        assert_eq!(u16::from_ne_bytes([v6[0], v6[1]]), 10);
    }

    #[test]
    fn a_kernel_without_sctp_says_so() {
        match stream_socket(Family::V4) {
            Ok(socket) => {
                set_nodelay(&socket, true).unwrap();
                set_max_segment(&socket, 1000).unwrap();
                set_streams(&socket, 3).unwrap();
                add_addresses(&socket, &["127.0.0.1:0".parse().unwrap()]).unwrap();
                assert_eq!(unacknowledged(&socket).unwrap(), 0);
            }
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPROTONOSUPPORT)),
        }
    }
}
