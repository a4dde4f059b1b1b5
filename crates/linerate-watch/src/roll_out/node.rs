//! One node: where it stands, and what an answer makes of it.

use super::table::{BothWays, LastKnown, NodeOutcome};
use linerate_model::plain_text::PlainText;

use super::entry::{Action, Entry, Found, Member, Plan, Settings};

/// How often a node whose state was in doubt is tried again.
const DOUBTS: usize = 2;

/// Where a node stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stand {
    /// Its turn comes.
    Due,
    /// Its batch began.
    Chosen,
    /// Its neighbours were tested.
    Measured,
    /// It has the new settings and its rollback waits.
    Applied,
    /// It answered over a new connection.
    Reached,
    /// The tests after the change are good.
    Good,
    /// It is not known which settings it has.
    Doubted { why: PlainText, resumed: bool },
    /// It gets its old settings again.
    Failed { why: PlainText },
    /// That is all.
    Ended(NodeOutcome),
}

/// A node of a roll-out.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) member: Member,
    pub(super) stand: Stand,
    /// What was begun and has no answer yet.
    pub(super) doing: Option<Action>,
    pub(super) neighbours: Vec<usize>,
    pub(super) before: Vec<BothWays>,
    pub(super) after: Vec<BothWays>,
    pub(super) set: Option<PlainText>,
    pub(super) canary: bool,
    /// Whether it counts as a failure of the roll-out.
    pub(super) failed: bool,
    /// How often it was in doubt which settings it has; from then on a confirmation may have reached it.
    doubts: usize,
    /// Whether it was confirmed before the roll-out was taken back.
    confirmed: bool,
}

impl Node {
    pub(super) fn new(member: Member) -> Self {
        let stand = match &member.plan {
            Plan::Changes { .. } => Stand::Due,
            Plan::AlreadySo => Stand::Ended(NodeOutcome::AlreadySo),
            Plan::Refused { why } => Stand::Ended(NodeOutcome::Refused { why: why.clone() }),
            Plan::Unreachable { why } => Stand::Ended(NodeOutcome::Unreachable {
                why: why.clone(),
                has: LastKnown::Old,
            }),
        };
        Self {
            member,
            stand,
            doing: None,
            neighbours: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            set: None,
            canary: false,
            failed: false,
            doubts: 0,
            confirmed: false,
        }
    }

    pub(super) const fn has_ended(&self) -> bool {
        matches!(self.stand, Stand::Ended(_))
    }

    /// Whether it waits to be taken back from settings that were confirmed.
    pub(super) const fn is_kept(&self) -> bool {
        self.confirmed && self.doing.is_none() && matches!(self.stand, Stand::Failed { .. })
    }

    /// Whether it may have settings that are neither old nor confirmed.
    pub(super) fn is_in_flight(&self) -> bool {
        match &self.stand {
            Stand::Due | Stand::Chosen | Stand::Ended(_) => false,
            Stand::Measured => matches!(self.doing, Some(Action::Apply { .. })),
            Stand::Failed { .. } if self.is_kept() => false,
            _ => true,
        }
    }

    /// Whether nothing of it was changed so far, and nothing is being changed.
    pub(super) fn is_untouched(&self) -> bool {
        let being_changed = matches!(self.doing, Some(Action::Apply { .. }));
        matches!(self.stand, Stand::Due | Stand::Chosen | Stand::Measured) && !being_changed
    }

    /// What the answer to the action makes of it.
    pub(super) fn answered(
        &mut self,
        action: &Action,
        answer: &Entry,
        settings: &Settings,
    ) -> Result<(), String> {
        match (action, answer) {
            (Action::Measure { .. }, Entry::Measured { goodput, .. }) => {
                self.before.clone_from(goodput);
                self.stand = Stand::Measured;
            }
            (Action::Apply { .. }, Entry::Applied { set, .. }) => {
                self.set = Some(set.clone());
                self.stand = Stand::Applied;
            }
            (Action::Apply { .. }, Entry::NotApplied { why, .. }) => {
                self.fail();
                self.stand = Stand::Ended(NodeOutcome::RolledBack { why: why.clone() });
            }
            (Action::Reconnect { .. }, Entry::Reconnected { .. }) => self.stand = Stand::Reached,
            (Action::Test { .. }, Entry::Tested { goodput, .. }) => {
                self.after.clone_from(goodput);
                match self.slower(settings.tolerance) {
                    None => self.stand = Stand::Good,
                    Some(why) => self.roll_back(why),
                }
            }
            (Action::Confirm { .. }, Entry::Confirmed { .. }) => {
                self.stand = Stand::Ended(NodeOutcome::Changed);
            }
            (Action::Confirm { .. }, Entry::NotConfirmed { why, .. }) => {
                self.doubt(why.clone(), false);
            }
            (Action::Check { .. }, Entry::Found { settings, .. }) => self.found(*settings),
            (Action::RollBack { .. }, Entry::RolledBack { .. }) => {
                let why = self.why();
                self.stand = Stand::Ended(NodeOutcome::RolledBack { why });
            }
            (action, Entry::Lost { why, .. }) => self.lost(action, why),
            (action, answer) => return Err(format!("{answer:?} does not answer {action:?}")),
        }
        Ok(())
    }

