//! Whether what was in flight filled the windows that were printed; `cannot-tell` where it did not.

use linerate_model::finding::{Finding, Severity};
use linerate_model::transcript::Stream;
use linerate_model::units::{Bytes, Nanos, grouped, whole};

use super::digest::Digest;
use crate::draft::Draft;

/// In flight on average at this share of the smaller window, that window limits. A sample of the window is of one
/// moment and the rate of an interval, so windows that limit are filled to 0.6 and more; where the sending host
/// limits they are filled to 0.05 to 0.25 (both measured).
const FILLED: f64 = 0.5;
/// BBR keeps a window of twice what it puts in flight.
const FILLED_BBR: f64 = 0.35;
/// Below this a round trip is one of hosts side by side or of one machine: its scheduling decides what is in flight
/// between two samples, µs.
const NEAR_US: f64 = 1000.0;

/// What was in flight against the smaller of the congestion window and the peer's window, over all intervals.
pub(super) struct Windows {
    /// Sum over the streams of the mean in flight, bytes.
    in_flight: f64,
    /// The same of the smaller window, bytes.
    window: f64,
    /// Least and largest round-trip time that was printed, µs.
    rtt_us: [f64; 2],
    retransmits: u64,
    /// The share of the window that is in flight where it limits.
    enough: f64,
}

impl Windows {
    /// By Little's law: rate × round-trip time is in flight. `None` where an interval lacks one of the figures.
    pub(super) fn of(digest: &Digest<'_>) -> Option<Self> {
        let bbr = digest.test.congestion.as_deref();
        let mut all = Self {
            in_flight: 0.0,
            window: 0.0,
            rtt_us: [f64::INFINITY, 0.0],
            retransmits: 0,
            enough: if bbr.is_some_and(|name| name.starts_with("bbr")) {
                FILLED_BBR
            } else {
                FILLED
            },
        };
        for id in &digest.streams {
            let rows = digest.intervals.get(&Stream::One(*id))?;
            let count = rows.len() as f64;
            for row in rows {
                let (rtt_us, congestion) = (row.rtt_us?.value, row.window_bytes?.value);
                let peer = row.receive_window_bytes;
                let window = peer.map_or(congestion, |peer| peer.value.min(congestion));
                all.in_flight += row.bps.value * rtt_us / 8e6 / count;
                all.window += window / count;
                all.rtt_us = [all.rtt_us[0].min(rtt_us), all.rtt_us[1].max(rtt_us)];
                all.retransmits = all.retransmits.saturating_add(row.retransmits?);
            }
        }
        (all.window > 0.0).then_some(all)
    }

    /// Whether the smaller window limited.
    pub(super) fn are_filled(&self) -> bool {
        self.rtt_us[0] >= NEAR_US && self.share() >= self.enough
    }

    fn share(&self) -> f64 {
        self.in_flight / self.window
    }
}

/// Where no window limited: what may have.
pub(super) fn judge(digest: &Digest<'_>) -> Option<Finding> {
    let windows = Windows::of(digest).filter(|windows| !windows.are_filled())?;
    let [least, largest] = windows.rtt_us.map(|us| Nanos(whole(us * 1e3)));
    let rate = digest.rate(digest.settled()?);
    let share = windows.share();
    let why = if share < windows.enough {
        format!(
            "no window did: at the printed RTT ({least} to {largest}) {} were in flight (rate × RTT), {:.0} % of \
             the smaller window",
            Bytes(whole(windows.in_flight)),
            share * 100.0
        )
    } else {
        format!(
            "at RTTs of {least} to {largest} scheduling, not a window, decides what is in flight"
        )
    };
    let again = match windows.retransmits {
        0 => String::new(),
        1 => "; 1 segment was retransmitted".to_owned(),
        more => format!("; {} segments were retransmitted", grouped(more)),
    };
    let sentence = format!(
        "The output does not show what limits {rate}, but {why}: the sending program, its send buffer, a requested rate \
         or a CPU of either end is the limit{again}"
    );
    let seconds = whole(digest.seconds().unwrap_or(10.0)).clamp(10, 600);
    Draft::new("cannot-tell", Severity::Note, sentence)
        .figure(
            "in flight (rate × rtt), bytes",
            windows.in_flight,
            "all streams",
        )
        .figure("smaller window, bytes", windows.window, "all streams")
        .figure("least rtt printed, µs", windows.rtt_us[0], "sender")
        .figure("segments retransmitted", windows.retransmits, "sender")
        .next(format!("linerate test {} -t {seconds}", digest.host()))
        .done()
}
