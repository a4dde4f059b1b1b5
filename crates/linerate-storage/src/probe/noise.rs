//! Random data that no disk compresses and no two blocks of which are alike.

/// Generators side by side, so that the compiler fills a vector at a time.
const LANES: usize = 8;

/// Marsaglia's xorshift64 (Journal of Statistical Software 8(14), 2003), eight of them in turn. Enough to be
/// incompressible; no secret.
#[derive(Debug, Clone)]
pub(crate) struct Noise {
    lanes: [u64; LANES],
}

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        let mut state = seed;
        Self {
            lanes: std::array::from_fn(|_| split_mix(&mut state).max(1)),
        }
    }

    fn step(&mut self) {
        for lane in &mut self.lanes {
            *lane ^= *lane << 13;
            *lane ^= *lane >> 7;
            *lane ^= *lane << 17;
        }
    }

    /// Fills a block.
    pub(crate) fn fill(&mut self, block: &mut [u8]) {
        let (parts, rest) = block.as_chunks_mut::<{ LANES * 8 }>();
        for part in parts {
            *part = self.part();
        }
        let last = self.part();
        rest.copy_from_slice(&last[..rest.len()]);
    }

    fn part(&mut self) -> [u8; LANES * 8] {
        self.step();
        let mut part = [0; LANES * 8];
        for (bytes, lane) in part.as_chunks_mut::<8>().0.iter_mut().zip(self.lanes) {
            *bytes = lane.to_ne_bytes();
        }
        part
    }

    /// A number below `bound`, 0 where that is 0. Its bias, below 2^-32 for bounds below 2^32, does not matter here.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.step();
        self.lanes[0].checked_rem(bound).unwrap_or(0)
    }
}

/// `SplitMix64`, which makes unlike states of like seeds (Steele, Lea, Flood, 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_blocks_are_alike_and_none_compresses() {
        let mut noise = Noise::new(1);
        let mut seen = HashSet::new();
        let mut counts = [0_u32; 256];
        let mut block = [0; 4096];
        for _ in 0..64 {
            noise.fill(&mut block);
            // Disks that look for equal data do so by sector.
            for sector in block.chunks(512) {
                assert!(seen.insert(sector.to_vec()));
            }
            for byte in block {
                counts[usize::from(byte)] += 1;
            }
        }
        // 64 × 4096 / 256 = 1024 of each, whose standard deviation is 32.
        assert!(
            counts.iter().all(|count| (800..1250).contains(count)),
            "{counts:?}"
        );
        let pairs: HashSet<&[u8]> = block.windows(4).collect();
        assert!(pairs.len() > 4080, "{}", pairs.len());
    }

    #[test]
    fn other_seeds_and_odd_lengths() {
        let (mut one, mut other) = ([0; 13], [0; 13]);
        Noise::new(1).fill(&mut one);
        Noise::new(2).fill(&mut other);
        assert_ne!(one, other);
        let mut noise = Noise::new(3);
        let drawn: HashSet<u64> = (0..1000).map(|_| noise.below(10)).collect();
        assert_eq!(drawn.len(), 10);
        assert_eq!(noise.below(0), 0);
    }
}
