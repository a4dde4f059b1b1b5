//! The runs that tell causes apart, and how well what they gave fits each cause.

use linerate_model::counter_test::{CounterRun, Passage, Variation};
use linerate_model::record::Outcome;

use super::causes::{CAUSES, Cause};
use crate::counter_test::Known;

/// Datagrams are sent at so many times the rate, and just below it.
const FASTER: f64 = 2.0;
/// Where these pass, at so many times the rate, but no more than this share of the interface.
const MUCH_FASTER: f64 = 6.0;
const OF_THE_LINK: f64 = 0.95;
const BELOW: f64 = 0.9;
/// Less than this many times the rate tells nothing of what the path does beyond it.
const ENOUGH: f64 = 1.2;
/// Beyond what TCP lost, the share that is lost of datagrams at twice the rate: as chance loses, and as a limit does.
const LOST: [f64; 2] = [0.03, 0.10];
/// So much of TCP's own loss is chance's.
const CHANCE: f64 = 2.0;
/// Datagrams that wait behind a queue wait for so many others, and at least so long, µs: less is no queue.
const WAITED: [f64; 2] = [1.3, 2.6];
const WAITED_US: [f64; 2] = [60.0, 180.0];
/// A wait below the rate, µs: a queue that this test alone does not fill.
const STANDS_US: [f64; 2] = [200.0, 600.0];
/// A queue is long that takes so much of the round trip: a shorter one does not take up what a congestion control gives up.
const LONG: [f64; 2] = [0.15, 0.4];
/// TCP fills a path of which it got so much.
const FILLS: [f64; 2] = [0.72, 0.86];
/// More in sum, of four times as many streams, or of another window.
const MORE: [f64; 2] = [1.2, 1.7];
/// Losses by chance are told from none: where none are expected, so many come all the same, beside this share of the others.
const STRAY: f64 = 0.3;
const STRAY_SHARE: f64 = 0.03;
/// A count weighs no more than this: whatever else went on may have lost some.
const MOST: f64 = 40.0;

/// A congestion control shows itself between losses: a run of so many times as long as CUBIC needs to fill the path again after
/// one tells all that it can …
const RECOVERIES: f64 = 3.0;
/// … and one that hardly leaves slow start this much of it.
const LEAST_TOLD: f64 = 0.15;

/// What one run tells, for each cause: how well its outcome fits, in relation to the others.
pub(super) type Fit = [f64; CAUSES.len()];

/// A run that tells causes apart.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    pub(super) variation: Variation,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Faster,
    MuchFaster,
    Below,
    Streams,
    Cubic,
    /// Whether it is wider than what was in flight.
    Window {
        wider: bool,
    },
}

