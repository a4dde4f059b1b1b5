//! Where packets go: routes, the interfaces they leave by, and the facts of those.

use std::io;
use std::net::IpAddr;

use linerate_model::record::InterfaceFacts;

use crate::address::{Family, array, ip_address, octets};
use crate::ethtool;
use crate::netlink::{Ask, Netlink, attribute, attributes, is_absent, push_attribute, text, word};

/// Bytes of `struct ifinfomsg` and `struct rtmsg`.
const LINK_HEADER: usize = 16;
const ROUTE_HEADER: usize = 12;
// include/uapi/linux/rtnetlink.h
const RTAX_MTU: u16 = 2;
const RTAX_CC_ALGO: u16 = 16;
// include/uapi/linux/if_link.h
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;

/// The way that packets to an address take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The interface that they leave by.
    pub interface_index: u32,
    /// As `ip link` prints it.
    pub interface_name: String,
    /// The next router; `None` where the address is on the link, or this host's own.
    pub gateway: Option<IpAddr>,
    /// The source address that the kernel would choose.
    pub source: Option<IpAddr>,
    /// The route's MTU, bytes, where one is set or was learned; else the interface's bounds it.
    pub mtu: Option<u32>,
    /// The congestion control that connections over this route take (`congctl`); `None` = the host's.
    pub congestion: Option<String>,
}

/// The route to an address; `None` where there is none. A mapped IPv4 address is taken as IPv4.
///
/// # Errors
/// Those of netlink; a route that forbids (`EACCES`, `EINVAL` for prohibit and blackhole) is one.
pub fn to(address: IpAddr) -> io::Result<Option<Route>> {
    let address = address.to_canonical();
    let mut request = vec![0; ROUTE_HEADER];
    request[0] = Family::from(address).octet();
    request[1] = if address.is_ipv4() { 32 } else { 128 };
    push_attribute(&mut request, libc::RTA_DST, &octets(address));
    let mut netlink = Netlink::open()?;
    let mut route = None;
    match netlink.ask(libc::RTM_GETROUTE, Ask::One, &request, |body| {
        route = parse_route(body);
    }) {
        Err(error) if is_absent(&error) => return Ok(None),
        other => other?,
    }
    let Some(mut route) = route else {
        return Ok(None);
    };
    if let Some(link) = link(&mut netlink, route.interface_index)? {
        route.interface_name = link.name.to_string();
    }
    Ok(Some(route))
}

/// The facts of an interface, but for its queueing discipline; `None` where there is none of this index.
///
/// # Errors
/// Those of netlink.
pub fn interface_facts(index: u32) -> io::Result<Option<InterfaceFacts>> {
    let Some(mut facts) = link(&mut Netlink::open()?, index)? else {
        return Ok(None);
    };
    let speed = ethtool::facts::link(&facts.name).ok();
    facts.speed_mbit_per_s = speed.and_then(|link| link.speed_mbps).map(u64::from);
    let driver = ethtool::facts::driver(&facts.name).ok();
    let named = driver.filter(|driver| !driver.name.is_empty());
    facts.driver = named.map(|driver| driver.name.into());
    Ok(Some(facts))
}

