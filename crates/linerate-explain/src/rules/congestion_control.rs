//! `congestion-control`: the sender's congestion control takes longer to come back from a loss than the path allows.
//!
//! Two shapes, both network-limited between two hosts:
//!
//! - *rare losses*: the loss events of the run, by the response functions, let CUBIC reach at least 1.5 times what
//!   Reno does, no queue stands, and the sender runs Reno;
//! - *one loss is too much*: losses came when a queue had grown, for more than half of
//!   the time the rate is below 85 % of what the path carried with a queue, and the time that the algorithm needs to
//!   grow back from one loss (Reno: half the window, a segment a round trip; CUBIC: K of RFC 9438 §4.2) is longer than half of the
//!   run; the first loss came in the first half of it.

use linerate_model::finding::{Finding, Severity};
use linerate_model::remedy::Fix;

use crate::facts::case::Case;
use crate::facts::limit::Limit;
use crate::facts::loss::{self, Cause};
use crate::facts::{repeats, response, slices};
use crate::words;

/// CUBIC must predict this many times Reno's rate.
const BETTER: f64 = 1.5;
/// The low part of a run that one loss spoilt.
const MOST: f64 = 0.5;
/// Its mean rate is below this share of what the path carries.
const FAR_BELOW: f64 = 0.8;

/// One of so many retransmits may have been needless: where more are, segments overtook one another.
const NEEDLESS: u64 = 10;
/// So many slices with a queue show what the path carries.
const QUEUED: usize = 3;

/// What shows it.
struct Seen {
    algorithm: String,
    /// What the path, or another algorithm under the same losses, gives, bit/s.
    possible_bps: f64,
    /// Losses of the run that it reacted to.
    losses: f64,
    /// Time to grow back from one, s.
    recovery_s: f64,
    /// Whether it is the rate to expect, and not only a bound of it.
    predicted: bool,
    /// What would limit at that rate.
    then: &'static str,
}

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let seen = seen(case)?;
    let rate = case.rate()?;
    let (name, after) = if seen.algorithm == "reno" {
        ("Reno", " after slow start")
    } else {
        ("CUBIC", "")
    };
    let sentence = format!(
        "{name} on {} recovers too slowly: it needs {} after one loss at this window and RTT ({}{}{after} in {}); the rate \
         was {}, where {}",
        case.sending_host(),
        words::seconds(words::whole(seen.recovery_s * 1e9)),
        words::count(words::whole(seen.losses)),
        if seen.losses < 1.5 {
            " loss"
        } else {
            " losses"
        },
        words::seconds(case.direction.span_ns + case.plan().omit_ns.0),
        words::rate(rate),
        if seen.predicted {
            format!("{} is possible", words::rate(seen.possible_bps))
        } else {
            format!("about {} seems possible", words::rate(seen.possible_bps))
        },
    );
    let predicted = seen.predicted.then_some(seen.possible_bps);
    let draft = case
        .finding("congestion-control", Severity::Limit, sentence)
        .share(case.network_share()?)
        .rate()
        .sender("possible rate, bit/s", seen.possible_bps)
        .sender("recovery time after a loss, s", seen.recovery_s)
        .sender("losses", seen.losses)
        .sender("rtt mean, µs", case.path().rtt_us);
    if seen.algorithm == "reno" {
        draft
            .sender_remedy(Fix::Congestion("cubic".to_owned()))
            .expected(predicted.unwrap_or(0.0), 0.4, seen.then)
            .again(|plan| plan.congestion = Some("cubic".into()))
            .done()
    } else {
        let seconds = words::whole((seen.recovery_s * 5.0).ceil()).clamp(30, 3600);
        draft.for_seconds(seconds).done()
    }
}

fn seen(case: &Case<'_>) -> Option<Seen> {
    if case.limit != Some(Limit::Network)
        || case.udp()
        || case.next_door()
        || case.direction.link_full
        || case.needless().saturating_mul(NEEDLESS) > case.path().retransmits.unwrap_or(0)
    {
        return None;
    }
    let streams = case.sender()?.streams_of(case.direction.flow);
    let mut names = streams.map(|stream| stream.congestion.as_deref());
    let algorithm = names.next()??;
    if !["reno", "cubic"].contains(&algorithm) || names.any(|other| other != Some(algorithm)) {
        return None;
    }
    let queue = loss::standing_queue_us(case).is_some();
    let rare = (algorithm == "reno" && !queue)
        .then(|| rare_losses(case))
        .flatten();
    rare.or_else(|| one_loss(case, algorithm))
}

