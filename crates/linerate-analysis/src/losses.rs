//! When a sender lost segments, and what the path looked like just before: from the samples of its kernel.
//!
//! Samples stand some milliseconds apart, so single packets do not show. What shows is an *episode*: repeats
//! that follow one another within four round trips, which is one recovery or a few that run into each other.

use crate::{round_trip, statistics};
use linerate_model::column::Column;
use linerate_model::record::StreamRecord;

/// Repeats closer together than this many round trips belong to one episode.
const APART_ROUND_TRIPS: u64 = 4;
/// What passes for so long is no burst, ns and round trips.
const SUSTAINED_NS: u64 = 1_000_000_000;
const SUSTAINED_ROUND_TRIPS: u64 = 20;
/// Between samples further apart than this, ns, and than the round trips of an episode, no burst shows.
const COARSE_NS: u64 = 100_000_000;
/// The round trip just before an episode is the median of this many samples.
const ROWS_BEFORE: usize = 3;
/// Over less than this, ns, what a busy host acknowledges late looks like a burst.
const BURST_NS: u64 = 8_000_000;
/// Two bursts are of two round trips where they begin so many round trips apart, and so long, ns: what a host that
/// stood still makes good afterwards is one.
const BURSTS_APART: f64 = 0.9;
const BURSTS_APART_NS: f64 = 18e6;
/// So many round trips before a loss, and so long, ns, are looked at: in a long run the highest of many samples is
/// chance.
const BURSTS_WITHIN: u64 = 20;
const BURSTS_WITHIN_NS: u64 = 400_000_000;

/// Segments lost together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Episode {
    /// The first sample that counts a repeat, ns on the sender's clock.
    pub from_ns: u64,
    /// The last one.
    pub to_ns: u64,
    /// Segments sent again.
    pub segments: u64,
    /// Smoothed round-trip time just before, µs.
    pub rtt_us: f64,
    /// Congestion window just before, segments.
    pub window_packets: u64,
    /// Rate of delivery over the round trip before, bit/s.
    pub rate_bps: f64,
    /// Delivered until the episode began, bytes.
    pub delivered_from: f64,
    /// Delivered until it ended, bytes.
    pub delivered_to: f64,
}

/// The losses of one stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Losses {
    /// In the order of time; never empty.
    pub episodes: Vec<Episode>,
    /// Repeats closer together than this belong to one episode, ns.
    pub apart_ns: u64,
    /// Least round-trip time of the run, µs.
    pub min_rtt_us: f64,
    /// The highest rate of delivery over a round trip (at least two samples) before the first episode, bit/s; zero where
    /// the samples are too far apart to tell.
    pub peak_bps: f64,
    /// The same over half a round trip (at least two samples), or over 8 ms in two round trips, bit/s: what passes a
    /// bottleneck's queue comes out at its rate, in however dense bursts it went in. One short burst alone may be
    /// acknowledgements that were held up on their way.
    pub burst_bps: f64,
    /// The same over half a round trip alone, bit/s.
    pub half_bps: f64,
    /// Rate of delivery over a round trip (at least two samples) from the first repeat on, bit/s: of what
    /// was under way then, a line passes as much as ever, and a bucket its tokens.
    pub after_bps: f64,
    /// Mean rate of delivery from the end of the first episode to the last sample, bit/s; zero where the run
    /// ended sooner than two round trips after it.
    pub level_bps: f64,
    /// The highest rate of delivery over a second, or over twenty round trips where these are longer, after the first
    /// episode, bit/s; as `level_bps` where there is less than that.
    pub sustained_bps: f64,
    /// How far above the middle the windows of the later losses rank among those of all packets that could have begun an
    /// episode, in standard deviations of chance: where each packet is lost with the same odds this is near normal; it is
    /// high where the window is what brings the loss about. `None` with fewer than two later losses.
    pub window_height: Option<f64>,
}

impl Losses {
    /// `None` where the stream lost nothing, or its kernel does not tell (needs Linux 4.6).
    pub fn of(stream: &StreamRecord) -> Option<Self> {
        Self::in_columns(&Columns::of(stream)?)
    }