/// The index of the interface of this name; `None` where there is none.
pub fn index_of(name: &str) -> Option<u32> {
    let mut request = vec![0; LINK_HEADER];
    push_attribute(&mut request, IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
    let mut index = None;
    // An error is an absent or impossible name.
    Netlink::open()
        .ok()?
        .ask(libc::RTM_GETLINK, Ask::One, &request, |body| {
            index = word(body, 4);
        })
        .ok()?;
    index
}

/// The index of an interface that must be there.
///
/// Errors: `ENODEV`.
pub(crate) fn index_or_error(name: &str) -> io::Result<u32> {
    index_of(name).ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
}

/// `struct rtmsg`, then attributes.
fn parse_route(body: &[u8]) -> Option<Route> {
    let body = body.get(ROUTE_HEADER..)?;
    let address = |kind| attribute(body, kind).and_then(ip_address);
    // A next hop of the other family: family u16, address.
    let via = || {
        attribute(body, libc::RTA_VIA)?
            .get(2..)
            .and_then(ip_address)
    };
    let metrics = attribute(body, libc::RTA_METRICS).unwrap_or_default();
    Some(Route {
        interface_index: word(attribute(body, libc::RTA_OIF)?, 0)?,
        interface_name: String::new(),
        gateway: address(libc::RTA_GATEWAY).or_else(via),
        source: address(libc::RTA_PREFSRC),
        mtu: attribute(metrics, RTAX_MTU)
            .and_then(|raw| word(raw, 0))
            .filter(|mtu| *mtu > 0),
        congestion: attribute(metrics, RTAX_CC_ALGO).map(text),
    })
}

fn link(netlink: &mut Netlink, index: u32) -> io::Result<Option<InterfaceFacts>> {
    // Index 0 without a name asks for nothing, which is an error and no absence.
    if index == 0 {
        return Ok(None);
    }
    let mut request = [0; LINK_HEADER];
    request[4..8].copy_from_slice(&index.to_ne_bytes());
    let mut facts = None;
    match netlink.ask(libc::RTM_GETLINK, Ask::One, &request, |body| {
        facts = parse_link(body);
    }) {
        Err(error) if is_absent(&error) || error.kind() == io::ErrorKind::InvalidInput => Ok(None),
        other => other.map(|()| facts),
    }
}

/// `struct ifinfomsg`: family u8, padding u8, type u16, index i32, flags u32, change u32; attributes.
fn parse_link(body: &[u8]) -> Option<InterfaceFacts> {
    let hardware = u16::from_ne_bytes(array(body, 2)?);
    let mut facts = InterfaceFacts {
        index: word(body, 4)?,
        ..InterfaceFacts::default()
    };
    for (kind, value) in attributes(body.get(LINK_HEADER..)?) {
        match kind {
            IFLA_IFNAME => facts.name = text(value).into(),
            IFLA_MTU => facts.mtu_bytes = word(value, 0),
            IFLA_LINKINFO => {
                facts.kind = attribute(value, IFLA_INFO_KIND).map(|kind| text(kind).into());
            }
            _ => {}
        }
    }
    if facts.kind.is_none() && hardware == libc::ARPHRD_LOOPBACK {
        facts.kind = Some("loopback".into());
    }
    Some(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn the_own_host_is_reached_through_loopback() {
        let route = to(Ipv4Addr::LOCALHOST.into()).unwrap().unwrap();
        assert_eq!(route.interface_name, "lo");
        assert_eq!(route.gateway, None);
        assert_eq!(route.source, Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(index_of("lo"), Some(route.interface_index));
        let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped().into();
        assert_eq!(to(mapped).unwrap(), Some(route));
    }

    #[test]
    fn loopback_has_facts_and_no_speed() {
        let facts = interface_facts(index_of("lo").unwrap()).unwrap().unwrap();
        assert_eq!(
            (&*facts.name, facts.kind.as_deref()),
            ("lo", Some("loopback"))
        );
        assert!(facts.mtu_bytes.unwrap() >= 1280);
        assert_eq!((facts.speed_mbit_per_s, facts.driver), (None, None));
        assert_eq!(interface_facts(1 << 30).unwrap(), None);
        assert_eq!(interface_facts(0).unwrap(), None);
        assert_eq!(index_of("no-such-device"), None);
        assert_eq!(
            index_of("a name that is far too long for an interface"),
            None
        );
    }

    #[test]
    fn short_messages_are_no_routes() {
        for length in 0..ROUTE_HEADER + 4 {
            assert_eq!(parse_route(&vec![0; length]), None);
        }
        assert_eq!(parse_link(&[0; 7]), None);
    }
}
