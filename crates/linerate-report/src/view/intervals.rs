//! What moved when: the samples, cut at the plan's interval.
//!
//! Between two samples a count is interpolated and rounded to whole bytes, so that intervals of all
//! streams begin and end at the same instants and their bytes add up to the totals exactly. A last
//! piece shorter than a tenth of an interval belongs to the one before.

use linerate_analysis::evidence::{DirectionEvidence, Evidence, Place};
use linerate_model::column::Column;
use linerate_model::record::{Flow, RunRecord, StreamRecord};
use linerate_model::units::{BitRate, Bytes, Nanos};
use serde::Serialize;

use super::direction::MeasuredAt;

/// The most intervals of a direction; a plan that asks for more gets longer ones.
const MOST: u64 = 100_000;

/// What a direction moved between two instants.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IntervalView {
    /// Which direction.
    pub flow: Flow,
    /// Where the bytes were counted.
    pub measured_at: MeasuredAt,
    /// Begin, ns since the first byte (or the end of the omitted part).
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
    /// Payload of all its streams, bytes.
    pub bytes: u64,
    /// Bytes over the interval's own duration, bit/s.
    pub bps: Option<u64>,
    /// Each stream.
    pub streams: Vec<StreamIntervalView>,
}

/// What one stream moved in one report interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamIntervalView {
    /// Positional id.
    pub id: u32,
    /// Payload, bytes.
    pub bytes: u64,
}

pub(super) fn views(record: &RunRecord, evidence: &Evidence<'_>) -> Vec<IntervalView> {
    evidence
        .directions
        .iter()
        .flat_map(|direction| of_direction(record, direction))
        .collect()
}

fn of_direction(record: &RunRecord, direction: &DirectionEvidence) -> Vec<IntervalView> {
    let flow = direction.flow;
    let end = record.end(direction.measured_at.end(flow));
    let (Some(end), true) = (end, direction.span_ns > 0) else {
        return Vec::new();
    };
    let column = if direction.measured_at == Place::Acknowledged {
        Column::bytes_acked
    } else {
        Column::app_bytes
    };
    let edges = if direction.rates_bps.is_empty() {
        // Without samples there is nothing to cut.
        vec![0, direction.span_ns]
    } else {
        cuts(direction.span_ns, record.plan.interval_ns.0)
    };
    let lanes: Vec<(u32, Vec<u64>)> = direction
        .stream_bytes
        .iter()
        .filter_map(|(id, bytes)| {
            let (stream, from) = (end.stream(*id)?, direction.grid_from_ns);
            Some((*id, counts(stream, column, from, &edges, *bytes)))
        })
        .collect();
    edges
        .windows(2)
        .enumerate()
        .map(|(number, edge)| {
            let streams: Vec<StreamIntervalView> = lanes
                .iter()
                .map(|(id, counts)| StreamIntervalView {
                    id: *id,
                    bytes: counts[number + 1] - counts[number],
                })
                .collect();
            let bytes = streams
                .iter()
                .fold(0_u64, |sum, stream| sum.saturating_add(stream.bytes));
            let bps = BitRate::of(Bytes(bytes), Nanos(edge[1] - edge[0])).map(|rate| rate.0);
            IntervalView {
                flow,
                measured_at: direction.measured_at.into(),
                from_ns: edge[0],
                to_ns: edge[1],
                bytes,
                bps,
                streams,
            }
        })
        .collect()
}

/// Where intervals begin and end, ns since the first byte.
fn cuts(span: u64, interval: u64) -> Vec<u64> {
    edges([0, span], interval.max(span / MOST), 10)
}

/// Edges of intervals of this length from `from` to `to`, ns; a last piece shorter than this part of one belongs to the
/// one before.
pub(crate) fn edges([from, to]: [u64; 2], length: u64, part: u64) -> Vec<u64> {
    let (length, span) = (length.max(1), to.saturating_sub(from));
    let mut edges: Vec<u64> = (0..=span / length)
        .map(|number| from + number * length)
        .collect();
    let left = span % length;
    if left < length / part && edges.len() > 1 {
        edges.pop();
    }
    if edges.last() != Some(&to) && to > from {
        edges.push(to);
    }
    edges
}

/// A stream's count at each edge, never falling, from zero to `total`.
fn counts(stream: &StreamRecord, column: Column, from: u64, edges: &[u64], total: u64) -> Vec<u64> {
    let at = stream.samples.at_ns();
    let values = stream.samples.column(column).unwrap_or(&[]);
    let base = interpolated(at, values, from);
    let mut counts = Vec::with_capacity(edges.len());
    let mut highest = 0;
    for edge in edges {
        let here = interpolated(at, values, from.saturating_add(*edge));
        highest = here.saturating_sub(base).clamp(highest, total.max(highest));
        counts.push(highest);
    }
    if let (Some(first), Some(last)) = (counts.first().copied(), counts.last_mut()) {
        *last = total.max(first);
    }
    counts
}

pub(crate) fn interpolated(at: &[u64], values: &[u64], instant: u64) -> u64 {
    let next = at.partition_point(|sample| *sample <= instant);
    let Some(before) = next.checked_sub(1) else {
        return values.first().copied().unwrap_or(0);
    };
    let (Some(value), Some(then)) = (values.get(before), values.get(next)) else {
        return values.last().copied().unwrap_or(0);
    };
    let (into, step) = (
        instant - at[before].min(instant),
        at[next].saturating_sub(at[before]).max(1),
    );
    let grown = u128::from(then.saturating_sub(*value)) * u128::from(into) / u128::from(step);
    value.saturating_add(u64::try_from(grown).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_rest_joins_the_last_interval() {
        assert_eq!(cuts(10_004, 1000).len(), 11);
        assert_eq!(cuts(10_004, 1000).last(), Some(&10_004));
        assert_eq!(
            cuts(10_500, 1000),
            [
                0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000, 10_500
            ]
        );
        assert_eq!(cuts(300, 1000), [0, 300]);
        assert_eq!(cuts(3000, 1000), [0, 1000, 2000, 3000]);
    }

    #[test]
    fn a_hostile_plan_does_not_fill_the_memory() {
        assert!(cuts(u64::MAX, 1).len() <= 100_003);
    }

    #[test]
    fn counts_between_samples_lie_on_the_line() {
        assert_eq!(interpolated(&[10, 20], &[100, 200], 15), 150);
        assert_eq!(interpolated(&[10, 20], &[100, 200], 5), 100);
        assert_eq!(interpolated(&[10, 20], &[100, 200], 25), 200);
        assert_eq!(interpolated(&[], &[], 25), 0);
    }
}
