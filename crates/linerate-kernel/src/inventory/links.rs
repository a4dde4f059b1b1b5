//! Interfaces, addresses, queueing disciplines and routes, by rtnetlink.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use linerate_model::host::{Bond, Fact, Interface, Qdisc, RouteFacts};

use crate::address::{array, ip_address};
use crate::counters;
use crate::netlink::{Ask, Netlink, attribute, attributes, push_attribute, text, word};

const LINK_HEADER: usize = 16;
const ADDRESS_HEADER: usize = 8;
const ROUTE_HEADER: usize = 12;
const QDISC_HEADER: usize = 20;
const IFF_UP: u32 = 1;
// include/uapi/linux/if_link.h
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_TXQLEN: u16 = 13;
const IFLA_OPERSTATE: u16 = 16;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_CARRIER_CHANGES: u16 = 35;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_GSO_MAX_SIZE: u16 = 41;
const IFLA_MAX_MTU: u16 = 51;
/// Linux 5.6.
const IFLA_PERM_ADDRESS: u16 = 54;
const IFLA_GRO_MAX_SIZE: u16 = 58;
const IFLA_TSO_MAX_SIZE: u16 = 59;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VLAN_ID: u16 = 1;
const IFLA_BOND_MODE: u16 = 1;
const IFLA_BOND_XMIT_HASH_POLICY: u16 = 14;
// include/uapi/linux/if_addr.h, rtnetlink.h
const RTAX_MTU: u16 = 2;
const RTAX_INITCWND: u16 = 11;
const RTAX_CC_ALGO: u16 = 16;
const RT_TABLE_MAIN: u32 = 254;
// include/uapi/linux/pkt_sched.h, gen_stats.h
const TCA_STATS_QUEUE: u16 = 3;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_FQ_FLOW_MAX_RATE: u16 = 7;
const ROOT: u32 = u32::MAX;
/// A rate of 32 bits, bytes a second, that says "none".
const UNLIMITED: u32 = u32::MAX;

/// All interfaces of the calling thread's network namespace, by index, as rtnetlink tells of them.
pub(super) fn interfaces() -> io::Result<Vec<Interface>> {
    let mut netlink = Netlink::open()?;
    let mut found = Vec::new();
    netlink.ask(libc::RTM_GETLINK, Ask::All, &[0; LINK_HEADER], |body| {
        found.extend(parse_link(body));
    })?;
    let names: BTreeMap<u32, String> = found
        .iter()
        .map(|link| (link.interface.index, link.interface.name.clone()))
        .collect();
    let addresses = addresses(&mut netlink);
    let qdiscs = qdiscs(&mut netlink);
    let of = |index: u32, all: &Result<BTreeMap<u32, Vec<String>>, String>| match all {
        Ok(all) => Fact::Known(all.get(&index).cloned().unwrap_or_default()),
        Err(why) => Fact::unknown(why.clone()),
    };
    let mut interfaces: Vec<Interface> = found
        .into_iter()
        .map(|link| {
            let index = link.interface.index;
            Interface {
                parent: link.parent(&names),
                master: link.master.and_then(|master| names.get(&master).cloned()),
                addresses: of(index, &addresses),
                qdiscs: match &qdiscs {
                    Ok(all) => Fact::Known(all.get(&index).cloned().unwrap_or_default()),
                    Err(why) => Fact::unknown(why.clone()),
                },
                ..link.interface
            }
        })
        .collect();
    interfaces.sort_by_key(|interface| interface.index);
    Ok(interfaces)
}

/// An interface with the indices of those that it refers to.
struct Found {
    interface: Interface,
    below: Option<u32>,
    elsewhere: bool,
    master: Option<u32>,
}

