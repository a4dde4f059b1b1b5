//! Big-endian words in a row, read and written.

/// Reads words; `None` where they end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words<'a>(pub(super) &'a [u8]);

impl<'a> Words<'a> {
    pub(super) fn u32(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*word))
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_be_bytes(*word))
    }

    /// So many words.
    pub(super) fn all<const N: usize>(&mut self) -> Option<[u32; N]> {
        let mut words = [0; N];
        for word in &mut words {
            *word = self.u32()?;
        }
        Some(words)
    }

    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Two words, the low one first.
    pub(super) fn low_high(&mut self) -> Option<u64> {
        let [low, high] = self.all()?;
        Some(wide(high, low))
    }
}

/// 64 bits of two words.
pub(super) const fn wide(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

/// The high and the low half.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the halves of a number are what is wanted"
)]
pub(super) const fn halves(number: u64) -> [u32; 2] {
    [(number >> 32) as u32, number as u32]
}

/// Appends words.
pub(super) fn put(bytes: &mut Vec<u8>, words: &[u32]) {
    for word in words {
        bytes.extend(word.to_be_bytes());
    }
}
