//! The kernel's `struct tcp_info` as it came, and a table of its fields.
//!
//! Source: `include/uapi/linux/tcp.h` of Linux 6.18 (280 bytes). The kernel appends fields and never
//! moves them, so an older kernel gives a shorter answer, and what lies beyond its end is absent.

use serde::{Deserialize, Serialize};

use crate::column::Column;

/// The longest answer that this build understands, in bytes.
pub const LENGTH: usize = 280;

/// One field: where it stands and what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The name used in records: the kernel's, with the unit where it has one.
    pub name: &'static str,
    /// The first byte.
    pub offset: usize,
    /// Its width in bytes: 1, 2, 4 or 8.
    pub width: usize,
    /// What it counts, and in what.
    pub meaning: &'static str,
    /// The first kernel that has it.
    pub since: &'static str,
}

impl Field {
    /// The column that samples of it stand in.
    pub const fn column(&self) -> Column {
        Column(self.name)
    }
}

/// What `getsockopt(TCP_INFO)` answered.
#[derive(Clone, PartialEq, Eq)]
pub struct TcpInfo {
    raw: [u8; LENGTH],
    length: u16,
}

impl std::fmt::Debug for TcpInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map()
            .entries(self.fields().map(|(field, value)| (field.name, value)))
            .finish()
    }
}

impl TcpInfo {
    /// The first `length` bytes of `raw` are the kernel's answer.
    pub fn new(raw: [u8; LENGTH], length: usize) -> Self {
        Self {
            raw,
            length: u16::try_from(length.min(LENGTH)).unwrap_or(0),
        }
    }

    /// The value of a field, as the kernel wrote it; `None` where this kernel does not have it.
    pub fn value(&self, field: &Field) -> Option<u64> {
        let end = field.offset + field.width;
        if end > usize::from(self.length) {
            return None;
        }
        let bytes = &self.raw[field.offset..end];
        let mut wide = [0_u8; 8];
        if cfg!(target_endian = "little") {
            wide[..field.width].copy_from_slice(bytes);
        } else {
            wide[8 - field.width..].copy_from_slice(bytes);
        }
        Some(u64::from_ne_bytes(wide))
    }

    /// Every field that this kernel has, in the table's order.
    pub fn fields(&self) -> impl Iterator<Item = (&'static Field, u64)> + '_ {
        FIELDS
            .iter()
            .filter_map(|field| self.value(field).map(|value| (field, value)))
    }
}

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident @ $offset:literal + $width:literal since $since:literal : $meaning:literal;)*) => {
        /// Every field, in the kernel's order.
        pub const FIELDS: &[Field] = &[$(Field {
            name: stringify!($name), offset: $offset, width: $width, meaning: $meaning, since: $since,
        }),*];

        #[expect(non_upper_case_globals, reason = "named as the kernel names them")]
        impl Column {
            $(
                #[doc = concat!($meaning, ". Linux ", $since, " or newer.")]
                pub const $name: Self = Self(stringify!($name));
            )*
        }

        /// The kernel's fields by name; a value that the kernel does not have is absent.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct TcpFacts {
            $(
                #[doc = concat!($meaning, ". Linux ", $since, " or newer.")]
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $name: Option<u64>,
            )*
        }

        impl From<&TcpInfo> for TcpFacts {
            fn from(info: &TcpInfo) -> Self {
                Self { $($name: info.value(&Field {
                    name: stringify!($name), offset: $offset, width: $width, meaning: $meaning, since: $since,
                }),)* }
            }
        }
    };
}

