//! What a test of a pair has to show, and whether it does: PASS, FAIL or INCONCLUSIVE by the rule of `test --expect`.

use linerate_model::alert::{FloorOf, RunShows};
use linerate_model::units::BitRate;
use linerate_model::wanted::{Amount, Verdict, Wanted};
use linerate_model::watch::{WatchFigures, WatchOutcome};
use serde::{Deserialize, Serialize};

use crate::baseline::Baseline;
use crate::watched::{Expected, Pair, Task, Watched};

/// What [`Expected::Auto`] wants of the least rate.
const AUTO: f64 = 0.9;
/// So much of the way from the floor to the median, and what is above it is as usual.
const HALF: f64 = 0.5;
/// Standard deviations on each side of a rate whose own interval is not known.
const BESIDE: f64 = 2.0;

/// What bounds the rate of a pair, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bounds {
    /// Rate of the sender's link.
    pub sender_link: Option<BitRate>,
    /// Rate of the receiver's link.
    pub receiver_link: Option<BitRate>,
    /// The least capacity of the segments that the test passes.
    pub segment: Option<BitRate>,
    /// The rate that the test is paced to.
    pub paced: Option<BitRate>,
    /// What the hosts' settings and the path allow, payload, as `linerate expect` computes it.
    pub settings: Option<BitRate>,
}

impl Bounds {
    /// What the plan says of a pair. A test passes the segments that one of its hosts is in and the other is not.
    pub fn of(watched: &Watched, task: &Task, pair: &Pair) -> Self {
        let host = |place: usize| watched.hosts.get(place);
        let (from, to) = (host(pair.from), host(pair.to));
        let of = |place: usize| host(place).map_or(&[][..], |host| &host.segments);
        let (sends, receives) = (of(pair.from), of(pair.to));
        let left = sends.iter().filter(|segment| !receives.contains(segment));
        let entered = receives.iter().filter(|segment| !sends.contains(segment));
        let capacity = |segment: &usize| watched.segments.get(*segment)?.capacity;
        Self {
            sender_link: from.and_then(|host| host.link),
            receiver_link: to.and_then(|host| host.link),
            segment: left.chain(entered).filter_map(capacity).min(),
            paced: task.rate,
            settings: None,
        }
    }

    /// The slower one of both links, bit/s; absent = neither is known.
    pub fn link_bps(&self) -> Option<f64> {
        let links = [self.sender_link, self.receiver_link].into_iter().flatten();
        links.map(|rate| rate.0 as f64).reduce(f64::min)
    }

    fn least(&self) -> Option<(f64, FloorOf)> {
        let all = [
            (self.sender_link, FloorOf::SenderLink),
            (self.receiver_link, FloorOf::ReceiverLink),
            (self.segment, FloorOf::Segment),
            (self.paced, FloorOf::Paced),
            (self.settings, FloorOf::Settings),
        ];
        let known = all
            .into_iter()
            .filter_map(|(rate, of)| Some((rate?.0 as f64, of)));
        known.reduce(|least, next| if next.0 < least.0 { next } else { least })
    }
}

/// The least that a test has to show.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// bit/s of payload.
    pub bps: f64,
    /// What it follows from.
    pub of: FloorOf,
}

/// The floor of a pair; absent where nothing is expected, or nothing is known yet to expect. [`Expected::Auto`] and
/// [`Expected::OfBaseline`] need a baseline: bounds say what a pair cannot exceed, not what it reaches.
pub fn floor(
    expected: Option<Expected>,
    bounds: &Bounds,
    baseline: Option<&Baseline>,
) -> Option<Floor> {
    let of_baseline = |share: f64| {
        baseline.map(|baseline| Floor {
            bps: share * baseline.median_bps,
            of: FloorOf::Baseline,
        })
    };
    match expected? {
        Expected::AtLeast(rate) => Some(Floor {
            bps: rate.0 as f64,
            of: FloorOf::Given,
        }),
        Expected::OfBaseline(share) => of_baseline(share),
        Expected::Auto => {
            let own = of_baseline(AUTO)?;
            let bound = bounds.least().map(|(bps, of)| Floor {
                bps: AUTO * bps,
                of,
            });
            Some(bound.filter(|bound| bound.bps < own.bps).unwrap_or(own))
        }
    }
}