impl Found {
    fn parent(&self, names: &BTreeMap<u32, String>) -> Fact<Option<String>> {
        match self.below {
            // A veth refers to its other end, which is its peer and not below.
            _ if self.interface.kind == "veth" => Fact::Known(None),
            None | Some(0) => Fact::Known(None),
            Some(index) if index == self.interface.index => Fact::Known(None),
            Some(_) if self.elsewhere => {
                Fact::unknown("the interface below is in another network namespace")
            }
            Some(index) => Fact::of(
                names.get(&index).cloned().map(Some),
                "the interface below has no name here",
            ),
        }
    }
}

/// `struct ifinfomsg`: family u8, padding u8, type u16, index i32, flags u32, change u32; attributes.
fn parse_link(body: &[u8]) -> Option<Found> {
    let hardware = u16::from_ne_bytes(array(body, 2)?);
    let list = body.get(LINK_HEADER..)?;
    let number = |kind| attribute(list, kind).and_then(|raw| word(raw, 0));
    let silent = "this kernel does not say";
    let size = |kind| Fact::of(number(kind), silent);
    let info = attribute(list, IFLA_LINKINFO).unwrap_or_default();
    let data = attribute(info, IFLA_INFO_DATA).unwrap_or_default();
    let kind = match attribute(info, IFLA_INFO_KIND).map(text) {
        Some(kind) => kind,
        None if hardware == libc::ARPHRD_LOOPBACK => "loopback".to_owned(),
        None => "hardware".to_owned(),
    };
    let byte = |kind| attribute(data, kind).and_then(|raw| raw.first().copied());
    let interface = Interface {
        name: attribute(list, IFLA_IFNAME).map(text)?,
        index: word(body, 4)?,
        mac: attribute(list, IFLA_ADDRESS).and_then(mac),
        permanent_mac: attribute(list, IFLA_PERM_ADDRESS).and_then(mac),
        up: word(body, 8)? & IFF_UP != 0,
        operstate: Fact::of(
            attribute(list, IFLA_OPERSTATE).and_then(|raw| operstate(*raw.first()?)),
            "the driver does not report it",
        ),
        mtu: size(IFLA_MTU),
        max_mtu: Fact::of(
            number(IFLA_MAX_MTU).filter(|most| *most > 0),
            "the driver states no bound",
        ),
        tx_queue_len: size(IFLA_TXQLEN),
        tx_queues: size(IFLA_NUM_TX_QUEUES),
        rx_queues: size(IFLA_NUM_RX_QUEUES),
        gso_max_size: size(IFLA_GSO_MAX_SIZE),
        gro_max_size: size(IFLA_GRO_MAX_SIZE),
        tso_max_size: size(IFLA_TSO_MAX_SIZE),
        vlan: (kind == "vlan")
            .then(|| attribute(data, IFLA_VLAN_ID).and_then(|raw| array(raw, 0)))
            .flatten()
            .map(u16::from_ne_bytes),
        bond: (kind == "bond").then(|| Bond {
            mode: named(&BOND_MODES, byte(IFLA_BOND_MODE)),
            hash: named(&BOND_HASHES, byte(IFLA_BOND_XMIT_HASH_POLICY)),
        }),
        counters: Fact::of(
            attribute(list, IFLA_STATS64).and_then(counters::link_stats),
            silent,
        ),
        carrier_changes: size(IFLA_CARRIER_CHANGES).map(|count| u64::from(*count)),
        kind,
        ..Interface::default()
    };
    Some(Found {
        below: number(IFLA_LINK),
        elsewhere: attribute(list, IFLA_LINK_NETNSID).is_some(),
        master: number(IFLA_MASTER),
        interface,
    })
}

fn mac(raw: &[u8]) -> Option<String> {
    if raw.iter().all(|byte| *byte == 0) {
        return None;
    }
    Some(
        raw.iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<Vec<_>>()
            .join(":"),
    )
}

/// RFC 2863, as include/uapi/linux/if.h numbers it.
fn operstate(state: u8) -> Option<String> {
    let names = [
        "notpresent",
        "down",
        "lowerlayerdown",
        "testing",
        "dormant",
        "up",
    ];
    names
        .get(usize::from(state).checked_sub(1)?)
        .map(|name| (*name).to_owned())
}

