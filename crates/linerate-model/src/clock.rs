//! Two hosts, two monotonic clocks: how far apart they stand, and how well that is known.
//!
//! Each exchange on the idle control connection gives four instants (RFC 5905's t1 to t4). The true
//! offset lies within half of the exchange's round trip around the estimate; the exchange with the
//! shortest round trip is the best known one.

use serde::{Deserialize, Serialize};

/// Round trips of idle pings differ by so much for reasons of the hosts alone (a CPU that wakes), ns.
const WAKING_NS: u64 = 50_000;

/// One question and answer between two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// We asked, our clock, ns.
    pub sent_ns: u64,
    /// The peer heard it, its clock, ns.
    pub peer_received_ns: u64,
    /// The peer answered, its clock, ns.
    pub peer_sent_ns: u64,
    /// We heard it, our clock, ns.
    pub received_ns: u64,
}

/// The peer's monotonic clock minus ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Peer's clock minus ours, ns.
    pub offset_ns: i64,
    /// The true offset lies within ± this of the estimate (half of the round trip), ns.
    pub uncertainty_ns: u64,
    /// When it was estimated, our clock, ns.
    pub at_ns: u64,
    /// Exchanges that it was chosen from.
    pub exchanges: u32,
}

/// The offset before and after a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockPair {
    /// Before the first byte of the test.
    pub before: ClockOffset,
    /// After the test, where the peer still answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ClockOffset>,
}

/// How two clocks stood to each other during a test: by both estimates where the clocks drifted by more than the pings
/// themselves vary, else by the better one alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Relation {
    /// The estimates that are used.
    pair: ClockPair,
    /// The true offset lies within ± this, ns: half of a round trip, all of which may have been spent one way.
    pub uncertainty_ns: u64,
    /// By how much the peer's clock ran faster than ours, in millionths; absent where the pings do not show that it did.
    pub drift_ppm: Option<f64>,
}

impl ClockOffset {
    /// The best estimate of some exchanges: the one with the shortest round trip. `None` without a
    /// usable exchange (one in which time does not run backwards).
    pub fn estimate(exchanges: &[Exchange]) -> Option<Self> {
        let usable = exchanges
            .iter()
            .filter_map(|exchange| Some((exchange.round_trip()?, exchange)));
        let (round_trip, best) = usable.min_by_key(|(round_trip, _)| *round_trip)?;
        let there = i128::from(best.peer_received_ns) - i128::from(best.sent_ns);
        let back = i128::from(best.peer_sent_ns) - i128::from(best.received_ns);
        Some(Self {
            offset_ns: i64::try_from(i128::midpoint(there, back)).ok()?,
            uncertainty_ns: round_trip.div_ceil(2),
            at_ns: best.received_ns,
            exchanges: u32::try_from(exchanges.len()).unwrap_or(u32::MAX),
        })
    }
}

impl ClockPair {
    /// The offset at an instant of our clock: between the two estimates it is interpolated, since
    /// clocks drift apart evenly over the minutes of a test.
    pub fn offset_at(&self, our_ns: u64) -> i64 {
        let Some(after) = self.after else {
            return self.before.offset_ns;
        };
        let span = after.at_ns.saturating_sub(self.before.at_ns);
        if span == 0 {
            return self.before.offset_ns;
        }
        let into = our_ns.saturating_sub(self.before.at_ns).min(span);
        let drift = i128::from(after.offset_ns) - i128::from(self.before.offset_ns);
        let moved = drift.saturating_mul(i128::from(into)) / i128::from(span);
        i64::try_from(i128::from(self.before.offset_ns) + moved).unwrap_or(self.before.offset_ns)
    }

    /// An instant of the peer's clock, on ours.
    pub fn to_ours(&self, peer_ns: u64) -> u64 {
        let first = peer_ns.saturating_add_signed(self.before.offset_ns.saturating_neg());
        peer_ns.saturating_add_signed(self.offset_at(first).saturating_neg())
    }
}

impl ClockPair {
    /// What both estimates say together.
    pub fn relation(&self) -> Relation {
        let alone = |offset: ClockOffset, changed: u64| Relation {
            pair: Self {
                before: offset,
                after: None,
            },
            uncertainty_ns: offset.uncertainty_ns.saturating_add(changed),
            drift_ppm: None,
        };
        let Some(after) = self.after else {
            return alone(self.before, 0);
        };
        let before = self.before;
        let changed = after.offset_ns.abs_diff(before.offset_ns);
        // The path back and forth is the same: what makes one round trip longer than the other is all that can move the
        // estimate.
        let noise = before.uncertainty_ns.abs_diff(after.uncertainty_ns);
        let span = after.at_ns.saturating_sub(before.at_ns);
        if changed <= noise.saturating_add(WAKING_NS) || span == 0 {
            let best = if after.uncertainty_ns < before.uncertainty_ns {
                after
            } else {
                before
            };
            return alone(best, changed);
        }
        let faster = after.offset_ns as f64 - before.offset_ns as f64;
        Relation {
            pair: *self,
            uncertainty_ns: before.uncertainty_ns.max(after.uncertainty_ns),
            drift_ppm: Some(faster / span as f64 * 1e6),
        }
    }
}

