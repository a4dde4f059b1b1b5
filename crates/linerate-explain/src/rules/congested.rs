//! `congested`: somebody else's traffic fills the bottleneck, and this is our share of it.
//!
//! Limited by the network for nine tenths of the time, between two hosts, one direction at a time; in 19 of 20 slices after the ramp the round trip is at least 1.25 times the
//! least and 1 ms longer, and by more than three times what it wavers; and all the same the rate follows
//! our bytes in flight (exponent at least 0.5, half of what varies explained, over a range of at least 1.25). Alone
//! in a queue a sender that puts in more waits longer and gets no more.

use linerate_model::finding::{Finding, Severity};
use linerate_model::statistics;

use crate::case::Case;
use crate::limit::Limit;
use crate::rules;
use crate::slices::{self, Law, Slice};
use crate::words;

/// The network held the sender for at least this share of the time.
const ALL: f64 = 0.9;
const QUEUE_RATIO: f64 = 1.25;
const QUEUE_US: f64 = 1000.0;
/// A path whose delay wavers has a longer mean than its least.
const WAVERS: f64 = 3.0;
const EXPONENT: f64 = 0.5;
const EXPLAINS: f64 = 0.5;
const SPREAD: f64 = 1.25;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let found = seen(case)?;
    let (_, least) = case.round_trips()?;
    let rate = case.rate()?;
    let sentence = format!(
        "Other traffic shares the bottleneck: the round trip stays at {} or more (least {}) however little this sender \
         has in flight, and its rate follows what it has in flight: {} was its share",
        words::micros(found.round_trip_us),
        words::micros(least),
        words::rate(rate),
    );
    let more = case.plan().streams.saturating_mul(4).min(128);
    case.finding("congested", Severity::Limit, sentence)
        .share(case.budget()?.network)
        .figures([
            case.rate_figure(),
            case.sender_figure(
                "rtt that 19 of 20 slices exceed, µs",
                Some(found.round_trip_us),
            ),
            case.sender_figure("rtt least, µs", Some(least)),
            case.sender_figure(
                "exponent of the rate over the bytes in flight",
                Some(found.law.exponent),
            ),
            case.sender_figure(
                "share of what varies that this explains",
                Some(found.law.explains),
            ),
            case.sender_figure(
                "largest over smallest bytes in flight",
                Some(found.law.spread),
            ),
        ])
        .next(case.again(|plan| plan.streams = more))
        .done()
}

/// What shows it.
pub(crate) struct Seen {
    round_trip_us: f64,
    law: Law,
}

pub(crate) fn seen(case: &Case<'_>) -> Option<Seen> {
    // The acknowledgements of both directions at once wait in queues of our own.
    let both = case.evidence.directions.len() > 1;
    if case.limit != Some(Limit::Network)
        || both
        || case.next_door()
        || rules::path_change::seen(case).is_some()
        || rules::shaper::judge(case).is_some()
    {
        return None;
    }
    // A window or a program that holds the sender now and then makes its rate follow what is in flight as well.
    if case.budget()?.network < ALL {
        return None;
    }
    let (_, least) = case.round_trips()?;
    let slices = slices::of(case)?;
    let round_trips: Vec<f64> = slices.iter().map(|slice| slice.rtt_us).collect();
    let round_trip_us = slices::quantile(&round_trips, 0.05)?;
    let deviation = |slice: &Slice| slice.deviation_us;
    let wavers = statistics::median(&slices.iter().map(deviation).collect::<Vec<_>>())?;
    let law = Law::of_rate(&slices)?;
    let queue = round_trip_us - least;
    let stands = round_trip_us >= QUEUE_RATIO * least && queue >= QUEUE_US.max(WAVERS * wavers);
    let shares = law.exponent >= EXPONENT && law.explains >= EXPLAINS && law.spread >= SPREAD;
    (stands && shares).then_some(Seen { round_trip_us, law })
}
