//! A change of settings on many hosts, a batch at a time, and what became of each host.

use serde::{Deserialize, Serialize};

use crate::mesh::MeshOutcome;
use crate::plain_text::PlainText;

/// The version of the document that this build writes.
pub const SCHEMA_VERSION: u32 = 1;

/// A roll-out as far as it is known here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RollOut {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Seconds since 1970 when it began: a label.
    pub started_unix_s: u64,
    /// What is applied: the profile's name, or several with commas.
    pub profile: PlainText,
    /// How far it is.
    pub state: RollOutState,
    /// The hosts, in the order of their names.
    pub hosts: Vec<RollOutHost>,
    /// Tests before and after, in the order in which they were made.
    pub tests: Vec<RollOutTest>,
}

/// How far a roll-out is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum RollOutState {
    /// It goes on, or this end was killed in the middle of it.
    Running,
    /// Each host had its turn.
    Finished,
    /// It ended before each host had its turn: too many failures, or somebody stopped it.
    Stopped {
        /// Why.
        why: PlainText,
    },
    /// Nothing was to be changed: the plans were only made and shown.
    DryRun,
}

/// A host of a roll-out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollOutHost {
    /// Its name in the set.
    pub name: PlainText,
    /// The batch in which it has its turn, from 0 (the canaries, where there are any); absent = it has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub batch: Option<u32>,
    /// Whether it is changed before the others, as a trial.
    #[serde(default)]
    pub canary: bool,
    /// The set of changes on that host, as `linerate tune status` there names it; absent = none was made.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub set: Option<PlainText>,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: RollOutOutcome,
}

/// What became of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum RollOutOutcome {
    /// The change is on and confirmed.
    Changed {
        /// Settings that have a new value.
        settings: usize,
    },
    /// It has its old values: nothing was begun.
    Unchanged {
        /// Why: it already has what is wanted, it cannot have it, or its turn did not come.
        why: PlainText,
    },
    /// It has its old values again.
    RolledBack {
        /// Why the change did not stay.
        why: PlainText,
    },
    /// It could not be reached before anything was changed on it: it has its old values.
    Unreachable {
        /// Why not.
        why: PlainText,
    },
    /// A change was begun, and the host has not answered since: it has the old values or the new, or is about to roll
    /// itself back.
    Unknown {
        /// What is known.
        why: PlainText,
    },
}

/// A test of a host's change: the same pair before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RollOutTest {
    /// The host whose change it judges: its place in [`RollOut::hosts`].
    pub host: usize,
    /// The sending host's place in [`RollOut::hosts`].
    pub from: usize,
    /// The receiving host's.
    pub to: usize,
    /// Before the change; absent = not made.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<MeshOutcome>,
    /// After it; absent = not made.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<MeshOutcome>,
    /// What the two say of the change; absent = not both were measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub verdict: Option<RollOutVerdict>,
}

/// How a test after a change compares with the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RollOutVerdict {
    /// Faster by more than the noise.
    Better,
    /// No difference beyond the noise.
    Same,
    /// Slower by more than the noise.
    Worse,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_its_outcome_beside_its_name() {
        let host = RollOutHost {
            name: "node07".into(),
            batch: Some(1),
            canary: false,
            set: None,
            outcome: RollOutOutcome::RolledBack {
                why: "no test to it succeeded".into(),
            },
        };
        let text = serde_json::to_string(&host).unwrap();
        assert_eq!(
            text,
            r#"{"name":"node07","batch":1,"canary":false,"outcome":"rolled_back","why":"no test to it succeeded"}"#
        );
        assert_eq!(serde_json::from_str::<RollOutHost>(&text).unwrap(), host);
    }
}
