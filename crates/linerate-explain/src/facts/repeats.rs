//! What was retransmitted, and whether that explains the rate.

use linerate_analysis::losses::{Episode, Losses};

use crate::facts::bucket;
use crate::facts::case::Case;
use crate::facts::limit::Limit;
use crate::facts::loss::{self, Cause};
use crate::facts::{queue, response};

/// Of fewer retransmitted segments than this share nothing is concluded. Whether a share holds a rate down depends on the
/// round trip and the window, which the response function weighs: at 200 ms, one in 100,000 does.
const REPEATS_MATTER: f64 = 1e-6;

/// Fewer retransmitted segments than this explain nothing …
const LEAST_LOST: f64 = 4.0;
/// … but in a run so short that they are this share of all.
const A_LARGE_SHARE: f64 = 1e-4;

/// Fewer lost segments than these tell no share.
const FEW_LOST: u64 = 8;

/// A rate that the response function puts this many times higher was not held down by repeats: the function
/// takes each repeat for a loss event of its own and the mean round trip, and is good to a factor of 2.
const OUT_OF_REACH: f64 = 4.0;

/// A rate this many times what the function gives for the loss events, however many segments each lost, was
/// not held down by them either: a congestion control that heeds loss does not get there.
const ABOVE_ALL_REASON: f64 = 30.0;

/// What the congestion control reaches at a loss of `share` of the segments, bit/s, all streams of the
/// direction; infinite where it does not slow down for it, `None` where the kernel does not tell what that takes.
pub(crate) fn response_bps(case: &Case<'_>, share: f64) -> Option<f64> {
    let stream = case.sender()?.streams_of(case.direction.flow).next()?;
    let one = response::rate(
        stream.congestion.as_deref()?,
        case.path().mss_bytes? as f64,
        round_trip_s(case)?,
        share,
    );
    Some(one * case.streams())
}

fn round_trip_s(case: &Case<'_>) -> Option<f64> {
    case.path()
        .rtt_us
        .filter(|rtt| *rtt > 0.0)
        .map(|rtt| rtt / 1e6)
}

/// Whether as many repeats would hold the congestion control down to about this rate. Where the kernel does
/// not tell what that takes, they may.
fn in_reach(case: &Case<'_>, share: f64) -> bool {
    let known = || {
        let round_trip_s = round_trip_s(case)?;
        // Losses of one round trip are one event to a congestion control.
        let events = |losses: &Losses| -> f64 {
            let rounds = |episode: &Episode| {
                1.0 + episode.to_ns.saturating_sub(episode.from_ns) as f64 / (round_trip_s * 1e9)
            };
            losses.episodes.iter().map(rounds).sum()
        };
        let events = case
            .losses()
            .map(|streams| streams.iter().map(events).sum::<f64>())
            .zip(case.path().data_segments.filter(|all| *all > 0))
            .map_or(share, |(events, all)| (events / all as f64).min(share));
        let rate = case.rate()?;
        Some(
            response_bps(case, share)? <= OUT_OF_REACH * rate
                && rate <= ABOVE_ALL_REASON * response_bps(case, events)?,
        )
    };
    known().unwrap_or(true)
}

/// Share of the segments that were marked: a mark takes as much of the window as a loss, so the more frequent of the two
/// explains the rate.
fn marked_share(case: &Case<'_>) -> f64 {
    let known = case.marked().zip(case.path().data_segments);
    known.map_or(0.0, |(marked, all)| marked as f64 / all.max(1) as f64)
}

/// Whether a path without a queue held a rate down by what it made the sender repeat.
fn share_explains(case: &Case<'_>, share: Option<f64>) -> bool {
    case.limit == Some(Limit::Network)
        && !case.udp()
        && !case.without_network()
        && !case.direction.link_full
        && loss::standing_queue_us(case).is_none()
        && share.is_some_and(|share| {
            let segments = case.path().data_segments.unwrap_or(0) as f64;
            let enough = share >= A_LARGE_SHARE || share * segments >= LEAST_LOST;
            enough
                && share >= REPEATS_MATTER
                && share >= marked_share(case)
                && in_reach(case, share)
        })
}

