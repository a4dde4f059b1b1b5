//! Framed JSON: a big-endian u32 with the length, then that many bytes, without a NUL.

use crate::error::ProtocolError;

/// Bytes of the length in front of a frame.
pub const LENGTH_BYTES: usize = 4;

/// `payload` as a frame. A payload beyond 4 GiB, which no message reaches, is cut there.
pub fn encode(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let kept = usize::try_from(length).map_or(payload, |kept| &payload[..kept.min(payload.len())]);
    let mut frame = Vec::with_capacity(LENGTH_BYTES + kept.len());
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(kept);
    frame
}

/// How much of a frame had come when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unread {
    /// The length that the peer announced, bytes; absent where not all of its four bytes came.
    pub announced: Option<u32>,
    /// Bytes of the payload that came; of the length, where it is not known.
    pub received: usize,
}

/// Puts one frame together from pieces of any size.
///
/// The announced length is checked against the bound before anything is stored, and memory grows
/// with what arrived, never with what was announced.
#[derive(Debug, Clone)]
pub struct Decoder {
    message: &'static str,
    bound: usize,
    length: [u8; LENGTH_BYTES],
    length_seen: usize,
    payload: Vec<u8>,
}

impl Decoder {
    /// A decoder of one frame of at most `bound` bytes; `message` names it in errors.
    pub const fn new(message: &'static str, bound: usize) -> Self {
        Self {
            message,
            bound,
            length: [0; LENGTH_BYTES],
            length_seen: 0,
            payload: Vec::new(),
        }
    }

    /// Whether nothing of the frame has come.
    pub const fn is_untouched(&self) -> bool {
        self.length_seen == 0
    }

    /// Takes what belongs to the frame from the front of `input`; the payload once it is whole.
    /// An empty frame is refused, as iperf3 does: no message is empty.
    pub fn feed(&mut self, input: &mut &[u8]) -> Result<Option<Vec<u8>>, ProtocolError> {
        while self.length_seen < LENGTH_BYTES {
            let Some((byte, rest)) = input.split_first() else {
                return Ok(None);
            };
            self.length[self.length_seen] = *byte;
            self.length_seen += 1;
            *input = rest;
        }
        let length = self.checked_length()?;
        let wanted = length - self.payload.len();
        let (taken, rest) = input.split_at(wanted.min(input.len()));
        self.payload.extend_from_slice(taken);
        *input = rest;
        Ok((self.payload.len() == length).then(|| std::mem::take(&mut self.payload)))
    }

    /// The announced length, where it is inside the bound and not zero.
    fn checked_length(&self) -> Result<usize, ProtocolError> {
        let announced = u32::from_be_bytes(self.length);
        match usize::try_from(announced).unwrap_or(usize::MAX) {
            0 => Err(ProtocolError::Json {
                message: self.message,
                reason: "they are empty".into(),
            }),
            length if length <= self.bound => Ok(length),
            length => Err(ProtocolError::too_long(self.message, length, self.bound)),
        }
    }

    /// How much of the frame has come.
    pub(crate) fn unread(&self) -> Unread {
        let is_known = self.length_seen == LENGTH_BYTES;
        Unread {
            announced: is_known.then(|| u32::from_be_bytes(self.length)),
            received: if is_known {
                self.payload.len()
            } else {
                self.length_seen
            },
        }
    }

    /// The four bytes of the length, as far as they came.
    pub(crate) fn length_bytes(&self) -> &[u8] {
        &self.length[..self.length_seen]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_frame_is_refused() {
        let mut decoder = Decoder::new("results", 10);
        assert!(decoder.feed(&mut &[0u8, 0, 0, 0][..]).is_err());
    }

    #[test]
    fn a_bound_is_exact() {
        assert!(
            Decoder::new("x", 3)
                .feed(&mut &encode(b"abc")[..])
                .unwrap()
                .is_some()
        );
        assert!(Decoder::new("x", 2).feed(&mut &encode(b"abc")[..]).is_err());
    }

    #[test]
    fn cve_2026_71218_memory_grows_with_what_came_not_with_what_was_announced() {
        let bound = 16 << 20;
        let mut decoder = Decoder::new("results", bound);
        let announced = u32::try_from(bound).unwrap().to_be_bytes();
        assert_eq!(decoder.feed(&mut &announced[..]).unwrap(), None);
        assert_eq!(decoder.payload.capacity(), 0);
        for came in [1, 1000, 100_000] {
            let more = vec![b' '; came - decoder.payload.len()];
            assert_eq!(decoder.feed(&mut &more[..]).unwrap(), None);
            let held = decoder.payload.capacity();
            assert!((came..=2 * came + 64).contains(&held), "{held} for {came}");
        }
    }

    proptest! {
        #[test]
        fn pieces_make_the_whole(payload in prop::collection::vec(any::<u8>(), 1..300), cut in 1usize..9) {
            let frame = encode(&payload);
            let mut decoder = Decoder::new("x", 1000);
            let mut whole = None;
            for piece in frame.chunks(cut) {
                prop_assert!(whole.is_none());
                let mut rest = piece;
                whole = decoder.feed(&mut rest).unwrap();
                prop_assert!(rest.is_empty());
            }
            prop_assert_eq!(whole, Some(payload));
        }
    }
}
