//! What of a host can make the same test give another figure: a list of facts and a hash of it.
//!
//! A fingerprint holds what somebody sets or installs: kernel, driver, firmware, offloads, coalescing, rings, queues with
//! their CPUs, mitigations, microcode, sysctls, queueing disciplines and the stack below each file system. It leaves out
//! what changes by itself: counters, times, process ids, addresses, what a driver or irqbalance chooses from moment to
//! moment. What is not known is not in it.
//!
//! ```
//! use linerate_model::fingerprint::{Fingerprint, Key, Subject};
//!
//! let of = |kernel: &str| Fingerprint::of([(Key::of(Subject::Kernel), kernel.into())]);
//! assert_eq!(of("6.1.0-41"), of("6.1.0-41"));
//! assert_ne!(of("6.1.0-41").hash, of("6.1.0-42").hash);
//! ```

mod carrier;
mod of_host;
mod storage;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::plain_text::PlainText;
use crate::record::{HostFacts, InterfaceFacts};

pub use of_host::SYSCTLS;

/// The most facts of one fingerprint: a host has about two hundred. A list with more ends there.
pub const MOST_FACTS: usize = 1024;
/// The longest value, bytes; a longer one is cut and ends in `…`.
pub const LONGEST_VALUE: usize = 512;

/// What a fact is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The kernel's release (`uname -r`).
    Kernel,
    /// Which build of it (`uname -v`).
    KernelBuild,
    /// What the kernel does about a weakness of the processor, by the name of the weakness.
    Mitigation,
    /// The microcode of the first processor.
    Microcode,
    /// The driver of the interface that carries the test.
    Driver,
    /// The driver's own version; a driver of the kernel itself has none.
    DriverVersion,
    /// The device's firmware.
    Firmware,
    /// Whether an offload is on, by the kernel's name for it.
    Offload,
    /// How long interrupts wait for more packets.
    Coalescing,
    /// Descriptors of a ring.
    Ring,
    /// How many queues there are, and which CPUs they use.
    Queues,
    /// The queueing disciplines.
    Qdisc,
    /// A setting of the kernel that the audit looks at.
    Sysctl,
    /// A file system with all that it stands on, by the place where it is mounted.
    Storage,
}

/// Each subject and its word; those with `true` have a name after the word.
const WORDS: [(Subject, &str, bool); 14] = [
    (Subject::Kernel, "kernel", false),
    (Subject::KernelBuild, "kernel-build", false),
    (Subject::Mitigation, "mitigation", true),
    (Subject::Microcode, "microcode", false),
    (Subject::Driver, "driver", false),
    (Subject::DriverVersion, "driver-version", false),
    (Subject::Firmware, "firmware", false),
    (Subject::Offload, "offload", true),
    (Subject::Coalescing, "coalescing", true),
    (Subject::Ring, "ring", true),
    (Subject::Queues, "queues", true),
    (Subject::Qdisc, "qdisc", false),
    (Subject::Sysctl, "sysctl", true),
    (Subject::Storage, "storage", true),
];

impl Subject {
    /// The word that a key begins with.
    pub fn word(self) -> &'static str {
        let own = WORDS.iter().find(|(subject, ..)| *subject == self);
        own.map_or("", |(_, word, _)| word)
    }
}

/// A fact's name: `kernel`, `offload.tx-tcp-segmentation`, `sysctl.net.ipv4.tcp_rmem`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// What it is about.
    pub subject: Subject,
    /// Which of several; `None` for a subject with one fact.
    pub name: Option<PlainText>,
}

/// A text that is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not the name of a fact such as kernel or offload.tx-tcp-segmentation")]
pub struct KeyError(PlainText);

impl Key {
    /// The key of a subject with one fact.
    pub const fn of(subject: Subject) -> Self {
        Self {
            subject,
            name: None,
        }
    }

    /// The key of one of several.
    pub fn named(subject: Subject, name: &str) -> Self {
        Self {
            subject,
            name: Some(name.into()),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.subject.word())?;
        self.name.iter().try_for_each(|name| write!(f, ".{name}"))
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let (word, name) = match text.split_once('.') {
            Some((word, name)) => (word, Some(name).filter(|name| !name.is_empty())),
            None => (text, None),
        };
        let known = |(_, own, named): &&(Subject, &str, bool)| {
            *own == word && *named == name.is_some() && (*named || !text.contains('.'))
        };
        let (subject, ..) = WORDS
            .iter()
            .find(known)
            .ok_or_else(|| KeyError(text.into()))?;
        Ok(Self {
            subject: *subject,
            name: name.map(PlainText::from),
        })
    }
}

/// What tells two lists apart: 64 bits, as 16 hexadecimal digits.
///
/// Equal lists have equal hashes. A linerate that reads other facts than this one gives the same host another hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(u64);

