//! Who is logged in. Sessions are in memory: a restart of the hub ends them.

use std::collections::BTreeMap;

use linerate_model::hexadecimal;
use linerate_model::watch::UnixMillis;

use super::{random, sha256};

/// Sessions at most; the one that was used longest ago gives way.
const MOST: usize = 1_024;
/// A session ends when it was not used for this time, ms.
const IDLE_MILLIS: u64 = 12 * 3_600_000;
/// A session ends this time after the login, ms.
const LONGEST_MILLIS: u64 = 7 * 86_400_000;

/// By the SHA-256 of the secret that a browser has.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    open: BTreeMap<[u8; 32], Session>,
}

#[derive(Debug)]
struct Session {
    user: String,
    /// The hash of the password at the login: with another one the session ends.
    password: String,
    opened: UnixMillis,
    used: UnixMillis,
}

impl Session {
    fn lasts(&self, now: UnixMillis) -> bool {
        now.since(self.used) < IDLE_MILLIS && now.since(self.opened) < LONGEST_MILLIS
    }
}

impl Sessions {
    /// Begins a session; the secret for the browser.
    pub(super) fn open(
        &mut self,
        user: &str,
        password: &str,
        now: UnixMillis,
    ) -> Result<String, String> {
        let secret = hexadecimal::digits(&random::<32>()?);
        self.open.retain(|_, session| session.lasts(now));
        while self.open.len() >= MOST {
            let oldest = self.open.iter().min_by_key(|(_, session)| session.used);
            let Some(key) = oldest.map(|(key, _)| *key) else {
                break;
            };
            self.open.remove(&key);
        }
        let session = Session {
            user: user.to_owned(),
            password: password.to_owned(),
            opened: now,
            used: now,
        };
        self.open.insert(sha256(secret.as_bytes()), session);
        Ok(secret)
    }

    /// The user and the hash of its password at the login, where such a session lasts.
    pub(super) fn of(&mut self, secret: &str, now: UnixMillis) -> Option<(&str, &str)> {
        let session = self.open.get_mut(&sha256(secret.as_bytes()))?;
        if !session.lasts(now) {
            return None;
        }
        session.used = now;
        Some((&session.user, &session.password))
    }

    /// Ends a session.
    pub(super) fn end(&mut self, secret: &str) {
        self.open.remove(&sha256(secret.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_end_and_are_bounded() {
        let mut sessions = Sessions::default();
        let at = UnixMillis;
        let first = sessions.open("ada", "h", at(0)).unwrap();
        assert_eq!(sessions.of(&first, at(IDLE_MILLIS - 1)), Some(("ada", "h")));
        assert_eq!(sessions.of(&first, at(2 * IDLE_MILLIS)), None);
        assert_eq!(sessions.of("", at(0)), None);
        let used = sessions.open("ada", "h", at(0)).unwrap();
        let mut now = 0;
        while now + IDLE_MILLIS / 2 < LONGEST_MILLIS {
            now += IDLE_MILLIS / 2;
            assert!(sessions.of(&used, at(now)).is_some(), "{now}");
        }
        assert_eq!(sessions.of(&used, at(LONGEST_MILLIS)), None);
        for _ in 0..2 * MOST {
            sessions.open("eve", "h", at(now)).unwrap();
        }
        assert_eq!(sessions.open.len(), MOST);
        let last = sessions.open("ada", "h", at(now)).unwrap();
        sessions.end(&last);
        assert_eq!(sessions.of(&last, at(now)), None);
    }
}
