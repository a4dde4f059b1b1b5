//! What an audit says of a host: the target, and the verdict of each check.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::host::CpuSet;
use crate::tuning::{BlockSetting, InterfaceSetting, Object};
use crate::units::{BitRate, Bytes, Nanos};

/// The version of [`Audit`] as a document.
pub const SCHEMA_VERSION: u32 = 1;

/// What a host is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A few large flows: a data-transfer node.
    #[default]
    Transfer,
    /// Tests are run from here.
    Measurement,
    /// Many flows at once, each short or slow.
    Server,
    /// A virtual machine.
    Guest,
}

impl Role {
    /// The word that `--role` reads: `transfer`, `measurement`, `server`, `guest`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transfer => "transfer",
            Self::Measurement => "measurement",
            Self::Server => "server",
            Self::Guest => "guest",
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Transfer, Self::Measurement, Self::Server, Self::Guest]
            .into_iter()
            .find(|role| role.name() == text)
            .ok_or_else(|| format!("'{text}' is none of transfer, measurement, server, guest"))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What of a host an audit judges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Area {
    /// What its connections depend on.
    #[default]
    Network,
    /// Its disks, arrays and file systems.
    Storage,
}

impl Area {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    const fn is_network(&self) -> bool {
        matches!(self, Self::Network)
    }
}

/// The required load of the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Target {
    /// What is judged.
    #[serde(skip_serializing_if = "Area::is_network")]
    pub area: Area,
    /// Bytes that its disks write per second, where it is known and storage is judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_rate: Option<Bytes>,
    /// The rate of all flows together, bit/s, where it is known.
    pub rate_bps: Option<BitRate>,
    /// Where the rate is from: `given`, `the link eth0` …
    pub rate_from: String,
    /// The round-trip time, where it is known.
    pub rtt: Option<Nanos>,
    /// Where the round-trip time is from.
    pub rtt_from: String,
    /// Flows that share the rate.
    pub flows: u32,
    /// What the host is for.
    pub role: Role,
    /// The interface that the traffic takes; `None` = those with an address.
    pub interface: Option<String>,
    /// The largest packet that the path carries, bytes, where it is known.
    pub path_mtu: Option<u32>,
    /// Whether applications set socket buffers themselves, where it is known.
    pub fixed_buffers: Option<bool>,
    /// What tests to a peer found, where one was asked. What is given holds against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<ToPeer>,
}

/// What tests to a peer found of the path to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToPeer {
    /// The peer, as it was named.
    pub peer: String,
    /// The interface by which the tests left; absent where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The round-trip time without load; absent where it could not be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Nanos>,
    /// How it was come by, in words.
    pub rtt_how: String,
    /// The rate that was reached, with headers and frames, bit/s: the path carries at least this, as a host that is
    /// wrong may be what limited it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<BitRate>,
    /// How it was come by, in words.
    pub rate_how: String,
    /// The speed of the peer's link, bit/s, where the peer says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_link_bps: Option<BitRate>,
    /// The largest packet that arrived and was not allowed to be cut; absent where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<LargestPacket>,
    /// What could not be measured, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// The largest packet that arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargestPacket {
    /// Bytes of IP.
    pub bytes: u32,
    /// Whether no larger one could be tried: it is as large as the interface's MTU lets one be.
    pub untried_above: bool,
}

impl Target {
    /// Bytes on the way at once at the rate and the round-trip time: the bandwidth-delay product.
    pub fn product(&self) -> Option<Bytes> {
        let bits = u128::from(self.rate_bps?.0) * u128::from(self.rtt?.0) / 1_000_000_000;
        Some(Bytes(u64::try_from(bits / 8).unwrap_or(u64::MAX)))
    }

    /// The largest packet that the path carries: what was given, else what arrived at the peer.
    pub fn largest_packet(&self) -> Option<LargestPacket> {
        let given = self.path_mtu.map(|bytes| LargestPacket {
            bytes,
            untried_above: false,
        });
        given.or_else(|| self.measured.as_ref()?.packet)
    }

    /// The part of it that one flow has.
    pub fn flow_product(&self) -> Option<Bytes> {
        Some(Bytes(self.product()?.0 / u64::from(self.flows.max(1))))
    }
}

