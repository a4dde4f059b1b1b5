//! Slurm's nodes.

use linerate_model::finding::{Finding, Severity};
use linerate_model::storage::NodeGroup;

use crate::draft::Draft;

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
    let findings: Vec<Finding> = groups
        .iter()
        .filter(out)
        .map(|group| {
            let reason = group.reason.as_ref().map_or_else(
                || "no reason is given".to_owned(),
                |reason| format!("reason \"{reason}\""),
            );
            let partition = if group.partition.is_empty() {
                String::new()
            } else {
                format!(" of partition {}", group.partition)
            };
            Draft::new(
                "nodes-out",
                Severity::Limit,
                format!(
                    "{} nodes{partition} are {}, {reason} ({})",
                    group.count, group.state, group.names
                ),
            )
            .figure("nodes", group.count, format!("line {}", group.line))
            .finding
        })
        .collect();
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
