//! What became of a change on many hosts.

use serde::{Deserialize, Serialize};

use linerate_model::plain_text::PlainText;

/// The version of the document that this build writes.
pub const SCHEMA_VERSION: u32 = 1;

/// What became of a roll-out, node by node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RollOutTable {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// What was rolled out, such as the name of a profile.
    pub profile: PlainText,
    /// The nodes, in the order in which they were given.
    pub rows: Vec<RollOutRow>,
}

/// One node of a roll-out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RollOutRow {
    /// Its name.
    pub node: PlainText,
    /// What became of it: the key `outcome`, and the reason beside it.
    #[serde(flatten)]
    pub outcome: NodeOutcome,
    /// Tests to its neighbours before and after.
    pub tests: Vec<NeighbourTest>,
}

/// What became of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum NodeOutcome {
    /// It has the new settings, confirmed.
    Changed,
    /// It had them already.
    AlreadySo,
    /// The roll-out ended before its turn. It has the old settings.
    NotReached {
        /// What ended the roll-out.
        why: PlainText,
    },
    /// It cannot have them. It has the old settings.
    Refused {
        /// Why it cannot.
        why: PlainText,
    },
    /// It has the old settings again.
    RolledBack {
        /// Why.
        why: PlainText,
    },
    /// Nothing reaches it.
    Unreachable {
        /// What was tried, and why it failed.
        why: PlainText,
        /// Which settings it has, as far as is known.
        has: LastKnown,
    },
}

/// Which settings a node has that nothing reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastKnown {
    /// The old ones: nothing was changed.
    Old,
    /// The old ones once the rollback that waits on it has run.
    RollsBack,
    /// The new ones if the last confirmation reached it, else the old ones once its rollback has run.
    OldOrConfirmed,
}

/// A test of a node and a neighbour, before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NeighbourTest {
    /// The neighbour's name.
    pub neighbour: PlainText,
    /// Before the change.
    pub before: BothWays,
    /// After it; absent = it did not run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<BothWays>,
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