/// What applying a recommendation may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Nothing.
    None,
    /// Queues are emptied: packets are lost for a moment.
    QueueReset,
    /// The link goes down and comes again.
    LinkFlap,
    /// The machine starts again.
    Reboot,
    /// What is stored, if it goes wrong or is done as it is read: it needs a backup.
    Data,
    /// There is nothing to apply.
    Nothing,
}

impl Risk {
    /// As reports print it: `queue reset`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::QueueReset => "queue reset",
            Self::LinkFlap => "link flap",
            Self::Reboot => "reboot",
            Self::Data => "data (back up first)",
            Self::Nothing => "nothing to apply",
        }
    }
}

/// What a check advises to set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advised {
    /// A setting of the host, and the value to write.
    Setting {
        /// What to set.
        object: Object,
        /// As the kernel's file or `ip` and `ethtool` take it.
        value: String,
    },
    /// The discipline of each queue below an interface's `mq`.
    EachQueue {
        /// Whose `mq` it is, by name.
        interface: String,
        /// The discipline: `fq`.
        kind: &'static str,
    },
    /// The frequency governor of CPUs that have another.
    Governor {
        /// Those whose governor is another now.
        cpus: CpuSet,
        /// The governor: `performance`.
        name: &'static str,
    },
    /// Flows that share the rate (`-P` of `linerate test`).
    Flows(u64),
    /// What no plan sets: hardware, what boots, memory, lines of files, something outside the host.
    ByHand {
        /// What it is.
        what: String,
        /// How it should be.
        value: String,
    },
}

impl Advised {
    /// A setting of the kernel.
    pub fn sysctl(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self::Setting {
            object: Object::Sysctl { key: key.into() },
            value: value.into(),
        }
    }

    /// A setting of an interface.
    pub fn interface(
        interface: impl Into<String>,
        setting: InterfaceSetting,
        value: impl Into<String>,
    ) -> Self {
        Self::Setting {
            object: Object::Interface {
                interface: interface.into(),
                setting,
            },
            value: value.into(),
        }
    }

    /// A setting of a block device.
    pub fn block(
        device: impl Into<String>,
        setting: BlockSetting,
        value: impl Into<String>,
    ) -> Self {
        Self::Setting {
            object: Object::Block {
                device: device.into(),
                setting,
            },
            value: value.into(),
        }
    }

    /// What no plan sets.
    pub fn by_hand(what: impl Into<String>, value: impl Into<String>) -> Self {
        Self::ByHand {
            what: what.into(),
            value: value.into(),
        }
    }

    /// What a plan sets for it, and to which value.
    pub fn settable(&self) -> Option<(Object, &str)> {
        match self {
            Self::Setting { object, value } => Some((object.clone(), value)),
            Self::EachQueue { interface, kind } => {
                let object = Object::Interface {
                    interface: interface.clone(),
                    setting: InterfaceSetting::Qdisc,
                };
                Some((object, kind))
            }
            Self::Governor { name, .. } => Some((Object::Governor, name)),
            Self::Flows(_) | Self::ByHand { .. } => None,
        }
    }

    /// What to set, as tools and engineers name it.
    pub fn setting(&self) -> String {
        use InterfaceSetting as S;
        match self {
            Self::Setting { object, .. } => match object {
                Object::Sysctl { key } => key.clone(),
                Object::Governor => "scaling_governor".to_owned(),
                Object::Block { .. } => object.to_string(),
                Object::Interface { interface, setting } => match setting {
                    S::Tso | S::Gso | S::Gro | S::Lro => {
                        format!("ethtool -K {interface} {}", setting.key())
                    }
                    S::RxRing => format!("ethtool -G {interface} rx"),
                    S::TxRing => format!("ethtool -G {interface} tx"),
                    S::Channels => format!("ethtool -L {interface} combined"),
                    S::AdaptiveRx => format!("ethtool -C {interface} adaptive-rx"),
                    S::RxUsecs => format!("ethtool -C {interface} rx-usecs"),
                    S::Mtu => format!("MTU of {interface}"),
                    S::Txqueuelen | S::Qdisc | S::RpsCpus | S::XpsCpus | S::IrqCpus => {
                        object.to_string()
                    }
                },
            },
            Self::EachQueue { interface, .. } => {
                format!("qdisc of each queue of {interface}, under mq")
            }
            Self::Governor { cpus, .. } => format!("scaling_governor of CPUs {cpus}"),
            Self::Flows(_) => "-P".to_owned(),
            Self::ByHand { what, .. } => what.clone(),
        }
    }

