//! `policer`: somebody drops what exceeds a rate, and lets bursts pass.
//!
//! [`crate::facts::bucket`] finds that the sender spent a credit and then got a constant rate while losses went on; or
//! loss without a queue explains the rate (as for `random-loss`), and [`crate::facts::loss`] finds a token bucket: the
//! path passed at least 1.25 times the later rate over a round trip before the first loss, or 1.5 times over half a one, or over 8 ms in each of two,
//! without a longer round trip; that loss took a tenth of the window or
//! more; later losses come in runs, at the same window, with the same rate between them. Several streams share a bucket, so their deliveries, losses
//! and windows are judged together. It says "consistent with": samples are no packets.

use linerate_analysis::credit::Credit;
use linerate_model::finding::{Finding, Quantity, Severity};
use linerate_model::remedy::Fix;
use linerate_model::units::BitRate;

use crate::command;
use crate::facts::bucket;
use crate::facts::case::Case;
use crate::facts::loss::{self, Cause};
use crate::facts::repeats;
use crate::words;

/// Paced at this share of the policed rate, which samples tell to a tenth, the bucket does not run empty.
const PACED: f64 = 0.90;
/// A remedy that gives less than this many times the rate gains none.
const WORTH: f64 = 1.02;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if !repeats::loss_explains(case) || loss::cause(case) != Some(Cause::Policer) {
        return None;
    }
    let losses = case.pooled_losses()?;
    let streams = case.streams();
    let first = losses.episodes.first()?;
    let share = case.network_share()?;
    let spent = bucket::spent(case);
    let level = spent.map_or_else(|| loss::token_bps(losses), |credit| credit.rate_bps);
    let later = match losses.later().len() {
        0 => String::new(),
        1 => ", then one more loss".to_owned(),
        more => format!(
            ", then {more} more losses at the same rate ({} segments in total)",
            words::count(case.path().retransmits?)
        ),
    };
    let paced = command::round_rate(PACED * level / streams);
    let more = paced as f64 * streams > WORTH * case.rate()?;
    let gains = if more {
        ""
    } else {
        "; pacing below it avoids the retransmits at about the same rate"
    };
    let from_losses = || {
        format!(
            "Consistent with a policer at about {}: {} passed until {} segments were retransmitted, at a window of \
         {}{later}; no queue before the losses (RTT {}, minimum {}){gains}",
            words::rate(level),
            words::rate(loss::passed_bps(losses)),
            words::count(first.segments),
            words::count(first.window_packets),
            words::micros(losses.rtt_ratio() * losses.min_rtt_us),
            words::micros(losses.min_rtt_us),
        )
    };
    let sentence = spent.map_or_else(from_losses, |credit| of_credit(credit, gains));
    case.finding("policer", Severity::Limit, sentence)
        .share(share)
        .sender("network share of the plateau", share)
        .sender(
            "rate over a round trip before the first loss, bit/s",
            losses.peak_bps,
        )
        .sender(
            "the same over half a round trip, or 8 ms of two, bit/s",
            losses.burst_bps,
        )
        .sender(Quantity::TokenRate, level)
        .sender(
            "delivered before the first loss, bytes",
            first.delivered_from,
        )
        .sender("bucket, bytes", spent.map(|credit| credit.bytes))
        .sender(
            "wander about the later rate",
            spent.map(|credit| credit.wander),
        )
        .sender("losses", losses.episodes.len())
        .sender(
            "largest / smallest window at a loss",
            losses.window_spread(),
        )
        .sender("rtt before a loss / minimum", losses.rtt_ratio())
        .rate()
        .sender_remedy(Fix::Pacing(BitRate(paced)))
        .expected(
            paced as f64 * streams,
            0.10,
            "the pacing, just below the policer",
        )
        .again(|plan| plan.kernel_pacing_bps = Some(BitRate(paced)))
        .done()
}

fn of_credit(credit: &Credit, gains: &str) -> String {
    format!(
        "Consistent with a policer at about {} with a bucket of about {}: after that burst the rate stayed \
         constant while {} segments were retransmitted; no queue grew before these losses (RTT {}, minimum {}){gains}",
        words::rate(credit.rate_bps),
        words::size(credit.bytes),
        words::count(credit.segments),
        words::micros(credit.rtt_us),
        words::micros(credit.min_rtt_us),
    )
}
