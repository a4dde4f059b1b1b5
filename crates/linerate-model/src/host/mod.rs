//! What a host is: interfaces, settings with the files that set them, processors, counters.
//!
//! The facts of one instant, as a file between two programs or two hosts. What could not be read is a
//! [`Fact::Unknown`] with its reason. Counters are sums since boot, or since their device was made.

mod cpu_set;
mod fact;
mod interface;
mod setting;
mod steering;
mod storage;
mod system;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use cpu_set::{CpuSet, CpuSetError};
pub use fact::Fact;
pub use interface::{
    Bond, Channels, Coalescing, Driver, Feature, Interface, Interrupt, Link, LinkCounters, Pause,
    Pcie, Qdisc, Queue, QueueSide, Rings,
};
pub use setting::{Effect, Owner, Pinning, Setting};
pub use steering::{dealt, in_turn};
pub use storage::{
    Array, BlockQueue, Mount, NO_STRIPE, Scheduler, SpeedLimit, Storage, StorageDevice, WriteCache,
    Zoned,
};
pub use system::{Governor, Keeper, Node, Processors, RouteFacts, Softnet, System, is_ban};

/// The version of [`HostFacts`] in files. A reader ignores fields that it does not know, takes absent ones as
/// unknown, and refuses a newer version.
pub const SCHEMA_VERSION: u32 = 1;

/// Everything that is known of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// When they were taken, s since 1970; a label, nothing is computed from it.
    pub taken_unix_s: u64,
    /// Where files were read: `/`, or the folder that stood for it.
    pub root: String,
    /// The machine.
    pub system: System,
    /// CPUs, NUMA nodes and frequency governors.
    pub processors: Processors,
    /// Its interfaces, by index.
    pub interfaces: Fact<Vec<Interface>>,
    /// Those of the main table.
    pub routes: Fact<Vec<RouteFacts>>,
    /// Settings that run, by key: `net.ipv4.tcp_rmem`. Blanks in values are single.
    pub sysctls: BTreeMap<String, Fact<String>>,
    /// Lines of files that set keys, in the order in which they are read.
    pub settings: Fact<Vec<Setting>>,
    /// Lines of start-up files that pin interrupts.
    pub pinnings: Fact<Vec<Pinning>>,
    /// Programs that look after settings.
    pub keepers: Vec<Keeper>,
    /// Counters of the protocols: `Tcp.RetransSegs` …
    pub counters: Fact<BTreeMap<String, u64>>,
    /// Packet processing, by CPU.
    pub softnet: Fact<Vec<Softnet>>,
    /// Block devices and what is mounted from them.
    pub storage: Storage,
}

/// Why bytes are no facts of a host.
#[derive(Debug, thiserror::Error)]
pub enum HostFactsError {
    /// A newer build wrote them.
    #[error(
        "the facts have schema version {found}, this build reads up to {SCHEMA_VERSION}; a newer linerate can read them"
    )]
    Newer {
        /// The version.
        found: u64,
    },
    /// They are something else.
    #[error("these are not the facts of a host (`linerate host --json` writes them): {reason}")]
    NotFacts {
        /// What is wrong.
        reason: String,
    },
}

impl HostFacts {
    /// All interfaces that are known.
    fn all_interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.interfaces.known().into_iter().flatten()
    }

    /// The interface of this name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.all_interfaces()
            .find(|interface| interface.name == name)
    }

    /// A setting that runs.
    pub fn sysctl(&self, key: &str) -> Fact<String> {
        self.sysctls
            .get(key)
            .cloned()
            .unwrap_or_else(|| Fact::unknown(format!("{key} cannot be read here")))
    }

    /// The lines of files that set a key, in the order in which they are read.
    pub fn setters<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Setting> {
        self.settings
            .known()
            .into_iter()
            .flatten()
            .filter(move |setting| setting.key == key)
    }

    /// Those whose parent is the interface of this name.
    pub fn children<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Interface> {
        let stands_on = move |parent: &Option<String>| parent.as_deref() == Some(name);
        self.all_interfaces()
            .filter(move |other| other.parent.known().is_some_and(stands_on))
    }

    /// Those that stand on the interface of this name, at whatever height: its VLANs and macvlans, the bond or bridge
    /// that it is a member of, and what stands on these.
    pub fn above<'a>(&'a self, name: &'a str) -> Vec<&'a Interface> {
        let mut above: Vec<&Interface> = Vec::new();
        let mut below = name;
        let mut at = 0;
        // Each interface is added once, and there are as many as there are.
        loop {
            let master = self.interface(below).and_then(|one| one.master.as_deref());
            let master = master.and_then(|master| self.interface(master));
            for one in self.children(below).chain(master) {
                let known = one.name == name || above.iter().any(|other| other.name == one.name);
                if one.is_stacked() && !known {
                    above.push(one);
                }
            }
            let Some(next) = above.get(at) else {
                return above;
            };
            below = &next.name;
            at += 1;
        }
    }

    /// The members of a bond or bridge.
    pub fn members<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Interface> {
        self.all_interfaces()
            .filter(move |other| other.master.as_deref() == Some(name))
    }
}

/// How much a difference between two hosts matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "weight")]
pub enum Weight {
    /// It bears on throughput.
    Matters {
        /// On what.
        why: String,
    },
    /// One of the two is not known.
    Unknown,
    /// It differs, and nothing is known to depend on it.
    Other,
    /// Counters, names and addresses: no two hosts agree in them.
    Noise,
}

/// Something that differs between two hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What: `sysctls.net.ipv4.tcp_rmem`, `interfaces.eth0.mtu`.
    pub path: String,
    /// The first host's; absent where it has none.
    pub a: Option<String>,
    /// The second host's.
    pub b: Option<String>,
    /// How much it matters.
    #[serde(flatten)]
    pub weight: Weight,
}

/// How many hosts compare with what most of them have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Majority {
    /// All hosts, in their order.
    pub hosts: Vec<String>,
    /// Hosts that differ from most of the others, each in the same way; the most hosts first.
    pub deviations: Vec<Deviation>,
    /// What has no value that at least half of the hosts have, in the order of the paths.
    pub scattered: Vec<String>,
}

/// Hosts that differ from most of the others in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deviation {
    /// The hosts.
    pub hosts: Vec<String>,
    /// What differs: `a` is what most hosts have, `b` what these have.
    pub differences: Vec<Difference>,
}

/// What differs between two hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differences {
    /// Interfaces of different names that were compared, the first host's before the second's.
    pub pairs: Vec<(String, String)>,
    /// All that differs, by path.
    pub differences: Vec<Difference>,
}
