//! Random numbers that a seed decides.
//!
//! xoshiro256++ 1.0, seeded through `SplitMix64`, both by Blackman and Vigna (public domain,
//! <https://prng.di.unimi.it/>). Written out here so that a seed gives the same path with every build.

use super::settings::Probability;

/// The increment of `SplitMix64`: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// `SplitMix64`'s output function.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A number that only `seed` and `place` decide.
pub(crate) fn at(seed: u64, place: u64) -> u64 {
    mix(seed.wrapping_add(GOLDEN.wrapping_mul(place.wrapping_add(1))))
}

/// The 53 upper bits as a number from 0 to below 1.
pub(super) fn unit(value: u64) -> f64 {
    (value >> 11) as f64 / (1_u64 << 53) as f64
}

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    /// Streams of one seed for different `purpose`s are independent, so that asking for a second kind of
    /// randomness does not change the first.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        let start = at(seed, purpose);
        Self {
            state: std::array::from_fn(|place| at(start, place as u64)),
        }
    }

    /// 64 random bits.
    pub(super) fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let out = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        out
    }

    /// From 0 to below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        unit(self.bits())
    }

    /// Whether something of these odds happens; takes no number where the odds are 0.
    pub(super) fn happens(&mut self, odds: Probability) -> bool {
        odds > Probability::NEVER && self.unit() < odds.share()
    }

    /// How often something of these odds does not happen before it does: a geometric variate by inversion.
    pub(super) fn misses(&mut self, odds: Probability) -> u64 {
        let share = odds.share();
        if share <= 0.0 {
            return u64::MAX;
        }
        if share >= 1.0 {
            return 0;
        }
        // 1 − unit is above 0, so the logarithm is finite. ln_1p keeps its digits for small odds.
        let misses = (1.0 - self.unit()).ln() / (-share).ln_1p();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "not negative, and float casts saturate"
        )]
        let misses = misses as u64;
        misses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generators_are_the_published_ones() {
        // SplitMix64 of seed 1234567, as in the reference's own test vectors.
        assert_eq!(
            [0, 1, 2].map(|place| at(1_234_567, place)),
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
        // xoshiro256++ of the state 1, 2, 3, 4, as in rand_xoshiro's test vectors.
        let mut random = Random {
            state: [1, 2, 3, 4],
        };
        assert_eq!(
            [(); 4].map(|()| random.bits()),
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386
            ]
        );
    }

    #[test]
    fn misses_have_the_mean_of_a_geometric_distribution() {
        for odds in [0.001, 0.1, 0.5, 0.9] {
            let mut random = Random::new(1, 0);
            let odds_of = Probability::new(odds).unwrap();
            let draws = 200_000;
            let sum: u64 = (0..draws).map(|_| random.misses(odds_of)).sum();
            let mean = sum as f64 / f64::from(draws);
            let expected = (1.0 - odds) / odds;
            assert!(
                (mean / expected - 1.0).abs() < 0.02,
                "{odds}: {mean} {expected}"
            );
        }
        let mut random = Random::new(1, 0);
        assert_eq!(random.misses(Probability::NEVER), u64::MAX);
        assert_eq!(random.misses(Probability::ALWAYS), 0);
    }

    #[test]
    fn purposes_do_not_share_their_numbers() {
        let mut streams = [0, 1, 2].map(|purpose| Random::new(7, purpose).bits());
        streams.sort_unstable();
        assert!(streams.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