impl Relation {
    /// The peer's clock minus ours at an instant of our clock, ns.
    pub fn offset_at(&self, our_ns: u64) -> i64 {
        self.pair.offset_at(our_ns)
    }

    /// An instant of the peer's clock, on ours.
    pub fn to_ours(&self, peer_ns: u64) -> u64 {
        self.pair.to_ours(peer_ns)
    }
}

impl Exchange {
    /// The time on the wire, without the peer's own; `None` where a clock ran backwards.
    fn round_trip(&self) -> Option<u64> {
        let outside = self.received_ns.checked_sub(self.sent_ns)?;
        let inside = self.peer_sent_ns.checked_sub(self.peer_received_ns)?;
        outside.checked_sub(inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_round_trip_wins_and_bounds_the_error() {
        let true_offset = 5_000_000_000;
        let fast = Exchange {
            sent_ns: 1000,
            peer_received_ns: 1100 + true_offset,
            peer_sent_ns: 1150 + true_offset,
            received_ns: 1400,
        };
        let slow = Exchange {
            sent_ns: 2000,
            peer_received_ns: 9000 + true_offset,
            peer_sent_ns: 9001 + true_offset,
            received_ns: 9100,
        };
        let offset = ClockOffset::estimate(&[slow, fast]).unwrap();
        assert_eq!(offset.uncertainty_ns, 175);
        assert!((offset.offset_ns - 5_000_000_000).unsigned_abs() <= offset.uncertainty_ns);
    }

    #[test]
    fn a_peer_that_lies_about_its_clock_gives_no_estimate() {
        let lie = Exchange {
            sent_ns: 10,
            peer_received_ns: 500,
            peer_sent_ns: 400,
            received_ns: 20,
        };
        assert_eq!(ClockOffset::estimate(&[lie]), None);
        let longer_inside = Exchange {
            sent_ns: 10,
            peer_received_ns: 0,
            peer_sent_ns: 400,
            received_ns: 20,
        };
        assert_eq!(ClockOffset::estimate(&[longer_inside]), None);
    }

    #[test]
    fn drift_is_interpolated() {
        let at = |at_ns, offset_ns| ClockOffset {
            offset_ns,
            uncertainty_ns: 1,
            at_ns,
            exchanges: 1,
        };
        let pair = ClockPair {
            before: at(0, 1000),
            after: Some(at(1_000_000, 2000)),
        };
        assert_eq!(pair.offset_at(500_000), 1500);
        assert_eq!(pair.offset_at(9_000_000), 2000);
        assert_eq!(pair.to_ours(1000), 0);
    }

    #[test]
    fn a_drift_is_told_apart_from_pings_that_vary() {
        let at = |at_ns, offset_ns, uncertainty_ns| ClockOffset {
            offset_ns,
            uncertainty_ns,
            at_ns,
            exchanges: 8,
        };
        let relation = |before, after| {
            let pair = ClockPair {
                before,
                after: Some(after),
            };
            pair.relation()
        };
        let ten_seconds = 10_000_000_000;
        // 500 ms apart, and 50 ppm.
        let drifts = relation(
            at(0, 500_000_000, 5_000_000),
            at(ten_seconds, 500_500_000, 5_020_000),
        );
        assert!((drifts.drift_ppm.unwrap() - 50.0).abs() < 1e-6);
        assert_eq!(drifts.uncertainty_ns, 5_020_000);
        assert_eq!(drifts.offset_at(ten_seconds / 2), 500_250_000);
        // The last pings waited in a queue.
        let queued = relation(
            at(0, 500_000_000, 5_000_000),
            at(ten_seconds, 500_500_000, 6_000_000),
        );
        assert_eq!(queued.drift_ppm, None);
        assert_eq!(queued.offset_at(ten_seconds), 500_000_000);
        assert_eq!(queued.uncertainty_ns, 5_500_000);
        let wild = relation(at(0, i64::MIN, 0), at(u64::MAX, i64::MAX, u64::MAX - 1));
        wild.offset_at(u64::MAX / 2);
        let wild = relation(at(0, i64::MIN, 0), at(u64::MAX, i64::MAX, 0));
        assert!(wild.drift_ppm.is_some());
        wild.to_ours(wild.offset_at(u64::MAX).unsigned_abs());
    }
}