impl Hash {
    /// FNV-1a of 64 bits (RFC 9923) over keys and values, each ended by a byte that no text has.
    fn of(facts: &BTreeMap<Key, PlainText>) -> Self {
        let texts = facts
            .iter()
            .flat_map(|(key, value)| [key.to_string(), value.to_string()]);
        Self(texts.fold(0xcbf2_9ce4_8422_2325, |hash, text| {
            text.bytes().chain([0xff]).fold(hash, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            })
        }))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The facts by name, and their hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Computed from the list, also where a file states another one.
    pub hash: Hash,
    facts: BTreeMap<Key, PlainText>,
}

impl Fingerprint {
    /// The fingerprint of these facts; at most [`MOST_FACTS`], each at most [`LONGEST_VALUE`] long.
    pub fn of(facts: impl IntoIterator<Item = (Key, PlainText)>) -> Self {
        let facts: BTreeMap<Key, PlainText> = facts.into_iter().collect();
        let facts = facts.into_iter().take(MOST_FACTS);
        let facts = facts.map(|(key, value)| (key, shortened(value))).collect();
        Self {
            hash: Hash::of(&facts),
            facts,
        }
    }

    /// The facts, by subject and name.
    pub fn facts(&self) -> impl Iterator<Item = (&Key, &PlainText)> {
        self.facts.iter()
    }

    /// A fact; `None` = not known.
    pub fn fact(&self, key: &Key) -> Option<&PlainText> {
        self.facts.get(key)
    }

    /// What a record without a fingerprint tells of the same facts.
    pub fn older(host: &HostFacts, interface: Option<&InterfaceFacts>) -> Self {
        of_host::older(host, interface)
    }
}

fn shortened(value: PlainText) -> PlainText {
    if value.len() <= LONGEST_VALUE {
        return value;
    }
    let mut end = LONGEST_VALUE - '…'.len_utf8();
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &value[..end]).into()
}

/// As it is written: the hash for programs that only compare, and the list.
#[derive(Serialize)]
struct Written<'a> {
    hash: Hash,
    facts: BTreeMap<String, &'a PlainText>,
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let facts = self.facts();
        let written = Written {
            hash: self.hash,
            facts: facts.map(|(key, value)| (key.to_string(), value)).collect(),
        };
        written.serialize(serializer)
    }
}

#[derive(Deserialize)]
struct Read {
    #[serde(default)]
    facts: BTreeMap<String, PlainText>,
}

impl<'de> Deserialize<'de> for Fingerprint {
    /// Facts that this build does not know are left out.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Read::deserialize(deserializer)?;
        let known = |(key, value): (String, PlainText)| Some((key.parse().ok()?, value));
        Ok(Self::of(read.facts.into_iter().filter_map(known)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Fingerprint {
        Fingerprint::of([
            (Key::of(Subject::Kernel), "6.1.0-41-amd64".into()),
            (
                Key::named(Subject::Sysctl, "net.ipv4.tcp_rmem"),
                "1 2 3".into(),
            ),
        ])
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        for text in [
            "kernel",
            "driver-version",
            "offload.tx-tcp-segmentation",
            "sysctl.net.ipv4.tcp_rmem",
            "storage./srv/a b",
        ] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
        }
        for wrong in ["", "kernal", "kernel.x", "kernel.", "offload", "offload."] {
            assert!(wrong.parse::<Key>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_list_survives_json_and_its_hash_is_computed_from_it() {
        let text = serde_json::to_string(&some()).unwrap();
        assert_eq!(serde_json::from_str::<Fingerprint>(&text).unwrap(), some());
        let hash = some().hash.to_string();
        assert!(
            hash.len() == 16 && text.contains(&format!(r#""hash":"{hash}""#)),
            "{text}"
        );
        // A peer cannot state another hash than that of its list, nor facts that are none.
        let stated = text
            .replace(&hash, "0000000000000000")
            .replace(r#""facts":{"#, r#""facts":{"strange.fact":"x","#);
        assert_ne!(stated, text);
        assert_eq!(
            serde_json::from_str::<Fingerprint>(&stated).unwrap(),
            some()
        );
    }

    #[test]
    fn values_and_keys_do_not_run_into_each_other() {
        let of = |name: &str, value: &str| {
            Fingerprint::of([(Key::named(Subject::Sysctl, name), value.into())]).hash
        };
        assert_ne!(of("a", "bc"), of("ab", "c"));
    }

    #[test]
    fn a_peers_list_is_bounded() {
        let many = (0..5000).map(|number| {
            let key = Key::named(Subject::Sysctl, &format!("key{number}"));
            (key, "é".repeat(1000).into())
        });
        let bounded = Fingerprint::of(many);
        assert_eq!(bounded.facts().count(), MOST_FACTS);
        assert!(
            bounded
                .facts()
                .all(|(_, value)| value.len() <= LONGEST_VALUE && value.ends_with('…'))
        );
    }
}
