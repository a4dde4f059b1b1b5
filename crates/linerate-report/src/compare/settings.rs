//! What is not the same in all runs: settings of the plan, facts of the hosts, what was granted.

use std::collections::BTreeMap;

use linerate_model::record::Role;
use serde::Serialize;
use serde_json::Value;

use super::Side;
use crate::json::value;
use crate::view::{DirectionView, RunView};

/// A setting or a fact whose value differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its name, as in the record: `plan.window_bytes`, `server.host.tcp_rmem`.
    pub name: String,
    /// Its value on each side, in their order; absent = not set or not known. Where the runs of a side differ,
    /// all of their values.
    pub values: Vec<Option<String>>,
}

/// What differs from run to run without being a setting.
const PASSING: [&str; 6] = [
    "boot_id",
    "network_namespace",
    "index",
    "extra_data",
    "title",
    "client_port",
];

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
    for (role, name) in [(Role::Client, "client"), (Role::Server, "server")] {
        let end = run.end(role);
        all.insert(format!("{name}.software"), end.software.to_string());
        flatten(&format!("{name}.host"), &value(&end.host), &mut all);
        let interface = value(&end.interface);
        flatten(&format!("{name}.interface"), &interface, &mut all);
    }
    for direction in &run.directions {
        granted(direction, &mut all);
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
