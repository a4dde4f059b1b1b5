//! Addresses of interfaces and routes over them.

use std::net::IpAddr;

use crate::KernelError;
use crate::address::{Family, octets};
use crate::netlink::{CREATE, EXCLUSIVE, order, push_attribute};
use crate::route::index_or_error;

/// Adds or removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is not there yet.
    Add,
    /// It is there.
    Remove,
}

/// A route over an interface, in the main table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteOver<'a> {
    /// Where to: a network and its prefix's length, bits.
    pub to: (IpAddr, u8),
    /// The router; `None`: on the link.
    pub via: Option<IpAddr>,
    /// Name of the interface that packets leave by.
    pub interface: &'a str,
    /// Lower is preferred; `None`: the kernel's default, and of a route to remove any.
    pub metric: Option<u32>,
}

/// Adds an address with a network of `prefix` bits to an interface, or removes it. The kernel looks for a duplicate
/// of a new one of IPv6.
///
/// # Errors
/// `ENODEV`, `EEXIST`, `EADDRNOTAVAIL` where there is none to remove; `EACCES` for IPv6 where it is switched off; `EPERM`.
pub fn change_address(
    interface: &str,
    address: IpAddr,
    prefix: u8,
    change: Change,
) -> Result<(), KernelError> {
    let object = format!("the address {address}/{prefix} of {interface}");
    let (kind, flags, doing) = match change {
        Change::Add => (libc::RTM_NEWADDR, CREATE | EXCLUSIVE, "add"),
        Change::Remove => (libc::RTM_DELADDR, 0, "remove"),
    };
    index_or_error(interface)
        .and_then(|index| order(kind, flags, address_message(index, address, prefix)))
        .map_err(KernelError::of(doing, &object))
}

/// `struct ifaddrmsg`: family, prefix length, flags, scope u8 each, interface u32.
pub(crate) fn address_message(index: u32, address: IpAddr, prefix: u8) -> Vec<u8> {
    let mut body = vec![Family::from(address).octet(), prefix, 0, 0];
    body.extend(index.to_ne_bytes());
    push_attribute(&mut body, libc::IFA_LOCAL, &octets(address));
    push_attribute(&mut body, libc::IFA_ADDRESS, &octets(address));
    body
}

/// Adds a route, or removes it.
///
/// # Errors
/// `EEXIST`; `ESRCH` where there is none to remove; `ENETUNREACH` where the router is not on the link; `EPERM`.
pub fn change_route(route: RouteOver<'_>, change: Change) -> Result<(), KernelError> {
    let (to, prefix) = route.to;
    let object = format!("the route to {to}/{prefix} over {}", route.interface);
    let (kind, flags, doing) = match change {
        Change::Add => (libc::RTM_NEWROUTE, CREATE | EXCLUSIVE, "add"),
        Change::Remove => (libc::RTM_DELROUTE, 0, "remove"),
    };
    index_or_error(route.interface)
        .and_then(|index| order(kind, flags, route_message(index, route, change)))
        .map_err(KernelError::of(doing, &object))
}

/// `struct rtmsg`: family, lengths of destination and source, tos, table, protocol, scope, type u8 each, flags u32.
fn route_message(index: u32, route: RouteOver<'_>, change: Change) -> Vec<u8> {
    let (to, prefix) = route.to;
    let (protocol, scope) = match (change, route.via) {
        // Whoever made it.
        (Change::Remove, _) => (0, libc::RT_SCOPE_NOWHERE),
        (Change::Add, Some(_)) => (libc::RTPROT_STATIC, libc::RT_SCOPE_UNIVERSE),
        (Change::Add, None) => (libc::RTPROT_STATIC, libc::RT_SCOPE_LINK),
    };
    let mut body = vec![
        Family::from(to).octet(),
        prefix,
        0,
        0,
        libc::RT_TABLE_MAIN,
        protocol,
        scope,
    ];
    body.extend([libc::RTN_UNICAST, 0, 0, 0, 0]);
    if prefix > 0 {
        push_attribute(&mut body, libc::RTA_DST, &octets(to));
    }
    if let Some(via) = route.via {
        push_attribute(&mut body, libc::RTA_GATEWAY, &octets(via));
    }
    push_attribute(&mut body, libc::RTA_OIF, &index.to_ne_bytes());
    if let Some(metric) = route.metric {
        push_attribute(&mut body, libc::RTA_PRIORITY, &metric.to_ne_bytes());
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute;

    #[test]
    fn messages_name_what_is_meant() {
        let body = address_message(7, [10, 0, 0, 1].into(), 24);
        assert_eq!(body[..4], [2, 24, 0, 0]);
        assert_eq!(body[4..8], 7_u32.to_ne_bytes());
        assert_eq!(
            attribute(&body[8..], libc::IFA_LOCAL),
            Some([10, 0, 0, 1].as_slice())
        );
        let route = RouteOver {
            to: ([10, 1, 0, 0].into(), 16),
            via: Some([10, 0, 0, 2].into()),
            interface: "x",
            metric: Some(9),
        };
        let body = route_message(7, route, Change::Add);
        assert_eq!(body[..8], [2, 16, 0, 0, 254, 4, 0, 1]);
        assert_eq!(
            attribute(&body[12..], libc::RTA_PRIORITY),
            Some(9_u32.to_ne_bytes().as_slice())
        );
        assert_eq!(
            attribute(&body[12..], libc::RTA_OIF),
            Some(7_u32.to_ne_bytes().as_slice())
        );
        let everywhere = RouteOver {
            to: ([0, 0, 0, 0].into(), 0),
            ..route
        };
        let body = route_message(7, everywhere, Change::Remove);
        assert_eq!(attribute(&body[12..], libc::RTA_DST), None);
        assert_eq!(body[6], libc::RT_SCOPE_NOWHERE);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = change_address("no-such-link", [10, 0, 0, 1].into(), 8, Change::Remove);
        let text = error.unwrap_err().to_string();
        assert!(text.contains("10.0.0.1/8 of no-such-link"), "{text}");
    }
}
