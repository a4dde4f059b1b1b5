//! What differs between two hosts, what of it matters for throughput, and what is noise.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::host::{Difference, Differences, HostFacts, Interface, Weight};
use serde_json::Value;

/// Compares two hosts, field by field. Interfaces of different names are paired by what they are: the one with
/// the default route with the other's, then by driver and order.
pub fn compare(a: &HostFacts, b: &HostFacts) -> Differences {
    let pairs = pair(a, b);
    let renamed: BTreeMap<&str, &str> = pairs
        .iter()
        .map(|(left, right)| (right.as_str(), left.as_str()))
        .collect();
    let mut left = flat(a, &BTreeMap::new());
    let mut right = flat(b, &renamed);
    fold(&mut left, &right);
    fold(&mut right, &left);
    let paths: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    let differences = paths
        .into_iter()
        .filter(|path| left.get(*path) != right.get(*path))
        .map(|path| Difference {
            path: path.clone(),
            a: left.get(path).cloned(),
            b: right.get(path).cloned(),
            weight: weigh(path, left.get(path), right.get(path)),
        })
        .collect();
    Differences {
        pairs: pairs
            .into_iter()
            .filter(|(left, right)| left != right)
            .collect(),
        differences,
    }
}

/// Interfaces of the two hosts that stand for one another.
fn pair(a: &HostFacts, b: &HostFacts) -> Vec<(String, String)> {
    let all = |facts: &HostFacts| facts.interfaces.known().cloned().unwrap_or_default();
    let (ours, mut theirs) = (all(a), all(b));
    let mut pairs = Vec::new();
    let mut alone = Vec::new();
    for one in ours {
        match theirs.iter().position(|other| other.name == one.name) {
            Some(at) => {
                let other = theirs.remove(at);
                pairs.push((one.name, other.name));
            }
            None => alone.push(one),
        }
    }
    let by_default = |facts: &HostFacts, one: &Interface| {
        let routes = facts.routes.known();
        routes.into_iter().flatten().any(|route| {
            route.destination == "default" && route.interface.as_deref() == Some(one.name.as_str())
        })
    };
    let driver = |one: &Interface| one.driver.known().map(|driver| driver.name.clone());
    for one in alone {
        let fits = |other: &Interface| other.kind == one.kind && other.vlan == one.vlan;
        let at = theirs
            .iter()
            .position(|other| fits(other) && by_default(a, &one) && by_default(b, other))
            .or_else(|| {
                theirs
                    .iter()
                    .position(|other| fits(other) && driver(other) == driver(&one))
            })
            .or_else(|| theirs.iter().position(fits));
        if let Some(at) = at {
            let other = theirs.remove(at);
            pairs.push((one.name, other.name));
        }
    }
    pairs
}

/// All leaves of the facts by path, lists by the name or number of their elements. `renamed` gives interfaces the
/// names that they have on the other host.
fn flat(facts: &HostFacts, renamed: &BTreeMap<&str, &str>) -> BTreeMap<String, String> {
    let mut leaves = BTreeMap::new();
    let value = serde_json::to_value(facts).unwrap_or_default();
    walk("", &value, renamed, &mut leaves);
    // The keys of an interface have its name in them.
    leaves
        .into_iter()
        .map(|(path, value)| {
            let other = of_interface(&path).and_then(|(head, name, key)| {
                let other = renamed.get(name.replace('/', ".").as_str())?;
                Some(format!("{head}{}.{key}", other.replace('.', "/")))
            });
            (other.unwrap_or(path), value)
        })
        .collect()
}

/// The path of a key of one interface, cut: before the interface's name, the name, behind it.
fn of_interface(path: &str) -> Option<(&str, &str, &str)> {
    let at = path
        .find(".conf.")
        .filter(|_| path.starts_with("sysctls.net.ipv"))?
        + ".conf.".len();
    let (name, key) = path[at..].split_once('.')?;
    (!["all", "default"].contains(&name)).then_some((&path[..at], name, key))
}

/// What is unknown or none of `theirs` as a whole is one thing here too, whatever it consists of.
fn fold(ours: &mut BTreeMap<String, String>, theirs: &BTreeMap<String, String>) {
    for (path, value) in theirs {
        if value != UNKNOWN && value != NONE || ours.contains_key(path) {
            continue;
        }
        let below = format!("{path}.");
        let parts: Vec<String> = ours
            .range(below.clone()..)
            .take_while(|(part, _)| part.starts_with(&below))
            .map(|(part, value)| format!("{} {value}", &part[below.len()..]))
            .collect();
        if parts.is_empty() {
            continue;
        }
        ours.retain(|part, _| !part.starts_with(&below));
        let most = 8;
        let more = if parts.len() > most { ", …" } else { "" };
        let shown = parts[..parts.len().min(most)].join(", ");
        ours.insert(path.clone(), format!("{shown}{more}"));
    }
}

