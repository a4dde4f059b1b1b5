//! Latencies, counted in buckets: memory that does not grow with their number.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Buckets of each power of two: a bucket is at most 1/64 wide.
const PARTS_BITS: u32 = 6;
const PARTS: u64 = 1 << PARTS_BITS;
/// The bucket of the longest time that 64 bits hold.
const LAST: u64 = (65 - PARTS_BITS as u64) * PARTS - 1;

/// Counts of latencies in logarithmic buckets, each at most 1.6 % wide, as fio's; below 64 ns they are exact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Latencies {
    counts: Vec<u64>,
    count: u64,
    sum_ns: u128,
    max: Nanos,
}

impl Latencies {
    /// Counts one.
    pub fn add(&mut self, latency: Nanos) {
        self.add_many(latency, 1);
    }

    /// Counts so many that took equally long.
    pub fn add_many(&mut self, latency: Nanos, count: u64) {
        let at = bucket(latency.0);
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] = self.counts[at].saturating_add(count);
        self.count = self.count.saturating_add(count);
        let sum = u128::from(latency.0) * u128::from(count);
        self.sum_ns = self.sum_ns.saturating_add(sum);
        self.max = self.max.max(latency);
    }

    /// Counts all that another one has counted.
    pub fn add_all(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max = self.max.max(other.max);
    }

    /// How many.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The longest, to the nanosecond; zero of none.
    pub const fn max(&self) -> Nanos {
        self.max
    }

    /// The mean; `None` of none.
    pub fn mean(&self) -> Option<Nanos> {
        let mean = self.sum_ns.checked_div(u128::from(self.count))?;
        Some(Nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// The mean of the shortest ones, as many as this share of all, 0 to 1; each counts as the middle of its bucket. `None`
    /// where that is none.
    pub fn trimmed_mean(&self, share: f64) -> Option<Nanos> {
        let kept = crate::units::whole((share * self.count as f64).round()).min(self.count);
        let mut left = kept;
        let mut sum = 0_u128;
        for (at, count) in self.counts.iter().enumerate() {
            let taken = left.min(*count);
            let highest = upper(at).min(self.max.0);
            let middle = lower(at) + highest.saturating_sub(lower(at)) / 2;
            sum += u128::from(taken) * u128::from(middle);
            left -= taken;
        }
        let mean = sum.checked_div(u128::from(kept))?;
        Some(Nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// The latency that this share of them does not exceed, 0 to 1: the upper end of its bucket, and never more than the
    /// longest. `None` of none.
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        let wanted = crate::units::whole((share * self.count as f64).ceil()).max(1);
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(Nanos(upper(found)).min(self.max))
    }
}

/// The bucket of a value.
pub(crate) fn bucket(value: u64) -> usize {
    let at = if value < PARTS {
        value
    } else {
        // The power of two, and the bits behind the first one.
        let power = u64::from(value.ilog2());
        let shift = power - u64::from(PARTS_BITS);
        (shift + 1) * PARTS + ((value >> shift) - PARTS)
    };
    // At most [`LAST`].
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// The lowest value of a bucket.
pub(crate) fn lower(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PARTS {
        return bucket;
    }
    let shift = bucket / PARTS - 1;
    (PARTS + bucket % PARTS) << shift
}

fn upper(bucket: usize) -> u64 {
    if bucket as u64 >= LAST {
        u64::MAX
    } else {
        lower(bucket + 1) - 1
    }
}

/// How a document has them: the buckets in which there are any, by their lowest value.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// Sum, ns; one that has more than 64 bits is cut there.
    sum_ns: u64,
    max_ns: Nanos,
    /// Lowest value, ns, and count.
    buckets: Vec<(u64, u64)>,
}

impl From<Latencies> for Stored {
    fn from(all: Latencies) -> Self {
        let buckets = all.counts.iter().enumerate();
        Self {
            sum_ns: u64::try_from(all.sum_ns).unwrap_or(u64::MAX),
            max_ns: all.max,
            buckets: buckets
                .filter(|(_, count)| **count > 0)
                .map(|(at, count)| (lower(at), *count))
                .collect(),
        }
    }
}

impl From<Stored> for Latencies {
    fn from(stored: Stored) -> Self {
        let mut all = Self {
            sum_ns: stored.sum_ns.into(),
            max: stored.max_ns,
            ..Self::default()
        };
        for (lowest, count) in stored.buckets {
            let at = bucket(lowest);
            if at >= all.counts.len() {
                all.counts.resize(at + 1, 0);
            }
            all.counts[at] = all.counts[at].saturating_add(count);
            all.count = all.count.saturating_add(count);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_its_bucket_and_buckets_are_narrow() {
        let near = |power: u32| [0, 1, 2].map(|more| (1_u64 << power) - 1 + more);
        for value in (0..63)
            .flat_map(near)
            .chain([12_345, 999_999_999, u64::MAX])
        {
            let at = bucket(value);
            assert!(lower(at) <= value && value <= upper(at), "{value}");
            let width = (upper(at) - lower(at)) as f64;
            assert!(width <= lower(at) as f64 / 64.0, "{value}: {width}");
        }
        assert_eq!(bucket(u64::MAX) as u64, LAST);
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut all = Latencies::default();
        assert_eq!((all.quantile(0.5), all.mean()), (None, None));
        for value in 1..=10_000 {
            all.add(Nanos(value * 1000));
        }
        for (share, value) in [(0.5, 5e6), (0.99, 9.9e6), (0.999, 9.99e6)] {
            let found = all.quantile(share).unwrap().0 as f64;
            assert!(
                (0.0..0.016).contains(&(found / value - 1.0)),
                "{share}: {found}"
            );
        }
        // The shortest 95 % end with 9.5 ms.
        for (share, value) in [(1.0, 5_000_500.0), (0.95, 4_750_500.0), (0.5, 2_500_500.0)] {
            let found = all.trimmed_mean(share).unwrap().0 as f64;
            assert!((found / value - 1.0).abs() < 0.008, "{share}: {found}");
        }
        assert_eq!(Latencies::default().trimmed_mean(0.95), None);
        assert_eq!(all.quantile(1.0), Some(Nanos(10_000_000)));
        assert_eq!(all.mean(), Some(Nanos(5_000_500)));
        let mut twice = all.clone();
        twice.add_all(&all);
        assert_eq!((twice.count(), twice.mean()), (20_000, all.mean()));
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<Latencies>(&text).unwrap(), all);
    }
}
