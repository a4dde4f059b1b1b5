//! A token bucket, from packets: the detector of Flach et al. ("An Internet-Wide Analysis of Traffic Policing",
//! SIGCOMM 2016, section 3).
//!
//! A policer drops a packet when its bucket is empty and keeps no queue. So between the first loss and the last
//! one a connection gets exactly the rate of the tokens; with the bucket filled at that rate and emptied by what
//! passes, it is empty at every loss and not empty at what passes; and the round trip before a loss is no longer
//! than at other times. Each stretch of a connection (between two requests, or two silences, in which the bucket
//! fills again) is judged alone; the tokens' rate must be the same in all. Where no straight line fits, the bucket's depth
//! may matter: [`bucket`] looks for that.

use std::collections::BTreeMap;

use linerate_analysis::statistics::{mean, median};
use linerate_model::units::whole;

use super::bucket;
use super::transmissions::{Sent, Transmissions, round_trips_us};

/// Losses, and segments that passed after the first of them, that a stretch needs …
const SAMPLES: usize = 15;
/// … and round trips with a loss: one burst of losses is no rate.
const ROUNDS_WITH_LOSS: usize = 3;
/// One stretch alone needs so many losses: chance fits a bucket to twenty now and then (seen in a published trace
/// without a policer), and does not find the same rate twice.
pub(super) const ALONE: usize = 50;
/// At a loss the bucket may be this many round trips' tokens away from where it usually is …
const LOSS_ROUNDS: f64 = 2.0;
/// … in all but this share of the losses.
pub(super) const LOSS_OUTLIERS: f64 = 0.10;
/// At what passes it may be this many round trips' tokens below that …
const PASS_ROUNDS: f64 = 0.75;
/// … in all but this share.
pub(super) const PASS_OUTLIERS: f64 = 0.03;
/// A round trip is longer than usual above this many times the tenth percentile so far, and the median …
const LONGER: f64 = 1.3;
/// … and above this, µs: below, hosts make it.
const LONGER_US: f64 = 20_000.0;
/// Losses that may follow a longer round trip: above this share a queue was there.
const LONGER_SHARE: f64 = 0.20;
/// What passed before the first loss, in round trips' tokens, below which the bucket may be too small for any rate:
/// it drops what comes at once, and the sender never gets as fast as the tokens.
const SMALL_ROUNDS: f64 = 3.0;
/// In the round trip before a loss at least this many times its tokens was sent, in the middle: who keeps to one rate
/// by itself, and loses by chance, fits a bucket of that rate too, and never exceeds it. Not in the paper.
const EXCEEDED: f64 = 1.1;
/// The rates of the tokens in several stretches lie within this share of their median.
const SAME_RATE: f64 = 0.15;

/// A bucket that fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bucket {
    /// Tokens, bit/s of payload.
    pub(super) rate_bps: f64,
    /// Payload that passed before the first loss, bytes.
    pub(super) burst_bytes: f64,
    /// Losses that it explains.
    pub(super) losses: usize,
    /// First and last loss, ns.
    pub(super) span_ns: [u64; 2],
    /// Share of the losses that came after a longer round trip.
    pub(super) longer: f64,
    /// Stretches that it was seen in.
    pub(super) stretches: usize,
    /// So small that the tokens may come faster than that.
    pub(super) small: bool,
    /// Bytes that it holds, where it was full at times between losses and that was needed to explain them.
    pub(super) depth_bytes: Option<f64>,
}

/// Why a stretch shows no bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum No {
    /// It lost too little to tell.
    FewLosses,
    /// More passed at first than such a bucket could have held at the start.
    NeverFull,
    /// The bucket would have been fuller at losses than at what passed.
    FullerAtLoss,
    /// It would not have been empty at losses.
    FilledAtLoss,
    /// It would have been empty where segments passed.
    EmptyAtPass,
    /// What was sent in the round trip before losses was no more than the tokens of it.
    NotExceeded,
    /// A queue grew before losses.
    Queue,
}

/// The bucket that held a connection's sender, where one fits.
pub(super) fn judge(all: &Transmissions) -> Result<Bucket, No> {
    never_full_again(all).or_else(|no| with_depth(&all.sent).ok_or(no))
}

