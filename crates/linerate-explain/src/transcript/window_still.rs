//! `receive-window`: a congestion window that stands still while nothing is repeated.
//!
//! A window that the path limited would grow or be cut; one that stands still is not what limits the
//! path, it is what the ends let it be. Window over rate is more than the round-trip time can be.

use linerate_analysis::statistics::mean;
use linerate_model::finding::{Finding, Severity};
use linerate_model::transcript::{Given, Stream};
use linerate_model::units::{Bytes, Nanos, whole};

use super::digest::Digest;
use crate::draft::Draft;

/// Fewer rows stand still by chance.
const LEAST_ROWS: usize = 3;

/// In flight at this share of a window, it is full.
const FILLED: f64 = 0.85;

struct Still {
    id: u32,
    window: f64,
    bps: f64,
}

impl Still {
    fn rtt_s(&self) -> f64 {
        self.window * 8.0 / self.bps
    }
}

pub(super) fn judge(digest: &Digest<'_>, given: &Given) -> Option<Finding> {
    let still: Vec<Still> = digest
        .streams
        .iter()
        .map(|id| stands_still(digest, *id))
        .collect::<Option<_>>()?;
    let first = still.first()?;
    let windows: Vec<String> = still
        .iter()
        .map(|one| Bytes(whole(one.window)).to_string())
        .collect();
    let bounds: Vec<String> = still.iter().map(|one| milliseconds(one.rtt_s())).collect();
    let window = match windows.as_slice() {
        [one] => format!("The congestion window stays at {one}"),
        several => format!("The congestion windows stay at {}", several.join(" and ")),
    };
    let bound = match bounds.as_slice() {
        [one] => one.clone(),
        several => format!(
            "about {:.0} ms ({} by stream)",
            first.rtt_s() * 1e3,
            several.join(", ")
        ),
    };
    let mut sentence = if held(digest) {
        format!(
            "{window}, there are no retransmits, and the rate is {} in all intervals: a requested rate (-b, pacing), \
             the application or a window is the limit, not the path; window × 8 / rate = {bound}, an upper bound of \
             the RTT",
            digest.rate(first.bps)
        )
    } else {
        format!(
            "{window} and there are no retransmits: a window is the limit, not the path; window × 8 / rate = \
             {bound}, an upper bound of the RTT; a larger window gives a higher rate"
        )
    };
    let share = given
        .rtt
        .map(|rtt| first.bps * rtt.as_secs_f64() / 8.0 / first.window);
    if let Some(rtt) = given.rtt {
        sentence.push_str(&with_rtt(first, rtt));
    }
    // A window that is not full does not limit, whatever else does.
    let full = share.map_or(!held(digest), |share| share > FILLED);
    let draft = if full {
        Draft::new("receive-window", Severity::Limit, sentence)
    } else {
        Draft::new("cannot-tell", Severity::Note, sentence)
    };
    let draft = still.iter().fold(draft, |draft, one| {
        let place = format!("stream {}", one.id);
        let longest_ms = one.rtt_s() * 1e3;
        draft
            .figure("congestion window, bytes", one.window, &place)
            .figure("rate after the ramp, bit/s", one.bps, &place)
            .figure("upper bound on the round-trip time, ms", longest_ms, &place)
    });
    let mib = whole(first.window * 4.0 / 1_048_576.0).max(1);
    draft
        .next(format!("linerate test {} -w {mib}M", digest.host()))
        .done()
}

fn with_rtt(one: &Still, rtt: Nanos) -> String {
    let flying = one.bps * rtt.as_secs_f64() / 8.0;
    let share = flying / one.window;
    let at = format!("; at {rtt}, {} are in flight", Bytes(whole(flying)));
    if share > 1.1 {
        format!("{at}, more than the window: the RTT was shorter than {rtt}")
    } else if share > FILLED {
        format!("{at}, which is this window")
    } else {
        format!(
            "{at}, {:.0} % of this window: the limit is the receive window, the send buffer, the application or a \
             requested rate",
            share * 100.0
        )
    }
}

/// The stream's window after the ramp, where it does not move and nothing was repeated in all of the test.
fn stands_still(digest: &Digest<'_>, id: u32) -> Option<Still> {
    let rows = digest.intervals.get(&Stream::One(id))?;
    if rows.iter().any(|row| row.retransmits != Some(0)) {
        return None;
    }
    let rows = rows.get(digest.ramp..)?;
    let window = rows.first()?.window_bytes?;
    let same = rows.iter().all(|row| {
        row.window_bytes
            .is_some_and(|other| other.meets(window.low(), window.high()))
    });
    if rows.len() < LEAST_ROWS || !same || window.value <= 0.0 {
        return None;
    }
    let alone = digest.ramp == 0 && digest.streams.len() == 1;
    let average = if alone { digest.average() } else { None };
    let bps = average.unwrap_or_else(|| {
        let rates: Vec<f64> = rows.iter().map(|row| row.bps.value).collect();
        mean(&rates)
    });
    (bps > 0.0).then_some(Still {
        id,
        window: window.value,
        bps,
    })
}

/// Whether all rates after the ramp print the same round number, of one or two digits: what is asked for is round,
/// what a window gives hardly ever is.
fn held(digest: &Digest<'_>) -> bool {
    let rates = digest.plateau();
    let Some(first) = rates.first().copied().filter(|rate| *rate > 0.0) else {
        return false;
    };
    let unit = 10_f64.powf(first.log10().floor() - 1.0);
    let round = ((first / unit).round() * unit / first - 1.0).abs() < 1e-9;
    round && rates.iter().all(|rate| (rate / first - 1.0).abs() < 1e-9)
}

fn milliseconds(seconds: f64) -> String {
    Nanos::from_secs_f64(seconds).to_string()
}
