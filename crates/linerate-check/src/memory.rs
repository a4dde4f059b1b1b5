//! What is remembered of a node from run to run.

use std::collections::{BTreeMap, VecDeque};

use linerate_model::check::{Item, Outcome, State};
use linerate_model::watch::UnixMillis;
use serde::{Deserialize, Serialize};

use crate::settings::{Check, Drain};

/// So many runs are remembered.
pub const KEPT: usize = 10;
/// The layout of the file.
const VERSION: u32 = 1;

/// A drain that a run made: what the controller says of the node while nobody changes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drained {
    /// The reason, as it was given.
    pub reason: String,
    /// Who set it and when, as `sinfo` says; `None` until that was read.
    pub signed: Option<(String, String)>,
    /// When it was asked for, by this node's clock.
    pub at: UnixMillis,
    /// The checks that had failed.
    pub checks: Vec<String>,
    /// Whether each of them lets the node take work again by itself.
    pub resume: bool,
}

/// What is remembered of a node.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Memory {
    version: u32,
    /// The boot that it is of; states of another boot are forgotten.
    boot: String,
    /// The states of each check, the last run at the end.
    states: BTreeMap<String, VecDeque<State>>,
    /// Since when each check fails without a run that was well.
    failing: BTreeMap<String, UnixMillis>,
    /// What a check wants to know of its last run: counters.
    pub before: BTreeMap<String, serde_json::Value>,
    /// The drain that stands.
    pub drained: Option<Drained>,
    /// The comment that stands.
    pub comment: Option<String>,
    /// What outlives a boot could not be read: a drain may stand there.
    #[serde(default)]
    pub is_unread: bool,
}

impl Drained {
    /// Adds checks that failed while it stood: they have to be well too, and each may leave the node to a person.
    pub fn add(&mut self, bad: &[&Check]) -> bool {
        let before = self.checks.len();
        for check in bad {
            if !self.checks.contains(&check.name) {
                self.checks.push(check.name.clone());
                self.resume &= check.resume;
            }
        }
        self.checks.len() > before
    }
}

impl Memory {
    /// Of a node of which nothing is remembered since this boot.
    pub fn new(boot: &str) -> Self {
        Self {
            version: VERSION,
            boot: boot.to_owned(),
            ..Self::default()
        }
    }

    /// Reads it. States of another boot are left out, a drain is kept. `None` where it is not ours or of another version.
    pub fn parse(text: &str, boot: &str) -> Option<Self> {
        let read: Self = serde_json::from_str(text).ok()?;
        if read.version != VERSION {
            return None;
        }
        if read.boot == boot {
            return Some(read);
        }
        Some(Self {
            drained: read.drained,
            comment: read.comment,
            ..Self::new(boot)
        })
    }

    /// As a text that [`Self::parse`] reads.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Only what outlives a boot, or nothing where there is nothing such.
    pub fn lasting(&self) -> Option<Self> {
        self.drained.is_some().then(|| Self {
            drained: self.drained.clone(),
            comment: self.comment.clone(),
            ..Self::new(&self.boot)
        })
    }

    /// Adds a run. Checks that were not made this time keep what is remembered of them.
    pub fn add(&mut self, outcomes: &[Outcome], now: UnixMillis) {
        for outcome in outcomes {
            let name = outcome.check.to_string();
            let states = self.states.entry(name.clone()).or_default();
            let state = remembered(outcome);
            states.push_back(state);
            while states.len() > KEPT {
                states.pop_front();
            }
            match state {
                State::Fail => {
                    self.failing.entry(name).or_insert(now);
                }
                State::Ok | State::Warn => {
                    self.failing.remove(&name);
                }
                State::Unknown => {}
            }
        }
    }

    /// Since when a check fails.
    pub fn failing_since(&self, check: &str) -> Option<UnixMillis> {
        self.failing.get(check).copied()
    }

    /// Whether a check failed in the last run and in as many of the last runs as it takes.
    pub fn is_bad(&self, check: &str, drain: Drain) -> bool {
        let Some(states) = self.states.get(check) else {
            return false;
        };
        let last = states.iter().rev().take(usize::from(drain.of));
        let failures = last.filter(|state| **state == State::Fail).count();
        states.back() == Some(&State::Fail) && failures >= usize::from(drain.failures)
    }