/// A bucket whose depth explains what no straight line does.
fn with_depth(sent: &[Sent]) -> Option<Bucket> {
    let fitted = bucket::fit(sent)?;
    let first = sent.iter().position(Sent::lost)?;
    let last = sent.iter().rposition(Sent::lost)?;
    Some(Bucket {
        rate_bps: fitted.rate * 8.0,
        burst_bytes: bytes(&sent[..first]),
        losses: sent.iter().filter(|one| one.lost()).count(),
        span_ns: [sent[first].at_ns, sent[last].at_ns],
        longer: after_longer(sent),
        stretches: 1,
        small: fitted.at_least,
        depth_bytes: Some(fitted.depth),
    })
}

/// The bucket that was never full after the first loss: the detector of the paper.
fn never_full_again(all: &Transmissions) -> Result<Bucket, No> {
    let judged: Vec<Result<Bucket, No>> = all
        .bursts
        .iter()
        .map(|range| stretch(&all.sent[range.clone()]))
        .filter(|one| *one != Err(No::FewLosses))
        .collect();
    let found: Vec<Bucket> = judged.iter().filter_map(|one| one.ok()).collect();
    let Some(rate_bps) = median(&found.iter().map(|one| one.rate_bps).collect::<Vec<_>>()) else {
        return Err(judged
            .iter()
            .find_map(|one| one.err())
            .unwrap_or(No::FewLosses));
    };
    let agree: Vec<&Bucket> = found
        .iter()
        .filter(|one| (one.rate_bps - rate_bps).abs() <= SAME_RATE * rate_bps)
        .collect();
    let (Some(first), Some(last)) = (agree.first(), agree.last()) else {
        return Err(No::FilledAtLoss);
    };
    let losses = agree.iter().map(|one| one.losses).sum();
    if agree.len() == 1 && losses < ALONE {
        return Err(No::FewLosses);
    }
    Ok(Bucket {
        rate_bps,
        burst_bytes: agree.iter().map(|one| one.burst_bytes).fold(0.0, f64::max),
        losses,
        span_ns: [first.span_ns[0], last.span_ns[1]],
        longer: mean(&agree.iter().map(|one| one.longer).collect::<Vec<_>>()),
        stretches: agree.len(),
        small: agree.iter().all(|one| one.small),
        depth_bytes: None,
    })
}

/// Judges one stretch.
fn stretch(sent: &[Sent]) -> Result<Bucket, No> {
    let first = sent.iter().position(Sent::lost).ok_or(No::FewLosses)?;
    let last = sent.iter().rposition(Sent::lost).ok_or(No::FewLosses)?;
    let between = &sent[first..=last];
    let span_ns = sent[last].at_ns.saturating_sub(sent[first].at_ns);
    let round_us = median(&round_trips_us(sent)).ok_or(No::FewLosses)?;
    let passed: f64 = bytes(between.iter().filter(|one| !one.lost()));
    if span_ns == 0 || round_us <= 0.0 {
        return Err(No::FewLosses);
    }
    let rate = passed * 1e9 / span_ns as f64;
    let round_tokens = rate * round_us / 1e6;

    // What had passed when the first loss came is the bucket's depth and the tokens since the start.
    let burst_bytes = bytes(&sent[..first]);
    let since = sent[first].at_ns.saturating_sub(sent[0].at_ns);
    let never_full = burst_bytes - rate * since as f64 / 1e9 < -PASS_ROUNDS * round_tokens;

    let fill = Fill::of(&sent[first..], rate);
    let losses: Vec<u64> = between
        .iter()
        .filter(|one| one.lost())
        .map(|one| one.at_ns)
        .collect();
    if fill.at_loss.len() < SAMPLES
        || fill.at_pass.len() < SAMPLES
        || rounds(&losses, round_us * 1e3) < ROUNDS_WITH_LOSS
    {
        return Err(No::FewLosses);
    }
    if never_full {
        return Err(No::NeverFull);
    }
    fill.fits(round_tokens)?;
    if exceeded(sent, round_us * 1e3, round_tokens) < EXCEEDED {
        return Err(No::NotExceeded);
    }
    let longer = after_longer(sent);
    if longer > LONGER_SHARE {
        return Err(No::Queue);
    }
    Ok(Bucket {
        rate_bps: rate * 8.0,
        burst_bytes,
        losses: fill.at_loss.len(),
        span_ns: [sent[first].at_ns, sent[last].at_ns],
        longer,
        stretches: 1,
        small: burst_bytes < SMALL_ROUNDS * round_tokens,
        depth_bytes: None,
    })
}

