//! What a roll-out does and what it learns: the lines of its journal.

use super::table::BothWays;
use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;
use serde::{Deserialize, Serialize};

/// The version of the entries that this build writes. A newer one is refused.
pub const JOURNAL_VERSION: u32 = 1;

/// The first entry: what is rolled out, where and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Beginning {
    /// [`JOURNAL_VERSION`].
    pub version: u32,
    /// What is rolled out, such as the name of a profile.
    pub profile: PlainText,
    /// Seconds since 1970: a label.
    pub started_unix_s: u64,
    /// What is applied on each node; a later run applies the same.
    #[serde(default)]
    pub change: Change,
    /// How.
    pub settings: Settings,
    /// Where, each with its plan.
    pub nodes: Vec<Member>,
}

/// What is applied on a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Words of `linerate tune apply`; `{host}` in them is the node's name.
    pub options: Vec<String>,
    /// Words that say where a node's settings and old values are, for `tune status`, `confirm` and `revert` too.
    pub place: Vec<String>,
    /// Words that a node gets which has to prove itself.
    pub prove: Vec<String>,
    /// The profiles.
    pub files: Vec<ChangeFile>,
    /// How long a node's rollback waits for the confirmation.
    pub confirm_within: Nanos,
}

/// A file that goes along to each node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeFile {
    /// Its name, without a folder.
    pub name: String,
    /// What it holds.
    pub text: String,
}

/// How a roll-out proceeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// How many nodes are changed first. Where one of them fails, nothing else is changed.
    pub canary: usize,
    /// Whether these have to prove that they are faster.
    pub prove: bool,
    /// How many nodes are changed at once, at least 1.
    pub batch: usize,
    /// Whether a batch has at most one node of each [`Member::group`].
    pub one_per_group: bool,
    /// From so many failed nodes on nothing new begins, at least 1.
    pub max_failures: usize,
    /// Share of the goodput from before that may be lost, 0 to 1.
    pub tolerance: f64,
}

/// A node of a roll-out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its name.
    pub name: PlainText,
    /// The group that it counts for with [`Settings::one_per_group`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub group: Option<PlainText>,
    /// What would be changed.
    pub plan: Plan,
}

/// What would be changed on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "plan", rename_all = "snake_case")]
pub enum Plan {
    /// So many settings.
    Changes {
        /// How many.
        count: usize,
    },
    /// Nothing: it has them.
    AlreadySo,
    /// It cannot have them.
    Refused {
        /// Why.
        why: PlainText,
    },
    /// Nothing reached it.
    Unreachable {
        /// Why.
        why: PlainText,
    },
}

/// What the driver does next. It writes [`Entry::Begun`] to the journal first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Nothing but to write it: these nodes are next.
    Batch {
        /// Places in [`Beginning::nodes`].
        nodes: Vec<usize>,
        /// Whether they are the first ones.
        canary: bool,
    },
    /// Tests between a node and its neighbours, before it is changed → [`Entry::Measured`].
    Measure {
        /// The node.
        node: usize,
        /// The neighbours, in this order in the answer.
        neighbours: Vec<usize>,
    },
    /// Arms the node's rollback and makes the changes → [`Entry::Applied`] or [`Entry::NotApplied`].
    Apply {
        /// The node.
        node: usize,
        /// Whether it has to prove that it is faster, or put the old values back.
        prove: bool,
    },
    /// Opens a new connection to the node → [`Entry::Reconnected`].
    Reconnect {
        /// The node.
        node: usize,
    },
    /// The same tests again → [`Entry::Tested`].
    Test {
        /// The node.
        node: usize,
        /// The neighbours.
        neighbours: Vec<usize>,
    },
    /// Confirms the change on the node → [`Entry::Confirmed`] or [`Entry::NotConfirmed`].
    Confirm {
        /// The node.
        node: usize,
    },
    /// Asks the node which settings it has → [`Entry::Found`].
    Check {
        /// The node.
        node: usize,
    },
    /// Sees to it that the node has the old settings: asks for them, or waits until its own rollback has run, and reads
    /// them → [`Entry::RolledBack`].
    RollBack {
        /// The node.
        node: usize,
    },
}

impl Action {
    /// The node that it acts on; none of a batch.
    pub const fn node(&self) -> Option<usize> {
        match self {
            Self::Batch { .. } => None,
            Self::Measure { node, .. }
            | Self::Apply { node, .. }
            | Self::Reconnect { node }
            | Self::Test { node, .. }
            | Self::Confirm { node }
            | Self::Check { node }
            | Self::RollBack { node } => Some(*node),
        }
    }

    /// The nodes between which it sends data.
    pub(super) fn tested(&self) -> impl Iterator<Item = usize> + '_ {
        let (node, neighbours) = match self {
            Self::Measure { node, neighbours } | Self::Test { node, neighbours } => {
                (Some(*node), &neighbours[..])
            }
            _ => (None, &[][..]),
        };
        node.into_iter().chain(neighbours.iter().copied())
    }
}

/// One line of the journal. The state of a roll-out is what these come to, one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// The first one.
    Beginning(Beginning),
    /// The driver is about to act.
    Begun(Action),
    /// What the tests before the change came to, in the order of the neighbours.
    Measured {
        /// The node.
        node: usize,
        /// Goodput with each neighbour.
        goodput: Vec<BothWays>,
    },
    /// The changes are made and the rollback waits.
    Applied {
        /// The node.
        node: usize,
        /// The set of changes there.
        set: PlainText,
    },
    /// The node has the old settings: it refused, or put them back.
    NotApplied {
        /// The node.
        node: usize,
        /// Why.
        why: PlainText,
    },
    /// The node answered over a new connection.
    Reconnected {
        /// The node.
        node: usize,
    },
    /// What the tests after the change came to, in the order of the neighbours; after one that failed the others may be
    /// left out.
    Tested {
        /// The node.
        node: usize,
        /// Goodput with each neighbour.
        goodput: Vec<BothWays>,
    },
    /// The node keeps the change.
    Confirmed {
        /// The node.
        node: usize,
    },
    /// The node did not take the confirmation.
    NotConfirmed {
        /// The node.
        node: usize,
        /// Why.
        why: PlainText,
    },
    /// Which settings the node has.
    Found {
        /// The node.
        node: usize,
        /// Which.
        settings: Found,
    },
    /// The node has the old settings, read back.
    RolledBack {
        /// The node.
        node: usize,
    },
    /// An action got no answer.
    Lost {
        /// The node.
        node: usize,
        /// Why.
        why: PlainText,
    },
    /// Somebody asked to stop: nothing new begins, what was begun ends.
    Stopped {
        /// Why.
        why: PlainText,
    },
    /// A later run goes on, or goes back.
    Resumed {
        /// Whether every node gets its old settings again, those that this roll-out confirmed included.
        back: bool,
    },
}

/// Which settings a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// The old ones.
    Old,
    /// The new ones, and its rollback waits.
    Waiting,
    /// The new ones, confirmed.
    Confirmed,
}
