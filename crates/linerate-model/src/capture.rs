//! A packet capture: what the file says of itself, and the TCP connections in it, packet by packet.
//!
//! Sequence numbers are unwrapped to 64 bits and payload lengths are the IP header's, so a capture that kept
//! headers only says the same. A packet here is what the capturing kernel saw: with segmentation offload it may
//! be many of the wire's.

use serde::{Deserialize, Serialize};

use crate::plain_text::PlainText;

/// Where unwrapped sequence numbers of a connection start whose handshake is not in the capture, so that what
/// came before the first packet seen still has a number.
pub const UNKNOWN_ORIGIN: u64 = 1 << 32;

/// How a capture was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureFormat {
    /// pcap with times in µs.
    PcapMicros,
    /// pcap with times in ns.
    PcapNanos,
    /// Blocks, with nanoseconds or other units for each interface (draft-ietf-opsawg-pcapng).
    Pcapng,
}

impl CaptureFormat {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PcapMicros => "pcap, times in µs",
            Self::PcapNanos => "pcap, times in ns",
            Self::Pcapng => "pcapng",
        }
    }
}

/// The packets of one link type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkPackets {
    /// Its number (<https://www.tcpdump.org/linktypes.html>).
    pub number: u16,
    /// Its name; `unknown` where this reader has none.
    pub name: PlainText,
    /// Whether its frames are read.
    pub read: bool,
    /// How many packets of the file have it.
    pub packets: u64,
}

/// Packets that belong to no TCP connection that is read, by the reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOver {
    /// No IP (ARP, spanning tree …), or of a link type that is not read.
    pub not_ip: u64,
    /// IP, and no TCP.
    pub not_tcp: u64,
    /// Fragments of IP packets.
    pub fragments: u64,
    /// The snapshot length cut into the IP or TCP header, or the headers contradict themselves.
    pub headers: u64,
    /// The file holds no time for them (pcapng's simple packets).
    pub timeless: u64,
    /// Of a connection beyond the number that is told apart.
    pub connections: u64,
    /// Beyond the number of packets that is kept.
    pub beyond: u64,
}

/// Why a capture ends before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureEnd {
    /// With a whole packet.
    Whole,
    /// Within a packet: the file was cut or is still being written.
    Cut,
    /// At a record that cannot be one, this many bytes from the start.
    Damaged(u64),
}

/// What a capture file says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// How it was written.
    pub format: CaptureFormat,
    /// Its link types.
    pub links: Vec<LinkPackets>,
    /// The least snapshot length, bytes; absent = none was set.
    pub snapshot_bytes: Option<u32>,
    /// Packets in the file, those that are not read included.
    pub packets: u64,
    /// Of them, captured shorter than they were.
    pub clipped: u64,
    /// Time of the first packet, ns since 1970.
    pub begins_unix_ns: Option<u64>,
    /// From the first packet to the last, ns.
    pub span_ns: u64,
    /// Packets that are older than one before them.
    pub back_in_time: u64,
    /// Packets that the capturing host dropped, where the file says so (pcapng).
    pub dropped: Option<u64>,
    /// Packets that are not read.
    pub passed_over: PassedOver,
    /// TCP connections seen.
    pub connections: u64,
    /// Of them, those whose opening was never answered.
    pub unanswered: u64,
    /// Of them, those that follow as conversations: the largest with payload.
    pub kept: u64,
    /// How it ends.
    pub end: CaptureEnd,
}

/// What a TCP end said of itself in its SYN.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option that a SYN holds or does not"
)]
pub struct SynOptions {
    /// Largest segment that it takes, bytes (RFC 9293).
    pub mss_bytes: Option<u16>,
    /// Window scale (RFC 7323); absent = not offered.
    pub window_shift: Option<u8>,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// ECN (RFC 3168).
    pub ecn: bool,
    /// The snapshot length cut the options, so that what is absent may have been offered.
    pub clipped: bool,
}

