//! When the next bytes may go, so that a stream keeps its rate without bursts.
//!
//! A generic cell rate algorithm (ITU-T I.371, virtual scheduling) in whole numbers: time is
//! counted in nanoseconds times bit/s, where a bit is exactly 10^9, so nothing is ever rounded and
//! the average does not drift over days.

use linerate_model::units::{BitRate, Nanos};

/// Units of a byte: 8 bits of 10^9.
const BYTE: u128 = 8_000_000_000;
/// A gentle pacer forgives wakes that are late by so much: what they missed goes at once, so that batches shorter
/// than the lateness keep the rate.
const FORGIVEN: Nanos = Nanos(250_000);

/// Paces one sender.
///
/// Over any span t from the first call, at most `rate × (t + max_debt)` and one last batch are
/// allowed. A sender that is late catches up on at most `max_debt`; what is older is given up
/// rather than repaid in a burst.
#[derive(Debug, Clone)]
pub struct Pacer {
    rate: u128,
    debt: u128,
    /// When the next bytes are due, in nanoseconds × bit/s; `None` before the first call.
    due: Option<u128>,
    /// Whether lateness is made good at no more than twice the rate, apart from what is [`FORGIVEN`], and not before
    /// when then.
    gentle: bool,
    earliest: u128,
}

impl Pacer {
    /// A pacer of `rate`; a rate of 0 is no limit, as on the wire.
    pub fn new(rate: BitRate, max_debt: Nanos) -> Self {
        let rate = u128::from(rate.0);
        Self {
            rate,
            debt: rate * u128::from(max_debt.0),
            due: None,
            gentle: false,
            earliest: 0,
        }
    }

    /// A pacer that makes lateness good at no more than twice the rate, so that a late thread shows as a little more
    /// traffic for a little while and never as a burst. Over any span t at most `2 × rate × (t + 0.25 ms)` and one
    /// batch are allowed.
    pub fn gentle(rate: BitRate, max_debt: Nanos) -> Self {
        Self {
            gentle: true,
            ..Self::new(rate, max_debt)
        }
    }

    /// Whether `bytes` may go at `now`. If so they are booked; if not, the error is the instant
    /// from which on they may. Time that runs backward only makes it wait.
    pub fn ready(&mut self, now: Nanos, bytes: u64) -> Result<(), Nanos> {
        if self.rate == 0 {
            return Ok(());
        }
        // Both factors fit 64 bits, so the product fits.
        let now = self.rate * u128::from(now.0);
        let due = self.due.unwrap_or(now).max(now.saturating_sub(self.debt));
        let from = due.max(self.earliest);
        if from > now {
            return Err(Nanos(
                u64::try_from(from.div_ceil(self.rate)).unwrap_or(u64::MAX),
            ));
        }
        let cost = u128::from(bytes) * BYTE;
        self.due = Some(due.saturating_add(cost));
        if self.gentle {
            let forgiven = self.rate * u128::from(FORGIVEN.0);
            let from = self.earliest.max(now.saturating_sub(forgiven));
            self.earliest = from.saturating_add(cost / 2);
        }
        Ok(())
    }

    /// How long the next bytes have been due at `now`, as far as that will be made good.
    pub fn behind(&self, now: Nanos) -> Nanos {
        let at = self.rate * u128::from(now.0);
        let owed = self.due.map_or(0, |due| at.saturating_sub(due));
        let span = owed.min(self.debt).checked_div(self.rate).unwrap_or(0);
        Nanos(u64::try_from(span).unwrap_or(u64::MAX))
    }
}

