//! `bimodal` of rates that step from one level to another and stay there: each with its time.

use linerate_analysis::statistics::mean;
use linerate_model::finding::{Figure, Finding, Severity};

use super::digest::{Digest, Interval};
use crate::draft::Draft;

/// Rates within this share of a level's mean belong to it.
const SAME: f64 = 0.15;
/// The highest level is this many times the lowest.
const FAR_APART: f64 = 1.5;
/// Fewer intervals in a row are no level, unless nothing moved in them.
const LEAST: usize = 3;
/// More levels are noise.
const MOST: usize = 5;
/// The levels hold this share of the intervals.
const COVERED: f64 = 0.7;

/// Intervals in a row with about one rate.
struct Level<'a> {
    intervals: &'a [Interval],
    bps: f64,
}

pub(super) fn judge(digest: &Digest<'_>) -> Option<Finding> {
    let intervals = &digest.rates[digest.ramp..];
    let levels = levels(intervals);
    let covered: usize = levels.iter().map(|level| level.intervals.len()).sum();
    let moving = || {
        levels
            .iter()
            .map(|level| level.bps)
            .filter(|bps| *bps > 0.0)
    };
    let (low, high) = (
        moving().fold(f64::INFINITY, f64::min),
        moving().fold(0.0, f64::max),
    );
    let apart = high >= FAR_APART * low && low.is_finite();
    if !apart || levels.len() > MOST || (covered as f64) < COVERED * intervals.len() as f64 {
        return None;
    }
    let average = digest.average()?;
    let list: Vec<String> = levels
        .iter()
        .enumerate()
        .map(|(at, level)| described(digest, level, at == 0, at + 1 == levels.len()))
        .collect();
    let sentence = format!(
        "The rate stepped: {}; the mean of {} describes no part of the run",
        list.join(", "),
        digest.rate(average)
    );
    let figures = levels.iter().map(|level| {
        let [from, to] = level.span();
        Figure::new(
            format!("rate from {from} to {to} s, bit/s"),
            level.bps,
            "all streams",
        )
    });
    Draft::new("bimodal", Severity::Limit, sentence)
        .figures(figures)
        .next(format!("linerate test {} -t 60", digest.host()))
        .done()
}

impl Level<'_> {
    /// Begin and end, s, to a tenth.
    fn span(&self) -> [f64; 2] {
        let tenths = |seconds: f64| (seconds * 10.0).round() / 10.0;
        let ends = self.intervals.first().zip(self.intervals.last());
        ends.map_or([0.0, 0.0], |(first, last)| {
            [tenths(first.start_s), tenths(last.end_s)]
        })
    }
}

/// `7.20 Gbit/s until 5 s`, `nothing from 9 to 10 s`, `2.30 Gbit/s from 10 s on`.
fn described(digest: &Digest<'_>, level: &Level<'_>, first: bool, last: bool) -> String {
    let [from, to] = level.span();
    let rate = if level.bps > 0.0 {
        digest.rate(level.bps)
    } else {
        "nothing".to_owned()
    };
    if first {
        format!("{rate} until {to} s")
    } else if last {
        format!("{rate} from {from} s on")
    } else {
        format!("{rate} from {from} to {to} s")
    }
}

/// The levels in the order of time. Single intervals between two are on the way from one to the other.
fn levels(intervals: &[Interval]) -> Vec<Level<'_>> {
    let mut levels = Vec::new();
    let mut from = 0;
    let (mut sum, mut count) = (0.0, 0.0);
    for at in 0..=intervals.len() {
        let here = intervals.get(at).map(|each| each.bps);
        let goes_on =
            here.is_some_and(|bps| at == from || (bps - sum / count).abs() <= SAME * sum / count);
        if goes_on {
            sum += here.unwrap_or(0.0);
            count += 1.0;
            continue;
        }
        let run = &intervals[from..at];
        let bps = mean(&run.iter().map(|each| each.bps).collect::<Vec<_>>());
        if run.len() >= LEAST || (bps <= 0.0 && !run.is_empty()) {
            levels.push(Level {
                intervals: run,
                bps,
            });
        }
        (from, sum, count) = (at, here.unwrap_or(0.0), 1.0);
    }
    levels
}
