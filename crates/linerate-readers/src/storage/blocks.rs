//! `iostat -x` and `/proc/diskstats`.

use linerate_model::storage::{Device, Diskstats, Iostat, IostatBlock};
use linerate_model::transcript::Part;

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
pub(super) fn device(line: usize, words: &[&str], parts: &mut [Part]) -> Option<()> {
    let (Some(Part::Iostat(iostat)), [name, values @ ..]) = (parts.last_mut(), words) else {
        return None;
    };
    let block = iostat.blocks.last_mut()?;
    if values.len() != block.columns.len() {
        return None;
    }
    block.devices.push(Device {
        line,
        name: (*name).into(),
        values: values
            .iter()
            .map(|word| printed(word))
            .collect::<Option<_>>()?,
    });
    Some(())
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
pub(super) fn diskstats(line: usize, words: &[&str], parts: &mut Vec<Part>) -> Option<()> {
    let [major, minor, device, fields @ ..] = words else {
        return None;
    };
    let numbers = major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok();
    let named = device.starts_with(|c: char| c.is_ascii_alphabetic());
    if !numbers || !named || !(11..=20).contains(&fields.len()) {
        return None;
    }
    let fields: Result<Vec<u64>, _> = fields.iter().map(|word| word.parse()).collect();
    let fields = fields.ok()?;
    if !matches!(parts.last(), Some(Part::Diskstats(_))) {
        parts.push(Part::Diskstats(Vec::new()));
    }
    if let Some(Part::Diskstats(lines)) = parts.last_mut() {
        lines.push(Diskstats {
            line,
            device: (*device).into(),
            fields,
        });
    }
    Some(())
}
