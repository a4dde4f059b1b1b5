//! A frame: from its link layer through IP to TCP. Lengths are the IP header's, not what was captured.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use linerate_model::capture::{SynOptions, TcpFlags};

use super::Order;

const TCP: u8 = 6;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad and what was used before it.
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// VLAN tags of a frame, and extension headers of an IPv6 packet, that are followed.
const MOST_NESTED: usize = 8;

/// A TCP segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: TcpFlags,
    pub(super) window: u16,
    pub(super) payload: u32,
    pub(super) options: SynOptions,
    /// First byte and the one behind the last.
    pub(super) sacks: Vec<[u32; 2]>,
    pub(super) marked: bool,
}

/// Why a packet is no TCP segment of this reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passed {
    NotIp,
    NotTcp,
    Fragment,
    /// Cut, or contradicting itself.
    Headers,
}

/// The name of a link type, and whether its frames are read.
pub(super) fn link_name(number: u16) -> (&'static str, bool) {
    match number {
        0 => ("BSD loopback", true),
        1 => ("Ethernet", true),
        12 | 14 | 101 => ("raw IP", true),
        108 => ("OpenBSD loopback", true),
        113 => ("Linux cooked v1", true),
        228 => ("raw IPv4", true),
        229 => ("raw IPv6", true),
        276 => ("Linux cooked v2", true),
        6 => ("Token Ring", false),
        8 => ("SLIP", false),
        9 | 50 => ("PPP", false),
        51 => ("PPPoE", false),
        104 => ("Cisco HDLC", false),
        105 => ("802.11", false),
        119 | 127 | 163 => ("802.11 with radio header", false),
        107 => ("Frame Relay", false),
        122 => ("IP over Fibre Channel", false),
        139 => ("MTP2", false),
        192 => ("PPI", false),
        195 | 230 => ("802.15.4", false),
        187 | 201 => ("Bluetooth", false),
        189 | 220 => ("USB", false),
        227 => ("SocketCAN", false),
        239 => ("NFLOG", false),
        247 => ("InfiniBand", false),
        253 => ("netlink", false),
        _ => ("unknown", false),
    }
}

/// The TCP segment of a frame that had `original` bytes on the wire.
pub(super) fn segment(link: u16, frame: &[u8], original: u32) -> Result<Segment, Passed> {
    let (kind, header) = network(link, frame)?;
    let packet = frame.get(header..).ok_or(Passed::Headers)?;
    let on_wire = (original as usize).saturating_sub(header);
    match kind {
        IPV4 => ipv4(packet, on_wire),
        IPV6 => ipv6(packet, on_wire),
        _ => Err(Passed::NotIp),
    }
}

/// The `EtherType` of what a frame carries and the length of what stands before it.
fn network(link: u16, frame: &[u8]) -> Result<(u16, usize), Passed> {
    let short = |at| Order::Big.short(frame, at).ok_or(Passed::Headers);
    match link {
        1 => tagged(frame, short(12)?, 14),
        113 => tagged(frame, short(14)?, 16),
        276 => tagged(frame, short(0)?, 20),
        12 | 14 | 101 | 228 | 229 => Ok((by_version(frame, 0)?, 0)),
        // The address family's number differs between systems and byte orders; the IP version does not.
        0 | 108 => Ok((by_version(frame, 4)?, 4)),
        _ => Err(Passed::NotIp),
    }
}

fn tagged(frame: &[u8], kind: u16, header: usize) -> Result<(u16, usize), Passed> {
    let (mut kind, mut header) = (kind, header);
    for _ in 0..MOST_NESTED {
        if !VLAN.contains(&kind) {
            break;
        }
        kind = Order::Big.short(frame, header + 2).ok_or(Passed::Headers)?;
        header += 4;
    }
    Ok((kind, header))
}

fn by_version(frame: &[u8], at: usize) -> Result<u16, Passed> {
    match frame.get(at).ok_or(Passed::Headers)? >> 4 {
        4 => Ok(IPV4),
        6 => Ok(IPV6),
        _ => Err(Passed::NotIp),
    }
}

/// RFC 791.
fn ipv4(packet: &[u8], on_wire: usize) -> Result<Segment, Passed> {
    let byte = |at: usize| packet.get(at).copied().ok_or(Passed::Headers);
    let short = |at| Order::Big.short(packet, at).ok_or(Passed::Headers);
    let header = usize::from(byte(0)? & 0x0f) * 4;
    if byte(0)? >> 4 != 4 || header < 20 {
        return Err(Passed::Headers);
    }
    if byte(9)? != TCP {
        return Err(Passed::NotTcp);
    }
    // More fragments, or an offset: the length of the segment is not in this packet.
    if short(6)? & 0x3fff != 0 {
        return Err(Passed::Fragment);
    }
    // Segmentation offload hands on packets whose length does not fit and is left at 0.
    let total = match usize::from(short(2)?) {
        0 => on_wire,
        total => total,
    };
    let address = |at: usize| -> Result<IpAddr, Passed> {
        let four = packet
            .get(at..at + 4)
            .and_then(|four| <[u8; 4]>::try_from(four).ok());
        Ok(Ipv4Addr::from(four.ok_or(Passed::Headers)?).into())
    };
    let tcp = packet.get(header..).ok_or(Passed::Headers)?;
    let length = total.checked_sub(header).ok_or(Passed::Headers)?;
    tcp_segment(tcp, length, [address(12)?, address(16)?], byte(1)?)
}

