//! What a path carried in stretches, which the mean of a rate hides, and how long it was not kept full.
//!
//! Little's law tells when it was not: less is in flight than what the path carries in its least round trip. What it
//! carries is what the kernel measured of single flights (`delivery_rate` of `tcp_info`, which takes the longer of
//! sending and acknowledging, so that acknowledgements that come in a bunch do not raise it), and where several
//! streams share it, what they delivered together within a round trip.

use linerate_model::column::Column;
use linerate_model::record::StreamRecord;

use crate::facts::case::Case;
use crate::facts::limit;
use linerate_analysis::statistics::quantile;

/// A mean below this share of what the path carried in stretches is not what it carries …
const FAR_BELOW: f64 = 0.88;
/// … where for this share of the time too little was in flight to fill it. Measured: 0.01 to 0.05 on paths that one
/// CUBIC stream fills, 0.18 to 0.85 where it does not.
const NOT_FILLED: f64 = 0.10;
/// A sender without data of its own to send for so much of the time waits for room in its buffer. Measured: 0.06 to
/// 0.14 where a program writes as fast as it can and the buffer is large enough, 0.57 to 1 where it is not.
const NOTHING_WAITS: f64 = 0.5;
/// A buffer's size counts overhead as well, so that no more than this many times its size is in flight unless the
/// kernel let it be overrun.
const OVERRUN: f64 = 1.5;
/// Less than this share of what is in flight waits unsent: nothing does.
const UNSENT: f64 = 0.1;
/// What a path carries is the rate that a quarter of the flights had …
const FLIGHTS: f64 = 0.75;
/// … or a tenth of the round trips.
const ROUND_TRIPS: f64 = 0.90;
/// A round trip for that is at least so long, ns.
const LEAST_NS: f64 = 50e6;
/// In flight at its peaks: a twentieth of the time as much or more.
const PEAKS: f64 = 0.95;
/// Fewer samples than these show nothing.
const ENOUGH: usize = 50;

/// A direction's plateau, as its sending kernel saw it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stretches {
    /// What the path carried in stretches, bit/s.
    pub(crate) carried_bps: f64,
    /// Share of the time with less in flight than what fills the path, 0 to 1.
    pub(crate) not_filled: f64,
    /// In flight at its peaks, all streams together, bytes.
    pub(crate) peak_bytes: f64,
    /// Share of the time in which nothing waited in the send buffers to be sent, 0 to 1; `None` where the kernel does
    /// not tell.
    nothing_waits: Option<f64>,
}

/// One sample of all streams together, at an instant of the first.
struct Row {
    at_ns: u64,
    /// Acknowledged, selectively too where the kernel counts it: what a filled hole releases at once passed before.
    delivered_bytes: f64,
    flight_bytes: f64,
    unsent_bytes: Option<f64>,
}

impl Stretches {
    /// `None` where the sender's kernel does not tell enough.
    pub(crate) fn of(case: &Case<'_>) -> Option<Self> {
        if case.udp() || case.next_door() {
            return None;
        }
        let [from, to] = case.budget()?.span_ns;
        let streams: Vec<&StreamRecord> = case.sender()?.streams_of(case.direction.flow).collect();
        let at = streams.first()?.samples.at_ns();
        let rows: Option<Vec<Row>> = at
            .iter()
            .filter(|at| (from..=to).contains(*at))
            .map(|at| Row::of(&streams, *at))
            .collect();
        let rows = rows.filter(|rows| rows.len() >= ENOUGH)?;
        let (mean_us, least_us) = case.round_trips()?;
        let in_round_trips = most_in(&rows, (mean_us * 1e3).max(LEAST_NS))?;
        let of_flights = match streams.as_slice() {
            [one] => of_flights(one, from, to),
            _ => None,
        };
        // Acknowledgements that come in a bunch can make a flight look faster than the interface is.
        let link = limit::link_payload_bps(case).unwrap_or(f64::INFINITY);
        let carried_bps = in_round_trips.max(of_flights.unwrap_or(0.0)).min(link);
        let fills = carried_bps * least_us / 8e6;
        let share = |which: &dyn Fn(&Row) -> bool| {
            rows.iter().filter(|row| which(row)).count() as f64 / rows.len() as f64
        };
        let flights: Vec<f64> = rows.iter().map(|row| row.flight_bytes).collect();
        let mss = case.path().mss_bytes? as f64;
        let known = rows.iter().all(|row| row.unsent_bytes.is_some());
        let nothing = |row: &Row| {
            row.unsent_bytes
                .is_some_and(|unsent| unsent <= mss.max(UNSENT * row.flight_bytes))
        };
        Some(Self {
            carried_bps,
            not_filled: share(&|row| row.flight_bytes < fills),
            peak_bytes: quantile(&flights, PEAKS)?,
            nothing_waits: known.then(|| share(&nothing)),
        })
    }

