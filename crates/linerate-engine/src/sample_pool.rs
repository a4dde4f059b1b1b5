//! What the samples of all tests of a process may use together: memory, and readings a second.
//!
//! Each stream's store has a [`Share`]. While the pool is half empty a share grows as it likes; from there on it
//! grows to its fair part only, and who wants more keeps every second sample and samples half as often. So one long test has
//! room for all of its samples, and a hundred of them fit as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use linerate_model::units::Nanos;

/// The bounds of all stores together.
#[derive(Debug)]
pub(crate) struct SamplePool {
    most_bytes: usize,
    /// Samples a second.
    most_rate: u64,
    bytes: AtomicUsize,
    rate: AtomicU64,
    shares: AtomicUsize,
}

impl SamplePool {
    /// A pool of so many bytes, whose stores together take at most so many samples a second.
    pub(crate) fn new(most_bytes: usize, most_rate: u64) -> Arc<Self> {
        Arc::new(Self {
            most_bytes,
            most_rate: most_rate.max(1),
            bytes: AtomicUsize::new(0),
            rate: AtomicU64::new(0),
            shares: AtomicUsize::new(0),
        })
    }

    /// A share for a store that takes a sample `every` so often.
    pub(crate) fn share(self: &Arc<Self>, every: Nanos) -> Share {
        let rate = 1_000_000_000 / every.0.max(1);
        self.shares.fetch_add(1, Ordering::Relaxed);
        self.rate.fetch_add(rate, Ordering::Relaxed);
        Share {
            pool: Arc::clone(self),
            bytes: 0,
            rate,
        }
    }

    /// Bytes in use.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// What one store has of the pool; dropping it gives everything back.
#[derive(Debug)]
pub(crate) struct Share {
    pool: Arc<SamplePool>,
    bytes: usize,
    rate: u64,
}

impl Share {
    /// Takes so many bytes more. The first bytes are always granted: admission to a server sees to it that there are
    /// that many. False = the store has to make do with what it has.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let pool = &*self.pool;
        let fair = pool.most_bytes / pool.shares.load(Ordering::Relaxed).max(1);
        let (first, own) = (self.bytes == 0, self.bytes + bytes);
        let granted = pool
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                let used = used + bytes;
                let roomy = used <= pool.most_bytes / 2;
                let mine = own <= fair && used <= pool.most_bytes;
                (first || roomy || mine).then_some(used)
            })
            .is_ok();
        if granted {
            self.bytes = own;
        }
        granted
    }

    /// Gives so many bytes back.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.pool.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// How much longer than asked for this store has to wait between samples, a power of two, so that all stores
    /// together keep to the pool's rate; one that keeps to its fair part does not wait.
    pub(crate) fn stretch(&self) -> u32 {
        let pool = &*self.pool;
        if pool.rate.load(Ordering::Relaxed) <= pool.most_rate {
            return 1;
        }
        let shares = pool.shares.load(Ordering::Relaxed).max(1) as u64;
        let over = (self.rate * shares).div_ceil(pool.most_rate);
        u32::try_from(over.max(1).next_power_of_two()).unwrap_or(u32::MAX)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink(self.bytes);
        self.pool.rate.fetch_sub(self.rate, Ordering::Relaxed);
        self.pool.shares.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Nanos = Nanos(1_000_000);

    #[test]
    fn one_share_gets_all_and_two_get_half_each() {
        let pool = SamplePool::new(1000, u64::MAX);
        let mut one = pool.share(MILLISECOND);
        assert!(one.grow(500) && one.grow(500) && !one.grow(1));
        let mut other = pool.share(MILLISECOND);
        assert!(other.grow(100), "the first bytes are granted");
        assert!(!other.grow(100), "until the other gives back");
        assert!(!one.grow(1));
        one.shrink(500);
        assert!(
            other.grow(100),
            "600 of 1000 are in use: 200 is less than half"
        );
        assert!(!one.grow(1), "it has its half");
        assert!(other.grow(300) && !other.grow(1));
        assert_eq!(pool.bytes(), 1000);
        drop(one);
        assert!(other.grow(500));
        drop(other);
        assert_eq!(pool.bytes(), 0);
    }

    #[test]
    fn stores_wait_longer_the_more_there_are() {
        let pool = SamplePool::new(1000, 2000);
        let one = pool.share(MILLISECOND);
        assert_eq!(one.stretch(), 1);
        let two = pool.share(MILLISECOND);
        assert_eq!(two.stretch(), 1);
        let three = pool.share(MILLISECOND);
        assert_eq!((one.stretch(), three.stretch()), (2, 2));
        let seldom = pool.share(Nanos::from_millis(100));
        assert_eq!((one.stretch(), seldom.stretch()), (2, 1));
        drop((two, three));
        assert_eq!((one.stretch(), seldom.stretch()), (1, 1));
    }
}
