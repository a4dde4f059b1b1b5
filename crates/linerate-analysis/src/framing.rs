//! How payload lies on the wire.

use linerate_model::column::Column;
use linerate_model::plan::Protocol;
use linerate_model::record::{EndRecord, Flow, Role, RunRecord, StreamRecord};

/// Ethernet around an IP packet: header, check sequence, preamble, gap; bytes.
const ETHERNET: u64 = 14 + 4 + 8 + 12;
/// TCP's header without options, bytes.
const TCP: u64 = 20;
/// The timestamp option, padded, bytes (RFC 7323).
const TIMESTAMPS: u64 = 12;
/// UDP's header, bytes.
const UDP: u64 = 8;
/// Bit 0 of `options` in `tcp_info`.
const OPTION_TIMESTAMPS: u64 = 1;

/// What surrounds the payload of a segment or datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    /// Payload, bytes; at least 1.
    pub payload: u64,
    /// Headers of TCP with its options, or of UDP, bytes.
    pub transport: u64,
    /// Headers of IP, one for each fragment, bytes.
    pub ip: u64,
    /// Ethernet around each IP packet, with preamble and gap, bytes; 0 on loopback.
    pub ethernet: u64,
    says: &'static str,
    over: &'static str,
}

impl Framing {
    /// That of a direction's packets.
    ///
    /// # Errors
    ///
    /// What is not known.
    pub(crate) fn of(record: &RunRecord, flow: Flow) -> Result<Self, String> {
        if record.plan.protocol == Protocol::Sctp {
            return Err("linerate reads neither SCTP's packet size nor its retransmits".to_owned());
        }
        let ends = || {
            [flow.sender(), flow.receiver()]
                .into_iter()
                .filter_map(|role| record.end(role))
        };
        let stream = ends()
            .find_map(|end| end.streams_of(flow).next())
            .ok_or("there was no stream")?;
        let six = is_ipv6(&stream.remote);
        let (ip, over) = if six { (40, "IPv6") } else { (20, "IPv4") };
        let outside = if ends().any(EndRecord::over_loopback) {
            0
        } else {
            ETHERNET
        };
        if record.plan.protocol == Protocol::Udp {
            let payload = record.plan.block_bytes.count().max(1);
            let packet = u64::from(stream.path_mtu_bytes.unwrap_or(0)).saturating_sub(ip);
            let fragments = fragments(payload + UDP, packet);
            return Ok(Self {
                payload,
                transport: UDP,
                ip: fragments * ip,
                ethernet: fragments * outside,
                says: "UDP",
                over,
            });
        }
        let payload = segment_bytes(record, flow)
            .ok_or("the segment size is not known, so neither is the framing")?;
        let stamped = has_timestamps(ends().flat_map(|end| end.streams_of(flow)));
        Ok(Self {
            payload,
            transport: TCP + if stamped { TIMESTAMPS } else { 0 },
            ip,
            ethernet: outside,
            says: if stamped {
                "TCP with timestamps"
            } else {
                "TCP"
            },
            over,
        })
    }

    /// What a packet takes on the wire, bytes.
    pub const fn wire(&self) -> u64 {
        self.payload + self.transport + self.ip + self.ethernet
    }

    /// Payload that a rate on the wire carries, bit/s.
    pub fn payload_of(&self, wire_bps: u64) -> u64 {
        scale(wire_bps, self.payload, self.wire())
    }

    /// The rate on the wire that carries this much payload, bit/s; never less than the payload.
    pub(crate) fn wire_of(&self, payload_bps: u64) -> u64 {
        scale(payload_bps, self.wire(), self.payload)
    }

    pub(crate) fn says(&self) -> String {
        let outside = if self.ethernet > 0 {
            ", Ethernet with preamble and gap"
        } else {
            ""
        };
        format!(
            "{} of {} bytes are payload: {} over {}{outside}",
            self.payload,
            self.wire(),
            self.says,
            self.over
        )
    }
}

/// Into how many IP packets with `packet` bytes of room a datagram of `bytes` goes.
fn fragments(bytes: u64, packet: u64) -> u64 {
    // All but the last carry a multiple of eight bytes (RFC 791).
    if bytes > packet && packet >= 8 {
        bytes.div_ceil(packet / 8 * 8)
    } else {
        1
    }
}

/// Whether segments carry timestamps, as is usual where no kernel tells.
fn has_timestamps<'a>(mut streams: impl Iterator<Item = &'a StreamRecord>) -> bool {
    let options = streams.find_map(|stream| {
        stream
            .samples
            .last(Column::options)
            .filter(|options| *options > 0)
    });
    options.is_none_or(|options| options & OPTION_TIMESTAMPS != 0)
}

fn scale(value: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(by) / u128::from(of.max(1));
    // A step is a signed number.
    u64::try_from(scaled)
        .unwrap_or(u64::MAX)
        .min(i64::MAX.unsigned_abs())
}

/// Whether an address with its port is IPv6's, and not IPv4's in its clothes (RFC 4291, 2.5.5.2).
fn is_ipv6(address: &str) -> bool {
    address.matches(':').count() > 1 && !address.contains("::ffff:")
}

fn segment_bytes(record: &RunRecord, flow: Flow) -> Option<u64> {
    let of = |role: Role| {
        let streams = || {
            record
                .end(role)
                .into_iter()
                .flat_map(move |end| end.streams_of(flow))
        };
        let sampled = (role == flow.sender()).then(|| {
            streams()
                .filter_map(|stream| stream.samples.last(Column::snd_mss_bytes))
                .max()
        });
        sampled.flatten().or_else(|| {
            streams()
                .filter_map(|stream| stream.mss_bytes)
                .max()
                .map(u64::from)
        })
    };
    of(flow.sender())
        .or_else(|| of(flow.receiver()))
        .filter(|mss| *mss > 0)
}
