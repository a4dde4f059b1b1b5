//! What lost the segments: a queue that was full, a policer, chance, or something that the samples do not tell.
//!
//! Three witnesses, all of them from the sender's kernel (`linerate_analysis::losses`):
//!
//! - *the round trip just before a loss*: a queue that overflows was full before, so it is longer than the least;
//! - *what the path once carried*: a path that passed half again as much before the first loss is no link of
//!   the later rate, so no shallow queue in front of such a link can have dropped;
//! - *where the losses come*: a token bucket drops when the bytes sent since the last loss have used the tokens
//!   up. So its losses come in runs, at about the same window, and the rate between two of them is the same
//!   each time; chance loses single segments at any window (Flach et al., SIGCOMM 2016, of which this is the
//!   form for samples). A queue that is too shallow to show in the round trip drops what a burst has above it, so
//!   several segments at a time, and at windows that slow start's bursts, the densest of all, have not passed much above.

use linerate_analysis::losses::{Episode, Losses};
use linerate_analysis::queue as shown;
use linerate_analysis::statistics;

use crate::facts::bucket;
use crate::facts::case::Case;
use crate::facts::chance::{self, Singles};
use crate::facts::queue;

/// … and longer by this much, µs; with samples every 10 ms scheduling makes less than this on a quiet machine.
const QUEUE_US: f64 = 500.0;
/// A queue that grew until it lost is longer than its mean by this factor: CUBIC, which stays near its largest window the
/// longest of all, makes it 1.36 and more where the mean shows none.
const GROWN: f64 = 1.2;
/// A path that once passed this many times the later rate is no link of that rate: CUBIC, which falls to 0.7,
/// uses at least 0.85 of a link with a shallow queue …
const CARRIED_MORE: f64 = 1.25;
/// … and where the round trip is a little longer before a loss, so that there may be such a queue, or the
/// congestion control falls to half (Reno uses 0.75 of such a link), it must be this many times.
const CARRIED_FAR_MORE: f64 = 1.5;
/// … and bursts this many times, where the congestion control falls to half.
const BURSTS_FAR_MORE: f64 = 1.75;
/// Round trips before a loss within this ratio of the least are flat: a queue of less leaves CUBIC, which falls to
/// 0.7, at least 0.85 of its link.
const FLAT: f64 = 1.10;
/// Windows at losses within this ratio of one another are the same window (measured: 1.01 at a policer, 2 to 10
/// under random loss).
const SAME_WINDOW: f64 = 1.25;
/// Rates between losses within this share of their mean are the same rate.
const SAME_RATE: f64 = 0.08;
/// Or apart by what passes in this many round trips: the detector's own tolerance.
const SAME_ROUND_TRIPS: f64 = 2.0;
/// For this share of the time between the losses the rate may be another: a bucket that had filled again, or that slow
/// start's recovery ran over, lets more pass once.
const OTHER_RATE: f64 = 0.10;
/// A policer drops at least this many segments at a time, on average: nobody grows by less in a round trip.
const RUN: f64 = 2.0;
/// A burst that empties a bucket loses at least this share of its window …
const BURST_SHARE: f64 = 0.10;
/// … and this share where no later loss confirms it. Then …
const LONE_BURST_SHARE: f64 = 0.25;
/// … what passed from that loss on differs by no more than this share from the later rate. (Slow start's bursts may
/// overrun a shallow queue long before the path is full; what is under way then passes as fast as before.)
const TOKENS: f64 = 0.35;
/// Before it, half a round trip passed this many times that rate: CUBIC uses at least 0.7 of a link with a shallow queue, …
const LONE_BURST_MORE: f64 = 1.4;
/// … and after it no more than this share of that.
const FEWER: f64 = 0.75;
/// It is over after so many round trips.
const LONE_ROUND_TRIPS: f64 = 16.0;
/// Late acknowledgements and a timeout now and then make the mean round trip no longer than this, µs.
const LATE_US: f64 = 80_000.0;
/// Losses from which on chance can be told from a rule.
const ENOUGH: usize = 4;
/// What is delivered between losses by chance varies as its mean does (coefficient 1; of ten losses one in fifty
/// gives less than this). Between losses that excess makes it varies less: each comes when the window has grown back.
const REGULAR: f64 = 0.5;
/// Streams that lose by chance lose at different moments: as one, they have as many losses as chance lets fall apart.
/// Where there are fewer than this share of that, they lost together (measured: 1.07 of it by chance; 0.3 to 0.7 in a
/// shared queue or bucket).
const EACH_FOR_ITSELF: f64 = 0.8;
/// Losses from which on that can be told.
const ENOUGH_FOR_REGULAR: usize = 8;

