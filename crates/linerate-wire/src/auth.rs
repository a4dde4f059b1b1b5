//! iperf3's authentication, all but the cryptography: the token's plaintext, its base64, the users
//! file, the allowed skew, and a memory of tokens against replay.
//!
//! RSA and SHA-256 belong to the caller. A caller that decrypts should answer every failure, of
//! padding, of form, of user, of password, in the same way and after the same work
//! (CVE-2024-26306 was the time PKCS#1 v1.5 took).

use std::collections::BTreeSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linerate_model::hexadecimal;

use crate::error::{ProtocolError, beginning};

/// Seconds a token's time may be away from the server's clock, by default.
pub const DEFAULT_SKEW_SECONDS: u64 = 10;
/// The longest base64 text looked at: a key of 16384 bits makes 2732 characters.
pub const MAX_TOKEN_CHARS: usize = 4096;

/// What a token holds. Its debug form does not show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user's name.
    pub user: String,
    /// The password in the clear.
    pub password: String,
    /// When the client made it, in seconds since 1970.
    pub timestamp: i64,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .field("timestamp", &self.timestamp)
            .finish_non_exhaustive()
    }
}

impl Credentials {
    /// The plaintext that is encrypted into a token. Stock servers read user and password up to
    /// the first white space; [`Self::is_plain`] says whether they would get them whole.
    pub fn plaintext(&self) -> String {
        format!(
            "user: {}\npwd:  {}\nts:   {}",
            self.user, self.password, self.timestamp
        )
    }

    /// Whether a stock server can read them: neither empty nor with white space in them.
    pub fn is_plain(&self) -> bool {
        [&self.user, &self.password]
            .iter()
            .all(|text| !text.is_empty() && !text.contains(char::is_whitespace))
    }

    /// Reads a decrypted plaintext. Unlike upstream, user and password may hold spaces.
    pub fn parse(plaintext: &[u8]) -> Result<Self, ProtocolError> {
        Self::parse_text(plaintext).ok_or(ProtocolError::Token)
    }

    fn parse_text(plaintext: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(plaintext).ok()?;
        let rest = text.strip_prefix("user:")?;
        let (user, rest) = rest.split_once("\npwd:")?;
        let (password, timestamp) = rest.rsplit_once("\nts:")?;
        let timestamp = timestamp
            .trim_matches([' ', '\0', '\r', '\n'])
            .parse()
            .ok()?;
        let user = user.strip_prefix(' ').unwrap_or(user);
        let password = password.strip_prefix("  ").unwrap_or(password);
        (!user.is_empty()).then(|| Self {
            user: user.to_owned(),
            password: password.to_owned(),
            timestamp,
        })
    }
}

/// The ciphertext as the parameter `authtoken` carries it: base64 on one line.
pub fn encode_token(ciphertext: &[u8]) -> String {
    STANDARD.encode(ciphertext)
}

/// The ciphertext of the parameter `authtoken`. Only canonical base64 is taken, so that one
/// ciphertext has one text.
pub fn decode_token(token: &str) -> Result<Vec<u8>, ProtocolError> {
    let token = token.trim_end_matches(['\r', '\n']);
    if token.is_empty() || token.len() > MAX_TOKEN_CHARS {
        return Err(ProtocolError::Token);
    }
    STANDARD.decode(token).map_err(|_| ProtocolError::Token)
}

/// What SHA-256 is taken of for the users file: `{user}password`, braces included.
pub fn password_digest_input(user: &str, password: &str) -> String {
    format!("{{{user}}}{password}")
}

/// Refuses a token whose time is more than `allowed` seconds away from `now`; both instants in
/// seconds since 1970.
pub fn check_skew(timestamp: i64, now: i64, allowed: u64) -> Result<(), ProtocolError> {
    let seconds = now.abs_diff(timestamp);
    if seconds > allowed {
        Err(ProtocolError::Skew { seconds, allowed })
    } else {
        Ok(())
    }
}

/// The users file: lines of `user,hex(sha256("{user}password"))`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Users {
    entries: Vec<(String, [u8; 32])>,
}

impl Users {
    /// Reads the text of a users file, and what is wrong with lines that had to be skipped. Empty
    /// lines and lines that begin with `#` are comments.
    pub fn parse(text: &str) -> (Self, Vec<String>) {
        let (mut users, mut warnings) = (Self::default(), Vec::new());
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match parse_user(line) {
                Ok(entry) => users.entries.push(entry),
                Err(reason) => {
                    warnings.push(format!("users file, line {}: {reason}: skipped", index + 1));
                }
            }
        }
        (users, warnings)
    }

    /// Whether nobody may test.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the file has this user with this SHA-256 of [`password_digest_input`]. It looks at
    /// every entry and at every byte, whatever matches.
    pub fn allows(&self, user: &str, digest: &[u8; 32]) -> bool {
        let matches = self.entries.iter().map(|(name, expected)| {
            let difference = expected
                .iter()
                .zip(digest)
                .fold(0, |all, (a, b)| all | (a ^ b));
            u64::from(difference == 0) & u64::from(name == user)
        });
        matches.sum::<u64>() > 0
    }
}

fn parse_user(line: &str) -> Result<(String, [u8; 32]), String> {
    let (user, digest) = line.split_once(',').ok_or("there is no comma")?;
    if user.is_empty() {
        return Err("there is no user before the comma".to_owned());
    }
    let digest = hexadecimal::bytes(digest.trim()).ok_or_else(|| {
        format!(
            "what follows user '{}' is not 64 hexadecimal digits",
            beginning(user, 40)
        )
    })?;
    Ok((user.to_owned(), digest))
}

