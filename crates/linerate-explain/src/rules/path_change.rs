//! `path-change`: the delay of the path itself stepped in mid-run.
//!
//! The sender's smoothed round trip, in slices of at least four round trips. Up: from a slice on, to the end and
//! for at least a second, 19 of 20 slices lie 1.25 times and 2 ms above all of the second before, the step takes
//! two slices at most, and once what the step made it lose is repaired, the round trips do not follow the bytes in flight (exponent below 0.5): a
//! queue that grew would. Down: the least round trip that the kernel keeps fell by a fifth and 2 ms after a second of the run; nothing but a
//! shorter path, or somebody's queue that went away, does that.

use linerate_analysis::statistics;
use linerate_model::column::Column;
use linerate_model::finding::{Finding, Severity};

use crate::facts::case::Case;
use crate::facts::slices::{Law, Slice};
use crate::words;

const STEP: f64 = 1.25;
const STEP_US: f64 = 2000.0;
/// So large a share of the slices may lie below the step.
const FEW: f64 = 0.05;
/// Each side of a step lasts at least this long, ns.
const SIDE_NS: u64 = 1_000_000_000;
/// A queue's round trip follows the bytes in flight with this exponent or more.
const FOLLOWS: f64 = 0.5;
/// Bytes in flight that fall to less than this from slice to slice were cut after a loss.
const CUT: f64 = 0.9;
/// Below this range of bytes in flight the exponent says nothing.
const SPREAD: f64 = 1.02;

/// A step of the round trip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    at_ns: u64,
    before_us: f64,
    after_us: f64,
}

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let step = seen(case)?;
    let sender = case.sender()?;
    let since = step.at_ns.saturating_sub(sender.start_ns.0);
    let rehashed = rehashed(case);
    let sentence = if step.after_us > step.before_us {
        format!(
            "The path changed after {}, probably a reroute: the RTT stepped from {} to {} and does not depend on the \
             bytes in flight, so it is not a queue",
            words::seconds(since),
            words::micros(step.before_us),
            words::micros(step.after_us),
        )
    } else {
        format!(
            "The path changed after {}: the minimum RTT fell from {} to {}; a shorter path, or a queue of other \
             traffic that drained",
            words::seconds(since),
            words::micros(step.before_us),
            words::micros(step.after_us),
        )
    };
    case.finding("path-change", Severity::Note, sentence)
        .sender("step after, ns", since)
        .sender("round trip before, µs", step.before_us)
        .sender("round trip after, µs", step.after_us)
        .sender("flow rehashes by the kernel", rehashed)
        .rate()
        .again(|_| {})
        .done()
}

/// How often the kernels changed the streams' hash, which chooses among equal paths; `None` where none did.
fn rehashed(case: &Case<'_>) -> Option<f64> {
    let streams = case.sender()?.streams_of(case.direction.flow);
    let times: u64 = streams
        .filter_map(|stream| stream.samples.last(Column::rehash))
        .sum();
    (times > 0).then_some(times as f64)
}

/// The step, where there was one.
pub(crate) fn seen(case: &Case<'_>) -> Option<Step> {
    if case.udp() || case.next_door() {
        return None;
    }
    up(case.slices()?).or_else(|| down(case))
}

fn up(slices: &[Slice]) -> Option<Step> {
    let length = slices.get(1)?.at_ns.saturating_sub(slices[0].at_ns).max(1);
    let side = usize::try_from(SIDE_NS.div_ceil(length)).ok()?.max(5);
    // The slice in which it steps, and the one in which the smoothed figure comes up, belong to neither side.
    (side..slices.len().checked_sub(side + 1)?)
        .filter_map(|at| {
            let round_trips = |slices: &[Slice]| -> Vec<f64> {
                slices.iter().map(|slice| slice.rtt_us).collect()
            };
            let before = round_trips(&slices[at - side..at])
                .into_iter()
                .fold(0.0, f64::max);
            let later = &slices[at + 2..];
            if !mostly_above(later, (STEP * before).max(before + STEP_US)) {
                return None;
            }
            let after = statistics::quantile(&round_trips(later), FEW)?;
            if after < STEP * before || after - before < STEP_US {
                return None;
            }
            let law = Law::of_round_trip(settled(later, side))?;
            let no_queue = law.spread >= SPREAD && law.exponent < FOLLOWS;
            no_queue.then_some(Step {
                at_ns: slices[at].at_ns,
                before_us: before,
                after_us: after,
            })
        })
        .max_by(|a, b| (a.after_us / a.before_us).total_cmp(&(b.after_us / b.before_us)))
}

/// Whether so few round trips lie below `least_us` that it is worth sorting them: a long run has thousands of slices, each
/// of which might be the step.
fn mostly_above(slices: &[Slice], least_us: f64) -> bool {
    let below = slices.iter().filter(|slice| slice.rtt_us < least_us);
    below.count() as f64 <= FEW * slices.len() as f64 + 1.0
}

/// The slices without those of the first second up to where the bytes in flight were cut last: where the step made
/// a queue overflow, the repair follows no law.
fn settled(later: &[Slice], second: usize) -> &[Slice] {
    let cut = later
        .windows(2)
        .take(second)
        .rposition(|pair| pair[1].flight_bytes < CUT * pair[0].flight_bytes);
    cut.map_or(later, |at| &later[at + 2..])
}

fn down(case: &Case<'_>) -> Option<Step> {
    let sender = case.sender()?;
    let streams = sender.streams_of(case.direction.flow);
    streams
        .filter_map(|stream| {
            let samples = &stream.samples;
            let least = samples.column(Column::min_rtt_us)?;
            let known = |rtt: &u64| *rtt > 0 && *rtt < u64::from(u32::MAX);
            let settled = samples
                .at_ns()
                .partition_point(|at| *at < sender.start_ns.0 + SIDE_NS);
            let before = *least.get(settled).filter(|rtt| known(rtt))? as f64;
            let row = least[settled..].iter().position(|rtt| {
                let rtt = *rtt as f64;
                before >= STEP * rtt && before - rtt >= STEP_US
            })?;
            Some(Step {
                at_ns: samples.at_ns()[settled + row],
                before_us: before,
                after_us: *least.last()? as f64,
            })
        })
        .min_by_key(|step| step.at_ns)
}
