//! How late the lab itself was.

use linerate_model::units::Nanos;
use serde::Serialize;

/// Steps in each doubling: a value is known to 1/16, 6 %.
const STEPS: u32 = 16;
const STEP_BITS: u32 = 4;
const BUCKETS: usize = (64 * STEPS) as usize;

/// A histogram of times with steps of 6 %.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    most: Nanos,
}

/// How late packets left, after the moment that the path had computed for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Lateness {
    /// Packets.
    pub packets: u64,
    /// Half of them were no later than this.
    pub median: Nanos,
    /// 99 of a hundred were no later than this.
    pub p99: Nanos,
    /// 999 of a thousand were no later than this.
    pub p999: Nanos,
    /// The latest.
    pub most: Nanos,
}

impl Histogram {
    pub(super) fn new() -> Self {
        Self {
            counts: vec![0; BUCKETS],
            total: 0,
            most: Nanos::ZERO,
        }
    }

    pub(super) fn book(&mut self, value: Nanos) {
        self.counts[bucket(value)] += 1;
        self.total += 1;
        self.most = self.most.max(value);
    }

    /// The least value that this share of all is not above; 0 of an empty one.
    pub(super) fn quantile(&self, share: f64) -> Nanos {
        let wanted = (self.total as f64 * share).ceil();
        let mut seen = 0_u64;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if *count > 0 && seen as f64 >= wanted {
                return upper(at).min(self.most);
            }
        }
        self.most
    }

    pub(super) fn summary(&self) -> Lateness {
        Lateness {
            packets: self.total,
            median: self.quantile(0.5),
            p99: self.quantile(0.99),
            p999: self.quantile(0.999),
            most: self.most,
        }
    }
}

/// Values below 16 ns have a bucket each; above, the leading bit and the four behind it choose one.
fn bucket(value: Nanos) -> usize {
    let value = value.0;
    if value < u64::from(STEPS) {
        return usize::try_from(value).unwrap_or(0);
    }
    let exponent = value.ilog2() - STEP_BITS;
    let step = (value >> exponent) & u64::from(STEPS - 1);
    usize::try_from(u64::from((exponent + 1) * STEPS) + step).unwrap_or(BUCKETS - 1)
}

/// The largest value of a bucket.
fn upper(bucket: usize) -> Nanos {
    let (exponent, step) = (bucket / STEPS as usize, bucket % STEPS as usize);
    match exponent {
        0 => Nanos(step as u64),
        exponent => {
            let next = u128::from(u64::from(STEPS) + step as u64 + 1);
            Nanos(u64::try_from((next << (exponent - 1)) - 1).unwrap_or(u64::MAX))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_meet_without_gaps() {
        for at in 0..BUCKETS - 64 {
            let top = upper(at);
            assert_eq!(bucket(top), at);
            assert_eq!(bucket(Nanos(top.0 + 1)), at + 1);
        }
        assert!(bucket(Nanos(u64::MAX)) < BUCKETS);
    }

    #[test]
    fn quantiles_are_known_to_a_step() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.summary(), Lateness::default());
        for value in 1..=1000 {
            histogram.book(Nanos(value * 1000));
        }
        let told = histogram.summary();
        assert_eq!((told.packets, told.most), (1000, Nanos(1_000_000)));
        for (got, want) in [(told.median, 500_000), (told.p99, 990_000)] {
            assert!(
                got.0 >= want && got.0 <= want + want / 16,
                "{got:?} for {want}"
            );
        }
    }
}
