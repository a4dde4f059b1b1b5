//! What the kernel's disciplines are told, so that a direction's settings hold.

use linerate_kernel::setting::emulation::{
    LONGEST_DISTRIBUTION, Netem, NetemLoss, Spread, TokenBucket, WHOLE_SPREAD,
};
use linerate_model::units::{BitRate, Nanos};

use crate::path::{Loss, Probability, Settings};

/// Packets that a delay line may hold: 200 ms of 1500 bytes at 40 Gbit/s.
const LONGEST: u32 = 700_000;
/// A timer of the kernel may be late by so much and the rate still be kept: tbf's bucket holds what comes in in it,
/// which also passes at once after a rest, and after a change of the rate or the queue, which fills it.
const TIMER: Nanos = Nanos::from_millis(2);
/// Packets that a bucket holds at least.
const LEAST_PACKETS: u64 = 2;
/// The rate of a tbf at times without a bottleneck: the largest that a scenario may ask for.
const UNLIMITED: BitRate = BitRate(400_000_000_000);
/// Steps of an even spread.
const EVEN: i16 = 256;

/// What the disciplines of a direction are told; `None` where one stays as it is, or is not there.
#[derive(Debug, PartialEq)]
pub(super) struct Orders {
    pub(super) netem: Option<Netem>,
    pub(super) bucket: Option<TokenBucket>,
}

/// Whether these settings ask for what tbf alone does not do.
pub(super) fn needs_netem(settings: &Settings) -> bool {
    settings.delay > Nanos::ZERO
        || settings.jitter > Nanos::ZERO
        || settings.loss != Loss::None
        || settings.reorder.is_some()
        || settings.duplicate > Probability::NEVER
}

/// A direction's netem at one time.
pub(super) fn netem(settings: &Settings, seed: u64) -> Netem {
    let reorder = settings
        .reorder
        .filter(|one| one.fraction > Probability::NEVER);
    let spread = match reorder {
        Some(reorder) => Some(Spread {
            most: reorder.delay,
            distribution: some_late(reorder.fraction.share()),
        }),
        None if settings.jitter > Nanos::ZERO => Some(Spread {
            most: settings.jitter,
            distribution: (0..=EVEN)
                .map(|step| step * (WHOLE_SPREAD / EVEN))
                .collect(),
        }),
        None => None,
    };
    Netem {
        limit: LONGEST,
        delay: settings.delay,
        spread,
        in_order: reorder.is_none(),
        loss: match settings.loss {
            Loss::Independent(odds) => NetemLoss::Independent(odds.share()),
            Loss::Gilbert { p, r, bad, good } => NetemLoss::GilbertElliott {
                p: p.share(),
                r: r.share(),
                bad: bad.share(),
                good: good.share(),
            },
            // Every nth is refused beforehand.
            Loss::None | Loss::Every(_) => NetemLoss::None,
        },
        duplicate: settings.duplicate.share(),
        seed,
    }
}

/// A distribution in which this share of the entries, above 0 and up to 1, is the whole spread and the others are
/// nothing: of all lengths the shortest that comes closest.
fn some_late(share: f64) -> Vec<i16> {
    let late = |length: usize| (share * length as f64).round().max(1.0);
    let error = |length: usize| (late(length) / length as f64 - share).abs();
    let length = (1..=LONGEST_DISTRIBUTION)
        .min_by(|one, other| error(*one).total_cmp(&error(*other)))
        .unwrap_or(1);
    let late = linerate_model::units::whole(late(length));
    (0..length as u64)
        .map(|at| if at < late { WHOLE_SPREAD } else { 0 })
        .collect()
}

/// A direction's link at one time.
pub(super) fn link(settings: &Settings, mtu: u32) -> TokenBucket {
    let packet = u64::from(mtu) + u64::from(settings.overhead);
    let rate = settings.bottleneck.map_or(UNLIMITED, |link| link.rate);
    let while_late = linerate_model::units::whole(rate.0 as f64 / 8.0 * TIMER.as_secs_f64());
    let queue = settings.bottleneck.map_or(u64::MAX, |link| {
        // The packet that is next waits there too.
        link.queue.0.saturating_add(packet)
    });
    TokenBucket {
        rate,
        burst: short(while_late.max(LEAST_PACKETS * packet)),
        queue: short(queue),
    }
}

fn short(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use linerate_model::units::Bytes;

    use super::*;
    use crate::path::{Bottleneck, Discipline, Reorder};

    /// A bottleneck and nothing else.
    pub(in crate::runner) fn settings(rate: u64, queue: u64) -> Settings {
        Settings {
            bottleneck: Some(Bottleneck {
                rate: BitRate(rate),
                queue: Bytes(queue),
                discipline: Discipline::DropTail,
                ecn_threshold: None,
            }),
            overhead: 38,
            ..Settings::default()
        }
    }

    #[test]
    fn a_share_of_late_packets_is_a_distribution() {
        let shares = |share: f64| {
            let all = some_late(share);
            let late = all.iter().filter(|one| **one == WHOLE_SPREAD).count();
            (late, all.len())
        };
        assert_eq!(shares(0.1), (1, 10));
        assert_eq!(shares(1.0), (1, 1));
        let (late, all) = shares(0.0123);
        assert!((late as f64 / all as f64 - 0.0123).abs() < 1e-5);
        assert_eq!(shares(crate::scenario::LEAST_REORDERED), (1, 16_384));
    }

    #[test]
    fn a_bucket_holds_what_comes_while_a_timer_is_late_and_two_packets_at_least() {
        let fast = link(&settings(100_000_000, 250_000), 1500);
        assert_eq!((fast.burst, fast.queue), (25_000, 250_000 + 1538));
        assert_eq!(link(&settings(1_000_000, 10_000), 1500).burst, 2 * 1538);
        let none = link(&Settings::default(), 1500);
        assert_eq!((none.rate, none.queue), (UNLIMITED, u32::MAX));
    }

    #[test]
    fn packets_keep_their_order_unless_some_shall_be_overtaken() {
        let jitter = Settings {
            jitter: Nanos::from_millis(3),
            ..Settings::default()
        };
        let made = netem(&jitter, 1);
        let spread = made.spread.unwrap();
        assert!(made.in_order);
        assert_eq!(
            (spread.distribution.first(), spread.distribution.last()),
            (Some(&0), Some(&WHOLE_SPREAD))
        );
        let reorder = Settings {
            reorder: Some(Reorder {
                fraction: Probability::new(0.5).unwrap(),
                delay: Nanos::from_millis(2),
            }),
            ..Settings::default()
        };
        let made = netem(&reorder, 1);
        assert!(!made.in_order);
        assert_eq!(made.spread.unwrap().most, Nanos::from_millis(2));
    }
}