// include/uapi/linux/if_bonding.h
const BOND_MODES: [&str; 7] = [
    "balance-rr",
    "active-backup",
    "balance-xor",
    "broadcast",
    "802.3ad",
    "balance-tlb",
    "balance-alb",
];
const BOND_HASHES: [&str; 6] = [
    "layer2",
    "layer3+4",
    "layer2+3",
    "encap2+3",
    "encap3+4",
    "vlan+srcmac",
];

fn named(names: &[&str], number: Option<u8>) -> String {
    match number {
        Some(number) => names
            .get(usize::from(number))
            .map_or_else(|| number.to_string(), |name| (*name).to_owned()),
        None => "unknown".to_owned(),
    }
}

/// Addresses with their prefix length, by interface.
fn addresses(netlink: &mut Netlink) -> Result<BTreeMap<u32, Vec<String>>, String> {
    let mut found: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    netlink
        .ask(libc::RTM_GETADDR, Ask::All, &[0; ADDRESS_HEADER], |body| {
            if let Some((index, address)) = parse_address(body) {
                found.entry(index).or_default().push(address);
            }
        })
        .map_err(|error| format!("the kernel does not list addresses: {error}"))?;
    Ok(found)
}

/// `struct ifaddrmsg`: family u8, prefix length u8, flags, scope, interface u32; then attributes.
fn parse_address(body: &[u8]) -> Option<(u32, String)> {
    let list = body.get(ADDRESS_HEADER..)?;
    // On a point-to-point link IFA_ADDRESS is the peer's.
    let own = attribute(list, libc::IFA_LOCAL).or_else(|| attribute(list, libc::IFA_ADDRESS));
    let address = own.and_then(ip_address)?;
    Some((word(body, 4)?, format!("{address}/{}", body[1])))
}

/// Queueing disciplines by interface, the root first.
fn qdiscs(netlink: &mut Netlink) -> Result<BTreeMap<u32, Vec<Qdisc>>, String> {
    let mut request = vec![0; QDISC_HEADER];
    // Also those that the kernel made by itself (the children of mq).
    push_attribute(&mut request, libc::TCA_DUMP_INVISIBLE, &[]);
    let mut found: BTreeMap<u32, Vec<(u32, u32, Qdisc)>> = BTreeMap::new();
    netlink
        .ask(libc::RTM_GETQDISC, Ask::All, &request, |body| {
            if let Some((index, handle, parent, qdisc)) = parse_qdisc(body) {
                found
                    .entry(index)
                    .or_default()
                    .push((handle, parent, qdisc));
            }
        })
        .map_err(|error| format!("the kernel does not list qdiscs: {error}"))?;
    Ok(found
        .into_iter()
        .map(|(index, qdiscs)| (index, in_order(qdiscs)))
        .collect())
}

/// The root first; a discipline is a leaf where none hangs from it and it is no mere spreader.
fn in_order(mut qdiscs: Vec<(u32, u32, Qdisc)>) -> Vec<Qdisc> {
    qdiscs.sort_by_key(|(_, parent, _)| (*parent != ROOT, *parent));
    let parents: Vec<u32> = qdiscs.iter().map(|(_, parent, _)| parent >> 16).collect();
    qdiscs
        .into_iter()
        // Ingress and clsact hold filters, and no packet ever waits in them.
        .filter(|(_, _, qdisc)| !["ingress", "clsact"].contains(&qdisc.kind.as_str()))
        .map(|(handle, _, qdisc)| {
            let spreads = ["mq", "mqprio"].contains(&qdisc.kind.as_str());
            // What the kernel made by itself has no number, and nothing but mq's leaves below it.
            let has_children = handle >> 16 != 0 && parents.contains(&(handle >> 16));
            Qdisc {
                leaf: !spreads && !has_children,
                ..qdisc
            }
        })
        .collect()
}

