//! Making links, addresses and routes, in the calling thread's network namespace.
//!
//! Meant for namespaces of one's own ([`crate::namespace`]): nothing here asks whether a name is taken
//! by something that matters, the kernel refuses it (`EEXIST`).

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use crate::KernelError;
use crate::address::{Family, octets};
pub use crate::ethtool::{cut_datagrams, set_offloads};
use crate::namespace::NetworkNamespace;
use crate::netlink::{CREATE, EXCLUSIVE, order, push_attribute, push_nested};
use crate::route::index_or_error;
use crate::setting::address_message;

// include/uapi/linux/if_link.h, if_addr.h, rtnetlink.h, veth.h
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const RTAX_CC_ALGO: u16 = 16;
/// Bytes of `struct ifinfomsg`.
const LINK_HEADER: usize = 16;

/// One end of a veth pair.
#[derive(Debug, Clone, Copy)]
pub struct VethEnd<'a> {
    /// Its name, 1 to 15 bytes.
    pub name: &'a str,
    /// The namespace that it is made in.
    pub namespace: &'a NetworkNamespace,
    /// Largest packet, IP header included, bytes; 68 to 65535.
    pub mtu: u32,
}

/// Makes a pair of linked interfaces. Both are down.
///
/// # Errors
/// `EEXIST` for a name that is taken, `EPERM` without `CAP_NET_ADMIN` in both namespaces, `EOPNOTSUPP`
/// where the kernel has no veth (`CONFIG_VETH`).
pub fn make_veth(one: VethEnd<'_>, other: VethEnd<'_>) -> Result<(), KernelError> {
    let mut body = vec![0; LINK_HEADER];
    push_end(&mut body, one);
    push_nested(&mut body, IFLA_LINKINFO, |info| {
        push_attribute(info, IFLA_INFO_KIND, b"veth");
        push_nested(info, IFLA_INFO_DATA, |data| {
            push_nested(data, VETH_INFO_PEER, |peer| {
                peer.extend([0; LINK_HEADER]);
                push_end(peer, other);
            });
        });
    });
    order(libc::RTM_NEWLINK, CREATE | EXCLUSIVE, body)
        .map_err(KernelError::of("make the veth pair", one.name))
}

fn push_end(body: &mut Vec<u8>, end: VethEnd<'_>) {
    let fd = end.namespace.as_fd().as_raw_fd();
    push_attribute(body, IFLA_IFNAME, &zero_ended(end.name));
    push_attribute(body, IFLA_MTU, &end.mtu.to_ne_bytes());
    push_attribute(body, IFLA_NET_NS_FD, &fd.to_ne_bytes());
}

/// Gives an interface an address in a network of `prefix` bits, which becomes reachable through it.
///
/// # Errors
/// `ENODEV`, `EEXIST`, `EPERM`; `EACCES` for IPv6 where it is switched off.
pub fn add_address(name: &str, address: IpAddr, prefix: u8) -> Result<(), KernelError> {
    let attempt = || {
        let mut body = address_message(index_or_error(name)?, address, prefix);
        // No detection of a duplicate: a tentative address could not be used for a second.
        push_attribute(&mut body, libc::IFA_FLAGS, &libc::IFA_F_NODAD.to_ne_bytes());
        order(libc::RTM_NEWADDR, CREATE | EXCLUSIVE, body)
    };
    let object = format!("{address}/{prefix} to {name}");
    attempt().map_err(KernelError::of("add the address", &object))
}

/// A route through a router that is reached over an interface.
#[derive(Debug, Clone, Copy)]
pub struct RouteThrough<'a> {
    /// Where to: an address and a prefix's length; `None` is everywhere.
    pub to: Option<(IpAddr, u8)>,
    /// The router.
    pub gateway: IpAddr,
    /// Name of the interface that packets leave by.
    pub interface: &'a str,
    /// Congestion control of connections that take it, both those made and those accepted; `None`:
    /// the namespace's. Linux 4.0.
    pub congestion: Option<&'a str>,
}

