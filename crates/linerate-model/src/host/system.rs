//! The machine, its kernel and who else looks after it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CpuSet, Fact};

/// The machine and its kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct System {
    /// Its name.
    pub hostname: Fact<String>,
    /// The distribution: `Debian GNU/Linux 12 (bookworm)`.
    pub distribution: Fact<String>,
    /// The kernel's release: `6.12.3-amd64`.
    pub kernel: Fact<String>,
    /// Which build of it, as `uname -v`: `#1 SMP PREEMPT_DYNAMIC Debian 6.12.3-1 (2025-01-02)`.
    pub kernel_build: Fact<String>,
    /// `x86_64`, `aarch64`.
    pub architecture: Fact<String>,
    /// The kernel's command line.
    pub command_line: Fact<String>,
    /// Id of this boot.
    pub boot_id: Fact<String>,
    /// The hypervisor (`kvm`, `vmware`, `virtual machine` where only that is known), or `None` on bare metal.
    pub virtual_machine: Fact<Option<String>>,
    /// The container's kind, or `None`.
    pub container: Fact<Option<String>>,
    /// Whether this is the machine's first network namespace. In others some settings do not exist.
    pub first_namespace: Fact<bool>,
    /// `MemTotal`, bytes.
    pub memory_bytes: Fact<u64>,
    /// A page of memory, bytes.
    pub page_bytes: Fact<u64>,
    /// The least memory limit of the control groups above this process, bytes; `None` = no limit.
    pub cgroup_memory_bytes: Fact<Option<u64>>,
    /// Modules that are loaded; built-in code is not listed.
    pub modules: Fact<Vec<String>>,
}

/// The CPUs: model, NUMA nodes, frequency governors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processors {
    /// The first one's model.
    pub model: Fact<String>,
    /// Those that are online.
    pub online: Fact<CpuSet>,
    /// The revision of its microcode, as `/proc/cpuinfo` has it: `0xf4`. Other architectures than x86 have none.
    pub microcode: Fact<String>,
    /// What the kernel does about weaknesses of the processors, by the weakness: `spectre_v2`, `Mitigation: Retpolines`.
    pub mitigations: Fact<BTreeMap<String, String>>,
    /// Whether cores run two threads.
    pub smt: Fact<bool>,
    /// NUMA nodes with their CPUs.
    pub nodes: Fact<Vec<Node>>,
    /// Frequency governors with the CPUs that have them; unknown where nothing scales the frequency.
    pub governors: Fact<Vec<Governor>>,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its number.
    pub id: u32,
    /// The CPUs of this node that are online.
    pub cpus: CpuSet,
}

/// A frequency governor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Governor {
    /// `performance`, `powersave`, `schedutil` …
    pub name: String,
    /// The CPUs that have it.
    pub cpus: CpuSet,
}

/// A program that looks after settings of the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeper {
    /// `irqbalance`, `tuned`, `bpftune`, `NetworkManager`, `systemd-networkd`, `cloud-init`.
    pub name: String,
    /// Whether it runs now.
    pub running: Fact<bool>,
    /// What it was told: tuned's profile, irqbalance's bans or else its arguments; `None` where nothing was.
    pub told: Fact<Option<String>>,
}

/// Whether a line of irqbalance's environment keeps it from interrupts or CPUs.
pub fn is_ban(told: &str) -> bool {
    let bans = ["BANNED", "--banirq", "--banmod", "--policyscript"];
    bans.iter().any(|ban| told.contains(ban))
}

/// One CPU's packet processing since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Softnet {
    /// Which CPU.
    pub cpu: u32,
    /// Packets processed; 32 bits that wrap.
    pub processed: u32,
    /// Packets dropped because the backlog was full.
    pub dropped: u32,
    /// Times that the budget ended before the work.
    pub time_squeeze: u32,
}

/// A row of the main routing table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteFacts {
    /// `default` or a prefix.
    pub destination: String,
    /// The next router.
    pub gateway: Option<String>,
    /// The interface that it leaves by.
    pub interface: Option<String>,
    /// The priority; lower is preferred.
    pub metric: Option<u32>,
    /// The route's own MTU, bytes.
    pub mtu: Option<u32>,
    /// First congestion window, packets.
    pub initial_window: Option<u32>,
    /// Congestion control of connections over it.
    pub congestion: Option<String>,
}