/// `struct tcmsg`: family u8 and padding, interface i32, handle u32, parent u32, info u32; attributes.
fn parse_qdisc(body: &[u8]) -> Option<(u32, u32, u32, Qdisc)> {
    let list = body.get(QDISC_HEADER..)?;
    let kind = text(attribute(list, libc::TCA_KIND)?);
    let (handle, parent) = (word(body, 8)?, word(body, 12)?);
    let options = attribute(list, libc::TCA_OPTIONS).unwrap_or_default();
    let stats = attribute(list, libc::TCA_STATS2).unwrap_or_default();
    let drops = attribute(stats, TCA_STATS_QUEUE).and_then(|queue| word(queue, 8));
    let qdisc = Qdisc {
        rate_bps: (kind == "tbf").then(|| tbf_rate(options)).flatten(),
        flow_max_rate_bps: (kind == "fq").then(|| fq_rate(options)).flatten(),
        handle: format!("{:x}:", handle >> 16),
        parent: match parent {
            ROOT => "root".to_owned(),
            parent => format!("{:x}:{:x}", parent >> 16, parent & 0xffff),
        },
        leaf: true,
        drops: u64::from(drops.unwrap_or(0)),
        kind,
    };
    Some((word(body, 4)?, handle, parent, qdisc))
}

/// The rate in `struct tc_ratespec`, the first of `struct tc_tbf_qopt`, bytes a second in 32 bits; 64 bits of
/// it beside, where it needs them.
fn tbf_rate(options: &[u8]) -> Option<u64> {
    let wide = attribute(options, TCA_TBF_RATE64)
        .and_then(|raw| array(raw, 0))
        .map(u64::from_ne_bytes);
    let narrow = || word(attribute(options, TCA_TBF_PARMS)?, 8).map(u64::from);
    wide.or_else(narrow)?.checked_mul(8)
}

fn fq_rate(options: &[u8]) -> Option<u64> {
    let rate = word(attribute(options, TCA_FQ_FLOW_MAX_RATE)?, 0)?;
    (rate != UNLIMITED).then(|| u64::from(rate) * 8)
}

/// The routes of the main table.
pub(super) fn routes(interfaces: &[Interface]) -> Fact<Vec<RouteFacts>> {
    let mut found = Vec::new();
    let asked = Netlink::open().and_then(|mut netlink| {
        netlink.ask(libc::RTM_GETROUTE, Ask::All, &[0; ROUTE_HEADER], |body| {
            found.extend(parse_route(body, interfaces));
        })
    });
    match asked {
        Ok(()) => Fact::Known(found),
        Err(error) => Fact::unknown(format!("the kernel does not list routes: {error}")),
    }
}

