//! Who may connect: invitations and agents. Pure; the time is an argument.

use std::collections::BTreeMap;

use linerate_model::plain_text::PlainText;
use linerate_model::watch::UnixMillis;
use serde::{Deserialize, Serialize};

use super::sha256;

/// The longest name of a host, bytes.
const LONGEST_NAME: usize = 253;
/// The most invitations that are kept; used-up and expired ones go first.
const MOST_TOKENS: usize = 1_000;
/// The most agents.
const MOST_AGENTS: usize = 20_000;

/// Why an agent is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No invitation has this token.
    #[error("unknown or used-up token: `linerate hub token new` makes another")]
    UnknownToken,
    /// Its time is over.
    #[error("the token has expired: `linerate hub token new` makes another")]
    Expired,
    /// All its uses are spent.
    #[error("the token was used as often as it may be: `linerate hub token new` makes another")]
    UsedUp,
    /// A name that no host has.
    #[error("'{0}' is no name of a host: 1 to 253 letters, digits, dots, hyphens and underscores")]
    Name(PlainText),
    /// An agent of this name is enrolled.
    #[error(
        "an agent of the name '{0}' is enrolled already: `linerate hub agent revoke {0}` on the hub, then enrol again"
    )]
    NameTaken(PlainText),
    /// The key was enrolled before, maybe by a copy of this request.
    #[error("this key was enrolled before: a new enrolment needs a new key")]
    KeyTaken,
    /// The certificate is none that this hub remembers.
    #[error("this hub does not know the agent's certificate: enrol again with a new token")]
    UnknownCertificate,
    /// The agent was revoked.
    #[error("the agent '{0}' was revoked on the hub: it has to enrol again, with a new token")]
    Revoked(PlainText),
    /// There are too many.
    #[error("this hub has {MOST_AGENTS} agents already")]
    Full,
}

/// What a hub knows of invitations and agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Book {
    /// Invitations.
    #[serde(default)]
    tokens: Vec<Token>,
    /// Agents by name.
    #[serde(default)]
    agents: BTreeMap<String, Agent>,
    /// SHA-256 of the keys of agents that were revoked and whose name was given to another.
    #[serde(default)]
    former_keys: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Token {
    /// SHA-256 of the secret, which is kept nowhere.
    sha256: String,
    expires: UnixMillis,
    left: u32,
}

/// An agent that enrolled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// When it enrolled.
    pub enrolled: UnixMillis,
    /// When it was revoked; absent = it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<UnixMillis>,
    /// Its certificates, the latest last: two at most, so that one who could not store the new one has the old one.
    certificates: Vec<Certificate>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Certificate {
    /// Of its DER.
    sha256: String,
    /// Of its public key.
    key: String,
    not_after: UnixMillis,
}

impl Agent {
    /// Until when its latest certificate is valid.
    pub fn not_after(&self) -> Option<UnixMillis> {
        self.certificates.last().map(|latest| latest.not_after)
    }
}

/// A certificate that is to be entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed<'a> {
    /// SHA-256 of its DER.
    pub sha256: &'a str,
    /// SHA-256 of its public key.
    pub key: &'a str,
    /// Until when it is valid.
    pub not_after: UnixMillis,
}

impl Signed<'_> {
    fn entry(&self) -> Certificate {
        Certificate {
            sha256: self.sha256.to_owned(),
            key: self.key.to_owned(),
            not_after: self.not_after,
        }
    }
}

impl Book {
    /// Remembers an invitation by the SHA-256 of its token.
    pub fn invite(&mut self, now: UnixMillis, token: &str, expires: UnixMillis, uses: u32) {
        self.tokens
            .retain(|token| token.left > 0 && token.expires > now);
        let many = self.tokens.len().saturating_sub(MOST_TOKENS - 1);
        self.tokens.drain(..many);
        self.tokens.push(Token {
            sha256: sha256(token.as_bytes()),
            expires,
            left: uses,
        });
    }

