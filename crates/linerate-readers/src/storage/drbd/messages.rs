//! What DRBD's tools and its kernel module refuse or report, `drbdadm show-gi`, and notes of measured resyncs.

use linerate_model::storage::{
    DrbdGeneration, DrbdMeasured, DrbdMessage, DrbdMessageKind as Kind, DrbdSettings,
};
use linerate_model::transcript::Part;

use super::settings;
use crate::Input;
use crate::number::printed;

/// Messages.
#[derive(Default)]
pub(super) struct Lines;

impl Lines {
    #[expect(clippy::unused_self, reason = "the readers beside it have a state")]
    pub(super) fn take(
        &mut self,
        input: &Input<'_>,
        words: &[&str],
        parts: &mut Vec<Part>,
    ) -> bool {
        if generation(input, words, parts) {
            return true;
        }
        if let Some(measured) = measured(input, words) {
            match parts.last_mut() {
                Some(Part::DrbdMeasured(all)) => all.push(measured),
                _ => parts.push(Part::DrbdMeasured(vec![measured])),
            }
            return true;
        }
        let Some(kind) = kind(input.text) else {
            return false;
        };
        let message = DrbdMessage {
            line: input.number,
            kind,
            text: input.text.chars().take(200).collect(),
        };
        match parts.last_mut() {
            Some(Part::DrbdMessages(all)) => all.push(message),
            _ => parts.push(Part::DrbdMessages(vec![message])),
        }
        true
    }
}

/// What a message says; `None` where it is none of DRBD's.
fn kind(text: &str) -> Option<Kind> {
    let line = text.rsplit_once("kernel: ").map_or(text, |(_, line)| line);
    let stamped = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let line = stamped.map_or(line, |(_, line)| line).trim_start();
    let of_tool = ["drbdadm", "drbdsetup", "drbdmeta"]
        .iter()
        .any(|tool| line.starts_with(tool) || line.starts_with(&format!("try '{tool}")));
    let of_kernel = line.starts_with("block drbd") || line.starts_with("drbd ");
    let refused = line.contains("State change failed:");
    let command = line.starts_with("Command 'drbd") && line.contains("terminated with exit code");
    if !(of_tool || of_kernel || refused || command) {
        return None;
    }
    Some(match line {
        _ if line.contains("Need access to UpToDate data") => Kind::NoUpToDateData,
        _ if refused => Kind::StateRefused,
        _ if line.contains("Split-Brain detected") && line.contains("automatically solved") => {
            Kind::SplitBrainSolved
        }
        _ if line.contains("Split-Brain detected") => Kind::SplitBrain,
        _ if line.contains("Unrelated data") => Kind::Unrelated,
        _ if line.contains("unrecognized option") => Kind::UnknownOption,
        _ if line.contains("not defined in your config")
            || line.contains("no resources defined") =>
        {
            Kind::NotConfigured
        }
        _ => Kind::Detail,
    })
}

/// Lines of `drbdadm show-gi`: a drawing around one line of UUIDs and flags.
fn generation(input: &Input<'_>, words: &[&str], parts: &mut Vec<Part>) -> bool {
    let text = input.text;
    if text.contains("Current data generation UUID") {
        parts.push(Part::DrbdGeneration(DrbdGeneration {
            line: input.number,
            ..DrbdGeneration::default()
        }));
        return true;
    }
    let Some(Part::DrbdGeneration(held)) = parts.last_mut() else {
        return false;
    };
    let drawn = |c: char| matches!(c, '|' | '+' | '-' | 'V' | '^' | ' ' | '<' | '>');
    if text.contains("-<  ") && text.contains("  >-") || text.chars().all(drawn) {
        return true;
    }
    if let ["flags:", ..] = words {
        return true;
    }
    if let ["meta-data:", state @ ..] = words {
        held.needs_activity_log = state.contains(&"apply-al");
        return true;
    }
    let fields: Vec<&str> = text.split(':').collect();
    let uuid = |field: &&&str| field.len() == 16 && field.bytes().all(|b| b.is_ascii_hexdigit());
    let uuids = fields.iter().take_while(uuid).count();
    let flags = fields.get(uuids..).unwrap_or_default();
    if uuids < 2 || !flags.iter().all(|flag| matches!(*flag, "0" | "1")) {
        return false;
    }
    held.uuids = fields[..uuids].iter().map(|uuid| (*uuid).into()).collect();
    held.flags = flags.iter().map(|flag| *flag == "1").collect();
    true
}

/// `c-fill-target=1M   resync 33671 KiB/s  wire 34777 KiB/s  want 31240..41400`: settings, a rate and what was wanted.
fn measured(input: &Input<'_>, words: &[&str]) -> Option<DrbdMeasured> {
    let unit = words
        .iter()
        .position(|word| matches!(word.trim_end_matches([',', ';']), "KiB/s" | "K/sec"))?;
    let from = words[..unit]
        .iter()
        .rposition(|word| matches!(*word, "resync" | "printed" | "speed"))?;
    let rate_kib_s = span(&words[from + 1..unit])?;
    let want = words.iter().position(|word| *word == "want");
    let mut settings = DrbdSettings {
        line: input.number,
        ..DrbdSettings::defaults()
    };
    for (at, word) in words[..from].iter().enumerate() {
        let next = words[at + 1].trim_end_matches([',', ':']);
        let word = word.trim_end_matches([',', ':']);
        let (key, value) = word.split_once('=').unwrap_or((word, next));
        if value.starts_with(|c: char| c.is_ascii_digit()) {
            settings::set(&mut settings, key, value);
        }
    }
    let label = input.text.split("  ").next().unwrap_or_default();
    let label = label.split(": printed").next().unwrap_or_default();
    Some(DrbdMeasured {
        line: input.number,
        label: label.chars().take(120).collect(),
        settings,
        application_writes: words[..from].iter().any(|word| word.ends_with("write")),
        rate_kib_s,
        want_kib_s: want.and_then(|at| span(words.get(at + 1..at + 2)?)),
    })
}

/// `5296`, `31240..41400` or `760 then 372`: the least and the most.
fn span(words: &[&str]) -> Option<[f64; 2]> {
    let numbers: Vec<f64> = words
        .iter()
        .filter(|word| **word != "then")
        .flat_map(|word| word.split(".."))
        .map(|text| printed(text).map(|number| number.value))
        .collect::<Option<_>>()?;
    let least = numbers.iter().copied().reduce(f64::min)?;
    Some([least, numbers.iter().copied().fold(least, f64::max)])
}