    /// The checks for which the node is to be drained, the first of the file first.
    pub fn bad<'c>(&self, checks: &'c [Check]) -> Vec<&'c Check> {
        let is_bad = |check: &&Check| {
            check
                .drain
                .is_some_and(|drain| self.is_bad(&check.name, drain))
        };
        checks.iter().filter(is_bad).collect()
    }

    /// For how many runs in a row each of these checks was well. What could not be found out is not well, and neither is a check that
    /// is no longer made: it may only have another name, or its file may be missing for a moment.
    pub fn well_for(&self, checks: &[String], made: &[Check]) -> usize {
        let runs = checks.iter().map(|name| {
            if !made.iter().any(|check| check.name == *name) {
                return 0;
            }
            let states = self.states.get(name).into_iter().flatten().rev();
            let well = |state: &&State| matches!(state, State::Ok | State::Warn);
            states.take_while(well).count()
        });
        runs.min().unwrap_or(0)
    }
}

/// The state that counts: a warning beside something that could not be found out does not make a node well.
fn remembered(outcome: &Outcome) -> State {
    let unknown = |item: &Item| item.state == State::Unknown;
    match outcome.state {
        State::Ok | State::Warn if outcome.items.iter().any(unknown) => State::Unknown,
        state => state,
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::check::CheckKind;
    use linerate_model::units::Nanos;

    use super::*;
    use crate::settings::Settings;

    fn outcome(check: &str, state: State) -> Outcome {
        Outcome {
            check: check.into(),
            kind: CheckKind::Md,
            state,
            items: vec![],
            took: Nanos(0),
            limit: Nanos(0),
        }
    }

    fn after(states: &[State]) -> Memory {
        let mut memory = Memory::new("boot");
        for (run, state) in states.iter().enumerate() {
            memory.add(&[outcome("md", *state)], UnixMillis(run as u64 * 1000));
        }
        memory
    }

    #[test]
    fn a_check_is_bad_when_it_failed_now_and_often_enough() {
        use State::{Fail, Ok, Unknown, Warn};
        let two_of_three = Drain { failures: 2, of: 3 };
        for (states, bad) in [
            (&[][..], false),
            (&[Fail], false),
            (&[Fail, Fail], true),
            (&[Fail, Ok, Fail], true),
            (&[Fail, Ok, Ok, Fail], false),
            (&[Fail, Fail, Ok], false),
            (&[Fail, Fail, Unknown], false),
            (&[Fail, Unknown, Fail], true),
            (&[Warn, Warn, Warn], false),
            (&[Unknown, Unknown, Unknown], false),
        ] {
            assert_eq!(after(states).is_bad("md", two_of_three), bad, "{states:?}");
        }
        let at_once = Drain { failures: 1, of: 1 };
        assert!(after(&[Ok, Fail]).is_bad("md", at_once));
    }

    #[test]
    fn what_is_unknown_is_neither_well_nor_the_end_of_a_failure() {
        use State::{Fail, Ok, Unknown};
        let made = Settings::without_file().checks;
        let names = ["md".to_owned()];
        let well = |states: &[State]| after(states).well_for(&names, &made);
        assert_eq!(well(&[Fail, Ok, Ok]), 2);
        assert_eq!(well(&[Ok, Ok, Unknown]), 0);
        assert_eq!(well(&[]), 0);
        assert_eq!(after(&[Ok, Ok]).well_for(&["gone".to_owned()], &made), 0);
        let since = |states: &[State]| after(states).failing_since("md");
        assert_eq!(since(&[Ok, Fail, Unknown, Fail]), Some(UnixMillis(1000)));
        assert_eq!(since(&[Fail, Ok]), None);
    }

    #[test]
    fn another_boot_forgets_states_and_keeps_the_drain() {
        let mut memory = after(&[State::Fail, State::Fail]);
        memory.drained = Some(Drained {
            reason: "LR:md x".to_owned(),
            signed: Some(("root".to_owned(), "2026-01-01T00:00:00".to_owned())),
            at: UnixMillis(1),
            checks: vec!["md".to_owned()],
            resume: true,
        });
        let same = Memory::parse(&memory.text(), "boot").unwrap();
        assert_eq!(same, memory);
        let other = Memory::parse(&memory.text(), "later").unwrap();
        assert_eq!(other.drained, memory.drained);
        assert_eq!(other.failing_since("md"), None);
        assert_eq!(Memory::parse("{}", "boot"), None);
        assert_eq!(Memory::parse("{\"version\": 2", "boot"), None);
    }
}
