//! Which side of a ring the other one waited for, and since when.
//!
//! Who waits for a piece waits for all that went before it: the side that fills the ring has been at work without a pause since it
//! last waited for room, and would have brought the piece earlier only if it had worked faster. So the time between two waits
//! belongs to the side that the second one is for, and a ring that takes in the difference for a while hides nothing. The waits alone
//! would say less: where a piece takes a while to send, its sending hides most of the time that the next one takes to read.

use linerate_model::transfer::RingRecord;
use linerate_model::units::Nanos;

/// A ring's time, divided; the parts add up to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Waits {
    /// The side that fills it was the slower one.
    pub(super) for_pieces: Nanos,
    /// The side that empties it was.
    pub(super) for_room: Nanos,
    /// After the last wait, which shows neither.
    pub(super) open: Nanos,
}

impl Waits {
    /// Of the time between two instants of the ring's clock.
    pub(super) fn of(ring: &RingRecord, began: Nanos, until: Nanos) -> Self {
        let samples = ring.samples.iter().filter(|sample| sample.at <= until);
        let states = samples.map(|sample| (sample.at, sample.empty, sample.full));
        let mut waits = Self::default();
        let mut before = (began, Nanos::ZERO, Nanos::ZERO);
        for state in states.chain([(until, ring.empty, ring.full)]) {
            let (at, empty, full) = state;
            waits.add(
                at.since(before.0),
                empty.since(before.1),
                full.since(before.2),
            );
            before = state;
        }
        waits
    }

    /// Some time, so much of which was waited for pieces, and for room. Where it has both, what is neither is divided as they are.
    fn add(&mut self, time: Nanos, pieces: Nanos, room: Nanos) {
        self.open = self.open.plus(time);
        let waited = pieces.plus(room);
        if waited.0 > 0 {
            let part = u128::from(self.open.0) * u128::from(pieces.0) / u128::from(waited.0);
            let part = Nanos(u64::try_from(part).unwrap_or(u64::MAX)).min(self.open);
            self.for_pieces = self.for_pieces.plus(part);
            self.for_room = self.for_room.plus(self.open.since(part));
            self.open = Nanos::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::transfer::RingSample;

    use super::*;

    /// A ring that began at 100, read every 10, with what was waited in each for pieces and for room.
    fn waits(each: &[(u64, u64)], until: u64) -> [u64; 3] {
        let mut ring = RingRecord::default();
        let mut at = 100;
        for (pieces, room) in each {
            at += 10;
            ring.empty = ring.empty.plus(Nanos(*pieces));
            ring.full = ring.full.plus(Nanos(*room));
            ring.samples.push(RingSample {
                at: Nanos(at),
                empty: ring.empty,
                full: ring.full,
                ..RingSample::default()
            });
        }
        let found = Waits::of(&ring, Nanos(100), Nanos(until));
        let parts = [found.for_pieces, found.for_room, found.open].map(|part| part.0);
        assert_eq!(parts.iter().sum::<u64>(), until - 100);
        parts
    }

    #[test]
    fn time_between_two_waits_is_of_the_side_that_the_second_is_for() {
        // Pieces come at half of the rate at which they are taken, and four at once.
        assert_eq!(
            waits(&[(2, 0), (0, 0), (0, 0), (8, 0), (0, 0), (7, 0)], 160),
            [60, 0, 0]
        );
        // A ring that fills slowly until it is full, and then drains.
        let fills = [(5, 0), (0, 0), (0, 0), (0, 9), (0, 10), (0, 0), (0, 0)];
        assert_eq!(waits(&fills, 170), [10, 40, 20]);
        let drains = [&fills[..], &[(1, 0)]].concat();
        assert_eq!(waits(&drains, 180), [40, 40, 0]);
    }

    #[test]
    fn waits_of_both_kinds_in_one_reading_divide_it_as_they_are() {
        assert_eq!(waits(&[(0, 0), (3, 1)], 120), [15, 5, 0]);
    }

    #[test]
    fn what_comes_after_the_end_is_not_counted() {
        assert_eq!(waits(&[(0, 0), (0, 10), (10, 0)], 120), [0, 20, 0]);
        let none = Waits::of(&RingRecord::default(), Nanos(100), Nanos(90));
        assert_eq!(none, Waits::default());
    }
}
