//! One-way delay of a direction's datagrams: from the stamp that the sender wrote just before it handed a datagram to its
//! kernel, to when the receiving application had read it.
//!
//! The stamp is of one clock, the arrival of another. Where pings before and after the test compared the two, delays are
//! known as well as the pings know the offset: within half a round trip, and far better where both ways take equally
//! long. Elsewhere only the variation is known: how far each datagram was above the fastest. No delay is negative.

use std::collections::BTreeMap;

use linerate_model::clock::Relation;
use linerate_model::latency::Latencies;
use linerate_model::record::{Flow, Role, RunRecord};
use linerate_model::transit::{TransitSlice, Transits};
use linerate_model::units::Nanos;
use serde::Serialize;

/// A stamp counts microseconds.
const STAMP_NS: u64 = 1000;

/// What the datagrams of a direction took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Delays {
    /// Datagrams received after the omitted part, duplicates included: all that the histogram holds.
    pub datagrams: u64,
    /// Datagrams received in the omitted part.
    pub omitted: u64,
    /// Their delays; absent where the clocks cannot be compared.
    pub one_way: Option<OneWay>,
    /// Why not.
    pub not_compared: Option<NotCompared>,
    /// How far they were above the fastest.
    pub variation: Spread,
    /// The histogram of that.
    pub above_least: Latencies,
    /// Over time: delays where `one_way` is known, else how far they were above the fastest.
    pub over_time: Vec<DelaySpan>,
}

/// Delays, and how well they are known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneWay {
    /// The delays.
    pub delay: Spread,
    /// All of them may be larger or smaller by the same amount, at most this, ns.
    pub uncertainty_ns: u64,
    /// The server's clock minus the client's in the middle of the test, ns.
    pub offset_ns: i64,
    /// By how much the server's clock ran faster than the client's, in millionths; absent where no drift showed. Delays
    /// are corrected by it.
    pub drift_ppm: Option<f64>,
    /// By so much the estimated offset made the fastest datagram arrive before it was sent, ns; it is then corrected, so
    /// that the lowest delay is zero.
    pub raised_ns: u64,
}

/// Why delays are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotCompared {
    /// The peer is no linerate, or did not answer pings.
    NoPings,
    /// By the pings, datagrams would have arrived before they were sent, by more than the pings' uncertainty.
    Contradiction,
}

/// A distribution, ns. Lowest, mean and largest are exact; the others within 4 µs or 1/128 of what lies above the lowest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// The lowest.
    pub least_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// The median.
    pub median_ns: u64,
    /// 90 % are not above it.
    pub p90_ns: u64,
    /// 99 % are not above it.
    pub p99_ns: u64,
    /// 99.9 % are not above it.
    pub p999_ns: u64,
    /// The largest.
    pub most_ns: u64,
}

/// Datagrams of a part of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DelaySpan {
    /// The first arrival, the receiver's clock.
    pub from_ns: u64,
    /// The last arrival.
    pub to_ns: u64,
    /// How many.
    pub datagrams: u64,
    /// What they took.
    #[serde(flatten)]
    pub spread: Spread,
}

/// A slice, and what is added to its differences.
#[derive(Clone, Copy)]
struct Shifted<'a> {
    slice: &'a TransitSlice,
    by: i128,
}

