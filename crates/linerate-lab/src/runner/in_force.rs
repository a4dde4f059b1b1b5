//! What was really in force, read back from the kernel: not all that is asked for is granted, and much that
//! nobody asked for matters.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linerate_kernel::route;
use serde::Serialize;

use super::host;
use super::share::CpuInForce;

/// Settings that decide what TCP does, reported for each host, whatever set them.
const TOLD: [&str; 8] = [
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_window_scaling",
    "net.core.rmem_max",
    "net.core.wmem_max",
];

/// A host as it was.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct HostInForce {
    /// Congestion control of its route to the other hosts, which goes before the namespace's, as the kernel's table
    /// has it; `None` where it has none.
    pub route_congestion: Option<String>,
    /// The share of a CPU that its program got; `None` where the scenario asks for none, and where nothing was run.
    pub cpu: Option<CpuInForce>,
    /// MTU of its interface, bytes.
    pub mtu: Option<u32>,
    /// Settings: those of the scenario, and some that always matter.
    pub settings: BTreeMap<String, String>,
    /// Settings that stand at another value than was asked for: the key, and what was asked.
    pub refused: BTreeMap<String, String>,
}

impl HostInForce {
    /// In the namespace of the calling thread; `beyond` is an address that the router leads to.
    pub(super) fn read(interface: &str, beyond: IpAddr, asked: &[(String, String)]) -> Self {
        let facts = route::index_of(interface)
            .and_then(|index| route::interface_facts(index).ok().flatten());
        let keys = TOLD
            .iter()
            .map(|key| (*key).to_owned())
            .chain(asked.iter().map(|(key, _)| key.clone()));
        let settings: BTreeMap<String, String> = keys
            .filter_map(|key| host::read(&key).map(|value| (key, value)))
            .collect();
        let same = |key: &String, value: &str| {
            let words = value.split_whitespace().collect::<Vec<_>>().join(" ");
            settings.get(key) == Some(&words)
        };
        let refused = asked
            .iter()
            .filter(|(key, value)| !same(key, value))
            .cloned()
            .collect();
        Self {
            route_congestion: route::to(beyond)
                .ok()
                .flatten()
                .and_then(|route| route.congestion),
            cpu: None,
            mtu: facts.and_then(|facts| facts.mtu_bytes),
            settings,
            refused,
        }
    }
}
