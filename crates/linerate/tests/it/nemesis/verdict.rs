//! Whether the rows are what they have to be.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use linerate_archive::{Archive, RunFilter};
use linerate_model::watch::{RunClass, UnixMillis, WatchOutcome, WatchRun};
use serde_json::Value;

use super::bed::PERIOD;
use super::watcher::Shown;

/// From when on, and until when a hub was to run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) since: UnixMillis,
    pub(super) until: UnixMillis,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    rows: BTreeMap<String, usize>,
    acknowledged: usize,
    periods: u64,
    lost: usize,
    twice: usize,
    overlapping: usize,
    without_row: usize,
    /// What is wrong; empty = nothing.
    pub(super) wrong: Vec<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} results acknowledged, {} lost; {} periods of 3 pairs, {} tests without a row; {} rows twice; {} tests overlap; \
             rows: {:?}",
            self.acknowledged,
            self.lost,
            self.periods,
            self.without_row,
            self.twice,
            self.overlapping,
            self.rows
        )
    }
}

pub(super) fn of(archive: &Archive, hosts: &[String; 3], span: Span, shown: &Shown) -> Verdict {
    let stored = archive.runs(&RunFilter::default()).unwrap();
    let runs: Vec<WatchRun> = stored.into_iter().map(|stored| stored.run).collect();
    let mut verdict = of_runs(&runs, hosts, span, shown);
    let verified = archive.verify().unwrap();
    if !verified.is_sound() {
        verdict.wrong.push(format!("{verified:?}"));
    }
    verdict
}

fn of_runs(runs: &[WatchRun], hosts: &[String; 3], span: Span, shown: &Shown) -> Verdict {
    let mut verdict = Verdict::default();
    for run in runs {
        *verdict.rows.entry(word(run)).or_default() += 1;
    }
    verdict.look_for_lost(runs, shown);
    verdict.look_for_twice(runs);
    for host in hosts {
        verdict.look_for_overlap(runs, host);
    }
    let [a, b, c] = hosts;
    for pair in [[a, b], [b, c], [c, a]] {
        verdict.look_for_gaps(runs, pair, span);
    }
    verdict
}

fn word(run: &WatchRun) -> String {
    let outcome = serde_json::to_value(run).unwrap();
    let of = |key: &str| outcome[key].as_str().unwrap_or_default().to_owned();
    format!("{} {}", of("outcome"), of("reason"))
        .trim()
        .to_owned()
}

impl Verdict {
    /// What the API showed is in the archive, with the same outcome and times.
    fn look_for_lost(&mut self, runs: &[WatchRun], shown: &Shown) {
        let by_id: BTreeMap<String, &WatchRun> =
            runs.iter().map(|run| (run.id.to_string(), run)).collect();
        self.acknowledged = shown.len();
        for (id, was) in shown {
            let is = by_id.get(id).map(|run| serde_json::to_value(run).unwrap());
            let same = |is: &Value| {
                let keys = ["outcome", "task", "from", "to", "class"];
                keys.iter().all(|key| is[key] == was[key])
            };
            if !is.as_ref().is_some_and(same) {
                self.lost += 1;
                self.wrong.push(format!("lost: {was} is {is:?}"));
            }
        }
    }

    /// No test has two rows.
    fn look_for_twice(&mut self, runs: &[WatchRun]) {
        let (mut ids, mut dues) = (BTreeSet::new(), BTreeSet::new());
        for run in runs {
            let due = (&*run.task, &*run.from, &*run.to, run.class, run.due);
            let (id, due) = (ids.insert(run.id), dues.insert(due));
            if !id || !due {
                self.twice += 1;
                self.wrong.push(format!("twice: {run:?}"));
            }
        }
    }

