//! How slow start ended, and what part of the run it took.

use linerate_analysis::statistics;
use linerate_model::column::Column;
use linerate_model::record::StreamRecord;

use crate::facts::case::Case;
use crate::facts::limit::Limit;
use crate::facts::{marks, queue, repeats};

/// `snd_ssthresh` while none is set (`TCP_INFINITE_SSTHRESH`).
const NONE_YET: u64 = 0x7fff_ffff;
/// The part of a run that a path which it fills late is not filled.
const LATE: f64 = 0.5;
/// A window that grew to this many times the threshold since was far from the path's bound.
const GREW: f64 = 2.0;
/// A ramp of more than this share of the run is worth a word …
pub(crate) const LONG: f64 = 0.15;
/// … where the average is below this share of the later rate.
pub(crate) const HIDES: f64 = 0.90;
/// Slow start that takes this share of a run …
const MOST: f64 = 0.35;
/// … and leaves this share of the later rate as the average is why the run gave so little.
const HIDES_MUCH: f64 = 0.75;

/// How one stream left slow start.
pub(crate) struct Exit {
    pub(crate) at_ns: u64,
    pub(crate) threshold: u64,
    /// The same as a rate, bit/s.
    pub(crate) rate_bps: f64,
    /// The largest window afterwards, segments.
    pub(crate) largest: u64,
}

/// The exit of a stream that left slow start early, where that explains the rate.
pub(crate) fn early(case: &Case<'_>) -> Option<Exit> {
    let explains = case.limit == Some(Limit::Network)
        && !case.udp()
        && !case.next_door()
        && !repeats::explain(case)
        && (case.full().is_none() || filled_late(case))
        && marks::of(case).is_none();
    early_exit(case).filter(|_| explains)
}

/// Whether the path was full only after congestion avoidance had taken most of the run to fill it, without a loss.
pub(crate) fn filled_late(case: &Case<'_>) -> bool {
    let most_of_the_run = || {
        let exit = early_exit(case)?;
        let grew = case.first_loss_ns()?.saturating_sub(exit.at_ns) as f64;
        Some(grew >= LATE * case.direction.span_ns as f64)
    };
    case.limit == Some(Limit::Network)
        && queue::standing_queue_us(case).is_none()
        && case.full_in_stretches().is_some()
        && most_of_the_run() == Some(true)
}

/// When slow start ended without a loss, ns on the sender's clock; `None` where it did not.
pub(crate) fn ended_ns(stream: &StreamRecord) -> Option<u64> {
    exit(stream).map(|exit| exit.at_ns)
}

/// When slow start ended, whatever ended it, ns on the sender's clock; `None` where it did not, or where the
/// kernel remembered a threshold.
pub(crate) fn left_slow_start_ns(stream: &StreamRecord) -> Option<u64> {
    let thresholds = stream.samples.column(Column::snd_ssthresh_packets)?;
    let set = |threshold: &u64| (1..NONE_YET).contains(threshold);
    let row = thresholds.iter().position(set).filter(|row| *row > 0)?;
    stream.samples.at_ns().get(row).copied()
}

/// That of the first stream which left early.
fn early_exit(case: &Case<'_>) -> Option<Exit> {
    let mut streams = case.sender()?.streams_of(case.direction.flow);
    streams.find_map(left_early)
}

fn left_early(stream: &StreamRecord) -> Option<Exit> {
    exit(stream).filter(|exit| exit.largest as f64 >= GREW * exit.threshold as f64)
}

fn exit(stream: &StreamRecord) -> Option<Exit> {
    let samples = &stream.samples;
    let thresholds = samples.column(Column::snd_ssthresh_packets)?;
    let row = thresholds
        .iter()
        .position(|threshold| *threshold < NONE_YET && *threshold > 0)?;
    let still_zero = |column: Column| samples.column(column).is_none_or(|values| values[row] == 0);
    // A threshold that stands from the first sample on came from the kernel's memory of the path.
    if row == 0
        || !still_zero(Column::total_retrans_packets)
        || !still_zero(Column::delivered_ce_packets)
    {
        return None;
    }
    let threshold = thresholds[row];
    let largest = *samples.column(Column::snd_cwnd_packets)?[row..]
        .iter()
        .max()?;
    let mss = *samples.column(Column::snd_mss_bytes)?.get(row)?;
    let rtt = samples
        .column(Column::min_rtt_us)?
        .get(row)
        .copied()
        .filter(|rtt| *rtt > 0)?;
    Some(Exit {
        at_ns: samples.at_ns()[row],
        threshold,
        rate_bps: (threshold * mss) as f64 * 8e6 / rtt as f64,
        largest,
    })
}

/// How long slow start took, ns, where it took so much of a run that never got steady that it explains the rate.
pub(crate) fn most_of_the_run(case: &Case<'_>) -> Option<u64> {
    let direction = case.direction;
    let unsteady = direction.plateau?.unsteady.is_some();
    if !unsteady
        || case.limit != Some(Limit::Network)
        || case.udp()
        || case.next_door()
        || repeats::explain(case)
        || marks::of(case).is_some()
        || early(case).is_some()
    {
        return None;
    }
    let ramp = slow_start_ns(case)?;
    let after = rates_after(case, ramp)?;
    let whole = direction.whole_run_bps()?;
    let long = ramp as f64 > LONG * direction.span_ns as f64;
    (long && HIDES * statistics::mean(after) >= whole).then_some(ramp)
}

/// How long slow start took, ns, of the stream that was longest in it.
fn slow_start_ns(case: &Case<'_>) -> Option<u64> {
    let sender = case.sender()?;
    let last = |ended: fn(&StreamRecord) -> Option<u64>| {
        let streams = sender.streams_of(case.direction.flow);
        streams.filter_map(ended).max()
    };
    // Where a loss ended it, only a full path shows that it took until then to fill it.
    let ended =
        last(ended_ns).or_else(|| last(left_slow_start_ns).filter(|_| case.full().is_some()))?;
    Some(ended.saturating_sub(sender.start_ns.0))
}

/// Whether slow start took so much of the run, and of what the run could have moved, that nothing else matters.
pub(crate) fn is_the_answer(case: &Case<'_>) -> bool {
    let took_most = || {
        if case.udp() || case.next_door() || case.limit != Some(Limit::Network) {
            return None;
        }
        let ramp = slow_start_ns(case)?;
        let after = statistics::mean(rates_after(case, ramp)?);
        let whole = case.direction.whole_run_bps()?;
        let most = ramp as f64 >= MOST * case.direction.span_ns as f64;
        Some(most && whole <= HIDES_MUCH * after)
    };
    took_most() == Some(true)
}

/// Rates after the first `ramp` ns; `None` where there are none.
pub(crate) fn rates_after<'a>(case: &Case<'a>, ramp: u64) -> Option<&'a [f64]> {
    let direction = case.direction;
    let points = usize::try_from(ramp / direction.grid_step_ns.max(1)).unwrap_or(usize::MAX);
    let rest = direction.rates_bps.get(points..);
    rest.filter(|rest| !rest.is_empty())
}
