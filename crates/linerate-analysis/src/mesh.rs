//! What several tests of one pair of a mesh come to.

use linerate_model::mesh::{MeshOutcome, MeshTest};

use crate::statistics::median;

/// Goodput of a test through which data passed, bit/s.
pub fn goodput(test: &MeshTest) -> Option<f64> {
    match &test.outcome {
        MeshOutcome::Measured(figures) => {
            Some(figures.goodput_bps).filter(|rate| rate.is_finite() && *rate > 0.0)
        }
        MeshOutcome::Failed { .. } | MeshOutcome::NotRun { .. } => None,
    }
}

/// Goodput of a pair, bit/s, without its repeats alone: the median of a round's tests, and of several rounds the highest.
/// A whole round is repeated to see whether its tests limit each other: a link that they share does so again, a busy
/// moment of the hosts does not.
pub fn pair_goodput(tests: &[&MeshTest]) -> Option<f64> {
    let together = || tests.iter().filter(|test| !test.alone);
    let of_round = |round: u32| {
        let tests = together().filter(|test| test.round == round);
        median(&tests.filter_map(|test| goodput(test)).collect::<Vec<_>>())
    };
    let rounds = together().filter_map(|test| of_round(test.round));
    rounds.reduce(f64::max)
}
