//! Cuts the byte stream of a peer into state bytes, frames and error codes.

use crate::error::{ProtocolError, excerpt};
use crate::frame::{Decoder, Unread};
use crate::state::State;

/// The frames that a peer sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// What a client asks for.
    Parameters,
    /// What an end counted.
    Results,
    /// A message between two linerates.
    Extension,
}

impl Frame {
    /// In errors.
    const fn name(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::Results => "results",
            Self::Extension => "linerate message",
        }
    }
}

/// What came, whole.
#[derive(Debug)]
pub enum Item {
    /// A single byte.
    State(State),
    /// The payload of a frame that was announced with [`Reader::expect_frame`].
    Frame(Frame, Vec<u8>),
    /// The two numbers behind `SERVER_ERROR`.
    ErrorCodes {
        /// iperf3's code.
        code: i32,
        /// The server's errno.
        errno: i32,
    },
}

#[derive(Debug, Clone)]
enum Awaited {
    State,
    Frame(Frame, Decoder),
    ErrorCodes { bytes: [u8; 8], seen: usize },
}

/// Knows what the next bytes are; the machine tells it.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    awaited: Awaited,
    /// State bytes that may come in the place of a frame: an end is never awaited, always
    /// possible. No length inside our bounds begins with them.
    interrupts: &'static [u8],
    /// What the peer is taken for, in errors.
    role: &'static str,
}

impl Reader {
    pub(super) const fn new(role: &'static str, interrupts: &'static [u8]) -> Self {
        Self {
            awaited: Awaited::State,
            interrupts,
            role,
        }
    }

    /// The next bytes are a frame of at most `bound` bytes.
    pub(super) fn expect_frame(&mut self, frame: Frame, bound: usize) {
        self.awaited = Awaited::Frame(frame, Decoder::new(frame.name(), bound));
    }

    /// The next bytes are the two numbers of `SERVER_ERROR`.
    pub(super) fn expect_error_codes(&mut self) {
        self.awaited = Awaited::ErrorCodes {
            bytes: [0; 8],
            seen: 0,
        };
    }

    /// How much has come of the frame that is awaited.
    pub(super) fn unread(&self) -> Option<Unread> {
        match &self.awaited {
            Awaited::Frame(_, decoder) => Some(decoder.unread()),
            Awaited::State | Awaited::ErrorCodes { .. } => None,
        }
    }

    /// Takes the next whole item from the front of `input`; `None` where more input is needed.
    pub(super) fn next(&mut self, input: &mut &[u8]) -> Result<Option<Item>, ProtocolError> {
        let Some(first) = input.first().copied() else {
            return Ok(None);
        };
        match &mut self.awaited {
            Awaited::Frame(frame, decoder)
                if !(decoder.is_untouched() && self.interrupts.contains(&first)) =>
            {
                let (frame, before) = (*frame, *input);
                let whole = decoder
                    .feed(input)
                    .map_err(|error| refine(error, decoder, before, self.role))?;
                Ok(whole.map(|payload| {
                    self.awaited = Awaited::State;
                    Item::Frame(frame, payload)
                }))
            }
            Awaited::State | Awaited::Frame(..) => {
                let state = State::of(first).ok_or_else(|| ProtocolError::NotIperf3 {
                    text: excerpt(input).into(),
                    role: self.role,
                })?;
                *input = &input[1..];
                self.awaited = Awaited::State;
                Ok(Some(Item::State(state)))
            }
            Awaited::ErrorCodes { bytes, seen } => {
                let codes = take_codes(bytes, seen, input);
                if codes.is_some() {
                    self.awaited = Awaited::State;
                }
                Ok(codes)
            }
        }
    }
}

/// Fills the eight bytes of the error codes.
fn take_codes(bytes: &mut [u8; 8], seen: &mut usize, input: &mut &[u8]) -> Option<Item> {
    for (place, byte) in bytes[*seen..].iter_mut().zip(*input) {
        *place = *byte;
    }
    let taken = input.len().min(bytes.len() - *seen);
    *seen += taken;
    *input = &input[taken..];
    let (code, errno) = bytes.split_first_chunk::<4>()?;
    let errno = errno.first_chunk::<4>()?;
    (*seen == bytes.len()).then(|| Item::ErrorCodes {
        code: i32::from_be_bytes(*code),
        errno: i32::from_be_bytes(*errno),
    })
}

/// A length that is printable text is no length: the peer speaks another protocol.
fn refine(
    error: ProtocolError,
    decoder: &Decoder,
    input: &[u8],
    role: &'static str,
) -> ProtocolError {
    let length = decoder.length_bytes();
    let is_text = length
        .iter()
        .all(|byte| matches!(byte, 0x20..0x7f | b'\r' | b'\n'));
    if !(is_text && matches!(error, ProtocolError::FrameTooLong { .. })) {
        return error;
    }
    // The bytes of the length may have come in earlier pieces; show them once.
    let text = if input.starts_with(length) {
        excerpt(input)
    } else {
        excerpt(length)
    };
    ProtocolError::NotIperf3 {
        text: text.into(),
        role,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_come_in_pieces() {
        let mut reader = Reader::new("server", &[]);
        reader.expect_error_codes();
        let mut first = &[0u8, 0, 0][..];
        assert!(reader.next(&mut first).unwrap().is_none());
        let mut second = &[27u8, 0xff, 0xff, 0xff, 0xff, 9][..];
        let item = reader.next(&mut second).unwrap();
        assert!(matches!(
            item,
            Some(Item::ErrorCodes {
                code: 27,
                errno: -1
            })
        ));
        assert_eq!(second, [9]);
    }

    #[test]
    fn an_interrupt_takes_the_place_of_a_frame_only_at_its_beginning() {
        let mut reader = Reader::new("server", &[11]);
        reader.expect_frame(Frame::Results, 1000);
        let mut input = &[11u8][..];
        assert!(matches!(
            reader.next(&mut input),
            Ok(Some(Item::State(State::ServerTerminate)))
        ));
        reader.expect_frame(Frame::Results, 1000);
        let mut input = &[0u8, 0, 0, 2, 11, 11][..];
        assert!(
            matches!(reader.next(&mut input), Ok(Some(Item::Frame(Frame::Results, payload))) if payload == [11, 11])
        );
    }
}
