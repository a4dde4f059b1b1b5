//! The variation of the transit time: RFC 3550's smoothed figure, which iperf3 prints, and the
//! distribution behind it, which says more than one figure.

use linerate_model::units::Nanos;

/// Buckets to each doubling: 16, so a bucket is at most 6.25 % wide.
const STEPS: u64 = 16;
const STEP_BITS: u32 = 4;
const BUCKETS: usize = 976;

/// Interarrival jitter of one stream.
///
/// The clocks of the two ends may differ by any offset: only differences of transit times are
/// used. Nothing a header says can overflow.
#[derive(Debug, Clone, Default)]
pub struct Jitter {
    last_transit: Option<u64>,
    smoothed_ns: f64,
    distances: Histogram,
}

impl Jitter {
    /// A datagram that says it was sent at `sent`, on the sender's clock, arrived at `arrived`,
    /// on ours.
    pub fn record(&mut self, sent: Nanos, arrived: Nanos) {
        let transit = arrived.0.wrapping_sub(sent.0);
        if let Some(last) = self.last_transit.replace(transit) {
            let distance = transit.wrapping_sub(last).cast_signed().unsigned_abs();
            // RFC 3550, 6.4.1: J += (|D| - J) / 16.
            self.smoothed_ns += (distance as f64 - self.smoothed_ns) / 16.0;
            self.distances.record(Nanos(distance));
        }
    }

    /// RFC 3550's smoothed jitter at this moment, 0 before the second datagram.
    pub fn smoothed(&self) -> Nanos {
        Nanos::from_secs_f64(self.smoothed_ns / 1e9)
    }

    /// The distribution of |Δtransit| between datagrams in order of arrival.
    pub const fn distribution(&self) -> &Histogram {
        &self.distances
    }
}

/// How long datagrams are on their way, beyond the fastest.
///
/// The clocks of the two ends may differ by any offset, but hardly drift apart within a test: at most 0.1 ms a second.
#[derive(Debug, Clone, Default)]
pub struct Transit {
    /// Of the first datagram: all others are told as the difference from it.
    first: Option<u64>,
    least: i64,
    /// The least of those that were looked at since the last [`Transit::look_anew`].
    recent: Option<i64>,
    over_least: Nanos,
}

impl Transit {
    /// A datagram that says it was sent at `sent`, on the sender's clock, arrived at `arrived`, on ours.
    pub fn record(&mut self, sent: Nanos, arrived: Nanos) {
        let transit = arrived.0.wrapping_sub(sent.0);
        let first = *self.first.get_or_insert(transit);
        let beyond = transit.wrapping_sub(first).cast_signed();
        self.least = self.least.min(beyond);
        let recent = self.recent.map_or(beyond, |recent| recent.min(beyond));
        self.recent = Some(recent);
        self.over_least = Nanos(recent.abs_diff(self.least));
    }

    /// Begins another stretch of datagrams.
    pub fn look_anew(&mut self) {
        self.recent = None;
    }

    /// How much longer the fastest datagram of this stretch was on its way than the fastest of all; where none came, of
    /// the stretch before.
    pub const fn over_least(&self) -> Nanos {
        self.over_least
    }
}

/// Durations on a logarithmic scale: 16 buckets to a doubling, 8 KiB, every u64 has its place.
#[derive(Debug, Clone)]
pub struct Histogram {
    buckets: Box<[u64]>,
    count: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: vec![0; BUCKETS].into_boxed_slice(),
            count: 0,
            max: 0,
        }
    }
}

impl Histogram {
    /// Adds a duration.
    pub fn record(&mut self, duration: Nanos) {
        self.buckets[bucket(duration.0)] += 1;
        self.count += 1;
        self.max = self.max.max(duration.0);
    }

    /// The duration that `permille` of 1000 do not exceed, at most 6.25 % too large; `None` where
    /// nothing was recorded.
    pub fn quantile(&self, permille: u32) -> Option<Nanos> {
        if self.count == 0 {
            return None;
        }
        let rank = (u128::from(self.count) * u128::from(permille.min(1000)))
            .div_ceil(1000)
            .max(1);
        let mut below = 0_u128;
        for (index, held) in self.buckets.iter().enumerate() {
            below += u128::from(*held);
            if below >= rank {
                return Some(Nanos(largest_in(index).min(self.max)));
            }
        }
        Some(Nanos(self.max))
    }

    /// The largest, exact.
    pub const fn max(&self) -> Option<Nanos> {
        if self.count == 0 {
            None
        } else {
            Some(Nanos(self.max))
        }
    }
}

