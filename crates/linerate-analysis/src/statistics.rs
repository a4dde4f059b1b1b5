//! The plateau of a run and how well its mean is known.
//!
//! *Truncation*: MSER-5 (White, 1997): the samples are grouped in batches of five, and the beginning is
//! cut where the remaining batches' standard error is least. *Interval*: batch means are correlated,
//! so the number of independent samples is the number of samples divided by the integrated
//! autocorrelation time (Sokal's self-consistent window, c = 5), and the half-width is Student's t times
//! the standard error with that number.
//!
//! *Steady* means: the cut lies in the first half; at least ten samples remain; and the two halves of
//! the remainder differ by no more than 10 % of the mean or by what their own intervals explain. A cut
//! in the second half that separates levels within 10 % of each other is no late settling but a small
//! step, which MSER-5 finds however small it is: then the best cut of the first half is taken.

use linerate_model::units::whole;

/// Samples in a batch of MSER-5.
pub const BATCH: usize = 5;
/// The least number of samples that a mean is computed from.
pub const LEAST_SAMPLES: usize = 10;
/// A cut in the second half that leaves fewer batches than this is not considered: at the end of a flat run a
/// few batches are alike by chance. A short run's ramp is cut all the same.
const LEAST_BATCHES: f64 = 5.0;
/// Of a run that ended because its interval was narrow the interval is this many times as wide: see
/// [`crate::precision`].
pub const LOOKED_AT: f64 = 1.15;
/// Two halves of a plateau may differ by this share of the mean.
pub const HALVES_MAY_DIFFER: f64 = 0.10;

/// A mean with its interval of confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// In the unit of the samples.
    pub mean: f64,
    /// Lower end of the 95 % interval, never below zero.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// Number of independent samples that the interval rests on.
    pub independent: f64,
}

impl Estimate {
    /// The interval of a run whose length was decided by its interval.
    #[must_use]
    pub fn looked_at(self) -> Self {
        let half = (self.high - self.mean) * LOOKED_AT;
        Self {
            low: (self.mean - half).max(0.0),
            high: self.mean + half,
            ..self
        }
    }
}

/// The steady part of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plateau {
    /// The first sample that belongs to it.
    pub from: usize,
    /// Mean and interval over it.
    pub estimate: Estimate,
    /// Why the run is not called steady; `None` = it is.
    pub unsteady: Option<Unsteady>,
}

/// Why a run is not steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsteady {
    /// Too few samples to tell.
    TooShort,
    /// The rate settled, if at all, only in the second half.
    LateSettling,
    /// The halves of the plateau differ.
    HalvesDiffer,
}

impl Unsteady {
    /// In words.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::TooShort => "the run is too short to separate ramp and plateau",
            Self::LateSettling => "the rate had not settled in the first half of the run",
            Self::HalvesDiffer => "the two halves of the plateau differ by more than 10 %",
        }
    }
}

/// The cut of MSER-5, in samples, over the whole run. `None` with fewer than two batches.
pub fn mser5(samples: &[f64]) -> Option<usize> {
    mser5_within(samples, samples.len())
}

/// The best cut of MSER-5 among those of at most `most` samples.
fn mser5_within(samples: &[f64], most: usize) -> Option<usize> {
    let batches: Vec<f64> = samples.chunks_exact(BATCH).map(mean).collect();
    if batches.len() < 2 {
        return None;
    }
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (cut, batch) in batches.iter().enumerate().rev() {
        sum += batch;
        squares += batch * batch;
        let left = (batches.len() - cut) as f64;
        let late = cut * BATCH * 2 > samples.len();
        if (late && left < LEAST_BATCHES) || cut * BATCH > most {
            continue;
        }
        let spread = (squares - sum * sum / left).max(0.0);
        let score = spread / (left * left);
        // At equal score the longer plateau is the better one.
        if score <= best.0 {
            best = (score, cut);
        }
    }
    Some(best.1 * BATCH)
}

