//! The ramp, round by round.
//!
//! Slow start doubles the window each round trip from ten segments (RFC 6928; Linux counts bytes, so delayed
//! acknowledgements do not slow it). CUBIC's `HyStart` (RFC 9406; `tcp_cubic.c`) may leave it when the
//! acknowledgements of a round span half the round trip, which is at half of the path's window; from there
//! Linux grows by a twentieth a round trip, or by CUBIC's curve where that is more, until a first loss.

use linerate_model::expectation::{Question, Ramp};
use linerate_model::units::Nanos;

/// Initial window, segments (RFC 6928).
const INITIAL: f64 = 10.0;
/// `HyStart` leaves slow start at this share of what fills the path.
const LEFT_AT: f64 = 0.5;
/// Growth a round trip after that, before a first loss (`cnt` is at most 20).
const GROWTH: f64 = 1.05;
/// CUBIC's C, segments/s³.
const CUBIC_C: f64 = 0.4;
/// The ramp is over at this share of the plateau.
const REACHED: f64 = 0.95;
/// A window grows in no more rounds than these; from ten segments they reach the largest window at any growth.
const MOST_ROUNDS: u32 = 100_000;

/// What a ramp took and what it carried.
struct Climb {
    rounds: u32,
    time_s: f64,
    carried_bytes: f64,
}

/// The ramp of streams of which each may have `path` of the path and reaches `plateau`, both bit/s.
pub(super) fn of(asked: &Question, mss: f64, path: f64, plateau: f64) -> Ramp {
    let hystart = leaves_early(asked);
    let fast = climb(asked, mss, path, plateau, false);
    let slow = climb(asked, mss, path, plateau, hystart);
    let missed = |climb: &Climb| {
        let bytes = plateau / 8.0 * climb.time_s - climb.carried_bytes;
        crate::words::whole(bytes.max(0.0) * f64::from(asked.streams))
    };
    Ramp {
        doublings: fast.rounds,
        ns: [&fast, &slow].map(|climb| Nanos::from_secs_f64(climb.time_s).0),
        cost_bytes: [missed(&fast), missed(&slow)],
        hystart,
    }
}

/// What one stream carries on average over the whole test, bit/s; with the slowest ramp, or with the fastest.
pub(super) fn average(asked: &Question, mss: f64, path: f64, plateau: f64, slowest: bool) -> f64 {
    let early = slowest && leaves_early(asked);
    let time = asked.time_ns.as_secs_f64();
    let climb = climb(asked, mss, path, plateau, early);
    if climb.time_s >= time {
        return carried_within(asked, mss, path, early).min(plateau);
    }
    (climb.carried_bytes * 8.0 + plateau * (time - climb.time_s)) / time
}

/// Whether the congestion control may leave slow start without a loss.
fn leaves_early(asked: &Question) -> bool {
    asked.congestion == "cubic"
}

/// What one stream carries in a test that is over before its ramp, bit/s on average.
fn carried_within(asked: &Question, mss: f64, path: f64, early: bool) -> f64 {
    let rtt = asked.rtt_ns.as_secs_f64();
    let whole = asked.time_ns.as_secs_f64();
    let (mut left, mut carried) = (whole, 0.0);
    for window in windows(asked, mss, path, early) {
        let part = (left / rtt).min(1.0);
        carried += window * mss * part;
        left -= rtt;
        if left <= 0.0 {
            break;
        }
    }
    carried * 8.0 / whole
}

fn climb(asked: &Question, mss: f64, path: f64, plateau: f64, early: bool) -> Climb {
    let rtt = asked.rtt_ns.as_secs_f64();
    let enough = REACHED * plateau * rtt / (mss * 8.0);
    let mut climb = Climb {
        rounds: 0,
        time_s: 0.0,
        carried_bytes: 0.0,
    };
    for window in windows(asked, mss, path, early) {
        if window >= enough {
            break;
        }
        climb.rounds += 1;
        climb.time_s += rtt;
        climb.carried_bytes += window * mss;
    }
    climb
}

/// The window of each round, segments.
fn windows(asked: &Question, mss: f64, path: f64, early: bool) -> impl Iterator<Item = f64> {
    let rtt = asked.rtt_ns.as_secs_f64();
    let full = path * rtt / (mss * 8.0);
    let mut window = INITIAL;
    // The window at which slow start was left, and how long ago.
    let mut left: Option<(f64, f64)> = None;
    (0..MOST_ROUNDS).map(move |_| {
        let now = window;
        if early && left.is_none() && window >= LEFT_AT * full {
            left = Some((window, 0.0));
        }
        window = match &mut left {
            None => window * 2.0,
            Some((origin, since)) => {
                *since += rtt;
                let curve = *origin + CUBIC_C * (*since + rtt).powi(3);
                curve.clamp(window * GROWTH, window * 1.5)
            }
        };
        now
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expect::question;
    use linerate_model::units::BitRate;

    fn asked(congestion: &str) -> Question {
        Question {
            congestion: congestion.to_owned(),
            ..question(BitRate(10_000_000_000), Nanos::from_millis(100))
        }
    }

    #[test]
    fn doublings_take_what_the_formula_says() {
        // tcp-diagnosis: 10 Gbit/s at 100 ms take 13 rounds, 1.3 s: 10·2^13 × 1448 B > 0.95 of the path.
        let path = 10e9 * 1448.0 / 1538.0;
        let ramp = of(&asked("reno"), 1448.0, path, path);
        assert_eq!(ramp.doublings, 13);
        assert_eq!(ramp.ns, [1_300_000_000; 2]);
        assert!(!ramp.hystart);
    }

    #[test]
    fn hystart_makes_it_longer_and_costs_more() {
        let path = 10e9 * 1448.0 / 1538.0;
        let ramp = of(&asked("cubic"), 1448.0, path, path);
        assert_eq!(ramp.ns[0], 1_300_000_000);
        assert!(ramp.ns[1] > ramp.ns[0] && ramp.cost_bytes[1] > ramp.cost_bytes[0]);
        // A twentieth a round trip from half to 95 %: at most 14 more rounds than doubling's last one.
        assert!(ramp.ns[1] <= 2_700_000_000, "{}", ramp.ns[1]);
    }

    #[test]
    fn a_window_that_is_there_from_the_start_has_no_ramp() {
        let ramp = of(&asked("cubic"), 1448.0, 1e6, 1e6);
        assert_eq!(
            (ramp.doublings, ramp.ns, ramp.cost_bytes),
            (0, [0, 0], [0, 0])
        );
    }

    #[test]
    fn a_test_that_ends_in_the_ramp_has_carried_little() {
        let path = 10e9 * 1448.0 / 1538.0;
        // Five rounds: 10 + 20 + 40 + 80 + 160 segments in half a second.
        let short = Question {
            time_ns: Nanos::from_millis(500),
            ..asked("reno")
        };
        let bps = average(&short, 1448.0, path, path, true);
        assert!((bps - 310.0 * 1448.0 * 8.0 / 0.5).abs() < 1.0, "{bps}");
    }
}
