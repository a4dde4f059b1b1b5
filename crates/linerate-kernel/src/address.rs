//! Socket addresses as the kernel lays them out, read without pointers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use rustix::net::AddressFamily;

/// Bytes of the longest address that is understood (`sockaddr_in6`).
pub(crate) const LONGEST: usize = 28;

/// The address family of a socket or an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6, and IPv4 through mapped addresses unless the socket forbids it.
    V6,
}

impl Family {
    /// The kernel's number.
    pub(crate) const fn number(self) -> AddressFamily {
        match self {
            Self::V4 => AddressFamily::INET,
            Self::V6 => AddressFamily::INET6,
        }
    }

    /// The kernel's number in the headers of rtnetlink, which give it one byte.
    pub(crate) const fn octet(self) -> u8 {
        match self {
            Self::V4 => 2,
            Self::V6 => 10,
        }
    }
}

impl From<IpAddr> for Family {
    fn from(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }
}

impl From<SocketAddr> for Family {
    fn from(address: SocketAddr) -> Self {
        Self::from(address.ip())
    }
}

/// An address of `sockaddr_in` or `sockaddr_in6`; `None` for another family or too few bytes.
pub(crate) fn socket_address(raw: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(array(raw, 0)?));
    let port = u16::from_be_bytes(array(raw, 2)?);
    match family {
        libc::AF_INET => {
            let address = Ipv4Addr::from(array::<4>(raw, 4)?);
            Some(SocketAddrV4::new(address, port).into())
        }
        libc::AF_INET6 => {
            let flow = u32::from_be_bytes(array(raw, 4)?);
            let address = Ipv6Addr::from(array::<16>(raw, 8)?);
            let scope = u32::from_ne_bytes(array(raw, 24)?);
            Some(SocketAddrV6::new(address, port, flow, scope).into())
        }
        _ => None,
    }
}

/// `N` bytes from `at`; `None` where there are fewer.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The bytes of an address, in the network's order.
pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// An address from its 4 or 16 bytes.
pub(crate) fn ip_address(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => array::<4>(octets, 0).map(IpAddr::from),
        16 => array::<16>(octets, 0).map(IpAddr::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_one_number() {
        for family in [Family::V4, Family::V6] {
            assert_eq!(u16::from(family.octet()), family.number().as_raw());
        }
    }

    #[test]
    fn addresses_are_read_and_short_ones_refused() {
        let mut raw = [0; LONGEST];
        raw[..2].copy_from_slice(&2_u16.to_ne_bytes());
        raw[2..8].copy_from_slice(&[0x14, 0x51, 192, 0, 2, 7]);
        assert_eq!(
            socket_address(&raw),
            Some("192.0.2.7:5201".parse().unwrap())
        );
        assert_eq!(socket_address(&raw[..7]), None);
        raw = [0; LONGEST];
        raw[..2].copy_from_slice(&10_u16.to_ne_bytes());
        raw[2..4].copy_from_slice(&[0x14, 0x51]);
        raw[23] = 1;
        assert_eq!(socket_address(&raw), Some("[::1]:5201".parse().unwrap()));
        assert_eq!(socket_address(&raw[..27]), None);
        assert_eq!(socket_address(&[0; LONGEST]), None);
        assert_eq!(socket_address(&[]), None);
    }
}
