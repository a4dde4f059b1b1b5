//! Rows of `sinfo --Node`.

use linerate_model::calendar::moment;
use linerate_model::watch::UnixMillis;

/// Columns of a row: the node, its state, who gave the reason and when, a partition, the reason (sinfo(1), `--format`).
const COLUMNS: &str = "%N|%T|%u|%H|%P|%E";
/// What stands for no reason.
const NONE: &str = "none";

/// The format for `sinfo --noheader --all --Node --format`. A reason may hold any character, line ends as well: rows begin with a
/// mark that nobody knows beforehand.
pub fn format(mark: &str) -> String {
    format!("{mark}|{COLUMNS}")
}

/// A node's state, as `%T` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState(String);

impl NodeState {
    /// A word with the marks that are appended to it.
    pub fn new(text: &str) -> Self {
        Self(text.to_ascii_lowercase())
    }

    fn word(&self) -> &str {
        self.0.trim_end_matches(|c: char| !c.is_ascii_alphabetic())
    }

    /// Whether it takes no new work because somebody drained it: `drained`, `draining`.
    pub fn is_drained(&self) -> bool {
        self.word().starts_with("drain")
    }

    /// Whether it is one of those that take work, and nothing else is going on: `-` only says that a job is planned, `+` that one is
    /// completing (`node_state_string`), as one does for ever whose processes hang.
    pub fn takes_work(&self) -> bool {
        let marks = &self.0[self.word().len()..];
        let working = [
            "idle",
            "allocated",
            "mixed",
            "completing",
            "planned",
            "reserved",
        ];
        working.contains(&self.word()) && marks.chars().all(|mark| "-+".contains(mark))
    }

    /// Whether a reboot is pending (`@`) or was asked for (`^`).
    pub fn reboots(&self) -> bool {
        self.0.contains(['@', '^']) || self.word().starts_with("reboot")
    }
}

/// A node as Slurm's controller knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name there.
    pub name: String,
    /// Its state.
    pub state: NodeState,
    /// The reason, where there is one.
    pub reason: Option<String>,
    /// Who gave it.
    pub user: String,
    /// When, as it is printed.
    pub time: String,
    /// The partitions that it is in.
    pub partitions: Vec<String>,
}

impl Node {
    /// When its reason was given; the clock of `sinfo` is UTC where it is asked so.
    pub fn since(&self) -> Option<UnixMillis> {
        moment(&self.time)
    }

    /// Whether it shares a partition.
    pub fn is_with(&self, other: &Self) -> bool {
        let mut partitions = self.partitions.iter();
        partitions.any(|partition| other.partitions.contains(partition))
    }
}

/// The nodes of what `sinfo` printed in [`format`]; rows of one node in several partitions are one node. `None` where something
/// stands there that is no row.
pub fn nodes(text: &str, mark: &str) -> Option<Vec<Node>> {
    let mut rows: Vec<String> = Vec::new();
    for line in text.lines() {
        let row = line.strip_prefix(mark);
        match (row.and_then(|row| row.strip_prefix('|')), rows.last_mut()) {
            (Some(row), _) => rows.push(row.to_owned()),
            (None, Some(last)) => {
                last.push('\n');
                last.push_str(line);
            }
            (None, None) if line.trim().is_empty() => {}
            (None, None) => return None,
        }
    }
    let mut nodes: Vec<Node> = Vec::new();
    for row in &rows {
        let node = node(row)?;
        match nodes.iter_mut().find(|known| known.name == node.name) {
            Some(known) => known.partitions.extend(node.partitions),
            None => nodes.push(node),
        }
    }
    Some(nodes)
}

fn node(row: &str) -> Option<Node> {
    let fields: Vec<&str> = row.splitn(6, '|').collect();
    let [name, state, user, time, partition, reason] = fields[..] else {
        return None;
    };
    // The default partition has a star.
    let partition = partition.trim().trim_end_matches('*');
    let reason = reason.trim();
    Some(Node {
        name: name.trim().to_owned(),
        state: NodeState::new(state.trim()),
        reason: (!reason.is_empty() && reason != NONE).then(|| reason.to_owned()),
        user: user.trim().to_owned(),
        time: time.trim().to_owned(),
        partitions: vec![partition.to_owned()],
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reasons_hold_anything_and_partitions_are_added() {
        let text = "#7|n1|idle|Unknown|Unknown|main*|none\n\
            #7|n2|drained|root|2026-11-27T10:00:00|main*|bad | disk\nsecond line\nn3|idle|x|y|z|none\n\
            #7|n2|drained|root|2026-11-27T10:00:00|gpu|bad | disk\n";
        let found = nodes(text, "#7").unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].reason, None);
        let reason = "bad | disk\nsecond line\nn3|idle|x|y|z|none";
        assert_eq!(found[1].reason.as_deref(), Some(reason));
        assert_eq!(found[1].partitions, ["main", "gpu"]);
        assert_eq!(found[1].since(), moment("2026-11-27T10:00:00Z"));
        assert!(found[1].is_with(&found[0]));
        assert_eq!(nodes("", "#7"), Some(vec![]));
        assert_eq!(nodes("slurm_load_partitions: error\n", "#7"), None);
        assert_eq!(nodes("#7|n1|idle\n", "#7"), None);
    }

    #[test]
    fn states_with_their_marks() {
        for state in [
            "idle",
            "mixed",
            "allocated",
            "IDLE",
            "idle-",
            "allocated+",
            "completing",
        ] {
            assert!(NodeState::new(state).takes_work(), "{state}");
        }
        for state in [
            "idle*", "idle~", "idle#", "idle$", "idle@", "idle^", "idle%", "idle!", "down",
            "down*", "drained", "draining", "fail", "failing", "maint", "unknown", "reboot", "",
        ] {
            assert!(!NodeState::new(state).takes_work(), "{state}");
        }
        for state in ["drained", "draining", "drained*", "draining@", "drain"] {
            assert!(NodeState::new(state).is_drained(), "{state}");
        }
        assert!(NodeState::new("drained@").reboots());
        assert!(NodeState::new("reboot^").reboots());
        assert!(!NodeState::new("drained").reboots());
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[#7|a-z\n* ]{0,200}") {
            drop(nodes(&text, "#7"));
        }
    }
}