impl Delays {
    /// The delays of a direction; `None` where its receiver kept none, or received nothing after the omitted part.
    pub fn of(record: &RunRecord, flow: Flow) -> Option<Self> {
        let streams = record.end(flow.receiver())?.streams_of(flow);
        let kept = streams.filter_map(|stream| stream.udp.as_ref()?.transits.as_ref());
        let kept: Vec<&Transits> = kept.collect();
        let slices: Vec<&TransitSlice> = kept.iter().flat_map(|one| &one.slices).collect();
        let relation = record.clock.map(|clock| clock.relation());
        let compared = relation.and_then(|relation| compare(&slices, &relation, flow));
        let by = |slice: &TransitSlice| match (&relation, &compared) {
            (Some(relation), Some(_)) => shift(slice, relation, flow),
            _ => 0,
        };
        let all: Vec<Shifted<'_>> = slices
            .iter()
            .map(|slice| Shifted {
                slice,
                by: by(slice),
            })
            .collect();
        let lowest = all.iter().map(Shifted::least).min()?;
        let (variation, entries) = spread(&all, lowest)?;
        let mut above_least = Latencies::default();
        for (above, count) in &entries {
            above_least.add_many(Nanos(*above), *count);
        }
        let least = compared.as_ref().map_or(0, |compared| compared.least_ns);
        let one_way = compared.map(|compared| OneWay {
            delay: variation.above(compared.least_ns),
            uncertainty_ns: compared.uncertainty_ns,
            offset_ns: compared.offset_ns,
            drift_ppm: compared.drift_ppm,
            raised_ns: compared.raised_ns,
        });
        let unknown = if relation.is_some() {
            NotCompared::Contradiction
        } else {
            NotCompared::NoPings
        };
        let omitted = kept.iter().map(|one| one.omitted);
        Some(Self {
            datagrams: above_least.count(),
            omitted: omitted.fold(0, u64::saturating_add),
            not_compared: one_way.is_none().then_some(unknown),
            one_way,
            variation,
            above_least,
            over_time: over_time(&all, kept.len() == 1, lowest, least),
        })
    }
}

/// What the comparison of the clocks says of the fastest datagram.
struct Compared {
    least_ns: u64,
    uncertainty_ns: u64,
    offset_ns: i64,
    drift_ppm: Option<f64>,
    raised_ns: u64,
}

/// `None` where the clocks cannot be compared.
fn compare(slices: &[&TransitSlice], relation: &Relation, flow: Flow) -> Option<Compared> {
    let least = |slice: &&TransitSlice| {
        let by = shift(slice, relation, flow);
        Shifted { slice, by }.least()
    };
    let lowest = slices.iter().map(least).min()?;
    // Within a slice the clocks drift on.
    let longest = slices
        .iter()
        .map(|slice| slice.to_ns.since(slice.from_ns).0);
    let drift = relation.drift_ppm.unwrap_or(0.0).abs() / 1e6;
    let blur = Nanos::from_secs_f64(longest.max()? as f64 / 1e9 * drift / 2.0).0;
    let uncertainty_ns = relation.uncertainty_ns.saturating_add(blur);
    let raised_ns = u64::try_from((-lowest).max(0)).ok()?;
    if raised_ns > uncertainty_ns.saturating_add(STAMP_NS) {
        return None;
    }
    let from = slices.iter().map(|slice| slice.from_ns.0).min()?;
    let to = slices.iter().map(|slice| slice.to_ns.0).max()?;
    Some(Compared {
        least_ns: u64::try_from(lowest.max(0)).ok()?,
        uncertainty_ns,
        offset_ns: offset_at(u64::midpoint(from, to), relation, flow),
        drift_ppm: relation.drift_ppm,
        raised_ns,
    })
}

/// The server's clock minus the client's at an instant of the receiver's clock.
fn offset_at(received_ns: u64, relation: &Relation, flow: Flow) -> i64 {
    match flow.receiver() {
        Role::Client => relation.offset_at(received_ns),
        Role::Server => relation.offset_at(relation.to_ours(received_ns)),
    }
}

/// What makes a slice's differences delays.
fn shift(slice: &TransitSlice, relation: &Relation, flow: Flow) -> i128 {
    let middle = u64::midpoint(slice.from_ns.0, slice.to_ns.0);
    let offset = i128::from(offset_at(middle, relation, flow));
    match flow.receiver() {
        Role::Client => offset,
        Role::Server => -offset,
    }
}

impl Shifted<'_> {
    fn least(&self) -> i128 {
        i128::from(self.slice.least_ns) + self.by
    }

    /// How far its lowest is above `lowest`.
    fn above(&self, lowest: i128) -> u64 {
        u64::try_from(self.least() - lowest).unwrap_or(u64::MAX)
    }
}