/// `struct rtmsg`: family, destination's length, source's length, tos, table, protocol, scope, type u8 each.
fn parse_route(body: &[u8], interfaces: &[Interface]) -> Option<RouteFacts> {
    let list = body.get(ROUTE_HEADER..)?;
    let number = |kind| attribute(list, kind).and_then(|raw| word(raw, 0));
    let address = |kind| attribute(list, kind).and_then(ip_address);
    let table = number(libc::RTA_TABLE).unwrap_or(u32::from(body[4]));
    if table != RT_TABLE_MAIN {
        return None;
    }
    let via = || {
        attribute(list, libc::RTA_VIA)?
            .get(2..)
            .and_then(ip_address)
    };
    let metrics = attribute(list, libc::RTA_METRICS).unwrap_or_default();
    let metric = |kind| attributes(metrics).find(|(each, _)| *each == kind);
    let metric = |kind| metric(kind).and_then(|(_, raw)| word(raw, 0));
    let text_of = |address: IpAddr| address.to_string();
    Some(RouteFacts {
        destination: match address(libc::RTA_DST) {
            Some(address) => format!("{address}/{}", body[1]),
            None => "default".to_owned(),
        },
        gateway: address(libc::RTA_GATEWAY).or_else(via).map(text_of),
        interface: number(libc::RTA_OIF).and_then(|index| {
            let found = interfaces.iter().find(|each| each.index == index);
            found.map(|each| each.name.clone())
        }),
        metric: number(libc::RTA_PRIORITY),
        mtu: metric(RTAX_MTU).filter(|mtu| *mtu > 0),
        initial_window: metric(RTAX_INITCWND).filter(|window| *window > 0),
        congestion: attribute(metrics, RTAX_CC_ALGO).map(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn loopback_is_listed_with_its_addresses() {
        let all = interfaces().unwrap();
        let lo = all.iter().find(|each| each.name == "lo").unwrap();
        assert_eq!(lo.kind, "loopback");
        assert_eq!(lo.parent, Fact::Known(None));
        assert!(lo.mtu.known().is_some_and(|mtu| *mtu >= 1280));
        assert!(lo.link.known().is_none());
    }

    #[test]
    fn rates_of_token_buckets_and_of_flows_are_read() {
        // 34 Gbit/s does not fit into 32 bits of bytes a second.
        let mut options = Vec::new();
        push_attribute(&mut options, TCA_TBF_PARMS, &words(&[0, 0, u32::MAX]));
        push_attribute(
            &mut options,
            TCA_TBF_RATE64,
            &5_000_000_000_u64.to_ne_bytes(),
        );
        assert_eq!(tbf_rate(&options), Some(40_000_000_000));
        let mut options = Vec::new();
        push_attribute(&mut options, TCA_TBF_PARMS, &words(&[0, 0, 250_000_000]));
        assert_eq!(tbf_rate(&options), Some(2_000_000_000));
        let mut options = Vec::new();
        push_attribute(&mut options, TCA_FQ_FLOW_MAX_RATE, &words(&[UNLIMITED]));
        assert_eq!(fq_rate(&options), None);
    }

    #[test]
    fn the_leaves_of_mq_are_leaves_and_mq_is_none() {
        let qdisc = |kind: &str| Qdisc {
            kind: kind.to_owned(),
            ..Qdisc::default()
        };
        let ordered = in_order(vec![
            (0x8002_0000, 0x8001_0001, qdisc("fq")),
            (0x8001_0000, ROOT, qdisc("mq")),
            (0x8003_0000, 0x8001_0002, qdisc("fq_codel")),
        ]);
        let leaves: Vec<_> = ordered
            .iter()
            .map(|qdisc| (qdisc.kind.as_str(), qdisc.leaf))
            .collect();
        assert_eq!(leaves, [("mq", false), ("fq", true), ("fq_codel", true)]);
        let single = in_order(vec![(0, ROOT, qdisc("pfifo_fast"))]);
        assert!(single[0].leaf);
    }

    #[test]
    fn a_device_s_own_address_is_told_from_the_one_that_it_has() {
        let mut body = vec![0; LINK_HEADER];
        push_attribute(&mut body, IFLA_IFNAME, b"eth9\0");
        push_attribute(&mut body, IFLA_ADDRESS, &[2, 0, 0, 0, 0, 9]);
        let without = parse_link(&body).unwrap().interface;
        assert_eq!(without.permanent_mac, None);
        assert_eq!(without.lasting_mac(), Some("02:00:00:00:00:09"));
        push_attribute(&mut body, IFLA_PERM_ADDRESS, &[2, 0, 0, 0, 0, 1]);
        let with = parse_link(&body).unwrap().interface;
        assert_eq!(with.mac.as_deref(), Some("02:00:00:00:00:09"));
        assert_eq!(with.lasting_mac(), Some("02:00:00:00:00:01"));
    }

    #[test]
    fn short_messages_are_nothing() {
        for length in 0..16 {
            assert!(parse_link(&vec![0; length]).is_none());
            assert!(parse_qdisc(&vec![0; length]).is_none());
        }
        assert!(parse_route(&[0; 11], &[]).is_none());
        assert!(parse_address(&[0; 7]).is_none());
    }
}
