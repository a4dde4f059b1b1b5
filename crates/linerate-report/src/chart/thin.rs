//! Fewer points for the same picture.
//!
//! A screen has fewer columns than a run has samples. Of each slice of time the first, the least, the most
//! and the last point are kept (M4: Jugel, Jerzak, Hackenbroich, Markl: "M4: A Visualization-Oriented Time
//! Series Data Aggregation", VLDB 2014), so that no extreme is lost and a line through what is kept covers the
//! same columns as a line through all. What is thinned is the drawing, never the record.

use super::Point;

/// At most four points in each of `slices` equal slices of time, beside breaks, which are kept.
///
/// What is few already comes back as it is.
pub fn thinned(points: &[Point], slices: usize) -> Vec<Point> {
    let slices = slices.max(1);
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Vec::new();
    };
    if points.len() <= slices.saturating_mul(4) {
        return points.to_vec();
    }
    let span = i128::from(last.at_ns) - i128::from(first.at_ns);
    let slice = |point: &Point| {
        let into = i128::from(point.at_ns) - i128::from(first.at_ns);
        if span > 0 {
            into * slices as i128 / (span + 1)
        } else {
            0
        }
    };
    let mut kept = Vec::with_capacity(slices * 4);
    let mut begin = 0;
    for row in 0..points.len() {
        let ends = points.get(row + 1).is_none_or(|next| {
            next.value.is_none() != points[row].value.is_none()
                || slice(next) != slice(&points[row])
        });
        if ends {
            keep(&points[begin..=row], &mut kept);
            begin = row + 1;
        }
    }
    kept
}

/// First, least, most and last of points that all have a value, or of which none has.
fn keep(points: &[Point], kept: &mut Vec<Point>) {
    let Some(last) = points.len().checked_sub(1) else {
        return;
    };
    let mut rows = [0, 0, 0, last];
    for (row, point) in points.iter().enumerate() {
        if point.value < points[rows[1]].value {
            rows[1] = row;
        }
        if point.value > points[rows[2]].value {
            rows[2] = row;
        }
    }
    rows.sort_unstable();
    for (place, row) in rows.iter().enumerate() {
        if place == 0 || rows[place - 1] != *row {
            kept.push(points[*row]);
        }
    }
}

/// Without the points that lie between two of the same value: the line through the rest is the same line.
pub fn condensed(points: &[Point]) -> Vec<Point> {
    let between = |row: usize| {
        row > 0
            && row + 1 < points.len()
            && points[row - 1].value == points[row].value
            && points[row + 1].value == points[row].value
    };
    (0..points.len())
        .filter(|row| !between(*row))
        .map(|row| points[row])
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_points() -> impl Strategy<Value = Vec<Point>> {
        let point = (0_i64..50, proptest::option::weighted(0.95, 0_u64..1000));
        proptest::collection::vec(point, 0..4000).prop_map(|steps| {
            let mut at_ns = -1000;
            steps
                .into_iter()
                .map(|(step, value)| {
                    at_ns += step;
                    Point { at_ns, value }
                })
                .collect()
        })
    }

    fn extremes(points: &[Point]) -> Option<(u64, u64)> {
        let values = || points.iter().filter_map(|point| point.value);
        values().min().zip(values().max())
    }

    /// Values that a line through the points covers in a slice of time.
    fn within(points: &[Point], [from, to]: [i64; 2]) -> Option<(u64, u64)> {
        let inside: Vec<Point> = points
            .iter()
            .filter(|point| point.at_ns >= from && point.at_ns < to)
            .copied()
            .collect();
        extremes(&inside)
    }

    proptest! {
        #[test]
        fn no_extreme_is_lost(points in any_points(), slices in 1_usize..200) {
            let kept = thinned(&points, slices);
            prop_assert_eq!(extremes(&kept), extremes(&points));
            prop_assert_eq!(kept.first(), points.first());
            prop_assert_eq!(kept.last(), points.last());
        }

        #[test]
        fn no_slice_loses_an_extreme(points in any_points(), slices in 1_usize..200) {
            let kept = thinned(&points, slices);
            if let (Some(first), Some(last)) = (points.first(), points.last()) {
                // The slices' edges, as whole instants: at or above (n / slices) of the span.
                let span = i128::from(last.at_ns - first.at_ns) + 1;
                let edge = |n: usize| {
                    let into = (n as i128 * span + slices as i128 - 1) / slices as i128;
                    first.at_ns + i64::try_from(into).unwrap()
                };
                for slice in 0..slices {
                    let span = [edge(slice), edge(slice + 1)];
                    prop_assert_eq!(within(&kept, span), within(&points, span));
                }
            }
        }

        #[test]
        fn what_is_kept_was_there_and_stays_in_order(points in any_points(), slices in 1_usize..200) {
            let kept = thinned(&points, slices);
            let mut rest = points.iter();
            for point in &kept {
                prop_assert!(rest.any(|there| there == point), "{:?} was made up", point);
            }
            let breaks = points.windows(2).filter(|pair| pair[0].value.is_none() != pair[1].value.is_none()).count();
            prop_assert!(kept.len() <= 4 * (slices + breaks + 1) || kept.len() == points.len());
        }

        #[test]
        fn condensing_leaves_every_value_where_it_was(points in any_points()) {
            let kept = condensed(&points);
            // Held from each kept point to the next, the value at every instant is the one before.
            let mut next = 0;
            let mut held = None;
            for point in &points {
                if kept.get(next) == Some(point) {
                    held = Some(point.value);
                    next += 1;
                }
                prop_assert_eq!(held, Some(point.value));
            }
            prop_assert_eq!(next, kept.len());
        }
    }
}
