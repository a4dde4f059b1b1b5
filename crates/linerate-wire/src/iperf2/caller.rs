//! Who calls, and what for, from the first bytes of a connection or of a flow's first datagram.
//!
//! iperf 1.x, and any later one with `-C`, sends payload at once: `0123456789` over and over, which stands behind a datagram's
//! head as well, so that it shows how long that head is. 2.0.5 to 2.0.9 send version 1 of the header, with flags of 0 unless
//! they want connections back. 2.0.10 to 2.0.13 send the flags alone then, zeros or that numbers are wide, and payload goes on behind
//! them. From 2.1 on each client sends an extended header with its version.

use std::fmt;

use super::bounceback::{self, Bounceback};
use super::datagram::{Head, Layout};
use super::header::{
    Amount, EXTENSION_BYTES, Extension, FIRST_BYTES, First, TcpHeader, UdpHeader, Unreadable, flag,
    lower, upper,
};
use super::report::Form;
use super::words::Words;
use super::{DEFAULT_UDP_RATE, Version};

/// Bytes of a connection that tell iperf2 from everything else.
pub const LEAST: usize = 12;

/// What a client's header says of its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// iperf 1.x, or a later one with `-C`: it sends no header.
    Headerless,
    /// 2.0.2 to 2.0.9.
    V2_0,
    /// 2.0.10 to 2.0.13.
    V2_0_10,
    /// 2.1, and 2.0.14 before it.
    V2_1,
    /// 2.2.
    V2_2,
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Headerless => "iperf 1.x, or -C",
            Self::V2_0 => "iperf 2.0.2 to 2.0.9",
            Self::V2_0_10 => "iperf 2.0.10 to 2.0.13",
            Self::V2_1 => "iperf 2.1",
            Self::V2_2 => "iperf 2.2",
        })
    }
}

/// Which way payload goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server.
    ToServer,
    /// Both ways at once, the server's on a connection back (`-d`).
    Dual,
    /// Both ways, the server's afterwards, on a connection back (`-r`).
    Tradeoff,
    /// From the server to the client (`--reverse`).
    ToClient,
    /// Both ways at once on one connection (`--full-duplex`).
    FullDuplex,
    /// Requests and replies (`--bounceback`).
    Bounceback,
}

/// A client of iperf2, and what it wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent wishes of a client"
)]
pub struct Caller {
    /// Its age.
    pub generation: Generation,
    /// Its version, where it says so.
    pub version: Option<Version>,
    /// Which way payload goes.
    pub way: Way,
    /// Streams, where it says so.
    pub streams: Option<u16>,
    /// Where it listens for connections back.
    pub port: Option<u16>,
    /// Length of a write or of a datagram; absent = the default, or not said.
    pub block_bytes: Option<u32>,
    /// How much, where it says so.
    pub amount: Option<Amount>,
    /// Rate of a sender, bit/s, or packets/s with [`Caller::counts_packets`]; absent = as fast as it goes, or not said.
    pub rate: Option<u64>,
    /// The rate counts packets.
    pub counts_packets: bool,
    /// Type of service.
    pub tos: u8,
    /// TCP: it reads an answer to its header, or drains it.
    pub takes_ack: bool,
    /// It measures trip times, and sent its header at so many s and µs since 1970.
    pub trip_times: Option<[u32; 2]>,
    /// It sends, or wants, frames.
    pub is_isochronous: bool,
    /// UDP: it awaits no report at the end.
    pub no_report: bool,
    /// It shows a permit key.
    pub has_key: bool,
    /// What it says of its requests and replies; absent where it has none, or of lengths that are not answered.
    pub bounceback: Option<Bounceback>,
}

/// What the first bytes of a connection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// No iperf2.
    Other,
    /// It may be one: so many bytes tell more.
    Partial {
        /// Bytes from the beginning on, all of them the header's.
        bytes: usize,
    },
    /// iperf2. Bytes of its header that are no payload to it are told by [`Caller::apart`].
    Iperf2(Caller),
}

