//! The 37 bytes that open every connection of a test and tell the tests apart.

use std::borrow::Cow;

/// Bytes in a cookie on the wire.
pub const COOKIE_BYTES: usize = 37;

/// The letters of a cookie since iperf3 3.2: those of base32, in lower case.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A test's cookie: 36 characters and a NUL. It is a name, not a secret: it travels in the clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie([u8; COOKIE_BYTES]);

impl Cookie {
    /// A cookie of our own from 36 random bytes: `a-z2-7` and a NUL, five bits from each byte.
    pub fn from_random(random: [u8; COOKIE_BYTES - 1]) -> Self {
        let mut bytes = [0; COOKIE_BYTES];
        for (letter, random) in bytes.iter_mut().zip(random) {
            *letter = LETTERS[usize::from(random) % LETTERS.len()];
        }
        Self(bytes)
    }

    /// A cookie as a peer sent it. Any bytes will do: before 3.2 it held host and time text.
    pub const fn from_peer(bytes: [u8; COOKIE_BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes on the wire.
    pub const fn as_bytes(&self) -> &[u8; COOKIE_BYTES] {
        &self.0
    }

    /// The text before the first NUL, bytes that are no UTF-8 replaced. A peer's cookie may hold
    /// control characters: escape it before it goes to a terminal.
    pub fn text(&self) -> Cow<'_, str> {
        let end = self.0.iter().position(|b| *b == 0).unwrap_or(COOKIE_BYTES);
        String::from_utf8_lossy(&self.0[..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_are_letters_and_a_nul() {
        let random: [u8; 36] = std::array::from_fn(|i| u8::try_from(i * 7).unwrap());
        let cookie = Cookie::from_random(random);
        assert_eq!(cookie.as_bytes()[36], 0);
        assert_eq!(cookie.text().len(), 36);
        assert!(cookie.text().bytes().all(|b| LETTERS.contains(&b)));
    }

    #[test]
    fn a_peer_may_send_anything() {
        assert_eq!(Cookie::from_peer([0; 37]).text(), "");
        assert_eq!(Cookie::from_peer([b'x'; 37]).text().len(), 37);
        assert_eq!(Cookie::from_peer([0xff; 37]).text().chars().count(), 37);
        assert_ne!(Cookie::from_peer([0; 37]), Cookie::from_peer([1; 37]));
    }
}
