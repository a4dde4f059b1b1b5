//! What a path is expected to give: the question, what the hosts allow, and the answer.
//!
//! Times are ns, amounts bytes, rates bit/s of payload unless a name says otherwise. `linerate_explain::expect`
//! computes the answer.

use serde::Serialize;

use crate::units::{BitRate, Bytes, Nanos};

/// A path and a TCP test across it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Question {
    /// Rate of the slowest link, bit/s of Ethernet: preamble, frame and gap count.
    pub rate_bps: BitRate,
    /// Round-trip time of the idle path.
    pub rtt_ns: Nanos,
    /// Largest packet, IP header included, bytes.
    pub mtu_bytes: u32,
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
    /// Streams at once, 1 to 128.
    pub streams: u16,
    /// How long the test lasts.
    pub time_ns: Nanos,
    /// Socket buffers asked for (`-w`); absent = autotuned.
    pub window_bytes: Option<Bytes>,
    /// Share of the packets that is lost at random, 0 to 1.
    pub loss: Option<f64>,
    /// Congestion control of the sender.
    pub congestion: String,
}

/// What both hosts allow; where nothing is known of the other one, it is taken to be as this one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HostSettings {
    /// `net.ipv4.tcp_rmem`, bytes.
    pub tcp_rmem: Option<[u64; 3]>,
    /// `net.ipv4.tcp_wmem`, bytes.
    pub tcp_wmem: Option<[u64; 3]>,
    /// `net.core.rmem_max`, bytes.
    pub rmem_max: Option<u64>,
    /// `net.core.wmem_max`, bytes.
    pub wmem_max: Option<u64>,
    /// `net.ipv4.tcp_adv_win_scale`; absent from Linux 6.6 on.
    pub adv_win_scale: Option<i32>,
    /// `net.ipv4.tcp_timestamps` is on; absent = not known, taken as on.
    pub timestamps: Option<bool>,
    /// `net.ipv4.tcp_window_scaling` is on; absent = not known, taken as on.
    pub window_scaling: Option<bool>,
    /// `net.ipv4.tcp_moderate_rcvbuf` is on; absent = not known, taken as on.
    pub moderate_rcvbuf: Option<bool>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expectation {
    /// What was asked.
    pub question: Question,
    /// What the settings were that `configured` rests on.
    pub settings: HostSettings,
    /// How much of the link is payload.
    pub framing: Framing,
    /// Bytes of the link's rate in a round trip, headers and gaps included.
    pub bdp_bytes: u64,
    /// What one stream needs so that nothing but the path limits.
    pub need: Need,
    /// With the settings as they are; absent where they are not known.
    pub configured: Option<Course>,
    /// With the buffers of `need`.
    pub tuned: Course,
    /// What loss does at the path's rate.
    pub loss: LossBudget,
    /// Queue in front of the slowest link that lets the congestion control fill it, bytes of the wire; absent
    /// where no rule is known for it.
    pub queue_bytes: Option<u64>,
    /// What else the reader should know, a sentence each.
    pub notes: Vec<String>,
}

/// Payload, packet and frame of a full segment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Framing {
    /// Payload of a segment, bytes.
    pub payload_bytes: u32,
    /// What it takes on the wire, preamble and gap included, bytes.
    pub wire_bytes: u32,
    /// Whether TCP's timestamps take 12 of the bytes.
    pub timestamps: bool,
    /// Payload that fits into the rate, bit/s.
    pub goodput_bps: f64,
}

/// What one stream needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Need {
    /// Payload in flight that fills its share of the path, bytes: window and congestion window reach it.
    pub in_flight_bytes: u64,
    /// Least third value of `tcp_rmem` that surely offers it, bytes.
    pub receive_buffer_bytes: u64,
    /// Least third value of `tcp_wmem` that surely holds it, bytes.
    pub send_buffer_bytes: u64,
    /// The third values to set, with room for a queue as deep as the path, bytes.
    pub advised_rmem_bytes: u64,
    /// See [`Need::advised_rmem_bytes`].
    pub advised_wmem_bytes: u64,
    /// Streams without which no window is wide enough (RFC 7323 §2.3: 1 GiB); 1 almost always.
    pub least_streams: u16,
}

/// What holds the plateau.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The path itself: as it should be.
    Path,
    /// The receiver's buffer.
    ReceiveWindow,
    /// The sender's buffer.
    SendBuffer,
    /// Random loss.
    Loss,
}

/// How a test goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Course {
    /// Most that the receive window offers to one stream, bytes: least and most that the kernel makes of the
    /// buffer.
    pub window_bytes: [u64; 2],
    /// Most in flight that the send buffer of one stream holds, bytes: least and most.
    pub send_bytes: [u64; 2],
    /// Goodput of the plateau, all streams, bit/s: least and most.
    pub plateau_bps: [f64; 2],
    /// What holds it.
    pub bound: Bound,
    /// The way up to the plateau; absent where loss ends slow start before.
    pub ramp: Option<Ramp>,
    /// Average over the whole test, bit/s: least and most.
    pub whole_run_bps: [f64; 2],
}

/// Slow start and what follows it, up to 95 % of the plateau.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ramp {
    /// Round trips of doubling from the initial window.
    pub doublings: u32,
    /// How long it takes, ns: if slow start goes all the way, and if `HyStart` leaves it at half of the way.
    pub ns: [u64; 2],
    /// Payload that the plateau would have carried meanwhile and the ramp did not, bytes.
    pub cost_bytes: [u64; 2],
    /// Whether `HyStart` may end slow start early.
    pub hystart: bool,
}

/// What loss does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LossBudget {
    /// The largest share that one stream bears at its share of the path's rate; absent where the congestion
    /// control does not slow down for loss, or where it is not known.
    pub bears: Option<f64>,
    /// What the loss that was asked about allows all streams, bit/s; absent where none was, or it slows nothing.
    pub allows_bps: Option<f64>,
    /// Longest round trip at which that loss still allows the path's rate, ns.
    pub longest_rtt_ns: Option<u64>,
    /// How long the congestion window takes to come back after one loss at the path's rate, ns.
    pub recovery_ns: Option<u64>,
}