/// A fact that is not known, and one that is known to be absent.
const UNKNOWN: &str = "unknown";
const NONE: &str = "none";

fn walk(
    path: &str,
    value: &Value,
    renamed: &BTreeMap<&str, &str>,
    leaves: &mut BTreeMap<String, String>,
) {
    let under = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    match value {
        Value::Object(fields) => match fields.get("unknown") {
            Some(Value::String(_)) if fields.len() == 1 => {
                leaves.insert(path.to_owned(), UNKNOWN.to_owned());
            }
            _ => {
                for (name, value) in fields {
                    walk(&under(name), value, renamed, leaves);
                }
            }
        },
        Value::Array(elements) if elements.iter().all(|element| !element.is_object()) => {
            let words: Vec<String> = elements.iter().map(plain).collect();
            leaves.insert(path.to_owned(), words.join(" "));
        }
        Value::Array(elements) => {
            let mut taken: BTreeMap<String, usize> = BTreeMap::new();
            for element in elements {
                let name = label(element, renamed);
                let count = taken.entry(name.clone()).or_default();
                *count += 1;
                let name = match count {
                    1 => name,
                    number => format!("{name}#{number}"),
                };
                walk(&under(&name), element, renamed, leaves);
            }
        }
        scalar => {
            leaves.insert(path.to_owned(), plain(scalar));
        }
    }
}

/// What tells an element from the others of its list.
fn label(element: &Value, renamed: &BTreeMap<&str, &str>) -> String {
    let text = |name: &str| element.get(name).map(plain);
    if let (Some(key), Some(file)) = (text("key"), text("file")) {
        return format!("{key} in {file}");
    }
    if let (Some(side), Some(index)) = (text("side"), text("index")) {
        return format!("{side}-{index}");
    }
    if let Some(parent) = text("parent").filter(|_| element.get("leaf").is_some()) {
        return format!("qdisc at {}", parent.rsplit(':').next().unwrap_or_default());
    }
    let name = ["name", "destination", "cpu", "id", "place"]
        .iter()
        .find_map(|name| text(name))
        .unwrap_or_default();
    renamed
        .get(name.as_str())
        .map_or(name.clone(), |other| (*other).to_owned())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => NONE.to_owned(),
        other => other.to_string(),
    }
}

/// Settings of the kernel, and why what differs there matters.
const SYSCTLS: [(&str, &str); 22] = [
    ("net.ipv4.tcp_rmem", "receive window (T01)"),
    ("net.ipv4.tcp_wmem", "bytes in flight (T02)"),
    ("net.core.rmem_max", "buffers that applications set (T03)"),
    ("net.core.wmem_max", "buffers that applications set (T03)"),
    ("net.core.rmem_default", "first buffers (H04)"),
    ("net.core.wmem_default", "first buffers (H04)"),
    ("net.ipv4.tcp_moderate_rcvbuf", "autotuning (T04)"),
    ("net.ipv4.tcp_window_scaling", "windows above 64 KiB (T05)"),
    (
        "net.ipv4.tcp_congestion_control",
        "congestion control (T07)",
    ),
    ("net.ipv4.tcp_mtu_probing", "black holes (T09)"),
    (
        "net.ipv4.tcp_no_metrics_save",
        "what earlier connections leave (T10)",
    ),
    ("net.core.optmem_max", "zero-copy (T11)"),
    ("net.ipv4.tcp_slow_start_after_idle", "pauses (T12)"),
    ("net.ipv4.tcp_mem", "memory of all sockets (T13, H03)"),
    ("net.core.default_qdisc", "pacing (Q01)"),
    ("net.ipv4.tcp_timestamps", "round-trip samples (H01)"),
    ("net.ipv4.tcp_sack", "repair of loss (H01)"),
    ("net.ipv4.tcp_dsack", "repair of loss (H01)"),
    ("net.ipv4.tcp_ecn", "reaction to marks"),
    (
        "net.core.netdev_max_backlog",
        "backlog of RPS and veth (H05)",
    ),
    ("net.core.netdev_budget", "packet processing (C07)"),
    (
        "net.ipv4.tcp_limit_output_bytes",
        "bytes in the device's queues",
    ),
];

