//! Users, their roles, and the hashes of what proves who they are.

use std::collections::BTreeMap;

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use linerate_model::hexadecimal;
use linerate_model::plain_text::PlainText;
use linerate_model::watch::UnixMillis;
use serde::{Deserialize, Serialize};

use super::{random, sha256};

/// Users of a hub at most.
pub const MOST_USERS: usize = 1_000;
/// API tokens of a user at most.
pub const MOST_TOKENS: usize = 16;
/// A name or a label has at most so many characters.
pub const LONGEST_NAME: usize = 64;
/// A password has at least so many bytes.
pub const SHORTEST_PASSWORD: usize = 8;
/// A password has at most so many bytes.
pub const LONGEST_PASSWORD: usize = 1_024;
/// What every API token begins with, so that scanners of leaked secrets find it.
const PREFIX: &str = "linerate_";
/// The hash of no password, which takes as long as that of a user.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// What somebody may do; each may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads pages, API and metrics.
    Viewer,
    /// Also makes and ends silences, and asks for tests.
    Operator,
    /// At present the same as an operator: users are managed on the hub's host.
    Admin,
}

/// All users of a hub: what `users.json` holds. It has hashes of passwords and tokens, and no secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Users {
    users: BTreeMap<String, User>,
}

/// A person or a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// What it may do.
    pub role: Role,
    /// The argon2id hash of its password; absent = it cannot log in, and has API tokens alone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    password: Option<String>,
    /// By their labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    tokens: BTreeMap<String, ApiToken>,
}

/// An API token, without the token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApiToken {
    /// Of the whole token, in hexadecimal digits.
    sha256: String,
    made: UnixMillis,
}

/// Why users stay as they were.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UsersError {
    /// Not a name.
    #[error(
        "'{0}' is no name: a name has 1 to {LONGEST_NAME} letters, digits, '.', '_', '-' and '@'"
    )]
    Name(PlainText),
    /// Too short or too long.
    #[error("a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} bytes; this one has {0}")]
    Password(usize),
    /// No such user.
    #[error("there is no user '{0}'; `linerate hub user list` names all")]
    Unknown(PlainText),
    /// No such token.
    #[error("{user} has no token '{label}'; `linerate hub user list` names all")]
    UnknownToken {
        /// Whose.
        user: PlainText,
        /// Its label.
        label: PlainText,
    },
    /// There is one already.
    #[error("{user} has a token '{label}' already: remove it, or give the new one another label")]
    KnownToken {
        /// Whose.
        user: PlainText,
        /// Its label.
        label: PlainText,
    },
    /// A bound.
    #[error("there are {0} already, which is the most; remove one first")]
    TooMany(&'static str),
    /// The system's random numbers or the hash failed.
    #[error("cannot hash a secret: {0}")]
    Hash(String),
    /// Text that is no such file.
    #[error("this is not what `linerate hub user` writes: {0}")]
    Broken(String),
}

impl Role {
    /// All, the least first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl User {
    /// Whether it can log in.
    pub const fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// The labels of its API tokens and when each was made.
    pub fn tokens(&self) -> impl Iterator<Item = (&str, UnixMillis)> {
        let tokens = self.tokens.iter();
        tokens.map(|(label, token)| (label.as_str(), token.made))
    }
}

impl Users {
    /// From the text of a file.
    ///
    /// # Errors
    /// [`UsersError::Broken`] where [`Self::to_text`] does not write such a text, and bounds.
    pub fn from_text(text: &str) -> Result<Self, UsersError> {
        let broken = |why: String| UsersError::Broken(why);
        let users: Self = serde_json::from_str(text).map_err(|error| broken(error.to_string()))?;
        if users.users.len() > MOST_USERS {
            return Err(UsersError::TooMany("1,000 users"));
        }
        for (name, user) in &users.users {
            checked(name)?;
            if let Some(hash) = &user.password {
                PasswordHash::new(hash).map_err(|error| broken(format!("{name}: {error}")))?;
            }
        }
        Ok(users)
    }

