//! What a star is made of.

use linerate_model::mesh::MeshCauseKind;
use linerate_model::units::{BitRate, Nanos};
use serde::{Deserialize, Serialize};

use crate::scenario::HostSpec;

/// The most hosts of a star: each has a network of four addresses out of 192.0.2.0/24 (RFC 5737).
pub const MOST_HOSTS: usize = 60;
/// The most members of all trunks together: each has one out of 198.51.100.0/24.
pub const MOST_LINKS: usize = 60;

/// Hosts on switches, and trunks between these.
#[derive(Debug, Clone, PartialEq)]
pub struct Star {
    /// Its name.
    pub name: String,
    /// What it shows, in one sentence.
    pub about: String,
    /// Decides which member of a trunk a connection takes.
    pub seed: u64,
    /// At least one; each reaches each other over trunks.
    pub switches: Vec<Switch>,
    /// At most one between two switches.
    pub trunks: Vec<Trunk>,
    /// 2 to [`MOST_HOSTS`], in the order of the switches.
    pub hosts: Vec<StarHost>,
    /// What a mesh of tests has to find first; `None` where the file does not say.
    pub expect: Option<Expected>,
}

/// A switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// Each packet of its hosts waits here for so long before it goes on.
    pub delay: Nanos,
}

/// A link of switches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trunk {
    /// Places of the two switches in [`Star::switches`].
    pub between: [usize; 2],
    /// Its links. A connection takes one of them in each direction, by a hash of its addresses and ports.
    pub members: Vec<Member>,
    /// The largest packet, bytes.
    pub mtu: u32,
}

/// One link of a trunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its rate in each direction: IP bytes and 38 bytes a packet.
    pub rate: BitRate,
    /// How long a packet waits in a full queue.
    pub queue: Nanos,
}

/// A host.
#[derive(Debug, Clone, PartialEq)]
pub struct StarHost {
    /// Its name.
    pub name: String,
    /// Place of its switch in [`Star::switches`].
    pub switch: usize,
    /// Rate of what it sends: IP bytes and 38 bytes a packet.
    pub rate_out: BitRate,
    /// Rate of what it receives.
    pub rate_in: BitRate,
    /// How long a packet waits in a full queue, in its own interface and in the switch's.
    pub queue: Nanos,
    /// What of it does not work; `None`: all does.
    pub down: Option<Down>,
    /// Its settings.
    pub spec: HostSpec,
}

/// How a host is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Down {
    /// Its interface has no link; commands can be run on it.
    Link,
    /// No command can be run on it either.
    Host,
}

/// What a mesh of tests over the star has to find first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// The kind of cause; `None`: nothing is wrong, and nothing may be named.
    pub kind: Option<MeshCauseKind>,
    /// Its acceptable names: a host, `A > B` for a pair or a trunk; empty where nothing is wrong.
    pub names: Vec<String>,
}
