//! Counters cut into windows of time.

use super::scale::nice;
use super::{Point, axis::Axis};
use crate::view::{self, interpolated};
use linerate_model::record::Role;

/// The most windows over a run.
const MOST: u64 = 1000;
/// A rate is taken over this many samples where the run is long enough: below that, single reads show.
const SAMPLES: u64 = 10;
/// And over this many round trips: a window's worth of data arrives once in each.
const ROUND_TRIPS: u64 = 3;
/// A short run has at least this many windows, as far as its samples go.
const LEAST: u64 = 30;

/// The length of windows for a run of `span` over a path of `round_trip` with a sample every `sample`, ns: 1, 2
/// or 5 times a power of ten.
pub(super) fn length(span: u64, sample: u64, round_trip: u64) -> u64 {
    let sample = sample.max(1);
    let steady = sample.saturating_mul(SAMPLES);
    let steady = steady.max(round_trip.saturating_mul(ROUND_TRIPS));
    let wanted = steady.min(span / LEAST).max(sample);
    let least = wanted.max(span.div_ceil(MOST));
    linerate_model::units::whole(nice(least as f64)).max(1)
}

/// Edges of windows from `from` to `to`; a last piece shorter than half a window joins the one before.
pub(super) fn edges([from, to]: [u64; 2], length: u64) -> Vec<u64> {
    let most = to.saturating_sub(from) / (MOST * 10);
    view::edges([from, to], length.max(most), 2)
}

/// A counter's growth in each window. Its sum is the counter's growth from the first edge to the last.
pub(super) fn growth(at: &[u64], values: &[u64], edges: &[u64]) -> Vec<u64> {
    let counts: Vec<u64> = edges
        .iter()
        .map(|edge| interpolated(at, values, *edge))
        .collect();
    counts
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        .collect()
}

/// A value for each window, as steps that hold to the window's end.
pub(super) fn steps(axis: &Axis, role: Role, edges: &[u64], values: &[Option<u64>]) -> Vec<Point> {
    let mut points: Vec<Point> = edges
        .iter()
        .zip(values)
        .map(|(edge, value)| Point {
            at_ns: axis.at(role, *edge),
            value: *value,
        })
        .collect();
    if let (Some(end), Some(value)) = (edges.last(), values.last()) {
        points.push(Point {
            at_ns: axis.at(role, *end),
            value: *value,
        });
    }
    points
}

/// `units` of growth over a window, for each second (in `scale` of them); windows without a length have none.
pub(super) fn per_second(edges: &[u64], growth: &[u64], scale: u128) -> Vec<Option<u64>> {
    edges
        .windows(2)
        .zip(growth)
        .map(|(edge, grown)| {
            let span = u128::from(edge[1] - edge[0]);
            let value = (u128::from(*grown) * scale).checked_div(span)?;
            Some(u64::try_from(value).unwrap_or(u64::MAX))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_suit_the_run() {
        let (ms, s) = (1_000_000, 1_000_000_000);
        assert_eq!(length(10 * s, 10 * ms, ms), 100 * ms);
        assert_eq!(length(60 * s, 10 * ms, 60 * ms), 200 * ms);
        assert_eq!(length(1000 * s, 10 * ms, ms), s);
        assert_eq!(length(300 * ms, 10 * ms, 60 * ms), 10 * ms);
        assert_eq!(length(0, 0, 0), 1);
    }

    #[test]
    fn a_counter_s_growth_is_kept_whole() {
        let at = [10, 20, 35, 40];
        let values = [5, 9, 9, 100];
        let edges = edges([10, 40], 7);
        assert_eq!(edges, [10, 17, 24, 31, 40]);
        assert_eq!(growth(&at, &values, &edges).iter().sum::<u64>(), 95);
    }

    #[test]
    fn a_hostile_span_has_few_edges() {
        assert!(edges([0, u64::MAX], 1).len() < 20_000);
        assert_eq!(edges([9, 9], 5), [9]);
        assert_eq!(edges([9, 3], 5), [9]);
    }
}