    /// The losses of several streams of one sender as if they were one: what a queue or a bucket that they share
    /// sees. Deliveries, repeats and windows are added up, round trips are the middle ones, at the instants of the
    /// first stream's samples. `None` where none lost anything, or one's kernel does not tell.
    pub fn pooled(streams: &[&StreamRecord]) -> Option<Self> {
        Self::in_columns(&Columns::pooled(&Columns::of_each(streams)?)?)
    }

    /// The same by what each stream lost: an episode is one stream's, or those of several that began within a round
    /// trip of the first, as where a queue that they share was overrun. Its segments are theirs together, its window
    /// is the sum of all streams'.
    pub fn in_common(streams: &[&StreamRecord]) -> Option<Self> {
        let each = Columns::of_each(streams)?;
        let rows = Columns::pooled(&each)?;
        let apart = rows.apart_ns(1);
        let (spans, segments): (Vec<_>, Vec<u64>) =
            rows.in_common(&each, apart).into_iter().unzip();
        let mut losses = Self::in_spans(&rows, &spans, apart)?;
        for (episode, segments) in losses.episodes.iter_mut().zip(segments) {
            episode.segments = segments;
        }
        Some(losses)
    }

    fn in_columns(rows: &Columns) -> Option<Self> {
        Self::in_spans(rows, &rows.spans(), rows.apart_ns(APART_ROUND_TRIPS))
    }

    fn in_spans(rows: &Columns, spans: &[(usize, usize)], apart_ns: u64) -> Option<Self> {
        let episodes: Vec<Episode> = spans
            .iter()
            .map(|(from, to)| rows.episode(*from, *to))
            .collect();
        let (_, settled) = *spans.first()?;
        let last = rows.at.len() - 1;
        let rest_ns = rows.at[last].saturating_sub(rows.at[settled]);
        let long = rest_ns >= 2 * rows.round_trip_ns;
        let coarse = rows.cadence_ns() > COARSE_NS.max(APART_ROUND_TRIPS * rows.round_trip_ns);
        let shown = |bps: f64| if coarse { 0.0 } else { bps };
        let half_bps = rows.peak(spans[0].0, rows.round_trip_ns / 2);
        Some(Self {
            episodes,
            apart_ns,
            min_rtt_us: rows.round_trip_ns as f64 / 1e3,
            peak_bps: shown(rows.peak(spans[0].0, rows.round_trip_ns)),
            burst_bps: shown(half_bps.max(rows.twice(spans[0].0))),
            half_bps: shown(half_bps),
            after_bps: shown(rows.rate(spans[0].0, rows.ahead_by(spans[0].0, rows.round_trip_ns))),
            level_bps: if long { rows.rate(settled, last) } else { 0.0 },
            sustained_bps: if long { rows.sustained(settled) } else { 0.0 },
            window_height: rows.window_height(spans, apart_ns),
        })
    }

    /// The episodes after the first one, which ends slow start and is of another kind.
    pub fn later(&self) -> &[Episode] {
        self.episodes.get(1..).unwrap_or_default()
    }

    /// Median round trip just before the losses, as a multiple of the least one: of the later episodes, where there are
    /// any, for a slow start's bursts make it longer for a moment without a queue that stands.
    pub fn rtt_ratio(&self) -> f64 {
        let looked_at = if self.later().is_empty() {
            &self.episodes
        } else {
            self.later()
        };
        let ratios: Vec<f64> = looked_at
            .iter()
            .map(|episode| episode.rtt_us / self.min_rtt_us.max(1.0))
            .collect();
        statistics::median(&ratios).unwrap_or(1.0)
    }

    /// Largest over smallest congestion window at which the later losses came; `None` with fewer than two.
    pub fn window_spread(&self) -> Option<f64> {
        let windows = || self.later().iter().map(|episode| episode.window_packets);
        (self.later().len() >= 2)
            .then(|| windows().max().zip(windows().min()))
            .flatten()
            .map(|(most, least)| most as f64 / least.max(1) as f64)
    }