/// One end of a captured connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapturedEnd {
    /// Address and port, as `10.0.0.1:443` or `[::1]:443`.
    pub address: PlainText,
    /// What its SYN offered; absent = its SYN is not in the capture.
    pub syn: Option<SynOptions>,
    /// Packets that it sent.
    pub packets: u64,
    /// Payload of these packets, repeats included, bytes.
    pub payload_bytes: u64,
    /// Its largest packet's payload, bytes; more than a segment where offload packed several.
    pub largest_bytes: u32,
    /// Packets of it that arrived here with a congestion mark (CE, RFC 3168).
    pub marked: u64,
    /// Sequence number of the first byte of payload, unwrapped.
    pub first_byte: Option<u64>,
}

/// TCP flags of a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data.
    pub const FIN: u8 = 0x01;
    /// Opens.
    pub const SYN: u8 = 0x02;
    /// Aborts.
    pub const RST: u8 = 0x04;
    /// Acknowledges.
    pub const ACK: u8 = 0x10;
    /// Congestion experienced, echoed.
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced.
    pub const CWR: u8 = 0x80;

    /// Whether `flag` is set.
    pub const fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
}

/// A packet of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// When it passed, ns since the first packet of the capture.
    pub at_ns: u64,
    /// Sequence number, unwrapped: 0 is the SYN, 1 the first byte; see [`UNKNOWN_ORIGIN`].
    pub seq: u64,
    /// What it acknowledges, in the other end's unwrapped numbers; meaningless without [`TcpFlags::ACK`].
    pub ack: u64,
    /// Payload, bytes.
    pub payload: u32,
    /// First of its blocks in [`Conversation::sack_blocks`].
    pub sack_from: u32,
    /// The window as it stands in the header, not scaled.
    pub window: u16,
    /// SYN, FIN, ACK … of the header.
    pub flags: TcpFlags,
    /// The end that sent it: 0 or 1.
    pub from: u8,
    /// Number of its selective acknowledgements.
    pub sack_count: u8,
}

impl Packet {
    /// The sequence number behind its payload.
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.payload)
    }
}

/// A TCP connection of a capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    /// Its ends; the first one opened it, where its SYN was seen, else it sent the first packet seen.
    pub ends: [CapturedEnd; 2],
    /// First packet, ns since the first packet of the capture.
    pub begins_ns: u64,
    /// Last packet.
    pub ends_ns: u64,
    /// Packets of it that were not kept, all of them behind those that were.
    pub not_kept: u64,
    /// Packets in the order of the capture.
    #[serde(skip)]
    pub packets: Vec<Packet>,
    /// Selective acknowledgements of all packets, unwrapped: first byte and the one behind the last.
    #[serde(skip)]
    pub sack_blocks: Vec<[u64; 2]>,
}

impl Conversation {
    /// The selective acknowledgements of a packet, as they stand in it.
    pub fn sacks(&self, packet: &Packet) -> &[[u64; 2]] {
        let from = packet.sack_from as usize;
        self.sack_blocks
            .get(from..from + usize::from(packet.sack_count))
            .unwrap_or_default()
    }

    /// How far an end's windows are scaled; `None` where a SYN is missing or cut, for the scale is then unknown.
    pub fn window_shift(&self, end: usize) -> Option<u8> {
        let syns = [self.ends[0].syn?, self.ends[1].syn?];
        if syns
            .iter()
            .any(|syn| syn.clipped && syn.window_shift.is_none())
        {
            return None;
        }
        // Scaling is in force only where both offered it; more than 14 counts as 14 (RFC 7323, 2.3).
        let both = syns.iter().all(|syn| syn.window_shift.is_some());
        Some(if both {
            syns[end].window_shift?.min(14)
        } else {
            0
        })
    }

    /// The payload that an end's segments carry at most, bytes: the other's limit without the options that each
    /// segment carries. `None` where the other's SYN is missing or says none.
    pub fn segment_bytes(&self, end: usize) -> Option<u32> {
        let (own, other) = (self.ends[end].syn, self.ends[1 - end].syn?);
        let timestamps = own.is_some_and(|own| own.timestamps) && other.timestamps;
        let most = u32::from(other.mss_bytes?);
        Some(most.saturating_sub(if timestamps { 12 } else { 0 })).filter(|most| *most > 0)
    }
}
