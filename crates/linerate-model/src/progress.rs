//! What a running test tells while it runs.
//!
//! Instants are ns since the start of the test at the end that tells them.

use serde::{Deserialize, Serialize};

use crate::plain_text::PlainText;
use crate::record::{ControlFacts, Flow};
use crate::units::Nanos;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The control connection stands.
    Connected {
        /// Both addresses, the peer's software, and how long connecting took.
        control: ControlFacts,
        /// The test's cookie.
        cookie: PlainText,
        /// Wall-clock label, ms since 1970-01-01 UTC.
        at_unix_ms: u64,
    },
    /// All data streams stand.
    Opened {
        /// Them, in the order of their ids.
        streams: Vec<StreamOpened>,
    },
    /// The streams were let go.
    Started,
    /// An interval passed.
    Interval(Interval),
    /// The test is over; what is under way is being drained and results are exchanged.
    Ending,
    /// Something that the user should know now.
    Warning {
        /// A sentence.
        text: PlainText,
    },
}

/// A data stream that stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamOpened {
    /// Positional id: 1, 3, 4, 5 …
    pub id: u32,
    /// Which way its payload goes.
    pub flow: Flow,
    /// Whether this end sends.
    pub sends: bool,
    /// The socket's number at this end, as iperf3 shows it.
    pub socket: i32,
    /// Local address.
    pub local: PlainText,
    /// Remote address.
    pub remote: PlainText,
    /// Maximum segment size, bytes (TCP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u32>,
    /// Send buffer granted, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u64>,
    /// Receive buffer granted, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
}

/// What moved between two instants. The sum of a stream's intervals is its total.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Begin.
    pub from_ns: Nanos,
    /// End.
    pub to_ns: Nanos,
    /// Whether it lies in the omitted part (an interval never straddles its end).
    pub omitted: bool,
    /// Time left, where the plan ends by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_ns: Option<Nanos>,
    /// Each stream of this end.
    pub streams: Vec<StreamInterval>,
}

/// One stream in an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamInterval {
    /// Positional id.
    pub id: u32,
    /// Which way its payload goes.
    pub flow: Flow,
    /// Whether this end sends.
    pub sends: bool,
    /// Begin, by the stream's own stamp.
    pub from_ns: Nanos,
    /// End, by the stream's own stamp, taken together with the byte count.
    pub to_ns: Nanos,
    /// Payload bytes written or read.
    pub bytes: u64,
    /// The sending kernel's figures (TCP, at the sender).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpInterval>,
    /// Datagrams (UDP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpInterval>,
}

/// TCP at the sender, at the end of an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpInterval {
    /// Segments sent again in this interval.
    pub retransmits: u64,
    /// Congestion window, bytes.
    pub snd_cwnd_bytes: u64,
    /// The peer's receive window, bytes; absent = kernel older than 5.4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snd_wnd_bytes: Option<u64>,
    /// Smoothed round-trip time, µs.
    pub rtt_us: u64,
    /// Its mean deviation, µs.
    pub rttvar_us: u64,
    /// Path MTU, bytes.
    pub pmtu_bytes: u64,
    /// Times that reordering was seen in all; absent = kernel older than 4.19.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reord_seen: Option<u64>,
    /// What the kernel's clocks counted meanwhile; absent = kernel older than 4.10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<SenderClocks>,
}

/// What a sending kernel's clocks counted in an interval, µs (`tcp_info`, since Linux 4.10).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderClocks {
    /// With data outstanding; the next two included.
    pub busy_us: u64,
    /// Limited by the peer's receive window.
    pub rwnd_limited_us: u64,
    /// Limited by the send buffer.
    pub sndbuf_limited_us: u64,
}

impl SenderClocks {
    /// What was counted since an earlier reading.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            busy_us: self.busy_us.saturating_sub(earlier.busy_us),
            rwnd_limited_us: self.rwnd_limited_us.saturating_sub(earlier.rwnd_limited_us),
            sndbuf_limited_us: self
                .sndbuf_limited_us
                .saturating_sub(earlier.sndbuf_limited_us),
        }
    }
}

/// Datagrams of one report interval, of one stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpInterval {
    /// Datagrams sent (sender), or expected by the counters seen (receiver).
    pub packets: u64,
    /// Receiver: missing by the counters seen. It may be negative where late ones came in.
    pub lost: i64,
    /// Receiver: late ones.
    pub out_of_order: u64,
    /// Receiver: smoothed jitter, ns.
    pub jitter_ns: u64,
}
