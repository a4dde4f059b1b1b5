//! What a server answers to a TCP header that asks for it: its version, and with trip times when the header came.

use super::Version;
use super::words::{Words, put};

/// `CLIENTHDRACK`.
const TYPE: u32 = 2;
/// Bytes of it without times.
pub const ACK_BYTES: usize = 28;
/// And with them.
pub const TIMED_ACK_BYTES: usize = 52;

/// The times of an answer, s and µs since 1970 each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// When the header was sent, by the client's clock.
    pub sent: [u32; 2],
    /// When it came, by the server's clock.
    pub came: [u32; 2],
    /// When the answer was sent, by the server's clock.
    pub answered: [u32; 2],
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// 0.
    pub flags: u32,
    /// The server's version.
    pub version: Version,
    /// With `--trip-times`.
    pub times: Option<Times>,
}

impl Ack {
    /// `None` where the bytes are no such answer, or not all of it.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut words = Words(bytes);
        let [kind, length, flags, upper, lower, _, _] = words.all()?;
        let times = match (kind, usize::try_from(length).ok()?) {
            (TYPE, ACK_BYTES) => None,
            (TYPE, TIMED_ACK_BYTES) => Some(Times {
                sent: words.all()?,
                came: words.all()?,
                answered: words.all()?,
            }),
            _ => return None,
        };
        Some(Self {
            flags,
            version: Version::from_words(upper, lower),
            times,
        })
    }

    /// As it goes over the wire.
    pub fn encode(&self) -> Vec<u8> {
        let [upper, lower] = self.version.to_words();
        let length = if self.times.is_some() { 52 } else { 28 };
        let mut bytes = Vec::with_capacity(TIMED_ACK_BYTES);
        put(&mut bytes, &[TYPE, length, self.flags, upper, lower, 0, 0]);
        if let Some(times) = &self.times {
            for time in [times.sent, times.came, times.answered] {
                put(&mut bytes, &time);
            }
        }
        bytes
    }
}
