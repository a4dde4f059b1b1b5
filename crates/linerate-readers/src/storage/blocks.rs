//! `iostat -x` and `/proc/diskstats`.

use linerate_model::storage::{Device, Diskstats, FirstBlock, Iostat, IostatBlock};
use linerate_model::transcript::{Part, Printed};
use serde_json::Value;

use crate::number::printed;

/// Fields behind the name in `/proc/diskstats`: 11 in 2.6, 15 from 4.18, 17 from 5.5 on; newer kernels may add more.
const LEAST: usize = 11;
const MOST: usize = 64;
/// Requests in flight, by its place among the fields.
const IN_FLIGHT: usize = 8;

/// A heading begins a block. With `-h` the device's column is the last one.
pub(super) fn heading(words: &[&str], first: FirstBlock, parts: &mut Vec<Part>) {
    let ([columns @ .., "Device"] | [_, columns @ ..]) = words else {
        return;
    };
    let columns = columns.iter().map(|word| (*word).into()).collect();
    add(columns, Vec::new(), first, parts);
}

fn add(
    columns: Vec<linerate_model::plain_text::PlainText>,
    devices: Vec<Device>,
    first: FirstBlock,
    parts: &mut Vec<Part>,
) {
    // A banner begins another run, and so do other columns.
    let goes_on = first == FirstBlock::Unknown
        && matches!(parts.last(), Some(Part::Iostat(iostat))
            if iostat.blocks.last().is_some_and(|block| block.columns == columns));
    if !goes_on {
        parts.push(Part::Iostat(Iostat {
            first,
            ..Iostat::default()
        }));
    }
    if let Some(Part::Iostat(iostat)) = parts.last_mut() {
        iostat.blocks.push(IostatBlock { columns, devices });
    }
}

/// A device's row: as many numbers as the heading has columns.
pub(super) fn device(line: usize, words: &[&str], parts: &mut [Part]) -> Option<()> {
    let Some(Part::Iostat(iostat)) = parts.last_mut() else {
        return None;
    };
    let block = iostat.blocks.last_mut()?;
    let (name, values) = match words {
        [values @ .., name] if name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            (name, values)
        }
        [name, values @ ..] => (name, values),
        [] => return None,
    };
    if values.len() != block.columns.len() {
        return None;
    }
    let each = values.iter().zip(&block.columns);
    block.devices.push(Device {
        line,
        name: (*name).into(),
        values: each
            .map(|(word, column)| figure(word, column))
            .collect::<Option<_>>()?,
    });
    Some(())
}

/// A figure: `0.00`, `0,00` where the locale has decimal commas, `1.2M` or `5.0%` with `-h`.
fn figure(word: &str, column: &str) -> Option<Printed> {
    let word = word.strip_suffix('%').unwrap_or(word);
    let (digits, unit) = match word.find(|c: char| c.is_ascii_alphabetic() && c != 'e') {
        Some(at) => word.split_at(at),
        None => (word, ""),
    };
    let digits = if digits.matches(',').count() == 1 && !digits.contains('.') {
        digits.replace(',', ".")
    } else {
        digits.to_owned()
    };
    let kib = match unit {
        "" => return printed(&digits),
        "B" => 1.0 / 1024.0,
        "k" => 1.0,
        "M" => 1024.0,
        "G" => 1_048_576.0,
        "T" => 1_073_741_824.0,
        _ => return None,
    };
    let factor = if column.contains("MB") {
        kib / 1024.0
    } else {
        kib
    };
    printed(&digits).map(|number| number.times(factor))
}

/// `iostat -o JSON`: each element of `statistics` is a block.
pub(super) fn take_json(
    value: &Value,
    line: usize,
    first: FirstBlock,
    parts: &mut Vec<Part>,
) -> bool {
    let Some(hosts) = value["sysstat"]["hosts"].as_array() else {
        return false;
    };
    let statistics = hosts
        .iter()
        .flat_map(|host| host["statistics"].as_array().into_iter().flatten());
    let mut begins = first;
    let mut known = false;
    for disks in statistics.filter_map(|one| one["disk"].as_array()) {
        let keys: Vec<&String> = disks
            .first()
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|first| first.iter())
            .filter(|(_, value)| value.is_number())
            .map(|(key, _)| key)
            .collect();
        let devices = disks.iter().filter_map(|disk| {
            let values = keys.iter().map(|key| {
                // Two digits, whatever JSON made of them.
                disk[key.as_str()]
                    .as_f64()
                    .map(|value| Printed { value, half: 0.005 })
            });
            Some(Device {
                line,
                name: disk["disk_device"].as_str()?.into(),
                values: values.collect::<Option<_>>()?,
            })
        });
        let devices = devices.collect();
        let columns = keys
            .iter()
            .map(|key| {
                if *key == "util" {
                    "%util".into()
                } else {
                    (*key).into()
                }
            })
            .collect();
        add(columns, devices, begins, parts);
        begins = FirstBlock::Unknown;
        known = true;
    }
    known
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
    if !numbers || !named || !(LEAST..=MOST).contains(&fields.len()) {
        return None;
    }
    let fields: Result<Vec<u64>, _> = fields
        .iter()
        .enumerate()
        .map(|(at, word)| match word.strip_prefix('-') {
            // Some kernels count requests in flight below 0.
            Some(below) if at == IN_FLIGHT => below.parse::<u64>().map(|_| 0),
            _ => word.parse(),
        })
        .collect();
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