pub(super) fn bytes<'a>(sent: impl IntoIterator<Item = &'a Sent>) -> f64 {
    sent.into_iter().map(|one| f64::from(one.bytes)).sum()
}

/// Round trips in which a loss came.
pub(super) fn rounds(losses: &[u64], round_ns: f64) -> usize {
    let mut count = 0;
    let mut until = f64::NEG_INFINITY;
    for at in losses {
        if *at as f64 > until {
            count += 1;
            until = *at as f64 + round_ns;
        }
    }
    count
}

/// What was sent in the round trip before a loss, as a multiple of its tokens: the middle one of all losses.
fn exceeded(sent: &[Sent], round_ns: f64, round_tokens: f64) -> f64 {
    let (mut from, mut within) = (0, 0.0);
    let mut times = Vec::new();
    for one in sent {
        within += f64::from(one.bytes);
        while one.at_ns as f64 - sent[from].at_ns as f64 >= round_ns {
            within -= f64::from(sent[from].bytes);
            from += 1;
        }
        if one.lost() {
            times.push(within / round_tokens.max(1.0));
        }
    }
    median(&times).unwrap_or(0.0)
}

/// Tokens in the bucket, bytes, when segments were lost and when they passed, if it was empty at the first loss.
struct Fill {
    at_loss: Vec<f64>,
    at_pass: Vec<f64>,
}

impl Fill {
    fn of(sent: &[Sent], rate: f64) -> Self {
        let begin = sent.first().map_or(0, |one| one.at_ns);
        let mut used = 0.0;
        let (mut at_loss, mut at_pass) = (Vec::new(), Vec::new());
        for one in sent {
            let tokens = rate * one.at_ns.saturating_sub(begin) as f64 / 1e9 - used;
            if one.lost() {
                at_loss.push(tokens);
            } else {
                at_pass.push(tokens);
                used += f64::from(one.bytes);
            }
        }
        Self { at_loss, at_pass }
    }

    fn fits(&self, round_tokens: f64) -> Result<(), No> {
        let (Some(usual), Some(passing)) = (median(&self.at_loss), median(&self.at_pass)) else {
            return Err(No::FewLosses);
        };
        if mean(&self.at_loss) >= mean(&self.at_pass) || usual >= passing {
            return Err(No::FullerAtLoss);
        }
        let share = |values: &[f64], out: &dyn Fn(f64) -> bool| {
            values.iter().filter(|value| out(**value)).count() as f64 / values.len().max(1) as f64
        };
        let far = |fill: f64| (fill - usual).abs() > LOSS_ROUNDS * round_tokens;
        if share(&self.at_loss, &far) > LOSS_OUTLIERS {
            return Err(No::FilledAtLoss);
        }
        let below = |fill: f64| fill - usual < -PASS_ROUNDS * round_tokens;
        if share(&self.at_pass, &below) > PASS_OUTLIERS {
            return Err(No::EmptyAtPass);
        }
        Ok(())
    }
}

/// Share of the losses before which the round trip was longer than usual until then.
pub(super) fn after_longer(sent: &[Sent]) -> f64 {
    let mut known = Usual::default();
    let (mut longer, mut all) = (0_u32, 0_u32);
    let mut before = None;
    for one in sent {
        if one.lost() {
            all += 1;
            longer += u32::from(before.is_some_and(|us| known.is_long(us)));
        }
        if let Some(ns) = one.round_trip_ns {
            let us = ns as f64 / 1e3;
            known.add(us);
            before = Some(us);
        }
    }
    f64::from(longer) / f64::from(all.max(1))
}

/// Round trips so far, counted in steps of a hundredth of their length.
#[derive(Default)]
struct Usual {
    /// Round trips of each step: ln(µs) in hundredths.
    steps: BTreeMap<u64, u64>,
    count: u64,
}

impl Usual {
    fn add(&mut self, us: f64) {
        *self
            .steps
            .entry(whole(us.max(1.0).ln() * 100.0))
            .or_default() += 1;
        self.count += 1;
    }

