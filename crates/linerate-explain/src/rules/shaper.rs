//! `shaper`: the rate steps down after a burst, a queue grows, and it stays there.
//!
//! In means over a tenth of a second: after the ramp the rate stood at a first level for at least half a second,
//! then at a second one, at most two thirds of the first, until the end, for at least two seconds and half of the run; nine in
//! ten of the later means lie within 10 % of their median, eight in ten of the earlier ones within 20 % of
//! theirs. A queue stands in the path. A path that really became slower looks the same: a second run tells.

use linerate_analysis::statistics;
use linerate_model::finding::{Finding, Severity};

use crate::facts::case::Case;
use crate::facts::limit::Limit;
use crate::facts::loss;
use crate::words;

/// Means are taken over this time, ns.
const BATCH_NS: u64 = 100_000_000;
/// Means of the first level, and of the second, at least.
const LEAST: [usize; 2] = [5, 20];
/// The second level is at most this share of the first.
const STEP: f64 = 2.0 / 3.0;

/// Two levels of a run.
struct Step {
    /// Mean of the first level and of the second, bit/s.
    levels_bps: [f64; 2],
    /// When the second one began, ns since the start of the grid.
    at_ns: u64,
}

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if case.limit != Some(Limit::Network) || case.udp() || case.next_door() {
        return None;
    }
    let queue = loss::standing_queue_us(case)?;
    let step = step(case)?;
    let [first, second] = step.levels_bps;
    let burst = first * step.at_ns as f64 / 8e9;
    let sentence = format!(
        "The rate dropped from {} to {} after {} and stayed there, with a queue of {} in the path: consistent with a \
         shaper that passes a burst of about {}; repeat the test to rule out a path that became slower",
        words::rate(first),
        words::rate(second),
        words::seconds(step.at_ns),
        words::micros(queue),
        words::size(burst),
    );
    case.finding("shaper", Severity::Limit, sentence)
        .sender("first level, bit/s", first)
        .sender("second level, bit/s", second)
        .sender("step after, ns", step.at_ns)
        .sender("queue, µs", queue)
        .rate()
        .again(|_| {})
        .done()
}

fn step(case: &Case<'_>) -> Option<Step> {
    let all = case.means(BATCH_NS);
    let ramp = all.ramp()?;
    let means = &all.bps;
    let last = means.len().checked_sub(LEAST[1])?;
    let fall = |cut: usize| statistics::mean(&means[ramp..cut]) - statistics::mean(&means[cut..]);
    let (cut, _) = (ramp + LEAST[0]..=last)
        .map(|cut| (cut, fall(cut)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    // The mean in which the step falls belongs to neither level.
    let (before, after) = (&means[ramp..cut], &means[(cut + 1).min(means.len())..]);
    let (first, second) = (statistics::median(before)?, statistics::median(after)?);
    let steady = stands(before, first, 0.2, 0.8) && stands(after, second, 0.1, 0.9);
    // What was the larger part of the run is no burst.
    let early = cut <= means.len() / 2;
    (second > 0.0 && second <= STEP * first && steady && early).then(|| Step {
        levels_bps: [first, second],
        at_ns: cut as u64 * all.span_ns,
    })
}

/// Whether a share of `values` lies within `within` of `level`.
fn stands(values: &[f64], level: f64, within: f64, share: f64) -> bool {
    let near = values
        .iter()
        .filter(|value| (**value - level).abs() <= within * level)
        .count();
    near as f64 >= share * values.len() as f64
}
