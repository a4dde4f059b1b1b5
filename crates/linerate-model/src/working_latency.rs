//! Round trips of small messages and of new connections before, under and after a test's load, as the client counted
//! them (`--latency`).
//!
//! What is derived of them, such as round trips a minute, is in `linerate-analysis`.

use serde::{Deserialize, Serialize};

use crate::latency::Latencies;
use crate::plain_text::PlainText;
use crate::units::Nanos;

/// What a client measured of the latency in the three phases of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyProbes {
    /// Why nothing was measured, or nothing more from then on; absent = all that was to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<PlainText>,
    /// Bytes of a message, each way.
    pub message_bytes: u32,
    /// From one message's due time to the next one's.
    pub every_ns: Nanos,
    /// From one new connection's due time to the next one's.
    pub connect_every_ns: Nanos,
    /// Before the data streams were opened.
    pub idle: ProbePhase,
    /// While they sent, after the ramp.
    pub loaded: ProbePhase,
    /// After the last byte had arrived.
    pub after: ProbePhase,
}

/// What was measured in a phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbePhase {
    /// When it began, the client's clock; zero where it never did.
    pub from_ns: Nanos,
    /// When it ended.
    pub to_ns: Nanos,
    /// Messages sent on the probe connection.
    pub sent: u64,
    /// Of them, those without an answer when the test was over.
    pub unanswered: u64,
    /// Messages that were due and not sent, since as many as are allowed waited for their answers. They are in no figure.
    pub left_out: u64,
    /// From when each answered message was due until its answer was read.
    pub round_trips: Latencies,
    /// Of that, from when it was due until this program sent it: time that this host took.
    pub own_delays: Latencies,
    /// From the call until the connection stood, for each new connection: the draft's `tcp_f`.
    pub connects: Latencies,
    /// New connections that were refused or did not stand when the phase was over.
    pub connects_failed: u64,
    /// The client kernel's own figure of the same handshakes, without the programs of either end: absent for one whose
    /// packets were repeated.
    pub handshakes: Latencies,
}
