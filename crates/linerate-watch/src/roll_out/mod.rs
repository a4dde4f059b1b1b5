//! A change on many hosts, a few at a time, each of which proves itself or goes back.
//!
//! Canaries first, then batches. Each node is tested with neighbours, gets the change with a rollback armed, has to answer
//! over a new connection, is tested again and confirmed; otherwise it goes back to its old settings. After too many
//! failures nothing new begins.
//!
//! A state machine whose state is its journal. [`RollOut::poll_action`] says what to do; the driver writes
//! [`Entry::Begun`] to the journal and hands it to [`RollOut::handle`], acts, then writes and hands over the answer. Several
//! actions may be under way. When there is no action and nothing under way, [`RollOut::has_ended`] is true and
//! [`RollOut::table`] says what became of each node. A run that was killed is read back by [`RollOut::of_journal`], and
//! [`Entry::Resumed`] makes it go on or back.

mod entry;
mod journal;
mod node;
mod table;

use std::mem::discriminant;

use linerate_model::plain_text::PlainText;
pub use table::{BothWays, NeighbourTest, NodeOutcome, RollOutRow, RollOutTable, SCHEMA_VERSION};

pub use entry::{Action, Beginning, Entry, Found, JOURNAL_VERSION, Member, Plan, Settings};
pub use journal::{Journal, JournalError, line, read};
use node::{Node, Stand};

/// Neighbours that were not changed, and such as were, that a node is tested with.
const UNTOUCHED: usize = 2;
const CHANGED: usize = 1;

/// An entry that does not follow from the state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Misplaced(String);

/// A roll-out.
#[derive(Debug, Clone)]
pub struct RollOut {
    profile: PlainText,
    settings: Settings,
    nodes: Vec<Node>,
    /// The nodes of the current batch.
    batch: Vec<usize>,
    /// Why nothing new begins.
    halted: Option<PlainText>,
    /// Whether everything goes back.
    back: bool,
}

impl RollOut {
    /// A new one. The driver writes `Entry::Beginning(beginning)` as the first line.
    pub fn new(beginning: Beginning) -> Self {
        let mut settings = beginning.settings;
        settings.batch = settings.batch.max(1);
        settings.max_failures = settings.max_failures.max(1);
        Self {
            profile: beginning.profile,
            settings,
            nodes: beginning.nodes.into_iter().map(Node::new).collect(),
            batch: Vec::new(),
            halted: None,
            back: false,
        }
    }

    /// The roll-out as its journal leaves it. Hand it [`Entry::Resumed`] before it is asked for an action.
    pub fn of_journal(journal: &Journal) -> Result<Self, JournalError> {
        let mut entries = journal.entries.iter();
        let Some(Entry::Beginning(beginning)) = entries.next() else {
            return Err(JournalError::Empty);
        };
        let mut roll_out = Self::new(beginning.clone());
        for (place, entry) in entries.enumerate() {
            let misplaced = |error: Misplaced| JournalError::Misplaced {
                line: place + 2,
                reason: error.0,
            };
            roll_out.handle(entry).map_err(misplaced)?;
        }
        Ok(roll_out)
    }

    /// What to do next; none while it waits for answers, and when it has ended.
    pub fn poll_action(&self) -> Option<Action> {
        // Nodes that were confirmed go back only while there is room: those in doubt come first.
        let room = self.in_flight() < self.settings.batch;
        let waits = |place: &usize| self.nodes[*place].is_kept() && !room;
        let mut places = (0..self.nodes.len()).filter(|place| !waits(place));
        let next = places.find_map(|place| self.next_of(place));
        next.or_else(|| self.next_batch())
    }

    /// Whether nothing is left to do and nothing under way.
    pub fn has_ended(&self) -> bool {
        self.nodes.iter().all(Node::has_ended)
    }

    /// How many nodes may have settings that are neither old nor confirmed.
    pub fn in_flight(&self) -> usize {
        self.nodes.iter().filter(|node| node.is_in_flight()).count()
    }

    /// How many nodes failed so far.
    pub fn failures(&self) -> usize {
        self.nodes.iter().filter(|node| node.failed).count()
    }

    /// The nodes that cannot have the change, with the reason: a driver shows them before it begins.
    pub fn refused(&self) -> impl Iterator<Item = (&PlainText, &PlainText)> {
        self.nodes
            .iter()
            .filter_map(|node| match &node.member.plan {
                Plan::Refused { why } => Some((&node.member.name, why)),
                _ => None,
            })
    }

