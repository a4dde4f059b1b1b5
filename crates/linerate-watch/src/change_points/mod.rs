//! Where the level of a series changed: E-divisive with a t-test, as Apache Otava 0.8 does.
//!
//! The distance between two parts of a series is that of Matteson and James, "A nonparametric approach for multiple change
//! point analysis of multivariate data" (arXiv:1306.4933), computed in windows that overlap by half, with Student's t-test
//! in place of permutations; weak points are then removed, the weakest first (Fleming et al., "Hunter: Using Change Point
//! Detection to Hunt for Performance Regressions", doi:10.1145/3578244.3583719). On the same series the points are those of
//! Otava, its order of removal included.
//!
//! [`Cusum`] finds a drift after a few values, where this needs several on both sides.

mod cusum;
mod student;

pub use cusum::Cusum;

use student::TTest;

/// What counts as a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Values that are looked at together, 2 or more.
    pub window: usize,
    /// The largest probability of a change that chance made, 0 to 1.
    pub chance: f64,
    /// The smallest change, as a share of the smaller level: 0.05 is 5 %.
    pub least_change: f64,
    /// What the values are.
    pub scale: Scale,
}

/// What values are, for [`Options::least_change`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Amounts, as Otava takes them.
    Linear,
    /// Natural logarithms of amounts.
    Logarithm,
}

impl Options {
    /// What a pair's goodput is judged by: Otava's own window and probability, on logarithms, and 5 % at least.
    pub const GOODPUT: Self = Self {
        window: 50,
        chance: 0.001,
        least_change: 0.05,
        scale: Scale::Logarithm,
    };
}

/// A place where the level changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// The first value of the new level.
    pub index: usize,
    /// Mean of the values since the change before it.
    pub before: f64,
    /// Mean of the values until the change after it.
    pub after: f64,
    /// Probability that chance made it, 0 to 1.
    pub chance: f64,
}

/// The places where the level of a series changed, ascending. Values have to be finite.
///
/// # Panics
/// Where [`Options::window`] is below 2.
pub fn change_points(series: &[f64], options: &Options) -> Vec<ChangePoint> {
    assert!(options.window >= 2, "a window has two values or more");
    let weak = weak_points(series, options.window, relaxed(options.chance));
    let points = merged(weak, series, options);
    points
        .iter()
        .map(|point| ChangePoint {
            index: point.index,
            before: point.test.means[0],
            after: point.test.means[1],
            chance: point.test.chance,
        })
        .collect()
}

/// A place, and the t-test of what lies beside it.
#[derive(Debug, Clone, Copy)]
struct Point {
    index: usize,
    test: TTest,
}

impl Point {
    /// The point at an index, with the parts of the series as `ends` divide it.
    fn of(index: usize, series: &[f64], ends: &[usize]) -> Self {
        let from = ends.iter().copied().filter(|end| *end < index).max();
        let to = ends.iter().copied().filter(|end| *end > index).min();
        let left = &series[from.unwrap_or(0)..index];
        let right = &series[index..to.unwrap_or(series.len())];
        Self {
            index,
            test: TTest::of(left, right),
        }
    }

    /// How large the change is, as a share of the smaller level.
    fn change(&self, scale: Scale) -> f64 {
        let [before, after] = self.test.means;
        let share = |from: f64, to: f64| {
            if from == 0.0 {
                0.0
            } else {
                (to / from - 1.0).abs()
            }
        };
        match scale {
            Scale::Linear => share(before, after).max(share(after, before)),
            Scale::Logarithm => (after - before).abs().exp_m1(),
        }
    }
}

/// The probability that weak points need: Otava finds too many first, and removes some.
fn relaxed(chance: f64) -> f64 {
    if chance < 0.05 {
        chance * 10.0
    } else if chance < 0.5 {
        chance * 2.0
    } else {
        chance
    }
}

/// Places that may be changes, of all windows.
fn weak_points(series: &[f64], window: usize, chance: f64) -> Vec<Point> {
    let mut indexes: Vec<usize> = Vec::new();
    let mut start = 0;
    // Each turn advances by half a window at least.
    while start < series.len() {
        let end = (start + window).min(series.len());
        let found = of_window(&series[start..end], chance);
        let last = found.last().map_or(0, |index| index + start);
        indexes.extend(found.iter().map(|index| index + start));
        start = last.max(start + window / 2);
    }
    indexes.sort_unstable();
    indexes.dedup();
    let of = |index: &usize| Point::of(*index, series, &indexes);
    indexes.iter().map(of).collect()
}

