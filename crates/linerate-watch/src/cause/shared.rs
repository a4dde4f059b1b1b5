//! A link that the tests of a round divide: rate × number is the same where there are many of them.

use std::collections::BTreeMap;

use super::matrix::Matrix;
use super::robust;

/// The mean rate of a round's tests, as a share of the level, from which on the link does not limit them.
const LIMITED: f64 = 0.85;
/// Share of the rounds that the link is said to limit which have to be slow by at least half of that.
const SCORE: f64 = 0.7;

/// By test what the link adds to the logarithm of its rate: never above 0. `tests` are cells with their distance from the
/// level. `None` where the rates do not follow how many tests there are at once.
pub(super) fn link(matrix: &Matrix, tests: &[(usize, f64)]) -> Option<Vec<f64>> {
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
    let slow = limited.iter().filter(|rates| {
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        mean.ln() < effect(rates.len()) / 2.0
    });
    if (slow.count() as f64) < SCORE * limited.len() as f64 || limited.len() < 2 {
        return None;
    }
    let at_once = |cell: usize| rounds.get(&matrix.cells[cell].round).map_or(1, Vec::len);
    Some(
        tests
            .iter()
            .map(|&(cell, _)| effect(at_once(cell)))
            .collect(),
    )
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
