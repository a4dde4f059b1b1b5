//! `vgs` and `lvs`.

use linerate_model::storage::{LogicalVolume, VolumeGroup, Volumes};
use linerate_model::transcript::Part;

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
        copied_percent: rest
            .iter()
            .find_map(|word| printed(word).filter(|_| word.contains('.')))
            .map(|number| number.value),
    });
    Some(())
}