    /// A host takes part in one test at a time.
    fn look_for_overlap(&mut self, runs: &[WatchRun], host: &str) {
        let its = |run: &&WatchRun| run.from == *host || run.to == *host;
        let times = |run: &'_ WatchRun| {
            let ran = !matches!(run.outcome, WatchOutcome::NotRun { .. });
            run.started.filter(|_| ran)
        };
        let mut ran: Vec<(UnixMillis, &WatchRun)> = runs
            .iter()
            .filter(its)
            .filter_map(|run| Some((times(run)?, run)))
            .collect();
        ran.sort_by_key(|(started, run)| (*started, run.id));
        for two in ran.windows(2) {
            let [(_, one), (started, other)] = two else {
                continue;
            };
            if *started < one.ended {
                self.overlapping += 1;
                self.wrong
                    .push(format!("overlap on {host}: {one:?} and {other:?}"));
            }
        }
    }

    /// Each period has one regular test. Those in which the first hub started and the last one ended may have none.
    fn look_for_gaps(&mut self, runs: &[WatchRun], pair: [&String; 2], span: Span) {
        let its = |run: &&WatchRun| {
            run.class == RunClass::Regular && run.from == **pair[0] && run.to == **pair[1]
        };
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        for run in runs.iter().filter(its) {
            *counts.entry(run.due.0 / PERIOD).or_default() += 1;
        }
        let (first, end) = (span.since.0 / PERIOD, span.until.0 / PERIOD);
        // The rows of a period may be there a moment after its end.
        for period in first + 1..end.saturating_sub(1) {
            self.periods += u64::from(pair[0].ends_with('a'));
            if !counts.contains_key(&period) {
                self.without_row += 1;
                self.wrong
                    .push(format!("no row: {pair:?} at {}", period * PERIOD));
            }
        }
        let outside = counts
            .keys()
            .filter(|period| !(first..=end).contains(period));
        for period in outside {
            self.wrong
                .push(format!("not due: {pair:?} at {}", period * PERIOD));
        }
        for (period, count) in counts.iter().filter(|(_, count)| **count > 1) {
            self.twice += 1;
            self.wrong
                .push(format!("{count} rows: {pair:?} at {}", period * PERIOD));
        }
    }
}

/// What this file looks for, it finds.
#[test]
fn each_kind_of_wrong_row_is_found() {
    let hosts = ["a", "b", "c"].map(str::to_owned);
    let pairs = [("a", "b"), ("b", "c"), ("c", "a")];
    let row = |period: u64, (from, to): (&str, &str), at: u64| {
        let due = UnixMillis(period * PERIOD + at);
        WatchRun {
            id: linerate_model::watch::RunId::of(due, u128::from(at)),
            task: "ring".into(),
            from: from.into(),
            to: to.into(),
            class: RunClass::Regular,
            due,
            deadline: UnixMillis((period + 1) * PERIOD),
            started: Some(due),
            ended: due.plus_millis(1_000),
            outcome: WatchOutcome::Invalid {
                why: "it is made up".into(),
            },
        }
    };
    let ring = |period: u64| {
        (0..3_u64)
            .zip(pairs)
            .map(move |(at, pair)| row(period, pair, at * 1_000))
    };
    let runs: Vec<WatchRun> = (100..110).flat_map(ring).collect();
    let span = Span {
        since: UnixMillis(100 * PERIOD + 5),
        until: UnixMillis(110 * PERIOD + 5),
    };
    let shown: Shown = runs
        .iter()
        .map(|run| (run.id.to_string(), serde_json::to_value(run).unwrap()))
        .collect();
    let verdict = |runs: &[WatchRun]| of_runs(runs, &hosts, span, &shown);
    let well = verdict(&runs);
    assert_eq!(
        (well.wrong, well.periods, well.acknowledged),
        (Vec::new(), 8, 30)
    );

    let mut gone = runs.clone();
    gone.remove(13);
    let found = verdict(&gone);
    assert_eq!(
        (found.lost, found.without_row, found.wrong.len()),
        (1, 1, 2)
    );
    let mut twice = runs.clone();
    twice.push(row(105, ("a", "b"), 8_000));
    let found = verdict(&twice);
    assert_eq!((found.twice, found.wrong.len()), (1, 1));
    twice.push(runs[4].clone());
    assert!(verdict(&twice).twice > 2);
    let mut overlapping = runs.clone();
    overlapping[9].ended = overlapping[9].ended.plus_millis(1);
    let found = verdict(&overlapping);
    assert_eq!((found.overlapping, found.wrong.len()), (1, 1));
    let mut another = runs.clone();
    another[9].outcome = WatchOutcome::Failed {
        stage: "it".into(),
        why: "failed".into(),
    };
    let found = verdict(&another);
    assert_eq!((found.lost, found.wrong.len()), (1, 1));
}