fields! {
    state @ 0 + 1 since "2.6": "TCP state: 1 ESTABLISHED, 4 FIN_WAIT1, 5 FIN_WAIT2, 8 CLOSE_WAIT …";
    ca_state @ 1 + 1 since "2.6": "congestion state: 0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss";
    retransmits @ 2 + 1 since "2.6": "consecutive timeouts not yet recovered from";
    probes @ 3 + 1 since "2.6": "unanswered window or keepalive probes";
    backoff @ 4 + 1 since "2.6": "exponential back-off of the retransmission timer, as a power of two";
    options @ 5 + 1 since "2.6": "negotiated options, bits: 1 timestamps, 2 SACK, 4 window scale, 8 ECN, 16 ECN seen, 32 Fast Open data";
    wscales @ 6 + 1 since "2.6": "window scales: low four bits ours to send, high four bits received";
    app_limited @ 7 + 1 since "4.9": "bit 0: the last delivery_rate_bytes_per_s was limited by the application; bits 1 and 2: Fast Open failure";
    rto_us @ 8 + 4 since "2.6": "retransmission timeout, µs";
    ato_us @ 12 + 4 since "2.6": "delayed-ACK timeout, µs";
    snd_mss_bytes @ 16 + 4 since "2.6": "maximum segment size in use for sending, bytes";
    rcv_mss_bytes @ 20 + 4 since "2.6": "estimate of the peer's segment size, bytes";
    unacked_packets @ 24 + 4 since "2.6": "segments sent and not acknowledged";
    sacked_packets @ 28 + 4 since "2.6": "segments acknowledged selectively";
    lost_packets @ 32 + 4 since "2.6": "segments believed lost now";
    retrans_packets @ 36 + 4 since "2.6": "segments retransmitted and not yet acknowledged";
    fackets_packets @ 40 + 4 since "2.6": "forward acknowledged segments (unused since 4.15)";
    last_data_sent_ms @ 44 + 4 since "2.6": "time since data was last sent, ms";
    last_data_recv_ms @ 52 + 4 since "2.6": "time since data was last received, ms";
    last_ack_recv_ms @ 56 + 4 since "2.6": "time since an acknowledgement was last received, ms";
    pmtu_bytes @ 60 + 4 since "2.6": "kernel's path MTU, bytes";
    rcv_ssthresh_bytes @ 64 + 4 since "2.6": "present limit of the advertised window, bytes";
    rtt_us @ 68 + 4 since "2.6": "smoothed round-trip time, µs";
    rttvar_us @ 72 + 4 since "2.6": "its mean deviation, µs";
    snd_ssthresh_packets @ 76 + 4 since "2.6": "slow-start threshold, segments; 2147483647 = none set yet";
    snd_cwnd_packets @ 80 + 4 since "2.6": "congestion window, segments";
    advmss_bytes @ 84 + 4 since "2.6": "maximum segment size that we advertised, bytes";
    reordering_packets @ 88 + 4 since "2.6": "reordering that is tolerated before loss is assumed, segments";
    rcv_rtt_us @ 92 + 4 since "2.6": "round-trip time as the receiver estimates it, µs; 0 = not measured";
    rcv_space_bytes @ 96 + 4 since "2.6": "receive-buffer autotuning: data copied to the application in a round trip, bytes";
    total_retrans_packets @ 100 + 4 since "2.6": "segments retransmitted, in all";
    pacing_rate_bytes_per_s @ 104 + 8 since "3.15": "pacing rate, bytes per second; all ones = not paced";
    max_pacing_rate_bytes_per_s @ 112 + 8 since "3.15": "upper bound of the pacing rate, bytes per second; all ones = none";
    bytes_acked @ 120 + 8 since "4.1": "bytes that the peer acknowledged; an active opener's SYN and the FIN count one each";
    bytes_received @ 128 + 8 since "4.1": "bytes received in order; the peer's FIN counts one";
    segs_out @ 136 + 4 since "4.2": "segments sent, with pure acknowledgements and retransmits";
    segs_in @ 140 + 4 since "4.2": "segments received, with pure acknowledgements";
    notsent_bytes @ 144 + 4 since "4.6": "bytes in the send buffer that were not yet sent";
    min_rtt_us @ 148 + 4 since "4.6": "minimum round-trip time of the kernel's filter window, µs; 4294967295 = not \
        measured";
    data_segs_in @ 152 + 4 since "4.6": "segments received that carried data";
    data_segs_out @ 156 + 4 since "4.6": "segments sent that carried data, with retransmits";
    delivery_rate_bytes_per_s @ 160 + 8 since "4.9": "most recent delivery rate, bytes per second";
    busy_time_us @ 168 + 8 since "4.10": "time with data outstanding, µs; it includes the next two";
    rwnd_limited_us @ 176 + 8 since "4.10": "time limited by the peer's receive window, µs";
    sndbuf_limited_us @ 184 + 8 since "4.10": "time limited by the send buffer, µs";
    delivered_packets @ 192 + 4 since "4.18": "segments delivered, with retransmits, as the acknowledgements report";
    delivered_ce_packets @ 196 + 4 since "4.18": "of them, those reported as marked by ECN";
    bytes_sent @ 200 + 8 since "4.19": "payload bytes sent, with retransmits";
    bytes_retrans @ 208 + 8 since "4.19": "payload bytes retransmitted";
    dsack_dups_packets @ 216 + 4 since "4.19": "segments that the peer reported as duplicates (DSACK)";
    reord_seen @ 220 + 4 since "4.19": "times that reordering was seen";
    rcv_ooopack_packets @ 224 + 4 since "5.4": "segments received out of order";
    snd_wnd_bytes @ 228 + 4 since "5.4": "the peer's advertised receive window, bytes";
    rcv_wnd_bytes @ 232 + 4 since "6.2": "our advertised receive window, bytes";
    rehash @ 236 + 4 since "6.2": "times that the flow's hash was changed after timeouts, to try another path";
    total_rto @ 240 + 2 since "6.7": "retransmission timeouts, in all";
    total_rto_recoveries @ 242 + 2 since "6.7": "recoveries that followed them";
    total_rto_time_ms @ 244 + 4 since "6.7": "time spent in them, ms";
    received_ce_packets @ 248 + 4 since "6.18": "segments received marked by ECN";
    delivered_e1_bytes @ 252 + 4 since "6.18": "accurate ECN: bytes delivered as ECT(1)";
    delivered_e0_bytes @ 256 + 4 since "6.18": "accurate ECN: bytes delivered as ECT(0)";
    delivered_ce_bytes @ 260 + 4 since "6.18": "accurate ECN: bytes delivered as CE";
    received_e1_bytes @ 264 + 4 since "6.18": "accurate ECN: bytes received as ECT(1)";
    received_e0_bytes @ 268 + 4 since "6.18": "accurate ECN: bytes received as ECT(0)";
    received_ce_bytes @ 272 + 4 since "6.18": "accurate ECN: bytes received as CE";
    accecn_word @ 276 + 4 since "6.18": "accurate ECN: failure mode and option seen; the layout of the bits depends on the kernel version";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_neither_overlap_nor_leave_the_struct() {
        let mut end = 0;
        for field in FIELDS {
            assert!(
                field.offset >= end,
                "{} overlaps its predecessor",
                field.name
            );
            assert_eq!(
                field.offset % field.width,
                0,
                "{} is not aligned",
                field.name
            );
            end = field.offset + field.width;
        }
        assert_eq!(end, LENGTH);
    }

    #[test]
    fn a_short_answer_means_absent_fields_not_zeros() {
        let info = TcpInfo::new([1; LENGTH], 104);
        let facts = TcpFacts::from(&info);
        assert_eq!(facts.total_retrans_packets, Some(0x0101_0101));
        assert_eq!(facts.pacing_rate_bytes_per_s, None);
        assert_eq!(facts.bytes_acked, None);
        assert_eq!(
            TcpFacts::from(&TcpInfo::new([0; LENGTH], 0)),
            TcpFacts::default()
        );
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = FIELDS.iter().map(|field| field.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FIELDS.len());
    }
}
