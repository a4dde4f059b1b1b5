//! Counts what became of numbered datagrams, so that a duplicate never hides a loss.
//!
//! iperf3 takes every backward step for a reordered datagram and cancels a loss with it, and it
//! cannot see loss after the highest counter. Here each counter is remembered in a bitmap, and
//! loss is taken against what the sender says it sent.

/// Counters that are remembered individually: 128 KiB of bits.
pub const WINDOW_DATAGRAMS: u64 = 1 << 20;
const WORD_BITS: u64 = 64;
const WINDOW_WORDS: u64 = WINDOW_DATAGRAMS / WORD_BITS;

/// What was counted up to now.
///
/// `received = unique + duplicates + too_old + invalid`, always.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SequenceCounts {
    /// Datagrams delivered, every copy.
    pub received: u64,
    /// Counters delivered for the first time.
    pub unique: u64,
    /// Copies of a counter delivered before.
    pub duplicates: u64,
    /// First deliveries below the highest counter so far (RFC 4737, type-P-reordered).
    pub reordered: u64,
    /// Datagrams so far below the highest counter (about a million) that it is not known whether
    /// they are copies or only late. They are not in `unique`.
    pub too_old: u64,
    /// Datagrams with counter 0, which no sender uses.
    pub invalid: u64,
    /// The highest counter so far; 0 before the first.
    pub highest: u64,
}

impl SequenceCounts {
    /// Datagrams lost of `sent`: all that were never seen, up to the last one sent. Those that
    /// came too late to be distinguished count as lost.
    pub const fn lost(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.unique)
    }

    /// Counters up to the highest that were never seen: the loss where the sender's count is not
    /// known, blind to what was lost at the end.
    pub const fn missing(&self) -> u64 {
        self.lost(self.highest)
    }
}

/// Follows the counters of one stream, which start at 1. Any counter may come from a hostile
/// peer; the costliest clears 128 KiB.
#[derive(Debug, Clone)]
pub struct SequenceTracker {
    /// A ring of words: bit `c % 64` of word `c / 64 % WINDOW_WORDS` is set once `c` was seen.
    window: Box<[u64]>,
    counts: SequenceCounts,
}

impl Default for SequenceTracker {
    /// Nothing seen.
    fn default() -> Self {
        let words = slot(WINDOW_WORDS - 1) + 1;
        Self {
            window: vec![0; words].into_boxed_slice(),
            counts: SequenceCounts::default(),
        }
    }
}

impl SequenceTracker {
    /// A datagram came.
    #[inline]
    pub fn record(&mut self, counter: u64) {
        self.counts.received += 1;
        if counter > self.counts.highest {
            self.clear_up_to(counter);
            self.window[slot(counter / WORD_BITS)] |= 1 << (counter % WORD_BITS);
            self.counts.highest = counter;
            self.counts.unique += 1;
        } else {
            self.record_backward(counter);
        }
    }

    /// `count` datagrams came with the counters from `first` on, none missing: what a receive
    /// offload delivers. As [`Self::record`] for each, but cheaper where they are all new. Outside
    /// that case it takes time in proportion to `count`, which is the caller's, not the peer's.
    pub fn record_run(&mut self, first: u64, count: u64) {
        let Some(behind) = count.checked_sub(1) else {
            return;
        };
        match first.checked_add(behind) {
            Some(last) if first > self.counts.highest => self.record_new_run(first, last, count),
            _ => {
                for distance in 0..count {
                    // Beyond the largest counter there is none: 0, counted as invalid.
                    self.record(first.checked_add(distance).unwrap_or(0));
                }
            }
        }
    }

    /// A run that lies wholly above what was seen.
    fn record_new_run(&mut self, first: u64, last: u64, count: u64) {
        self.clear_up_to(last);
        let oldest_word = (last / WORD_BITS).saturating_sub(WINDOW_WORDS - 1);
        let first_kept = first.max(oldest_word * WORD_BITS);
        for word in first_kept / WORD_BITS..=last / WORD_BITS {
            let low = if word == first_kept / WORD_BITS {
                first_kept % WORD_BITS
            } else {
                0
            };
            let high = if word == last / WORD_BITS {
                last % WORD_BITS
            } else {
                WORD_BITS - 1
            };
            self.window[slot(word)] |= (u64::MAX >> (WORD_BITS - 1 - high + low)) << low;
        }
        self.counts.highest = last;
        self.counts.received = self.counts.received.saturating_add(count);
        self.counts.unique = self.counts.unique.saturating_add(count);
    }

    /// Forgets the words that `counter`, above the highest, brings into the window.
    #[inline]
    fn clear_up_to(&mut self, counter: u64) {
        let (old, new) = (self.counts.highest / WORD_BITS, counter / WORD_BITS);
        if new == old {
            return;
        }
        if new - old >= WINDOW_WORDS {
            self.window.fill(0);
        } else {
            for word in old + 1..=new {
                self.window[slot(word)] = 0;
            }
        }
    }