    /// Takes one use of a token and enters the agent. Nothing changes where it is refused.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn enrol(
        &mut self,
        now: UnixMillis,
        token: &str,
        name: &str,
        signed: &Signed<'_>,
    ) -> Result<(), Refusal> {
        let hash = sha256(token.as_bytes());
        let mut tokens = self.tokens.iter_mut();
        let token = tokens
            .find(|token| token.sha256 == hash)
            .ok_or(Refusal::UnknownToken)?;
        if token.expires <= now {
            return Err(Refusal::Expired);
        }
        if token.left == 0 {
            return Err(Refusal::UsedUp);
        }
        if !is_name(name) {
            return Err(Refusal::Name(name.into()));
        }
        let certificates = self.agents.values().flat_map(|agent| &agent.certificates);
        let mut keys = certificates.map(|one| &one.key).chain(&self.former_keys);
        if keys.any(|key| key == signed.key) {
            return Err(Refusal::KeyTaken);
        }
        if let Some(agent) = self.agents.get(name) {
            if agent.revoked.is_none() {
                return Err(Refusal::NameTaken(name.into()));
            }
        } else if self.agents.len() >= MOST_AGENTS {
            return Err(Refusal::Full);
        }
        token.left -= 1;
        let agent = Agent {
            enrolled: now,
            revoked: None,
            certificates: vec![signed.entry()],
        };
        if let Some(former) = self.agents.insert(name.to_owned(), agent) {
            let keys = former.certificates.into_iter().map(|one| one.key);
            self.former_keys.extend(keys);
        }
        Ok(())
    }

    /// Enters a new certificate of an agent beside the one that it has.
    ///
    /// # Errors
    /// Where the agent may not connect, or the key is another's.
    pub fn renew(&mut self, certificate: &str, signed: &Signed<'_>) -> Result<String, Refusal> {
        let name = self.holder(certificate)?.to_owned();
        let all = self.agents.values().flat_map(|agent| &agent.certificates);
        let mut keys = all.map(|one| &one.key).chain(&self.former_keys);
        if keys.any(|key| key == signed.key) {
            return Err(Refusal::KeyTaken);
        }
        if let Some(agent) = self.agents.get_mut(&name) {
            agent.certificates.retain(|one| one.sha256 == certificate);
            agent.certificates.push(signed.entry());
        }
        Ok(name)
    }

    /// Whose certificate this is, by the SHA-256 of its DER.
    ///
    /// # Errors
    /// Where it is nobody's, or its agent was revoked.
    pub fn holder(&self, certificate: &str) -> Result<&str, Refusal> {
        let mut agents = self.agents.iter();
        let (name, agent) = agents
            .find(|(_, agent)| {
                let mut own = agent.certificates.iter();
                own.any(|one| one.sha256 == certificate)
            })
            .ok_or(Refusal::UnknownCertificate)?;
        match agent.revoked {
            Some(_) => Err(Refusal::Revoked(name.as_str().into())),
            None => Ok(name),
        }
    }

    /// The certificates that may be served: those of which [`Self::holder`] names one.
    pub(super) fn served(&self) -> impl Iterator<Item = &str> {
        let agents = self.agents.values().filter(|agent| agent.revoked.is_none());
        let certificates = agents.flat_map(|agent| &agent.certificates);
        certificates.map(|one| one.sha256.as_str())
    }

    /// Revokes an agent; whether there is one of this name.
    pub fn revoke(&mut self, now: UnixMillis, name: &str) -> bool {
        let agent = self.agents.get_mut(name);
        let is_known = agent.is_some();
        if let Some(agent) = agent {
            agent.revoked.get_or_insert(now);
        }
        is_known
    }

    /// The agents by name.
    pub fn agents(&self) -> impl Iterator<Item = (&str, &Agent)> {
        self.agents
            .iter()
            .map(|(name, agent)| (name.as_str(), agent))
    }
}