/// Adds a route to the main table.
///
/// # Errors
/// `EEXIST`, `EPERM`, `ENETUNREACH` where the router is not on the link; `EINVAL` also for a congestion
/// control that this kernel does not have.
pub fn add_route(wanted: RouteThrough<'_>) -> Result<(), KernelError> {
    let attempt = || {
        let index = index_or_error(wanted.interface)?;
        let prefix = wanted.to.map_or(0, |(_, prefix)| prefix);
        // struct rtmsg: family, dst_len, src_len, tos, table, protocol, scope, type, flags u32.
        let mut body = vec![Family::from(wanted.gateway).octet(), prefix, 0, 0];
        body.extend([
            libc::RT_TABLE_MAIN,
            libc::RTPROT_STATIC,
            0,
            libc::RTN_UNICAST,
            0,
            0,
            0,
            0,
        ]);
        if let Some((address, _)) = wanted.to {
            push_attribute(&mut body, libc::RTA_DST, &octets(address));
        }
        push_attribute(&mut body, libc::RTA_GATEWAY, &octets(wanted.gateway));
        push_attribute(&mut body, libc::RTA_OIF, &index.to_ne_bytes());
        if let Some(congestion) = wanted.congestion {
            push_nested(&mut body, libc::RTA_METRICS, |metrics| {
                push_attribute(metrics, RTAX_CC_ALGO, &zero_ended(congestion));
            });
        }
        order(libc::RTM_NEWROUTE, CREATE | EXCLUSIVE, body)
    };
    let with = wanted
        .congestion
        .map_or(String::new(), |name| format!(", congestion control {name}"));
    let object = format!("through {} over {}{with}", wanted.gateway, wanted.interface);
    attempt().map_err(KernelError::of("add the route", &object))
}

/// A router that is reached over an interface: one of several of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextHop {
    /// The router.
    pub gateway: IpAddr,
    /// The interface.
    pub interface: String,
}

/// Adds a route over several next hops of equal weight to the main table. Which of them a packet takes is decided by a
/// hash of its addresses, or also of its ports (`net.ipv4.fib_multipath_hash_policy`, Linux 4.12).
///
/// # Errors
/// As [`add_route`]; `EINVAL` for no next hop, and where the kernel has no multipath (`CONFIG_IP_ROUTE_MULTIPATH`).
pub fn add_multipath_route(to: (IpAddr, u8), hops: &[NextHop]) -> Result<(), KernelError> {
    let (address, prefix) = to;
    let attempt = || {
        let mut body = vec![Family::from(address).octet(), prefix, 0, 0];
        body.extend([
            libc::RT_TABLE_MAIN,
            libc::RTPROT_STATIC,
            0,
            libc::RTN_UNICAST,
        ]);
        body.extend([0; 4]);
        push_attribute(&mut body, libc::RTA_DST, &octets(address));
        let mut list = Vec::new();
        for hop in hops {
            push_next_hop(&mut list, index_or_error(&hop.interface)?, hop.gateway);
        }
        push_attribute(&mut body, libc::RTA_MULTIPATH, &list);
        order(libc::RTM_NEWROUTE, CREATE | EXCLUSIVE, body)
    };
    let object = format!("to {address}/{prefix} over {} next hops", hops.len());
    attempt().map_err(KernelError::of("add the route", &object))
}

/// `struct rtnexthop`: length u16, flags u8, weight − 1 u8, interface i32; its attributes follow.
fn push_next_hop(list: &mut Vec<u8>, interface: u32, gateway: IpAddr) {
    let mut attributes = Vec::new();
    push_attribute(&mut attributes, libc::RTA_GATEWAY, &octets(gateway));
    let length = u16::try_from(8 + attributes.len()).unwrap_or(u16::MAX);
    list.extend(length.to_ne_bytes());
    list.extend([0, 0]);
    list.extend(interface.to_ne_bytes());
    list.extend(attributes);
}

fn zero_ended(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_next_hop_is_as_long_as_it_says() {
        let mut list = Vec::new();
        push_next_hop(&mut list, 7, [192, 0, 2, 1].into());
        push_next_hop(&mut list, 8, [192, 0, 2, 5].into());
        assert_eq!(list.len(), 32);
        assert_eq!(list[..4], [16_u16.to_ne_bytes(), [0, 0]].concat());
        assert_eq!(list[20..24], 8_u32.to_ne_bytes());
        assert_eq!(list[12..16], [192, 0, 2, 1]);
        let hop = NextHop {
            gateway: [192, 0, 2, 1].into(),
            interface: "no-such-link".to_owned(),
        };
        let error = add_multipath_route(([198, 51, 100, 0].into(), 24), &[hop]).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("to 198.51.100.0/24 over 1 next hops")
        );
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = add_address("no-such-link", [192, 0, 2, 1].into(), 24).unwrap_err();
        assert!(error.to_string().contains("192.0.2.1/24 to no-such-link"));
        let error = set_offloads("no-such-link", false).unwrap_err();
        assert!(error.to_string().contains("no-such-link"));
        let error = cut_datagrams("no-such-link").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("UDP segmentation of no-such-link")
        );
    }
}
