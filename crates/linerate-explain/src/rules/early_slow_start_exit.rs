//! `early-slow-start-exit`: slow start ended without a loss, far below what the path carries.
//!
//! Network-limited, neither a queue nor loss explains the rate, and the sender's slow-start threshold was set
//! while nothing had been sent again and nothing marked by ECN (`HyStart` took a rising delay for a queue); the
//! congestion window has at least doubled since, so the path still had room. A path that was filled, and lost segments
//! by its queue, only after more than half of the run in congestion avoidance, and carried far more then than the mean,
//! does not speak against it.

use linerate_model::column::Column;
use linerate_model::finding::{Finding, Severity};
use linerate_model::plan::End;
use linerate_model::record::StreamRecord;
use linerate_model::remedy::Fix;
use linerate_model::units::Nanos;

use crate::facts::case::{Case, capital};
use crate::facts::limit::{self, Limit};
use crate::rules;
use crate::words;

/// `snd_ssthresh` while none is set (`TCP_INFINITE_SSTHRESH`).
const NONE_YET: u64 = 0x7fff_ffff;
/// The part of a run that a path which it fills late is not filled.
const MOST: f64 = 0.5;
/// A window that grew to this many times the threshold since was far from the path's bound.
const GREW: f64 = 2.0;

/// How one stream left slow start.
struct Exit {
    at_ns: u64,
    threshold: u64,
    /// The same as a rate, bit/s.
    rate_bps: f64,
    /// The largest window afterwards, segments.
    largest: u64,
}

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if case.limit != Some(Limit::Network)
        || case.udp()
        || case.next_door()
        || rules::repeats_held_it(case)
        || (rules::path_is_full(case) && !filled_late(case))
        || rules::ecn::judge(case).is_some()
    {
        return None;
    }
    let sender = case.sender()?;
    let exit = early_exit(case)?;
    let since = exit.at_ns.saturating_sub(sender.start_ns.0);
    let late = case.first_loss_ns().filter(|_| filled_late(case));
    let until = late.map_or_else(
        || "the rest of the run".to_owned(),
        |lost| {
            let grew = words::seconds(lost.saturating_sub(exit.at_ns));
            format!("{grew}, to the first loss,")
        },
    );
    let sentence = format!(
        "{}'s slow start ended after {} at {} segments ({} at this round trip) without a loss: it took a rising delay \
         for a queue, and congestion avoidance took {until} to come to {} segments",
        capital(&case.sending_host()),
        words::seconds(since),
        words::count(exit.threshold),
        words::rate(exit.rate_bps),
        words::count(exit.largest),
    );
    let longer = (case.direction.span_ns / 1_000_000_000)
        .saturating_mul(3)
        .clamp(30, 600);
    let share = case.network_share()?;
    case.finding("early-slow-start-exit", Severity::Limit, sentence)
        .share(share)
        .figures([
            case.sender_figure("end of slow start, ns", Some(since as f64)),
            case.sender_figure(
                "slow-start threshold, segments",
                Some(exit.threshold as f64),
            ),
            case.sender_figure("rate at that window, bit/s", Some(exit.rate_bps)),
            case.sender_figure(
                "largest window afterwards, segments",
                Some(exit.largest as f64),
            ),
            case.sender_figure("rtt least, µs", case.path().min_rtt_us),
            case.rate_figure(),
        ])
        .remedy(case.direction.flow.sender(), Fix::HystartOff)
        .next(case.again(|plan| plan.end = End::TimeNs(Nanos::from_millis(longer * 1000))))
        .done()
}

/// Whether the path was full only after congestion avoidance had taken most of the run to fill it, without a loss.
pub(crate) fn filled_late(case: &Case<'_>) -> bool {
    let most_of_the_run = || {
        let exit = early_exit(case)?;
        let grew = case.first_loss_ns()?.saturating_sub(exit.at_ns) as f64;
        Some(grew >= MOST * case.direction.span_ns as f64)
    };
    limit::standing_queue_us(case).is_none()
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
