//! Datagrams at the end of a run, counted to the last one sent.
//!
//! iperf3 knows of a loss only when a later datagram arrives. Here what the sender sent is held against
//! what arrived for the first time, so that a path that dies in mid-test has lost what it lost, and
//! neither a late datagram nor a duplicate hides anything.

use linerate_model::record::{PeerStream, UdpCounts};

use super::summary::BothEnds;

/// One stream's datagrams, or several streams' together, without the omitted part.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Datagrams {
    /// Sent; absent where the sender is not known.
    pub(super) sent: Option<u64>,
    /// Those that the receiver could have got: its own omitted part ends at another datagram.
    pub(super) expected: Option<u64>,
    /// Of them, never delivered.
    pub(super) lost: Option<u64>,
    /// Whether a peer older than 3.14 keeps to itself how many of them fell into the omitted part.
    pub(super) with_omitted: bool,
    /// Delivered late.
    pub(super) out_of_order: Option<u64>,
    /// Smoothed interarrival jitter, ms.
    pub(super) jitter_ms: Option<f64>,
}

/// What the sender says.
#[derive(Debug, Clone, Copy)]
struct Sender {
    total: u64,
    omitted: Option<u64>,
}

impl Datagrams {
    /// From both ends' accounts.
    pub(super) fn new(both: &BothEnds) -> Self {
        let sender = sender(both);
        let receiver = if both.own.sends {
            both.peer
        } else {
            Some(both.own)
        };
        let datagrams = match (receiver.and_then(|stream| stream.udp.as_ref()), both.told) {
            (Some(counts), _) => Self::counted(sender, counts),
            (None, Some(told)) if both.own.sends => Self::told(sender, told),
            _ => Self::default(),
        };
        let sent = sender.map(|sender| sender.total.saturating_sub(sender.omitted.unwrap_or(0)));
        Self { sent, ..datagrams }
    }

    /// The receiver is a linerate: it knows which counters arrived.
    fn counted(sender: Option<Sender>, counts: &UdpCounts) -> Self {
        let last = sender
            .map(|sender| sender.total)
            .or(counts.peer_sent)
            .unwrap_or(counts.highest)
            .max(counts.highest);
        let expected = last.saturating_sub(counts.highest_omitted);
        let delivered = counts.unique.saturating_sub(counts.unique_omitted);
        Self {
            expected: Some(expected),
            lost: Some(expected.saturating_sub(delivered)),
            out_of_order: Some(counts.reordered),
            jitter_ms: counts.jitter_ns.map(|jitter| jitter as f64 / 1e6),
            ..Self::default()
        }
    }

    /// The receiver is a stock iperf3: it knows the gaps below the highest counter; what was sent
    /// beyond that did not arrive either.
    fn told(sender: Option<Sender>, told: &PeerStream) -> Self {
        let last = sender
            .map_or(told.packets, |sender| sender.total)
            .max(told.packets);
        let omitted = told
            .omitted_packets
            .or(sender.and_then(|sender| sender.omitted))
            .unwrap_or(0);
        let gaps = told.errors.saturating_sub(told.omitted_errors.unwrap_or(0));
        let expected = last.saturating_sub(omitted);
        let lost = u64::try_from(gaps)
            .unwrap_or(0)
            .saturating_add(last - told.packets);
        Self {
            expected: Some(expected),
            lost: Some(lost.min(expected)),
            with_omitted: told.omitted_errors.is_none() && omitted > 0 && told.errors > 0,
            jitter_ms: Some(told.jitter_s * 1000.0),
            ..Self::default()
        }
    }

    /// Both together; the jitters add up until [`Self::with_mean_jitter`].
    pub(super) fn and(self, other: Self) -> Self {
        let add = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        Self {
            sent: add(self.sent, other.sent),
            expected: add(self.expected, other.expected),
            lost: add(self.lost, other.lost),
            with_omitted: self.with_omitted || other.with_omitted,
            out_of_order: add(self.out_of_order, other.out_of_order),
            jitter_ms: self.jitter_ms.zip(other.jitter_ms).map(|(a, b)| a + b),
        }
    }

    /// As iperf3 has it: the mean of the streams' jitters.
    pub(super) fn with_mean_jitter(self, streams: usize) -> Self {
        Self {
            jitter_ms: self.jitter_ms.map(|sum| sum / streams.max(1) as f64),
            ..self
        }
    }

    /// The sender's number, or the receiver's where that is all there is.
    pub(super) fn packets(self) -> u64 {
        self.sent.or(self.expected).unwrap_or(0)
    }

    /// Lost of `packets`, %.
    pub(super) fn lost_percent(self, packets: u64) -> f64 {
        super::timeline::lost_percent(
            i64::try_from(self.lost.unwrap_or(0)).unwrap_or(i64::MAX),
            packets,
        )
    }
}

fn sender(both: &BothEnds) -> Option<Sender> {
    let counted = |counts: &UdpCounts| Sender {
        total: counts.sent,
        omitted: Some(counts.sent_omitted),
    };
    if both.own.sends {
        return both.own.udp.as_ref().map(counted);
    }
    if let Some(counts) = both.peer.and_then(|peer| peer.udp.as_ref()) {
        return Some(counted(counts));
    }
    let receiver = both.own.udp.as_ref();
    let boundary = receiver.map(|counts| counts.highest_omitted);
    if let Some(told) = both.told {
        return Some(Sender {
            total: told.packets,
            omitted: told.omitted_packets.or(boundary),
        });
    }
    let total = receiver.and_then(|counts| counts.peer_sent)?;
    Some(Sender {
        total,
        omitted: boundary,
    })
}