/// Remembers the tokens of the last seconds: iperf3's token is not bound to its connection, so a
/// copy would be good until its time is too long ago.
#[derive(Debug, Clone)]
pub struct SeenTokens {
    allowed_skew: u64,
    bound: usize,
    /// Ordered by time, so that the expired ones are at the front.
    seen: BTreeSet<(i64, Vec<u8>)>,
}

impl SeenTokens {
    /// A memory of at most `bound` tokens for an allowed skew in seconds.
    pub const fn new(allowed_skew: u64, bound: usize) -> Self {
        Self {
            allowed_skew,
            bound,
            seen: BTreeSet::new(),
        }
    }

    /// Takes a token that decrypted and is inside the skew, once: its decoded ciphertext, its
    /// time, and now, both in seconds since 1970. A second time it is refused, and so is any token
    /// while the memory is full: forgetting one would let it be replayed. Only tokens of users who
    /// know their password should get here, so only they can fill it.
    pub fn accept(
        &mut self,
        ciphertext: &[u8],
        timestamp: i64,
        now: i64,
    ) -> Result<(), ProtocolError> {
        check_skew(timestamp, now, self.allowed_skew)?;
        let oldest_valid = now.saturating_sub_unsigned(self.allowed_skew);
        self.seen = self.seen.split_off(&(oldest_valid, Vec::new()));
        let entry = (timestamp, ciphertext.to_vec());
        if self.seen.contains(&entry) {
            return Err(ProtocolError::Replayed);
        }
        if self.seen.len() >= self.bound {
            return Err(ProtocolError::TooManyTokens { bound: self.bound });
        }
        self.seen.insert(entry);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mario() -> Credentials {
        Credentials {
            user: "mario".into(),
            password: "rossi".into(),
            timestamp: 1_795_249_328,
        }
    }

    #[test]
    fn the_plaintext_is_iperf3s() {
        // Decrypted from tokens of 3.12 (PKCS#1) and 3.21 (OAEP).
        let captured = "user: mario\npwd:  rossi\nts:   1795249328";
        assert_eq!(mario().plaintext(), captured);
        assert_eq!(Credentials::parse(captured.as_bytes()).unwrap(), mario());
        assert!(mario().is_plain());
        assert!(
            !Credentials {
                password: "a b".into(),
                ..mario()
            }
            .is_plain()
        );
        assert!(!format!("{:?}", mario()).contains("rossi"));
    }

    #[test]
    fn a_plaintext_in_pieces_is_refused() {
        let whole = "user: u\npwd:  p\nts:   1";
        for end in 0..whole.len() {
            assert!(Credentials::parse(&whole.as_bytes()[..end]).is_err());
        }
        for wrong in [
            "user: \npwd:  p\nts:   1",
            "user: u\npwd:  p\nts:   99999999999999999999",
        ] {
            assert_eq!(
                Credentials::parse(wrong.as_bytes()),
                Err(ProtocolError::Token)
            );
        }
    }

    #[test]
    fn a_users_file_says_what_it_skipped() {
        // sha256("{mario}rossi"), from iperf3's documentation.
        let digest = "bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b";
        let text = format!("# comment\n\nmario,{digest}\r\nluigi\n,{digest}\npeach,12\n");
        let (users, warnings) = Users::parse(&text);
        assert_eq!(users.entries.len(), 1);
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert!(warnings[0].contains("line 4"));
        let right = hexadecimal::bytes(digest).unwrap();
        assert!(users.allows("mario", &right));
        assert!(!users.allows("luigi", &right));
        assert!(!users.allows("mario", &[0; 32]));
        assert_eq!(password_digest_input("mario", "rossi"), "{mario}rossi");
    }

    #[test]
    fn skew_is_a_distance() {
        assert!(check_skew(100, 110, 10).is_ok() && check_skew(110, 100, 10).is_ok());
        assert_eq!(
            check_skew(100, 111, 10),
            Err(ProtocolError::Skew {
                seconds: 11,
                allowed: 10
            })
        );
        assert!(check_skew(i64::MIN, i64::MAX, u64::MAX - 1).is_err());
    }

    #[test]
    fn a_token_is_good_once() {
        let mut seen = SeenTokens::new(10, 2);
        assert_eq!(seen.accept(b"a", 100, 95), Ok(()));
        assert_eq!(seen.accept(b"a", 100, 110), Err(ProtocolError::Replayed));
        assert_eq!(seen.accept(b"b", 105, 105), Ok(()));
        assert_eq!(
            seen.accept(b"c", 105, 105),
            Err(ProtocolError::TooManyTokens { bound: 2 })
        );
        // At 111 the first is too old to be replayed, and its place is free.
        assert!(matches!(
            seen.accept(b"a", 100, 111),
            Err(ProtocolError::Skew { .. })
        ));
        assert_eq!(seen.accept(b"c", 111, 111), Ok(()));
        assert_eq!(seen.seen.len(), 2);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(user in "[^\n]{1,20}", password in "\\PC{0,20}", timestamp: i64) {
            let credentials = Credentials { user, password, timestamp };
            prop_assert_eq!(Credentials::parse(credentials.plaintext().as_bytes()).unwrap(), credentials);
        }

        #[test]
        fn tokens_survive_base64(bytes in prop::collection::vec(any::<u8>(), 1..600)) {
            prop_assert_eq!(decode_token(&encode_token(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..100), text in "\\PC{0,100}") {
            let _ = Credentials::parse(&bytes);
            let _ = decode_token(&text);
            let _ = Users::parse(&text);
            let _ = hexadecimal::bytes::<16>(&text);
        }
    }
}
