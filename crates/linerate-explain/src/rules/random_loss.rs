//! `random-loss`: single segments are lost by chance, without a queue.
//!
//! Network-limited, no standing queue, so many segments sent again that had not arrived already that the congestion
//! control's response function gives about this rate; and [`crate::facts::loss`] sees
//! at least four losses that come neither after a queue nor by a token bucket, at windows that differ by more
//! than a quarter or on a path that has carried 1.5 times as much, and no queue too shallow to show in the round
//! trip that own bursts overrun. What cannot be decided is `network-loss`.

use linerate_analysis::losses::{Episode, Losses};
use linerate_model::finding::{Finding, Severity};
use linerate_model::remedy::Fix;

use crate::facts::case::Case;
use crate::facts::loss::{self, Cause};
use crate::facts::{queue, repeats};
use crate::phrases;
use crate::words;
use crate::would_pass;

/// The uncertainty of a rate predicted from n losses: 1.96 deviations of chance ([`repeats::enough_losses`], as far as most
/// paths go) over √n, and the rest.
const SCATTER: f64 = 1.1;
const SURE: f64 = 0.05;

/// What more time is asked for than the losses of this run took: the next one's number wavers.
const RATHER_LONGER: f64 = 1.2;

/// How long the same path would take for `enough` losses, whole tens of seconds.
fn enough_seconds(case: &Case<'_>, losses: usize, enough: f64) -> Option<u64> {
    let each_s = case.direction.span_ns as f64 / 1e9 / losses as f64;
    let seconds = (RATHER_LONGER * each_s * enough / 10.0).ceil() * 10.0;
    (losses > 0 && seconds < 86_400.0).then(|| words::whole(seconds))
}

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if !repeats::loss_explains(case) || loss::cause(case) != Some(Cause::Chance) {
        return None;
    }
    let share = case.network_share()?;
    let streams = case.losses()?;
    let losses: usize = streams.iter().map(|one| one.episodes.len()).sum();
    let path = case.path();
    let (again, all) = path.retransmits.zip(path.data_segments)?;
    let rtt = phrases::round_trips(case).unwrap_or_else(|| "RTT unknown".to_owned());
    let needless = phrases::received_twice(case);
    // Slow start that overran a queue is no chance, and says nothing of the rest.
    let queued: Vec<&Episode> = streams
        .iter()
        .flat_map(|one| {
            one.episodes
                .iter()
                .filter(|episode| queue::behind_a_queue(one, episode))
        })
        .collect();
    let overrun: u64 = queued.iter().map(|episode| episode.segments).sum();
    let alone = losses - queued.len();
    let by_chance = again.saturating_sub(overrun);
    let besides = if overrun > 0 {
        format!("; {} more when a queue overflowed", words::count(overrun))
    } else {
        String::new()
    };
    let more = case.plan().streams.saturating_mul(4).min(128);
    let factor = f64::from(more) / case.streams();
    let measured = repeats::losses_measured(case);
    let enough = repeats::enough_losses(repeats::loss_exponent(case), factor);
    let predicted = (measured as f64 >= enough).then_some(factor * case.rate()?);
    let few = match (predicted, enough_seconds(case, measured, enough)) {
        (None, Some(seconds)) => {
            format!(
                "; too few losses to predict the rate with -P {more} (a test of about {seconds} s would see enough)"
            )
        }
        _ => String::new(),
    };
    let sentence = format!(
        "Random loss limited the rate {} of the time: {} of {} segments were retransmitted{needless} ({}), in \
         {alone} losses spread over the run without a queue ({rtt}){few}{besides}",
        words::percent(share),
        words::count(by_chance),
        words::count(all),
        words::percent(by_chance as f64 / all.max(1) as f64),
    );
    let uncertainty = SURE + SCATTER / (measured.max(1) as f64).sqrt();
    case.finding("random-loss", Severity::Limit, sentence)
        .share(share)
        .sender("network share of the plateau", share)
        .sender("segments retransmitted", again)
        .sender("of them after a queue overflowed", overrun)
        .sender(words::RECEIVED_TWICE, path.received_twice)
        .sender("segments sent", all)
        .sender("losses without a queue", alone)
        .sender(
            "largest / smallest window at a loss",
            streams.iter().find_map(Losses::window_spread),
        )
        .sender(
            "rate over a round trip before the first loss, bit/s",
            streams.first().map(|one| one.peak_bps),
        )
        .sender(
            "rate at a tenth of the loss, bit/s",
            repeats::response_ratio(case, 0.1)
                .zip(case.rate())
                .map(|(ratio, rate)| ratio * rate),
        )
        .round_trips()
        .rate()
        .sender_remedy(Fix::Streams(more))
        .expected(
            predicted.unwrap_or(0.0),
            uncertainty,
            "the same random loss on each stream, until the path is full",
        )
        .would_pass(would_pass::loss(case))
        .with_more_streams()
        .done()
}
