//! A token bucket, in whole numbers: tokens are counted in nanoseconds times bit/s, where a byte is
//! 8 × 10^9, so nothing is rounded.

use linerate_model::units::Nanos;

use super::settings::Policer;

/// Units of a byte.
const BYTE: u128 = 8_000_000_000;

/// A policer at work.
#[derive(Debug, Clone)]
pub(super) struct TokenBucket {
    policer: Policer,
    tokens: u128,
    filled: Nanos,
}

impl TokenBucket {
    /// A full bucket.
    pub(super) fn new(policer: Policer, now: Nanos) -> Self {
        Self {
            policer,
            tokens: capacity(policer),
            filled: now,
        }
    }

    /// Changes rate and size; the tokens that fit stay.
    pub(super) fn set(&mut self, policer: Policer, now: Nanos) {
        self.fill(now);
        self.policer = policer;
        self.tokens = self.tokens.min(capacity(policer));
    }

    /// Takes tokens for `bytes`, or none where there are not enough.
    pub(super) fn conforms(&mut self, now: Nanos, bytes: u64) -> bool {
        self.fill(now);
        let cost = u128::from(bytes) * BYTE;
        let conforms = cost <= self.tokens;
        if conforms {
            self.tokens -= cost;
        }
        conforms
    }

    fn fill(&mut self, now: Nanos) {
        let span = u128::from(now.since(self.filled).0);
        let fresh = span * u128::from(self.policer.rate.0);
        self.tokens = (self.tokens + fresh).min(capacity(self.policer));
        self.filled = self.filled.max(now);
    }
}

fn capacity(policer: Policer) -> u128 {
    u128::from(policer.burst.0) * BYTE
}

#[cfg(test)]
mod tests {
    use linerate_model::units::{BitRate, Bytes};

    use super::*;

    const POLICER: Policer = Policer {
        rate: BitRate(8_000_000),
        burst: Bytes(10_000),
    };

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut bucket = TokenBucket::new(POLICER, Nanos::ZERO);
        let passed = |bucket: &mut TokenBucket, millis: u64| {
            let now = Nanos::from_millis(millis);
            (0..20).filter(|_| bucket.conforms(now, 1000)).count()
        };
        // 10 packets of the burst; then a packet a millisecond; after a long pause the burst again.
        assert_eq!(passed(&mut bucket, 0), 10);
        assert_eq!(passed(&mut bucket, 1), 1);
        assert_eq!(passed(&mut bucket, 5), 4);
        assert_eq!(passed(&mut bucket, 5000), 10);
    }

    #[test]
    fn a_smaller_bucket_keeps_what_fits() {
        let mut bucket = TokenBucket::new(POLICER, Nanos::ZERO);
        let small = Policer {
            burst: Bytes(3000),
            ..POLICER
        };
        bucket.set(small, Nanos::ZERO);
        assert!(bucket.conforms(Nanos::ZERO, 3000));
        assert!(!bucket.conforms(Nanos::ZERO, 1));
    }
}
