//! What a sender was let send beyond the rate that it got later, with losses going on at that rate.
//!
//! A token bucket does this (RFC 2697): the tokens that it has saved pass at the rate of the path, and from then on only
//! new ones do, whatever the congestion control tries. So what is delivered keeps to a line while losses go on. Under loss
//! by chance the rate is the congestion control's, which wavers, and what is delivered wanders about the line.

use crate::losses::Columns;
use crate::statistics;
use linerate_model::record::StreamRecord;

/// Of the time after the first loss this share is left out: the credit is spent meanwhile.
const SETTLING: f64 = 0.35;
/// A stretch has so many samples with losses, …
const LOSSES: f64 = 4.0;
/// … and for each stream so many round trips, and no less than so long, ns.
const ROUND_TRIPS: f64 = 3.0;
const LEAST_NS: f64 = 50e6;
/// Fewer stretches show no constancy.
const LEAST: f64 = 4.0;
/// Samples further apart than this, ns, hide how many losses there were.
const FINE_NS: u64 = 25_000_000;

/// A credit, and how constant the rate was after it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Credit {
    /// Mean rate of delivery after it, bit/s.
    pub rate_bps: f64,
    /// Delivered beyond that rate, bytes.
    pub bytes: f64,
    /// Delivered beyond so many times that rate as was asked for, bytes.
    pub beyond_bytes: f64,
    /// How far what was delivered after it went from the line of that rate, lowest to highest point, as a share of all that
    /// was delivered, times the root of the number of stretches: what wanders by chance does so by that root's inverse.
    pub wander: f64,
    /// Segments retransmitted meanwhile.
    pub segments: u64,
    /// Share of the samples with losses that count more than one.
    pub several: f64,
    /// Median round trip just before these losses, µs.
    pub rtt_us: f64,
    /// The longest round trip until then, µs.
    pub longest_rtt_us: f64,
    /// The shortest of the run, µs.
    pub min_rtt_us: f64,
}

impl Credit {
    /// Of all streams of one direction, at their sender; `times` is for [`Credit::beyond_bytes`]. `None` where a kernel
    /// does not tell, samples are more than 25 ms apart, or too few losses came after the first third.
    pub fn of(streams: &[&StreamRecord], times: f64) -> Option<Self> {
        let rows = Columns::pooled(&Columns::of_each(streams)?)?;
        let lost: Vec<usize> = (1..rows.at.len())
            .filter(|row| rows.repeats[*row] > rows.repeats[row - 1])
            .collect();
        let first = *lost.first()?;
        let last = (1..rows.at.len())
            .rev()
            .find(|row| rows.delivered[*row] > rows.delivered[row - 1])?;
        let after = rows.at[last].saturating_sub(rows.at[first]) as f64;
        let settled = rows.at[first] + linerate_model::units::whole(SETTLING * after);
        let from = rows.at.partition_point(|at| *at <= settled);
        let later: Vec<usize> = lost
            .into_iter()
            .filter(|row| (from + 1..=last).contains(row))
            .collect();
        let span = rows.at[last].saturating_sub(*rows.at.get(from)?) as f64;
        let shortest = LEAST_NS.max(ROUND_TRIPS * rows.round_trip_ns as f64);
        let count = streams.len() as f64;
        let stretches = (later.len() as f64 / LOSSES).min(count * span / shortest);
        if stretches < LEAST * count || rows.cadence_ns() > FINE_NS {
            return None;
        }
        let delivered = rows.delivered[last] - rows.delivered[from];
        let rate_bps = delivered * 8e9 / span;
        let round_trips: Vec<f64> = later.iter().map(|row| rows.rtt[row - 1] as f64).collect();
        let several = later
            .iter()
            .filter(|row| rows.repeats[**row] > rows.repeats[*row - 1] + 1)
            .count();
        let line: Vec<f64> = rows.ahead(rate_bps).collect();
        let faster = rows.ahead(times * rate_bps);
        let after = line[from..=last].iter().copied();
        let wandered = after.clone().fold(f64::MIN, f64::max) - after.fold(f64::MAX, f64::min);
        Some(Self {
            rate_bps,
            bytes: rise(line[..=from].iter().copied()),
            beyond_bytes: rise(faster.take(from + 1)),
            wander: wandered / delivered * stretches.sqrt(),
            segments: rows.repeats[last].saturating_sub(rows.repeats[from]),
            several: several as f64 / later.len() as f64,
            rtt_us: statistics::median(&round_trips)?,
            longest_rtt_us: *rows.rtt[..=from].iter().max()? as f64,
            min_rtt_us: rows.round_trip_ns as f64 / 1e3,
        })
    }
}

impl Columns {
    /// How far ahead of a line of so many bit/s each row is, bytes.
    fn ahead(&self, bps: f64) -> impl Iterator<Item = f64> {
        let begin = self.at[0];
        let rows = self.at.iter().zip(&self.delivered);
        rows.map(move |(at, delivered)| delivered - bps / 8e9 * at.saturating_sub(begin) as f64)
    }
}

/// The most that values rise from one to any later one.
fn rise(values: impl Iterator<Item = f64>) -> f64 {
    let mut least = f64::INFINITY;
    values.fold(0.0, |most, value| {
        least = least.min(value);
        f64::max(most, value - least)
    })
}