    /// The set of changes that waits or was confirmed on a node, where it is known.
    pub fn set_of(&self, node: usize) -> Option<&PlainText> {
        self.nodes.get(node)?.set.as_ref()
    }

    /// Takes an entry: something that is begun, or an answer.
    ///
    /// # Errors
    /// When it does not follow from the state; this is then as before.
    pub fn handle(&mut self, entry: &Entry) -> Result<(), Misplaced> {
        match entry {
            Entry::Beginning(_) => return Err(Misplaced("a second beginning".to_owned())),
            Entry::Begun(action) => self.begin(action)?,
            Entry::Stopped { why } => {
                self.halted = self.halted.take().or_else(|| Some(why.clone()));
            }
            Entry::Resumed { back } => self.resume(*back),
            Entry::Measured { node, .. }
            | Entry::Applied { node, .. }
            | Entry::NotApplied { node, .. }
            | Entry::Reconnected { node }
            | Entry::Tested { node, .. }
            | Entry::Confirmed { node }
            | Entry::NotConfirmed { node, .. }
            | Entry::Found { node, .. }
            | Entry::RolledBack { node }
            | Entry::Lost { node, .. } => self.answer(*node, entry)?,
        }
        self.settle();
        Ok(())
    }

    /// What became of each node so far.
    pub fn table(&self) -> RollOutTable {
        let row = |node: &Node| RollOutRow {
            node: node.member.name.clone(),
            outcome: match &node.stand {
                Stand::Ended(outcome) => outcome.clone(),
                _ => NodeOutcome::NotReached {
                    why: "the roll-out has not ended".into(),
                },
            },
            tests: self.tests_of(node),
        };
        RollOutTable {
            schema_version: SCHEMA_VERSION,
            profile: self.profile.clone(),
            rows: self.nodes.iter().map(row).collect(),
        }
    }

    fn tests_of(&self, node: &Node) -> Vec<NeighbourTest> {
        let before = node.neighbours.iter().zip(&node.before).enumerate();
        let test = |(place, (neighbour, before)): (usize, (&usize, &BothWays))| NeighbourTest {
            neighbour: self.nodes[*neighbour].member.name.clone(),
            before: *before,
            after: node.after.get(place).copied(),
        };
        before.map(test).collect()
    }

    /// The next action on a node, unless one is under way.
    fn next_of(&self, place: usize) -> Option<Action> {
        let node = &self.nodes[place];
        if node.doing.is_some() {
            return None;
        }
        let action = match &node.stand {
            Stand::Due | Stand::Ended(_) => return None,
            Stand::Chosen => Action::Measure {
                node: place,
                neighbours: self.neighbours(place),
            },
            Stand::Measured => Action::Apply {
                node: place,
                prove: node.canary && self.settings.prove,
            },
            Stand::Applied => Action::Reconnect { node: place },
            Stand::Reached => Action::Test {
                node: place,
                neighbours: node.neighbours.clone(),
            },
            Stand::Good => Action::Confirm { node: place },
            Stand::Doubted { .. } => Action::Check { node: place },
            Stand::Failed { .. } => Action::RollBack { node: place },
        };
        // No host takes part in two tests at once.
        let mut busy = self
            .nodes
            .iter()
            .filter_map(|node| node.doing.as_ref())
            .flat_map(Action::tested);
        let waits = busy.any(|host| action.tested().any(|own| own == host));
        (!waits).then_some(action)
    }

    /// Neighbours to test with: untouched and changed ones, those that come next in the list first.
    fn neighbours(&self, place: usize) -> Vec<usize> {
        let count = self.nodes.len();
        let around = |is: fn(&Node) -> bool| {
            let others = (1..count).map(move |distance| (place + distance) % count);
            others.filter(move |&other| is(&self.nodes[other]))
        };
        let untouched = |node: &Node| {
            matches!(
                node.stand,
                Stand::Due
                    | Stand::Ended(
                        NodeOutcome::AlreadySo
                            | NodeOutcome::Refused { .. }
                            | NodeOutcome::NotReached { .. }
                    )
            )
        };
        let changed = |node: &Node| node.stand == Stand::Ended(NodeOutcome::Changed);
        let first = around(untouched)
            .take(UNTOUCHED)
            .chain(around(changed).take(CHANGED));
        let mut neighbours: Vec<usize> = first.collect();
        // Where there are too few of the one, more of the other.
        for other in around(untouched).chain(around(changed)) {
            if neighbours.len() < UNTOUCHED + CHANGED && !neighbours.contains(&other) {
                neighbours.push(other);
            }
        }
        neighbours
    }