/// What became of a test, against its floor; absent where it did not run.
///
/// A test that other traffic disturbed may pass and does not fail. The interval of a rate is the narrower one of the test's own
/// and of two standard deviations of the baseline on each side, below no more than half of what the median is above the
/// floor. Where neither is known the rate alone decides.
pub fn shows(
    outcome: &WatchOutcome,
    floor: Option<Floor>,
    baseline: Option<&Baseline>,
) -> Option<RunShows> {
    match outcome {
        WatchOutcome::NotRun { .. } => None,
        WatchOutcome::Invalid { .. } => Some(RunShows::Inconclusive),
        WatchOutcome::Failed { .. } => Some(RunShows::Failed),
        WatchOutcome::Measured(figures) => {
            Some(floor.map_or(RunShows::Pass, |floor| measured(figures, floor, baseline)))
        }
    }
}

fn measured(figures: &WatchFigures, floor: Floor, baseline: Option<&Baseline>) -> RunShows {
    let rate = figures.goodput_bps;
    let own = baseline.map(|baseline| own_interval(rate, floor, baseline));
    let (low, high) = match (figures.interval_bps, own) {
        // What the pair's tests scatter by has in it what a test does not know of its own rate. A short test knows little.
        (Some(within), Some(own)) => (within.0.max(own.0), within.1.min(own.1)),
        (Some(known), None) | (None, Some(known)) => known,
        (None, None) => (rate, rate),
    };
    // Rates of payload are far below 2^53 bit/s: whole bit/s are exact.
    let least = BitRate(whole(floor.bps));
    match Wanted::AtLeast(Amount::Rate(least)).judge(None, [low, high]) {
        Verdict::Pass => RunShows::Pass,
        Verdict::Fail if figures.with_traffic => RunShows::Inconclusive,
        Verdict::Fail => RunShows::Fail,
        Verdict::Inconclusive => RunShows::Inconclusive,
    }
}

/// Two standard deviations of the pair's tests on each side of a rate. A test that shows what the pair usually shows passes,
/// however much its tests scatter: else no alert of it would end.
fn own_interval(rate: f64, floor: Floor, baseline: &Baseline) -> (f64, f64) {
    let beside = BESIDE * baseline.deviation;
    let usual = (baseline.median_bps / floor.bps).ln();
    let below = if usual > 0.0 {
        beside.min(HALF * usual)
    } else {
        beside
    };
    (rate * (-below).exp(), rate * beside.exp())
}

