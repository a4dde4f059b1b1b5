//! A token bucket with a depth, from packets: what the detector of [`policer`](super::policer) cannot see.
//!
//! That detector draws one straight line from the first loss to the last, so it needs a bucket that never fills up again.
//! A real one is full at its depth, and tokens that come then are lost: a bucket that is small beside what a sender leaves
//! unused after each loss never fits the line. Here the deficit of the bucket (its depth without what is in it) is followed:
//! it falls at the tokens' rate, not below zero, and grows by what passes. With the right rate, each loss has a deficit that
//! no segment that passed has; the depth is where the two part.
//!
//! A queue without a policer loses exactly the same segments: its backlog is that deficit. But its segments wait as long as
//! the backlog takes, and the ones right before a loss wait longest of all, since only a full queue drops.

use linerate_analysis::statistics::{median, quantile};

use super::policer::{self, ALONE, LOSS_OUTLIERS, PASS_OUTLIERS};
use super::transmissions::{Sent, round_trips_us};

/// Round trips with a loss that two unknowns need: more than the straight line, which has one.
const ROUNDS_WITH_LOSS: usize = 5;
/// Segments that are looked at; each is looked at once for every rate that is tried.
const MOST_SEGMENTS: usize = 100_000;
/// Rates from this share of what got through on average …
const FROM_MEAN: f64 = 0.9;
/// … to this many times it are tried: a bucket that a sender leaves unused for longer says little of its rate …
const UP_TO_MEAN: f64 = 30.0;
/// … each so many times the one before …
const STEP: f64 = 1.03;
/// … and around the best one in such steps.
const FINE_STEP: f64 = 1.0025;
const FINE_STEPS: i32 = 12;
/// The rate is a lower bound where one this many times higher explains the losses too.
const HIGHER: f64 = 1.25;
/// The sender's clock is not the policer's: so many segments may come between them.
const SLACK_SEGMENTS: f64 = 2.0;
/// Losses after a longer round trip from which share on a queue was there.
const BEHIND_A_QUEUE: f64 = 0.5;
/// Half of its backlog at least is what a queue makes a segment wait; this share of them waits less in a policer.
const WAITS: f64 = 0.5;
const UNDELAYED: f64 = 0.9;
/// Such a queue would delay by so many times what round trips vary by anyway.
const ABOVE_NOISE: f64 = 4.0;
/// Where a queue drops, three in four of the segments right before a loss are among the slowest tenth.
const FIRST_QUARTER: f64 = 0.25;
const NINE_TENTHS: f64 = 0.9;
/// A segment that passed longer before a loss than this, ns, tells nothing of the queue at the loss.
const RIGHT_BEFORE_NS: u64 = 20_000_000;

/// A bucket that explains the losses, and what passed between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fitted {
    /// Tokens, bytes/s of payload.
    pub(super) rate: f64,
    /// Bytes of payload that the full bucket lets pass at once; where the rate is a lower bound, no more than that.
    pub(super) depth: f64,
    /// Faster tokens explain it as well: the bucket is small, and was full whenever segments came.
    pub(super) at_least: bool,
}

/// The bucket that explains all that was sent, where one does and no queue does.
pub(super) fn fit(sent: &[Sent]) -> Option<Fitted> {
    let sent = &sent[..sent.len().min(MOST_SEGMENTS)];
    let losses: Vec<u64> = sent
        .iter()
        .filter(|one| one.lost())
        .map(|one| one.at_ns)
        .collect();
    let round_us = median(&round_trips_us(sent))?;
    if losses.len() < ALONE
        || sent.len() < 2 * losses.len()
        || policer::rounds(&losses, round_us * 1e3) < ROUNDS_WITH_LOSS
    {
        return None;
    }
    let fitted = best(sent)?;
    no_queue(sent, fitted).then_some(fitted)
}

/// The rate that parts losses from what passed best, if well enough.
fn best(sent: &[Sent]) -> Option<Fitted> {
    let span_ns = sent.last()?.at_ns.saturating_sub(sent.first()?.at_ns);
    let passed: f64 = policer::bytes(sent.iter().filter(|one| !one.lost()));
    let mean = passed * 1e9 / span_ns.max(1) as f64;
    if span_ns == 0 || mean <= 0.0 {
        return None;
    }
    let mut deficits = Deficits::default();
    let mut best: Option<(f64, Fitted)> = None;
    let mut consider = |rate: f64| {
        deficits.follow(sent, rate);
        let (depth, beyond) = deficits.part(sent);
        if best.is_none_or(|(least, _)| beyond < least) {
            let at_least = false;
            best = Some((
                beyond,
                Fitted {
                    rate,
                    depth,
                    at_least,
                },
            ));
        }
        best
    };
    let mut rate = FROM_MEAN * mean;
    while rate < UP_TO_MEAN * mean {
        consider(rate);
        rate *= STEP;
    }
    let (_, near) = consider(rate)?;
    for step in -FINE_STEPS..=FINE_STEPS {
        consider(near.rate * FINE_STEP.powi(step));
    }
    let (_, fitted) = best.filter(|(beyond, _)| *beyond <= PASS_OUTLIERS)?;
    deficits.follow(sent, HIGHER * fitted.rate);
    Some(Fitted {
        at_least: deficits.part(sent).1 <= PASS_OUTLIERS,
        ..fitted
    })
}

