//! A cumulative sum of what values lack (Page, 1954): it finds a drift downward after a few values.

use serde::{Deserialize, Serialize};

/// What a value may lack without being counted, in standard deviations.
const ALLOWANCE: f64 = 0.5;
/// The sum that is a drift, in standard deviations.
const DRIFT: f64 = 5.0;
/// No value counts more than this, in standard deviations: one test beside a busy machine is no drift, nor are two.
const MOST: f64 = 3.0;

/// The sum, and where it began to grow.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Cusum {
    /// In standard deviations.
    sum: f64,
    /// Values since the sum was 0.
    values: u32,
    /// What these lack together, in the unit of the values.
    lack: f64,
}

impl Cusum {
    /// Counts a value that should be at a level with this standard deviation, above 0.
    pub fn add(&mut self, value: f64, level: f64, deviation: f64) {
        let lack = level - value;
        self.sum += (lack / deviation).min(MOST) - ALLOWANCE;
        if self.sum <= 0.0 {
            *self = Self::default();
        } else {
            self.values += 1;
            self.lack += lack.min(MOST * deviation);
        }
    }

    /// How far the values since the sum was 0 are below the level, on average, where they drifted; absent = they did not.
    pub fn drift(&self) -> Option<f64> {
        (self.sum > DRIFT).then(|| self.lack / f64::from(self.values.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drift_is_found_and_dips_are_not() {
        let mut sums = Cusum::default();
        for value in [
            100.0, 101.0, 20.0, 99.0, 101.0, 101.0, 102.0, 15.0, 10.0, 101.0,
        ] {
            sums.add(value, 100.0, 1.0);
            assert_eq!(sums.drift(), None, "{value}");
        }
        let mut sums = Cusum::default();
        let drifted = (1..20).position(|step| {
            sums.add(100.0 - 0.4 * f64::from(step), 100.0, 1.0);
            sums.drift().is_some()
        });
        assert_eq!(drifted, Some(5));
        assert!((sums.drift().unwrap() - 1.6).abs() < 1e-9, "{sums:?}");
    }
}