/// RFC 8200.
fn ipv6(packet: &[u8], on_wire: usize) -> Result<Segment, Passed> {
    let byte = |at: usize| packet.get(at).copied().ok_or(Passed::Headers);
    if byte(0)? >> 4 != 6 {
        return Err(Passed::Headers);
    }
    let payload = match usize::from(Order::Big.short(packet, 4).ok_or(Passed::Headers)?) {
        // A jumbogram, or offload: as for IPv4.
        0 => on_wire.saturating_sub(40),
        payload => payload,
    };
    let (mut next, mut at) = (byte(6)?, 40_usize);
    for _ in 0..MOST_NESTED {
        match next {
            // Hop-by-hop options, routing, destination options.
            0 | 43 | 60 => {
                next = byte(at)?;
                at += (usize::from(byte(at + 1)?) + 1) * 8;
            }
            // Fragment header: one that holds the whole packet is no fragment (RFC 6946).
            44 => {
                let offset = Order::Big.short(packet, at + 2).ok_or(Passed::Headers)?;
                if offset & 0xfff9 != 0 {
                    return Err(Passed::Fragment);
                }
                next = byte(at)?;
                at += 8;
            }
            _ => break,
        }
    }
    if next != TCP {
        return Err(Passed::NotTcp);
    }
    let address = |at: usize| -> Result<IpAddr, Passed> {
        let all = packet
            .get(at..at + 16)
            .and_then(|all| <[u8; 16]>::try_from(all).ok());
        Ok(Ipv6Addr::from(all.ok_or(Passed::Headers)?).into())
    };
    let tcp = packet.get(at..).ok_or(Passed::Headers)?;
    let length = (payload + 40).checked_sub(at).ok_or(Passed::Headers)?;
    let class = (byte(0)? & 0x0f) << 4 | byte(1)? >> 4;
    tcp_segment(tcp, length, [address(8)?, address(24)?], class)
}

/// RFC 9293.
fn tcp_segment(
    tcp: &[u8],
    length: usize,
    [source, destination]: [IpAddr; 2],
    class: u8,
) -> Result<Segment, Passed> {
    let short = |at| Order::Big.short(tcp, at).ok_or(Passed::Headers);
    let word = |at| Order::Big.word(tcp, at).ok_or(Passed::Headers);
    let byte = |at: usize| tcp.get(at).copied().ok_or(Passed::Headers);
    let header = usize::from(byte(12)? >> 4) * 4;
    let payload = length.checked_sub(header).ok_or(Passed::Headers)?;
    if header < 20 {
        return Err(Passed::Headers);
    }
    let flags = TcpFlags(byte(13)?);
    let window = short(14)?;
    let there = tcp.get(20..header.min(tcp.len())).unwrap_or_default();
    let (mut options, sacks) = tcp_options(there);
    options.clipped = tcp.len() < header;
    options.ecn = flags.has(TcpFlags::ECE);
    Ok(Segment {
        source: SocketAddr::new(source, short(0)?),
        destination: SocketAddr::new(destination, short(2)?),
        seq: word(4)?,
        ack: word(8)?,
        flags,
        window,
        payload: u32::try_from(payload).map_err(|_| Passed::Headers)?,
        options,
        sacks,
        marked: class & 3 == 3,
    })
}

/// Options up to the first that is broken.
fn tcp_options(mut rest: &[u8]) -> (SynOptions, Vec<[u32; 2]>) {
    let mut options = SynOptions::default();
    let mut sacks = Vec::new();
    while let [kind, after @ ..] = rest {
        match kind {
            0 => break,
            1 => {
                rest = after;
                continue;
            }
            _ => {}
        }
        let Some(length) = after.first().map(|length| usize::from(*length)) else {
            break;
        };
        let Some(value) = rest.get(2..length) else {
            break;
        };
        match (kind, value) {
            (2, [_, _]) => options.mss_bytes = Order::Big.short(value, 0),
            (3, [shift]) => options.window_shift = Some(*shift),
            (4, []) => options.sack = true,
            (5, blocks) => sacks.extend(blocks.chunks_exact(8).filter_map(|block| {
                Some([Order::Big.word(block, 0)?, Order::Big.word(block, 4)?])
            })),
            (8, [_, _, _, _, _, _, _, _]) => options.timestamps = true,
            _ => {}
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    (options, sacks)
}
