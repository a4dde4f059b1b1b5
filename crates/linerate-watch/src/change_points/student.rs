//! Student's t-test of two samples.

use std::f64::consts::FRAC_2_PI;

/// Whether two samples have the same mean.
#[derive(Debug, Clone, Copy)]
pub(super) struct TTest {
    /// Their means.
    pub(super) means: [f64; 2],
    /// The probability that samples of the same mean differ as much, 0 to 1; not a number where both are the same constant.
    pub(super) chance: f64,
}

impl TTest {
    /// The two-sided test with a pooled variance, each divided by n as Otava does.
    pub(super) fn of(left: &[f64], right: &[f64]) -> Self {
        let (one, other) = (mean(left), mean(right));
        let (n, m) = (left.len() as f64, right.len() as f64);
        let degrees = left.len() + right.len() - 2;
        let chance = if degrees == 0 {
            1.0
        } else {
            let pooled = ((n - 1.0) * variance(left, one) + (m - 1.0) * variance(right, other))
                / degrees as f64;
            two_sided(
                (one - other) / (pooled * (1.0 / n + 1.0 / m)).sqrt(),
                degrees,
            )
        };
        Self {
            means: [one, other],
            chance,
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64], mean: f64) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / values.len() as f64
}

/// The probability of a larger |t| (Abramowitz and Stegun, 26.7.3 and 26.7.4); absolute error below 1e-13.
fn two_sided(t: f64, degrees: usize) -> f64 {
    if t.is_nan() {
        return f64::NAN;
    }
    let angle = (t.abs() / (degrees as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let odd = degrees % 2 == 1;
    let mut term = if odd { cosine } else { 1.0 };
    let mut sum = if degrees == 1 { 0.0 } else { term };
    let mut factor = if odd { 2.0 } else { 1.0 };
    while factor + 2.0 < degrees as f64 {
        term *= cosine * cosine * factor / (factor + 1.0);
        sum += term;
        factor += 2.0;
    }
    let within = if odd {
        FRAC_2_PI * (angle + sine * sum)
    } else {
        sine * sum
    };
    (1.0 - within).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_the_tables() {
        // Values of scipy.stats.t.sf(t, degrees) * 2.
        for (t, degrees, chance) in [
            (12.706_204_736, 1, 0.05),
            (4.302_652_730, 2, 0.05),
            (3.182_446_305, 3, 0.05),
            (2.776_445_105, 4, 0.05),
            (2.042_272_456, 30, 0.05),
            (3.645_958_635, 30, 0.001),
            (3.5, 47, 0.001_029_858_249_5),
        ] {
            let found = two_sided(t, degrees);
            assert!(
                (found / chance - 1.0).abs() < 1e-6,
                "{t} {degrees}: {found}"
            );
        }
        assert!(two_sided(f64::INFINITY, 10) < 1e-15);
    }

    #[test]
    fn two_values_say_nothing_and_equal_constants_are_no_number() {
        assert!((TTest::of(&[1.0], &[2.0]).chance - 1.0).abs() < 1e-12);
        assert!(TTest::of(&[1.0, 1.0], &[1.0, 1.0]).chance.is_nan());
        assert!(TTest::of(&[1.0, 1.0], &[2.0, 2.0]).chance < 1e-12);
    }
}
