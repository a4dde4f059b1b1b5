//! What goes into a direction and what comes out of it.

use linerate_model::units::Nanos;
use serde::{Deserialize, Serialize};

/// The ECN field of the IP header (RFC 3168).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ecn {
    /// `00`: the transport does not know ECN.
    #[default]
    NotCapable,
    /// `01` or `10`: may be marked.
    Capable,
    /// `11`: already marked.
    Marked,
}

/// A packet, or in bulk mode a super-segment that the sender's kernel has not cut yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The caller's handle; comes back in the [`Verdict`].
    pub id: u64,
    /// IP bytes; of a super-segment those of all its segments, headers included.
    pub bytes: u64,
    /// Segments it will be on the wire; 1 in packet mode, at least 1.
    pub segments: u32,
    /// The ECN field.
    pub ecn: Ecn,
    /// Routers may not cut it: IPv4's DF bit, or IPv6.
    pub dont_fragment: bool,
    /// Competing traffic, counted apart.
    pub cross: bool,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Let it pass.
    Deliver,
    /// Let it pass with Congestion Experienced set.
    DeliverMarked,
    /// Let it pass, and inject this many copies after it.
    Duplicate(u32),
    /// It is lost.
    Drop(Cause),
    /// It is larger than the path takes, and lost.
    TooBig {
        /// The largest packet that passes, IP bytes.
        mtu: u32,
        /// Tell the sender (ICMP type 3 code 4, `ICMPv6` type 2).
        answer: bool,
    },
}

/// Where a packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The queue before the bottleneck was full.
    Queue,
    /// The policer had no tokens.
    Policer,
    /// Random loss on the wire.
    Loss,
    /// `CoDel` dropped it.
    Codel,
    /// It was too big.
    TooBig,
}

/// What becomes of one packet, and when it was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The packet's handle.
    pub id: u64,
    /// What becomes of it.
    pub fate: Fate,
    /// When it was due; the caller's lateness is now − due.
    pub due: Nanos,
}