/// Looks at the first bytes of a connection. Never asks for a byte that is not the header's, but for the first [`LEAST`].
pub fn of_connection(bytes: &[u8]) -> Opening {
    let Some(flags) = Words(bytes).u32() else {
        return Opening::Partial { bytes: LEAST };
    };
    if bytes.len() < LEAST {
        // A client that wants less than that of a server has nothing to measure.
        return Opening::Partial { bytes: LEAST };
    }
    if bytes.starts_with(b"0123456789") {
        return Opening::Iperf2(Caller::unknown(Generation::Headerless));
    }
    if [0, flag::WIDE_NUMBERS].contains(&flags) && bytes[4..8] == *b"4567" {
        return Opening::Iperf2(Caller::unknown(Generation::V2_0_10));
    }
    if flags & !flag::HAS_LENGTH & !0x1FE == flag::BOUNCEBACK {
        if bytes.len() < bounceback::BYTES {
            return Opening::Partial {
                bytes: bounceback::BYTES,
            };
        }
        return Opening::Iperf2(Caller {
            way: Way::Bounceback,
            bounceback: Bounceback::decode(bytes),
            ..Caller::unknown(Generation::V2_1)
        });
    }
    // Text is told from a header by what must be small in it.
    if bytes[4..6] != [0; 2] || bytes[8..10] != [0; 2] {
        return Opening::Other;
    }
    if flags & (flag::VERSION1 | flag::EXTEND | flag::VERSION2) == 0 && flags != 0 {
        return Opening::Other;
    }
    match TcpHeader::decode(bytes) {
        Ok((header, _)) if header.first.is_plausible() => Opening::Iperf2(Caller::of_tcp(&header)),
        Err(Unreadable::Short { bytes }) => Opening::Partial { bytes },
        Ok(_) | Err(Unreadable::Malformed) => Opening::Other,
    }
}

/// What the first datagram of a flow is: its client, and how the heads of its datagrams are laid out. `None` where it is none of
/// iperf2, or the last datagram of a flow that is over.
pub fn of_datagram(datagram: &[u8]) -> Option<(Layout, Caller)> {
    let head = Head::decode(Layout::Bytes12, datagram)?;
    if head.number < 0 || head.microseconds >= 1_000_000 {
        return None;
    }
    let Some(behind) = datagram.get(16..) else {
        return Some((Layout::Bytes12, Caller::unknown(Generation::Headerless)));
    };
    let at_12 = &datagram[12..];
    if let Some((layout, caller)) = of_wide(behind) {
        // Its number is twice as long.
        Head::decode(layout, datagram).filter(|head| head.number >= 0)?;
        return Some((layout, caller));
    }
    // Payload that shows where the head ends.
    if at_12.starts_with(b"2345") {
        return Some(if behind.starts_with(&b"6789"[..behind.len().min(4)]) {
            (Layout::Bytes12, Caller::unknown(Generation::Headerless))
        } else {
            (Layout::Bytes12, of_2_0_13(behind)?)
        });
    }
    if at_12[..4] == [0; 4] && behind.starts_with(&b"6789"[..behind.len().min(4)]) {
        return Some((Layout::Bytes16, Caller::unknown(Generation::Headerless)));
    }
    let first = First::decode(at_12)?;
    let known = [0, flag::VERSION1, flag::VERSION1 | flag::RUN_NOW];
    if !known.contains(&first.flags) || !first.is_plausible() {
        return None;
    }
    let rate = Some(u64::from(first.window_or_rate)).filter(|rate| *rate > 0);
    let caller = Caller {
        rate,
        ..Caller::of_first(Generation::V2_0, &first)
    };
    Some((Layout::Bytes12, caller))
}

/// A client whose header stands at 16 bytes and says that its numbers have 64 bits.
fn of_wide(behind: &[u8]) -> Option<(Layout, Caller)> {
    let flags = Words(behind)
        .u32()
        .filter(|flags| flags & flag::WIDE_NUMBERS != 0)?;
    if flags & flag::EXTEND != 0 {
        let header = UdpHeader::decode(behind).filter(|header| header.first.is_plausible())?;
        let layout = if header.extension.version.is_until_2_0_13() {
            Layout::Bytes16From0
        } else {
            Layout::Bytes16
        };
        return Some((layout, Caller::of_udp(&header)));
    }
    // 2.0.13, which has payload where nothing is said.
    let said = flag::WIDE_NUMBERS | flag::UDP_TESTS;
    let caller = match flags & !said {
        0 => Caller::unknown(Generation::V2_0_10),
        back if back & !flag::RUN_NOW == flag::VERSION1 => {
            let first = First::decode(behind).filter(First::is_plausible)?;
            Caller::of_first(Generation::V2_0_10, &first)
        }
        _ => return None,
    };
    Some((Layout::Bytes16From0, caller))
}

/// A client whose header stands at 16 bytes, and whose numbers have 32 bits.
fn of_2_0_13(behind: &[u8]) -> Option<Caller> {
    let flags = Words(behind).u32()?;
    if flags & (flag::VERSION1 | flag::EXTEND) == 0 {
        return (flags == 0).then(|| Caller::unknown(Generation::V2_0_10));
    }
    let first = First::decode(behind).filter(First::is_plausible)?;
    Some(Caller::of_first(Generation::V2_0_10, &first))
}