    /// A datagram at or below the highest counter.
    #[cold]
    fn record_backward(&mut self, counter: u64) {
        let (word, newest) = (counter / WORD_BITS, self.counts.highest / WORD_BITS);
        if counter == 0 {
            self.counts.invalid += 1;
        } else if newest - word >= WINDOW_WORDS {
            self.counts.too_old += 1;
        } else {
            let bits = &mut self.window[slot(word)];
            let bit = 1 << (counter % WORD_BITS);
            if *bits & bit == 0 {
                *bits |= bit;
                self.counts.unique += 1;
                self.counts.reordered += 1;
            } else {
                self.counts.duplicates += 1;
            }
        }
    }

    /// All counts at this moment.
    pub const fn counts(&self) -> &SequenceCounts {
        &self.counts
    }
}

/// The place of a word in the ring.
#[inline]
const fn slot(word: u64) -> usize {
    (word % WINDOW_WORDS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// The same by a set of all counters.
    #[derive(Default)]
    struct Naive {
        seen: HashSet<u64>,
        counts: SequenceCounts,
    }

    impl Naive {
        fn record(&mut self, counter: u64) {
            let counts = &mut self.counts;
            counts.received += 1;
            if counter == 0 {
                counts.invalid += 1;
            } else if counts.highest / 64 >= counter / 64 + WINDOW_WORDS {
                counts.too_old += 1;
            } else if !self.seen.insert(counter) {
                counts.duplicates += 1;
            } else {
                counts.unique += 1;
                counts.reordered += u64::from(counter < counts.highest);
                counts.highest = counts.highest.max(counter);
            }
        }
    }

    #[test]
    fn a_duplicate_does_not_hide_a_loss() {
        let mut tracker = SequenceTracker::default();
        for counter in [1, 2, 2, 2, 5, 4] {
            tracker.record(counter);
        }
        assert_eq!(tracker.counts().unique, 4);
        assert_eq!(tracker.counts().duplicates, 2);
        assert_eq!(tracker.counts().reordered, 1);
        assert_eq!(tracker.counts().missing(), 1);
        assert_eq!(tracker.counts().lost(10), 6); // the five after the last one seen are lost too
    }

    #[test]
    fn hostile_counters_are_only_counted() {
        let mut tracker = SequenceTracker::default();
        for counter in [
            0,
            u64::MAX,
            u64::MAX,
            0,
            1,
            u64::MAX - 1,
            u64::MAX - WINDOW_DATAGRAMS,
        ] {
            tracker.record(counter);
        }
        let counts = tracker.counts();
        assert_eq!(
            (counts.unique, counts.duplicates, counts.reordered),
            (2, 1, 1)
        );
        assert_eq!(
            (counts.too_old, counts.invalid, counts.highest),
            (2, 2, u64::MAX)
        );
        assert_eq!(counts.lost(10), 8);
        assert_eq!(counts.lost(0), 0);
        tracker.record_run(u64::MAX, 3);
        assert_eq!(tracker.counts().invalid, 4);
    }

    #[test]
    fn a_run_longer_than_the_window_is_counted_whole() {
        let mut tracker = SequenceTracker::default();
        tracker.record_run(1, 3 * WINDOW_DATAGRAMS);
        assert_eq!(tracker.counts().unique, 3 * WINDOW_DATAGRAMS);
        tracker.record(3 * WINDOW_DATAGRAMS - 5);
        assert_eq!(tracker.counts().duplicates, 1);
        tracker.record_run(7, 0);
        assert_eq!(tracker.counts().received, 3 * WINDOW_DATAGRAMS + 1);
    }

    /// Steps around the highest counter, with leaps.
    fn step() -> impl Strategy<Value = (i64, u64)> {
        let leap = i64::try_from(WINDOW_DATAGRAMS).unwrap();
        (
            prop_oneof![
                20 => -70_i64..130,
                5 => -2000_i64..2000,
                1 => -2 * leap..2 * leap,
                1 => leap - 200..leap + 200,
                1 => Just(i64::MAX),
                1 => Just(i64::MIN),
            ],
            0u64..200,
        )
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(steps in prop::collection::vec(step(), 1..300), runs: bool) {
            let (mut tracker, mut naive) = (SequenceTracker::default(), Naive::default());
            for (distance, count) in steps {
                let first = naive.counts.highest.saturating_add_signed(distance);
                if runs {
                    tracker.record_run(first, count);
                    (0..count).for_each(|i| naive.record(first.checked_add(i).unwrap_or(0)));
                } else {
                    tracker.record(first);
                    naive.record(first);
                }
                prop_assert_eq!(tracker.counts(), &naive.counts);
            }
        }
    }
}
