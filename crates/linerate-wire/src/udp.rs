//! The UDP side: the handshake that opens a stream, and the header of every datagram.

use linerate_model::units::Nanos;

/// The client's datagram that opens a stream, since 3.12: ASCII `9876`.
pub const HANDSHAKE_REQUEST: [u8; 4] = *b"9876";
/// The server's answer since 3.12: ASCII `6789`.
pub const HANDSHAKE_ANSWER: [u8; 4] = *b"6789";
/// Bytes of a [`TokenHandshake`].
pub const TOKEN_HANDSHAKE_BYTES: usize = 22;

/// Whether a datagram is the answer to our handshake, of whatever age the server is. The whole
/// datagram must be it: in reverse a data block may overtake the answer.
pub fn is_answer(datagram: &[u8]) -> bool {
    is_of_some_age(datagram, HANDSHAKE_ANSWER, 987_654_321)
}

/// Whether a datagram is one that a stock client opens a stream with. Stock servers take any
/// datagram; a data datagram has at least 16 bytes, so length alone tells these apart.
pub fn is_request(datagram: &[u8]) -> bool {
    is_of_some_age(datagram, HANDSHAKE_REQUEST, 123_456_789)
}

/// Whether a datagram is `since` iperf3 3.12, or the number of older ones in the order of either kind of host.
fn is_of_some_age(datagram: &[u8], since: [u8; 4], before: u32) -> bool {
    [since, before.to_le_bytes(), before.to_be_bytes()]
        .iter()
        .any(|known| datagram == known)
}

/// The handshake between two linerates: it proves that the sender saw the control connection, and
/// it names its stream, so that it may be repeated and come in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenHandshake {
    /// The server's token from its hello.
    pub token: [u8; 16],
    /// The place of the stream in the order of creation, from 0.
    pub stream: u16,
}

impl TokenHandshake {
    /// `9876`, the token, the stream as big-endian u16.
    pub fn encode(&self) -> [u8; TOKEN_HANDSHAKE_BYTES] {
        let mut bytes = [0; TOKEN_HANDSHAKE_BYTES];
        bytes[..4].copy_from_slice(&HANDSHAKE_REQUEST);
        bytes[4..20].copy_from_slice(&self.token);
        bytes[20..].copy_from_slice(&self.stream.to_be_bytes());
        bytes
    }

    /// `None` where the datagram is none of exactly this form.
    pub fn decode(datagram: &[u8]) -> Option<Self> {
        let bytes: &[u8; TOKEN_HANDSHAKE_BYTES] = datagram.try_into().ok()?;
        let rest = bytes.strip_prefix(&HANDSHAKE_REQUEST)?;
        let (token, stream) = rest.split_first_chunk::<16>()?;
        Some(Self {
            token: *token,
            stream: u16::from_be_bytes(stream.try_into().ok()?),
        })
    }
}

/// Whether counters have 32 or 64 bits: the parameter `udp_counters_64bit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterWidth {
    /// The default upstream; wraps after 8 minutes at 8.6 million datagrams a second.
    Bits32,
    /// With `--udp-counters-64bit`.
    Bits64,
}

impl CounterWidth {
    /// 64 bits where both ends agreed on `--udp-counters-64bit`, else 32.
    pub const fn from_parameter(udp_counters_64bit: bool) -> Self {
        if udp_counters_64bit {
            Self::Bits64
        } else {
            Self::Bits32
        }
    }

    /// The counter that a header holds as `counter`, whose low half alone travels with 32 bits: see
    /// [`extend_counter`]. `highest` is the highest counter so far.
    #[inline]
    pub fn whole(self, counter: u64, highest: impl FnOnce() -> u64) -> u64 {
        match self {
            Self::Bits64 => counter,
            Self::Bits32 => extend_counter(low_half(counter), highest()),
        }
    }

    /// Bytes of a header with such a counter.
    pub const fn header_bytes(self) -> usize {
        match self {
            Self::Bits32 => 12,
            Self::Bits64 => 16,
        }
    }
}

/// The header of a datagram: when it was sent, and its number from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataHeader {
    /// Seconds on the sender's clock, which may be any clock.
    pub seconds: u32,
    /// Microseconds, below a million from an honest sender.
    pub microseconds: u32,
    /// The counter. With 32 bits the low half travels; see [`extend_counter`].
    pub counter: u64,
}

impl DataHeader {
    /// A header for a datagram sent at `now`. Seconds beyond 32 bits wrap; nothing but their
    /// differences is ever used.
    pub fn at(now: Nanos, counter: u64) -> Self {
        let seconds = low_half(now.0 / 1_000_000_000);
        let microseconds = low_half(now.0 % 1_000_000_000 / 1000);
        Self {
            seconds,
            microseconds,
            counter,
        }
    }

    /// Writes the header to the front of a datagram; `None`, and nothing written, where the
    /// datagram is shorter than the header.
    pub fn encode(&self, width: CounterWidth, datagram: &mut [u8]) -> Option<()> {
        let header = datagram.get_mut(..width.header_bytes())?;
        header[..4].copy_from_slice(&self.seconds.to_be_bytes());
        header[4..8].copy_from_slice(&self.microseconds.to_be_bytes());
        match width {
            CounterWidth::Bits32 => {
                header[8..].copy_from_slice(&low_half(self.counter).to_be_bytes());
            }
            CounterWidth::Bits64 => header[8..].copy_from_slice(&self.counter.to_be_bytes()),
        }
        Some(())
    }