impl Caller {
    /// One that says nothing.
    pub const fn unknown(generation: Generation) -> Self {
        Self {
            generation,
            version: None,
            way: Way::ToServer,
            streams: None,
            port: None,
            block_bytes: None,
            amount: None,
            rate: None,
            counts_packets: false,
            tos: 0,
            takes_ack: false,
            trip_times: None,
            is_isochronous: false,
            no_report: false,
            has_key: false,
            bounceback: None,
        }
    }

    fn of_first(generation: Generation, first: &First) -> Self {
        let wants_back = first.flags & flag::VERSION1 != 0 && first.flags & flag::VERSION2 == 0;
        Self {
            way: match (wants_back, first.flags & flag::RUN_NOW != 0) {
                (false, _) => Way::ToServer,
                (true, true) => Way::Dual,
                (true, false) => Way::Tradeoff,
            },
            streams: u16::try_from(first.streams).ok().filter(|count| *count > 0),
            port: u16::try_from(first.port).ok().filter(|port| *port > 0),
            block_bytes: Some(first.block_bytes).filter(|bytes| *bytes > 0),
            amount: Some(first.amount),
            ..Self::unknown(generation)
        }
    }

    fn of_tcp(header: &TcpHeader) -> Self {
        let Some(extension) = &header.extension else {
            return Self::of_first(Generation::V2_0, &header.first);
        };
        let mut caller = Self::of_extended(&header.first, extension);
        let flags = header.first.flags;
        caller.takes_ack = flags & flag::VERSION2 == 0 || flags & flag::WANTS_ACK != 0;
        caller.has_key = header.key.is_some();
        caller.rate = Some(extension.rate).filter(|rate| *rate > 0);
        if let Some(start) = header
            .start
            .filter(|_| extension.upper & upper::TRIP_TIMES != 0)
        {
            caller.trip_times = Some([start.seconds, start.microseconds]);
        }
        caller
    }

    fn of_udp(header: &UdpHeader) -> Self {
        let mut caller = Self::of_extended(&header.first, &header.extension);
        caller.no_report = header.extension.upper & upper::NO_REPORT != 0;
        let rate = header.extension.rate;
        caller.rate = Some(if rate == 0 { DEFAULT_UDP_RATE } else { rate });
        if header.extension.upper & upper::TRIP_TIMES != 0 {
            caller.trip_times = Some([header.start.seconds, header.start.microseconds]);
        }
        caller
    }

    fn of_extended(first: &First, extension: &Extension) -> Self {
        let version = extension.version;
        let generation = match (version.major, version.minor) {
            _ if version.is_until_2_0_13() => Generation::V2_0_10,
            (2, 0 | 1) => Generation::V2_1,
            _ => Generation::V2_2,
        };
        let mut caller = Self::of_first(generation, first);
        caller.version = Some(version);
        if extension.upper & upper::REVERSE != 0 {
            caller.way = Way::ToClient;
        }
        if extension.upper & upper::FULL_DUPLEX != 0 {
            caller.way = Way::FullDuplex;
        }
        caller.tos = u8::try_from(extension.tos & 0xFF).unwrap_or(0);
        caller.counts_packets = if version.is_until_2_0_13() {
            extension.lower & lower::PACKETS_2_0_13 != 0
        } else {
            extension.upper & upper::PACKETS != 0
        };
        caller.is_isochronous = extension.upper & (upper::ISOCHRONOUS | upper::BURST) != 0;
        caller
    }

    /// Bytes at the head of a TCP connection that both of its ends do not count: 2.0.x's header, which is sent apart.
    pub const fn apart(&self) -> usize {
        match self.generation {
            Generation::V2_0 => FIRST_BYTES,
            Generation::V2_0_10 if self.version.is_some() => FIRST_BYTES + EXTENSION_BYTES,
            Generation::V2_0_10 if self.streams.is_some() => FIRST_BYTES,
            _ => 0,
        }
    }

    /// In which form it reads a report; `layout` is that of its datagrams.
    pub fn report_form(&self, layout: Layout) -> Form {
        match (self.generation, layout) {
            (Generation::V2_0_10, Layout::Bytes12) => Form::After16,
            (_, Layout::Bytes12) => Form::After12,
            (_, Layout::Bytes16 | Layout::Bytes16From0) => Form::Wide,
        }
    }

    /// How it names itself.
    pub fn name(&self) -> String {
        match self.version {
            Some(version) => format!("iperf {version}"),
            None => self.generation.to_string(),
        }
    }
}