/// How many datagrams of `datagram_bytes` may go in one burst so that it is no longer than `span` of traffic
/// at `rate`: at least 1, at most `max_batch`. A rate of 0 is no limit.
pub fn batch_for(rate: BitRate, datagram_bytes: u64, max_batch: usize, span: Nanos) -> usize {
    let most = max_batch.max(1);
    if rate.0 == 0 {
        return most;
    }
    // Both factors fit 64 bits, so the product fits.
    let bytes = u128::from(rate.0) * u128::from(span.0) / BYTE;
    let datagrams = bytes / u128::from(datagram_bytes.max(1));
    usize::try_from(datagrams).unwrap_or(most).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_average_is_exact_over_days() {
        // 7 Mbit/s in datagrams of 1001 bytes: nothing divides. Woken when told, for ten days.
        let mut pacer = Pacer::new(BitRate(7_000_001), Nanos::from_millis(1));
        let (mut now, mut sent) = (Nanos(123), 0_u128);
        let end = Nanos(123 + 10 * 86_400 * SECOND);
        // Every 10,000th step jumps over a batch of the same rate, to finish in time.
        let batch = 1001 * 10_000;
        while now < end {
            match pacer.ready(now, batch) {
                Ok(()) => sent += u128::from(batch),
                Err(until) => now = until,
            }
        }
        let expected = 7_000_001_u128 * u128::from(now.0 - 123) / 8 / u128::from(SECOND);
        assert!(
            sent >= expected && sent - expected <= 2 * u128::from(batch),
            "{sent} {expected}"
        );
    }

    #[test]
    fn a_stall_is_not_repaid_in_a_burst() {
        let mut pacer = Pacer::new(BitRate(8_000_000), Nanos::from_millis(10));
        assert_eq!(pacer.ready(Nanos(0), 1000), Ok(()));
        assert_eq!(pacer.ready(Nanos(0), 1000), Err(Nanos::from_millis(1)));
        let late = Nanos(5 * SECOND);
        let burst = (0..10_000)
            .take_while(|_| pacer.ready(late, 1000).is_ok())
            .count();
        assert_eq!(burst, 11); // 10 ms of debt and the one that is due
    }

    #[test]
    fn lateness_inside_the_debt_is_made_good() {
        let mut pacer = Pacer::new(BitRate(8_000_000), Nanos::from_millis(10));
        let mut sent = 0;
        // Looks every 3 ms only, 1000 bytes are due every ms: nothing may be lost by it.
        for tick in 0..1000 {
            while pacer.ready(Nanos::from_millis(3 * tick), 1000).is_ok() {
                sent += 1;
            }
        }
        assert_eq!(sent, 3 * 999 + 1);
    }

    #[test]
    fn a_gentle_pacer_never_goes_beyond_twice_the_rate() {
        let mut pacer = Pacer::gentle(BitRate(8_000_000), Nanos::from_millis(20));
        assert_eq!(pacer.ready(Nanos(0), 1000), Ok(()));
        let late = 5 * SECOND;
        let (mut now, mut sent) = (late, 0);
        while now < late + 100_000_000 {
            match pacer.ready(Nanos(now), 1000) {
                Ok(()) => sent += 1,
                Err(until) => {
                    assert!(
                        until.0 - now >= if sent == 1 { 250_000 } else { 500_000 },
                        "half of a millisecond between two"
                    );
                    now = until.0;
                }
            }
        }
        assert!(
            (100 + 20..=100 + 22).contains(&sent),
            "{sent} in 100 ms, 20 of them made good"
        );
    }

    /// A sender of the size of batches that it chooses by how far it is behind, on virtual time: its wakes are late by
    /// what `lateness` says, and it stalls once. Gives back the bytes of each millisecond.
    fn millisecond_bins(lateness: impl Fn(u64) -> u64, stall: (u64, u64)) -> Vec<u64> {
        let rate = BitRate(1_000_000_000);
        let mut pacer = Pacer::gentle(rate, Nanos::from_millis(20));
        let (mut now, mut step, mut bins) = (0_u64, 0, vec![0; 2000]);
        while now < 2 * SECOND {
            let coarse = pacer.behind(Nanos(now)) > Nanos(500_000);
            let bytes = if coarse { 44 } else { 10 } * 1460;
            match pacer.ready(Nanos(now), bytes) {
                Ok(()) => bins[usize::try_from(now / 1_000_000).unwrap()] += bytes,
                Err(until) => {
                    step += 1;
                    now = until.0 + lateness(step);
                    if (stall.0..stall.1).contains(&now) {
                        now = stall.1;
                    }
                }
            }
        }
        bins
    }

    #[test]
    fn after_a_stall_no_millisecond_has_more_than_twice_its_share_and_two_batches() {
        let (from, to) = (SECOND, SECOND + 200_000_000);
        let bins = millisecond_bins(|step| step % 7 * 10_000, (from, to));
        let share = 125_000;
        let most = bins.iter().max().unwrap();
        assert!(*most <= 2 * share + 2 * 44 * 1460, "{most}");
        assert!(bins[1000..1199].iter().all(|bytes| *bytes == 0));
        // 20 ms of the 200 are made good, the rest is given up.
        let after: u64 = bins[1200..1400].iter().sum();
        let owed = (200 + 20) * share;
        assert!(after.abs_diff(owed) <= 2 * 44 * 1460, "{after} of {owed}");
        let settled = &bins[1400..];
        assert!(
            settled
                .iter()
                .all(|bytes| bytes.abs_diff(share) <= 3 * 14_600)
        );
    }

    #[test]
    fn wakes_that_are_late_do_not_lower_the_rate() {
        // Each wake is later than the time between two batches.
        let bins = millisecond_bins(|_| 300_000, (0, 0));
        let sent: u64 = bins[100..].iter().sum();
        let owed = 1900 * 125_000;
        assert!(sent.abs_diff(owed) * 1000 <= owed, "{sent} of {owed}");
    }

    #[test]
    fn being_behind_is_bounded_by_the_debt() {
        let mut pacer = Pacer::new(BitRate(8_000_000), Nanos::from_millis(10));
        assert_eq!(pacer.behind(Nanos(SECOND)), Nanos::ZERO);
        assert_eq!(pacer.ready(Nanos(SECOND), 1000), Ok(()));
        assert_eq!(pacer.behind(Nanos(SECOND)), Nanos::ZERO);
        assert_eq!(
            pacer.behind(Nanos(SECOND + 4_000_000)),
            Nanos::from_millis(3)
        );
        assert_eq!(pacer.behind(Nanos(9 * SECOND)), Nanos::from_millis(10));
        assert_eq!(
            Pacer::new(BitRate(0), Nanos(5)).behind(Nanos(9)),
            Nanos::ZERO
        );
    }

    #[test]
    fn extremes_do_not_panic() {
        let mut pacer = Pacer::new(BitRate(u64::MAX), Nanos(u64::MAX));
        assert!(pacer.ready(Nanos(0), u64::MAX).is_ok());
        assert!(pacer.ready(Nanos(u64::MAX), u64::MAX).is_ok());
        assert!(pacer.ready(Nanos(u64::MAX), u64::MAX).is_ok());
        let mut slow = Pacer::new(BitRate(1), Nanos(0));
        assert!(slow.ready(Nanos(7), u64::MAX).is_ok());
        assert_eq!(slow.ready(Nanos(u64::MAX), 1), Err(Nanos(u64::MAX)));
        assert!(slow.ready(Nanos(0), 1).is_err());
        let mut free = Pacer::new(BitRate(0), Nanos(0));
        assert!((0..1000).all(|_| free.ready(Nanos(0), u64::MAX).is_ok()));
    }

    #[test]
    fn a_batch_is_at_most_its_span() {
        let batch =
            |rate, bytes, most, micros| batch_for(BitRate(rate), bytes, most, Nanos(micros * 1000));
        assert_eq!(batch(1_000_000_000, 1250, 64, 1000), 64); // 100 would fit
        assert_eq!(batch(1_000_000_000, 1250, 64, 125), 12);
        assert_eq!(batch(100_000_000, 1250, 64, 1000), 10);
        assert_eq!(batch(1_000_000, 1250, 64, 1000), 1);
        assert_eq!(batch(0, 1250, 64, 125), 64);
        assert_eq!(batch(u64::MAX, 0, 0, u64::MAX / 1000), 1);
    }

    proptest! {
        #[test]
        fn never_beyond_rate_and_burst(
            rate in 1u64..200_000_000_000,
            debt in 0u64..50_000_000,
            calls in prop::collection::vec((0u64..3_000_000, 1u64..70_000), 1..300),
        ) {
            let mut pacer = Pacer::new(BitRate(rate), Nanos(debt));
            let (mut now, mut sent) = (0_u64, 0_u128);
            for (pause, bytes) in calls {
                now += pause;
                if pacer.ready(Nanos(now), bytes).is_ok() {
                    let bound = u128::from(rate) * u128::from(now + debt) / BYTE;
                    prop_assert!(sent <= bound, "{sent} before {bytes} more at {now}");
                    sent += u128::from(bytes);
                }
            }
        }

        #[test]
        fn polled_often_it_keeps_the_rate(rate in 1_000_000u64..100_000_000_000, bytes in 64u64..9000) {
            let mut pacer = Pacer::new(BitRate(rate), Nanos::from_millis(1));
            let (mut now, mut sent) = (0, 0_u128);
            for _ in 0..20_000 {
                match pacer.ready(Nanos(now), bytes) {
                    Ok(()) => sent += u128::from(bytes),
                    Err(until) => now = until.0,
                }
            }
            let due = u128::from(rate) * u128::from(now) / BYTE;
            prop_assert!(sent + u128::from(bytes) >= due && sent <= due + 2 * u128::from(bytes), "{sent} {due}");
        }

        #[test]
        fn told_when_it_is_ready(rate in 1u64..u64::MAX, bytes in 0u64..1 << 40) {
            let mut pacer = Pacer::new(BitRate(rate), Nanos(0));
            prop_assert!(pacer.ready(Nanos(5), bytes).is_ok());
            if let Err(until) = pacer.ready(Nanos(5), bytes) {
                prop_assert!(until == Nanos(u64::MAX) || pacer.ready(until, bytes).is_ok());
            }
        }
    }
}
