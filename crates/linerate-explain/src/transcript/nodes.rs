//! Slurm's nodes.

use linerate_model::finding::{Finding, Severity};
use linerate_model::storage::NodeGroup;
use linerate_model::words;

use crate::draft::Draft;

/// Names of a finding are listed from so many lines.
const LISTED: usize = 40;

pub(super) fn nodes(groups: &[NodeGroup]) -> (String, Vec<Finding>) {
    let all = groups
        .iter()
        .map(|group| group.count)
        .fold(0, u64::saturating_add);
    let title = format!("sinfo: {} group(s), {} nodes", groups.len(), all);
    let out = |group: &&NodeGroup| {
        let state = group.state.to_ascii_lowercase();
        ["drain", "down", "fail", "not usable", "maint", "unk"]
            .iter()
            .any(|word| state.starts_with(word))
            || state.ends_with('*')
    };
    let mut alike: Vec<Alike<'_>> = Vec::new();
    // Newer versions print a line for each node.
    for group in groups.iter().filter(out) {
        let is_like = |one: &&mut Alike<'_>| {
            let other = one.groups[0];
            (&other.partition, &other.state, &other.reason)
                == (&group.partition, &group.state, &group.reason)
        };
        match alike.iter_mut().find(is_like) {
            Some(one) => one.groups.push(group),
            None => alike.push(Alike {
                groups: vec![group],
            }),
        }
    }
    let findings: Vec<Finding> = alike.iter().map(Alike::finding).collect();
    if findings.is_empty() {
        return (
            title,
            vec![Finding::new(
                "nodes-out",
                Severity::Healthy,
                "No node is drained or down".to_owned(),
            )],
        );
    }
    (title, findings)
}

/// Lines of the same partition, state and reason; one at least.
struct Alike<'a> {
    groups: Vec<&'a NodeGroup>,
}

impl Alike<'_> {
    fn finding(&self) -> Finding {
        let first = self.groups[0];
        let count = self.groups.iter().map(|group| group.count);
        let count = count.fold(0, u64::saturating_add);
        let reason = first.reason.as_ref().map_or_else(
            || "no reason is given".to_owned(),
            |reason| format!("reason \"{reason}\""),
        );
        let partition = if first.partition.is_empty() {
            String::new()
        } else {
            format!(" of partition {}", first.partition)
        };
        let named = self.groups.iter().take(LISTED);
        let mut names: Vec<&str> = named.map(|group| group.names.as_str()).collect();
        if self.groups.len() > LISTED {
            names.push("…");
        }
        let nodes = words::when(count != 1, "s");
        let are = if count == 1 { "is" } else { "are" };
        Draft::new(
            "nodes-out",
            Severity::Limit,
            format!(
                "{count} node{nodes}{partition} {are} {}, {reason} ({})",
                first.state,
                names.join(",")
            ),
        )
        .figure("nodes", count, format!("line {}", first.line))
        .finding
    }
}
