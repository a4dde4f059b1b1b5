//! A link that the tests of a round divide: rate × number is the same where there are many of them.

use std::collections::BTreeMap;

use super::matrix::Matrix;
use super::robust;

/// The mean rate of a round's tests, as a share of the level, from which on the link does not limit them.
const LIMITED: f64 = 0.85;
/// Share of the rounds that the link is said to limit which have to be slow by at least half of that.
const SCORE: f64 = 0.7;

/// What a link does to a test.
pub(super) struct Limit {
    /// What it adds to the logarithm of the rate: never above 0.
    pub(super) effect: f64,
    /// The distance of the mean of the round's tests from the level, where the link limits them: they divide the link as
    /// they like. Else the test's own distance.
    pub(super) distance: f64,
}

/// By test what the link does to it. `tests` are cells with their distance from the
/// level. `None` where the rates do not follow how many tests there are at once.
pub(super) fn link(matrix: &Matrix, tests: &[(usize, f64)]) -> Option<Vec<Limit>> {
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for &(cell, distance) in tests {
        rounds
            .entry(matrix.cells[cell].round)
            .or_default()
            .push(distance.exp());
    }
    let capacity = capacity(rounds.values())?;
    let effect = |at_once: usize| (capacity / at_once as f64).ln().min(0.0);
    let limited: Vec<&Vec<f64>> = rounds
        .values()
        .filter(|rates| effect(rates.len()) < LIMITED.ln())
        .collect();
    let slow = limited
        .iter()
        .filter(|rates| mean(rates) < effect(rates.len()) / 2.0);
    if (slow.count() as f64) < SCORE * limited.len() as f64 || limited.len() < 2 {
        return None;
    }
    let limit = |&(cell, distance): &(usize, f64)| {
        let rates = rounds
            .get(&matrix.cells[cell].round)
            .map_or(&[][..], Vec::as_slice);
        let effect = effect(rates.len().max(1));
        let limited = effect < LIMITED.ln();
        Limit {
            effect,
            distance: if limited { mean(rates) } else { distance },
        }
    };
    Some(tests.iter().map(limit).collect())
}

/// The logarithm of the mean.
fn mean(rates: &[f64]) -> f64 {
    (rates.iter().sum::<f64>() / rates.len() as f64).ln()
}

/// The sum where it stopped growing, in the unit of the rates: the median over the slow rounds, of which there are two and
/// one of them has several tests.
pub(super) fn capacity<'a>(rounds: impl Iterator<Item = &'a Vec<f64>>) -> Option<f64> {
    let slow = rounds.filter_map(|rates| {
        let sum: f64 = rates.iter().sum();
        (sum < LIMITED * rates.len() as f64).then_some((rates.len(), sum))
    });
    let slow: Vec<(usize, f64)> = slow.collect();
    let several = slow.iter().any(|round| round.0 >= 2);
    let mut sums: Vec<f64> = slow.iter().map(|round| round.1).collect();
    (several && sums.len() >= 2)
        .then(|| robust::midpoint(&mut sums))
        .flatten()
}
