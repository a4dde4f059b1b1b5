//! `bimodal` and `unstable`: rates that no mean describes.

use std::fmt::Write as _;

use linerate_analysis::statistics::mean;
use linerate_model::finding::{Figure, Finding, Severity};

use super::digest::{Digest, Interval, MOST_GUESTS, variation};
use super::steps;
use crate::draft::Draft;

/// Rates of a level differ by no more than this.
const SAME_LEVEL: f64 = 0.03;
/// Two levels are separated from noise by this factor.
const FAR_APART: f64 = 1.5;
/// Levels that were seen at least twice hold this share of the intervals.
const COVERED: f64 = 0.7;
/// Above this share of the mean a deviation leaves no figure to quote.
const UNSTABLE: f64 = 0.25;
/// Fewer intervals show no levels.
const LEAST: usize = 5;

pub(super) fn judge(digest: &Digest<'_>) -> Option<Finding> {
    let rates = &digest.rates[digest.ramp..];
    let (within, outside): (Vec<&Interval>, Vec<&Interval>) = rates
        .iter()
        .partition(|each| digest.beside.iter().any(|span| mostly_within(each, *span)));
    let values: Vec<f64> = outside.iter().map(|each| each.bps).collect();
    if values.len() < LEAST {
        return None;
    }
    let stepped = steps::judge(digest).filter(|_| digest.beside.is_empty());
    // Levels that come one after the other, with a figure each.
    if stepped
        .as_ref()
        .is_some_and(|finding| finding.figures.len() > 2)
    {
        return stepped;
    }
    let levels = levels(&values);
    let often: Vec<&Vec<f64>> = levels.iter().filter(|level| level.len() > 1).collect();
    let covered: usize = often.iter().map(|level| level.len()).sum();
    let apart = match (often.first(), often.last()) {
        (Some(low), Some(high)) => mean(high) / mean(low).max(1.0) > FAR_APART,
        _ => false,
    };
    if apart && covered as f64 >= COVERED * values.len() as f64 {
        return Some(bimodal(digest, &outside, &within, &levels));
    }
    stepped.or_else(|| unstable(digest, &values))
}

fn bimodal(
    digest: &Digest<'_>,
    outside: &[&Interval],
    within: &[&Interval],
    levels: &[Vec<f64>],
) -> Finding {
    let values: Vec<f64> = outside.iter().map(|each| each.bps).collect();
    let often = levels.iter().filter(|level| level.len() > 1).count();
    let list: Vec<String> = levels
        .iter()
        .rev()
        // A single interval between two levels is the way from one to the other.
        .filter(|level| level.len() > 1 || often > 2)
        .map(|level| {
            format!(
                "{} ({} intervals)",
                digest.rates_between(level),
                level.len()
            )
            .replace("(1 intervals)", "(1 interval)")
        })
        .collect();
    let count = match list.len() {
        2 => "Two levels, not a mean".to_owned(),
        many => format!("{many} levels, not a mean"),
    };
    let mut sentence = format!("{count}: {}", list.join(", "));
    if let Some(at) = change(outside, levels) {
        let _ = write!(sentence, "; it changes at {at} s");
    }
    let _ = write!(
        sentence,
        "; the mean of {} describes none of them",
        digest.rate(mean(&values))
    );
    for span in digest.beside {
        let rates: Vec<f64> = within.iter().map(|each| each.bps).collect();
        let _ = write!(
            sentence,
            "; another test in the opposite direction started at about {:.0} s and ended at {:.1} s ({} meanwhile): \
             two clients in one log",
            span[0],
            span[1],
            if rates.is_empty() {
                "no interval".to_owned()
            } else {
                digest.rates_between(&rates)
            }
        );
    }
    if digest.beside.len() == MOST_GUESTS {
        let _ = write!(
            sentence,
            "; only the first {MOST_GUESTS} tests within this log are analysed"
        );
    }
    let figures = levels.iter().rev().map(|level| {
        let name = format!("level seen in {} intervals, bit/s", level.len());
        Figure::new(name, mean(level), "all streams")
    });
    Draft::new("bimodal", Severity::Limit, sentence)
        .figures(figures)
        .next(format!("linerate test {} -t 60", digest.host()))
        .finding
}

fn unstable(digest: &Digest<'_>, values: &[f64]) -> Option<Finding> {
    let share = variation(values).filter(|share| *share > UNSTABLE)?;
    let average = digest.average()?;
    let sentence = format!(
        "Unstable: {}, mean {}, with {:.0} % variation between intervals; no single figure describes this run",
        digest.rates_between(values),
        digest.rate(average),
        share * 100.0
    );
    Draft::new("unstable", Severity::Note, sentence)
        .figure("mean, bit/s", average, "all streams")
        .figure(
            "standard deviation of the intervals, % of their mean",
            share * 100.0,
            "all streams",
        )
        .next(format!("linerate test {} -t 60", digest.host()))
        .done()
}

/// Rates that lie together, the lowest first.
fn levels(values: &[f64]) -> Vec<Vec<f64>> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut levels: Vec<Vec<f64>> = Vec::new();
    for value in sorted {
        match levels.last_mut() {
            Some(level) if value <= level[0] * (1.0 + SAME_LEVEL) => level.push(value),
            _ => levels.push(vec![value]),
        }
    }
    levels
}

/// The one instant at which the rate went from one half of its range to the other, s.
fn change(intervals: &[&Interval], levels: &[Vec<f64>]) -> Option<f64> {
    let often: Vec<&Vec<f64>> = levels.iter().filter(|level| level.len() > 1).collect();
    let (low, high) = (often.first()?, often.last()?);
    let middle = f64::midpoint(mean(low), mean(high));
    let changes: Vec<f64> = intervals
        .windows(2)
        .filter(|pair| (pair[0].bps < middle) != (pair[1].bps < middle))
        .map(|pair| pair[1].start_s)
        .collect();
    (changes.len() == 1).then(|| changes[0])
}

fn mostly_within(each: &Interval, span: [f64; 2]) -> bool {
    let shared = each.end_s.min(span[1]) - each.start_s.max(span[0]);
    shared > 0.5 * (each.end_s - each.start_s)
}
