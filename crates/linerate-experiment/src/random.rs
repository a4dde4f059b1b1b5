//! Random numbers that a seed decides: the order of runs, and the resamples of an interval.
//!
//! `SplitMix64` (Steele, Lea, Flood, 2014; public domain code at <https://prng.di.unimi.it/>): one stream a seed and
//! purpose. Written out here so that a seed gives the same order with every build.

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// Streams of one seed for different purposes have nothing to do with each other.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        Self {
            state: mix(seed ^ mix(purpose.wrapping_add(GOLDEN))),
        }
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A whole number below `bound`, which is at least 1; 0 for a bound of 0. All are equally likely but for one part
    /// in 2^64 / `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.bits()) * bound as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// Another order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_an_order_and_all_orders_come() {
        let order = |seed| {
            let mut items = [0, 1, 2];
            Random::new(seed, 0).shuffle(&mut items);
            items
        };
        assert_eq!(order(7), order(7));
        let mut seen: Vec<[i32; 3]> = (0..600).map(order).collect();
        for one in seen.clone() {
            let often = seen.iter().filter(|other| **other == one).count();
            assert!((60..=140).contains(&often), "{one:?}: {often} of 600");
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 6);
    }
}