    /// Reads the header from the front of a datagram; `None` where it is shorter than a header.
    /// Only bytes that are in the slice are read: give it what was received, not what was
    /// announced (`MSG_TRUNC` reports more than it stores, CVE-2025-54351).
    pub fn decode(width: CounterWidth, datagram: &[u8]) -> Option<Self> {
        let (seconds, rest) = datagram.split_first_chunk::<4>()?;
        let (microseconds, rest) = rest.split_first_chunk::<4>()?;
        let counter = match width {
            CounterWidth::Bits32 => u64::from(u32::from_be_bytes(*rest.first_chunk::<4>()?)),
            CounterWidth::Bits64 => u64::from_be_bytes(*rest.first_chunk::<8>()?),
        };
        Some(Self {
            seconds: u32::from_be_bytes(*seconds),
            microseconds: u32::from_be_bytes(*microseconds),
            counter,
        })
    }

    /// When it was sent, on the sender's clock. Whatever the fields hold, this fits.
    pub const fn sent(&self) -> Nanos {
        Nanos(self.seconds as u64 * 1_000_000_000 + self.microseconds as u64 * 1000)
    }
}

/// The low 32 bits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half is what is wanted"
)]
const fn low_half(number: u64) -> u32 {
    number as u32
}

/// The 64-bit counter of which `low` is the low half: the one nearest to `highest`, the highest
/// counter so far. Right while a datagram is less than 2^31 away from it, so a 32-bit counter may
/// wrap as often as it likes.
pub const fn extend_counter(low: u32, highest: u64) -> u64 {
    let distance = low.wrapping_sub(low_half(highest)).cast_signed();
    match highest.checked_add_signed(distance as i64) {
        Some(counter) => counter,
        None => low as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_wire_is_written_down() {
        let header = DataHeader {
            seconds: 1,
            microseconds: 2,
            counter: 0x0102_0304_0506_0708,
        };
        let mut datagram = [0xff; 18];
        header.encode(CounterWidth::Bits64, &mut datagram).unwrap();
        assert_eq!(
            datagram,
            [0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xff]
        );
        header.encode(CounterWidth::Bits32, &mut datagram).unwrap();
        assert_eq!(datagram[..12], [0, 0, 0, 1, 0, 0, 0, 2, 5, 6, 7, 8]);
        assert_eq!(header.encode(CounterWidth::Bits64, &mut [0; 15]), None);
        assert_eq!(
            DataHeader::at(Nanos(1_000_002_999), 7).sent(),
            Nanos(1_000_002_000)
        );
    }

    #[test]
    fn answers_of_every_age_are_taken() {
        // iperf.h: UDP_CONNECT_REPLY 0x36373839, legacy 987654321, each in the host's order.
        assert!(is_answer(b"6789"));
        assert!(is_answer(&[0xb1, 0x68, 0xde, 0x3a]));
        assert!(is_answer(&[0x3a, 0xde, 0x68, 0xb1]));
        assert!(!is_answer(b"9876") && !is_answer(b"67890") && !is_answer(b""));
        assert!(is_request(b"9876") && is_request(&[0x15, 0xcd, 0x5b, 0x07]));
        assert!(!is_request(b"6789"));
    }

    #[test]
    fn a_token_handshake_has_one_form() {
        let handshake = TokenHandshake {
            token: [7; 16],
            stream: 0x0102,
        };
        let mut bytes = handshake.encode();
        assert_eq!(bytes[..4], *b"9876");
        assert_eq!(bytes[20..], [1, 2]);
        assert_eq!(TokenHandshake::decode(&bytes), Some(handshake));
        assert_eq!(TokenHandshake::decode(&bytes[..21]), None);
        bytes[0] = 0;
        assert_eq!(TokenHandshake::decode(&bytes), None);
    }

    #[test]
    fn a_32_bit_counter_goes_on_beyond_its_wrap() {
        assert_eq!(extend_counter(1, 0), 1);
        assert_eq!(extend_counter(0, 0xffff_ffff), 0x1_0000_0000);
        assert_eq!(extend_counter(0xffff_fffe, 0x1_0000_0003), 0xffff_fffe);
        assert_eq!(extend_counter(u32::MAX, 0), 0xffff_ffff); // nothing below 0
        assert_eq!(extend_counter(0, u64::MAX), 0);
    }

    proptest! {
        #[test]
        fn headers_survive(seconds: u32, microseconds: u32, counter: u64, size in 0usize..40) {
            let header = DataHeader { seconds, microseconds, counter };
            for width in [CounterWidth::Bits32, CounterWidth::Bits64] {
                let mut datagram = vec![0; size];
                let written = header.encode(width, &mut datagram);
                prop_assert_eq!(written.is_some(), size >= width.header_bytes());
                let read = DataHeader::decode(width, &datagram);
                prop_assert_eq!(read.is_some(), written.is_some());
                if let Some(read) = read {
                    prop_assert_eq!(read.sent(), header.sent());
                    prop_assert_eq!(u32::try_from(read.counter & 0xffff_ffff).unwrap(), low_half(counter));
                }
            }
        }

        #[test]
        fn extension_finds_near_counters(highest in 1u64..1 << 60, distance in -0x7fff_ffff_i64..0x7fff_ffff) {
            if let Some(counter) = highest.checked_add_signed(distance) {
                prop_assert_eq!(extend_counter(low_half(counter), highest), counter);
            }
        }
    }
}
