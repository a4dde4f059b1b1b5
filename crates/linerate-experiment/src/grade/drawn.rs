//! The grades of paths drawn at random.
//!
//! A draw counts where the path's counters confirm what its truth depends on. Where they do not (slow start ended early
//! and the path was never filled, the policer never dropped) the truth is not known: such draws are listed, and count
//! neither as right nor as missed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use linerate_lab::scenario;

use super::table::{HEALTHY, first, matrix};
use super::{Remark, Report, Row, Run, Standing};
use crate::aligned::aligned;

/// The first finding is right in at least this part of the draws.
const RIGHT: f64 = 0.97;

/// What became of the draws.
#[derive(Debug, Default)]
pub(super) struct Tally<'a> {
    right: Vec<&'a Row>,
    missed: Vec<(&'a Row, &'a Run)>,
    unclear: Vec<(&'a Row, &'a Run)>,
    failed: Vec<(&'a Row, &'a Run)>,
}

impl<'a> Tally<'a> {
    pub(super) fn of(report: &'a Report) -> Self {
        let mut tally = Self::default();
        for row in &report.rows {
            for run in &row.runs {
                let any = |is: fn(&Remark) -> bool| run.remarks.iter().any(is);
                if any(|remark| matches!(remark, Remark::Failed { .. })) {
                    tally.failed.push((row, run));
                } else if !shown(run) {
                    tally.unclear.push((row, run));
                } else if run.standing == Standing::Missed {
                    tally.missed.push((row, run));
                } else {
                    tally.right.push(row);
                }
            }
        }
        tally
    }

    fn judged(&self) -> usize {
        self.right.len() + self.missed.len()
    }

    pub(super) fn passed(&self) -> bool {
        self.failed.is_empty() && self.right.len() as f64 >= RIGHT * self.judged() as f64
    }
}

/// Whether the path's counters confirm all that was claimed of it, as far as they decide.
fn shown(run: &Run) -> bool {
    let claims = run.observed.claims.iter();
    claims
        .map(|claim| claim.standing)
        .all(|standing| standing != scenario::Standing::Refuted)
}

/// The family that a draw's name begins with.
fn family(row: &Row) -> &str {
    row.name
        .rsplit_once('-')
        .map_or(&row.name, |(family, _)| family)
}

pub(super) fn text(report: &Report) -> String {
    let tally = Tally::of(report);
    let mut text = String::new();
    let listed = [
        ("Missed", &tally.missed),
        ("The path did not do what was drawn", &tally.unclear),
        ("Failed", &tally.failed),
    ];
    for (title, runs) in listed.into_iter().filter(|(_, runs)| !runs.is_empty()) {
        let _ = writeln!(text, "{title}:");
        let rows: Vec<Vec<String>> = runs.iter().map(|(row, run)| line(row, run)).collect();
        text.push_str(&aligned(&rows));
        text.push('\n');
    }
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    let judged = report.rows.iter().flat_map(|row| {
        let runs = row.runs.iter().filter(|run| shown(run));
        runs.map(move |run| (family(row).to_owned(), first(run).to_owned()))
    });
    for pair in judged {
        *counts.entry(pair).or_default() += 1;
    }
    text.push_str(&matrix(&counts));
    text.push('\n');
    text.push_str(&summary(report, &tally));
    text
}

/// What was found instead, whether the machine disturbed it, and the command that repeats it.
fn line(row: &Row, run: &Run) -> Vec<String> {
    let what: Vec<String> = run
        .remarks
        .iter()
        .filter(|remark| !matches!(remark, Remark::Lab { .. } | Remark::PathUndecided { .. }))
        .map(Remark::to_string)
        .collect();
    vec![
        format!("  {}{}", row.name, if run.disturbed { " ?" } else { "" }),
        format!(
            "linerate lab grade --drawn 1 --seeds-from {}",
            run.observed.seed
        ),
        what.join("; "),
    ]
}

fn summary(report: &Report, tally: &Tally<'_>) -> String {
    let runs = || {
        report
            .rows
            .iter()
            .flat_map(|row| row.runs.iter().map(move |run| (row, run)))
    };
    let judged = tally.judged();
    let share = 100.0 * tally.right.len() as f64 / judged.max(1) as f64;
    let healthy: Vec<&Run> = runs()
        .filter(|(row, run)| row.expected == [HEALTHY[0]] && shown(run))
        .map(|(_, run)| run)
        .collect();
    let alarms = healthy.iter().filter(|run| !HEALTHY.contains(&first(run)));
    format!(
        "{} draws: the first finding is right in {} of {judged} ({share:.1} %). On {} the path did not do what was drawn, \
         {} failed, {} were disturbed by the machine to the last attempt (?).\nHealthy paths: {}, {} with a false alarm.\n",
        runs().count(),
        tally.right.len(),
        tally.unclear.len(),
        tally.failed.len(),
        runs().filter(|(_, run)| run.disturbed).count(),
        healthy.len(),
        alarms.count(),
    )
}
