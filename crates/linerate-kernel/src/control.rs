//! Control messages (`cmsg`) beside a datagram, written and read as bytes.
//!
//! A message is a header of a length (`size_t`, header included), a level and a type (`int` each),
//! then data, then padding to the size of a word (`include/linux/socket.h`).

use std::mem::size_of;

use crate::address::array;

/// Bytes of the header.
pub(crate) const HEADER: usize = size_of::<usize>() + 8;
/// Room for every control message that this crate asks for: drop counter, packet information of
/// either family, segment size, an error with an address.
pub(crate) const ROOM: usize = 160;

/// One control message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Control<'a> {
    pub(crate) level: i32,
    pub(crate) kind: i32,
    pub(crate) data: &'a [u8],
}

impl Control<'_> {
    /// The first word of the data.
    pub(crate) fn word(&self) -> Option<u32> {
        array(self.data, 0).map(u32::from_ne_bytes)
    }
}

/// Bytes of control messages that the kernel wrote into a buffer of [`ROOM`].
#[cfg_attr(
    target_env = "gnu",
    expect(clippy::unnecessary_cast, reason = "musl has a narrower type")
)]
pub(crate) fn length(header: &libc::msghdr) -> usize {
    (header.msg_controllen as usize).min(ROOM)
}

/// The messages in `buffer`; it ends at the first that is cut off.
pub(crate) fn messages(buffer: &[u8]) -> impl Iterator<Item = Control<'_>> {
    let mut rest = buffer;
    std::iter::from_fn(move || {
        let length = usize::from_ne_bytes(array(rest, 0)?);
        let level = i32::from_ne_bytes(array(rest, size_of::<usize>())?);
        let kind = i32::from_ne_bytes(array(rest, size_of::<usize>() + 4)?);
        let data = rest.get(HEADER..length)?;
        rest = rest.get(padded(length)..).unwrap_or_default();
        Some(Control { level, kind, data })
    })
}

/// The one control message that sending needs: the size of the segments.
///
/// Words, not bytes, so that the kernel finds it aligned.
pub(crate) fn segment_size(segment: u16) -> SegmentControl {
    let mut bytes = [0; size_of::<SegmentControl>()];
    bytes[..size_of::<usize>()].copy_from_slice(&(HEADER + 2).to_ne_bytes());
    bytes[size_of::<usize>()..][..4].copy_from_slice(&libc::SOL_UDP.to_ne_bytes());
    bytes[size_of::<usize>() + 4..][..4].copy_from_slice(&libc::UDP_SEGMENT.to_ne_bytes());
    bytes[HEADER..][..2].copy_from_slice(&segment.to_ne_bytes());
    let mut words = SegmentControl::default();
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(size_of::<usize>())) {
        *word = array(chunk, 0).map_or(0, usize::from_ne_bytes);
    }
    words
}

/// A control buffer of exactly one segment size.
pub(crate) type SegmentControl = [usize; (HEADER + 2).div_ceil(size_of::<usize>())];

const fn padded(length: usize) -> usize {
    length.next_multiple_of(size_of::<usize>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[usize]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut two = bytes(&segment_size(1472));
        two.extend_from_within(..);
        let read: Vec<_> = messages(&two).collect();
        assert_eq!(read.len(), 2);
        assert_eq!(
            (read[1].level, read[1].kind),
            (libc::SOL_UDP, libc::UDP_SEGMENT)
        );
        assert_eq!(read[1].data, 1472_u16.to_ne_bytes());
    }

    #[test]
    fn cut_or_absurd_lengths_end_the_list() {
        let one = bytes(&segment_size(9));
        for end in 0..HEADER + 2 {
            assert_eq!(messages(&one[..end]).count(), 0, "{end} bytes");
        }
        for length in [0, 1, HEADER - 1, usize::MAX, usize::MAX - 7] {
            let mut wrong = one.clone();
            wrong[..size_of::<usize>()].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(messages(&wrong).count(), 0, "length {length}");
        }
    }
}
