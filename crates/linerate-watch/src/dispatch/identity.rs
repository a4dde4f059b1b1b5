//! Hashes that stay the same from one version of the program to the next: ids and moments are made of them.

use std::cmp::Reverse;

/// FNV-1a of 128 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>), mixed at the end so that every bit counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hash(u128);

impl Hash {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    pub(super) const fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// With a text; its length is hashed too, so that `ab`, `c` is not `a`, `bc`.
    pub(super) fn text(self, text: &str) -> Self {
        self.number(text.len() as u64).bytes(text.as_bytes())
    }

    pub(super) fn number(self, number: u64) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    fn bytes(self, bytes: &[u8]) -> Self {
        let add = |hash: u128, byte: &u8| (hash ^ u128::from(*byte)).wrapping_mul(Self::PRIME);
        Self(bytes.iter().fold(self.0, add))
    }

    pub(super) fn wide(self) -> u128 {
        let [high, low] = self.halves();
        let high = mixed(high ^ low.rotate_left(32));
        u128::from(high) << 64 | u128::from(mixed(low ^ high))
    }

    pub(super) fn narrow(self) -> u64 {
        let [high, low] = self.halves();
        mixed(low ^ mixed(high))
    }

    /// A number below the limit; 0 where the limit is 0.
    pub(super) fn below(self, limit: u64) -> u64 {
        let wide = u128::from(self.narrow()) * u128::from(limit);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// A number from 0 to below 1.
    pub(super) fn unit(self) -> f64 {
        (self.narrow() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn halves(self) -> [u64; 2] {
        let low = self.0 & u128::from(u64::MAX);
        [self.0 >> 64, low].map(|half| u64::try_from(half).unwrap_or(0))
    }
}

/// The mixer of `SplitMix64`.
fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// In which order tests that wait are started: the class with which they take turns, deadline, the busier host first, then by hash.
pub(super) type Order = (
    linerate_model::watch::RunClass,
    linerate_model::watch::UnixMillis,
    Reverse<u64>,
    u64,
    u64,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_differ_in_every_part_and_stay_what_they_are() {
        let hash = |parts: &[&str]| {
            let add = |hash: Hash, part: &&str| hash.text(part);
            parts.iter().fold(Hash::new(), add)
        };
        assert_ne!(hash(&["ab", "c"]).wide(), hash(&["a", "bc"]).wide());
        assert_eq!(hash(&["a"]).narrow(), hash(&["a"]).narrow());
        let spread: Vec<u64> = (0..1_000)
            .map(|k| Hash::new().number(k).below(10))
            .collect();
        for digit in 0..10 {
            let count = spread.iter().filter(|&&found| found == digit).count();
            assert!((60..150).contains(&count), "{digit}: {count}");
        }
        assert!((0..1_000).all(|k| (0.0..1.0).contains(&Hash::new().number(k).unit())));
    }
}
