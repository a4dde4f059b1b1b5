//! Requests and replies (`--bounceback`): what stands at the head of each request, and comes back in its reply.
//!
//! `bounceback_hdr` of iperf 2.1.8 to 2.2 (`include/payloads.h`), 64 bytes.

use linerate_model::units::Nanos;

use super::datagram::Head;
use super::words::{Words, put};

/// Bytes at the head of a request, all of which iperf2 fills.
pub const BYTES: usize = 64;
/// The longest request or reply that is answered: a server's memory for a stream has room for it.
pub const LONGEST: usize = 1 << 16;
/// Where its flags stand, and where the server's two instants.
const FLAGS: usize = 12;
const SERVER_TIMES: usize = 28;
/// Where the length of a reply stands, which clients before 2.2 have nothing at.
const REPLY: usize = 60;
/// The last request: it is not answered.
const STOP: u16 = 0x1000;
/// Replies have a length of their own.
const HAS_REPLY: u16 = 0x0800;

/// A client that sends requests, and what it says in the first of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounceback {
    /// Bytes of each request, [`BYTES`] to [`LONGEST`].
    pub request_bytes: usize,
    /// Bytes of each reply, 1 to [`LONGEST`].
    pub reply_bytes: usize,
    /// The head of the first request.
    pub head: [u8; BYTES],
}

impl Bounceback {
    /// What the head of the first request says; `None` where there are fewer bytes, or lengths out of their ranges.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let head: [u8; BYTES] = *bytes.first_chunk()?;
        let word = |at: usize| usize::try_from(Words(&head[at..]).u32()?).ok();
        let request_bytes = word(4).filter(|bytes| (BYTES..=LONGEST).contains(bytes))?;
        let reply_bytes = if flags(&head) & HAS_REPLY == 0 {
            request_bytes
        } else {
            word(REPLY).filter(|bytes| (1..=LONGEST).contains(bytes))?
        };
        Some(Self {
            request_bytes,
            reply_bytes,
            head,
        })
    }
}

/// Whether a request is the last one, which is not answered.
pub fn is_last(request: &[u8]) -> bool {
    flags(request) & STOP != 0
}

/// Makes a reply of a request: when it came, and when the reply goes out, as times of day.
pub fn stamp(message: &mut [u8], came: Nanos, sent: Nanos) {
    let [came, sent] = [came, sent].map(|at| Head::at(0, at));
    let mut times = Vec::with_capacity(16);
    put(
        &mut times,
        &[
            came.seconds,
            came.microseconds,
            sent.seconds,
            sent.microseconds,
        ],
    );
    if let Some(place) = message.get_mut(SERVER_TIMES..SERVER_TIMES + times.len()) {
        place.copy_from_slice(&times);
    }
}

fn flags(request: &[u8]) -> u16 {
    let bytes = request.get(FLAGS..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u16::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: u32, flags: u16, reply: u32) -> [u8; BYTES] {
        let mut head = [0x5a; BYTES];
        head[4..8].copy_from_slice(&bytes.to_be_bytes());
        head[12..14].copy_from_slice(&flags.to_be_bytes());
        head[60..].copy_from_slice(&reply.to_be_bytes());
        head
    }

    #[test]
    fn a_reply_is_as_long_as_its_request_unless_it_is_said() {
        let lengths = |bytes, flags, reply| {
            let found = Bounceback::decode(&request(bytes, flags, reply))?;
            Some((found.request_bytes, found.reply_bytes))
        };
        // What 2.1.8 leaves there is no length.
        assert_eq!(lengths(100, 0x8000, 0x3031_3233), Some((100, 100)));
        assert_eq!(lengths(100, HAS_REPLY, 7), Some((100, 7)));
        assert_eq!(
            lengths(1 << 16, HAS_REPLY, 1 << 16),
            Some((1 << 16, 1 << 16))
        );
        for wrong in [
            lengths(63, 0, 0),
            lengths((1 << 16) + 1, 0, 0),
            lengths(u32::MAX, 0, 0),
            lengths(100, HAS_REPLY, 0),
            lengths(100, HAS_REPLY, u32::MAX),
        ] {
            assert_eq!(wrong, None);
        }
        assert_eq!(Bounceback::decode(&request(100, 0, 0)[..63]), None);
    }

    #[test]
    fn the_server_s_times_stand_in_the_reply_and_nothing_else_changes() {
        let before = request(100, STOP, 0);
        let mut message = before;
        stamp(&mut message, Nanos(5_000_007_000), Nanos(6_000_008_000));
        assert_eq!(
            message[28..44],
            [0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 6, 0, 0, 0, 8]
        );
        assert_eq!(
            (&message[..28], &message[44..]),
            (&before[..28], &before[44..])
        );
        assert!(is_last(&message) && !is_last(&request(100, 0, 0)) && !is_last(&[]));
    }
}
