//! `drbdsetup show`, and resource files, whose form it has.

use linerate_model::storage::DrbdSettings;
use linerate_model::transcript::Part;

use crate::Input;
use crate::number::printed;

/// A block of braces that is open.
#[derive(Default)]
pub(super) struct Lines {
    /// Names of the blocks that are open.
    inside: Vec<String>,
    /// The resource's first volume, by its place among all.
    first: usize,
}

/// Blocks within each other at most: resource, host, volume, disk and room for more.
const DEEPEST: usize = 16;

impl Lines {
    pub(super) fn take(
        &mut self,
        input: &Input<'_>,
        words: &[&str],
        parts: &mut Vec<Part>,
    ) -> bool {
        let text = input.text.split(" #").next().unwrap_or_default().trim();
        if let ["resource", name, "{", ..] = words {
            self.inside = vec!["resource".to_owned()];
            let held = DrbdSettings {
                line: input.number,
                resource: name.trim_matches('"').into(),
                ..DrbdSettings::default()
            };
            if !matches!(parts.last(), Some(Part::DrbdSettings(_))) {
                parts.push(Part::DrbdSettings(Vec::new()));
            }
            if let Some(Part::DrbdSettings(all)) = parts.last_mut() {
                self.first = all.len();
                all.push(held);
            }
            return true;
        }
        let Some(Part::DrbdSettings(all)) = parts.last_mut() else {
            self.inside.clear();
            return false;
        };
        if self.inside.is_empty() || self.first >= all.len() {
            return false;
        }
        if text.is_empty() || text.starts_with('#') {
            return true;
        }
        if text.starts_with('}') {
            self.inside.pop();
            return true;
        }
        if let Some(name) = text.strip_suffix('{') {
            if self.inside.len() == DEEPEST {
                return false;
            }
            self.inside.push(name.trim().to_owned());
            return true;
        }
        let Some((key, value)) = text
            .strip_suffix(';')
            .and_then(|text| text.split_once(char::is_whitespace))
        else {
            // A setting without a value: `external;`.
            return text.ends_with(';');
        };
        let value = value.trim();
        let block = self.inside.last().map_or("", String::as_str);
        let minor = value.rsplit_once("minor").map(|(_, minor)| minor.trim());
        let minor = minor.and_then(|minor| minor.parse().ok());
        if key == "device" && all.last().is_some_and(|held| held.minor.is_some()) {
            // A further volume has what its resource said before.
            all.extend(all.last().cloned());
        }
        let is_of_volume = self.inside.iter().any(|block| block.starts_with("volume"));
        let from = if is_of_volume {
            all.len() - 1
        } else {
            self.first
        };
        for held in &mut all[from..] {
            match (key, block) {
                ("address", "_this_host" | "_remote_host") => {
                    held.addresses[usize::from(block == "_remote_host")] = Some(value.into());
                }
                ("_this_host" | "_remote_host", _) => {
                    held.addresses[usize::from(key == "_remote_host")] = Some(value.into());
                }
                ("device", _) => held.minor = minor,
                _ => set(held, key, value),
            }
        }
        true
    }
}

/// Takes a setting that bears on synchronisation. Without a unit, rates are KiB/s and the fill target counts sectors
/// of 512 bytes (drbd.conf(5)).
pub(super) fn set(held: &mut DrbdSettings, key: &str, value: &str) {
    let kib = |bare: f64| amount(value, bare);
    match key {
        "protocol" => held.protocol = Some(value.into()),
        "c-plan-ahead" => held.plan_ahead_tenths = printed(value).map(|number| number.value),
        "c-fill-target" => held.fill_target_kib = kib(0.5),
        "c-max-rate" => held.max_rate_kib_s = kib(1.0),
        "c-min-rate" => held.min_rate_kib_s = kib(1.0),
        "resync-rate" | "rate" => held.resync_rate_kib_s = kib(1.0),
        // A number of pages, whose `k` is 1024.
        "max-buffers" => held.max_buffers = amount(value, 1.0 / 1024.0).map(|kib| kib * 1024.0),
        _ => {}
    }
}

/// `102400k`, `2048s`, `10M` in KiB; `bare` is the unit of a number alone, KiB.
pub(super) fn amount(text: &str, bare: f64) -> Option<f64> {
    let (digits, unit) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let factor = match unit {
        "" => bare,
        "s" => 0.5,
        "k" | "K" => 1.0,
        "m" | "M" => 1024.0,
        "g" | "G" => 1_048_576.0,
        _ => return None,
    };
    printed(digits)
        .map(|number| number.value * factor)
        .filter(|kib| (0.0..1e15).contains(kib))
}
