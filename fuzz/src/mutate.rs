//! Changes to an input, drawn from a seeded generator: the same seed makes the same inputs.

/// Longest input that a change makes, bytes, unless the seed is longer.
const LONGEST: usize = 64 * 1024;
/// Integers at which parsers go wrong.
const INTEGERS: [u64; 12] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 22,
    1 << 53,
    i64::MAX as u64,
    u64::MAX,
];

/// A generator of numbers (splitmix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator that begins at a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `bound`; 0 where the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % bound).unwrap_or(0)
    }

    /// A part of `length` bytes: where it begins and where it ends.
    fn part(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.below(length);
        // Short parts are likelier: numbers and words are short.
        let bits = self.below(usize::BITS as usize - length.leading_zeros() as usize + 1);
        let most = (1 << bits).min(length - from);
        from..from + self.below(most + 1)
    }
}

/// A seed, changed one to eight times; `other` is another seed to take parts from.
pub fn mutated(random: &mut Random, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let mut input = seed.to_vec();
    for _ in 0..=random.below(8) {
        change(random, &mut input, other);
    }
    input.truncate(LONGEST.max(seed.len()));
    input
}

fn change(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    let part = random.part(input.len());
    match random.below(9) {
        0 if !input.is_empty() => {
            let at = random.below(input.len());
            input[at] ^= 1 << random.below(8);
        }
        1 if !input.is_empty() => {
            let at = random.below(input.len());
            input[at] = random.next().to_le_bytes()[0];
        }
        2 => input.truncate(part.start),
        3 => drop(input.drain(part)),
        4 => {
            let copy = input[part.clone()].repeat(1 + random.below(4));
            input.splice(part, copy);
        }
        5 => {
            let copy = input[part].to_vec();
            let at = random.below(input.len() + 1);
            input.splice(at..at, copy);
        }
        6 => {
            let from = random.part(other.len());
            input.splice(part, other[from].iter().copied());
        }
        7 => {
            let bytes = integer(random).to_le_bytes();
            let width = [1, 2, 4, 8][random.below(4)].min(input.len() - part.start);
            input[part.start..part.start + width].copy_from_slice(&bytes[..width]);
        }
        _ => digits(random, input, part.start),
    }
}

fn integer(random: &mut Random) -> u64 {
    let near = u64::try_from(random.below(3)).unwrap_or(0);
    INTEGERS[random.below(INTEGERS.len())]
        .wrapping_add(near)
        .wrapping_sub(1)
}

/// Puts another integer in place of the first digits from `from` on.
fn digits(random: &mut Random, input: &mut Vec<u8>, from: usize) {
    let Some(start) = input[from..].iter().position(u8::is_ascii_digit) else {
        return;
    };
    let start = from + start;
    let length = input[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let sign = if random.below(8) == 0 { "-" } else { "" };
    let number = format!("{sign}{}", integer(random));
    input.splice(start..start + length, number.into_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(seed: u64) -> Vec<Vec<u8>> {
        let mut random = Random::new(seed);
        (0..2000)
            .map(|_| mutated(&mut random, b"{\"rows\":12}", b"other"))
            .collect()
    }

    #[test]
    fn the_same_seed_makes_the_same_inputs() {
        assert_eq!(some(7), some(7));
        assert_ne!(some(7), some(8));
    }

    #[test]
    fn every_kind_of_change_is_made() {
        let made = some(7);
        let any = |of: &dyn Fn(&[u8]) -> bool| made.iter().any(|input| of(input));
        assert!(any(&|input| input.is_empty()), "cut to nothing");
        assert!(any(&|input| input.len() > 40), "parts repeated");
        assert!(
            any(&|input| input.windows(5).any(|part| part == b"other")),
            "the other seed"
        );
        assert!(
            any(&|input| input == b"{\"rows\":18446744073709551615}"),
            "another integer"
        );
    }

    #[test]
    fn an_empty_seed_can_be_changed() {
        let mut random = Random::new(1);
        let longest = (0..500).map(|_| mutated(&mut random, b"", b"").len()).max();
        assert!(longest.is_some_and(|bytes| bytes <= LONGEST));
    }
}