/// Whether a host can have this name.
pub fn is_name(name: &str) -> bool {
    let fits = |letter: u8| letter.is_ascii_alphanumeric() || b".-_".contains(&letter);
    (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(fits)
        && !name.starts_with(['-', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_000_000);
    const LATER: UnixMillis = UnixMillis(2_000_000);

    fn signed<'a>(sha256: &'a str, key: &'a str) -> Signed<'a> {
        Signed {
            sha256,
            key,
            not_after: UnixMillis(9_000_000),
        }
    }

    fn book(uses: u32) -> Book {
        let mut book = Book::default();
        book.invite(NOW, "secret", LATER, uses);
        book
    }

    #[test]
    fn a_token_is_taken_as_often_as_it_may_be_and_no_longer_than_that() {
        let mut book = book(2);
        let mut enrol = |now, token, name, key| book.enrol(now, token, name, &signed(key, key));
        assert_eq!(enrol(NOW, "other", "n1", "k1"), Err(Refusal::UnknownToken));
        assert_eq!(enrol(LATER, "secret", "n1", "k1"), Err(Refusal::Expired));
        assert_eq!(enrol(NOW, "secret", "n1", "k1"), Ok(()));
        // Refused ones cost no use.
        assert_eq!(
            enrol(NOW, "secret", "n1", "k2"),
            Err(Refusal::NameTaken("n1".into()))
        );
        assert_eq!(enrol(NOW, "secret", "n2", "k1"), Err(Refusal::KeyTaken));
        assert!(matches!(
            enrol(NOW, "secret", "-x", "k2"),
            Err(Refusal::Name(_))
        ));
        assert_eq!(enrol(NOW, "secret", "n2", "k2"), Ok(()));
        assert_eq!(enrol(NOW, "secret", "n3", "k3"), Err(Refusal::UsedUp));
    }

    #[test]
    fn the_secret_of_a_token_is_kept_nowhere() {
        let text = serde_json::to_string(&book(1)).unwrap();
        assert!(!text.contains("secret"), "{text}");
    }

    #[test]
    fn a_revoked_agent_holds_nothing_and_its_key_never_comes_back() {
        let mut book = book(9);
        book.enrol(NOW, "secret", "n1", &signed("c1", "k1"))
            .unwrap();
        assert_eq!(book.holder("c1"), Ok("n1"));
        assert!(book.revoke(NOW, "n1"));
        assert!(!book.revoke(NOW, "n2"));
        let revoked = || Refusal::Revoked("n1".into());
        assert_eq!(book.holder("c1"), Err(revoked()));
        assert_eq!(book.renew("c1", &signed("c9", "k9")), Err(revoked()));
        // The host comes back with a new key.
        let again = book.enrol(NOW, "secret", "n1", &signed("c2", "k1"));
        assert_eq!(again, Err(Refusal::KeyTaken));
        book.enrol(NOW, "secret", "n1", &signed("c2", "k2"))
            .unwrap();
        assert_eq!(book.holder("c1"), Err(Refusal::UnknownCertificate));
        assert_eq!(book.holder("c2"), Ok("n1"));
        let again = book.enrol(NOW, "secret", "n2", &signed("c3", "k1"));
        assert_eq!(again, Err(Refusal::KeyTaken));
    }

    #[test]
    fn a_renewed_agent_has_its_last_two_certificates() {
        let mut book = book(9);
        book.enrol(NOW, "secret", "n1", &signed("c1", "k1"))
            .unwrap();
        assert_eq!(book.renew("c1", &signed("c2", "k2")).unwrap(), "n1");
        assert_eq!(book.holder("c1"), Ok("n1"));
        // The answer was lost: it asks again with the old one.
        assert_eq!(book.renew("c1", &signed("c3", "k3")).unwrap(), "n1");
        assert_eq!(book.holder("c2"), Err(Refusal::UnknownCertificate));
        assert_eq!(book.renew("c3", &signed("c4", "k4")).unwrap(), "n1");
        assert_eq!(book.holder("c1"), Err(Refusal::UnknownCertificate));
        assert_eq!(book.holder("c4"), Ok("n1"));
    }

    #[test]
    fn the_certificates_that_are_served_are_those_that_somebody_holds() {
        let mut book = book(9);
        for number in 1..4 {
            let (name, own) = (format!("n{number}"), format!("c{number}"));
            let key = format!("k{number}");
            book.enrol(NOW, "secret", &name, &signed(&own, &key))
                .unwrap();
        }
        book.renew("c2", &signed("c9", "k9")).unwrap();
        book.revoke(NOW, "n3");
        let served: Vec<&str> = book.served().collect();
        assert_eq!(served, ["c1", "c2", "c9"]);
        for certificate in ["c1", "c2", "c3", "c4", "c9"] {
            let holds = book.holder(certificate).is_ok();
            assert_eq!(served.contains(&certificate), holds, "{certificate}");
        }
    }
}
