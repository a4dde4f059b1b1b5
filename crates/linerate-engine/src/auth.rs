//! iperf3's authentication: credentials sealed with the server's RSA key, in a token that is good for
//! seconds and, with us, once.

use std::sync::{Mutex, PoisonError};

use aws_lc_rs::digest;
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey,
    Pkcs1PrivateDecryptingKey, Pkcs1PublicEncryptingKey, PrivateDecryptingKey, PublicEncryptingKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linerate_model::units::Nanos;
use linerate_wire::auth as wire;

use crate::error::EngineError;

/// How a token is padded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Padding {
    /// OAEP with SHA-1 (iperf3 3.17 and newer).
    #[default]
    Oaep,
    /// PKCS#1 v1.5 (before, or `--use-pkcs1-padding`).
    Pkcs1,
}

/// Who asks.
#[derive(Clone)]
pub struct Credentials {
    /// The user's name.
    pub user: String,
    /// The password.
    pub password: String,
    /// The server's public key, PEM (`BEGIN PUBLIC KEY`).
    pub public_key_pem: String,
    /// How to pad.
    pub padding: Padding,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .field("padding", &self.padding)
            .finish_non_exhaustive()
    }
}

fn error(reason: impl Into<String>) -> EngineError {
    EngineError::Authentication {
        reason: reason.into(),
    }
}

/// The contents of a PEM block of one of the given labels.
fn pem(text: &str, labels: &[&str]) -> Result<(String, Vec<u8>), EngineError> {
    for label in labels {
        let (begin, end) = (
            format!("-----BEGIN {label}-----"),
            format!("-----END {label}-----"),
        );
        let inside = text
            .split_once(&begin)
            .and_then(|(_, rest)| rest.split_once(&end));
        if let Some((body, _)) = inside {
            let packed: String = body.split_whitespace().collect();
            let bytes = STANDARD
                .decode(packed)
                .map_err(|reason| error(format!("the key is not valid PEM: {reason}")))?;
            return Ok(((*label).to_owned(), bytes));
        }
    }
    Err(error(format!(
        "the key file has no '-----BEGIN {}-----' block",
        labels.join("' or '")
    )))
}

impl Credentials {
    /// Whether a token can be made of them.
    ///
    /// # Errors
    /// A key that is none; a user or a password that no server could read.
    pub fn check(&self) -> Result<(), EngineError> {
        token(self, Nanos::ZERO).map(drop)
    }
}

/// The token for a test that begins now.
pub(crate) fn token(credentials: &Credentials, now: Nanos) -> Result<String, EngineError> {
    let (_, der) = pem(&credentials.public_key_pem, &["PUBLIC KEY"])?;
    let key = PublicEncryptingKey::from_der(&der)
        .map_err(|_| error("the public key is not an RSA key of 2048 to 8192 bits"))?;
    let plain = wire::Credentials {
        user: credentials.user.clone(),
        password: credentials.password.clone(),
        timestamp: seconds(now),
    };
    if !plain.is_plain() {
        return Err(error(
            "user name and password must not be empty or contain white space: iperf3 servers cut them there",
        ));
    }
    let plain = plain.plaintext();
    let too_long = |_| error("user name and password are too long for the key");
    let sealed = match credentials.padding {
        Padding::Oaep => {
            let key = OaepPublicEncryptingKey::new(key).map_err(too_long)?;
            let mut out = vec![0; key.ciphertext_size()];
            key.encrypt(&OAEP_SHA1_MGF1SHA1, plain.as_bytes(), &mut out, None)
                .map_err(too_long)?
                .to_vec()
        }
        Padding::Pkcs1 => {
            let key = Pkcs1PublicEncryptingKey::new(key).map_err(too_long)?;
            let mut out = vec![0; key.ciphertext_size()];
            key.encrypt(plain.as_bytes(), &mut out)
                .map_err(too_long)?
                .to_vec()
        }
    };
    Ok(wire::encode_token(&sealed))
}

fn seconds(now: Nanos) -> i64 {
    i64::try_from(now.0 / 1_000_000_000).unwrap_or(i64::MAX)
}

/// Tokens that a server remembers within the allowed skew.
const MOST_TOKENS: usize = 65_536;

/// The server's side: its key, its users, and the tokens that it has seen.
pub struct Verifier {
    key: PrivateDecryptingKey,
    users: wire::Users,
    padding: Padding,
    skew_seconds: u64,
    seen: Mutex<wire::SeenTokens>,
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verifier")
            .field("padding", &self.padding)
            .finish_non_exhaustive()
    }
}

