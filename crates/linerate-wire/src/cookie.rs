//! The 37 bytes that open every connection of a test and tell the tests apart.

use std::borrow::Cow;

/// Bytes in a cookie on the wire.
pub const COOKIE_BYTES: usize = 37;

/// The letters of a cookie since iperf3 3.2: those of base32, in lower case.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A test's cookie: 36 characters and a NUL. It names a test. Both ends of a test may be given one before the test
/// (a session token): a server then takes no other. It travels in the clear, so a token keeps out who cannot read the
/// path's packets, and nobody else.
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

    /// A cookie that was made elsewhere, from its text.
    ///
    /// # Errors
    /// Unless the text is 36 characters of `a-z2-7`. The error does not repeat the text, which may be a secret.
    pub fn from_text(text: &str) -> Result<Self, CookieError> {
        let letters = text.as_bytes();
        if letters.len() != COOKIE_BYTES - 1 {
            return Err(CookieError::Length {
                found: letters.len(),
            });
        }
        if !letters.iter().all(|letter| LETTERS.contains(letter)) {
            return Err(CookieError::Letter);
        }
        let mut bytes = [0; COOKIE_BYTES];
        bytes[..COOKIE_BYTES - 1].copy_from_slice(letters);
        Ok(Self(bytes))
    }

    /// Whether two cookies are equal, in a time that does not depend on where they differ.
    pub fn is_same(&self, other: &Self) -> bool {
        let differing = self.0.iter().zip(&other.0).fold(0, |all, (one, two)| {
            // Without the barrier the loop may end at the first difference.
            std::hint::black_box(all | (one ^ two))
        });
        differing == 0
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

/// A text that is no cookie of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CookieError {
    /// Its length.
    #[error("it has {found} bytes; 36 characters of a-z2-7 are expected")]
    Length {
        /// Bytes that it has.
        found: usize,
    },
    /// Its letters.
    #[error("it has other characters than a-z2-7")]
    Letter,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_back_and_nothing_else_is() {
        let cookie = Cookie::from_random(std::array::from_fn(|i| u8::try_from(i * 5).unwrap()));
        let read = Cookie::from_text(&cookie.text()).unwrap();
        assert!(read.is_same(&cookie) && read == cookie);
        let found = |text: &str| Cookie::from_text(text).unwrap_err();
        assert_eq!(found(""), CookieError::Length { found: 0 });
        assert_eq!(found(&"a".repeat(37)), CookieError::Length { found: 37 });
        for wrong in ["A", "1", " ", "\0"] {
            let text = "a".repeat(35) + wrong;
            assert_eq!(found(&text), CookieError::Letter, "{wrong:?}");
        }
        // 36 bytes, but 18 characters.
        assert_eq!(found(&"ä".repeat(18)), CookieError::Letter);
    }

    #[test]
    fn each_byte_makes_a_difference() {
        let cookie = Cookie::from_peer([b'a'; 37]);
        for index in 0..37 {
            let mut other = [b'a'; 37];
            other[index] = b'b';
            assert!(!cookie.is_same(&Cookie::from_peer(other)), "byte {index}");
        }
    }

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