/// Slow start sends twice what arrives and sees its first loss when its window has doubled once more. So a queue that passed
/// this many times the windows of the later losses is not overrun by these (measured: 0.2 to 2.1 at queues of 4 to
/// 40 packets, 1.2 to 50 by chance) …
const PASSED_MORE: f64 = 3.0;
/// … and this many times where few losses took several segments: without sudden bursts a queue overflows at one window,
/// and slow start's is about twice that when it sees the loss.
const PASSED_SMOOTHLY: f64 = 2.5;
/// Few losses, of all: measured 0 to 0.36 by chance.
const FEW: f64 = 0.34;
/// What overruns a queue takes several segments in at least this share of the losses (measured: 0.47 to 1; by
/// chance 0 to 0.36, and 0.3 to 0.5 where one packet in a hundred is lost).
const SEVERAL: f64 = 0.5;
/// The windows of the losses rank higher than chance makes them once in a hundred: standard deviations.
const HIGH_WINDOWS: f64 = 2.33;
/// Once in thirty thousand.
const FAR_TOO_HIGH_WINDOWS: f64 = 4.0;

/// What lost the segments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cause {
    /// A queue was full.
    Queue {
        /// Median round trip just before, as a multiple of the least.
        rtt_ratio: f64,
    },
    /// A token bucket was empty.
    Policer,
    /// Chance: single segments, at any window, without a queue.
    Chance,
    /// A shallow queue, a policer or chance.
    Unknown,
}

/// `None` where nothing was lost or no stream's kernel tells.
pub(crate) fn cause(case: &Case<'_>) -> Option<Cause> {
    let streams = case.losses()?;
    if bucket::spent(case).is_some() {
        return Some(Cause::Policer);
    }
    let ratios: Vec<f64> = streams.iter().map(Losses::rtt_ratio).collect();
    let rtt_ratio = statistics::median(&ratios)?;
    let least = streams.first()?.min_rtt_us;
    let shown = shown::at_instant(rtt_ratio * least, least, case.direction.ends);
    if shown.is_some_and(|queue_us| {
        !always_so_long(case, queue_us) && !queue::delayed_acknowledgements(case, queue_us)
    }) {
        return Some(Cause::Queue { rtt_ratio });
    }
    // A bucket and a queue hold all streams together; chance shows on each.
    let common = case.losses_in_common()?;
    Some(
        if policed(case.pooled_losses()?, case.reno()) && !bucket::wavered(case) {
            Cause::Policer
        } else if by_chance(common, singles(case)) && each_for_itself(streams, common) {
            Cause::Chance
        } else {
            Cause::Unknown
        },
    )
}

/// How long the queue is that stands in the path, µs. What is lost by chance is lost at round trips without a queue: then
/// late acknowledgements and timeouts made some of them a little longer.
pub(crate) fn standing_queue_us(case: &Case<'_>) -> Option<f64> {
    queue::standing_queue_us(case)
        .filter(|queue_us| *queue_us >= LATE_US || cause(case) != Some(Cause::Chance))
}

/// Whether the round trip is about as long at any time as before a loss, without a queue in the mean, on a path that
/// passed far more before the first loss or was not kept full: then none grew that a loss would end.
fn always_so_long(case: &Case<'_>, queue_us: f64) -> bool {
    let usual = case
        .round_trips()
        .is_some_and(|(mean, least)| queue_us < GROWN * (mean - least));
    let carried_more = || {
        let all = case.pooled_losses();
        all.is_some_and(|all| carried(all, CARRIED_FAR_MORE))
    };
    usual
        && queue::standing_queue_us(case).is_none()
        && (carried_more() || case.full_in_stretches().is_some())
}

/// The rate of a policer's tokens, bit/s of payload: while its bucket is empty it passes just that, so the
/// median rate in the round trip before the later losses; never below the mean, nor far above it, nor above what
/// passed for a second on end.
pub(crate) fn token_bps(losses: &Losses) -> f64 {
    let before: Vec<f64> = losses
        .later()
        .iter()
        .map(|episode| episode.rate_bps)
        .collect();
    statistics::median(&before)
        .unwrap_or(losses.level_bps)
        .min(losses.sustained_bps)
        .clamp(losses.level_bps, 1.25 * losses.level_bps)
}