impl Verifier {
    /// From a private key (PEM, `PRIVATE KEY` or `RSA PRIVATE KEY`, without a passphrase) and the text
    /// of a users file; what had to be skipped in it comes back as warnings.
    pub fn new(
        private_key_pem: &str,
        users: &str,
        padding: Padding,
        skew_seconds: Option<u64>,
    ) -> Result<(Self, Vec<String>), EngineError> {
        let (label, der) = pem(private_key_pem, &["PRIVATE KEY", "RSA PRIVATE KEY"])?;
        let der = if label == "RSA PRIVATE KEY" {
            pkcs8(&der)
        } else {
            der
        };
        let key = PrivateDecryptingKey::from_pkcs8(&der).map_err(|_| {
            error("the private key is not an RSA key of 2048 to 8192 bits without a passphrase")
        })?;
        let (users, warnings) = wire::Users::parse(users);
        if users.is_empty() {
            return Err(error(
                "the users file names no user, so no client could test",
            ));
        }
        let skew_seconds = skew_seconds.unwrap_or(wire::DEFAULT_SKEW_SECONDS);
        let seen = Mutex::new(wire::SeenTokens::new(skew_seconds, MOST_TOKENS));
        Ok((
            Self {
                key,
                users,
                padding,
                skew_seconds,
                seen,
            },
            warnings,
        ))
    }

    /// The user whose token this is, or why it is refused.
    pub(crate) fn verify(&self, token: &str, now: Nanos) -> Result<String, String> {
        let sealed = wire::decode_token(token).map_err(|error| error.to_string())?;
        let plain = self.open(&sealed).ok_or("the token cannot be opened with this server's key; are the keys and the padding (--use-pkcs1-padding) the same on both sides?")?;
        let credentials = wire::Credentials::parse(&plain).map_err(|error| error.to_string())?;
        wire::check_skew(credentials.timestamp, seconds(now), self.skew_seconds)
            .map_err(|error| error.to_string())?;
        let input = wire::password_digest_input(&credentials.user, &credentials.password);
        let hash = digest::digest(&digest::SHA256, input.as_bytes());
        let known = <&[u8; 32]>::try_from(hash.as_ref())
            .is_ok_and(|hash| self.users.allows(&credentials.user, hash));
        if !known {
            return Err("the user is not known or the password is wrong".to_owned());
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.accept(&sealed, credentials.timestamp, seconds(now))
            .map_err(|error| error.to_string())?;
        Ok(credentials.user)
    }

    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![0; self.key.key_size_bytes()];
        match self.padding {
            Padding::Oaep => {
                let key = OaepPrivateDecryptingKey::new(self.key.clone()).ok()?;
                Some(
                    key.decrypt(&OAEP_SHA1_MGF1SHA1, sealed, &mut out, None)
                        .ok()?
                        .to_vec(),
                )
            }
            Padding::Pkcs1 => {
                let key = Pkcs1PrivateDecryptingKey::new(self.key.clone()).ok()?;
                Some(key.decrypt(sealed, &mut out).ok()?.to_vec())
            }
        }
    }
}

/// Wraps an RSA key of PKCS#1 (RFC 8017, A.1.2) into PKCS#8 (RFC 5958).
fn pkcs8(pkcs1: &[u8]) -> Vec<u8> {
    /// Version 0 and the algorithm rsaEncryption with its NULL parameter.
    const HEAD: [u8; 18] = [
        0x02, 1, 0, 0x30, 13, 0x06, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 1, 0x05, 0,
    ];
    let inner = der(0x04, pkcs1);
    der(0x30, &[&HEAD[..], &inner].concat())
}

/// One DER element: tag, length, contents.
fn der(tag: u8, contents: &[u8]) -> Vec<u8> {
    let length = contents.len();
    let bytes = length.to_be_bytes();
    let significant = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
    let mut out = vec![tag];
    match (u8::try_from(length), u8::try_from(significant.len())) {
        (Ok(short), _) if short < 0x80 => out.push(short),
        (_, Ok(count)) => {
            out.push(0x80 | count);
            out.extend_from_slice(significant);
        }
        // A length has at most eight bytes.
        (_, Err(_)) => {}
    }
    out.extend_from_slice(contents);
    out
}
