//! The bytes that every sender of the process writes.
//!
//! They look random, so that nothing on the way can compress them, and are the same in every run.

use std::sync::OnceLock;

/// One write of the default size, and the largest `-l`.
pub(crate) const LENGTH: usize = 1 << 20;

/// A page, on whose boundary the bytes begin: so they take as few slots of a pipe as they can.
const PAGE: usize = 4096;

/// As much of it as a send with a copy reads over and over: it stays in a core's cache, which made a stream
/// over loopback a tenth faster than reading all of it. As with iperf3, whose block is as long, what compresses
/// or deduplicates over more than this finds the repeat.
const PATTERN: usize = 128 << 10;

/// What a send with a copy repeats. A short test is over before more than this would be made.
pub(crate) fn pattern() -> &'static [u8] {
    static PART: OnceLock<Bytes> = OnceLock::new();
    PART.get_or_init(|| Bytes::new(PATTERN)).all()
}

/// What a send by reference refers to, [`LENGTH`] bytes.
pub(crate) fn whole() -> &'static [u8] {
    static WHOLE: OnceLock<Bytes> = OnceLock::new();
    WHOLE.get_or_init(|| Bytes::new(LENGTH)).all()
}

/// Bytes within a page more than is asked for.
struct Bytes {
    around: Box<[u8]>,
    length: usize,
}

impl Bytes {
    fn new(length: usize) -> Self {
        let mut around = vec![0; length + PAGE].into_boxed_slice();
        // xorshift64*: fast, and no pattern shorter than the buffer.
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for word in around.chunks_exact_mut(8) {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            word.copy_from_slice(&state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes());
        }
        Self { around, length }
    }

    fn all(&self) -> &[u8] {
        let begin = self.around.as_ptr().align_offset(PAGE).min(PAGE);
        &self.around[begin..begin + self.length]
    }
}
