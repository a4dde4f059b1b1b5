//! What differs between two hosts, what of it matters for throughput, and what is noise.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

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
    let places: BTreeSet<&Place> = left.keys().chain(right.keys()).collect();
    let mut differences: Vec<Difference> = places
        .into_iter()
        .filter(|place| !part_of_one(place, &left, &right))
        .map(|place| (place, left.get(place), right.get(place)))
        .filter(|(_, a, b)| a != b)
        .map(|(place, a, b)| Difference {
            path: place.to_string(),
            a: a.map(ToString::to_string),
            b: b.map(ToString::to_string),
            weight: weigh(place, a, b),
        })
        .collect();
    differences.sort_by(|one, other| one.path.cmp(&other.path));
    Differences {
        pairs: pairs
            .into_iter()
            .filter(|(left, right)| left != right)
            .collect(),
        differences,
    }
}

/// Whether it belongs to a device or mount that only one of the hosts has, of which the size or the file system tells
/// enough.
fn part_of_one(place: &Place, left: &Leaves, right: &Leaves) -> bool {
    let Some([list, name, rest @ ..]) = place.of_storage() else {
        return false;
    };
    let telling = if list == "devices" {
        "size"
    } else {
        "file_system"
    };
    let outer = Place(vec!["storage".to_owned(), list.clone(), name.clone()]);
    let has = |leaves: &Leaves| {
        let mut after = leaves.range(&outer..);
        after
            .next()
            .is_some_and(|(place, _)| place.below(&outer).is_some())
    };
    rest != [telling] && has(left) != has(right)
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

/// Where a leaf of the facts is: names of fields and of elements of lists, from the outside in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place(Vec<String>);

impl Place {
    fn within(&self, name: &str) -> Self {
        Self(self.0.iter().cloned().chain([name.to_owned()]).collect())
    }

    /// The steps after those of `outer`, where this place is within it.
    fn below(&self, outer: &Self) -> Option<&[String]> {
        let rest = self.0.strip_prefix(outer.0.as_slice())?;
        (!rest.is_empty()).then_some(rest)
    }

    /// The kernel's key, where it is one.
    fn sysctl(&self) -> Option<&str> {
        match self.0.as_slice() {
            [outer, key] if outer == "sysctls" => Some(key),
            _ => None,
        }
    }

    /// The steps after `storage`: `devices`, a name, what follows.
    fn of_storage(&self) -> Option<&[String]> {
        match self.0.as_slice() {
            [outer, rest @ ..] if outer == "storage" => Some(rest),
            _ => None,
        }
    }

    /// The steps after an interface's name.
    fn of_interface(&self) -> Option<&[String]> {
        match self.0.as_slice() {
            [outer, _, rest @ ..] if outer == "interfaces" => Some(rest),
            _ => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// What a place holds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Leaf {
    /// The fact is not known.
    Unknown,
    /// It is known that there is none.
    Absent,
    Value(String),
}

impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "unknown",
            Self::Absent => "none",
            Self::Value(text) => text,
        })
    }
}

type Leaves = BTreeMap<Place, Leaf>;

/// All leaves of the facts, lists by the name or number of their elements. `renamed` gives interfaces the names
/// that they have on the other host.
fn flat(facts: &HostFacts, renamed: &BTreeMap<&str, &str>) -> Leaves {
    let mut leaves = Leaves::new();
    let value = serde_json::to_value(facts).unwrap_or_default();
    walk(&Place(Vec::new()), &value, renamed, &mut leaves);
    // The keys of an interface have its name in them.
    leaves
        .into_iter()
        .map(|(place, leaf)| {
            let other = place.sysctl().and_then(interface_in).and_then(|cut| {
                let (head, name, key) = cut;
                let other = renamed.get(name.replace('/', ".").as_str())?;
                let key = format!("{head}{}.{key}", other.replace('.', "/"));
                Some(Place(vec!["sysctls".to_owned(), key]))
            });
            (other.unwrap_or(place), leaf)
        })
        .collect()
}

