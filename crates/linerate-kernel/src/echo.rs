//! One echo request (ping), by a socket that needs no privilege where the kernel allows it
//! (`net.ipv4.ping_group_range`, icmp(7)), else by a raw one.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};

use crate::address::Family;
use crate::socket::set_dont_fragment;

const ECHO: u8 = 8;
const ECHO_REPLY: u8 = 0;
const ECHO_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;
/// Type, code, checksum, identifier, sequence.
const HEADER: usize = 8;

/// An echo request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// Bytes behind its header, 0 to 65,000.
    pub payload: u16,
    /// It must not be cut into fragments on the way.
    pub whole: bool,
    /// How long an answer is waited for.
    pub limit: Duration,
}

/// Whether an address answers an echo request within a time. `interface` is the index of the one that a link-local
/// address is on; 0 for all others.
///
/// # Errors
/// As [`round_trip`].
pub fn answers(address: IpAddr, interface: u32, limit: Duration) -> io::Result<bool> {
    let echo = Echo {
        payload: 0,
        whole: false,
        limit,
    };
    Ok(round_trip(address, interface, echo)?.is_some())
}

/// How long an address takes to answer an echo request; `None` where it did not within the time. `interface` as for [`answers`].
///
/// # Errors
/// No such socket for this process (`EACCES`, `EPERM`); the route's own refusals (`ENETUNREACH`, `EHOSTUNREACH`); for one that must
/// stay whole, `EMSGSIZE` where the path is known to be too small.
pub fn round_trip(address: IpAddr, interface: u32, echo: Echo) -> io::Result<Option<Duration>> {
    let (socket, raw) = match open(address, SocketType::DGRAM) {
        Ok(socket) => (socket, false),
        Err(_) => (open(address, SocketType::RAW)?, true),
    };
    if echo.whole {
        let family = if address.is_ipv4() {
            Family::V4
        } else {
            Family::V6
        };
        set_dont_fragment(&socket, family)?;
    }
    socket.connect(match address {
        IpAddr::V4(_) => SocketAddr::new(address, 0),
        IpAddr::V6(address) => SocketAddrV6::new(address, 0, 0, interface).into(),
    })?;
    let (ask, answer) = match address {
        IpAddr::V4(_) => (ECHO, ECHO_REPLY),
        IpAddr::V6(_) => (ECHO_V6, ECHO_REPLY_V6),
    };
    // Of a socket without privilege the kernel sets the identifier; of a raw one it is ours to tell replies apart.
    let id = (std::process::id() & 0xffff) as u16;
    let begun = Instant::now();
    socket.send(&request(ask, id, echo.payload))?;
    let end = begun + echo.limit;
    let mut packet = [0; 256];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        socket.set_read_timeout(Some(left))?;
        let length = match socket.recv(&mut packet) {
            Ok(length) => length,
            Err(error) if is_waiting(&error) => continue,
            Err(error) => return Err(error),
        };
        let message = message(&packet[..length], raw && address.is_ipv4());
        let ours = !raw || message.get(4..6) == Some(&id.to_be_bytes());
        if message.first() == Some(&answer) && ours {
            return Ok(Some(begun.elapsed()));
        }
    }
}

fn is_waiting(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::WouldBlock | Kind::TimedOut | Kind::Interrupted
    )
}

/// Sockets of the standard library are what they are opened as: this one carries ICMP.
fn open(address: IpAddr, kind: SocketType) -> io::Result<UdpSocket> {
    let (family, protocol) = match address {
        IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
        IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
    };
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, Some(protocol))?;
    Ok(UdpSocket::from(socket))
}

/// A raw IPv4 socket hears the IP header too.
fn message(packet: &[u8], with_header: bool) -> &[u8] {
    let skip = match packet.first() {
        Some(first) if with_header => usize::from(first & 0xf) * 4,
        _ => 0,
    };
    packet.get(skip..).unwrap_or_default()
}

/// An echo request whose payload is zeros. The kernel makes the checksum of `ICMPv6` itself.
fn request(kind: u8, id: u16, payload: u16) -> Vec<u8> {
    let mut message = vec![0; HEADER + usize::from(payload)];
    message[0] = kind;
    message[4..6].copy_from_slice(&id.to_be_bytes());
    message[7] = 1;
    // RFC 1071: the sum of all words, each carry added at the lower end. Zeros add nothing.
    let sum = message[..HEADER].chunks(2).fold(0_u16, |sum, pair| {
        let (sum, carry) = sum.overflowing_add(u16::from_be_bytes([pair[0], pair[1]]));
        sum + u16::from(carry)
    });
    let checksum = !sum;
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    message
}

#[cfg(test)]
mod tests {
    use linerate_testing::{Need, skipped};

    use super::*;

    #[test]
    fn a_request_has_its_checksum() {
        // RFC 1071: with the checksum in it, all words sum up to all ones.
        let sum: u32 = request(ECHO, 0xbeef, 6)
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
            .sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }

    #[test]
    fn a_header_is_left_out_and_rubbish_is_no_message() {
        let packet = [&[0x45][..], &[0; 19], &[ECHO_REPLY, 7]].concat();
        assert_eq!(message(&packet, true), [ECHO_REPLY, 7]);
        assert_eq!(message(&packet, false).len(), 22);
        assert!(message(&[0x4f], true).is_empty());
        assert!(message(&[], true).is_empty());
    }

    #[test]
    fn loopback_answers() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        match answers(loopback, 0, Duration::from_secs(5)) {
            Ok(answer) => assert!(answer),
            Err(error) => skipped(Need::Ping, "an echo from loopback", &error.to_string()),
        }
    }

    #[test]
    fn a_packet_that_is_larger_than_the_path_is_told_when_it_must_stay_whole() {
        let echo = |payload| Echo {
            payload,
            whole: true,
            limit: Duration::from_secs(5),
        };
        let loopback = IpAddr::from([127, 0, 0, 1]);
        match round_trip(loopback, 0, echo(1000)) {
            Ok(answer) => assert!(answer.is_some()),
            Err(error) => {
                return skipped(Need::Ping, "an echo that stays whole", &error.to_string());
            }
        }
        // The MTU of loopback is 65,536, and a packet of IPv4 has 65,535 bytes at most.
        let error = round_trip(loopback, 0, echo(65_535)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE), "{error}");
    }
}