impl Question {
    /// All that a test allows, in the order of what they cost.
    pub(super) fn all(known: &Known<'_>, runs: &[CounterRun]) -> Vec<Self> {
        let question = |kind, variation| Self { variation, kind };
        let window = known.another_window().map(|trial| {
            let wider = trial.predicts_more;
            question(Kind::Window { wider }, trial.variation)
        });
        let faster = known
            .datagrams_at(FASTER)
            .map(|variation| question(Kind::Faster, variation));
        let passed = faster.as_ref().is_some_and(|question| {
            let made = runs
                .iter()
                .filter(|run| run.variation.as_ref() == Some(&question.variation));
            let mut answers = made.filter_map(|run| faster_or_not(run.passage.as_ref()?, known));
            answers
                .next_back()
                .is_some_and(|[carried, ..]| carried > 0.5)
        });
        let most = known
            .direction
            .link_bps
            .map(|bps| OF_THE_LINK * bps as f64 / known.rate_bps);
        let times = most.map_or(MUCH_FASTER, |most| most.min(MUCH_FASTER));
        let much_faster = known
            .datagrams_at(times)
            .filter(|_| passed && times > 1.5 * FASTER)
            .map(|variation| question(Kind::MuchFaster, variation));
        let cubic = known
            .cubic()
            .map(|trial| question(Kind::Cubic, trial.variation));
        [
            faster,
            much_faster,
            known
                .datagrams_at(BELOW)
                .map(|variation| question(Kind::Below, variation)),
            known
                .streams(true)
                .map(|trial| question(Kind::Streams, trial.variation)),
            window,
            cubic,
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Its answers, each with how often each cause gives it.
    pub(super) fn answers(&self) -> Vec<Fit> {
        let two = |of: fn(&Cause) -> f64| {
            let more = CAUSES.each_ref().map(of);
            vec![more, more.map(|share| 1.0 - share)]
        };
        match self.kind {
            Kind::Faster => (0..5)
                .map(|answer| CAUSES.each_ref().map(|cause| cause.faster[answer]))
                .collect(),
            Kind::MuchFaster => (0..5)
                .map(|answer| CAUSES.each_ref().map(|cause| cause.much_faster[answer]))
                .collect(),
            Kind::Cubic => two(|cause| cause.cubic),
            Kind::Below => (0..3)
                .map(|answer| CAUSES.each_ref().map(|cause| cause.below[answer]))
                .collect(),
            Kind::Streams => two(|cause| cause.streams),
            Kind::Window { .. } => two(|cause| cause.window),
        }
    }

    /// What a run says; `None` where it failed, or says nothing.
    pub(super) fn fit(&self, run: &CounterRun, known: &Known<'_>) -> Option<Fit> {
        if run.outcome != Outcome::Completed {
            return None;
        }
        let shares = match self.kind {
            Kind::Faster | Kind::MuchFaster => {
                faster_or_not(run.passage.as_ref()?, known)?.to_vec()
            }
            Kind::Below => {
                let lost = lost_as_tcp(run, known)?;
                let passage = run.passage.as_ref();
                let waits = passage.map_or(0.0, |passed| ramp(passed.waited_us, STANDS_US));
                vec![lost * (1.0 - waits), (1.0 - lost) * (1.0 - waits), waits]
            }
            Kind::Streams | Kind::Cubic | Kind::Window { wider: true } => {
                let more = ramp(run.goodput_bps? / known.rate_bps, MORE);
                vec![more, 1.0 - more]
            }
            Kind::Window { wider: false } => {
                let less = ramp(known.rate_bps / run.goodput_bps?.max(1.0), MORE);
                vec![less, 1.0 - less]
            }
        };
        let mut fit = [0.0; CAUSES.len()];
        for (answer, share) in self.answers().iter().zip(&shares) {
            for (sum, likely) in fit.iter_mut().zip(answer) {
                *sum += share * likely;
            }
        }
        if self.kind == Kind::Cubic {
            let told = told_of_control(run, known);
            fit = fit.map(|likely| likely.powf(told));
        }
        Some(fit)
    }
}

/// How much of the difference between two congestion controls a run was long enough to show, 0 to 1: it begins with a slow start
/// of its own, which all of them have.
fn told_of_control(run: &CounterRun, known: &Known<'_>) -> f64 {
    let recovery = known.direction.path.and_then(|path| {
        let window = known.rate_bps / 8e6 * path.rtt_us? / path.mss_bytes? as f64;
        // RFC 9438: K = ∛(W_max · (1 − β) / C), s.
        Some((window * 0.3 / 0.4).cbrt())
    });
    recovery.map_or(1.0, |recovery| {
        let recoveries = run.span_ns.as_secs_f64() / recovery.max(f64::MIN_POSITIVE);
        (recoveries / RECOVERIES).clamp(LEAST_TOLD, 1.0)
    })
}

/// How far the outcome is each of the five answers; all of them together are 1. `None` where the run was no faster.
fn faster_or_not(passed: &Passage, known: &Known<'_>) -> Option<[f64; 5]> {
    if passed.offered_bps < ENOUGH * known.rate_bps || passed.delivered_bps <= 0.0 {
        return None;
    }
    let chance = CHANCE * known.lost_share().unwrap_or(0.0);
    let dropped = ramp(passed.lost_share, LOST.map(|share| share + chance));
    let queued = queued(passed);
    let round_trip_us = known.direction.path.and_then(|path| path.min_rtt_us);
    let long = round_trip_us.map_or(0.5, |least| ramp(passed.waited_us / least, LONG));
    let filled = ramp(known.rate_bps / passed.delivered_bps, FILLS);
    Some([
        1.0 - dropped,
        dropped * (1.0 - queued),
        dropped * queued * filled,
        dropped * queued * (1.0 - filled) * (1.0 - long),
        dropped * queued * (1.0 - filled) * long,
    ])
}

/// How sure it is, 0 to 1, that datagrams waited in a queue before others were dropped.
fn queued(passed: &Passage) -> f64 {
    let datagram_us = passed.datagram_bytes * 8e6 / passed.delivered_bps;
    let by_number = ramp(passed.waited_us / datagram_us, WAITED);
    let by_time = ramp(passed.waited_us, WAITED_US);
    // At high rates even many datagrams pass in no time.
    let told = ramp(WAITED[1] * datagram_us, WAITED_US);
    let long = by_number.min(by_time);
    long.max(0.5 * (1.0 - told) * by_number)
}

/// How sure it is, 0 to 1, that datagrams are lost as TCP's segments are, by Poisson's law.
fn lost_as_tcp(run: &CounterRun, known: &Known<'_>) -> Option<f64> {
    let (lost, sent) = (run.lost? as f64, run.sent? as f64);
    let expected = known.lost_share()? * sent;
    let otherwise = STRAY + STRAY_SHARE * expected;
    // Losses in groups are fewer chances than they are segments.
    let log = |mean: f64| lost.min(2.0 * expected + 1.0) * mean.ln() - mean;
    let ratio = (log(expected.max(otherwise)) - log(otherwise))
        .clamp(-MOST.ln(), MOST.ln())
        .exp();
    Some(ratio / (1.0 + ratio))
}

/// 0 below the first, 1 above the second, and evenly in between.
fn ramp(value: f64, [from, to]: [f64; 2]) -> f64 {
    ((value - from) / (to - from)).clamp(0.0, 1.0)
}
