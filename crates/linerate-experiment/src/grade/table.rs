//! The grades as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use linerate_lab::scenario::EngineWish;
use linerate_model::units::{BitRate, whole};

use super::{Remark, Report, Row, Run, Standing};
use crate::aligned::{aligned, remarked};

/// What stands where nothing was found.
const NOTHING: &str = "(nothing)";

pub(super) fn text(report: &Report) -> String {
    let mut text = rows(report);
    text.push('\n');
    text.push_str(&confusion(report));
    text.push('\n');
    text.push_str(&summary(report));
    text
}

fn rows(report: &Report) -> String {
    let head = ["scenario", "runs", "first finding", "goodput"];
    let cells = |row: &Row| vec![row.name.clone(), marks(row), firsts(row), goodput(row)];
    let rows = report.rows.iter().map(|row| (cells(row), remarks(row)));
    remarked(head, rows)
}

/// A sign a run: passed, no rule yet, missed; and one behind it where the run was disturbed to the last attempt.
fn marks(row: &Row) -> String {
    let mark = |run: &Run| {
        let sign = match run.standing {
            Standing::Passed => "✓",
            Standing::NoRule => "·",
            Standing::Missed => "✗",
        };
        format!("{sign}{}", if run.disturbed { "?" } else { "" })
    };
    row.runs.iter().map(mark).collect()
}

pub(super) fn first(run: &Run) -> &str {
    run.observed
        .findings
        .first()
        .map_or(NOTHING, String::as_str)
}

/// The first findings, each once, the most frequent one first.
fn firsts(row: &Row) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for run in &row.runs {
        *counts.entry(first(run)).or_default() += 1;
    }
    let mut names: Vec<_> = counts.into_iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let names: Vec<_> = names.into_iter().map(|(name, _)| name).collect();
    names.join(", ")
}

/// From the least to the most of the runs.
fn goodput(row: &Row) -> String {
    let all: Vec<f64> = row
        .runs
        .iter()
        .filter_map(|run| run.observed.goodput_bps)
        .collect();
    let rate = |bps: f64| BitRate(whole(bps)).to_string();
    let least = all.iter().copied().reduce(f64::min).map(rate);
    let most = all.iter().copied().reduce(f64::max).map(rate);
    match least.zip(most) {
        Some((least, most)) if least == most => least,
        Some((least, most)) => format!("{least} to {most}"),
        None => "none".to_owned(),
    }
}

/// What was remarked of a row, each once, with how often where not always.
fn remarks(row: &Row) -> Vec<String> {
    let mut seen: Vec<(String, usize)> = Vec::new();
    for remark in row.runs.iter().flat_map(|run| &run.remarks) {
        let words = remark.to_string();
        match seen.iter_mut().find(|(known, _)| *known == words) {
            Some((_, count)) => *count += 1,
            None => seen.push((words, 1)),
        }
    }
    for run in row.runs.iter().filter(|run| run.observed.attempt > 1) {
        let attempt = run.observed.attempt;
        seen.push((
            format!("seed {}: attempt {attempt}", run.observed.seed),
            row.runs.len(),
        ));
    }
    let runs = row.runs.len();
    let say = |(words, count): (String, usize)| {
        if count == runs {
            words
        } else {
            format!("{count} of {runs}: {words}")
        }
    };
    seen.into_iter().map(say).collect()
}

/// Expected against found, of the runs whose expected finding has a rule.
fn confusion(report: &Report) -> String {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for row in report.rows.iter().filter(|row| !row.expected.is_empty()) {
        for run in &row.runs {
            let unruled =
                |remark: &Remark| matches!(remark, Remark::NoRule { .. } | Remark::Failed { .. });
            if run.remarks.iter().any(unruled) {
                continue;
            }
            let found = first(run).to_owned();
            // One of several acceptable ones counts as itself.
            let expected = if row.expected.contains(&found) {
                found.clone()
            } else {
                row.expected[0].clone()
            };
            *counts.entry((expected, found)).or_default() += 1;
        }
    }
    matrix(&counts)
}

/// The counts of pairs of what was expected and what was found, as a table.
pub(super) fn matrix(counts: &BTreeMap<(String, String), usize>) -> String {
    if counts.is_empty() {
        return "No run's first finding could be judged.\n".to_owned();
    }
    let expected: BTreeSet<&String> = counts.keys().map(|(expected, _)| expected).collect();
    let found: BTreeSet<&String> = counts.keys().map(|(_, found)| found).collect();
    let mut table = vec![
        std::iter::once("expected \\ found".to_owned())
            .chain(found.iter().map(|id| (*id).clone()))
            .collect::<Vec<_>>(),
    ];
    for row in expected {
        let cell = |column: &&String| {
            let count = counts.get(&(row.clone(), (*column).clone()));
            count.map_or(".".to_owned(), usize::to_string)
        };
        table.push(
            std::iter::once(row.clone())
                .chain(found.iter().map(cell))
                .collect(),
        );
    }
    aligned(&table)
}

/// Findings of a path that has nothing wrong with it.
pub(super) const HEALTHY: [&str; 2] = ["path-full", "rate-capped"];

fn summary(report: &Report) -> String {
    let runs = || report.rows.iter().flat_map(|row| &row.runs);
    let count = |standing| runs().filter(|run| run.standing == standing).count();
    let disturbed = runs().filter(|run| run.disturbed).count();
    let again = runs().filter(|run| run.observed.attempt > 1).count();
    let mut text = format!(
        "{} runs of {} scenarios: {} as expected (✓), {} as far as there are rules (·), {} missed (✗); \
         {again} made more than once, {disturbed} disturbed to the last (?)\n",
        runs().count(),
        report.rows.len(),
        count(Standing::Passed),
        count(Standing::NoRule),
        count(Standing::Missed)
    );
    // It cannot tell whether it kept pace.
    let netem = EngineWish::NETEM;
    let untold = runs().filter(|run| run.observed.engine == netem).count();
    if untold > 0 {
        let _ = writeln!(
            text,
            "{untold} of them by {netem}, which does not report how late packets left: none of these is marked as \
             disturbed for that reason."
        );
    }
    let expecting: Vec<&Row> = report
        .rows
        .iter()
        .filter(|row| !row.expected.is_empty())
        .collect();
    let all = || {
        expecting
            .iter()
            .flat_map(|row| row.runs.iter().map(move |run| (*row, run)))
    };
    let right = all().filter(|(row, run)| row.expected.iter().any(|id| id == first(run)));
    let _ = writeln!(
        text,
        "First finding right in {} of {} runs.",
        right.count(),
        all().count()
    );
    let known = |id: &String| HEALTHY.contains(&id.as_str());
    let healthy: Vec<&Run> = all()
        .filter(|(row, _)| row.expected.iter().all(known))
        .map(|(_, run)| run)
        .collect();
    let alarmed = healthy
        .iter()
        .filter(|run| ![HEALTHY[0], HEALTHY[1], NOTHING].contains(&first(run)));
    let beside = healthy
        .iter()
        .filter(|run| run.observed.findings.iter().skip(1).any(|id| !known(id)));
    let _ = writeln!(
        text,
        "Healthy paths: {} runs, {} with another first finding, {} with an additional finding.",
        healthy.len(),
        alarmed.count(),
        beside.count()
    );
    text
}