    /// The action got no answer.
    fn lost(&mut self, action: &Action, why: &PlainText) {
        match action {
            Action::Apply { .. } | Action::Confirm { .. } => self.doubt(why.clone(), false),
            Action::Reconnect { .. } | Action::Test { .. } => self.roll_back(why.to_string()),
            Action::Measure { .. } => self.unreachable(why, LastKnown::Old),
            Action::RollBack { .. } if self.set_may_be_confirmed() => {
                self.unreachable(why, LastKnown::OldOrConfirmed);
            }
            Action::RollBack { .. } => self.unreachable(why, LastKnown::RollsBack),
            Action::Check { .. } | Action::Batch { .. } => {
                self.unreachable(why, LastKnown::OldOrConfirmed);
            }
        }
    }

    /// Whether a confirmation reached it or may have.
    const fn set_may_be_confirmed(&self) -> bool {
        self.confirmed || self.doubts > 0
    }

    fn unreachable(&mut self, why: &PlainText, has: LastKnown) {
        self.fail();
        let why = match &self.stand {
            Stand::Failed { why: first } | Stand::Doubted { why: first, .. } => {
                PlainText::from(format!("{first}; then {why}"))
            }
            _ => why.clone(),
        };
        self.stand = Stand::Ended(NodeOutcome::Unreachable { why, has });
    }

    fn found(&mut self, settings: Found) {
        match (settings, &self.stand) {
            (Found::Confirmed, _) => self.stand = Stand::Ended(NodeOutcome::Changed),
            // It was not this node's fault: its turn comes again.
            (Found::Old, Stand::Doubted { resumed: true, .. }) => self.again(),
            (Found::Old, _) => {
                self.fail();
                let why = self.why();
                self.stand = Stand::Ended(NodeOutcome::RolledBack { why });
            }
            (Found::Waiting, Stand::Doubted { .. }) if self.doubts <= DOUBTS => {
                self.stand = Stand::Applied;
            }
            (Found::Waiting, _) => {
                let why = self.why().to_string();
                self.roll_back(why);
            }
        }
    }

    /// Its turn comes again.
    fn again(&mut self) {
        self.stand = Stand::Due;
        self.canary = false;
        self.set = None;
    }

    /// Why it is where it stands.
    fn why(&self) -> PlainText {
        match &self.stand {
            Stand::Failed { why } | Stand::Doubted { why, .. } => why.clone(),
            _ => PlainText::from(String::new()),
        }
    }

    fn fail(&mut self) {
        self.failed = true;
    }

    /// It gets its old settings again, as a failure.
    fn roll_back(&mut self, why: String) {
        self.fail();
        self.stand = Stand::Failed {
            why: PlainText::from(why),
        };
    }

    fn doubt(&mut self, why: PlainText, resumed: bool) {
        self.doubts += 1;
        self.stand = Stand::Doubted { why, resumed };
    }

    /// A later run goes on (or back): what was begun has no answer any more.
    pub(super) fn resumed(&mut self, back: bool) {
        let doing = self.doing.take();
        let in_flight = self.is_in_flight() || matches!(doing, Some(Action::Apply { .. }));
        let changed = self.stand == Stand::Ended(NodeOutcome::Changed);
        if back && (in_flight || changed) {
            self.confirmed |= changed;
            self.doubts += usize::from(matches!(doing, Some(Action::Confirm { .. })));
            self.stand = Stand::Failed {
                why: PlainText::from("the roll-out was taken back".to_owned()),
            };
        } else if in_flight && !matches!(self.stand, Stand::Failed { .. }) {
            self.doubts = 0;
            self.doubt(
                PlainText::from("the roll-out was interrupted".to_owned()),
                true,
            );
        } else if self.is_untouched() {
            self.again();
        }
    }

    /// What was lost to the neighbours; none where the node is as fast as before. A direction that was not measured before
    /// proves nothing.
    fn slower(&self, tolerance: f64) -> Option<String> {
        let pairs = self.before.iter().enumerate();
        let after = |place: usize| self.after.get(place).copied().unwrap_or_default();
        let mut ways = pairs.flat_map(|(place, before)| {
            let after = after(place);
            [
                ("to", before.out_bps, after.out_bps),
                ("from", before.in_bps, after.in_bps),
            ]
        });
        ways.find_map(|(way, before, after)| {
            let before = before?;
            let Some(after) = after else {
                return Some(format!("no test {way} a neighbour passes any more"));
            };
            (after < (1.0 - tolerance) * before).then(|| {
                let lost = 100.0 * (1.0 - after / before);
                format!("{way} a neighbour {lost:.0} % slower than before")
            })
        })
    }
}