/// Deficits of a bucket of one rate with each segment in it, bytes.
#[derive(Default)]
struct Deficits {
    at_loss: Vec<f64>,
    at_pass: Vec<f64>,
}

impl Deficits {
    fn follow(&mut self, sent: &[Sent], rate: f64) {
        self.at_loss.clear();
        self.at_pass.clear();
        for (one, deficit) in each(sent, rate) {
            if one.lost() {
                self.at_loss.push(deficit);
            } else {
                self.at_pass.push(deficit);
            }
        }
    }

    /// The depth that all but a tenth of the losses exceed, and the share of what passed that exceeds it as well: all of it
    /// where the middle one is no more than a segment below, as when one segment at a time is in a bucket that is full again
    /// before the next.
    fn part(&self, sent: &[Sent]) -> (f64, f64) {
        let segment = sent.iter().map(|one| one.bytes).max().unwrap_or(0);
        let depth = quantile(&self.at_loss, LOSS_OUTLIERS).unwrap_or(0.0);
        let share = |which: &dyn Fn(f64) -> bool| {
            let count = self.at_pass.iter().filter(|deficit| which(**deficit));
            count.count() as f64 / self.at_pass.len().max(1) as f64
        };
        if share(&|deficit| deficit + f64::from(segment) < depth) < 0.5 {
            return (depth, 1.0);
        }
        let most = depth + SLACK_SEGMENTS * f64::from(segment);
        (depth, share(&|deficit| deficit > most))
    }
}

/// Each segment with the deficit if it passes, bytes; those that were lost take no tokens.
fn each(sent: &[Sent], rate: f64) -> impl Iterator<Item = (&Sent, f64)> {
    let (mut deficit, mut before_ns) = (0.0_f64, sent.first().map_or(0, |one| one.at_ns));
    sent.iter().map(move |one| {
        let passed_ns = one.at_ns.saturating_sub(before_ns);
        before_ns = before_ns.max(one.at_ns);
        deficit = (deficit - rate * passed_ns as f64 / 1e9).max(0.0);
        let with = deficit + f64::from(one.bytes);
        if !one.lost() {
            deficit = with;
        }
        (one, with)
    })
}

/// Whether what passed waited less than a queue makes it wait.
fn no_queue(sent: &[Sent], fitted: Fitted) -> bool {
    let trips = round_trips_us(sent);
    let (Some(least), Some(slow)) = (quantile(&trips, 0.05), quantile(&trips, NINE_TENTHS)) else {
        return false;
    };
    if fitted.depth / fitted.rate * 1e6 < ABOVE_NOISE * (slow - least) {
        return false;
    }
    let (mut deep, mut undelayed) = (0_u32, 0_u32);
    let timed = each(sent, fitted.rate)
        .filter(|(one, deficit)| !one.lost() && *deficit > 0.5 * fitted.depth)
        .filter_map(|(one, deficit)| Some((one.round_trip_ns?, deficit)));
    for (trip_ns, deficit) in timed {
        deep += 1;
        let waited_us = trip_ns as f64 / 1e3 - least;
        undelayed += u32::from(waited_us < WAITS * deficit / fitted.rate * 1e6);
    }
    let before = right_before_losses_us(sent);
    policer::after_longer(sent) < BEHIND_A_QUEUE
        && f64::from(undelayed) >= UNDELAYED * f64::from(deep.max(1))
        && quantile(&before, FIRST_QUARTER).is_some_and(|trip| trip <= slow)
}

/// The round trips of the segments that passed right before a run of losses, µs.
fn right_before_losses_us(sent: &[Sent]) -> Vec<f64> {
    let mut latest: Option<(u64, u64)> = None;
    let mut in_run = false;
    let mut trips = Vec::new();
    for one in sent {
        if one.lost() {
            let near =
                latest.filter(|(at_ns, _)| one.at_ns.saturating_sub(*at_ns) < RIGHT_BEFORE_NS);
            trips.extend(
                near.filter(|_| !in_run)
                    .map(|(_, trip_ns)| trip_ns as f64 / 1e3),
            );
        } else if let Some(trip_ns) = one.round_trip_ns {
            latest = Some((one.at_ns, trip_ns));
        }
        in_run = one.lost();
    }
    trips
}

#[cfg(test)]
mod tests {
    use linerate_model::units::whole;

    use super::*;

    const SEGMENT: u32 = 1000;
    /// The path's own round trip, seconds, and how fast segments of one window follow each other.
    const ROUND: f64 = 0.1;
    const APART: f64 = 0.0001;

    /// What becomes of a segment: its wait in seconds, or nothing where it is lost.
    type Path<'a> = &'a mut dyn FnMut(f64) -> Option<f64>;

