//! Slurm's `sinfo`.

use linerate_model::plain_text::PlainText;
use linerate_model::storage::NodeGroup;
use linerate_model::transcript::Part;

/// The date that `sinfo -l` prints above its heading: `Tue Dec 4 16:39:01 2012`.
pub(super) fn date(words: &[&str]) -> bool {
    let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    matches!(words, [day, _, _, time, ..] if words.len() <= 6 && days.contains(day) && time.contains(':'))
}

/// A row below `sinfo`'s heading; the reason is last and may hold spaces.
pub(super) fn nodes(
    line: usize,
    names: &[String],
    words: &[&str],
    parts: &mut [Part],
) -> Option<()> {
    let Some(Part::Nodes(groups)) = parts.last_mut() else {
        return None;
    };
    let reason_at = names.iter().position(|name| name == "REASON");
    let last = reason_at.is_some_and(|at| at + 1 == names.len());
    let enough = if last {
        words.len() >= names.len()
    } else {
        words.len() == names.len()
    };
    // `sinfo -R`: the reason stands first, the other columns are found from the end.
    let from_end = reason_at == Some(0) && words.len() >= names.len();
    if !enough && !from_end {
        return None;
    }
    let place = |name: &str| {
        let at = names.iter().position(|other| other == name)?;
        if from_end {
            (words.len() + at).checked_sub(names.len())
        } else {
            Some(at)
        }
    };
    let value = |name: &str| {
        place(name)
            .and_then(|at| words.get(at))
            .copied()
            .unwrap_or_default()
    };
    let stamp = value("TIMESTAMP");
    let dated = stamp.contains('T') && stamp.contains(':');
    if !(stamp.is_empty() || dated) {
        return None;
    }
    let count = match value("NODES") {
        "" => listed(value("NODELIST")),
        text => text.parse().ok()?,
    };
    let reason = reason_at.map(|at| match at {
        0 => words[..words.len() + 1 - names.len()].join(" "),
        at => words[at..].join(" "),
    });
    let reason = reason.map(PlainText::from);
    let state = if from_end && place("STATE").is_none() {
        "not usable"
    } else {
        value("STATE")
    };
    groups.push(NodeGroup {
        line,
        names: value("NODELIST").into(),
        count,
        partition: value("PARTITION").trim_end_matches('*').into(),
        state: state.into(),
        reason: reason.filter(|text| !matches!(text.as_str(), "none" | "None" | "(null)" | "")),
    });
    Some(())
}

/// Names in `a1,b[2-4,7]`, as far as they can be counted.
fn listed(list: &str) -> u64 {
    let (mut count, mut depth) = (0_u64, false);
    let mut item = String::new();
    for c in list.chars().chain([',']) {
        match c {
            '[' => {
                depth = true;
                item.clear();
            }
            ']' | ',' if depth || !item.is_empty() => {
                let span = item
                    .split_once('-')
                    .filter(|_| depth)
                    .and_then(|(from, to)| {
                        Some((from.parse::<u64>().ok()?, to.parse::<u64>().ok()?))
                    });
                count = count.saturating_add(
                    span.map_or(1, |(from, to)| to.saturating_sub(from).saturating_add(1)),
                );
                item.clear();
                depth = depth && c != ']';
            }
            ']' | ',' => {}
            _ => item.push(c),
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes_are_counted() {
        assert_eq!(listed("a1"), 1);
        assert_eq!(listed("a[1-3,7]"), 4);
        assert_eq!(listed("a1,b[2-3]"), 3);
    }
}
