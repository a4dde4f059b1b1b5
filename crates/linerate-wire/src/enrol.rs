//! How an agent enrols with a hub, over TLS: one request, one reply, each a length (big-endian u32) and a JSON object.
//!
//! An [`Invitation`] is the one string that an administrator carries from the hub to the host: the hub's address, a secret
//! token, and the SHA-256 of the certificate of the hub's authority.

use std::fmt;
use std::str::FromStr;

use linerate_model::plain_text::PlainText;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The application protocol (ALPN) of an agent's frames.
pub const AGENT: &[u8] = b"linerate-agent/1";
/// The application protocol (ALPN) of enrolling and renewing.
pub const ENROL: &[u8] = b"linerate-enrol/1";
/// The name in the certificate that a hub shows. Certificates of agents do not have it.
pub const HUB_NAME: &str = "hub.linerate.invalid";
/// Most bytes of a message, without its length.
pub const MOST: usize = 16 << 10;
/// How an invitation begins.
const SCHEME: &str = "linerate-enrol://";
/// Bytes of a token and of a pin, as hexadecimal digits.
const DIGITS: usize = 64;

/// What an agent asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// A first certificate.
    Enrol {
        /// The token of an invitation.
        token: String,
        /// The name of the host.
        name: String,
        /// A certificate signing request, PEM.
        csr: String,
    },
    /// A certificate in the place of the one that the connection was made with.
    Renew {
        /// A certificate signing request, PEM.
        csr: String,
    },
}

/// What a hub answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// The hub signed it.
    Certified {
        /// The agent's certificate, PEM.
        certificate: String,
        /// The certificate of the hub's authority, PEM.
        authority: String,
        /// Until when it is valid, milliseconds since 1970.
        not_after: u64,
    },
    /// The hub did not sign it.
    Refused {
        /// Why not.
        why: PlainText,
    },
}

/// Why bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnrolError {
    /// Its length is beyond [`MOST`].
    #[error("a message of enrolling has {0} bytes; at most {MOST} are allowed")]
    TooLong(usize),
    /// It is not JSON, or not of this kind.
    #[error("a message of enrolling cannot be read: {0}")]
    Json(String),
}

/// A message as bytes.
///
/// # Errors
/// Where it is longer than [`MOST`].
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, EnrolError> {
    let text = serde_json::to_vec(message).map_err(|error| EnrolError::Json(error.to_string()))?;
    if text.len() > MOST {
        return Err(EnrolError::TooLong(text.len()));
    }
    let mut bytes = u32::try_from(text.len())
        .unwrap_or(u32::MAX)
        .to_be_bytes()
        .to_vec();
    bytes.extend_from_slice(&text);
    Ok(bytes)
}

/// The message at the beginning of these bytes; `None` until all of it is there. The length is checked before anything
/// else is looked at.
///
/// # Errors
/// Where it is too long, or none.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<Option<T>, EnrolError> {
    let Some((length, rest)) = bytes.split_first_chunk() else {
        return Ok(None);
    };
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    if length > MOST {
        return Err(EnrolError::TooLong(length));
    }
    let Some(text) = rest.get(..length) else {
        return Ok(None);
    };
    serde_json::from_slice(text)
        .map(Some)
        .map_err(|error| EnrolError::Json(error.to_string()))
}

/// What a hub gives to a host that is to enrol: `linerate-enrol://HOST:PORT/TOKEN#PIN`.
#[derive(Clone, PartialEq, Eq)]
pub struct Invitation {
    /// Where the hub takes agents: a name or an address, and a port.
    pub hub: String,
    /// The secret, 64 hexadecimal digits.
    pub token: String,
    /// SHA-256 of the DER of the authority's certificate, 64 hexadecimal digits.
    pub pin: String,
}

/// A text that is no invitation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an invitation of a hub: {0}; `linerate hub token new` prints one: {SCHEME}HOST:PORT/TOKEN#PIN"
)]
pub struct InvitationError(&'static str);

impl fmt::Display for Invitation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{SCHEME}{}/{}#{}", self.hub, self.token, self.pin)
    }
}

/// Without the secret.
impl fmt::Debug for Invitation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{SCHEME}{}/…#{}", self.hub, self.pin)
    }
}

impl FromStr for Invitation {
    type Err = InvitationError;

    fn from_str(text: &str) -> Result<Self, InvitationError> {
        let rest = text
            .trim()
            .strip_prefix(SCHEME)
            .ok_or(InvitationError("it begins otherwise"))?;
        let (hub, rest) = rest
            .split_once('/')
            .ok_or(InvitationError("it has no token"))?;
        let (token, pin) = rest
            .split_once('#')
            .ok_or(InvitationError("it has no pin"))?;
        let digits = |text: &str| {
            text.len() == DIGITS && text.bytes().all(|byte| b"0123456789abcdef".contains(&byte))
        };
        if !hub.contains(':') {
            return Err(InvitationError("the hub's address has no port"));
        }
        if !digits(token) {
            return Err(InvitationError("its token does not have 64 digits"));
        }
        if !digits(pin) {
            return Err(InvitationError("its pin does not have 64 digits"));
        }
        Ok(Self {
            hub: hub.to_owned(),
            token: token.to_owned(),
            pin: pin.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_invitation_is_read_as_it_was_written() {
        let invitation = Invitation {
            hub: "[2001:db8::1]:5282".to_owned(),
            token: "a1".repeat(32),
            pin: "0f".repeat(32),
        };
        assert_eq!(invitation.to_string().parse(), Ok(invitation.clone()));
        assert!(!format!("{invitation:?}").contains("a1a1"));
        for (text, why) in [
            ("https://h:1/x#y", "begins"),
            ("linerate-enrol://h/aa#bb", "port"),
            ("linerate-enrol://h:1", "token"),
            ("linerate-enrol://h:1/aa", "pin"),
            ("linerate-enrol://h:1/aa#bb", "64 digits"),
        ] {
            let error = text.parse::<Invitation>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_message_is_bounded_before_it_is_read() {
        let long = u32::try_from(MOST + 1).unwrap().to_be_bytes();
        assert_eq!(decode::<Request>(&long), Err(EnrolError::TooLong(MOST + 1)));
        let csr = "x".repeat(MOST);
        assert!(matches!(
            encode(&Request::Renew { csr }),
            Err(EnrolError::TooLong(_))
        ));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(decode::<Request>(&bytes));
            let mut framed = u32::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
            framed.extend_from_slice(&bytes);
            drop(decode::<Reply>(&framed));
        }

        #[test]
        fn a_message_is_read_once_all_of_it_is_there(token in ".{0,80}", cut in 0_usize..40) {
            let request = Request::Enrol { token, name: "n1".to_owned(), csr: "c".to_owned() };
            let bytes = encode(&request).unwrap();
            prop_assert_eq!(decode::<Request>(&bytes[..bytes.len() - 1 - cut]), Ok(None));
            prop_assert_eq!(decode(&bytes), Ok(Some(request)));
        }
    }
}
