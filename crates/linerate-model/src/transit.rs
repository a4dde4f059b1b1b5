//! How long datagrams were on their way, as far as a receiver alone can tell: the difference between two clocks that
//! nobody has compared yet.
//!
//! A receiver keeps a histogram for each part of the test, above the lowest difference of that part. Once the offset and
//! the drift of the clocks are known, each part is shifted by its own offset, and nothing of the resolution is lost.

use serde::{Deserialize, Serialize};

use crate::latency::{bucket, lower};
use crate::units::Nanos;

/// A cell of 4.096 µs: the stamp in a datagram counts microseconds. Buckets hold one cell each up to 262 µs, and are at
/// most 1/64 wide beyond.
const CELL_BITS: u32 = 12;
/// Buckets of a histogram, at most: the last one holds all that is more than 18 minutes above the lowest.
pub const MOST_BUCKETS: usize = 1473;

/// Entries of the histograms of a stream, at most.
pub const MOST_ENTRIES: usize = 16_384;

/// What the datagrams of one stream took, at its receiver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transits {
    /// Datagrams received in the omitted part, which no slice holds.
    #[serde(default)]
    pub omitted: u64,
    /// The parts of the test in which datagrams came, in the order of time.
    pub slices: Vec<TransitSlice>,
}

/// Arrival on the receiver's clock minus the stamp in the datagram, over a part of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransitSlice {
    /// The first arrival, the receiver's clock.
    pub from_ns: Nanos,
    /// The last arrival.
    pub to_ns: Nanos,
    /// The lowest difference, exact.
    pub least_ns: i64,
    /// How far the largest is above it, exact.
    pub most_above_ns: u64,
    /// The sum of how far each is above it, exact.
    pub sum_above_ns: u64,
    /// Datagrams by how far they are above it: the lowest value of the bucket, ns, and their number.
    pub above: Vec<[u64; 2]>,
}

impl Transits {
    /// Datagrams of all slices.
    pub fn count(&self) -> u64 {
        let counts = self.slices.iter().map(TransitSlice::count);
        counts.fold(0, u64::saturating_add)
    }

    /// Entries of all histograms together.
    pub fn entries(&self) -> usize {
        self.slices.iter().map(|slice| slice.above.len()).sum()
    }

    /// Makes one slice of them all where they are more, or have more entries, than that. Of a peer, whose entries may repeat, a
    /// slice has no more than [`MOST_BUCKETS`] afterwards.
    pub fn bound(&mut self, most: usize) {
        self.slices.retain(|slice| !slice.above.is_empty());
        if self.slices.len() > most || self.entries() > most {
            *self = self.merged(usize::MAX);
            for slice in &mut self.slices {
                slice.in_order();
            }
        }
    }

    /// The same in fewer slices: so many neighbours become one.
    #[must_use]
    pub fn merged(&self, neighbours: usize) -> Self {
        let merge = |slices: &[TransitSlice]| {
            let (first, others) = slices.split_first()?;
            let mut whole = first.clone();
            for slice in others {
                whole.absorb(slice);
            }
            Some(whole)
        };
        let chunks = self.slices.chunks(neighbours.max(1));
        Self {
            omitted: self.omitted,
            slices: chunks.filter_map(merge).collect(),
        }
    }
}

impl TransitSlice {
    /// Its datagrams.
    pub fn count(&self) -> u64 {
        let counts = self.above.iter().map(|[_, count]| *count);
        counts.fold(0, u64::saturating_add)
    }

    /// How far datagrams are above the lowest, ns, and how many are: the middle of each bucket, and none beyond the largest.
    pub fn values(&self) -> impl Iterator<Item = (u64, u64)> {
        let most = self.most_above_ns;
        let entries = self.above.iter();
        entries.map(move |[lowest, count]| (middle(bucket_above(*lowest)).min(most), *count))
    }

    /// Takes in the datagrams of another slice of the same stream.
    pub fn absorb(&mut self, other: &Self) {
        let least = self.least_ns.min(other.least_ns);
        let mut all = self.buckets_above(least);
        all.extend(other.buckets_above(least));
        all.sort_unstable_by_key(|(at, _)| *at);
        let sum = |slice: &Self| {
            let beyond = u128::from(slice.least_ns.abs_diff(least));
            u128::from(slice.sum_above_ns) + beyond * u128::from(slice.count())
        };
        let sum = sum(self).saturating_add(sum(other));
        let most = |slice: &Self| {
            let beyond = slice.least_ns.abs_diff(least);
            slice.most_above_ns.saturating_add(beyond)
        };
        *self = Self {
            from_ns: self.from_ns.min(other.from_ns),
            to_ns: self.to_ns.max(other.to_ns),
            least_ns: least,
            most_above_ns: most(self).max(most(other)),
            sum_above_ns: u64::try_from(sum).unwrap_or(u64::MAX),
            above: entries(all),
        };
    }

    /// Its entries in the order of buckets, each bucket once.
    fn in_order(&mut self) {
        let mut all = self.buckets_above(self.least_ns);
        all.sort_unstable_by_key(|(at, _)| *at);
        self.above = entries(all);
    }

    /// The buckets and counts, above a lowest value that is not higher than its own.
    fn buckets_above(&self, least: i64) -> Vec<(usize, u64)> {
        let beyond = self.least_ns.abs_diff(least);
        if beyond == 0 {
            let same = self.above.iter();
            return same
                .map(|[lowest, count]| (bucket_above(*lowest), *count))
                .collect();
        }
        self.values()
            .map(|(above, count)| (bucket_above(above.saturating_add(beyond)), count))
            .collect()
    }
}

/// The bucket of a value above the lowest, below [`MOST_BUCKETS`].
pub fn bucket_above(above_ns: u64) -> usize {
    bucket(above_ns >> CELL_BITS).min(MOST_BUCKETS - 1)
}

