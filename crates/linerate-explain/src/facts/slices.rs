//! A direction in slices of time, as its sending kernel saw it: rate, bytes in flight, round trip.
//!
//! Between the three stands Little's law: rate = bytes in flight / round trip. What varies with what tells who
//! fills the bottleneck. Where our own queue stands in it, more in flight makes the round trip longer and the
//! rate stays; where no queue stands, the round trip stays and the rate grows; where other traffic's queue stands
//! in it, the round trip is long and the rate grows all the same, because it is our share of that queue.

use linerate_analysis::losses::delivered_bytes;
use linerate_analysis::statistics::quantile;
use linerate_analysis::{queue, statistics};
use linerate_model::column::Column;
use linerate_model::record::StreamRecord;

use crate::facts::case::Case;

/// A slice is at least so many round trips long (the kernel smooths the round trip over eight acknowledgements) …
const ROUND_TRIPS: f64 = 4.0;
/// … and this long, ns.
const LEAST_NS: f64 = 100e6;
/// Fewer slices than this show no law.
const ENOUGH: usize = 10;
/// The ramp is over in the slice that first reaches this share of the median rate.
const RAMPED: f64 = 0.8;
/// A rate below this share of what the path carried while a queue stood is low.
const LOW: f64 = 0.85;
/// What the path carries is steady where so large a share of the slices with a queue have that rate.
const MOSTLY: f64 = 0.9;

/// All streams of a direction together, for a slice of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slice {
    /// Its beginning, ns on the sender's clock.
    pub(crate) at_ns: u64,
    /// What passed the path, bit/s.
    pub(crate) rate_bps: f64,
    /// Mean of the bytes in flight.
    pub(crate) flight_bytes: f64,
    /// Mean of the smoothed round trips, µs.
    pub(crate) rtt_us: f64,
    /// Mean deviation of the round trips, µs.
    pub(crate) deviation_us: f64,
}

/// The slices after the ramp, until the test ended; `None` where the sender's kernel does not tell enough.
pub(crate) fn of<'a>(case: &'a Case<'_>) -> Option<&'a [Slice]> {
    let slices = case.slices()?;
    let rates: Vec<f64> = slices.iter().map(|slice| slice.rate_bps).collect();
    let usual = statistics::median(&rates)?;
    let ramped = rates.iter().position(|rate| *rate >= RAMPED * usual)?;
    let slices = &slices[ramped + 1..];
    (usual > 0.0 && slices.len() >= ENOUGH).then_some(slices)
}

/// Cuts the whole run. A time without a sample, in which the process did not run, has no slice.
pub(crate) fn cut(case: &Case<'_>) -> Option<Vec<Slice>> {
    if case.udp() {
        return None;
    }
    let end = case.sender()?;
    let streams: Vec<&StreamRecord> = end.streams_of(case.direction.flow).collect();
    let first = |stream: &&StreamRecord| stream.omit_until_ns.or(stream.first_byte_ns);
    let from = streams.iter().filter_map(first).min()?.max(end.start_ns).0;
    let step = (ROUND_TRIPS * 1e3 * case.path().rtt_us?).max(LEAST_NS);
    let to = end.end_ns.0;
    let count = to.checked_sub(from)? as f64 / step;
    let delivered: Vec<Vec<f64>> = streams
        .iter()
        .map(|stream| delivered_bytes(stream))
        .collect::<Option<_>>()?;
    let slices = (0..linerate_model::units::whole(count).min(100_000)).filter_map(|number| {
        let begin = from.saturating_add(linerate_model::units::whole(number as f64 * step));
        let end = from.saturating_add(linerate_model::units::whole((number + 1) as f64 * step));
        Slice::of(&streams, &delivered, begin, end)
    });
    Some(slices.collect())
}

