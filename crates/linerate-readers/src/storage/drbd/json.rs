//! `drbdsetup status --json` and `drbdsetup show --json`, which version 9 has.

use linerate_model::storage::DrbdSettings;
use linerate_model::transcript::Part;
use serde_json::Value;

use super::fold::Fold;
use super::settings;

/// Arrays of resources: status has devices and connections, show has this host.
pub(in crate::storage) fn take(value: &Value, line: usize, parts: &mut Vec<Part>) -> bool {
    let Some(resources) = value.as_array().filter(|all| !all.is_empty()) else {
        return false;
    };
    let status = |one: &Value| one["connections"].is_array() && one["devices"].is_array();
    if resources.iter().all(status) {
        let mut fold = Fold::default();
        for resource in resources {
            add(&mut fold, resource, line);
        }
        parts.push(Part::Drbd(fold.finish()));
        return true;
    }
    let shown = |one: &Value| one["resource"].is_string() && one["_this_host"].is_object();
    if resources.iter().all(shown) {
        let settings = resources.iter().map(|one| settings_of(one, line)).collect();
        parts.push(Part::DrbdSettings(settings));
        return true;
    }
    false
}

/// A value as text.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        _ => String::new(),
    }
}

fn add(fold: &mut Fold, resource: &Value, line: usize) {
    let name = text(&resource["name"]);
    let suspended = [
        "suspended",
        "suspended-user",
        "suspended-no-data",
        "suspended-fencing",
        "suspended-quorum",
    ]
    .iter()
    .any(|key| text(&resource[*key]) == "yes");
    let role = text(&resource["role"]);
    let suspended = if suspended { "yes" } else { "no" };
    fold.resource(&name, &[("role", &role), ("suspended", suspended)]);
    for device in resource["devices"].as_array().into_iter().flatten() {
        let volume = device["volume"].as_u64().unwrap_or(0);
        let disk = text(&device["disk-state"]);
        let quorum = text(&device["quorum"]);
        let client = text(&device["client"]);
        let facts = [("disk", &*disk), ("quorum", &*quorum), ("client", &*client)];
        fold.device(line, (&name, volume), &facts);
    }
    for connection in resource["connections"].as_array().into_iter().flatten() {
        let peer = text(&connection["name"]);
        let state = text(&connection["connection-state"]);
        let role = text(&connection["peer-role"]);
        fold.link(
            line,
            (&name, &peer),
            &[("connection", &state), ("role", &role)],
        );
        for device in connection["peer_devices"].as_array().into_iter().flatten() {
            let volume = device["volume"].as_u64().unwrap_or(0);
            let keys = [
                ("replication-state", "replication"),
                ("peer-disk-state", "peer-disk"),
                ("peer-client", "peer-client"),
                ("out-of-sync", "out-of-sync"),
                ("percent-in-sync", "done"),
                ("percent-resync-done", "done"),
                ("resync-suspended", "resync-suspended"),
                ("pending", "pending"),
                ("unacked", "unacked"),
                ("want", "want"),
                ("db1/dt1 [MiB/s]", "db1/dt1 [MiB/s]"),
                ("estimated-seconds-to-finish", "estimated-seconds-to-finish"),
            ];
            let facts: Vec<(&str, String)> = keys
                .iter()
                .filter(|(key, _)| !device[*key].is_null())
                .map(|(key, name)| (*name, text(&device[*key])))
                .collect();
            let facts: Vec<(&str, &str)> = facts
                .iter()
                .map(|(key, value)| (*key, value.as_str()))
                .collect();
            fold.peer_device(line, &(name.clone(), peer.clone(), volume), &facts);
        }
    }
}

fn settings_of(resource: &Value, line: usize) -> DrbdSettings {
    let mut held = DrbdSettings {
        line,
        resource: text(&resource["resource"]).into(),
        ..DrbdSettings::default()
    };
    walk(resource, &mut held);
    held
}

/// All settings of all levels; JSON of `serde_json` is at most 128 levels deep.
fn walk(value: &Value, held: &mut DrbdSettings) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match key.as_str() {
                    "device_minor" => held.minor = value.as_u64(),
                    "_this_host" | "_remote_host" if value.is_string() => {
                        held.addresses[usize::from(key == "_remote_host")] =
                            Some(text(value).into());
                    }
                    _ => settings::set(held, key, &text(value)),
                }
                walk(value, held);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| walk(value, held)),
        _ => {}
    }
}
