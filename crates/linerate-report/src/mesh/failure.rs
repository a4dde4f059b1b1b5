//! Tests that failed or did not begin, by reason.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::mesh::MeshOutcome;
use linerate_model::plain_text::PlainText;

use super::fold::folded;
use super::view::Source;
use crate::words;

/// Tests with the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureView {
    /// What was being done; absent where they did not begin.
    pub stage: Option<PlainText>,
    /// Why.
    pub why: PlainText,
    /// How many they are.
    pub tests: usize,
    /// Their sending hosts, folded.
    pub from: String,
    /// Their receiving hosts, folded.
    pub to: String,
    /// The host that has a part in each of them, and has both parts in some.
    pub of: Option<PlainText>,
}

/// The tests of a reason: how many, and the places of their hosts.
#[derive(Default)]
struct Tests {
    count: usize,
    /// Hosts that have a part in each test so far.
    common: Option<Vec<usize>>,
    from: BTreeSet<usize>,
    to: BTreeSet<usize>,
}

/// All reasons, the most frequent first.
pub(super) fn all(source: &Source<'_>) -> Vec<FailureView> {
    let mut reasons: BTreeMap<(Option<&PlainText>, &PlainText), Tests> = BTreeMap::new();
    for test in &source.mesh.tests {
        let reason = match &test.outcome {
            MeshOutcome::Measured(_) => continue,
            MeshOutcome::Failed { stage, why } => (Some(stage), why),
            MeshOutcome::NotRun { why } => (None, why),
        };
        let tests = reasons.entry(reason).or_default();
        tests.count += 1;
        let part = [test.from, test.to];
        let common = tests.common.get_or_insert_with(|| part.to_vec());
        common.retain(|host| part.contains(host));
        tests.from.insert(test.from);
        tests.to.insert(test.to);
    }
    let names = |hosts: BTreeSet<usize>| {
        let hosts: Vec<usize> = hosts.into_iter().collect();
        words::plain(&folded(source, &hosts))
    };
    let mut all: Vec<FailureView> = reasons
        .into_iter()
        .map(|((stage, why), tests)| FailureView {
            stage: stage.cloned(),
            why: why.clone(),
            tests: tests.count,
            of: of_all(source, &tests),
            from: names(tests.from),
            to: names(tests.to),
        })
        .collect();
    all.sort_by_key(|reason| std::cmp::Reverse(reason.tests));
    all
}

/// The one host that all tests of a reason have, where it sends in some and receives in others.
fn of_all(source: &Source<'_>, tests: &Tests) -> Option<PlainText> {
    let [host] = tests.common.as_deref()? else {
        return None;
    };
    let both = tests.from.contains(host) && tests.to.contains(host);
    let host = source.mesh.hosts.get(*host).filter(|_| both)?;
    Some(host.name.clone())
}

impl FailureView {
    /// `from node03 to node07`, `with node03`.
    pub(super) fn between(&self) -> String {
        match &self.of {
            Some(host) => format!("with {host}"),
            None => format!("from {} to {}", self.from, self.to),
        }
    }

    /// `connecting: refused`, `did not begin: node07 is unreachable`.
    pub(super) fn sentence(&self) -> String {
        match &self.stage {
            Some(stage) => format!("{stage}: {}", self.why),
            None => format!("did not begin: {}", self.why),
        }
    }
}
