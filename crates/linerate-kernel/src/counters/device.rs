//! Interfaces and their queueing disciplines, by rtnetlink.

use std::io;

use linerate_model::host::LinkCounters;

use crate::address::array;
use crate::netlink::{Ask, Netlink, attribute, is_absent, text, word};

/// Bytes of `struct if_stats_msg` and `struct tcmsg`.
const STATS_HEADER: usize = 12;
const QDISC_HEADER: usize = 20;
// include/uapi/linux/if_link.h, rtnetlink.h, gen_stats.h
const IFLA_STATS_LINK_64: u16 = 1;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_PKT64: u16 = 8;

/// Counters of one queueing discipline. `drops`, `overlimits` and `requeues` are 32 bits that wrap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QdiscCounters {
    /// `fq_codel`, `mq`, `noqueue` …
    pub kind: String,
    /// Its number, major in the upper half; 0 for one that was never set.
    pub handle: u32,
    /// The class that it hangs from; `u32::MAX` is the root.
    pub parent: u32,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u32,
    /// Times that a packet had to wait for its rate.
    pub overlimits: u32,
    /// Times that the device refused a packet.
    pub requeues: u32,
    /// Bytes that wait now.
    pub backlog_bytes: u32,
    /// Packets that wait now.
    pub qlen: u32,
}

/// By `RTM_GETSTATS` (Linux 4.7), which unlike `RTM_GETLINK` brings the counters alone.
pub(crate) fn interface(netlink: &mut Netlink, index: u32) -> io::Result<Option<LinkCounters>> {
    let mut request = [0; STATS_HEADER];
    request[4..8].copy_from_slice(&index.to_ne_bytes());
    request[8..12].copy_from_slice(&(1_u32 << (IFLA_STATS_LINK_64 - 1)).to_ne_bytes());
    let mut counters = None;
    let asked = netlink.ask(libc::RTM_GETSTATS, Ask::One, &request, |body| {
        counters = body
            .get(STATS_HEADER..)
            .and_then(|body| link_stats(attribute(body, IFLA_STATS_LINK_64)?));
    });
    match asked {
        Err(error) if is_absent(&error) => Ok(None),
        other => other.map(|()| counters),
    }
}

/// `struct rtnl_link_stats64`.
pub(crate) fn link_stats(raw: &[u8]) -> Option<LinkCounters> {
    let field = |index: usize| array(raw, index * 8).map(u64::from_ne_bytes);
    Some(LinkCounters {
        rx_packets: field(0)?,
        tx_packets: field(1)?,
        rx_bytes: field(2)?,
        tx_bytes: field(3)?,
        rx_errors: field(4)?,
        tx_errors: field(5)?,
        rx_dropped: field(6)?,
        tx_dropped: field(7)?,
        rx_missed: field(15)?,
    })
}

/// The kernel lists those of every interface; the others are skipped here.
pub(crate) fn qdiscs(netlink: &mut Netlink, index: u32) -> io::Result<Vec<QdiscCounters>> {
    let mut request = vec![0; QDISC_HEADER];
    request[4..8].copy_from_slice(&index.to_ne_bytes());
    // Also those that the kernel made by itself (the children of mq).
    crate::netlink::push_attribute(&mut request, libc::TCA_DUMP_INVISIBLE, &[]);
    let mut found = Vec::new();
    netlink.ask(libc::RTM_GETQDISC, Ask::All, &request, |body| {
        if word(body, 4) == Some(index) {
            found.extend(qdisc(body));
        }
    })?;
    found.sort_by_key(|qdisc| (qdisc.parent != u32::MAX, qdisc.parent));
    Ok(found)
}

/// `struct tcmsg`: family u8 and padding, interface i32, handle u32, parent u32, info u32; attributes.
fn qdisc(body: &[u8]) -> Option<QdiscCounters> {
    let attributes = body.get(QDISC_HEADER..)?;
    let stats = attribute(attributes, libc::TCA_STATS2)?;
    let basic = attribute(stats, TCA_STATS_BASIC)?;
    let queue = attribute(stats, TCA_STATS_QUEUE)?;
    let packets = attribute(stats, TCA_STATS_PKT64)
        .and_then(|raw| array(raw, 0))
        .map(u64::from_ne_bytes);
    Some(QdiscCounters {
        kind: text(attribute(attributes, libc::TCA_KIND)?),
        handle: word(body, 8)?,
        parent: word(body, 12)?,
        bytes: u64::from_ne_bytes(array(basic, 0)?),
        packets: packets.or_else(|| word(basic, 8).map(u64::from))?,
        qlen: word(queue, 0)?,
        backlog_bytes: word(queue, 4)?,
        drops: word(queue, 8)?,
        requeues: word(queue, 12)?,
        overlimits: word(queue, 16)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::push_attribute;

    #[test]
    fn a_shorter_structure_is_absent_and_a_longer_one_is_read() {
        let raw: Vec<u8> = (0_u64..30).flat_map(u64::to_ne_bytes).collect();
        let counters = link_stats(&raw).unwrap();
        assert_eq!(
            (counters.rx_bytes, counters.tx_dropped, counters.rx_missed),
            (2, 7, 15)
        );
        assert_eq!(link_stats(&raw[..15 * 8]), None);
    }

    #[test]
    fn a_qdisc_prefers_the_64_bit_packet_count() {
        let words = |words: &[u32]| {
            words
                .iter()
                .flat_map(|word| word.to_ne_bytes())
                .collect::<Vec<_>>()
        };
        let mut stats = Vec::new();
        push_attribute(&mut stats, TCA_STATS_BASIC, &words(&[5000, 0, 3, 0]));
        push_attribute(&mut stats, TCA_STATS_QUEUE, &words(&[1, 1514, 2, 3, 4]));
        let mut short = words(&[0, 7, 0x8001_0000, u32::MAX, 0]);
        push_attribute(&mut short, libc::TCA_KIND, b"fq_codel\0");
        let mut long = short.clone();
        push_attribute(&mut short, libc::TCA_STATS2, &stats);
        push_attribute(
            &mut stats,
            TCA_STATS_PKT64,
            &(1_u64 << 32 | 3).to_ne_bytes(),
        );
        push_attribute(&mut long, libc::TCA_STATS2, &stats);
        let read = qdisc(&short).unwrap();
        assert_eq!(
            (read.kind.as_str(), read.bytes, read.packets),
            ("fq_codel", 5000, 3)
        );
        assert_eq!((read.qlen, read.backlog_bytes, read.drops), (1, 1514, 2));
        assert_eq!(qdisc(&long).unwrap().packets, 1 << 32 | 3);
        assert_eq!(qdisc(&short[..40]), None);
    }
}