/// The steady part of `samples`. `None` where there is no sample at all.
pub fn plateau(samples: &[f64]) -> Option<Plateau> {
    if samples.is_empty() {
        return None;
    }
    let whole = |unsteady| Plateau {
        from: 0,
        estimate: estimate(samples),
        unsteady: Some(unsteady),
    };
    if samples.len() < LEAST_SAMPLES {
        return Some(whole(Unsteady::TooShort));
    }
    let Some(cut) = mser5(samples) else {
        return Some(whole(Unsteady::TooShort));
    };
    let mut cut = cut;
    if cut * 2 > samples.len() {
        let (before, after) = (&samples[..cut], &samples[cut..]);
        let difference = (mean(before) - mean(after)).abs();
        let explained = 2.0 * (standard_error(before) + standard_error(after));
        if difference > HALVES_MAY_DIFFER * mean(after) && difference > explained {
            return Some(whole(Unsteady::LateSettling));
        }
        cut = mser5_within(samples, samples.len() / 2).unwrap_or(0);
    }
    let rest = &samples[cut..];
    if rest.len() < LEAST_SAMPLES {
        return Some(whole(Unsteady::TooShort));
    }
    let (first, second) = rest.split_at(rest.len() / 2);
    let (first, second, all) = (estimate(first), estimate(second), estimate(rest));
    let difference = (first.mean - second.mean).abs();
    let explained = (first.high - first.mean) + (second.high - second.mean);
    let differ = difference > HALVES_MAY_DIFFER * all.mean && difference > explained;
    Some(Plateau {
        from: cut,
        estimate: all,
        unsteady: differ.then_some(Unsteady::HalvesDiffer),
    })
}

/// Mean and 95 % interval of a stationary, correlated series.
pub fn estimate(samples: &[f64]) -> Estimate {
    let average = mean(samples);
    let count = samples.len() as f64;
    if samples.len() < 2 {
        return Estimate {
            mean: average,
            low: 0.0,
            high: f64::INFINITY,
            independent: count,
        };
    }
    let independent = (count / autocorrelation_time(samples, average)).clamp(1.0, count);
    let half = student_t(independent - 1.0) * deviation(samples) / independent.sqrt();
    Estimate {
        mean: average,
        low: (average - half).max(0.0),
        high: average + half,
        independent,
    }
}

/// Mean and 95 % interval of measurements that do not depend on one another, such as the rates of several runs.
/// One measurement says nothing of how far the next would be from it: its interval has no upper end.
pub fn estimate_of_runs(rates: &[f64]) -> Estimate {
    let (average, count) = (mean(rates), rates.len() as f64);
    let half = if rates.len() < 2 {
        f64::INFINITY
    } else {
        student_t(count - 1.0) * standard_error(rates)
    };
    Estimate {
        mean: average,
        low: (average - half).max(0.0),
        high: average + half,
        independent: count,
    }
}

/// The middle value (the mean of the two middle ones). `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The value below which a share of the values lies, 0 to 1. `None` of nothing.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let place = usize::try_from(whole(share * last as f64)).ok()?;
    sorted.get(place).copied()
}

/// The standard deviation of a sample (n − 1); zero of fewer than two values.
pub fn deviation(values: &[f64]) -> f64 {
    let average = mean(values);
    let squares: f64 = values.iter().map(|value| (value - average).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0).max(1.0)).sqrt()
}

/// The arithmetic mean; zero of nothing.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        0.0
    } else {
        values.iter().sum::<f64>() / values.len() as f64
    }
}

/// Standard error of the mean of independent samples.
fn standard_error(samples: &[f64]) -> f64 {
    deviation(samples) / (samples.len() as f64).max(1.0).sqrt()
}

/// 1 + 2 Σ ρ(k), summed up to the first lag that is five times the sum so far (Sokal).
fn autocorrelation_time(samples: &[f64], average: f64) -> f64 {
    let centred: Vec<f64> = samples.iter().map(|sample| sample - average).collect();
    let power: f64 = centred.iter().map(|value| value * value).sum();
    if power <= 0.0 {
        return 1.0;
    }
    let mut time = 1.0;
    for lag in 1..samples.len() / 2 {
        let product: f64 = centred
            .iter()
            .zip(&centred[lag..])
            .map(|(a, b)| a * b)
            .sum();
        time += 2.0 * product / power;
        if lag as f64 >= 5.0 * time {
            break;
        }
    }
    time.max(1.0)
}