    /// The value that it should have.
    pub fn value(&self) -> String {
        match self {
            Self::Setting { value, .. } | Self::ByHand { value, .. } => value.clone(),
            Self::EachQueue { kind, .. } => (*kind).to_owned(),
            Self::Governor { name, .. } => (*name).to_owned(),
            Self::Flows(flows) => flows.to_string(),
        }
    }
}

/// What a check advises, beside what is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "Written")]
pub struct Change {
    /// What to set, and to what.
    pub advised: Advised,
    /// Its value now; absent where it is not known.
    pub now: Option<String>,
    /// Why this value: `2 × 75.0 MB`.
    pub why: String,
}

/// A change in an audit's JSON, in words for people: `net.ipv4.tcp_rmem`, `ethtool -G eth0 rx`.
#[derive(Serialize)]
struct Written {
    setting: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<String>,
    value: String,
    why: String,
}

impl From<Change> for Written {
    fn from(change: Change) -> Self {
        Self {
            setting: change.advised.setting(),
            now: change.now,
            value: change.advised.value(),
            why: change.why,
        }
    }
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// It is not as it should be.
    Fires {
        /// One sentence.
        sentence: String,
        /// What to change; empty where there is nothing to set.
        changes: Vec<Change>,
        /// 1 is worst, 4 least.
        severity: u8,
        /// What applying may cost.
        risk: Risk,
        /// Files and lines that set it.
        set_by: Vec<String>,
    },
    /// It is as it should be.
    Holds {
        /// What was read.
        read: String,
    },
    /// It cannot be known from these facts.
    CannotKnow {
        /// Why, and what would tell.
        why: String,
    },
    /// It is no question on this host.
    DoesNotApply {
        /// Part of a sentence: what this host is, or what it lacks.
        why: String,
    },
}

/// The verdict of a check on one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The check: `T01`.
    pub check: String,
    /// What it reads, in a few words.
    pub title: String,
    /// The interface, key, file, device or mount point that it is about; absent = the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Whether it fires, holds, cannot be known or does not apply, with its details.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Where the knowledge is from: a kernel file, an RFC, a vendor's document.
    pub source: String,
}

impl Verdict {
    /// Whether something is not as it should be.
    pub const fn fires(&self) -> bool {
        matches!(self.outcome, Outcome::Fires { .. })
    }
}

/// An audit of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// Format of this document: [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The host and what it is: `vm1, Linux 6.12, virtual machine (kvm)`.
    pub host: String,
    /// Its required load.
    pub target: Target,
    /// The interfaces that were judged.
    pub interfaces: Vec<String>,
    /// All verdicts: what fires first, the worst before the others.
    pub verdicts: Vec<Verdict>,
}

impl Audit {
    /// What is not as it should be.
    pub fn firing(&self) -> impl Iterator<Item = &Verdict> {
        self.verdicts.iter().filter(|verdict| verdict.fires())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_sets_what_is_advised_whatever_its_words_are() {
        let sysctl = Advised::sysctl("net.core.default_qdisc", "fq");
        let object = Object::Sysctl {
            key: "net.core.default_qdisc".to_owned(),
        };
        assert_eq!(sysctl.settable(), Some((object, "fq")));
        // The same words, and no setting.
        let by_hand = Advised::by_hand("net.core.default_qdisc", "fq");
        assert_eq!(
            (by_hand.setting(), by_hand.value()),
            (sysctl.setting(), sysctl.value())
        );
        assert_eq!(by_hand.settable(), None);
        assert_eq!(Advised::Flows(4).settable(), None);
        let leaves = Advised::EachQueue {
            interface: "eth0".to_owned(),
            kind: "fq",
        };
        assert_eq!(
            leaves.settable(),
            Advised::interface("eth0", InterfaceSetting::Qdisc, "fq").settable()
        );
        assert_eq!(leaves.setting(), "qdisc of each queue of eth0, under mq");
    }

    #[test]
    fn the_governor_of_some_cpus_is_the_hosts_setting() {
        let advised = Advised::Governor {
            cpus: [0, 1, 2, 3].into_iter().collect(),
            name: "performance",
        };
        assert_eq!(advised.setting(), "scaling_governor of CPUs 0-3");
        assert_eq!(advised.settable(), Some((Object::Governor, "performance")));
    }
}