/// The kernel's key of one interface, cut: before the interface's name, the name, behind it.
fn interface_in(key: &str) -> Option<(&str, &str, &str)> {
    let at = key.find(".conf.").filter(|_| key.starts_with("net.ipv"))? + ".conf.".len();
    let (name, rest) = key[at..].split_once('.')?;
    (!["all", "default"].contains(&name)).then_some((&key[..at], name, rest))
}

/// What is unknown or none of `theirs` as a whole is one thing here too, whatever it consists of.
fn fold(ours: &mut Leaves, theirs: &Leaves) {
    for (place, leaf) in theirs {
        if matches!(leaf, Leaf::Value(_)) || ours.contains_key(place) {
            continue;
        }
        let parts: Vec<String> = ours
            .range(place..)
            .map_while(|(part, leaf)| Some(format!("{} {leaf}", part.below(place)?.join("."))))
            .collect();
        if parts.is_empty() {
            continue;
        }
        ours.retain(|part, _| part.below(place).is_none());
        let most = 8;
        let more = if parts.len() > most { ", …" } else { "" };
        let shown = parts[..parts.len().min(most)].join(", ");
        ours.insert(place.clone(), Leaf::Value(format!("{shown}{more}")));
    }
}

fn walk(place: &Place, value: &Value, renamed: &BTreeMap<&str, &str>, leaves: &mut Leaves) {
    match value {
        Value::Object(fields) => match fields.get("unknown") {
            Some(Value::String(_)) if fields.len() == 1 => {
                leaves.insert(place.clone(), Leaf::Unknown);
            }
            _ => {
                for (name, value) in fields {
                    walk(&place.within(name), value, renamed, leaves);
                }
            }
        },
        Value::Array(elements) if elements.iter().all(|element| !element.is_object()) => {
            let words: Vec<String> = elements.iter().map(plain).collect();
            leaves.insert(place.clone(), Leaf::Value(words.join(" ")));
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
                walk(&place.within(&name), element, renamed, leaves);
            }
        }
        Value::Null => {
            leaves.insert(place.clone(), Leaf::Absent);
        }
        scalar => {
            leaves.insert(place.clone(), Leaf::Value(plain(scalar)));
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
        Value::Null => Leaf::Absent.to_string(),
        other => other.to_string(),
    }
}

/// Settings of the kernel, and why what differs there matters.
const SYSCTLS: [(&str, &str); 26] = [
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
    ("vm.dirty_bytes", WAITING),
    ("vm.dirty_ratio", WAITING),
    ("vm.dirty_background_bytes", WAITING),
    ("vm.dirty_background_ratio", WAITING),
];
const WAITING: &str = "what waits to be written (S16)";

