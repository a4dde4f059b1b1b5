//! What is wrong with a pair, and the findings of its bad tests.

use std::collections::BTreeMap;

use linerate_model::alert::{AlertCounterTest, AlertFinding, AlertKind, Compared};
use linerate_model::counter_test::Verdict;
use linerate_model::watch::UnixMillis;
use serde::{Deserialize, Serialize};

use super::pair::Step;
use crate::baseline::Baseline;

/// Confirming tests of one suspicion, and of one repair.
const MOST_ASKED: u32 = 6;

/// What is wrong with a pair.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Trouble {
    pub(super) kind: AlertKind,
    pub(super) firing: bool,
    /// When the first bad test ended; of silence, the last result.
    pub(super) since: UnixMillis,
    /// When the last good test before it ended.
    pub(super) good: UnixMillis,
    /// When the latest bad test ended.
    pub(super) bad: UnixMillis,
    /// What the pair showed before: floors follow from it until this is over.
    pub(super) baseline: Option<Baseline>,
    pub(super) compared: Option<Compared>,
    /// The first finding of most bad tests, as the latest of these has it.
    pub(super) finding: Option<AlertFinding>,
    /// The first findings of the bad tests, by their ids: tests may have one of two in turn.
    #[serde(default)]
    seen: BTreeMap<String, Seen>,
    /// Results in a row that pass, and that are low without failing.
    pub(super) passes: usize,
    pub(super) low: usize,
    /// When confirming tests are due that have not come yet, and how many were asked for.
    pub(super) pending: Vec<UnixMillis>,
    pub(super) asked: u32,
}

/// A finding that came first in bad tests.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Seen {
    /// How many of them.
    tests: u32,
    /// What its counter-test showed; absent = it is still to come.
    counter_test: Option<AlertCounterTest>,
}

impl Seen {
    /// What was refuted counts less than what was not, then the number of tests decides.
    fn worth(&self) -> (bool, u32) {
        let verdict = self.counter_test.as_ref().map(|test| test.verdict);
        (verdict != Some(Verdict::Refuted), self.tests)
    }
}

impl Trouble {
    /// Something that began to be wrong, not confirmed yet.
    pub(super) fn new(
        kind: AlertKind,
        since: UnixMillis,
        good: UnixMillis,
        baseline: Option<Baseline>,
    ) -> Self {
        Self {
            kind,
            firing: false,
            since,
            good,
            bad: since,
            baseline,
            compared: None,
            finding: None,
            seen: BTreeMap::new(),
            passes: 0,
            low: 0,
            pending: Vec::new(),
            asked: 0,
        }
    }

    /// Counts the first finding of a bad test, and shows it where no other one has more tests; its counter-test, if it is new.
    pub(super) fn count_finding(&mut self, mut finding: AlertFinding) -> Option<Step> {
        let seen = self.seen.entry(finding.id.clone()).or_default();
        seen.tests += 1;
        finding.counter_test.clone_from(&seen.counter_test);
        let step = (seen.tests == 1).then(|| Step::CounterTest(finding.id.clone()));
        let worth = seen.worth();
        let shown = self.finding.as_ref();
        let shown = shown.and_then(|shown| self.seen.get(&shown.id));
        if shown.is_none_or(|shown| worth >= shown.worth()) {
            self.finding = Some(finding);
        }
        step
    }

    /// Keeps what the counter-test of a finding showed; whether the alert's finding changed by it.
    pub(super) fn handle_counter_test(&mut self, finding: &str, shown: AlertCounterTest) -> bool {
        if let Some(seen) = self.seen.get_mut(finding) {
            seen.counter_test = Some(shown.clone());
        }
        let known = self.finding.as_mut().filter(|known| known.id == finding);
        let is_shown = known.is_some();
        if let Some(known) = known {
            known.counter_test = Some(shown);
        }
        is_shown
    }

    /// Asks for confirming tests, as long as there were not too many.
    pub(super) fn ask(&mut self, now: UnixMillis, after: &[u64]) -> Vec<Step> {
        let left = usize::try_from(MOST_ASKED.saturating_sub(self.asked)).unwrap_or(0);
        let due: Vec<UnixMillis> = after
            .iter()
            .take(left)
            .map(|after| now.plus_millis(*after))
            .collect();
        self.asked += u32::try_from(due.len()).unwrap_or(MOST_ASKED);
        self.pending.extend(&due);
        due.into_iter().map(Step::Confirm).collect()
    }
}
