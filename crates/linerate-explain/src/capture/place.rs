//! Where a capture was taken: how far the capturing host is from each end.

use linerate_model::capture::{Conversation, TcpFlags};

use super::transmissions::Transmissions;

/// An end this many times nearer than the other is the side that the capture was taken at.
const NEARER: f64 = 5.0;

/// Least round trips from the capture to each end, µs; absent where nothing tells.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Place {
    pub(super) to_end_us: [Option<f64>; 2],
}

impl Place {
    /// From the handshake, and from what the ends sent and the other acknowledged.
    pub(super) fn of(conversation: &Conversation, sent: &[Transmissions; 2]) -> Self {
        let shake = handshake_us(conversation);
        let to_end_us = [0, 1].map(|end: usize| {
            let answers = sent[1 - end].sent.iter();
            let least = answers
                .filter_map(|one| one.round_trip_ns)
                .min()
                .map(|ns| ns as f64 / 1e3);
            [shake[end], least].into_iter().flatten().reduce(f64::min)
        });
        Self { to_end_us }
    }

    /// The end that it was taken at or near to.
    pub(super) fn near(self) -> Option<usize> {
        let [Some(first), Some(second)] = self.to_end_us else {
            return None;
        };
        match (first * NEARER <= second, second * NEARER <= first) {
            (true, false) => Some(0),
            (false, true) => Some(1),
            _ => None,
        }
    }

    /// From end to end and back, µs.
    pub(super) fn whole_us(self) -> Option<f64> {
        let [first, second] = self.to_end_us;
        Some(first? + second?)
    }
}

/// From the SYN to its answer is the way to the second end; from that to the next acknowledgement, to the first.
/// A SYN that was repeated tells neither.
fn handshake_us(conversation: &Conversation) -> [Option<f64>; 2] {
    let mut opening = conversation.packets.iter().take(3);
    let (Some(first), Some(second), Some(third)) = (opening.next(), opening.next(), opening.next())
    else {
        return [None, None];
    };
    let syn = |flags: TcpFlags| flags.has(TcpFlags::SYN);
    let answered = syn(first.flags)
        && !first.flags.has(TcpFlags::ACK)
        && syn(second.flags)
        && second.flags.has(TcpFlags::ACK)
        && second.from != first.from;
    if !answered {
        return [None, None];
    }
    let apart = |from: u64, to: u64| Some(to.saturating_sub(from) as f64 / 1e3);
    let confirmed = !syn(third.flags) && third.from == first.from;
    [
        apart(second.at_ns, third.at_ns).filter(|_| confirmed),
        apart(first.at_ns, second.at_ns),
    ]
}