/// The whole number of bit/s below a rate; 0 of a negative one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and rates are far below 2^64"
)]
pub(crate) const fn whole(rate: f64) -> u64 {
    rate as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASELINE: Baseline = Baseline {
        median_bps: 9.4e9,
        deviation: 0.03,
        runs: 30,
    };

    fn shown(low: f64, high: f64) -> RunShows {
        let figures = WatchFigures {
            goodput_bps: f64::midpoint(low, high),
            interval_bps: Some((low, high)),
            ..WatchFigures::default()
        };
        let floor = floor(
            Some(Expected::AtLeast(BitRate(8_000_000_000))),
            &Bounds::default(),
            None,
        );
        shows(&WatchOutcome::Measured(figures), floor, None).unwrap()
    }

    #[test]
    fn the_whole_interval_decides() {
        assert_eq!(shown(8.0e9, 9.0e9), RunShows::Pass);
        assert_eq!(shown(7.0e9, 7.9e9), RunShows::Fail);
        assert_eq!(shown(7.0e9, 9.0e9), RunShows::Inconclusive);
    }

    #[test]
    fn auto_takes_the_least_that_is_known() {
        let auto = |bounds: &Bounds, baseline| floor(Some(Expected::Auto), bounds, baseline);
        assert_eq!(auto(&Bounds::default(), None), None);
        let bounds = Bounds {
            sender_link: Some(BitRate(100_000_000_000)),
            receiver_link: Some(BitRate(10_000_000_000)),
            ..Bounds::default()
        };
        assert_eq!(auto(&bounds, None), None);
        let fast = Baseline {
            median_bps: 12e9,
            ..BASELINE
        };
        let link = auto(&bounds, Some(&fast)).unwrap();
        assert_eq!((link.bps, link.of), (9e9, FloorOf::ReceiverLink));
        let own = auto(&bounds, Some(&BASELINE)).unwrap();
        assert!(
            (own.bps - 8.46e9).abs() < 1.0 && own.of == FloorOf::Baseline,
            "{own:?}"
        );
        let paced = Bounds {
            paced: Some(BitRate(1_000_000_000)),
            ..bounds
        };
        assert_eq!(auto(&paced, Some(&BASELINE)).unwrap().of, FloorOf::Paced);
        assert_eq!(floor(Some(Expected::OfBaseline(0.8)), &bounds, None), None);
        assert_eq!(floor(None, &bounds, Some(&BASELINE)), None);
    }

    #[test]
    fn an_unknown_interval_is_that_of_the_pairs_own_tests() {
        let of = |goodput_bps: f64, with_traffic: bool, baseline| {
            let figures = WatchFigures {
                goodput_bps,
                with_traffic,
                ..WatchFigures::default()
            };
            let floor = Some(Floor {
                bps: 8.46e9,
                of: FloorOf::Baseline,
            });
            shows(&WatchOutcome::Measured(figures), floor, baseline)
        };
        assert_eq!(
            of(8.2e9, false, Some(&BASELINE)),
            Some(RunShows::Inconclusive)
        );
        assert_eq!(of(7.5e9, false, Some(&BASELINE)), Some(RunShows::Fail));
        assert_eq!(of(8.2e9, false, None), Some(RunShows::Fail));
        // Tests that scatter by more than a tenth: one at the usual level passes all the same.
        let scattered = Baseline {
            deviation: 0.08,
            ..BASELINE
        };
        assert_eq!(of(9.4e9, false, Some(&scattered)), Some(RunShows::Pass));
        assert_eq!(
            of(7.5e9, false, Some(&scattered)),
            Some(RunShows::Inconclusive)
        );
        assert_eq!(of(7.5e9, true, None), Some(RunShows::Inconclusive));
        assert_eq!(of(9.4e9, true, None), Some(RunShows::Pass));
    }

    #[test]
    fn a_short_test_is_known_by_the_pairs_own_tests() {
        let of = |goodput_bps: f64, share: f64| {
            let figures = WatchFigures {
                goodput_bps,
                interval_bps: Some((goodput_bps * (1.0 - share), goodput_bps * (1.0 + share))),
                ..WatchFigures::default()
            };
            let floor = Some(Floor {
                bps: 8.46e9,
                of: FloorOf::Baseline,
            });
            shows(&WatchOutcome::Measured(figures), floor, Some(&BASELINE))
        };
        assert_eq!(of(9.4e9, 0.3), Some(RunShows::Pass));
        assert_eq!(of(7.5e9, 0.3), Some(RunShows::Fail));
        assert_eq!(of(8.2e9, 0.3), Some(RunShows::Inconclusive));
        assert_eq!(of(8.2e9, 0.01), Some(RunShows::Fail));
    }

    #[test]
    fn what_did_not_run_shows_nothing_and_what_failed_is_no_low_rate() {
        let failed = WatchOutcome::Failed {
            stage: "connecting".into(),
            why: "refused".into(),
        };
        assert_eq!(shows(&failed, None, None), Some(RunShows::Failed));
        let invalid = WatchOutcome::Invalid {
            why: "clock".into(),
        };
        assert_eq!(shows(&invalid, None, None), Some(RunShows::Inconclusive));
    }
}
