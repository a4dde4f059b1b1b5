//! `vgs`, `lvs` and `pvs`, as text and as JSON (`--reportformat json`).

use linerate_model::storage::{LogicalVolume, PhysicalVolume, VolumeGroup, Volumes};
use linerate_model::transcript::Part;
use serde_json::Value;

use crate::number::printed;

fn volumes(parts: &mut Vec<Part>) -> &mut Volumes {
    if !matches!(parts.last(), Some(Part::Volumes(_))) {
        parts.push(Part::Volumes(Volumes::default()));
    }
    match parts.last_mut() {
        Some(Part::Volumes(volumes)) => volumes,
        _ => unreachable!("it was pushed above"),
    }
}

/// A row of `vgs`: it has no empty cells.
pub(super) fn group(names: &[String], words: &[&str], parts: &mut Vec<Part>) -> Option<()> {
    if words.len() != names.len() {
        return None;
    }
    let value = |name: &str| {
        let at = names.iter().position(|other| other == name);
        at.and_then(|at| words.get(at)).copied().unwrap_or_default()
    };
    let group = VolumeGroup {
        name: value("VG").into(),
        physical: value("#PV").parse().ok()?,
        logical: value("#LV").parse().ok()?,
        attributes: value("Attr").into(),
        size_free: [value("VSize").into(), value("VFree").into()],
    };
    volumes(parts).groups.push(group);
    Some(())
}

/// A row of `lvs`: cells behind the size may be empty, so they are told by their form.
pub(super) fn logical(
    line: usize,
    names: &[String],
    words: &[&str],
    parts: &mut Vec<Part>,
) -> Option<()> {
    let [name, group, attributes, size, rest @ ..] = words else {
        return None;
    };
    let attribute = (6..=10).contains(&attributes.len())
        && attributes
            .chars()
            .all(|c| c.is_ascii_alphabetic() || c == '-');
    let ordered = names.get(2).is_some_and(|name| name == "Attr");
    if !attribute
        || !ordered
        || rest.len() > names.len()
        || !size.contains(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    let mut shares = rest
        .iter()
        .filter_map(|word| printed(word).filter(|_| word.contains('.')))
        .map(|number| number.value);
    // A thin pool has no copies, but two shares that are used.
    let (used_percent, copied_percent) = if attributes.starts_with('t') {
        ([shares.next(), shares.next()], None)
    } else {
        ([None; 2], shares.next())
    };
    volumes(parts).volumes.push(LogicalVolume {
        line,
        name: (*name).into(),
        group: (*group).into(),
        attributes: (*attributes).into(),
        size: (*size).into(),
        log: rest
            .iter()
            .find(|word| word.contains("_mlog") || word.contains("_log"))
            .map(|word| (*word).into()),
        copied_percent,
        used_percent,
        ..LogicalVolume::default()
    });
    Some(())
}

/// A row of `pvs`: the group is empty where the device belongs to none.
pub(super) fn physical(names: &[String], words: &[&str], parts: &mut Vec<Part>) -> Option<()> {
    let missing = names.len().checked_sub(words.len())?;
    if missing > 1 || !words[0].contains('/') && words[0] != "[unknown]" {
        return None;
    }
    let value = |name: &str| {
        let at = names.iter().position(|other| other == name)?;
        let place = match (name, missing) {
            ("VG", 1) => return None,
            (_, missing) if at > 0 => at - missing,
            _ => at,
        };
        words.get(place).copied()
    };
    let held = PhysicalVolume {
        name: words[0].into(),
        group: value("VG").unwrap_or_default().into(),
        size_free: [value("PSize")?.into(), value("PFree")?.into()],
        start_bytes: None,
    };
    volumes(parts).physical.push(held);
    Some(())
}

/// `{"report": [{"lv": […]}, {"vg": […]}, {"pv": […]}]}`: every value is a text, and `""` is an absent one; in
/// `json_std` numbers are numbers and absent ones null.
pub(super) fn take_json(value: &Value, line: usize, parts: &mut Vec<Part>) -> bool {
    let reports = value["report"].as_array();
    let Some(reports) = reports.filter(|all| all.iter().all(Value::is_object)) else {
        return false;
    };
    let rows = |kind: &'static str| {
        reports
            .iter()
            .flat_map(move |one| one[kind].as_array().into_iter().flatten())
    };
    let known = ["lv", "vg", "pv", "seg", "pvseg"];
    if !reports
        .iter()
        .any(|one| known.iter().any(|kind| one[*kind].is_array()))
    {
        return false;
    }
    let held = volumes(parts);
    held.volumes.extend(
        rows("lv")
            .chain(rows("seg"))
            .map(|row| logical_json(row, line)),
    );
    for row in rows("vg") {
        held.groups.push(VolumeGroup {
            name: text(&row["vg_name"]).into(),
            physical: text(&row["pv_count"]).parse().unwrap_or(0),
            logical: text(&row["lv_count"]).parse().unwrap_or(0),
            attributes: text(&row["vg_attr"]).into(),
            size_free: [text(&row["vg_size"]).into(), text(&row["vg_free"]).into()],
        });
    }
    for row in rows("pv").filter(|row| !row["pv_name"].is_null()) {
        held.physical.push(PhysicalVolume {
            name: text(&row["pv_name"]).into(),
            group: text(&row["vg_name"]).into(),
            size_free: [text(&row["pv_size"]).into(), text(&row["pv_free"]).into()],
            start_bytes: text(&row["pe_start"]).trim_end_matches('B').parse().ok(),
        });
    }
    true
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

fn logical_json(row: &Value, line: usize) -> LogicalVolume {
    let present = |key: &str| Some(text(&row[key])).filter(|text| !text.is_empty());
    LogicalVolume {
        line,
        name: text(&row["lv_name"]).into(),
        group: text(&row["vg_name"]).into(),
        attributes: text(&row["lv_attr"]).into(),
        size: text(&row["lv_size"]).into(),
        log: present("mirror_log").map(Into::into),
        copied_percent: present("copy_percent")
            .or_else(|| present("sync_percent"))
            .and_then(|text| printed(&text))
            .map(|number| number.value),
        used_percent: ["data_percent", "metadata_percent"].map(|key| {
            let number = present(key).and_then(|text| printed(&text));
            number.map(|number| number.value)
        }),
        segment: present("segtype").map(Into::into),
        stripes: present("stripes").and_then(|text| text.parse().ok()),
        action: present("raid_sync_action").map(Into::into),
        mismatches: present("raid_mismatch_count").and_then(|text| text.parse().ok()),
        devices: text(&row["devices"])
            .split(',')
            .filter(|device| !device.is_empty())
            .map(|device| device.split('(').next().unwrap_or(device).into())
            .collect(),
    }
}
