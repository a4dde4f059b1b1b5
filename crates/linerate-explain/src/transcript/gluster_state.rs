//! gluster's answers: states of bricks and peers, and what is to be healed.

use linerate_model::finding::{Finding, Severity};
use linerate_model::plain_text::PlainText;
use linerate_model::storage::{GlusterHeal, GlusterState};

use super::gluster::STUCK_S;

/// States of bricks, peers and heals.
pub(super) fn state(held: &GlusterState) -> (String, Vec<Finding>) {
    let title = format!(
        "gluster: {} brick(s) and daemon(s), {} peer(s), {} heal count(s)",
        held.bricks.len(),
        held.peers.len(),
        held.heals.len()
    );
    let mut findings = Vec::new();
    findings.extend(split_brain(held));
    findings.extend(health(held));
    if held.refused > 0 {
        findings.push(Finding::new(
            "cluster-lock",
            Severity::Note,
            format!(
                "{} answers say that another transaction is in progress, and {} commands succeeded: look into glusterd.log whether the \
                 same lock is held for {STUCK_S:.0} s or more; if not, two commands met",
                held.refused, held.answers
            ),
        ));
    }
    if !held.errors.is_empty() {
        let errors: Vec<&str> = held.errors.iter().map(PlainText::as_str).collect();
        findings.push(Finding::new(
            "log-errors",
            Severity::Note,
            format!("gluster answers: {}", errors.join("; ")),
        ));
    }
    (title, findings)
}

/// Names that are said at most.
const NAMES: usize = 16;

/// Copies of which none is known to be the good one.
fn split_brain(held: &GlusterState) -> Option<Finding> {
    let split = |heal: &&GlusterHeal| heal.split_brain.is_some_and(|count| count > 0);
    let of = |heal: &GlusterHeal| {
        let count = heal.split_brain.unwrap_or(0);
        format!("{} has {count} entries in split brain", heal.brick)
    };
    let bricks = held.heals.iter().filter(split);
    let said: Vec<String> = bricks.take(NAMES).map(of).collect();
    (!said.is_empty()).then(|| {
        Finding::new(
            "cluster-state",
            Severity::Limit,
            format!(
                "{}: they are not healed by themselves. Look which copy is the good one before `gluster volume heal VOLUME \
                 split-brain` is told; delete nothing on a brick. linerate changed nothing",
                said.join("; ")
            ),
        )
    })
}

/// What does not run or is not reached, and what is to be healed.
fn health(held: &GlusterState) -> Option<Finding> {
    let mut wrong = Vec::new();
    let offline = held.bricks.iter().filter(|one| one.online == Some(false));
    wrong.extend(offline.map(|one| format!("{} does not run", one.name)));
    let apart = held.peers.iter().filter(|one| one.connected == Some(false));
    wrong.extend(apart.map(|one| format!("peer {} is not connected", one.name)));
    let unknown = |one: &&GlusterHeal| one.entries.is_none() && one.split_brain.is_none();
    let unknown = held.heals.iter().filter(unknown);
    wrong.extend(unknown.map(|one| {
        format!(
            "what {} has to heal is not known ({})",
            one.brick, one.status
        )
    }));
    wrong.truncate(NAMES);
    let entries = held.heals.iter().filter_map(|one| one.entries);
    let heal = entries.reduce(u64::saturating_add);
    let severity = match heal {
        _ if !wrong.is_empty() => Severity::Limit,
        None | Some(0) => Severity::Healthy,
        Some(_) => Severity::Note,
    };
    let mut said = wrong;
    if said.is_empty() {
        said.extend(well(held));
    }
    said.extend(heal.map(|count| match count {
        0 => "nothing is to be healed".to_owned(),
        count => format!("{count} entries are to be healed"),
    }));
    (!said.is_empty()).then(|| Finding::new("cluster-state", severity, said.join("; ")))
}

/// What runs and is connected, of what was read.
fn well(held: &GlusterState) -> Option<String> {
    let bricks = held.bricks.len();
    let runs = (bricks > 0).then(|| format!("All {bricks} bricks and daemons run"));
    let reached = (!held.peers.is_empty()).then_some(match &runs {
        Some(_) => "no peer is disconnected",
        None => "No peer is disconnected",
    });
    let said: Vec<&str> = runs.as_deref().into_iter().chain(reached).collect();
    (!said.is_empty()).then(|| said.join(", "))
}