    /// Mean rate from the end of each episode to the beginning of the next, bit/s, with the time in ns.
    pub fn between(&self) -> Vec<(f64, u64)> {
        self.episodes
            .windows(2)
            .map(|pair| {
                let span = pair[1].from_ns.saturating_sub(pair[0].to_ns).max(1);
                let bytes = (pair[1].delivered_from - pair[0].delivered_to).max(0.0);
                (bytes * 8e9 / span as f64, span)
            })
            .collect()
    }
}

/// The columns that losses are read from.
pub(crate) struct Columns {
    pub(crate) at: Vec<u64>,
    pub(crate) repeats: Vec<u64>,
    pub(crate) rtt: Vec<u64>,
    window: Vec<u64>,
    pub(crate) delivered: Vec<f64>,
    pub(crate) round_trip_ns: u64,
}

/// What had passed the path until each sample, bytes: what was acknowledged, selectively as well where the kernel tells
/// (Linux 4.18); the acknowledged bytes alone stand still while a loss is repaired.
pub fn delivered_bytes(stream: &StreamRecord) -> Option<Vec<f64>> {
    let samples = &stream.samples;
    let packets = samples
        .column(Column::delivered_packets)
        .filter(|packets| packets.last() > Some(&0));
    if let Some((packets, mss)) = packets.zip(samples.column(Column::snd_mss_bytes)) {
        let both = packets.iter().zip(mss);
        return Some(
            both.map(|(packets, mss)| *packets as f64 * *mss as f64)
                .collect(),
        );
    }
    let acked = samples.column(Column::bytes_acked)?.iter();
    Some(acked.map(|bytes| *bytes as f64).collect())
}

impl Columns {
    fn of(stream: &StreamRecord) -> Option<Self> {
        let samples = &stream.samples;
        let least = round_trip::least_us(stream)?;
        let delivered = delivered_bytes(stream)?;
        Some(Self {
            at: samples.at_ns().to_vec(),
            repeats: samples.column(Column::total_retrans_packets)?.to_vec(),
            rtt: samples.column(Column::rtt_us)?.to_vec(),
            window: samples.column(Column::snd_cwnd_packets)?.to_vec(),
            delivered,
            round_trip_ns: least.saturating_mul(1000),
        })
    }

    pub(crate) fn of_each(streams: &[&StreamRecord]) -> Option<Vec<Self>> {
        streams.iter().map(|one| Self::of(one)).collect()
    }

    /// All of `each` added up at the instants of the first, as far as all of them reach.
    pub(crate) fn pooled(each: &[Self]) -> Option<Self> {
        let first = each.first()?;
        let until = each.iter().filter_map(|one| one.at.last()).min()?;
        let at: Vec<u64> = first.at.iter().copied().filter(|at| at <= until).collect();
        let mut all = Self {
            repeats: vec![0; at.len()],
            rtt: Vec::with_capacity(at.len()),
            window: vec![0; at.len()],
            delivered: vec![0.0; at.len()],
            round_trip_ns: each.iter().map(|one| one.round_trip_ns).min()?,
            at,
        };
        for (row, now) in all.at.iter().enumerate() {
            let mut round_trips = Vec::with_capacity(each.len());
            for one in each {
                let there = one.at.partition_point(|at| at <= now).saturating_sub(1);
                all.repeats[row] = all.repeats[row].saturating_add(one.repeats[there]);
                all.window[row] = all.window[row].saturating_add(one.window[there]);
                all.delivered[row] += one.delivered_at(there, *now);
                round_trips.push(one.rtt[there] as f64);
            }
            let middle = statistics::median(&round_trips).unwrap_or(0.0);
            all.rtt.push(linerate_model::units::whole(middle));
        }
        (!all.at.is_empty()).then_some(all)
    }

