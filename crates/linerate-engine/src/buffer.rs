//! The one buffer that every sender of the process writes from.
//!
//! Its bytes look random, so that nothing on the way can compress them, and are the same in every run.

use std::sync::OnceLock;

/// Its length: one write of the default size, and the largest `-l`.
pub(crate) const LENGTH: usize = 1 << 20;

/// A page, on whose boundary the buffer begins: so it takes as few slots of a pipe as it can.
const PAGE: usize = 4096;

static SHARED: OnceLock<Box<[u8]>> = OnceLock::new();

/// As much of it as a send with a copy reads over and over: it stays in a core's cache, which made a stream
/// over loopback a tenth faster than reading all of it. As with iperf3, whose block is as long, what compresses
/// or deduplicates over more than this finds the repeat.
pub(crate) const PATTERN: usize = 128 << 10;

/// The shared send buffer.
pub(crate) fn shared() -> &'static [u8] {
    let all = SHARED.get_or_init(|| {
        let mut all = vec![0; LENGTH + PAGE].into_boxed_slice();
        // xorshift64*: fast, and no pattern shorter than the buffer.
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for word in all.chunks_exact_mut(8) {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            word.copy_from_slice(&state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes());
        }
        all
    });
    let begin = all.as_ptr().align_offset(PAGE).min(PAGE);
    &all[begin..begin + LENGTH]
}