    /// The next batch once the current one has ended.
    fn next_batch(&self) -> Option<Action> {
        let over = self
            .batch
            .iter()
            .all(|&node| self.nodes[node].has_ended() || self.nodes[node].stand == Stand::Due);
        if self.halted.is_some() || !over {
            return None;
        }
        let canaries = self.nodes.iter().filter(|node| node.canary).count();
        let canary = canaries < self.settings.canary;
        let left = if canary {
            self.settings.canary - canaries
        } else {
            usize::MAX
        };
        let mut nodes: Vec<usize> = Vec::new();
        for (place, node) in self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.stand == Stand::Due)
        {
            let group = node.member.group.as_ref();
            let same = |other: &usize| {
                group.is_some() && self.nodes[*other].member.group.as_ref() == group
            };
            if nodes.len() < self.settings.batch.min(left)
                && !(self.settings.one_per_group && nodes.iter().any(same))
            {
                nodes.push(place);
            }
        }
        (!nodes.is_empty()).then_some(Action::Batch { nodes, canary })
    }

    fn begin(&mut self, action: &Action) -> Result<(), Misplaced> {
        let unknown = |node: &usize| self.nodes.get(*node).is_none();
        if let Action::Batch { nodes, canary } = action {
            if nodes
                .iter()
                .any(|node| unknown(node) || self.nodes[*node].stand != Stand::Due)
            {
                return Err(Misplaced(format!("{action:?} has nodes that are not due")));
            }
            for &node in nodes {
                self.nodes[node].stand = Stand::Chosen;
                self.nodes[node].canary = *canary;
            }
            self.batch.clone_from(nodes);
            return Ok(());
        }
        let place = action.node().unwrap_or(usize::MAX);
        let expected = (!unknown(&place)).then(|| self.next_of(place)).flatten();
        // Which neighbours there are may change with a version of this program: the journal decides.
        let same = expected
            .as_ref()
            .is_some_and(|expected| discriminant(expected) == discriminant(action));
        if !same || action.tested().any(|host| unknown(&host)) {
            return Err(Misplaced(format!(
                "{action:?} was begun where {expected:?} was next"
            )));
        }
        let node = &mut self.nodes[place];
        if let Action::Measure { neighbours, .. } = action {
            node.neighbours.clone_from(neighbours);
            node.before.clear();
            node.after.clear();
        }
        node.doing = Some(action.clone());
        Ok(())
    }

    fn answer(&mut self, place: usize, answer: &Entry) -> Result<(), Misplaced> {
        let settings = self.settings;
        let node = self
            .nodes
            .get_mut(place)
            .ok_or_else(|| Misplaced(format!("there is no node {place}")))?;
        let Some(action) = node.doing.take() else {
            return Err(Misplaced(format!(
                "{answer:?} answers nothing that was begun"
            )));
        };
        node.answered(&action, answer, &settings).map_err(|reason| {
            node.doing = Some(action);
            Misplaced(reason)
        })
    }

    fn resume(&mut self, back: bool) {
        self.back |= back;
        if back {
            self.halted = Some(PlainText::from("the roll-out was taken back".to_owned()));
        }
        for node in &mut self.nodes {
            node.resumed(back);
        }
    }

    /// Stops after too many failures; what was not begun then ends.
    fn settle(&mut self) {
        if self.halted.is_none() {
            self.halted = self.too_many();
        }
        let Some(why) = self.halted.clone() else {
            return;
        };
        for node in self
            .nodes
            .iter_mut()
            .filter(|node| node.is_untouched() && node.doing.is_none())
        {
            node.stand = Stand::Ended(NodeOutcome::NotReached { why: why.clone() });
        }
    }

    /// Why the failures so far are too many.
    fn too_many(&self) -> Option<PlainText> {
        let failed = |node: &&Node| node.failed;
        if let Some(canary) = self.nodes.iter().filter(failed).find(|node| node.canary) {
            return Some(PlainText::from(format!(
                "{}, one of the first, failed",
                canary.member.name
            )));
        }
        let failures = self.failures();
        let why = || {
            PlainText::from(format!(
                "{failures} failed, of at most {}",
                self.settings.max_failures
            ))
        };
        (failures >= self.settings.max_failures).then(why)
    }
}
