//! `linerate watch why`: what became of a pair's tests since the last one that measured, from the archive of a hub.

use std::fmt::Write as _;

use linerate_archive::{Archive, RunFilter};
use linerate_model::calendar::rfc3339;
use linerate_model::watch::{UnixMillis, WatchOutcome, WatchRun};
use linerate_watch::why::{Stretch, StretchEnding, Why, why};

use super::WhyArguments;
use super::status::{ago, heard, rate, span};
use crate::action::Failure;
use crate::hub::folder;
use crate::place::unix_ms;
use crate::printer::Printer;

/// So many of a pair's latest tests are looked at.
const ROWS: usize = 2_000;
/// Holders that are named for each stretch.
const HOLDERS: usize = 3;

pub(super) fn run(given: &WhyArguments, printer: &Printer) -> Result<(), Failure> {
    let path = given.kept.folder()?;
    let archive = Archive::open_existing(&path)?;
    let now = UnixMillis(unix_ms());
    let mut text = heard(folder::state(&path)?.as_ref(), now);
    let pairs = archive.pairs()?;
    let mut found = false;
    for pair in &pairs {
        if pair.from != given.from.as_str() || pair.to != given.to.as_str() {
            continue;
        }
        found = true;
        let filter = RunFilter {
            task: Some(pair.task.clone()),
            from: Some(pair.from.clone()),
            to: Some(pair.to.clone()),
            limit: ROWS,
            ..RunFilter::default()
        };
        let rows = archive.runs(&filter)?.into_iter();
        let rows: Vec<WatchRun> = rows.map(|stored| stored.run).collect();
        let name = format!("{} {} > {}", pair.task, pair.from, pair.to);
        text.push_str(&told(&name, &why(&rows, None), now));
    }
    if !found {
        return Err(Failure::Usage(absent(given, &pairs)));
    }
    Ok(printer.print(&text)?)
}

/// No test of the pair was ever due.
fn absent(given: &WhyArguments, pairs: &[linerate_archive::PairState]) -> String {
    let (from, to) = (&given.from, &given.to);
    let back = pairs
        .iter()
        .any(|pair| pair.from == to.as_str() && pair.to == from.as_str());
    let hint = if back {
        format!("; tests of {to} > {from} are there")
    } else if pairs.is_empty() {
        "; the archive is empty".to_owned()
    } else {
        "; `linerate watch status` lists the pairs that are there".to_owned()
    };
    format!("no test of {from} > {to} has been due yet{hint}")
}

fn told(name: &str, why: &Why, now: UnixMillis) -> String {
    let tests: usize = why.since.iter().map(|stretch| stretch.tests).sum();
    let mut text = match (&why.measured, tests) {
        (Some(run), 0) => format!("{name}: the latest test measured {}.\n", measured(run, now)),
        (Some(run), _) => format!(
            "{name}: no result from the latest {tests} {}. The last one measured {}.\n",
            plural(tests),
            measured(run, now)
        ),
        (None, 0) => format!("{name}: no test has been due yet.\n"),
        (None, _) => format!("{name}: none of {tests} {} measured.\n", plural(tests)),
    };
    for stretch in &why.since {
        text.push_str(&line(stretch, now));
    }
    text
}

fn measured(run: &WatchRun, now: UnixMillis) -> String {
    let rate = match &run.outcome {
        WatchOutcome::Measured(figures) => rate(figures.goodput_bps),
        _ => String::new(),
    };
    format!("{rate} {}", ago(run.ended, now))
}

fn line(stretch: &Stretch, now: UnixMillis) -> String {
    let tests = format!("{} {}", stretch.tests, plural(stretch.tests));
    let what = match &stretch.ending {
        StretchEnding::Failed(stage) => format!("{tests} failed ({stage})"),
        StretchEnding::NotRun(reason) => format!("{tests} did not run ({})", reason.word()),
        StretchEnding::Invalid => format!("{tests} did not count"),
    };
    let mut text = format!(
        "  {} to {} ({}): {what}: {}\n",
        rfc3339(stretch.from),
        rfc3339(stretch.until),
        ago(stretch.until, now),
        stretch.why
    );
    for held in stretch.held.iter().take(HOLDERS) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "      {} used {} for {}",
            held.by,
            held.resource,
            span(held.millis)
        );
    }
    text
}

const fn plural(tests: usize) -> &'static str {
    if tests == 1 { "test" } else { "tests" }
}
