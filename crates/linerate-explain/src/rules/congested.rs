//! `congested`: other traffic fills the bottleneck, and this is our share of it.
//!
//! Limited by the network for nine tenths of the time, between two hosts, one direction at a time, in one of two forms:
//!
//! - *all the time*: in 19 of 20 slices after the ramp the round trip
//!   is at least 1.25 times the least and 1 ms longer, and by more than three times what it wavers; and all the same
//!   the rate follows our bytes in flight (exponent at least 0.5, half of what varies explained, over a range of at
//!   least 1.25). Alone in a queue a sender that puts in more waits longer and gets no more.
//! - *at times*: while a queue stood, the rate was at two thirds or less of what the path carries, for a tenth of the
//!   slices and five of them at least, with as much less in flight, and that queue was hardly longer (by less than the
//!   root of the ratio of the rates) than at other times. The same queue in front of a path that had become slower takes so much longer to empty.

use linerate_analysis::ends::Ends;
use linerate_analysis::{queue, statistics};
use linerate_model::finding::{Finding, Severity};

use crate::draft::CaseDraft;
use crate::facts::case::Case;
use crate::facts::limit::Limit;
use crate::facts::repeats;
use crate::facts::slices::{self, Law, Slice};
use crate::words;

/// The network held the sender for at least this share of the time.
const ALL: f64 = 0.9;
/// A path whose delay wavers has a longer mean than its least.
const WAVERS: f64 = 3.0;
const EXPONENT: f64 = 0.5;
const EXPLAINS: f64 = 0.5;
const SPREAD: f64 = 1.25;

/// The queue stands, so the path carries what it can, and this sender gets at most this share of that.
const LOW: f64 = 2.0 / 3.0;
/// A rate within this share of the highest behind a queue is the path's own.
const ALL_OURS: f64 = 0.85;
/// So many slices at least, and this share of all, on either side.
const FEW: usize = 5;
const PART: f64 = 0.1;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    match seen(case)? {
        Seen::Always { round_trip_us, law } => always(case, round_trip_us, law),
        Seen::AtTimes(found) => Some(at_times(case, &found)),
    }?
    .with_more_streams()
    .done()
}

fn always<'a>(case: &'a Case<'_>, round_trip_us: f64, law: Law) -> Option<CaseDraft<'a>> {
    let (_, least) = case.round_trips()?;
    let sentence = format!(
        "Other traffic shares the bottleneck: the RTT stays at {} or more (minimum {}) even when this sender has \
         little in flight, and its rate follows its bytes in flight; its share was {}",
        words::micros(round_trip_us),
        words::micros(least),
        words::rate(case.rate()?),
    );
    let draft = case
        .finding("congested", Severity::Limit, sentence)
        .share(case.network_share()?)
        .rate()
        .sender("rtt that 19 of 20 slices exceed, µs", round_trip_us)
        .sender("rtt minimum, µs", least)
        .sender(
            "exponent of the rate over the bytes in flight",
            law.exponent,
        )
        .sender("share of variation explained (R²)", law.explains)
        .sender("largest / smallest bytes in flight", law.spread);
    Some(draft)
}

fn at_times<'a>(case: &'a Case<'_>, found: &AtTimes) -> CaseDraft<'a> {
    let sentence = format!(
        "Other traffic shared the bottleneck at least {} of the time: this sender got {} then and {} otherwise, with \
         a queue of {} compared with {}; if the path itself had become slower, the queue would be longer",
        words::percent(found.share),
        words::rate(found.low.rate_bps),
        words::rate(found.high.rate_bps),
        words::micros(found.low.queue_us),
        words::micros(found.high.queue_us),
    );
    case.finding("congested", Severity::Limit, sentence)
        .share(found.share)
        .rate()
        .sender("rate with the others, bit/s", found.low.rate_bps)
        .sender("rate at other times, bit/s", found.high.rate_bps)
        .sender("queue with the others, µs", found.low.queue_us)
        .sender("queue at other times, µs", found.high.queue_us)
}