/// The bucket of a value: values below 16 have one each, then 16 to each doubling.
fn bucket(value: u64) -> usize {
    let Some(shift) = value
        .checked_ilog2()
        .and_then(|log| log.checked_sub(STEP_BITS))
    else {
        return usize::try_from(value).unwrap_or(0);
    };
    let index = (u64::from(shift) + 1) * STEPS + ((value >> shift) - STEPS);
    usize::try_from(index).unwrap_or(BUCKETS - 1)
}

/// The largest value of a bucket.
fn largest_in(index: usize) -> u64 {
    let index = u64::try_from(index).unwrap_or(u64::MAX);
    if index < STEPS {
        return index;
    }
    let (shift, step) = (index / STEPS - 1, index % STEPS);
    ((STEPS + step) << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_steady_stream_has_none_whatever_the_offset() {
        for offset in [0, 5_000_000_000, u64::MAX - 3_000_000] {
            let mut jitter = Jitter::default();
            for i in 0..100 {
                jitter.record(
                    Nanos((i * 1_000_000_u64).wrapping_add(offset)),
                    Nanos(i * 1_000_000),
                );
            }
            assert_eq!(jitter.smoothed(), Nanos::ZERO);
            assert_eq!(jitter.distribution().max(), Some(Nanos::ZERO));
            assert_eq!(jitter.distribution().count, 99);
        }
    }

    #[test]
    fn smoothing_is_rfc_3550s() {
        let mut jitter = Jitter::default();
        jitter.record(Nanos(0), Nanos(1000));
        jitter.record(Nanos(0), Nanos(2600));
        assert_eq!(jitter.smoothed(), Nanos(100)); // 1600 / 16
        jitter.record(Nanos(0), Nanos(1000));
        assert_eq!(jitter.smoothed(), Nanos(194)); // 100 + 1500 / 16
    }

    #[test]
    fn a_queue_shows_as_transit_beyond_the_least_whatever_the_offset() {
        for offset in [0, 5_000_000_000, u64::MAX - 3_000_000] {
            let mut transit = Transit::default();
            let mut arrive = |sent: u64, took: u64| {
                transit.record(Nanos(sent.wrapping_add(offset)), Nanos(sent + took));
                transit.over_least()
            };
            assert_eq!(arrive(0, 300), Nanos(0));
            assert_eq!(arrive(1000, 200), Nanos(0));
            assert_eq!(arrive(2000, 900), Nanos(0));
            transit.look_anew();
            assert_eq!(transit.over_least(), Nanos(0));
            let mut arrive = |sent: u64, took: u64| {
                transit.record(Nanos(sent.wrapping_add(offset)), Nanos(sent + took));
                transit.over_least()
            };
            assert_eq!(arrive(3000, 900), Nanos(700));
            assert_eq!(arrive(4000, 650), Nanos(450));
            assert_eq!(arrive(5000, 800), Nanos(450));
        }
    }

    #[test]
    fn nothing_recorded_has_no_quantile() {
        assert_eq!(Histogram::default().quantile(500), None);
        assert_eq!(Histogram::default().max(), None);
    }

    #[test]
    fn buckets_are_gapless() {
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(largest_in(BUCKETS - 1), u64::MAX);
        for index in 0..BUCKETS - 1 {
            assert_eq!(bucket(largest_in(index)), index);
            assert_eq!(bucket(largest_in(index) + 1), index + 1);
        }
    }

    proptest! {
        #[test]
        fn quantiles_are_near_and_never_too_small(mut values in prop::collection::vec(any::<u64>(), 1..200), permille in 1u32..1000) {
            let mut histogram = Histogram::default();
            for value in &values {
                histogram.record(Nanos(*value));
            }
            values.sort_unstable();
            let rank = (values.len() * usize::try_from(permille).unwrap()).div_ceil(1000);
            let exact = values[rank - 1];
            let found = histogram.quantile(permille).unwrap().0;
            prop_assert!(found >= exact);
            prop_assert!(found - exact <= exact / STEPS);
        }

        #[test]
        fn no_clock_panics(times in prop::collection::vec(any::<(u64, u64)>(), 0..50)) {
            let (mut jitter, mut transit) = (Jitter::default(), Transit::default());
            for (sent, arrived) in times {
                jitter.record(Nanos(sent), Nanos(arrived));
                transit.record(Nanos(sent), Nanos(arrived));
            }
            prop_assert!(jitter.smoothed() <= jitter.distribution().max().unwrap_or_default());
        }
    }
}
