//! What a captured connection lost, and what stood before the losses: a policer's empty bucket, a queue, neither.

use linerate_analysis::statistics::median;
use linerate_model::finding::{Finding, Quantity, Severity};

use super::policer::{self, No};
use super::transmissions::round_trips_us;
use super::{Direction, count};
use crate::command;
use crate::words;

/// Losses below which nothing is said of their cause.
const ENOUGH: usize = 4;
/// A share of losses below this holds nobody down.
const MATTERS: f64 = 1e-4;
/// Losses after a longer round trip from which share on a queue was there.
const BEHIND_A_QUEUE: f64 = 0.5;
/// Paced at this share of the tokens' rate the bucket does not run empty.
const PACED: f64 = 0.95;

pub(super) fn judge(direction: &Direction<'_>, by_window: bool) -> Option<Finding> {
    let sent = direction.sent;
    if sent.filled > sent.lost() as u64 {
        return before_the_capture(direction);
    }
    let no = match policer::judge(sent) {
        Ok(bucket) => return Some(policed(direction, &bucket)),
        Err(no) => no,
    };
    let (lost, repeats) = (sent.lost(), sent.repeats());
    if repeats > 0 && sent.needless * 2 >= repeats as u64 && repeats >= ENOUGH {
        return Some(needless(direction));
    }
    let share = lost as f64 / sent.sent.len().max(1) as f64;
    if lost < ENOUGH || share < MATTERS || by_window {
        return None;
    }
    Some(lossy(direction, lost, share, no))
}

fn policed(direction: &Direction<'_>, bucket: &policer::Bucket) -> Finding {
    let sent = direction.sent;
    let all = sent.sent.len();
    let stretches = match bucket.stretches {
        0 | 1 => String::new(),
        more => format!(", the same in {more} periods of the connection"),
    };
    let (at, what_helps) = if bucket.small {
        (
            "at least ",
            "The bucket is so small that it drops back-to-back packets at any rate: pacing (an fq qdisc) lets more \
             through"
                .to_owned(),
        )
    } else {
        let paced = command::round_rate(PACED * bucket.rate_bps) as f64;
        let paced = words::rate(paced);
        (
            "",
            format!("Paced at {paced} (an fq qdisc's maxrate) it would lose almost nothing"),
        )
    };
    let explained = match bucket.depth_bytes {
        Some(depth) => format!(
            "a token bucket of {}{} that fills at this rate explains {} losses and what passed between them, and segments \
             right before a loss took no longer than others, where a queue would have delayed them by up to {}",
            if bucket.small { "at most " } else { "" },
            words::size(depth),
            count(bucket.losses),
            words::micros(depth * 8e6 / bucket.rate_bps)
        ),
        None => format!(
            "its token bucket was empty at each of {} losses and not when segments passed{stretches}; {} passed before \
             the first loss, and RTTs before losses were not longer than others (except before {} of them)",
            count(bucket.losses),
            words::size(bucket.burst_bytes),
            words::percent(bucket.longer)
        ),
    };
    let sentence = format!(
        "A policer at {at}{} limits {}: {explained}; {} of {} segments were lost ({}). {what_helps}",
        words::rate(bucket.rate_bps),
        direction.sender(),
        count(sent.lost()),
        count(all),
        words::percent(sent.lost() as f64 / all.max(1) as f64),
    );
    let mut draft = direction
        .finding("policer", Severity::Limit, sentence)
        .figure(Quantity::TokenRate, bucket.rate_bps, "capture")
        .figure(
            "passed before the first loss, bytes",
            bucket.burst_bytes,
            "capture",
        )
        .figure("bucket, bytes", bucket.depth_bytes, "capture")
        .figure("losses that it explains", bucket.losses, "capture")
        .figure("periods in which it was seen", bucket.stretches, "capture")
        .figure(
            "share of losses after a longer RTT",
            bucket.longer,
            "capture",
        )
        .figure("segments sent", all, "capture");
    draft.finding.span_ns = Some(bucket.span_ns);
    draft.finding
}

/// Losses that are no bucket's.
fn lossy(direction: &Direction<'_>, lost: usize, share: f64, no: No) -> Finding {
    let sent = direction.sent;
    let longer = policer::after_longer(&sent.sent);
    let round_trips = round_trips_us(&sent.sent);
    let (usual, least) = (
        median(&round_trips),
        round_trips.iter().copied().reduce(f64::min),
    );
    let trips = match usual.zip(least) {
        Some((usual, least)) => format!(
            "RTT {}, minimum {}",
            words::micros(usual),
            words::micros(least)
        ),
        None => "RTT unknown".to_owned(),
    };
    let what = format!(
        "{} of {} segments were lost ({})",
        count(lost),
        count(sent.sent.len()),
        words::percent(share)
    );
    let draft = if longer >= BEHIND_A_QUEUE && lost >= ENOUGH {
        let rate = direction
            .goodput_bps()
            .map_or_else(String::new, words::rate);
        direction.finding(
            "path-full",
            Severity::Healthy,
            format!(
                "The path is full at {rate}: {what}, {} of them after the RTT had grown: a queue was full ({trips})",
                words::percent(longer)
            ),
        )
    } else {
        direction.finding(
            "network-loss",
            Severity::Limit,
            format!(
                "{what}, {} of them after the RTT had grown ({trips}): {}",
                words::percent(longer),
                not_policed(no)
            ),
        )
    };
    draft
        .figure("segments lost", lost, "capture")
        .figure("segments sent", sent.sent.len(), "capture")
        .figure("share of losses after a longer RTT", longer, "capture")
        .figure("rtt median, µs", usual, "capture")
        .figure("rtt minimum, µs", least, "capture")
        .finding
}

const fn not_policed(no: No) -> &'static str {
    match no {
        No::FilledAtLoss | No::FullerAtLoss | No::EmptyAtPass => {
            "random loss or a shallow queue; no token bucket of one rate fits them"
        }
        No::NeverFull => {
            "random loss or a shallow queue; a policer's bucket would have let more pass at first"
        }
        No::NotExceeded => {
            "random loss or a shallow queue; a policer loses only what exceeds its rate"
        }
        No::Queue => {
            "a queue that grows at times, or a policer in addition to one: the RTTs do not show which"
        }
        No::FewLosses => "random loss, a shallow queue or a policer: too few to tell which",
    }
}

/// Most repeats were for nothing.
fn needless(direction: &Direction<'_>) -> Finding {
    let sent = direction.sent;
    let sentence = format!(
        "{} of {} retransmits were unnecessary: their first copy had arrived, so segments were reordered or \
             acknowledgements came late",
        words::count(sent.needless),
        count(sent.repeats())
    );
    direction
        .finding("reordering", Severity::Note, sentence)
        .figure("segments retransmitted", sent.repeats(), "capture")
        .figure("of them unnecessary", sent.needless, "capture")
        .finding
}

/// The lost copies never came past.
fn before_the_capture(direction: &Direction<'_>) -> Option<Finding> {
    let sent = direction.sent;
    let share = sent.filled as f64 / sent.sent.len().max(1) as f64;
    if sent.filled < ENOUGH as u64 || share < MATTERS {
        return None;
    }
    let sentence = format!(
        "{} of {} segments filled a gap: their first copies were lost or reordered before the capture point. The \
             cause shows only in a capture at {}",
        words::count(sent.filled),
        count(sent.sent.len()),
        direction.sender()
    );
    direction
        .finding("cannot-tell", Severity::Note, sentence)
        .figure("segments that filled a gap", sent.filled, "capture")
        .figure("segments seen", sent.sent.len(), "capture")
        .done()
}
