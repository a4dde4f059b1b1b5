//! The receive window of a captured connection: whether the sender stood at its edge, and whether it closed.

use linerate_analysis::statistics::median;
use linerate_model::capture::{Conversation, TcpFlags};

/// What the other end's window did to a sender.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Window {
    /// Share of the time with something outstanding in which no segment more fitted into the window.
    pub(super) held: f64,
    /// Median of the windows that were advertised, bytes.
    pub(super) usual_bytes: f64,
    /// Time for which it was closed, ns.
    pub(super) closed_ns: u64,
    /// How often it closed.
    pub(super) closings: u32,
}

/// Windows that the median is taken of, at most.
const MOST_WINDOWS: usize = 100_000;

/// `None` where the scale of the windows is not known, or none was seen.
pub(super) fn of(conversation: &Conversation, end: usize) -> Option<Window> {
    let shift = conversation.window_shift(1 - end)?;
    let segment = u64::from(conversation.segment_bytes(end).unwrap_or(1));
    let mut window = Window::default();
    let mut edge = Edge::default();
    let (mut busy_ns, mut held_ns, mut before_ns) = (0_u64, 0_u64, 0_u64);
    let mut advertised: Vec<f64> = Vec::new();
    for packet in &conversation.packets {
        let passed = packet.at_ns.saturating_sub(before_ns);
        before_ns = before_ns.max(packet.at_ns);
        if edge.outstanding() {
            busy_ns += passed;
            held_ns += if edge.room() < segment { passed } else { 0 };
        }
        window.closed_ns += if edge.closed { passed } else { 0 };
        if usize::from(packet.from) == end {
            if packet.payload > 0 {
                edge.sent = edge.sent.max(packet.end());
            }
        } else if packet.flags.has(TcpFlags::ACK) && !packet.flags.has(TcpFlags::RST) {
            // The window of a SYN is never scaled (RFC 7323, 2.2).
            let scale = if packet.flags.has(TcpFlags::SYN) {
                0
            } else {
                shift
            };
            let bytes = u64::from(packet.window) << scale;
            edge.acked = edge.acked.max(packet.ack);
            edge.last = edge.last.max(packet.ack + bytes);
            let closed = bytes == 0 && edge.sent > 0;
            window.closings += u32::from(closed && !edge.closed);
            edge.closed = closed;
            if advertised.len() < MOST_WINDOWS && edge.sent > 0 {
                advertised.push(bytes as f64);
            }
        }
    }
    window.usual_bytes = median(&advertised)?;
    window.held = held_ns as f64 / busy_ns.max(1) as f64;
    Some(window)
}

/// How far a sender has come, and may go.
#[derive(Default)]
struct Edge {
    sent: u64,
    acked: u64,
    last: u64,
    closed: bool,
}

impl Edge {
    const fn outstanding(&self) -> bool {
        self.sent > self.acked
    }

    const fn room(&self) -> u64 {
        self.last.saturating_sub(self.sent)
    }
}