    /// What had been delivered at an instant between `row` and the next one, in proportion.
    pub(crate) fn delivered_at(&self, row: usize, now: u64) -> f64 {
        let here = self.delivered[row];
        let (Some(next), Some(then)) = (self.delivered.get(row + 1), self.at.get(row + 1)) else {
            return here;
        };
        let span = then.saturating_sub(self.at[row]).max(1) as f64;
        let passed = now.saturating_sub(self.at[row]) as f64;
        here + (next - here) * (passed / span).min(1.0)
    }

    /// How close together repeats of one episode are, ns: so many round trips, and no less than samples can tell.
    fn apart_ns(&self, round_trips: u64) -> u64 {
        (round_trips * self.round_trip_ns).max(2 * self.cadence_ns())
    }

    /// Mean time between samples, ns.
    pub(crate) fn cadence_ns(&self) -> u64 {
        match self.at.as_slice() {
            [first, .., last] => last.saturating_sub(*first) / (self.at.len() as u64 - 1),
            _ => 0,
        }
    }

    /// First and last row of each episode.
    fn spans(&self) -> Vec<(usize, usize)> {
        let apart = self.apart_ns(APART_ROUND_TRIPS);
        let mut spans: Vec<(usize, usize)> = Vec::new();
        for row in 1..self.at.len() {
            if self.repeats[row] <= self.repeats[row - 1] {
                continue;
            }
            match spans.last_mut() {
                Some((_, to)) if self.at[row].saturating_sub(self.at[*to]) <= apart => *to = row,
                _ => spans.push((row, row)),
            }
        }
        spans
    }

    /// First and last row of the beginnings of episodes of `each` that lie within `apart` of the first of them, ns, and
    /// the segments of these episodes.
    fn in_common(&self, each: &[Self], apart: u64) -> Vec<((usize, usize), u64)> {
        let last = self.at.len() - 1;
        let begins = each.iter().flat_map(|one| {
            let spans = one.spans().into_iter();
            spans.map(|(from, to)| {
                let segments = one.repeats[to].saturating_sub(one.repeats[from - 1]);
                (one.at[from], segments)
            })
        });
        let mut begins: Vec<(u64, u64)> = begins.filter(|(at, _)| *at <= self.at[last]).collect();
        begins.sort_unstable();
        let mut common: Vec<((usize, usize), u64)> = Vec::new();
        for (at, segments) in begins {
            let row = self.at.partition_point(|other| *other < at).max(1);
            match common.last_mut() {
                Some(((from, to), sum)) if self.at[row].saturating_sub(self.at[*from]) <= apart => {
                    (*to, *sum) = (row, *sum + segments);
                }
                _ => common.push(((row, row), segments)),
            }
        }
        common
    }

    fn episode(&self, from: usize, to: usize) -> Episode {
        let before: Vec<f64> = self.rtt[from.saturating_sub(ROWS_BEFORE)..from]
            .iter()
            .map(|rtt| *rtt as f64)
            .collect();
        Episode {
            from_ns: self.at[from],
            to_ns: self.at[to],
            segments: self.repeats[to].saturating_sub(self.repeats[from - 1]),
            rtt_us: statistics::median(&before).unwrap_or(0.0),
            window_packets: self.window[from - 1],
            rate_bps: self.rate(self.back(from, self.round_trip_ns, 2), from),
            delivered_from: self.delivered[from],
            delivered_to: self.delivered[to],
        }
    }

    /// The window with which the packets were sent that came to be known at `row`, a round trip later.
    fn window_behind(&self, row: usize) -> u64 {
        self.window[self.back(row, self.rtt[row].saturating_mul(1000), 0)]
    }

