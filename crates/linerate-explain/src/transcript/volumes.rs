//! glusterd, Slurm's nodes, mirrored volumes.

use std::collections::HashMap;

use linerate_model::finding::{Finding, Severity};
use linerate_model::plain_text::PlainText;
use linerate_model::storage::{GlusterEvent, NodeGroup, Volumes};

use crate::draft::{Draft, limit_if};

pub(super) fn gluster(events: &[GlusterEvent]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let locks = || {
        events
            .iter()
            .filter_map(|event| Some((event, event.lock.as_ref()?)))
    };
    let mut lines: HashMap<&[PlainText; 2], usize> = HashMap::new();
    for (_, lock) in locks() {
        *lines.entry(lock).or_default() += 1;
    }
    for (event, lock) in locks() {
        // Each lock is reported once, at its first line.
        let Some(times) = lines.remove(lock) else {
            continue;
        };
        let [asker, holder] = lock;
        let often = if times > 1 {
            format!(" ({times} lines)")
        } else {
            String::new()
        };
        let (who, steps) = if asker == holder {
            (
                format!(
                    "held by the requesting node itself ({asker}): a command that did not finish left it behind"
                ),
                "Look for a gluster command that still runs on that node, wait for it, then restart glusterd there \
                 (bricks and mounts keep running), and look at `gluster peer status` and `gluster volume status`",
            )
        } else {
            (
                format!("held by another node: {holder} holds it, {asker} asks"),
                "Find the node by `gluster pool list`, look for a gluster command that still runs there and wait for it before anything else",
            )
        };
        findings.push(Finding::new(
            "cluster-lock",
            Severity::Limit,
            format!(
                "{}: glusterd's cluster lock is {who}{often}. {steps}. linerate changed nothing",
                event.at
            ),
        ));
    }
    let errors = events
        .iter()
        .filter(|event| event.level == "E" && event.lock.is_none())
        .count();
    if errors > 0 {
        findings.push(Finding::new(
            "log-errors",
            Severity::Note,
            format!("{errors} other lines of the log are errors"),
        ));
    }
    findings
}

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

pub(super) fn mirrors(held: &Volumes) -> (String, Vec<Finding>) {
    let title = format!(
        "LVM: {} volume group(s), {} logical volume(s)",
        held.groups.len(),
        held.volumes.len()
    );
    let findings = held
        .volumes
        .iter()
        .filter(|volume| volume.attributes.starts_with(['m', 'M']))
        .map(|volume| {
            let kind = &volume.attributes[..1];
            let log = match &volume.log {
                Some(log) => format!("its log is on {log}"),
                None => {
                    "mirror log in memory: full resynchronisation at each activation".to_owned()
                }
            };
            let copied = volume
                .copied_percent
                .map_or_else(String::new, |percent| format!("; {percent} % are copied"));
            Draft::new(
                "mirror-log",
                limit_if(volume.log.is_none()),
                format!(
                    "{}/{} ({}): legacy mirror segment type (attribute {kind}), {log}{copied}",
                    volume.group, volume.name, volume.size
                ),
            )
            .figure(
                "copied, %",
                volume.copied_percent,
                format!("line {}", volume.line),
            )
            .finding
        })
        .collect();
    (title, findings)
}