impl Slice {
    /// `delivered` are the bytes that had passed until each sample, of each stream.
    fn of(streams: &[&StreamRecord], delivered: &[Vec<f64>], from: u64, to: u64) -> Option<Self> {
        let mut slice = Self {
            at_ns: from,
            rate_bps: 0.0,
            flight_bytes: 0.0,
            rtt_us: 0.0,
            deviation_us: 0.0,
        };
        for (stream, passed) in streams.iter().zip(delivered) {
            let samples = &stream.samples;
            let at = samples.at_ns();
            let begin = at.partition_point(|at| *at < from);
            // The first sample behind the slice closes it.
            let end = at.partition_point(|at| *at <= to).min(at.len() - 1);
            if end <= begin {
                return None;
            }
            let rows = begin..=end;
            let mean = |column: Column| -> Option<f64> {
                let values: Vec<f64> = samples.column(column)?[rows.clone()]
                    .iter()
                    .map(|value| *value as f64)
                    .collect();
                Some(statistics::mean(&values))
            };
            let span = at[end].saturating_sub(at[begin]).max(1) as f64;
            slice.rate_bps += (passed[end] - passed[begin]) * 8e9 / span;
            slice.flight_bytes += mean(Column::unacked_packets)? * mean(Column::snd_mss_bytes)?;
            slice.rtt_us += mean(Column::rtt_us)? / streams.len() as f64;
            slice.deviation_us += mean(Column::rttvar_us)? / streams.len() as f64;
        }
        Some(slice)
    }
}

/// How a figure follows another from slice to slice: both as logarithms, least squares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Law {
    /// The exponent: 1 where the one is in proportion to the other, 0 where it does not care.
    pub(crate) exponent: f64,
    /// The share of what varies that the law explains, 0 to 1.
    pub(crate) explains: f64,
    /// 90th percentile of the other figure over its 10th.
    pub(crate) spread: f64,
}

impl Law {
    /// How the rate follows the bytes in flight.
    pub(crate) fn of_rate(slices: &[Slice]) -> Option<Self> {
        Self::of(slices, |slice| (slice.flight_bytes, slice.rate_bps))
    }

    /// How the round trip follows the bytes in flight.
    pub(crate) fn of_round_trip(slices: &[Slice]) -> Option<Self> {
        Self::of(slices, |slice| (slice.flight_bytes, slice.rtt_us))
    }

    fn of(slices: &[Slice], pair: impl Fn(&Slice) -> (f64, f64)) -> Option<Self> {
        let points: Vec<(f64, f64)> = slices
            .iter()
            .map(&pair)
            .filter(|(x, y)| *x > 0.0 && *y > 0.0)
            .map(|(x, y)| (x.ln(), y.ln()))
            .collect();
        if points.len() < ENOUGH / 2 {
            return None;
        }
        let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
        let (mean_x, mean_y) = (statistics::mean(&xs), statistics::mean(&ys));
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|(x, y)| of(x - mean_x, y - mean_y)).sum()
        };
        let (xx, yy, xy) = (sum(&|x, _| x * x), sum(&|_, y| y * y), sum(&|x, y| x * y));
        if xx <= 0.0 || yy <= 0.0 {
            return None;
        }
        Some(Self {
            exponent: xy / xx,
            explains: xy * xy / (xx * yy),
            spread: (quantile(&xs, 0.9)? - quantile(&xs, 0.1)?).exp(),
        })
    }
}

/// What the path carries: a high rate of the slices in which a queue stood, bit/s, and whether these all had
/// about that rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Capacity {
    /// Median rate of the slices with a queue, or the highest of all where none stood, bit/s.
    pub(crate) bps: f64,
    /// How many slices had a queue.
    pub(crate) queued: usize,
    /// Whether no slice had a queue and a low rate as well, but for a few: then it is not the path that varied.
    pub(crate) steady: bool,
    /// Share of the slices with a low rate, 0 to 1.
    pub(crate) low: f64,
}

/// What the path carried while a queue stood in it.
pub(crate) fn capacity(case: &Case<'_>, slices: &[Slice]) -> Option<Capacity> {
    let (_, least) = case.round_trips()?;
    let queued = |slice: &&Slice| {
        slice.rtt_us >= queue::STANDS * least
            && slice.rtt_us - least >= queue::instant_floor_us(case.direction.ends)
    };
    let rates: Vec<f64> = slices
        .iter()
        .filter(queued)
        .map(|slice| slice.rate_bps)
        .collect();
    let all: Vec<f64> = slices.iter().map(|slice| slice.rate_bps).collect();
    let highest = quantile(&all, 0.95)?;
    let bps = statistics::median(&rates).unwrap_or(highest);
    let near = rates
        .iter()
        .filter(|rate| (LOW * bps..=bps / LOW).contains(*rate))
        .count();
    let low = all.iter().filter(|rate| **rate < LOW * bps).count();
    Some(Capacity {
        bps,
        queued: rates.len(),
        steady: near as f64 >= MOSTLY * rates.len() as f64 && highest <= bps / LOW,
        low: low as f64 / all.len() as f64,
    })
}