/// Time to grow back from one loss at a window of `segments`, s.
fn recovery_s(algorithm: &str, segments: f64, rtt_s: f64) -> f64 {
    if algorithm == "reno" {
        segments / 2.0 * rtt_s
    } else {
        (0.3 * segments / 0.4).cbrt()
    }
}

fn rare_losses(case: &Case<'_>) -> Option<Seen> {
    // The losses that end slow start say nothing of the path's own.
    let losses: f64 = case
        .losses()?
        .iter()
        .map(|one| one.later().len() as f64)
        .sum();
    let rate = case.rate()?;
    let (mss, rtt_s) = (case.path().mss_bytes? as f64, case.path().rtt_us? / 1e6);
    let segments = case.path().data_segments.filter(|all| *all > 0)? as f64;
    if losses < 2.0
        || matches!(
            loss::cause(case),
            Some(Cause::Policer | Cause::Queue { .. })
        )
    {
        return None;
    }
    let share = losses / segments;
    let ratio =
        response::rate("cubic", mss, rtt_s, share) / response::rate("reno", mss, rtt_s, share);
    let each = rate / case.streams();
    let window = each * rtt_s / 8.0 / mss;
    let chance = loss::cause(case) == Some(Cause::Chance);
    // By chance the path's own rate shows only behind a queue; else what it carried at best may be all.
    let most = slices::of(case)
        .and_then(|slices| slices::capacity(case, slices))
        .filter(|capacity| capacity.queued >= QUEUED || !chance)
        .map_or(f64::INFINITY, |capacity| capacity.bps);
    let possible_bps = (ratio * rate).min(most.max(rate));
    (possible_bps >= BETTER * rate).then(|| Seen {
        algorithm: "reno".to_owned(),
        possible_bps,
        losses,
        predicted: chance && repeats::predicts(case, repeats::CUBIC_EXPONENT, possible_bps / rate),
        recovery_s: recovery_s("reno", window, rtt_s),
        then: "the same losses, or the path",
    })
}

fn one_loss(case: &Case<'_>, algorithm: &str) -> Option<Seen> {
    let losses = case.losses()?;
    if !matches!(loss::cause(case), Some(Cause::Queue { .. })) {
        return None;
    }
    let slices = slices::of(case)?;
    let capacity = slices::capacity(case, slices)?;
    let rate = case.rate()?;
    let rtt_s = case.path().rtt_us? / 1e6;
    // The first loss came at the window that filled the path and its queue.
    let window = losses
        .iter()
        .filter_map(|one| one.episodes.first())
        .map(|episode| episode.window_packets)
        .max()? as f64;
    let recovery_s = recovery_s(algorithm, window, rtt_s);
    let slow = recovery_s * 1e9 >= MOST * case.direction.span_ns as f64;
    // Where it lost again at a smaller window, that is what the path bears.
    let back = losses
        .iter()
        .flat_map(linerate_analysis::losses::Losses::later);
    let once = back
        .map(|episode| episode.window_packets as f64)
        .all(|again| again >= FAR_BELOW * window);
    // What was slow before the loss was not growing back from it.
    let start_ns = case.sender()?.start_ns.0;
    let lost_ns = case.first_loss_ns()?.saturating_sub(start_ns);
    let found = slow
        && lost_ns as f64 <= MOST * case.direction.span_ns as f64
        && once
        && capacity.queued >= QUEUED
        && capacity.steady
        && capacity.low >= MOST
        && rate < FAR_BELOW * capacity.bps;
    found.then(|| Seen {
        algorithm: algorithm.to_owned(),
        possible_bps: capacity.bps,
        losses: losses.iter().map(|one| one.episodes.len() as f64).sum(),
        recovery_s,
        predicted: true,
        then: "the path itself",
    })
}

#[cfg(test)]
mod tests {
    use super::recovery_s;

    #[test]
    fn growing_back_takes_what_the_papers_say() {
        // 10 Gbit/s at 100 ms with 1448 bytes: 86,326 segments; CUBIC's K is 40 s, Reno takes over an hour.
        assert!((recovery_s("cubic", 86_326.0, 0.1) - 40.1).abs() < 0.2);
        assert!((recovery_s("reno", 86_326.0, 0.1) - 4316.0).abs() < 1.0);
    }
}