    /// The text of a file.
    ///
    /// # Errors
    /// Those of making JSON.
    pub fn to_text(&self) -> Result<String, UsersError> {
        serde_json::to_string_pretty(self).map_err(|error| UsersError::Broken(error.to_string()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// All, by their names.
    pub fn all(&self) -> impl Iterator<Item = (&str, &User)> {
        self.users.iter().map(|(name, user)| (name.as_str(), user))
    }

    /// The user of this name.
    pub fn named(&self, name: &str) -> Option<&User> {
        self.users.get(name)
    }

    /// Adds a user, or gives one that is there another role and password; its tokens stay. Whether it is new.
    ///
    /// # Errors
    /// A name or a password that is none, and bounds.
    pub fn add(
        &mut self,
        name: &str,
        role: Role,
        password: Option<&str>,
    ) -> Result<bool, UsersError> {
        checked(name)?;
        let password = password.map(hashed).transpose()?;
        if let Some(known) = self.users.get_mut(name) {
            known.role = role;
            known.password = password;
            return Ok(false);
        }
        if self.users.len() >= MOST_USERS {
            return Err(UsersError::TooMany("1,000 users"));
        }
        let tokens = BTreeMap::new();
        let user = User {
            role,
            password,
            tokens,
        };
        self.users.insert(name.to_owned(), user);
        Ok(true)
    }

    /// Removes a user and its tokens.
    ///
    /// # Errors
    /// Where there is none of this name.
    pub fn remove(&mut self, name: &str) -> Result<(), UsersError> {
        let removed = self.users.remove(name);
        removed
            .map(drop)
            .ok_or_else(|| UsersError::Unknown(name.into()))
    }

    /// Makes an API token: 256 random bits, of which only the hash stays here.
    ///
    /// # Errors
    /// An unknown user, a label that is none or taken, and bounds.
    pub fn make_token(
        &mut self,
        name: &str,
        label: &str,
        now: UnixMillis,
    ) -> Result<String, UsersError> {
        checked(label)?;
        let user = self.user(name)?;
        if user.tokens.contains_key(label) {
            let (user, label) = (name.into(), label.into());
            return Err(UsersError::KnownToken { user, label });
        }
        if user.tokens.len() >= MOST_TOKENS {
            return Err(UsersError::TooMany("16 tokens of this user"));
        }
        let secret = random::<32>().map_err(UsersError::Hash)?;
        let token = format!("{PREFIX}{}", hexadecimal::digits(&secret));
        let kept = ApiToken {
            sha256: hexadecimal::digits(&sha256(token.as_bytes())),
            made: now,
        };
        user.tokens.insert(label.to_owned(), kept);
        Ok(token)
    }

    /// Removes an API token.
    ///
    /// # Errors
    /// Where there is no such user or token.
    pub fn remove_token(&mut self, name: &str, label: &str) -> Result<(), UsersError> {
        let removed = self.user(name)?.tokens.remove(label);
        removed.map(drop).ok_or_else(|| UsersError::UnknownToken {
            user: name.into(),
            label: label.into(),
        })
    }

    fn user(&mut self, name: &str) -> Result<&mut User, UsersError> {
        let user = self.users.get_mut(name);
        user.ok_or_else(|| UsersError::Unknown(name.into()))
    }

    /// Whose API token this is.
    pub(super) fn of_token(&self, token: &str) -> Option<(&str, &User)> {
        let hash = hexadecimal::digits(&sha256(token.as_bytes()));
        self.all().find(|(_, user)| {
            let mut tokens = user.tokens.values();
            tokens.any(|kept| {
                verify_slices_are_equal(kept.sha256.as_bytes(), hash.as_bytes()).is_ok()
            })
        })
    }

    /// The hash of a user's password; absent = it cannot log in.
    pub(super) fn password_hash(&self, name: &str) -> Option<&str> {
        self.users.get(name)?.password.as_deref()
    }
}

/// Whether a password is the one of this hash; of no hash it is none, which takes the same time. Takes some ten
/// milliseconds and 19 MiB.
pub(super) fn is_password(password: &str, hash: Option<&str>) -> bool {
    let fits = PasswordHash::new(hash.unwrap_or(NOBODY)).is_ok_and(|hash| {
        let password = password.as_bytes();
        Argon2::default().verify_password(password, &hash).is_ok()
    });
    fits && hash.is_some()
}

fn hashed(password: &str) -> Result<String, UsersError> {
    if !(SHORTEST_PASSWORD..=LONGEST_PASSWORD).contains(&password.len()) {
        return Err(UsersError::Password(password.len()));
    }
    let failed = |error: argon2::password_hash::Error| UsersError::Hash(error.to_string());
    let salt = random::<16>().map_err(UsersError::Hash)?;
    let salt = SaltString::encode_b64(&salt).map_err(failed)?;
    let hash = Argon2::default().hash_password(password.as_bytes(), &salt);
    Ok(hash.map_err(failed)?.to_string())
}

fn checked(name: &str) -> Result<(), UsersError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    if (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(fits) {
        return Ok(());
    }
    let short: String = name.chars().take(LONGEST_NAME).collect();
    Err(UsersError::Name(short.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_kept_as_hashes_alone() {
        let mut users = Users::default();
        assert_eq!(
            users.add("ada", Role::Admin, Some("correct horse")),
            Ok(true)
        );
        let token = users.make_token("ada", "ci", UnixMillis(1)).unwrap();
        assert_eq!(token.len(), PREFIX.len() + 64);
        let text = users.to_text().unwrap();
        assert!(!text.contains("correct horse") && !text.contains(&token[PREFIX.len()..]));
        assert!(text.contains("$argon2id$v=19$m=19456,t=2,p=1$"), "{text}");
        let read = Users::from_text(&text).unwrap();
        assert_eq!(read, users);
        let hash = read.password_hash("ada");
        assert!(is_password("correct horse", hash) && !is_password("correct hors", hash));
        assert!(!is_password("", None) && PasswordHash::new(NOBODY).is_ok());
        assert_eq!(read.of_token(&token).unwrap().0, "ada");
        assert!(read.of_token(&token[1..]).is_none() && read.of_token("").is_none());
        users.remove_token("ada", "ci").unwrap();
        assert!(users.of_token(&token).is_none());
    }

    #[test]
    fn names_passwords_and_numbers_have_bounds() {
        let mut users = Users::default();
        let long = "x".repeat(65);
        for name in ["", "a b", "<b>", "ä", "a\n", long.as_str()] {
            let refused = users.add(name, Role::Viewer, None);
            assert!(matches!(refused, Err(UsersError::Name(_))), "{name:?}");
        }
        let refused = users.add("ada", Role::Viewer, Some("short"));
        assert_eq!(refused, Err(UsersError::Password(5)));
        users.add("ada", Role::Viewer, None).unwrap();
        for number in 0..MOST_TOKENS {
            let label = format!("t{number}");
            users.make_token("ada", &label, UnixMillis(1)).unwrap();
        }
        for label in ["t0", "t99"] {
            assert!(users.make_token("ada", label, UnixMillis(1)).is_err());
        }
        assert!(
            users.remove("eve").is_err() && users.make_token("eve", "x", UnixMillis(1)).is_err()
        );
        for text in [
            "",
            "{}",
            r#"{"users":{"a b":{"role":"admin"}}}"#,
            r#"{"users":{"a":{"role":"root"}}}"#,
        ] {
            assert!(Users::from_text(text).is_err(), "{text}");
        }
        assert!(
            Users::from_text(r#"{"users":{"a":{"role":"admin","password":"plain"}}}"#).is_err()
        );
    }
}