/// Whether a path without a queue lost so much that loss explains its rate, or a bucket dropped what exceeded it.
pub(crate) fn loss_explains(case: &Case<'_>) -> bool {
    bucket::spent(case).is_some()
        || (share_explains(case, case.lost_share())
            && !reordering_explains(case)
            && !matches!(loss::cause(case), Some(Cause::Queue { .. })))
}

/// Whether most of what was retransmitted had arrived: the segments overtook one another.
pub(crate) fn reordering_explains(case: &Case<'_>) -> bool {
    let again = case.path().retransmits.unwrap_or(0);
    share_explains(case, case.repeated_share()) && case.needless().saturating_mul(2) >= again
}

/// Whether what the sender repeated, for good reason or not, explains its rate.
pub(crate) fn explain(case: &Case<'_>) -> bool {
    loss_explains(case) || reordering_explains(case)
}

/// What the congestion control reaches at the loss that was seen, bit/s, all streams of the direction; `None`
/// where it lost too little to tell.
pub(crate) fn loss_bound_bps(case: &Case<'_>) -> Option<f64> {
    let share = case.lost_share().filter(|share| *share >= REPEATS_MATTER)?;
    let lost = case.path().retransmits?.saturating_sub(case.needless());
    if lost < FEW_LOST {
        return None;
    }
    response_bps(case, share).filter(|bps| bps.is_finite())
}

/// What a predicted rate may be off by, and for how many deviations of chance: nine in ten.
const PREDICTED_WITHIN: f64 = 0.15;

const NINE_IN_TEN: f64 = 1.645;

/// Losses that are enough to predict the rate of another run which sees `times` as many, for nine in ten within 15 %.
///
/// The mean rate over n random losses lies about the long run's with a deviation of e/√n of it, where the rate goes with
/// the loss's odds to the power −e ([`loss_exponent`]): that is what the losses' number alone does, and simulated
/// congestion avoidance at e = ½ gave no more. The other run's deviation comes on top.
pub(crate) fn enough_losses(exponent: f64, times: f64) -> f64 {
    (NINE_IN_TEN * exponent / PREDICTED_WITHIN).powi(2) * (1.0 + 1.0 / times)
}

/// Whether so many were measured.
pub(crate) fn predicts(case: &Case<'_>, exponent: f64, times: f64) -> bool {
    losses_measured(case) as f64 >= enough_losses(exponent, times)
}

/// By which power of the loss's odds the rate falls, where they are as they were: ½ to ¾.
pub(crate) fn loss_exponent(case: &Case<'_>) -> f64 {
    const A_LITTLE_LESS: f64 = 0.9;
    response_ratio(case, A_LITTLE_LESS)
        .map_or(CUBIC_EXPONENT, |ratio| -ratio.ln() / A_LITTLE_LESS.ln())
}

/// That of CUBIC where it is not as slow as Reno: RFC 9438 §5.1.
pub(crate) const CUBIC_EXPONENT: f64 = 0.75;

/// The part of the losses that came while the rate was measured and not behind a queue, each of one round trip or less.
pub(crate) fn losses_measured(case: &Case<'_>) -> usize {
    let counted = || {
        let begin = case.sender()?.start_ns.plus(case.plan().omit_ns).0;
        let measured = |one: &Losses| {
            let episodes = one.episodes.iter();
            episodes
                .filter(|episode| episode.from_ns >= begin && !queue::behind_a_queue(one, episode))
                .count()
        };
        Some(case.losses()?.iter().map(measured).sum())
    };
    counted().unwrap_or(0)
}

/// How many times the rate the response function gives where the loss is `part` of what it was.
pub(crate) fn response_ratio(case: &Case<'_>, part: f64) -> Option<f64> {
    let share = case.lost_share().filter(|share| *share > 0.0)?;
    let ratio = response_bps(case, share * part)? / response_bps(case, share)?;
    ratio.is_finite().then_some(ratio)
}
