//! `/proc/drbd` and `drbdsetup status --json`.

use std::collections::HashMap;

use linerate_model::storage::{Drbd, DrbdSync};
use linerate_model::transcript::Part;
use serde_json::Value;

use crate::number::printed;

/// Lines of `/proc/drbd`.
#[derive(Default)]
pub(super) struct Lines {
    version: Option<String>,
    open: bool,
}

impl Lines {
    pub(super) fn take(&mut self, line: usize, words: &[&str], parts: &mut Vec<Part>) -> bool {
        match words {
            ["version:", version, api, ..] if api.starts_with("(api:") => {
                self.version = Some((*version).to_owned());
                self.open = false;
                true
            }
            ["GIT-hash:" | "srcversion:", ..] => true,
            [minor, state, ..] if minor.ends_with(':') && state.starts_with("cs:") => {
                self.device(line, words, parts);
                true
            }
            _ => match parts.last_mut() {
                Some(Part::Drbd(devices)) if self.open => devices
                    .last_mut()
                    .is_some_and(|device| below(device, words)),
                _ => false,
            },
        }
    }

    fn device(&mut self, line: usize, words: &[&str], parts: &mut Vec<Part>) {
        let value = |key: &str| {
            words
                .iter()
                .find_map(|word| word.strip_prefix(key))
                .unwrap_or_default()
                .to_owned()
        };
        let pair = |key: &str| {
            let text = value(key);
            let (own, peer) = text.split_once('/').unwrap_or((&text, ""));
            [own.into(), peer.into()]
        };
        if !self.open || !matches!(parts.last(), Some(Part::Drbd(_))) {
            parts.push(Part::Drbd(Vec::new()));
            self.open = true;
        }
        if let Some(Part::Drbd(devices)) = parts.last_mut() {
            devices.push(Drbd {
                line,
                name: words[0].trim_end_matches(':').into(),
                version: self.version.clone().map(Into::into),
                connection: value("cs:").into(),
                roles: pair("ro:"),
                disks: pair("ds:"),
                ..Drbd::default()
            });
        }
    }
}

/// Counters and progress below a device.
fn below(device: &mut Drbd, words: &[&str]) -> bool {
    if words.first().is_some_and(|word| word.starts_with("ns:")) {
        let oos = words.iter().find_map(|word| word.strip_prefix("oos:"));
        device.out_of_sync_kib = oos.and_then(|text| text.parse().ok());
        return true;
    }
    // `[>....................] sync'ed: 0.2% (2093220/2097148)M`
    if let Some(at) = words.iter().position(|word| *word == "sync'ed:") {
        let sync = device.sync.get_or_insert_default();
        let text = words[at + 1..].concat();
        let (percent, rest) = text.split_once('%').unwrap_or((&text, ""));
        sync.done_percent = printed(percent);
        if let Some((amounts, unit)) = rest.trim_start_matches('(').split_once(')') {
            let scale = match unit {
                "M" => 1.0,
                "K" => 1.0 / 1024.0,
                "G" => 1024.0,
                _ => return true,
            };
            let (left, whole) = amounts.split_once('/').unwrap_or((amounts, ""));
            let mib = |text: &str| printed(text).map(|number| number.value * scale);
            (sync.left_mib, sync.whole_mib) = (mib(left), mib(whole));
        }
        return true;
    }
    // `finish: 5:59:58 speed: 99,236 (82,104) K/sec`
    if let ["finish:", time, "speed:", speed, ..] = words {
        let sync = device.sync.get_or_insert_default();
        sync.finish_s = clock(time);
        sync.kib_per_second = printed(&speed.replace(',', "")).map(|number| number.value);
        return true;
    }
    words
        .first()
        .is_some_and(|word| word.starts_with("resync:") || word.starts_with("act_log:"))
}

/// `5:59:58` in seconds.
fn clock(text: &str) -> Option<u64> {
    text.split(':').try_fold(0_u64, |sum, part| {
        sum.checked_mul(60)?.checked_add(part.parse().ok()?)
    })
}

/// `drbdsetup status --json`: resources with devices and connections.
pub(super) fn take_json(value: &Value, line: usize, parts: &mut Vec<Part>) -> bool {
    let Some(resources) = value.as_array().filter(|all| {
        !all.is_empty()
            && all
                .iter()
                .all(|one| one["connections"].is_array() && one["devices"].is_array())
    }) else {
        return false;
    };
    let mut devices = Vec::new();
    for resource in resources {
        let own = own_devices(resource);
        for connection in resource["connections"].as_array().into_iter().flatten() {
            for peer in connection["peer_devices"].as_array().into_iter().flatten() {
                devices.push(peer_device(resource, &own, connection, peer, line));
            }
        }
    }
    parts.push(Part::Drbd(devices));
    true
}

/// This end's devices, by their volumes.
fn own_devices(resource: &Value) -> HashMap<Option<u64>, &Value> {
    let devices = resource["devices"].as_array().into_iter().flatten();
    // The first of a volume counts.
    let pairs = devices.rev().map(|one| (one["volume"].as_u64(), one));
    pairs.collect()
}

fn peer_device(
    resource: &Value,
    own: &HashMap<Option<u64>, &Value>,
    connection: &Value,
    peer: &Value,
    line: usize,
) -> Drbd {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let volume = peer["volume"].as_u64();
    let own = own.get(&volume);
    let state = text(&peer["replication-state"]);
    let connected = text(&connection["connection-state"]);
    let percent = peer["percent-in-sync"].as_f64();
    Drbd {
        line,
        name: format!(
            "{}/{} to {}",
            text(&resource["name"]),
            volume.unwrap_or(0),
            text(&connection["name"])
        )
        .into(),
        version: None,
        connection: if connected == "Connected" && !state.is_empty() && state != "Off" {
            state.into()
        } else {
            connected.into()
        },
        roles: [
            text(&resource["role"]).into(),
            text(&connection["peer-role"]).into(),
        ],
        disks: [
            own.map(|device| text(&device["disk-state"]))
                .unwrap_or_default()
                .into(),
            text(&peer["peer-disk-state"]).into(),
        ],
        out_of_sync_kib: peer["out-of-sync"].as_u64(),
        sync: percent
            .filter(|percent| *percent < 100.0)
            .map(|percent| DrbdSync {
                left_mib: peer["out-of-sync"].as_u64().map(|kib| kib as f64 / 1024.0),
                done_percent: Some(linerate_model::transcript::Printed {
                    value: percent,
                    half: 0.005,
                }),
                ..DrbdSync::default()
            }),
    }
}