/// Student's t for a two-sided 95 % interval, by Cornish–Fisher expansion around the normal quantile
/// (error below 1 % from 3 degrees of freedom on; tabled below).
pub fn student_t(degrees: f64) -> f64 {
    if degrees < 1.5 {
        return 12.706;
    }
    if degrees < 2.5 {
        return 4.303;
    }
    let z: f64 = 1.959_964;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / degrees + second / degrees.powi(2) + third / degrees.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small linear congruential generator: tests need no better noise.
    fn noise(seed: u64) -> impl Iterator<Item = f64> {
        let mut state = seed;
        std::iter::repeat_with(move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1_u32 << 31) - 0.5
        })
    }

    #[test]
    fn a_ramp_is_cut_off() {
        let samples: Vec<f64> = noise(1)
            .take(500)
            .enumerate()
            .map(|(i, n)| if i < 50 { i as f64 * 2.0 } else { 100.0 + n })
            .collect();
        let plateau = plateau(&samples).unwrap();
        assert!((45..=60).contains(&plateau.from), "{}", plateau.from);
        assert!((plateau.estimate.mean - 100.0).abs() < 0.2);
        assert_eq!(plateau.unsteady, None);
    }

    #[test]
    fn a_run_that_keeps_climbing_is_not_steady() {
        let samples: Vec<f64> = (0..300).map(f64::from).collect();
        assert!(plateau(&samples).unwrap().unsteady.is_some());
    }

    #[test]
    fn a_step_in_the_middle_is_not_steady() {
        let samples: Vec<f64> = noise(3)
            .take(400)
            .enumerate()
            .map(|(i, n)| n + if i < 260 { 100.0 } else { 40.0 })
            .collect();
        assert!(plateau(&samples).unwrap().unsteady.is_some());
    }

    #[test]
    fn a_small_late_step_is_steady_and_the_ramp_is_still_cut() {
        let level = |i: usize| {
            if i < 30 {
                i as f64 * 3.3
            } else if i < 260 {
                100.0
            } else {
                97.0
            }
        };
        let samples: Vec<f64> = noise(3)
            .take(400)
            .enumerate()
            .map(|(i, n)| n + level(i))
            .collect();
        assert!(mser5(&samples).unwrap() > 200);
        let plateau = plateau(&samples).unwrap();
        assert_eq!(plateau.unsteady, None);
        assert!((25..=45).contains(&plateau.from), "{}", plateau.from);
    }

    #[test]
    fn a_flat_run_is_not_cut_near_its_end() {
        for seed in 0..200_u64 {
            let mut samples: Vec<f64> = noise(seed * 31 + 7)
                .skip(20)
                .take(200)
                .map(|n| 22.2 + n)
                .collect();
            // Four batches that happen to be quite alike, a shade higher.
            for sample in &mut samples[180..] {
                *sample = 22.3;
            }
            let cut = mser5(&samples).unwrap();
            assert!(samples.len() - cut >= 5 * BATCH, "seed {seed}: {cut}");
            let plateau = plateau(&samples).unwrap();
            assert_eq!(plateau.unsteady, None, "seed {seed}");
            assert!((plateau.estimate.mean - 22.2).abs() < 0.2, "seed {seed}");
        }
    }

    #[test]
    fn of_few_batches_a_ramp_is_cut_and_a_late_step_is_not_believed() {
        let step = |at: usize, length: usize| -> Vec<f64> {
            (0..length)
                .map(|i| if i < at { 50.0 } else { 100.0 })
                .collect()
        };
        assert_eq!(mser5(&step(5, 20)), Some(5));
        let found = plateau(&step(5, 20)).unwrap();
        assert!(found.unsteady.is_none() && (found.estimate.mean - 100.0).abs() < 1e-9);
        // Ten samples are left behind a ramp of half a short run …
        assert_eq!(mser5(&step(10, 20)), Some(10));
        // … and what comes in its last quarter is no plateau.
        assert_eq!(mser5(&step(15, 20)), Some(0));
    }

    #[test]
    fn the_interval_covers_the_truth_about_as_often_as_it_says() {
        for (memory, least) in [(0.0, 0.91), (0.8, 0.86)] {
            let mut covered = 0;
            for seed in 0..400_u64 {
                let mut value = 0.0;
                let samples: Vec<f64> = noise(seed * 7919 + 5)
                    .skip(20)
                    .take(400)
                    .map(|n| {
                        value = memory * value + n;
                        50.0 + value
                    })
                    .collect();
                let estimate = estimate(&samples);
                covered += usize::from(estimate.low <= 50.0 && 50.0 <= estimate.high);
            }
            let share = covered as f64 / 400.0;
            assert!((least..=0.99).contains(&share), "memory {memory}: {share}");
        }
    }

    #[test]
    fn runs_are_independent_and_one_says_nothing_of_the_next() {
        let three = estimate_of_runs(&[10.0, 11.0, 12.0]);
        // Student's t of two degrees, 4.303, times 1/√3.
        assert!((three.high - 11.0 - 2.4843).abs() < 1e-3, "{three:?}");
        assert!(estimate_of_runs(&[10.0]).high.is_infinite());
    }

    #[test]
    fn students_t_matches_the_tables() {
        for (degrees, table) in [
            (3.0, 3.182),
            (5.0, 2.571),
            (10.0, 2.228),
            (30.0, 2.042),
            (1000.0, 1.962),
        ] {
            assert!(
                (student_t(degrees) / table - 1.0).abs() < 0.01,
                "{degrees}: {}",
                student_t(degrees)
            );
        }
    }

    #[test]
    fn a_flat_line_is_known_exactly() {
        let plateau = plateau(&[5.0; 100]).unwrap();
        assert_eq!(
            (plateau.from, plateau.estimate.low, plateau.estimate.high),
            (0, 5.0, 5.0)
        );
    }
}
