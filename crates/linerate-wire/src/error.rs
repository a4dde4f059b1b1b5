//! What can be wrong with a peer's bytes, or with the order of our own calls.

use std::fmt::Write as _;

use linerate_model::plain_text::PlainText;

/// The longest excerpt of a peer's bytes that a message shows.
const EXCERPT_BYTES: usize = 60;

/// A peer said something that cannot be, or a verb was called out of its turn.
///
/// Each text says what was read, what was expected and what to do. What a peer wrote is quoted as
/// [`PlainText`], so that a text can go to a terminal as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The bytes are no message of this protocol at all.
    #[error(
        "the peer answered '{text}': this is not an iperf3 or linerate {role}; is the port right?"
    )]
    NotIperf3 {
        /// The beginning of what came, printable.
        text: PlainText,
        /// What the peer was taken for: `server` or `client`.
        role: &'static str,
    },
    /// A message of the protocol, at the wrong moment.
    #[error(
        "the peer sent {received} where {expected} was due: the two ends disagree about where the \
         test is; run it again, and compare the versions of both ends if it stays"
    )]
    OutOfOrder {
        /// What came.
        received: PlainText,
        /// What could have come.
        expected: &'static str,
    },
    /// The peer announced a message longer than the bound.
    #[error(
        "the peer announced {length} bytes of {message} where at most {bound} are allowed; \
         nothing was read: check that the peer is iperf3 or linerate"
    )]
    FrameTooLong {
        /// Which message.
        message: &'static str,
        /// The length the peer announced, in bytes.
        length: u64,
        /// The bound, in bytes.
        bound: u64,
    },
    /// A message is not the JSON it should be.
    #[error("the peer's {message} are not usable JSON: {reason}; the peer has to be repaired")]
    Json {
        /// Which message.
        message: &'static str,
        /// The parser's words, with line and column.
        reason: PlainText,
    },
    /// A key without which a message means nothing is absent or of the wrong type.
    #[error("the peer's {message} lack the {expected} '{key}'; the peer has to be repaired")]
    MissingKey {
        /// Which message.
        message: &'static str,
        /// The key, with its place where it is nested: `streams[2].bytes`.
        key: PlainText,
        /// The type it must have.
        expected: &'static str,
    },
    /// A parameter no server can run.
    #[error(
        "the parameter {key} is {value}, where {allowed} is needed; change the client's options"
    )]
    Parameter {
        /// The key on the wire.
        key: &'static str,
        /// What it is.
        value: PlainText,
        /// What it may be.
        allowed: &'static str,
    },
    /// A message between two linerates that cannot be understood.
    #[error(
        "the peer's linerate message cannot be understood: {reason}; use the same version at both \
         ends"
    )]
    Extension {
        /// What is wrong with it.
        reason: PlainText,
    },
    /// More messages than a peer has reason to send before the caller could look at them.
    #[error("the peer sent more than {bound} messages at once; the connection should be closed")]
    TooManyMessages {
        /// How many are taken.
        bound: usize,
    },
    /// A verb was called at a moment at which its message cannot be sent.
    #[error("{verb} cannot be sent while {phase}; this is an error of the calling program")]
    OutOfTurn {
        /// What the caller wanted to send.
        verb: &'static str,
        /// Where the session is.
        phase: &'static str,
    },
    /// A message of ours is longer than the other end accepts.
    #[error("our {message} come to {length} bytes, the other end accepts {bound}; {remedy}")]
    OursTooLong {
        /// Which message.
        message: &'static str,
        /// Its length in bytes.
        length: u64,
        /// The other end's bound in bytes.
        bound: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// An authentication token that cannot be decoded. The text does not say more on purpose:
    /// what is wrong with a token is the attacker's question.
    #[error("the authentication token cannot be used; check user, password, key and padding")]
    Token,
    /// A token from too long ago, or from the future.
    #[error(
        "the authentication token is {seconds} s away from this host's clock, {allowed} s are \
         allowed; set both clocks (NTP), or widen --time-skew-threshold"
    )]
    Skew {
        /// The distance in seconds.
        seconds: u64,
        /// The distance allowed, in seconds.
        allowed: u64,
    },
    /// A token that was used before.
    #[error("the authentication token was used before: a copy of an earlier login is refused")]
    Replayed,
    /// More tokens inside the window of allowed skew than are remembered.
    #[error("more than {bound} logins inside the allowed skew; wait some seconds and try again")]
    TooManyTokens {
        /// How many are remembered.
        bound: usize,
    },
}

impl ProtocolError {
    /// A message of the peer that is longer than its bound, both in bytes.
    pub(crate) fn too_long(message: &'static str, length: usize, bound: usize) -> Self {
        let [length, bound] = [length, bound].map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX));
        Self::FrameTooLong {
            message,
            length,
            bound,
        }
    }
}

/// The beginning of a peer's bytes as printable ASCII: the first line, other bytes as `\x..`,
/// with an ellipsis where more came.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    let line_end = bytes
        .iter()
        .position(|b| matches!(b, b'\r' | b'\n'))
        .filter(|at| *at > 0);
    let shown = line_end.unwrap_or(bytes.len()).min(EXCERPT_BYTES);
    let mut text = String::new();
    for byte in bytes.iter().take(shown) {
        if (0x20..0x7f).contains(byte) {
            text.push(char::from(*byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    if shown < bytes.len() {
        text.push('…');
    }
    text
}

/// The first `longest` characters of a peer's text, as it is printed: what is cut stays the same when it is cut again.
pub(crate) fn beginning(text: &str, longest: usize) -> PlainText {
    let plain = PlainText::from(text);
    plain
        .as_str()
        .chars()
        .take(longest)
        .collect::<String>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_the_first_line_and_harmless() {
        assert_eq!(
            excerpt(b"HTTP/1.1 400 Bad Request\r\nServer: x"),
            "HTTP/1.1 400 Bad Request…"
        );
        assert_eq!(excerpt(b"\x1b[2J\x00"), "\\x1b[2J\\x00");
        assert_eq!(excerpt(&[b'a'; 200]).chars().count(), EXCERPT_BYTES + 1);
        assert_eq!(excerpt(b""), "");
        assert_eq!(excerpt(b"\n"), "\\x0a");
    }

    #[test]
    fn a_beginning_is_its_own_beginning() {
        let long = format!("{}\u{7f}\u{7f}", "a".repeat(8));
        let cut = beginning(&long, 10);
        assert_eq!(cut.as_str().chars().count(), 10);
        assert_eq!(beginning(cut.as_str(), 10), cut);
    }

    #[test]
    fn a_quoted_text_is_short_and_harmless() {
        assert_eq!(beginning("a\u{1b}[31m\u{9b}é", 10), r"a\u{1b}[31");
        assert_eq!(beginning("é\u{9b}", 10), r"é\u{9b}");
    }
}