    /// Whether a mean of `rate_bps` is that of a path that was full at times only.
    pub(crate) fn hide_in(&self, rate_bps: f64) -> bool {
        rate_bps < FAR_BELOW * self.carried_bps && self.not_filled >= NOT_FILLED
    }

    /// Whether the sender mostly had nothing to send: its program waited for room in the buffer, or had nothing.
    pub(crate) fn nothing_waits(&self) -> bool {
        self.nothing_waits
            .is_some_and(|share| share >= NOTHING_WAITS)
    }

    /// Whether the sender went past its buffers in bursts.
    pub(crate) fn past_buffers(&self, buffers_bytes: f64) -> bool {
        self.peak_bytes >= OVERRUN * buffers_bytes
    }
}

impl Row {
    fn of(streams: &[&StreamRecord], at_ns: u64) -> Option<Self> {
        let mut row = Self {
            at_ns,
            delivered_bytes: 0.0,
            flight_bytes: 0.0,
            unsent_bytes: Some(0.0),
        };
        for stream in streams {
            let samples = &stream.samples;
            let last = samples
                .at_ns()
                .partition_point(|at| *at <= at_ns)
                .checked_sub(1);
            let Some(last) = last else { continue };
            let now = |column: Column| Some(samples.column(column)?[last] as f64);
            row.delivered_bytes += match now(Column::delivered_packets) {
                Some(packets) => packets * now(Column::snd_mss_bytes)?,
                None => now(Column::bytes_acked)?,
            };
            row.flight_bytes += now(Column::unacked_packets)? * now(Column::snd_mss_bytes)?;
            row.unsent_bytes = row
                .unsent_bytes
                .zip(now(Column::notsent_bytes))
                .map(|(a, b)| a + b);
        }
        Some(row)
    }
}

/// The rate that a tenth of all spans of `span_ns` had or passed, bit/s.
fn most_in(rows: &[Row], span_ns: f64) -> Option<f64> {
    let span_ns = linerate_model::units::whole(span_ns);
    let mut end = 0;
    let mut rates = Vec::with_capacity(rows.len());
    for begin in rows {
        while rows
            .get(end)
            .is_some_and(|row| row.at_ns - begin.at_ns.min(row.at_ns) < span_ns)
        {
            end += 1;
        }
        let Some(last) = rows.get(end) else { break };
        let passed = (last.delivered_bytes - begin.delivered_bytes).max(0.0);
        rates.push(passed * 8e9 / (last.at_ns - begin.at_ns) as f64);
    }
    quantile(&rates, ROUND_TRIPS)
}

/// The rate that a quarter of a stream's flights had or passed, bit/s, by the kernel's own measure.
fn of_flights(stream: &StreamRecord, from: u64, to: u64) -> Option<f64> {
    let samples = &stream.samples;
    let rates: Vec<f64> = samples
        .column(Column::delivery_rate_bytes_per_s)?
        .iter()
        .zip(samples.at_ns())
        .filter(|(_, at)| (from..=to).contains(*at))
        .map(|(bytes, _)| *bytes as f64 * 8.0)
        .collect();
    quantile(&rates, FLIGHTS)
}