    /// See [`Losses::window_height`]. Each packet weighs the same; those whose loss would have been counted with the
    /// episode before do not count.
    fn window_height(&self, spans: &[(usize, usize)], apart: u64) -> Option<f64> {
        let mut passed: Vec<(u64, f64)> = Vec::new();
        for (number, (_, to)) in spans.iter().enumerate() {
            let open = self.at[*to].saturating_add(apart);
            let first = self.at.partition_point(|at| *at <= open);
            let next = spans.get(number + 1).map(|(from, _)| from + 1);
            for row in first..next.unwrap_or(self.at.len()) {
                let bytes = (self.delivered[row] - self.delivered[row - 1]).max(0.0);
                passed.push((self.window_behind(row), bytes));
            }
        }
        passed.sort_by_key(|(window, _)| *window);
        let mut below = Vec::with_capacity(passed.len() + 1);
        below.push(0.0);
        for (_, bytes) in &passed {
            below.push(below.last().unwrap_or(&0.0) + bytes);
        }
        let all = below.last().copied().filter(|all| *all > 0.0)?;
        let rank = |window: u64| {
            let under = passed.partition_point(|(other, _)| *other < window);
            let upto = passed.partition_point(|(other, _)| *other <= window);
            f64::midpoint(below[under], below[upto]) / all
        };
        let later = spans.get(1..).filter(|later| later.len() > 1)?;
        let over_half = |(from, _): &(usize, usize)| rank(self.window_behind(*from)) - 0.5;
        let sum: f64 = later.iter().map(over_half).sum();
        // A loss ends the growth that it ranks above as a whole: of n ranks one is 1, the rest are uniform with the
        // variance 1/12 (Gail and Gastwirth, J. R. Stat. Soc. B 40, 1978).
        Some((sum - 0.5) / ((later.len() - 1) as f64 / 12.0).sqrt())
    }

    /// The row so long before `row`, and at least so many rows.
    fn back(&self, row: usize, ns: u64, least: usize) -> usize {
        let begin = self.at[row].saturating_sub(ns);
        self.at
            .partition_point(|at| *at <= begin)
            .saturating_sub(1)
            .min(row.saturating_sub(least))
    }

    /// The row so long after `row`, and at least two rows.
    fn ahead_by(&self, row: usize, ns: u64) -> usize {
        let end = self.at[row].saturating_add(ns);
        self.at
            .partition_point(|at| *at < end)
            .max(row + 2)
            .min(self.at.len() - 1)
    }

    fn rate(&self, from: usize, to: usize) -> f64 {
        let span = self.at[to].saturating_sub(self.at[from]).max(1);
        (self.delivered[to] - self.delivered[from]).max(0.0) * 8e9 / span as f64
    }

    /// The highest rate over a second, and at least twenty round trips, from a row on.
    fn sustained(&self, from: usize) -> f64 {
        let span = SUSTAINED_NS.max(SUSTAINED_ROUND_TRIPS * self.round_trip_ns);
        let last = self.at.len() - 1;
        let highest = (from..=last)
            .filter_map(|begin| {
                let until = self.at[begin].saturating_add(span);
                let end = self.at.partition_point(|at| *at < until);
                (end <= last).then(|| self.rate(begin, end))
            })
            .fold(0.0, f64::max);
        highest.max(self.rate(from, last))
    }

    /// The highest rate over 8 ms that came in two round trips, up to row `until`.
    fn twice(&self, until: usize) -> f64 {
        let within = BURSTS_WITHIN_NS.max(BURSTS_WITHIN.saturating_mul(self.round_trip_ns));
        let earliest = self.at[until].saturating_sub(within);
        let first = self.at.partition_point(|at| *at < earliest).max(1);
        let bursts: Vec<(u64, f64)> = (first..=until)
            .map(|row| {
                let from = self.back(row, BURST_NS, 1);
                (self.at[from], self.rate(from, row))
            })
            .collect();
        let highest = bursts.iter().max_by(|one, other| one.1.total_cmp(&other.1));
        let Some((begin, _)) = highest else {
            return 0.0;
        };
        let apart = (BURSTS_APART * self.round_trip_ns as f64).max(BURSTS_APART_NS);
        bursts
            .iter()
            .filter(|(from, _)| from.abs_diff(*begin) as f64 >= apart)
            .map(|(_, rate)| *rate)
            .fold(0.0, f64::max)
    }

    /// The highest rate over so long a time, up to row `until`.
    fn peak(&self, until: usize, ns: u64) -> f64 {
        (1..=until)
            .map(|row| self.rate(self.back(row, ns, 2), row))
            .fold(0.0, f64::max)
    }
}