/// The distribution above `lowest`, and how far above it how many are, in this order; `None` of none.
fn spread(slices: &[Shifted<'_>], lowest: i128) -> Option<(Spread, Vec<(u64, u64)>)> {
    let mut entries = Vec::new();
    let (mut sum, mut most) = (0_u128, 0);
    for shifted in slices {
        let (slice, beyond) = (shifted.slice, shifted.above(lowest));
        let values = slice.values();
        entries.extend(values.map(|(above, count)| (above.saturating_add(beyond), count)));
        let moved = u128::from(beyond) * u128::from(slice.count());
        sum = sum.saturating_add(moved + u128::from(slice.sum_above_ns));
        most = most.max(beyond.saturating_add(slice.most_above_ns));
    }
    entries.sort_unstable();
    let counts = entries.iter().map(|(_, count)| *count);
    let count = counts.fold(0, u64::saturating_add);
    let mean = sum.checked_div(count.into())?;
    let least = slices.iter().map(|shifted| shifted.above(lowest)).min()?;
    let quantile = |permille| at_rank(&entries, count, permille).clamp(least, most.max(least));
    let spread = Spread {
        least_ns: least,
        mean_ns: u64::try_from(mean).unwrap_or(u64::MAX),
        median_ns: quantile(500),
        p90_ns: quantile(900),
        p99_ns: quantile(990),
        p999_ns: quantile(999),
        most_ns: most,
    };
    Some((spread, entries))
}

/// The value that so many of a thousand do not exceed.
fn at_rank(entries: &[(u64, u64)], count: u64, permille: u64) -> u64 {
    let rank = u128::from(count) * u128::from(permille);
    let rank = rank.div_ceil(1000).max(1);
    let mut seen = 0_u128;
    let found = entries.iter().find(|(_, count)| {
        seen += u128::from(*count);
        seen >= rank
    });
    found.or(entries.last()).map_or(0, |(value, _)| *value)
}

impl Spread {
    /// The same, each value so much larger.
    const fn above(self, least_ns: u64) -> Self {
        Self {
            least_ns: self.least_ns.saturating_add(least_ns),
            mean_ns: self.mean_ns.saturating_add(least_ns),
            median_ns: self.median_ns.saturating_add(least_ns),
            p90_ns: self.p90_ns.saturating_add(least_ns),
            p99_ns: self.p99_ns.saturating_add(least_ns),
            p999_ns: self.p999_ns.saturating_add(least_ns),
            most_ns: self.most_ns.saturating_add(least_ns),
        }
    }
}

/// The slices of one stream each alone, those of several streams together by the time.
fn over_time(all: &[Shifted<'_>], one_stream: bool, lowest: i128, least_ns: u64) -> Vec<DelaySpan> {
    let begin = all.iter().map(|of| of.slice.from_ns).min();
    let begin = begin.unwrap_or_default();
    let lasts = all
        .iter()
        .map(|of| of.slice.to_ns.since(of.slice.from_ns).0);
    let width = lasts.max().unwrap_or(0).max(1);
    let mut together: BTreeMap<u64, Vec<Shifted<'_>>> = BTreeMap::new();
    for (number, shifted) in (0..).zip(all) {
        let slice = shifted.slice;
        let middle = Nanos(u64::midpoint(slice.from_ns.0, slice.to_ns.0));
        let key = if one_stream {
            number
        } else {
            middle.since(begin).0 / width
        };
        together.entry(key).or_default().push(*shifted);
    }
    let span = |slices: Vec<Shifted<'_>>| {
        let (spread, entries) = spread(&slices, lowest)?;
        let counts = entries.iter().map(|(_, count)| *count);
        Some(DelaySpan {
            from_ns: slices.iter().map(|of| of.slice.from_ns.0).min()?,
            to_ns: slices.iter().map(|of| of.slice.to_ns.0).max()?,
            datagrams: counts.fold(0, u64::saturating_add),
            spread: spread.above(least_ns),
        })
    };
    together.into_values().filter_map(span).collect()
}
