//! "Would pass at": the round trip up to which what held a rate would have been enough.
//!
//! A window carries its bytes once a round trip, so what it carried here tells what it carries elsewhere. A
//! loss is turned into a round trip by the congestion control's response function, scaled to what this run
//! reached under it: the function itself is good to a factor of two only.

use linerate_model::finding::Figure;

use crate::facts::case::Case;
use crate::facts::{limit, repeats, response};
use crate::words;

/// A rate is said of at most so many rates above the run's own.
const RATES: usize = 2;
/// Round trips below this are not worth a word: a host alone takes as long, s.
const LEAST_RTT_S: f64 = 50e-6;
/// Of the response function's answer the run's own rate may be this many times, or its reciprocal; where it is
/// farther off, something else held the rate too.
const CREDIBLE: f64 = 3.0;

/// A sentence's part and the figures in it.
pub(crate) struct WouldPass {
    pub(crate) sentence: String,
    pub(crate) figures: Vec<Figure>,
}

/// Of what is in flight at most: up to which round trips it carries more than it did.
pub(crate) fn window(case: &Case<'_>, what: &str, bound_bytes: Option<f64>) -> Option<WouldPass> {
    let rtt_s = case.path().rtt_us.filter(|rtt| *rtt > 0.0)? / 1e6;
    let streams = case.streams();
    let carried_bits = case.rate()? * rtt_s;
    // What was carried a round trip is the window's worth, and never more than the window.
    let bits = bound_bytes.map_or(carried_bits, |bytes| {
        carried_bits.min(bytes * 8.0 * streams)
    });
    let subject = match case.plan().streams {
        0 | 1 => format!("this {what} is enough for"),
        several => format!("{several} such {what}s are enough for"),
    };
    said(case, &subject, |bps| bits / bps)
}

/// Of the loss that was seen: up to which round trips the congestion control reaches more in spite of it.
pub(crate) fn loss(case: &Case<'_>) -> Option<WouldPass> {
    let share = case.lost_share().filter(|share| *share > 0.0)?;
    let stream = case.sender()?.streams_of(case.direction.flow).next()?;
    let algorithm = stream.congestion.as_deref()?;
    let mss = case.path().mss_bytes? as f64;
    let streams = case.streams();
    let by_model = repeats::response_bps(case, share).filter(|bps| bps.is_finite())?;
    let factor = case.rate()? / by_model;
    if !(1.0 / CREDIBLE..=CREDIBLE).contains(&factor) {
        return None;
    }
    said(case, "this loss is low enough for", |bps| {
        response::longest_rtt_s(algorithm, mss, share, bps / streams / factor)
    })
}

/// `this window is enough for 100 Mbit/s at an RTT of up to 53 ms, or for 1 Gbit/s at up to 5.3 ms`.
fn said(case: &Case<'_>, subject: &str, longest_rtt_s: impl Fn(f64) -> f64) -> Option<WouldPass> {
    let reached: Vec<(f64, f64)> = targets(case)
        .into_iter()
        .map(|bps| (bps, longest_rtt_s(bps)))
        .filter(|(_, rtt)| (LEAST_RTT_S..10.0).contains(rtt))
        .collect();
    let parts: Vec<String> = reached
        .iter()
        .enumerate()
        .map(|(place, (bps, rtt))| {
            let at = if place == 0 { "at an RTT of" } else { "at" };
            let rtt = words::micros(rtt * 1e6);
            format!("{} {at} up to {rtt}", words::rate(*bps))
        })
        .collect();
    let place = case.kernel(case.direction.flow.sender());
    let figures = reached.iter().map(|(bps, rtt)| {
        let name = format!("longest round trip for {}, µs", words::rate(*bps));
        Figure::new(name, rtt * 1e6, place.as_str())
    });
    (!parts.is_empty()).then(|| WouldPass {
        sentence: format!("{subject} {}", parts.join(", or for ")),
        figures: figures.collect(),
    })
}

/// The rates to speak of: what the link carries, where it is known, else the next powers of ten.
fn targets(case: &Case<'_>) -> Vec<f64> {
    let Some(rate) = case.rate().filter(|rate| *rate > 0.0) else {
        return Vec::new();
    };
    if let Some(link) = limit::link_payload_bps(case) {
        return if link > rate { vec![link] } else { Vec::new() };
    }
    let ladder = (6..=11).map(|power| 10_f64.powi(power));
    ladder.filter(|step| *step > rate).take(RATES).collect()
}
