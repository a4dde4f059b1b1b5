//! What the kernel tells of a socket: `struct inet_diag_msg` and its attributes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use linerate_model::tcp_info::{LENGTH, TcpInfo};

use crate::address::array;
use crate::netlink::{attributes, word};
use crate::tcp::{BbrInfo, bbr};

/// Bytes of `struct inet_diag_msg` (`include/uapi/linux/inet_diag.h`).
const HEAD: usize = 72;
// INET_DIAG_*
const INFO: u16 = 2;
const CONGESTION: u16 = 4;
const MEMORY: u16 = 7;
const BBR: u16 = 16;

/// A TCP socket at an instant.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpSocket<'a> {
    /// The kernel's number for it, never used again in this network namespace until the host restarts: another
    /// connection between the same ports has another.
    pub cookie: u64,
    /// Its address and port at this host; an IPv4-mapped address of IPv6 as IPv4.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// TCP state: 1 ESTABLISHED … 10 LISTEN, 11 CLOSING.
    pub state: u8,
    /// Received in order and not read, bytes; a FIN that was not read counts one. For a listener: connections
    /// that wait to be accepted.
    pub unread: u32,
    /// Written and not acknowledged, bytes; a FIN counts one. For a listener: how many may wait.
    pub unacknowledged: u32,
    /// The user that made it.
    pub uid: u32,
    /// Its inode, as /proc/PID/fd names it; 0 where no process holds it any more.
    pub inode: u32,
    /// The connection's account.
    pub info: Option<TcpInfo>,
    /// `SK_MEMINFO`: what its buffers hold, bytes; absent where the kernel sent none.
    pub memory: Option<SocketMemory>,
    /// Its congestion control.
    pub congestion: Option<&'a str>,
    /// BBR's model of the path, where it is BBR.
    pub bbr: Option<BbrInfo>,
}

/// A socket's memory (`SK_MEMINFO_*`), bytes with the kernel's overhead unless a name says otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SocketMemory {
    /// Held by what was received and not read.
    pub received: u32,
    /// Bound of that (`SO_RCVBUF` as granted).
    pub receive_buffer: u32,
    /// Held by what was written, sent or not.
    pub queued: u32,
    /// Bound of that (`SO_SNDBUF` as granted).
    pub send_buffer: u32,
    /// Received while the program held the socket, and not yet looked at.
    pub backlog: u32,
    /// Segments that the socket dropped. Absent before Linux 4.12.
    pub drops: Option<u32>,
}

/// `None` where the message is cut short or of another family.
pub(super) fn parse(message: &[u8]) -> Option<TcpSocket<'_>> {
    let family = i32::from(*message.first()?);
    let state = *message.get(1)?;
    let port = |at| array(message, at).map(u16::from_be_bytes);
    let address = |at: usize| -> Option<IpAddr> {
        match family {
            libc::AF_INET => array::<4>(message, at).map(|raw| Ipv4Addr::from(raw).into()),
            libc::AF_INET6 => array::<16>(message, at).map(|raw| Ipv6Addr::from(raw).into()),
            _ => None,
        }
    };
    let interface = word(message, 40)?;
    let socket_address = |address: IpAddr, port| -> SocketAddr {
        match address.to_canonical() {
            IpAddr::V4(address) => SocketAddrV4::new(address, port).into(),
            IpAddr::V6(address) => {
                let scope = if address.is_unicast_link_local() {
                    interface
                } else {
                    0
                };
                SocketAddrV6::new(address, port, 0, scope).into()
            }
        }
    };
    let mut socket = TcpSocket {
        cookie: u64::from(word(message, 48)?) << 32 | u64::from(word(message, 44)?),
        local: socket_address(address(8)?, port(4)?),
        remote: socket_address(address(24)?, port(6)?),
        state,
        unread: word(message, 56)?,
        unacknowledged: word(message, 60)?,
        uid: word(message, 64)?,
        inode: word(message, 68)?,
        info: None,
        memory: None,
        congestion: None,
        bbr: None,
    };
    for (kind, value) in attributes(message.get(HEAD..)?) {
        match kind {
            INFO => socket.info = Some(info(value)),
            MEMORY => socket.memory = memory(value),
            CONGESTION => {
                let name = value.split(|byte| *byte == 0).next().unwrap_or_default();
                socket.congestion = std::str::from_utf8(name)
                    .ok()
                    .filter(|name| !name.is_empty());
            }
            BBR => socket.bbr = bbr(value),
            _ => {}
        }
    }
    Some(socket)
}

