//! What became of a change on many hosts: how a node ends, and the roll-out as the document that reports show.

use linerate_model::mesh::{MeshFigures, MeshOutcome};
use linerate_model::plain_text::PlainText;
use linerate_model::roll_out::{
    RollOut as Document, RollOutHost, RollOutOutcome, RollOutState, RollOutTest, RollOutVerdict,
    SCHEMA_VERSION,
};
use serde::{Deserialize, Serialize};

use super::RollOut;
use super::entry::Plan;
use super::node::{Node, Stand};

/// What became of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NodeOutcome {
    /// It has the new settings, confirmed.
    Changed,
    /// It had them already.
    AlreadySo,
    /// The roll-out ended before its turn. It has the old settings.
    NotReached { why: PlainText },
    /// It cannot have them. It has the old settings.
    Refused { why: PlainText },
    /// It has the old settings again.
    RolledBack { why: PlainText },
    /// Nothing reaches it.
    Unreachable { why: PlainText, has: LastKnown },
}

/// Which settings a node has that nothing reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastKnown {
    /// The old ones: nothing was changed.
    Old,
    /// The old ones once the rollback that waits on it has run.
    RollsBack,
    /// The new ones if the last confirmation reached it, else the old ones once its rollback has run.
    OldOrConfirmed,
}

/// Goodput between a node and a neighbour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct BothWays {
    /// From the node to the neighbour, bit/s; absent = not measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub out_bps: Option<f64>,
    /// From the neighbour to the node, bit/s; absent = not measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub in_bps: Option<f64>,
}

impl RollOut {
    /// What became of each node so far.
    pub fn table(&self) -> Document {
        let host = |node: &Node| RollOutHost {
            name: node.member.name.clone(),
            batch: node.batch,
            canary: node.canary,
            set: node.set.clone(),
            outcome: outcome(node),
        };
        let places = 0..self.nodes.len();
        Document {
            schema_version: SCHEMA_VERSION,
            started_unix_s: self.started_unix_s,
            profile: self.profile.clone(),
            state: self.state(),
            hosts: self.nodes.iter().map(host).collect(),
            tests: places.flat_map(|place| self.tests_of(place)).collect(),
        }
    }

    fn state(&self) -> RollOutState {
        let left_out =
            |node: &Node| matches!(node.stand, Stand::Ended(NodeOutcome::NotReached { .. }));
        match &self.halted {
            _ if !self.has_ended() => RollOutState::Running,
            Some(why) if self.back || self.nodes.iter().any(left_out) => {
                RollOutState::Stopped { why: why.clone() }
            }
            _ => RollOutState::Finished,
        }
    }

    /// The tests of a node with its neighbours, each direction for itself.
    fn tests_of(&self, place: usize) -> Vec<RollOutTest> {
        let node = &self.nodes[place];
        let tolerance = self.settings.tolerance;
        let pairs = node.neighbours.iter().zip(&node.before).enumerate();
        let tests = pairs.flat_map(|(number, (&neighbour, before))| {
            let after = node.after.get(number);
            let ways = [
                (
                    place,
                    neighbour,
                    before.out_bps,
                    after.map(|one| one.out_bps),
                ),
                (neighbour, place, before.in_bps, after.map(|one| one.in_bps)),
            ];
            ways.map(|(from, to, before, after)| RollOutTest {
                host: place,
                from,
                to,
                before: Some(test_outcome(before)),
                after: after.map(test_outcome),
                verdict: before
                    .zip(after.flatten())
                    .map(|(before, after)| verdict(before, after, tolerance)),
            })
        });
        tests.collect()
    }
}

fn outcome(node: &Node) -> RollOutOutcome {
    let said = |before: &str, why: &PlainText| PlainText::from(format!("{before}: {why}"));
    let Stand::Ended(outcome) = &node.stand else {
        let why = "the roll-out has not ended".into();
        return if node.is_in_flight() {
            RollOutOutcome::Unknown { why }
        } else {
            RollOutOutcome::Unchanged { why }
        };
    };
    match outcome {
        NodeOutcome::Changed => RollOutOutcome::Changed {
            settings: match node.member.plan {
                Plan::Changes { count } => count,
                _ => 0,
            },
        },
        NodeOutcome::AlreadySo => RollOutOutcome::Unchanged {
            why: "it has these settings already".into(),
        },
        NodeOutcome::NotReached { why } => RollOutOutcome::Unchanged {
            why: said("its turn did not come", why),
        },
        NodeOutcome::Refused { why } => RollOutOutcome::Unchanged {
            why: said("it cannot have them", why),
        },
        NodeOutcome::RolledBack { why } => RollOutOutcome::RolledBack { why: why.clone() },
        NodeOutcome::Unreachable { why, has } => match has {
            LastKnown::Old => RollOutOutcome::Unreachable { why: why.clone() },
            LastKnown::RollsBack => RollOutOutcome::Unknown {
                why: PlainText::from(format!(
                    "{why}; the rollback that waits on it restores its old settings"
                )),
            },
            LastKnown::OldOrConfirmed => RollOutOutcome::Unknown {
                why: PlainText::from(format!(
                    "{why}; it has its old settings, or the new ones if it was confirmed"
                )),
            },
        },
    }
}

fn test_outcome(goodput_bps: Option<f64>) -> MeshOutcome {
    match goodput_bps {
        Some(goodput_bps) => MeshOutcome::Measured(MeshFigures {
            goodput_bps,
            interval_bps: None,
            retransmitted: None,
            rtt: None,
            finding: None,
            streams: Vec::new(),
        }),
        None => MeshOutcome::Failed {
            stage: "the test ran".into(),
            why: "no data arrived".into(),
        },
    }
}

fn verdict(before: f64, after: f64, tolerance: f64) -> RollOutVerdict {
    if after < (1.0 - tolerance) * before {
        RollOutVerdict::Worse
    } else if after > (1.0 + tolerance) * before {
        RollOutVerdict::Better
    } else {
        RollOutVerdict::Same
    }
}
