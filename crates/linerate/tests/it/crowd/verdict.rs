//! Whether each test that was due has one row.

use std::collections::{BTreeMap, BTreeSet};

use linerate_archive::{Archive, RunFilter};
use linerate_model::watch::{RunClass, UnixMillis, WatchOutcome, WatchRun};

use super::gauge::Spread;

/// What the archive of a hub says.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// Rows by what they came to, of all classes.
    pub(super) rows: BTreeMap<String, usize>,
    /// Rows that measured.
    pub(super) measured: usize,
    /// Regular tests that were due.
    due: usize,
    /// How long after it was due a test began, in words.
    late: String,
    /// What is wrong; empty = nothing.
    pub(super) wrong: Vec<String>,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            rows,
            due,
            late,
            wrong,
            ..
        } = self;
        write!(
            out,
            "{due} regular tests were due, {} lost or there twice; rows: {rows:?}; tests began late by {late} ms",
            wrong.len()
        )
    }
}

/// Judges the tests of these pairs, each of which has one in each period of so many ms between two moments. How late tests began
/// is of those that were due in the steady part.
pub(super) fn of(
    archive: &Archive,
    pairs: &BTreeSet<[String; 2]>,
    period: u64,
    span: [UnixMillis; 2],
    steady: [UnixMillis; 2],
) -> Verdict {
    let mut verdict = Verdict::default();
    let filter = RunFilter {
        since: Some(UnixMillis(span[0].0 / period * period)),
        ..RunFilter::default()
    };
    let runs: Vec<WatchRun> = archive
        .runs(&filter)
        .unwrap()
        .into_iter()
        .map(|stored| stored.run)
        .collect();
    let mut counts: BTreeMap<([String; 2], u64), usize> = BTreeMap::new();
    let mut late = Vec::new();
    for run in &runs {
        *verdict.rows.entry(word(run)).or_default() += 1;
        let is_measured = matches!(run.outcome, WatchOutcome::Measured(_));
        verdict.measured += usize::from(is_measured);
        let is_steady = (steady[0]..steady[1]).contains(&run.due);
        if let Some(started) = run.started.filter(|_| is_measured && is_steady) {
            late.push(started.since(run.due) as f64);
        }
        if run.class == RunClass::Regular {
            let pair = [run.from.to_string(), run.to.to_string()];
            *counts.entry((pair, run.due.0 / period)).or_default() += 1;
        }
    }
    verdict.late = Spread::of(late).to_string();
    verdict.count(&counts, pairs, span.map(|moment| moment.0 / period));
    let verified = archive.verify().unwrap();
    if !verified.is_sound() {
        verdict.wrong.push(format!("{verified:?}"));
    }
    verdict
}

impl Verdict {
    /// The first period and the last two may be without a row: the hub did not run in all of them, and a test may wait to the
    /// end of its period.
    fn count(
        &mut self,
        counts: &BTreeMap<([String; 2], u64), usize>,
        pairs: &BTreeSet<[String; 2]>,
        [first, last]: [u64; 2],
    ) {
        self.due = counts.len();
        for ((pair, period), count) in counts {
            if *count > 1 || !pairs.contains(pair) || !(first..=last).contains(period) {
                let what = format!("{count} rows of {pair:?} in period {period}");
                self.wrong.push(what);
            }
        }
        for pair in pairs {
            for period in first + 1..last.saturating_sub(1) {
                if !counts.contains_key(&(pair.clone(), period)) {
                    self.due += 1;
                    let what = format!("no row of {pair:?} in period {period}");
                    self.wrong.push(what);
                }
            }
        }
    }
}

fn word(run: &WatchRun) -> String {
    let value = serde_json::to_value(run).unwrap();
    let of = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let words = [of("class"), of("outcome"), of("reason"), of("stage")];
    let words = words.iter().filter(|word| !word.is_empty());
    words.cloned().collect::<Vec<_>>().join(" ")
}

/// What this file looks for, it finds.
#[test]
fn a_row_that_is_missing_or_there_twice_is_found() {
    let pair = |from: &str, to: &str| [from.to_owned(), to.to_owned()];
    let pairs = BTreeSet::from([pair("a", "b"), pair("b", "a")]);
    let well: BTreeMap<_, _> = pairs
        .iter()
        .flat_map(|pair| (3..7).map(move |period| ((pair.clone(), period), 1)))
        .collect();
    let found = |counts: &BTreeMap<([String; 2], u64), usize>| {
        let mut verdict = Verdict::default();
        verdict.count(counts, &pairs, [2, 8]);
        verdict.wrong
    };
    assert_eq!(found(&well), Vec::<String>::new());
    let mut lost = well.clone();
    lost.remove(&(pair("a", "b"), 5));
    assert_eq!(found(&lost).len(), 1);
    let mut twice = well.clone();
    twice.insert((pair("b", "a"), 4), 2);
    assert_eq!(found(&twice).len(), 1);
    let mut foreign = well;
    foreign.insert((pair("a", "c"), 4), 1);
    assert_eq!(found(&foreign).len(), 1);
}
