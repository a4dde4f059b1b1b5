//! The bytes that every sender of the process writes.
//!
//! They look random, so that nothing on the way can compress them, and are the same in every run.

use std::sync::OnceLock;

/// One write of the default size, and the largest `-l`, bytes.
pub(crate) const LENGTH: usize = 1 << 20;

/// A page, on whose boundary the bytes begin: so what refers to them (`-Z`) takes as few pages as it can.
const PAGE: usize = 4096;

/// As much of it as is sent over and over, bytes: it stays in the cache of the core that copies it. A stream over loopback is a
/// tenth faster than with all of [`LENGTH`]. As with iperf3, whose block is as long, what compresses or deduplicates over more
/// than this finds the repeat.
const PATTERN: usize = 128 << 10;

/// What is sent over and over.
pub(crate) fn pattern() -> &'static [u8] {
    static AROUND: OnceLock<Box<[u8]>> = OnceLock::new();
    let around = AROUND.get_or_init(|| scrambled(PATTERN + PAGE));
    let begin = around.as_ptr().align_offset(PAGE).min(PAGE);
    &around[begin..begin + PATTERN]
}

/// xorshift64*: fast, and no pattern shorter than the buffer.
fn scrambled(length: usize) -> Box<[u8]> {
    let mut bytes = vec![0; length].into_boxed_slice();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for word in bytes.chunks_exact_mut(8) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        word.copy_from_slice(&state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes());
    }
    bytes
}