fn carried(losses: &Losses, times: f64) -> bool {
    losses.level_bps > 0.0 && losses.peak_bps >= times * losses.level_bps
}

/// The rate that the path passed before the first loss, bit/s: over a round trip, or where no bucket let so much
/// pass, over half of one.
pub(crate) fn passed_bps(losses: &Losses) -> f64 {
    if carried(losses, CARRIED_MORE) {
        losses.peak_bps
    } else {
        losses.burst_bps
    }
}

/// Whether bursts passed at a rate far above the later one without being drawn apart, and no queue stood: a bucket of
/// less than a round trip's bytes lets no whole round trip pass at more than its rate.
fn passed_bursts(losses: &Losses, reno: bool) -> bool {
    let flat = losses.rtt_ratio() <= FLAT;
    let times = if flat && !reno {
        CARRIED_FAR_MORE
    } else if flat {
        BURSTS_FAR_MORE
    } else {
        return false;
    };
    losses.level_bps > 0.0 && losses.burst_bps >= times * losses.level_bps
}

fn policed(losses: &Losses, reno: bool) -> bool {
    let Some(first) = losses.episodes.first() else {
        return false;
    };
    if losses.later().is_empty() {
        return share_of_window(first) >= LONE_BURST_SHARE
            && losses.rtt_ratio() < shown::SHOWS
            && first.to_ns.saturating_sub(first.from_ns) as f64
                <= LONE_ROUND_TRIPS * losses.min_rtt_us * 1e3
            && only_tokens_after(losses);
    }
    let far = reno || losses.rtt_ratio() > FLAT;
    let times = if far { CARRIED_FAR_MORE } else { CARRIED_MORE };
    (carried(losses, times) || passed_bursts(losses, reno))
        && share_of_window(first) >= BURST_SHARE
        && runs(losses.later())
        && same_window(losses)
        && same_rate(losses)
}

/// Whether half a round trip passed far more before the first loss, and the round trip after it about the later rate.
fn only_tokens_after(losses: &Losses) -> bool {
    losses.level_bps > 0.0
        && losses.half_bps >= LONE_BURST_MORE * losses.level_bps
        && losses.after_bps <= FEWER * losses.half_bps
        && (losses.after_bps - losses.level_bps).abs() <= TOKENS * losses.level_bps
}

fn share_of_window(episode: &Episode) -> f64 {
    episode.segments as f64 / episode.window_packets.max(1) as f64
}

fn runs(later: &[Episode]) -> bool {
    let segments: u64 = later.iter().map(|episode| episode.segments).sum();
    segments as f64 >= RUN * later.len() as f64
}

fn same_window(losses: &Losses) -> bool {
    losses
        .window_spread()
        .is_none_or(|spread| spread <= SAME_WINDOW)
}

/// Whether what passed between two losses is what one rate gives, within the tolerance.
fn same_rate(losses: &Losses) -> bool {
    let between = losses.between();
    let time: f64 = between.iter().map(|(_, span)| *span as f64).sum();
    let mean = between
        .iter()
        .map(|(rate, span)| rate * *span as f64)
        .sum::<f64>()
        / time.max(1.0);
    let (same, other): (Vec<_>, Vec<_>) = between.iter().partition(|(rate, span)| {
        let round_trips = SAME_ROUND_TRIPS * losses.min_rtt_us * 1e3 / (*span).max(1) as f64;
        (rate - mean).abs() <= mean * SAME_RATE.max(round_trips.min(0.5))
    });
    // One alone is its own mean.
    same.len() >= between.len().min(2)
        && other.iter().map(|(_, span)| *span as f64).sum::<f64>() <= OTHER_RATE * time
}

/// Whether enough losses came, and not at one window, unless they took single segments of a path that had carried far
/// more; and neither where the window had grown back nor at a shallow queue.
fn by_chance(losses: &Losses, singles: Singles) -> bool {
    let spread = losses
        .window_spread()
        .is_some_and(|spread| spread > SAME_WINDOW);
    losses.episodes.len() >= ENOUGH
        && (spread || (carried(losses, CARRIED_FAR_MORE) && seldom_several(losses.later())))
        && !by_excess(losses)
        && no_shallow_queue(losses, singles)
}

