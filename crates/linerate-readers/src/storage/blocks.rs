//! `iostat -x` and `/proc/diskstats`.

use linerate_model::storage::{Device, Diskstats, Iostat, IostatBlock};
use linerate_model::transcript::Part;

use crate::Input;
use crate::number::printed;

/// A heading begins a block.
pub(super) fn heading(words: &[&str], parts: &mut Vec<Part>) {
    if !matches!(parts.last(), Some(Part::Iostat(_))) {
        parts.push(Part::Iostat(Iostat::default()));
    }
    if let Some(Part::Iostat(iostat)) = parts.last_mut() {
        iostat.blocks.push(IostatBlock {
            columns: words[1..].iter().map(|word| (*word).into()).collect(),
            devices: Vec::new(),
        });
    }
}

/// A device's row: as many numbers as the heading has columns.
pub(super) fn device(line: usize, words: &[&str], parts: &mut [Part]) -> bool {
    let Some(Part::Iostat(iostat)) = parts.last_mut() else {
        return false;
    };
    let (Some(block), [name, values @ ..]) = (iostat.blocks.last_mut(), words) else {
        return false;
    };
    if values.len() != block.columns.len() {
        return false;
    }
    let Some(values) = values
        .iter()
        .map(|word| printed(word))
        .collect::<Option<Vec<_>>>()
    else {
        return false;
    };
    block.devices.push(Device {
        line,
        name: (*name).into(),
        values,
    });
    true
}

/// What iostat prints around its blocks: the host's line and the CPU's.
pub(super) fn banner(words: &[&str]) -> bool {
    match words {
        ["Linux" | "avg-cpu:", ..] => true,
        [first, ..] => {
            words.len() == 6
                && first.contains('.')
                && words.iter().all(|word| printed(word).is_some())
        }
        [] => false,
    }
}

/// `253 2 dm-2 487 0 3884 …`: at least 11 fields behind the name.
pub(super) fn diskstats(input: &Input<'_>, parts: &mut Vec<Part>) -> bool {
    let words: Vec<&str> = input.text.split_whitespace().collect();
    let [major, minor, device, fields @ ..] = words.as_slice() else {
        return false;
    };
    let numbers = major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok();
    let named = device.starts_with(|c: char| c.is_ascii_alphabetic());
    if !numbers || !named || !(11..=20).contains(&fields.len()) {
        return false;
    }
    let Ok(fields) = fields
        .iter()
        .map(|word| word.parse())
        .collect::<Result<Vec<u64>, _>>()
    else {
        return false;
    };
    if !matches!(parts.last(), Some(Part::Diskstats(_))) {
        parts.push(Part::Diskstats(Vec::new()));
    }
    if let Some(Part::Diskstats(lines)) = parts.last_mut() {
        lines.push(Diskstats {
            line: input.number,
            device: (*device).into(),
            fields,
        });
    }
    true
}
