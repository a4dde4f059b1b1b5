//! How well the mean of a few runs is known: bootstrap intervals.
//!
//! The runs are drawn again with replacement, ten thousand times, and the interval holds the middle of the means
//! that come out. Of few runs the plain percentiles are too narrow: a resample's variance is (n − 1)/n of the sample's,
//! and the normal quantile stands where Student's should. The percentiles are therefore taken further out, so that
//! of normal runs the interval is Student's (the expanded percentile interval: Hesterberg, "What Teachers Should
//! Know About the Bootstrap", The American Statistician 69, 2015, section 4.2). No interval of this kind leaves the
//! range of the runs: of n runs it holds the middle with at most 1 − 2^(1 − n), so that [`ENOUGH`] runs are needed
//! for 95 %.

use linerate_analysis::statistics::{mean, student_t};
use serde::Serialize;

use crate::random::Random;

/// Fewer runs than this have no interval.
pub const LEAST: usize = 3;
/// Of fewer runs than this the interval holds less often than 95 in 100 times: 1 − 2^(1 − 6) is the first above it.
pub const ENOUGH: usize = 6;
/// Resamples. The ends of an interval move by about a hundredth of its width from seed to seed.
const RESAMPLES: usize = 10_000;

/// A mean and the 95 % interval in which it lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// In the unit of the values, or a ratio.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// The interval of values that do not depend on one another; `None` of fewer than [`LEAST`].
    pub fn of_mean(values: &[f64], seed: u64) -> Option<Self> {
        let count = values.len();
        if count < LEAST {
            return None;
        }
        let mut random = Random::new(seed, count as u64);
        let mut means: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let drawn = (0..count).map(|_| values[random.below(count)]);
                drawn.sum::<f64>() / count as f64
            })
            .collect();
        means.sort_unstable_by(f64::total_cmp);
        let outside = tail(count) * RESAMPLES as f64;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "less than half of the resamples"
        )]
        let outside = outside as usize;
        Some(Self {
            mean: mean(values),
            low: means[outside],
            high: means[RESAMPLES - 1 - outside],
        })
    }

    /// As many times as wide, about the mean.
    #[must_use]
    pub fn widened(self, times: f64) -> Self {
        Self {
            mean: self.mean,
            low: self.mean - times * (self.mean - self.low),
            high: self.mean + times * (self.high - self.mean),
        }
    }

    /// Each figure through a rising function.
    #[must_use]
    pub fn map(self, through: impl Fn(f64) -> f64) -> Self {
        Self {
            mean: through(self.mean),
            low: through(self.low),
            high: through(self.high),
        }
    }

    /// Half of its width.
    pub fn half(self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// The share of resamples beyond each end: Φ(−t √(n / (n − 1))) with Student's t of n − 1 degrees.
fn tail(count: usize) -> f64 {
    let count = count as f64;
    normal_below(-student_t(count - 1.0) * (count / (count - 1.0)).sqrt())
}

/// Φ for z ≤ 0, within 7.5e-8 (Abramowitz and Stegun, 26.2.17).
fn normal_below(z: f64) -> f64 {
    let k = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let polynomial = k
        * (0.319_381_530
            + k * (-0.356_563_782
                + k * (1.781_477_937 + k * (-1.821_255_978 + k * 1.330_274_429))));
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    (density * polynomial).max(0.0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Normal numbers (Box and Muller).
    pub(crate) fn normal(seed: u64) -> impl Iterator<Item = f64> {
        let mut random = Random::new(seed, 99);
        std::iter::repeat_with(move || {
            let mut unit = || ((random.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            (-2.0 * unit().ln()).sqrt() * (2.0 * std::f64::consts::PI * unit()).cos()
        })
    }

    #[test]
    fn the_normal_distribution_is_the_tables() {
        for (z, share) in [
            (0.0, 0.5),
            (-1.0, 0.158_655),
            (-1.959_964, 0.025),
            (-3.0, 0.001_350),
        ] {
            assert!((normal_below(z) - share).abs() < 1e-6, "{z}");
        }
    }

    #[test]
    fn of_normal_runs_the_interval_holds_as_often_as_it_says() {
        for (count, least, most) in [(6, 0.90, 0.98), (15, 0.92, 0.98)] {
            let held = (0..400)
                .filter(|seed| {
                    let values: Vec<f64> = normal(*seed).take(count).map(|z| 5.0 + z).collect();
                    let interval = Interval::of_mean(&values, *seed).unwrap();
                    interval.low <= 5.0 && 5.0 <= interval.high
                })
                .count();
            let share = held as f64 / 400.0;
            assert!((least..=most).contains(&share), "{count}: {share}");
        }
    }

    #[test]
    fn two_runs_have_no_interval_and_equal_runs_have_no_width() {
        assert_eq!(Interval::of_mean(&[1.0, 2.0], 1), None);
        let flat = Interval::of_mean(&[3.0; 5], 1).unwrap();
        assert_eq!((flat.low, flat.mean, flat.high), (3.0, 3.0, 3.0));
    }
}