/// The lowest value of a bucket, ns.
pub fn lowest(bucket: usize) -> u64 {
    lower(bucket) << CELL_BITS
}

/// The value in the middle of a bucket, ns.
pub fn middle(bucket: usize) -> u64 {
    u64::midpoint(lowest(bucket), lowest(bucket + 1))
}

/// Counts by bucket, in the order of buckets, as a record has them; those of the same bucket together.
fn entries(sorted: Vec<(usize, u64)>) -> Vec<[u64; 2]> {
    let mut entries: Vec<[u64; 2]> = Vec::with_capacity(sorted.len());
    for (at, count) in sorted {
        let lowest = lowest(at);
        match entries.last_mut() {
            Some(last) if last[0] == lowest => last[1] = last[1].saturating_add(count),
            _ => entries.push([lowest, count]),
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_says_is_bounded_and_keeps_its_count() {
        let hostile = TransitSlice {
            above: [[0, 1], [1 << 40, 2]].repeat(10_000),
            ..slice(5, &[7])
        };
        let none = TransitSlice {
            above: Vec::new(),
            ..slice(5, &[7])
        };
        for slices in [
            vec![hostile.clone()],
            vec![hostile.clone(), slice(9, &[3, 4])],
        ] {
            let mut transits = Transits { omitted: 1, slices };
            transits.slices.extend(vec![none.clone(); 50]);
            let count = transits.count();
            transits.bound(100);
            assert_eq!(transits.slices.len(), 1);
            assert!(transits.entries() <= 4, "{:?}", transits.slices);
            assert_eq!((transits.count(), transits.omitted), (count, 1));
        }
        let mut few = Transits {
            omitted: 0,
            slices: vec![slice(1, &[1, 2]), slice(2, &[3])],
        };
        let before = few.clone();
        few.bound(100);
        assert_eq!(few, before);
    }

    fn slice(at: u64, differences: &[i64]) -> TransitSlice {
        let least = *differences.iter().min().unwrap();
        let above = || differences.iter().map(|value| value.abs_diff(least));
        let mut buckets: Vec<_> = above().map(|above| (bucket_above(above), 1)).collect();
        buckets.sort_unstable();
        TransitSlice {
            from_ns: Nanos(at),
            to_ns: Nanos(at + 1),
            least_ns: least,
            most_above_ns: above().max().unwrap(),
            sum_above_ns: above().sum(),
            above: entries(buckets),
        }
    }

    #[test]
    fn a_bucket_is_a_cell_or_a_64th_wide_and_all_values_have_one() {
        let values =
            (0..64).flat_map(|power| [1_u64 << power, (1 << power) + 1, u64::MAX >> power]);
        for value in values.filter(|value| *value < 1 << 40) {
            let at = bucket_above(value);
            let width = lowest(at + 1) - lowest(at);
            assert!(lowest(at) <= value && value < lowest(at + 1), "{value}");
            assert!(width <= (value / 64).max(4096), "{value}: {width}");
            assert_eq!(bucket_above(lowest(at)), at);
        }
        assert_eq!(bucket_above(u64::MAX), MOST_BUCKETS - 1);
        assert!(middle(MOST_BUCKETS - 1) > lowest(MOST_BUCKETS - 1));
    }

    #[test]
    fn merging_loses_no_datagram_and_no_exact_figure() {
        let clock_apart = 3_000_000_000_000_i64;
        let late: Vec<i64> = (0..500).map(|n| clock_apart + 90_000 + n * 7_000).collect();
        let early: Vec<i64> = (0..300).map(|n| clock_apart - 200_000 + n * 900).collect();
        let both: Vec<i64> = late.iter().chain(&early).copied().collect();
        let all = Transits {
            omitted: 7,
            slices: vec![
                slice(10, &late),
                slice(20, &early),
                slice(30, &[clock_apart]),
            ],
        };
        let merged = all.merged(2);
        assert_eq!((merged.omitted, merged.slices.len()), (7, 2));
        assert_eq!(merged.count(), all.count());
        let (found, exact) = (&merged.slices[0], slice(10, &both));
        assert_eq!((found.from_ns, found.to_ns), (Nanos(10), Nanos(21)));
        assert_eq!(found.least_ns, exact.least_ns);
        assert_eq!(found.most_above_ns, exact.most_above_ns);
        assert_eq!(found.sum_above_ns, exact.sum_above_ns);
        // Each value is where it was, by half a bucket of then and half of now.
        let mean = |slice: &TransitSlice| {
            let sum: u64 = slice.values().map(|(value, count)| value * count).sum();
            sum as f64 / slice.count() as f64
        };
        let off = mean(found) / (exact.sum_above_ns as f64 / exact.count() as f64) - 1.0;
        assert!(off.abs() < 0.01, "{off}");
        assert_eq!(all.merged(usize::MAX).slices.len(), 1);
        assert_eq!(Transits::default().merged(0).count(), 0);
    }

    #[test]
    fn what_a_peer_says_overflows_nothing() {
        let wild = TransitSlice {
            from_ns: Nanos(u64::MAX),
            to_ns: Nanos(0),
            least_ns: i64::MIN,
            most_above_ns: u64::MAX,
            sum_above_ns: u64::MAX,
            above: vec![[u64::MAX, u64::MAX], [0, u64::MAX], [5, 1]],
        };
        let other = TransitSlice {
            least_ns: i64::MAX,
            ..wild.clone()
        };
        let both = Transits {
            omitted: u64::MAX,
            slices: vec![wild, other],
        };
        let merged = both.merged(2);
        assert_eq!(merged.count(), u64::MAX);
        assert!(merged.slices[0].values().all(|(_, count)| count > 0));
    }
}