    fn percentile(&self, percent: u64) -> Option<f64> {
        let place = self.count.saturating_sub(1) * percent / 100;
        let mut below = 0;
        let step = self.steps.iter().find_map(|(step, count)| {
            below += count;
            (below > place).then_some(*step)
        })?;
        Some((step as f64 / 100.0).exp())
    }

    fn is_long(&self, us: f64) -> bool {
        let (Some(tenth), Some(middle)) = (self.percentile(10), self.percentile(50)) else {
            return false;
        };
        // A step's width of doubt.
        us >= middle * 0.99 && us > LONGER * tenth && us >= LONGER_US
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 1000 bytes at twice `rate`, bytes/s, over 20 s; a bucket drops what exceeds it, or `lose` does.
    fn sent(rate: f64, bucket: f64, lose: impl Fn(usize) -> bool) -> Vec<Sent> {
        let (mut tokens, apart) = (bucket, 500.0 / rate);
        let mut at = 0.0;
        let mut all = Vec::new();
        for place in 0..whole(20.0 / apart) {
            tokens = (tokens + rate * apart).min(bucket);
            let empty = tokens < 1000.0;
            tokens -= if empty { 0.0 } else { 1000.0 };
            let place = usize::try_from(place).unwrap();
            all.push(Sent {
                at_ns: whole(at * 1e9),
                seq: place as u64 * 1000,
                bytes: 1000,
                repeated: empty || lose(place),
                needless: false,
                again: false,
                round_trip_ns: (!empty).then_some(50_000_000),
            });
            at += apart;
        }
        all
    }

    fn all(sent: Vec<Sent>) -> Transmissions {
        let bursts = std::iter::once(0..sent.len()).collect();
        Transmissions {
            sent,
            bursts,
            ..Transmissions::default()
        }
    }

    #[test]
    fn the_tokens_rate_and_the_bucket_are_found() {
        let bucket = judge(&all(sent(100_000.0, 50_000.0, |_| false))).unwrap();
        assert!(
            (bucket.rate_bps / 800_000.0 - 1.0).abs() < 0.01,
            "{bucket:?}"
        );
        // Sent at twice the rate, a bucket of 50 kB lets 100 kB pass.
        assert!(
            (bucket.burst_bytes / 100_000.0 - 1.0).abs() < 0.05,
            "{bucket:?}"
        );
        assert!(!bucket.small);
    }

    #[test]
    fn a_queue_that_grows_before_losses_is_none() {
        let mut queued = sent(100_000.0, 50_000.0, |_| false);
        for (place, one) in queued.iter_mut().enumerate() {
            let before_a_loss = place % 2 == 0;
            one.round_trip_ns = one
                .round_trip_ns
                .map(|ns| if before_a_loss { 3 * ns } else { ns });
        }
        assert_eq!(judge(&all(queued)), Err(No::Queue));
    }

    #[test]
    fn losses_at_any_fill_few_of_them_or_none_are_none() {
        let scattered = sent(100_000.0, 1e9, |place| place * place % 97 < 3);
        assert_eq!(judge(&all(scattered)), Err(No::NotExceeded));
        let few = sent(100_000.0, 1e9, |place| place % 400 == 7);
        assert_eq!(judge(&all(few)), Err(No::FewLosses));
        assert_eq!(judge(&Transmissions::default()), Err(No::FewLosses));
    }

    #[test]
    fn one_short_stretch_is_not_enough_and_two_that_agree_are() {
        let one: Vec<Sent> = sent(100_000.0, 50_000.0, |_| false)
            .into_iter()
            .take(160)
            .collect();
        let losses = one.iter().filter(|sent| sent.lost()).count();
        assert!((SAMPLES..ALONE).contains(&losses), "{losses}");
        assert_eq!(judge(&all(one.clone())), Err(No::FewLosses));
        let length = one.len();
        let later = one.iter().map(|sent| Sent {
            at_ns: sent.at_ns + 60_000_000_000,
            ..*sent
        });
        let both: Vec<Sent> = one.iter().copied().chain(later).collect();
        let twice = Transmissions {
            bursts: vec![0..length, length..2 * length],
            ..all(both)
        };
        assert_eq!(judge(&twice).unwrap().stretches, 2);
    }
}