/// The significant places of one window, ascending: it is divided where its parts differ most, then the parts are.
fn of_window(values: &[f64], chance: f64) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    // Each turn adds a place; a place is never found again, as parts have two values and are divided within.
    loop {
        let mut ends = vec![0];
        ends.extend(&found);
        ends.push(values.len());
        let parts = ends.windows(2).filter(|ends| ends[1] - ends[0] > 1);
        let candidates = parts.map(|ends| {
            let (at, distance) = farthest(&values[ends[0]..ends[1]]);
            (ends[0] + at, distance)
        });
        let best = candidates.reduce(|best, next| if next.1 > best.1 { next } else { best });
        let Some((index, _)) = best else { break };
        let likely = Point::of(index, values, &found).test.chance;
        // What is not a number is not significant either.
        if likely.is_nan() || likely > chance {
            break;
        }
        found.push(index);
        found.sort_unstable();
    }
    found
}

/// The place that divides two or more values so that the part before it and some part after it differ most, and how much.
///
/// With n values before the place and m after it the distance is 2/(m+n) · Σ|x−y| − 2m/((m+n)(n−1)) · Σ|x−x'|
/// − 2n/((m+n)(m−1)) · Σ|y−y'|.
fn farthest(values: &[f64]) -> (usize, f64) {
    let count = values.len();
    let apart = |one: usize, other: usize| (values[one] - values[other]).abs();
    // Sums of the distances between the first `end` values, by `end`.
    let mut first = vec![0.0; count + 1];
    for end in 1..count {
        let new: f64 = (0..end).map(|before| apart(before, end)).sum();
        first[end + 1] = first[end] + new;
    }
    // By place and end the sum of the distances between the values from the place up to the end.
    let mut later = vec![vec![0.0; count + 1]; count + 1];
    for place in (1..count).rev() {
        let mut of_place = 0.0;
        let behind = later[place + 1].clone();
        for (end, sum) in behind.iter().enumerate().skip(place + 2) {
            of_place += apart(place, end - 1);
            later[place][end] = sum + of_place;
        }
    }
    let mut best = (1, f64::NEG_INFINITY);
    for place in 1..count {
        // Otava keeps zeros where the end lies before the place, and finds them first.
        if place > 1 && best.1 < 0.0 {
            best = (place, 0.0);
        }
        for end in place + 1..=count {
            let (n, m) = (place as f64, (end - place) as f64);
            let between = first[end] - first[place] - later[place][end];
            let within = |sum: f64, own: f64, other: f64| {
                if own > 1.0 {
                    2.0 * other / ((m + n) * (own - 1.0)) * sum
                } else {
                    0.0
                }
            };
            let distance = 2.0 / (m + n) * between
                - within(first[place], n, m)
                - within(later[place][end], m, n);
            if distance > best.1 {
                best = (place, distance);
            }
        }
    }
    best
}

/// What is left when the weakest points were removed one after the other.
fn merged(mut points: Vec<Point>, series: &[f64], options: &Options) -> Vec<Point> {
    // Each turn removes a point.
    while !points.is_empty() {
        let mut weakest = extreme(&points, |one, best| one.test.chance > best.test.chance);
        if points[weakest].test.chance < options.chance {
            let change = |point: &Point| point.change(options.scale);
            weakest = extreme(&points, |one, best| change(one) < change(best));
            if change(&points[weakest]) > options.least_change {
                break;
            }
        }
        points.remove(weakest);
        let ends: Vec<usize> = points.iter().map(|point| point.index).collect();
        // Otava computes the point behind the removed one anew and the next, not the one before it.
        for point in points.iter_mut().skip(weakest).take(2) {
            *point = Point::of(point.index, series, &ends);
        }
    }
    points
}

/// The place of the first point that no other one is beyond.
fn extreme(points: &[Point], beyond: impl Fn(&Point, &Point) -> bool) -> usize {
    (1..points.len()).fold(0, |best, one| {
        if beyond(&points[one], &points[best]) {
            one
        } else {
            best
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_found_at_its_value() {
        let mut series = vec![9.40, 9.41, 9.39, 9.42, 9.40, 9.38, 9.41, 9.40];
        series.extend(series.clone().iter().map(|value| value * 0.8));
        let logs: Vec<f64> = series.iter().map(|value: &f64| value.ln()).collect();
        let points = change_points(&logs, &Options::GOODPUT);
        assert_eq!(
            points.iter().map(|point| point.index).collect::<Vec<_>>(),
            [8]
        );
        assert!((points[0].after - points[0].before - 0.8_f64.ln()).abs() < 1e-9);
        let small = Options {
            least_change: 0.3,
            ..Options::GOODPUT
        };
        assert_eq!(change_points(&logs, &small), []);
    }

    #[test]
    fn short_and_flat_series_have_no_change() {
        for series in [&[][..], &[1.0], &[1.0, 2.0], &[3.0; 120]] {
            assert_eq!(change_points(series, &Options::GOODPUT), [], "{series:?}");
        }
    }
}