    /// A sender that sends a window at once each round trip, one segment more each time, and half of it after a loss.
    fn windows(rounds: u32, path: Path<'_>) -> Vec<Sent> {
        rounds_of(
            rounds,
            |_, window, lost| if lost { window / 2 + 1 } else { window + 1 },
            path,
        )
    }

    /// Rounds of windows, each by its number, the one before and whether that lost something.
    fn rounds_of(rounds: u32, next: fn(u32, u32, bool) -> u32, path: Path<'_>) -> Vec<Sent> {
        let mut window = 4_u32;
        let mut all: Vec<Sent> = Vec::new();
        for round in 0..rounds {
            let mut lost = false;
            for place in 0..window {
                let at = f64::from(round) * ROUND + f64::from(place) * APART;
                // A host's own variation, the same for every path.
                let own = f64::from((round * 7 + place * 3) % 11) * 1e-4;
                let wait = path(at);
                lost |= wait.is_none();
                all.push(Sent {
                    at_ns: whole(at * 1e9),
                    seq: all.len() as u64 * u64::from(SEGMENT),
                    bytes: SEGMENT,
                    repeated: wait.is_none(),
                    needless: false,
                    again: false,
                    round_trip_ns: wait.map(|wait| whole((ROUND + own + wait) * 1e9)),
                });
            }
            window = next(round, window, lost);
        }
        all
    }

    /// A bucket of `depth` bytes with tokens at `rate` bytes/s, whose backlog waits where it is a queue's.
    fn bucket(rate: f64, depth: f64, waits: bool) -> impl FnMut(f64) -> Option<f64> {
        let (mut deficit, mut before) = (0.0_f64, 0.0);
        move |at| {
            deficit = (deficit - rate * (at - before)).max(0.0);
            before = at;
            let fits = deficit + f64::from(SEGMENT) <= depth;
            deficit += if fits { f64::from(SEGMENT) } else { 0.0 };
            fits.then_some(if waits { deficit / rate } else { 0.0 })
        }
    }

    #[test]
    fn a_bucket_that_fills_up_again_after_each_loss_is_found_by_its_depth() {
        // 20 segments at once, and tokens for 25 in a round trip: a window of 26 empties it, one of 13 does not.
        let sent = windows(600, &mut bucket(250_000.0, 20_000.0, false));
        let found = fit(&sent).unwrap();
        // Each window comes at once: nothing tells faster tokens from these, or a part of the depth from slower ones.
        assert!(found.at_least && found.rate <= 250_000.0, "{found:?}");
        assert!(found.depth >= 20_000.0, "{found:?}");
        let transmissions = super::super::transmissions::Transmissions {
            bursts: std::iter::once(0..sent.len()).collect(),
            sent,
            ..Default::default()
        };
        assert!(
            policer::judge(&transmissions)
                .unwrap()
                .depth_bytes
                .is_some()
        );
    }

    #[test]
    fn the_rate_is_a_lower_bound_only_where_faster_tokens_would_lose_the_same_segments() {
        let small = fit(&windows(600, &mut bucket(250_000.0, 6_000.0, false))).unwrap();
        assert!(small.at_least && small.rate <= 250_000.0, "{small:?}");
        // A second at 400 kB/s in every three, and hardly anything in between.
        let busy = |round: u32, _, _| if round % 30 < 10 { 40 } else { 2 };
        let deep = fit(&rounds_of(
            600,
            busy,
            &mut bucket(250_000.0, 60_000.0, false),
        ))
        .unwrap();
        assert!(!deep.at_least, "{deep:?}");
        assert!((deep.rate / 250_000.0 - 1.0).abs() < 0.03, "{deep:?}");
        assert!((deep.depth / 60_000.0 - 1.0).abs() < 0.10, "{deep:?}");
    }

    #[test]
    fn a_queue_of_the_same_size_is_none_although_it_loses_the_same_segments() {
        let (policed, queued) = (
            windows(600, &mut bucket(250_000.0, 20_000.0, false)),
            windows(600, &mut bucket(250_000.0, 20_000.0, true)),
        );
        let lost = |sent: &[Sent]| sent.iter().map(Sent::lost).collect::<Vec<_>>();
        assert_eq!(lost(&policed), lost(&queued));
        assert_eq!(fit(&queued), None);
    }

    #[test]
    fn a_queue_behind_stored_tokens_is_none() {
        // A shaper: the first 15 segments find tokens and do not wait, the last 5 do, before one is dropped.
        let (rate, mut all) = (250_000.0, bucket(250_000.0, 20_000.0, true));
        let mut path = |at| all(at).map(|wait: f64| (wait - 15_000.0 / rate).max(0.0));
        assert_eq!(fit(&windows(600, &mut path)), None);
    }

    #[test]
    fn losses_by_chance_and_one_burst_of_them_are_none() {
        let mut count = 0_u64;
        let mut chance = |_| {
            count += 1;
            (count * count % 89 >= 2).then_some(0.0)
        };
        assert_eq!(fit(&windows(600, &mut chance)), None);
        let mut outage = |at: f64| (!(30.0..30.2).contains(&at)).then_some(0.0);
        assert_eq!(fit(&windows(600, &mut outage)), None);
    }
}