/// Places of one kind.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// This place, and all within it.
    At(&'static [&'static str]),
    /// All within this field of the facts.
    Below(&'static str),
    /// A key of the kernel.
    Sysctl(&'static str),
    /// Keys of the kernel that begin so.
    SysctlPrefix(&'static str),
    /// Places of an interface whose last names are these.
    Interface(&'static [&'static str]),
    /// This field of an interface, and all within it.
    WithinInterface(&'static str),
    /// This field of a device or a mount, and all within it.
    WithinStorage(&'static str),
}

impl Part {
    fn holds(self, place: &Place) -> bool {
        let of_interface = || place.of_interface().unwrap_or_default();
        match self {
            Self::At(names) => {
                place.0.len() >= names.len() && place.0.iter().zip(names).all(|(a, b)| a == b)
            }
            Self::Below(name) => place.0.len() > 1 && place.0[0] == name,
            Self::Sysctl(key) => place.sysctl() == Some(key),
            Self::SysctlPrefix(prefix) => place.sysctl().is_some_and(|key| key.starts_with(prefix)),
            Self::Interface(names) => {
                let steps = of_interface();
                let at = steps.len().checked_sub(names.len());
                at.is_some_and(|at| steps[at..].iter().zip(names).all(|(a, b)| a == b))
            }
            Self::WithinInterface(name) => of_interface().iter().any(|step| step == name),
            Self::WithinStorage(name) => {
                let steps = place.of_storage().unwrap_or_default();
                steps.iter().skip(2).any(|step| step == name)
            }
        }
    }
}

/// Other places, and why what differs there matters.
const MATTERS: [(Part, &str); 47] = [
    (
        Part::At(&["system", "kernel"]),
        "defaults and TCP differ between kernels",
    ),
    (
        Part::At(&["system", "kernel_build"]),
        "defaults and TCP differ between kernels",
    ),
    (
        Part::At(&["processors", "microcode"]),
        "cost of mitigations",
    ),
    (
        Part::At(&["processors", "mitigations"]),
        "cost of each entry into the kernel",
    ),
    (
        Part::At(&["system", "virtual_machine"]),
        "a hypervisor between",
    ),
    (
        Part::At(&["system", "memory_bytes"]),
        "memory of all sockets (T13)",
    ),
    (
        Part::At(&["system", "command_line"]),
        "IOMMU, mitigations (P02)",
    ),
    (Part::At(&["processors", "model"]), "rate of one core"),
    (
        Part::At(&["processors", "online"]),
        "cores for queues (N03)",
    ),
    (
        Part::At(&["processors", "governors"]),
        "clock of the cores (C05)",
    ),
    (Part::Interface(&["mtu"]), "size of packets (L01, L03)"),
    (Part::WithinInterface("link"), "the link (L05)"),
    (Part::WithinInterface("driver"), "driver and firmware"),
    (Part::WithinInterface("rings"), "rings (N01, N02)"),
    (Part::WithinInterface("channels"), "channels (N03)"),
    (Part::WithinInterface("coalescing"), "interrupts (N04)"),
    (
        Part::Interface(&["features", "tx-tcp-segmentation", "on"]),
        "offloads (N05)",
    ),
    (
        Part::Interface(&["features", "tx-generic-segmentation", "on"]),
        "offloads (N05)",
    ),
    (
        Part::Interface(&["features", "tx-checksum-ip-generic", "on"]),
        "offloads (N05)",
    ),
    (
        Part::Interface(&["features", "rx-checksum", "on"]),
        "offloads (N05)",
    ),
    (
        Part::Interface(&["features", "rx-gro", "on"]),
        "offloads (N05)",
    ),
    (
        Part::Interface(&["features", "rx-lro", "on"]),
        "offloads (N06)",
    ),
    (Part::WithinInterface("pcie"), "the slot (P01)"),
    (Part::WithinInterface("bond"), "spread over members (L10)"),
    (Part::WithinInterface("pause"), "flow control (L09)"),
    (Part::WithinInterface("qdiscs"), "queueing (Q01, Q02)"),
    (Part::Interface(&["numa_node"]), "node of the device (C01)"),
    (Part::Interface(&["gso_max_size"]), "segments (N07)"),
    (Part::Interface(&["gro_max_size"]), "segments (N07)"),
    (Part::Interface(&["tso_max_size"]), "segments (N07)"),
    (Part::Interface(&["tx_queue_len"]), "queue (N09)"),
    (Part::Below("keepers"), "who else sets things (H07)"),
    (Part::WithinStorage("scheduler"), "order of requests (S01)"),
    (Part::WithinStorage("read_ahead_kib"), "read-ahead (S02)"),
    (Part::WithinStorage("depth"), "commands at once (S03)"),
    (Part::WithinStorage("nomerges"), "merging (S03)"),
    (Part::WithinStorage("queue_requests"), "requests that queue"),
    (Part::WithinStorage("zoned"), "order of requests (S01)"),
    (Part::WithinStorage("write_cache"), "flushes (S05)"),
    (Part::WithinStorage("disk_cache"), "flushes (S05)"),
    (Part::WithinStorage("optimal_io"), "stripe (S07, S08)"),
    (
        Part::WithinStorage("options"),
        "how it is mounted (S05, S07, S10)",
    ),
    (Part::WithinStorage("ext4"), "how it is mounted (S08, S10)"),
    (Part::WithinStorage("alignment_offset"), "alignment (S11)"),
    (Part::WithinStorage("degraded"), "missing members (S12)"),
    (
        Part::WithinStorage("consistency_policy"),
        "time to synchronise after a crash (S14)",
    ),
    (Part::WithinStorage("level"), "what each write costs"),
];

/// Places whose differences say nothing: what counts, what names, and what is of one boot.
const NOISE: [Part; 32] = [
    Part::At(&["taken_unix_s"]),
    Part::At(&["root"]),
    Part::At(&["schema_version"]),
    Part::At(&["system", "hostname"]),
    Part::At(&["system", "boot_id"]),
    Part::Below("counters"),
    Part::Below("softnet"),
    Part::WithinInterface("counters"),
    Part::WithinInterface("statistics"),
    Part::Interface(&["mac"]),
    Part::Interface(&["permanent_mac"]),
    Part::Interface(&["index"]),
    Part::Interface(&["addresses"]),
    Part::Interface(&["carrier_changes"]),
    Part::Interface(&["drops"]),
    Part::Interface(&["handle"]),
    Part::Interface(&["count"]),
    Part::Interface(&["busiest_cpu"]),
    Part::WithinInterface("interrupts"),
    Part::Interface(&["driver", "bus"]),
    Part::Interface(&["name"]),
    Part::Below("routes"),
    Part::At(&["system", "modules"]),
    // Numbers and identities, and what an array does at the moment.
    Part::WithinStorage("number"),
    Part::WithinStorage("uuid"),
    Part::WithinStorage("offered"),
    Part::WithinStorage("sync_action"),
    Part::WithinStorage("sync_speed_kib"),
    Part::WithinStorage("mismatches"),
    Part::At(&["storage", "swap"]),
    Part::Sysctl("net.core.netdev_rss_key"),
    Part::SysctlPrefix("net.ipv4.tcp_available_"),
];

fn weigh(place: &Place, a: Option<&Leaf>, b: Option<&Leaf>) -> Weight {
    let last = place.0.last().map(String::as_str);
    // An interface's name is noise, its driver's is not; the line of a setting is, its value is not.
    let driver = Part::Interface(&["driver", "name"]).holds(place);
    let moved = Part::Below("settings").holds(place) && last == Some("line");
    // What one of them has only is an interface that the other has not.
    let alone = (a.is_none() || b.is_none())
        && place
            .sysctl()
            .is_some_and(|key| interface_in(key).is_some());
    if moved || alone || !driver && NOISE.iter().any(|part| part.holds(place)) {
        return Weight::Noise;
    }
    // A key that is not to be read at one of them was not compared.
    if [a, b].contains(&Some(&Leaf::Unknown)) {
        return Weight::Unknown;
    }
    let matters = match place.sysctl() {
        Some(key) => SYSCTLS
            .iter()
            .find(|(one, _)| *one == key)
            .map(|(_, why)| *why),
        None => MATTERS
            .iter()
            .find(|(part, _)| part.holds(place))
            .map(|(_, why)| *why),
    };
    matters.map_or(Weight::Other, |why| Weight::Matters {
        why: why.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `net.ipv4.tcp_mem` is another one at each boot.
    #[test]
    fn what_matters_among_the_kernels_keys_is_in_a_fingerprint() {
        let missing: Vec<&str> = SYSCTLS
            .iter()
            .map(|(key, _)| *key)
            .filter(|key| !linerate_model::fingerprint::SYSCTLS.contains(key))
            .collect();
        assert_eq!(missing, ["net.ipv4.tcp_mem"]);
    }
}
