//! What is not the same in all runs: settings of the plan, facts of the hosts, what was granted.

use std::collections::BTreeMap;

use linerate_model::fingerprint::Fingerprint;
use linerate_model::record::{InterfaceFacts, Role};
use serde::Serialize;
use serde_json::Value;

use super::Side;
use crate::json::value;
use crate::view::{DirectionView, RunView};
use crate::words;

/// A setting or a fact whose value differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its name, as in the record: `plan.window_bytes`, `server.host.tcp_rmem`.
    pub name: String,
    /// Its value on each side, in their order; absent = not set or not known. Where the runs of a side differ,
    /// all of their values.
    pub values: Vec<Option<String>>,
}

/// What differs from run to run without being a setting, and the fingerprint, whose facts are settings of their own.
const PASSING: [&str; 7] = [
    "fingerprint",
    "boot_id",
    "network_namespace",
    "index",
    "extra_data",
    "title",
    "client_port",
];

/// Facts of a fingerprint that a record has under another name too.
const TWICE: [(&str, &str); 9] = [
    ("host.kernel", "kernel"),
    ("host.tcp_rmem", "sysctl.net.ipv4.tcp_rmem"),
    ("host.tcp_wmem", "sysctl.net.ipv4.tcp_wmem"),
    ("host.rmem_max", "sysctl.net.core.rmem_max"),
    ("host.wmem_max", "sysctl.net.core.wmem_max"),
    ("host.congestion", "sysctl.net.ipv4.tcp_congestion_control"),
    ("host.default_qdisc", "sysctl.net.core.default_qdisc"),
    ("interface.driver", "driver"),
    ("interface.qdisc", "qdisc"),
];

/// The name of a link's speed.
pub(super) const LINK_SPEED: &str = "link-speed";
const GIBIBYTE: f64 = 1_073_741_824.0;

/// The two ends, and what their settings' names begin with.
pub(super) const ENDS: [(Role, &str); 2] = [(Role::Client, "client"), (Role::Server, "server")];

/// The settings that are not the same on all sides.
pub(super) fn differing(sides: &[Side<'_>]) -> Vec<Setting> {
    let of_sides: Vec<BTreeMap<String, String>> = sides.iter().map(of_side).collect();
    let mut names: Vec<&String> = of_sides.iter().flat_map(BTreeMap::keys).collect();
    names.sort_unstable();
    names.dedup();
    let settings = names.into_iter().map(|name| Setting {
        name: name.clone(),
        values: of_sides
            .iter()
            .map(|side| side.get(name).cloned())
            .collect(),
    });
    settings
        .filter(|setting| setting.values.windows(2).any(|pair| pair[0] != pair[1]))
        .collect()
}

/// The settings of a side's runs, each value once.
fn of_side(side: &Side<'_>) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for run in &side.runs {
        for (name, value) in of_run(run) {
            let values = all.entry(name).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    let joined = all
        .into_iter()
        .map(|(name, values)| (name, values.join(" and ")));
    joined.collect()
}

fn of_run(run: &RunView) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    flatten("plan", &value(&run.plan), &mut all);
    for (role, name) in ENDS {
        let end = run.end(role);
        all.insert(format!("{name}.software"), end.software.to_string());
        flatten(&format!("{name}.host"), &value(&end.host), &mut all);
        let interface = value(&end.interface);
        flatten(&format!("{name}.interface"), &interface, &mut all);
        let facts = end.host.fingerprint.as_ref();
        let facts = facts.into_iter().flat_map(Fingerprint::facts);
        let facts = facts.map(|(key, value)| (key.to_string(), value.to_string()));
        let once = facts.filter(|(key, _)| TWICE.iter().all(|(_, twice)| twice != key));
        all.extend(once.map(|(key, value)| (format!("{name}.{key}"), value)));
    }
    for direction in &run.directions {
        granted(direction, &mut all);
    }
    all
}

/// As [`of_run`], with each fact under its fingerprint's name alone, and the speed of each end's link.
pub(super) fn facts_of_run(run: &RunView) -> BTreeMap<String, String> {
    let mut all = of_run(run);
    for (role, name) in ENDS {
        let end = run.end(role);
        for (host, _) in TWICE {
            all.remove(&format!("{name}.{host}"));
        }
        let older = || Fingerprint::older(&end.host, end.interface.as_ref());
        let told = end.host.fingerprint.clone().unwrap_or_else(older);
        let facts = told.facts();
        all.extend(facts.map(|(key, value)| (format!("{name}.{key}"), value.to_string())));
        all.remove(&format!("{name}.interface.speed_mbit_per_s"));
        let speed = end.interface.as_ref().and_then(InterfaceFacts::speed_bps);
        all.extend(speed.map(|bps| (format!("{name}.{LINK_SPEED}"), words::rate(bps))));
        // What a kernel keeps for itself differs from build to build.
        let memory = end.host.memory_bytes.map(|bytes| bytes as f64 / GIBIBYTE);
        let memory = memory.map(|memory| format!("{memory:.1} GiB"));
        all.extend(memory.map(|memory| (format!("{name}.host.memory_bytes"), memory)));
    }
    all
}

/// What the kernels granted, beside what was asked for.
fn granted(direction: &DirectionView, all: &mut BTreeMap<String, String>) {
    let flow = value(&direction.flow);
    let flow = flow.as_str().unwrap_or_default();
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| bytes.to_string());
    let congestion = &direction.congestion;
    let path_mtu = direction.path_mtu_bytes.map(u64::from);
    // Autotuned buffers end somewhere else in each run.
    let fixed = |of: Option<u64>| bytes(of.filter(|_| direction.window_asked_bytes.is_some()));
    for (name, value) in [
        (
            "congestion",
            (!congestion.is_empty()).then(|| congestion.join(", ")),
        ),
        ("mss_bytes", bytes(direction.mss_bytes)),
        ("path_mtu_bytes", bytes(path_mtu)),
        ("send_buffer_bytes", fixed(direction.send_buffer_bytes)),
        (
            "receive_buffer_bytes",
            fixed(direction.receive_buffer_bytes),
        ),
    ] {
        all.extend(value.map(|value| (format!("{flow}.{name}"), value)));
    }
}

/// Every leaf of a value by its path; what is null is not there, lists stay together.
fn flatten(path: &str, value: &Value, all: &mut BTreeMap<String, String>) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (name, inner) in members {
                if !PASSING.contains(&name.as_str()) {
                    flatten(&format!("{path}.{name}"), inner, all);
                }
            }
        }
        Value::String(text) => {
            all.insert(path.to_owned(), text.clone());
        }
        other => {
            all.insert(path.to_owned(), other.to_string());
        }
    }
}
