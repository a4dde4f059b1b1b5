//! Levels of a pair's goodput.

use linerate_watch::change_points::{Options, change_points};

use crate::view::pair::{Regime, median};
use crate::view::run::RunRow;

/// The levels of these tests, the latest of which comes first; none where there is only one. Tests with other traffic on
/// the link do not count.
pub(crate) fn of(runs: &[RunRow]) -> Vec<Regime> {
    let counts = |run: &&RunRow| {
        !run.with_traffic
            && run
                .goodput_bps
                .is_some_and(|bps| bps > 0.0 && bps.is_finite())
    };
    let counted: Vec<&RunRow> = runs.iter().rev().filter(counts).collect();
    let logs: Vec<f64> = counted
        .iter()
        .filter_map(|run| run.goodput_bps)
        .map(f64::ln)
        .collect();
    let mut ends: Vec<usize> = change_points(&logs, &Options::GOODPUT)
        .iter()
        .map(|change| change.index)
        .collect();
    if ends.is_empty() {
        return Vec::new();
    }
    ends.insert(0, 0);
    ends.push(counted.len());
    let regime = |two: &[usize]| {
        let inside = &counted[two[0]..two[1]];
        Some(Regime {
            since: inside.first()?.ended,
            until: inside.last()?.ended,
            median_bps: median(inside.iter().filter_map(|run| run.goodput_bps))?,
        })
    };
    ends.windows(2).filter_map(regime).collect()
}
