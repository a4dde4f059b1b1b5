//! `bimodal`: the rate stands at two levels in turn.
//!
//! Means over a tenth of a second, and at least eight least round trips, after the ramp fall into two clusters: nine in ten lie within 20 % of their
//! cluster's median, the higher median is at least 1.5 times the lower one, each cluster has a fifth of the
//! means, and the rate changed sides at least three times. Not said where what was sent again held the rate, nor of a rate asked for.

use linerate_analysis::statistics;
use linerate_model::finding::{Finding, Severity};

use crate::facts::case::Case;
use crate::facts::limit::Limit;
use crate::facts::repeats;
use crate::words;

const BATCH_NS: u64 = 100_000_000;
/// … and at least this many round trips: a window's bursts are no levels.
const ROUND_TRIPS: f64 = 8.0;
const LEAST_MEANS: usize = 20;
const APART: f64 = 1.5;
const NEAR: f64 = 0.2;
const MOSTLY: f64 = 0.9;
const EACH: f64 = 0.2;
const CHANGES: usize = 3;

/// Two levels of a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Levels {
    high_bps: f64,
    low_bps: f64,
    /// Share of the time at the lower one.
    low: f64,
    changes: usize,
}

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let levels = seen(case)?;
    let sentence = format!(
        "The rate alternates between two levels: {} for {} of the time and {} for the rest, {} changes; probably two \
         paths, queues or CPUs of different speed, or something that switches the rate",
        words::rate(levels.low_bps),
        words::percent(levels.low),
        words::rate(levels.high_bps),
        levels.changes,
    );
    case.finding("bimodal", Severity::Note, sentence)
        .sender("lower level, bit/s", levels.low_bps)
        .sender("higher level, bit/s", levels.high_bps)
        .sender("share of the time at the lower level", levels.low)
        .sender("changes", levels.changes)
        .rate()
        .again(|_| {})
        .done()
}

pub(crate) fn seen(case: &Case<'_>) -> Option<Levels> {
    if case.limit == Some(Limit::Asked) || repeats::explain(case) || case.stall().is_some() {
        return None;
    }
    let bursts = ROUND_TRIPS * 1e3 * case.path().min_rtt_us.unwrap_or(0.0);
    let means = case.means(words::whole(bursts).max(BATCH_NS));
    let means = &means.bps[means.ramp()?..];
    if means.len() < LEAST_MEANS {
        return None;
    }
    levels(means)
}

fn levels(means: &[f64]) -> Option<Levels> {
    // The split with the widest gap between neighbours, of those that leave enough on either side.
    let mut sorted = means.to_vec();
    sorted.sort_by(f64::total_cmp);
    let each = usize::try_from(words::whole((EACH * means.len() as f64).ceil())).ok()?;
    let cut = (each..=means.len().checked_sub(each)?).max_by(|a, b| {
        let gap = |cut: usize| sorted[cut.min(sorted.len() - 1)] / sorted[cut - 1].max(1.0);
        gap(*a).total_cmp(&gap(*b))
    })?;
    let (low, high) = sorted.split_at(cut);
    let (low_bps, high_bps) = (statistics::median(low)?, statistics::median(high)?);
    let near = |values: &[f64], level: f64| {
        let near = |value: &&f64| (**value - level).abs() <= NEAR * level;
        values.iter().filter(near).count()
    };
    let mostly = near(low, low_bps) + near(high, high_bps);
    let border = f64::midpoint(low_bps, high_bps);
    let changes = means
        .windows(2)
        .filter(|pair| (pair[0] < border) != (pair[1] < border))
        .count();
    let found = low_bps > 0.0
        && high_bps >= APART * low_bps
        && mostly as f64 >= MOSTLY * means.len() as f64
        && changes >= CHANGES;
    found.then(|| Levels {
        high_bps,
        low_bps,
        low: low.len() as f64 / means.len() as f64,
        changes,
    })
}