/// What shows it.
pub(crate) enum Seen {
    /// A queue of others stood all the time.
    Always {
        /// The round trip that 19 of 20 slices exceed, µs.
        round_trip_us: f64,
        /// How the rate follows the bytes in flight.
        law: Law,
    },
    /// Others came and went.
    AtTimes(AtTimes),
}

/// Behind a queue, with others in it and without.
pub(crate) struct AtTimes {
    /// Share of the slices with others.
    share: f64,
    low: Level,
    high: Level,
}

/// Slices with a queue, by their medians.
struct Level {
    rate_bps: f64,
    flight_bytes: f64,
    queue_us: f64,
}

impl Level {
    /// `None` where there are too few of `all` slices.
    fn of(slices: &[&Slice], all: usize, least_us: f64) -> Option<Self> {
        let part = slices.len() >= FEW && slices.len() as f64 >= PART * all as f64;
        let median = |of: fn(&Slice) -> f64| {
            statistics::median(&slices.iter().map(|slice| of(slice)).collect::<Vec<_>>())
        };
        Some(Self {
            rate_bps: median(|slice| slice.rate_bps)?,
            flight_bytes: median(|slice| slice.flight_bytes)?,
            queue_us: median(|slice| slice.rtt_us)? - least_us,
        })
        .filter(|_| part)
    }
}

pub(crate) fn seen(case: &Case<'_>) -> Option<Seen> {
    // The acknowledgements of both directions at once wait in queues of our own.
    let both = case.evidence.directions.len() > 1;
    if case.limit != Some(Limit::Network) || both || case.next_door() {
        return None;
    }
    // A window or a program that holds the sender now and then makes its rate follow what is in flight as well.
    if case.budget()?.network < ALL {
        return None;
    }
    all_the_time(case).or_else(|| now_and_then(case).map(Seen::AtTimes))
}

/// Whether a mean is that of a queue, and longer than what scheduling makes on any machine.
fn stands(mean_us: f64, least_us: f64) -> bool {
    queue::of_mean(mean_us, least_us, Ends::OneMachine).is_some()
}

fn now_and_then(case: &Case<'_>) -> Option<AtTimes> {
    // Nothing got through in a stall, whatever was in the queue.
    if repeats::explain(case) || case.stall().is_some() {
        return None;
    }
    let (_, least) = case.round_trips()?;
    let slices = slices::of(case)?;
    let queued: Vec<&Slice> = slices
        .iter()
        .filter(|slice| stands(slice.rtt_us, least))
        .collect();
    let rates: Vec<f64> = queued.iter().map(|slice| slice.rate_bps).collect();
    let most = statistics::quantile(&rates, 0.9)?;
    let level = |within: &dyn Fn(f64) -> bool| {
        let part: Vec<&Slice> = queued
            .iter()
            .copied()
            .filter(|slice| within(slice.rate_bps / most))
            .collect();
        let share = part.len() as f64 / slices.len() as f64;
        Some((Level::of(&part, slices.len(), least)?, share))
    };
    let (high, _) = level(&|share| share >= ALL_OURS)?;
    let (low, share) = level(&|share| share <= LOW)?;
    let longer = low.queue_us / high.queue_us.max(1.0);
    let slower = high.rate_bps / low.rate_bps.max(1.0);
    let less = high.flight_bytes / low.flight_bytes.max(1.0);
    (longer < slower.sqrt() && less > slower.sqrt()).then_some(AtTimes { share, low, high })
}

fn all_the_time(case: &Case<'_>) -> Option<Seen> {
    let (_, least) = case.round_trips()?;
    let slices = slices::of(case)?;
    let round_trips: Vec<f64> = slices.iter().map(|slice| slice.rtt_us).collect();
    let round_trip_us = statistics::quantile(&round_trips, 0.05)?;
    let deviation = |slice: &Slice| slice.deviation_us;
    let wavers = statistics::median(&slices.iter().map(deviation).collect::<Vec<_>>())?;
    let law = Law::of_rate(slices)?;
    let queue = round_trip_us - least;
    let stands = stands(round_trip_us, least) && queue >= WAVERS * wavers;
    let shares = law.exponent >= EXPONENT && law.explains >= EXPLAINS && law.spread >= SPREAD;
    (stands && shares).then_some(Seen::Always { round_trip_us, law })
}