fn info(value: &[u8]) -> TcpInfo {
    let mut raw = [0; LENGTH];
    let length = value.len().min(LENGTH);
    raw[..length].copy_from_slice(&value[..length]);
    TcpInfo::new(raw, length)
}

fn memory(value: &[u8]) -> Option<SocketMemory> {
    // RMEM_ALLOC, RCVBUF, WMEM_ALLOC, SNDBUF, FWD_ALLOC, WMEM_QUEUED, OPTMEM, BACKLOG, DROPS
    let at = |number: usize| word(value, 4 * number);
    Some(SocketMemory {
        received: at(0)?,
        receive_buffer: at(1)?,
        queued: at(5)?,
        send_buffer: at(3)?,
        backlog: at(7)?,
        drops: at(8),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::push_attribute;
    use linerate_model::tcp_info::TcpFacts;
    use proptest::prelude::*;

    fn message(family: i32, local: &[u8], remote: &[u8]) -> Vec<u8> {
        let mut body = vec![u8::try_from(family).unwrap(), 1, 0, 0];
        body.extend(40_000_u16.to_be_bytes());
        body.extend(5201_u16.to_be_bytes());
        for address in [local, remote] {
            let mut room = address.to_vec();
            room.resize(16, 0);
            body.extend(room);
        }
        // Interface, cookie; expiry, queues, user, inode.
        for word in [3_u32, 7, 1, 0, 11, 12, 1000, 4711] {
            body.extend(word.to_ne_bytes());
        }
        body
    }

    #[test]
    fn a_socket_is_read_with_its_attributes() {
        let mut body = message(libc::AF_INET, &[192, 0, 2, 1], &[192, 0, 2, 2]);
        assert_eq!(body.len(), HEAD);
        push_attribute(&mut body, INFO, &[2; 104]);
        push_attribute(&mut body, CONGESTION, b"cubic\0");
        let words: Vec<u8> = (1..=9_u32).flat_map(u32::to_ne_bytes).collect();
        push_attribute(&mut body, MEMORY, &words);
        push_attribute(&mut body, 77, &[1; 9]);
        let socket = parse(&body).unwrap();
        assert_eq!(socket.local, "192.0.2.1:40000".parse().unwrap());
        assert_eq!(socket.remote, "192.0.2.2:5201".parse().unwrap());
        assert_eq!(
            (socket.cookie, socket.inode, socket.uid),
            (1 << 32 | 7, 4711, 1000)
        );
        assert_eq!((socket.unread, socket.unacknowledged), (11, 12));
        assert_eq!(socket.congestion, Some("cubic"));
        let memory = socket.memory.unwrap();
        assert_eq!(
            (memory.receive_buffer, memory.send_buffer, memory.drops),
            (2, 4, Some(9))
        );
        // An older kernel's shorter account: what it does not have is absent.
        let facts = TcpFacts::from(&socket.info.unwrap());
        assert_eq!(
            (facts.total_retrans_packets, facts.bytes_acked),
            (Some(0x0202_0202), None)
        );
    }

    #[test]
    fn mapped_addresses_are_ipv4_and_link_local_ones_have_their_interface() {
        let mapped = |last| {
            let mut address = [0; 16];
            address[10..12].fill(0xff);
            address[12..].copy_from_slice(&[192, 0, 2, last]);
            address
        };
        let body = message(libc::AF_INET6, &mapped(1), &mapped(2));
        assert_eq!(
            parse(&body).unwrap().remote,
            "192.0.2.2:5201".parse().unwrap()
        );
        let link = |last| {
            let mut address = [0; 16];
            address[..2].copy_from_slice(&[0xfe, 0x80]);
            address[15] = last;
            address
        };
        let body = message(libc::AF_INET6, &link(1), &link(2));
        let remote = parse(&body).unwrap().remote;
        assert_eq!(remote.to_string(), "[fe80::2%3]:5201");
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn a_cut_message_is_none_or_has_less(cut in 0_usize..400) {
            let mut body = message(libc::AF_INET, &[192, 0, 2, 1], &[192, 0, 2, 2]);
            push_attribute(&mut body, INFO, &[1; 280]);
            let socket = parse(&body[..cut.min(body.len())]);
            prop_assert_eq!(socket.is_some(), cut >= HEAD);
            if cut < body.len() {
                prop_assert!(socket.is_none_or(|socket| socket.info.is_none()));
            }
        }
    }
}