/// Parts of other paths, and why what differs there matters.
const MATTERS: [(&str, &str); 29] = [
    ("system.kernel", "defaults and TCP differ between kernels"),
    ("system.virtual_machine", "a hypervisor between"),
    ("system.memory_bytes", "memory of all sockets (T13)"),
    ("system.command_line", "IOMMU, mitigations (P02)"),
    ("processors.model", "rate of one core"),
    ("processors.online", "cores for queues (N03)"),
    ("processors.governors", "clock of the cores (C05)"),
    (".mtu", "size of packets (L01, L03)"),
    (".link.", "the link (L05)"),
    (".driver.", "driver and firmware"),
    (".rings.", "rings (N01, N02)"),
    (".channels.", "channels (N03)"),
    (".coalescing.", "interrupts (N04)"),
    (".features.tx-tcp-segmentation.on", "offloads (N05)"),
    (".features.tx-generic-segmentation.on", "offloads (N05)"),
    (".features.tx-checksum-ip-generic.on", "offloads (N05)"),
    (".features.rx-checksum.on", "offloads (N05)"),
    (".features.rx-gro.on", "offloads (N05)"),
    (".features.rx-lro.on", "offloads (N06)"),
    (".pcie.", "the slot (P01)"),
    (".bond.", "spread over members (L10)"),
    (".pause.", "flow control (L09)"),
    (".qdisc at", "queueing (Q01, Q02)"),
    (".numa_node", "node of the device (C01)"),
    (".gso_max_size", "segments (N07)"),
    (".gro_max_size", "segments (N07)"),
    (".tso_max_size", "segments (N07)"),
    (".tx_queue_len", "queue (N09)"),
    ("keepers.", "who else sets things (H07)"),
];

/// Parts of a path whose differences say nothing: what counts, what names, and what is of one boot.
const NOISE: [&str; 25] = [
    "taken_unix_s",
    "root",
    "schema_version",
    "system.hostname",
    "system.boot_id",
    "counters.",
    "softnet.",
    ".counters.",
    ".statistics.",
    ".mac",
    ".permanent_mac",
    ".index",
    ".addresses",
    ".carrier_changes",
    ".drops",
    ".handle",
    ".count",
    ".busiest_cpu",
    ".interrupts.",
    ".driver.bus",
    ".name",
    "routes.",
    "system.modules",
    "sysctls.net.core.netdev_rss_key",
    "sysctls.net.ipv4.tcp_available_",
];

fn weigh(path: &str, a: Option<&String>, b: Option<&String>) -> Weight {
    // An interface's name is noise, its driver's is not; the line of a setting is, its value is not.
    let driver = path.ends_with(".driver.name");
    let moved = path.starts_with("settings.") && path.rsplit('.').next() == Some("line");
    // What one of them has only is an interface that the other has not.
    let alone = (a.is_none() || b.is_none()) && of_interface(path).is_some();
    if moved || alone || !driver && NOISE.iter().any(|part| matches_part(path, part)) {
        return Weight::Noise;
    }
    // A key that is not to be read at one of them was not compared.
    let unknown = |value: Option<&String>| value.is_some_and(|value| value == UNKNOWN);
    if unknown(a) || unknown(b) {
        return Weight::Unknown;
    }
    let (part, table) = match path.strip_prefix("sysctls.") {
        Some(key) => (key, SYSCTLS.as_slice()),
        None => (path, MATTERS.as_slice()),
    };
    let reason = table.iter().find(|(kind, _)| matches_part(part, kind));
    reason.map_or(Weight::Other, |(_, why)| Weight::Matters {
        why: (*why).to_owned(),
    })
}

/// Whether a path is of a kind: `.mtu` is the last name of an interface's, `.link.` is within one, `system.kernel`
/// is the path itself or above it, and what ends in a dot or an underscore is how it begins.
fn matches_part(path: &str, part: &str) -> bool {
    if part.starts_with('.') {
        let within = part.ends_with('.') || part.contains(' ');
        return path.starts_with("interfaces.")
            && (path.ends_with(part.trim_end_matches('.')) || within && path.contains(part));
    }
    let Some(rest) = path.strip_prefix(part) else {
        return false;
    };
    rest.is_empty() || rest.starts_with('.') || part.ends_with(['.', '_'])
}