/// Whether the losses of each stream took single segments as chance does.
fn singles(case: &Case<'_>) -> Singles {
    let known = case.losses().zip(case.path().data_segments);
    known.map_or(Singles::Unknown, |(streams, segments)| {
        chance::singles(streams, segments)
    })
}

/// How many of how many losses after the first took several segments at a time, where a shallow queue is not ruled out: what
/// overruns a queue does so, and chance does it only where it comes in bursts.
pub(crate) fn several_at_a_time(case: &Case<'_>) -> Option<(usize, usize)> {
    let losses = case.losses_in_common()?;
    let (all, several) = (losses.later().len(), of_several(losses.later()));
    let mostly = all > 0 && several as f64 >= SEVERAL * all as f64;
    (losses.episodes.len() >= ENOUGH && mostly && !no_shallow_queue(losses, singles(case)))
        .then_some((several, all))
}

/// Whether no queue that is too shallow to show in the round trip can have dropped: far larger windows passed before;
/// or the path has a queue that shows, and did not show at losses of single segments; or there are enough losses to
/// tell that they take one segment at a time at any window.
fn no_shallow_queue(losses: &Losses, singles: Singles) -> bool {
    let Some(first) = losses.episodes.first() else {
        return false;
    };
    let windows: Vec<f64> = losses
        .later()
        .iter()
        .map(|episode| episode.window_packets as f64)
        .collect();
    let queue_showed = first.rtt_us >= shown::STANDS * losses.min_rtt_us
        && first.rtt_us - losses.min_rtt_us >= QUEUE_US;
    let (all, several) = (losses.later().len(), of_several(losses.later()));
    let times = if several as f64 <= FEW * all as f64 {
        PASSED_SMOOTHLY
    } else {
        PASSED_MORE
    };
    let passed_more = statistics::median(&windows)
        .is_some_and(|later| first.window_packets as f64 >= times * later);
    passed_more
        || (queue_showed && seldom_several(losses.later()))
        || any_window(losses, all, singles)
}

/// How many of the losses took more than one segment.
fn of_several(later: &[Episode]) -> usize {
    later.iter().filter(|episode| episode.segments > 1).count()
}

fn seldom_several(later: &[Episode]) -> bool {
    (of_several(later) as f64) < SEVERAL * later.len() as f64
}

/// Whether single segments were lost, at windows that are any. Where chance is beyond doubt, windows that rank high are
/// an accident.
fn any_window(losses: &Losses, all: usize, singles: Singles) -> bool {
    let high = match singles {
        Singles::Unknown => return false,
        Singles::Likely => HIGH_WINDOWS,
        Singles::Sure => FAR_TOO_HIGH_WINDOWS,
    };
    all >= ENOUGH && losses.window_height.is_some_and(|height| height < high)
}

/// Whether several streams lost at moments of their own, not at those of a queue or a bucket that they share.
fn each_for_itself(streams: &[Losses], common: &Losses) -> bool {
    let (Some(first), Some(last)) = (common.episodes.first(), common.episodes.last()) else {
        return false;
    };
    let sum: usize = streams.iter().map(|one| one.episodes.len()).sum();
    let span_ns = last.to_ns.saturating_sub(first.from_ns).max(1) as f64;
    // Losses at random moments fall within one episode's reach of the one before with these odds.
    let apart = (-(sum as f64) * common.apart_ns as f64 / span_ns).exp();
    streams.len() < 2 || common.episodes.len() as f64 >= EACH_FOR_ITSELF * apart * sum as f64
}

/// Whether losses come several at a time and at regular distances, as where a small queue or bucket overflows each
/// time that the window has grown back.
fn by_excess(losses: &Losses) -> bool {
    let later = losses.later();
    if later.len() < ENOUGH_FOR_REGULAR || !runs(later) {
        return false;
    }
    let apart: Vec<f64> = losses
        .episodes
        .windows(2)
        .map(|pair| (pair[1].delivered_from - pair[0].delivered_to).max(0.0))
        .collect();
    let mean = statistics::mean(&apart);
    let square = apart.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / apart.len() as f64;
    mean > 0.0 && square.sqrt() < REGULAR * mean
}
