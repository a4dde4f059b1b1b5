//! The bytes that every sender of the process writes.
//!
//! They look random, so that nothing on the way can compress them, and are the same in every run.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use linerate_kernel::host;

/// One write of the default size, and the largest `-l`, bytes.
pub(crate) const LENGTH: usize = 1 << 20;

/// A page, on whose boundary the bytes begin: so what refers to them takes as few pages as it can.
const PAGE: usize = 4096;

/// As much of it as is sent over and over, bytes: it stays in the cache of the core that copies it. A stream over loopback is a
/// tenth faster than with all of [`LENGTH`]. As with iperf3, whose block is as long, what compresses or deduplicates over more
/// than this finds the repeat.
const PATTERN: usize = 128 << 10;

/// What is sent by reference fills this share of a core's second cache, within these bounds, bytes. A receiver on the same machine
/// copies from the sender's pages, and finds them there. And each page has a counter of who refers to it, which every send
/// changes and the receiver waits for meanwhile: so a few more pages are better than the fewest. With a cache of 2 MiB, 512 KiB carried
/// a tenth more than 128 KiB; with one of 1.25 MiB, 1 MiB a fifth less than 128 KiB.
const SHARE_OF_CACHE: usize = 4;
const MOST_BY_REFERENCE: usize = 512 << 10;
/// For the same reason streams have pages of their own, up to so many: two streams that shared theirs carried three fifths as much.
const AREAS: usize = 8;

/// What is sent over and over.
pub(crate) fn pattern() -> &'static [u8] {
    static MADE: OnceLock<Aligned> = OnceLock::new();
    MADE.get_or_init(|| Aligned::new(&scrambled(PATTERN), PATTERN))
        .bytes()
}

/// The same over and over, for the next stream that sends by reference: every eighth has the same pages.
pub(crate) fn pages() -> &'static [u8] {
    static MADE: [OnceLock<Aligned>; AREAS] = [const { OnceLock::new() }; AREAS];
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    MADE[NEXT.fetch_add(1, Ordering::Relaxed) % AREAS]
        .get_or_init(|| {
            let share = host::second_cache_bytes().unwrap_or(0) / SHARE_OF_CACHE;
            Aligned::new(pattern(), share.clamp(PATTERN, MOST_BY_REFERENCE))
        })
        .bytes()
}

/// Bytes that begin with a page.
struct Aligned {
    around: Box<[u8]>,
    begin: usize,
}

impl Aligned {
    /// As often as the content fits into `most` bytes.
    fn new(content: &[u8], most: usize) -> Self {
        let length = most / content.len() * content.len();
        let mut around = vec![0; length + PAGE].into_boxed_slice();
        let begin = around.as_ptr().align_offset(PAGE).min(PAGE);
        for part in around[begin..begin + length].chunks_exact_mut(content.len()) {
            part.copy_from_slice(content);
        }
        Self { around, begin }
    }

    fn bytes(&self) -> &[u8] {
        &self.around[self.begin..self.begin + self.around.len() - PAGE]
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_by_reference_is_what_is_copied_on_pages_of_its_own() {
        let (one, other) = (pages(), pages());
        assert_ne!(one.as_ptr(), other.as_ptr());
        assert!((PATTERN..=MOST_BY_REFERENCE).contains(&one.len()));
        assert_eq!(
            (one.len() % PATTERN, one.as_ptr().align_offset(PAGE)),
            (0, 0)
        );
        assert_eq!(one, other);
        assert!(one.chunks(PATTERN).all(|part| part == pattern()));
    }
}
