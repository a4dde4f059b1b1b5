//! `linerate watch status`: each pair and each open alert, from the archive of a hub.

use std::fmt::Write as _;

use linerate_archive::{AlertFilter, Archive, PairState};
use linerate_hub::words::AlertWords;
use linerate_model::alert::{Alert, AlertState};
use linerate_model::calendar::rfc3339;
use linerate_model::units::{BitRate, whole};
use linerate_model::watch::{UnixMillis, WatchOutcome};

use super::StatusArguments;
use crate::action::Failure;
use crate::hub::folder::{self, State};
use crate::place::unix_ms;
use crate::printer::Printer;

/// A hub that runs writes its state every second.
const RUNS_MILLIS: u64 = 15_000;

pub(super) fn run(given: &StatusArguments, printer: &Printer) -> Result<(), Failure> {
    let path = given.kept.folder()?;
    let archive = Archive::open_existing(&path)?;
    let now = UnixMillis(unix_ms());
    let mut text = heard(folder::state(&path)?.as_ref(), now);
    let open = AlertFilter {
        states: [AlertState::Suspect, AlertState::Firing]
            .map(|state| state.word().to_owned())
            .to_vec(),
        ..AlertFilter::default()
    };
    for alert in archive.alerts::<Alert>(&open)? {
        text.push_str(&alarm(&alert, now));
    }
    let pairs = archive.pairs()?;
    if pairs.is_empty() {
        text.push_str("No test has been due yet.\n");
    }
    text.push_str(&table(&pairs, now));
    Ok(printer.print(&text)?)
}

/// When the hub ran.
pub(super) fn heard(state: Option<&State>, now: UnixMillis) -> String {
    match state {
        None => "No hub has run with this folder.\n".to_owned(),
        Some(state) if !state.ended && now.since(state.seen) < RUNS_MILLIS => match &state.file {
            Some(file) => {
                let mut text = format!("The hub runs, with {}.\n", file.display());
                if let Some(why) = &state.plan_trouble {
                    text.push_str("That file has changed and is not in force: ");
                    text.push_str(why);
                    text.push('\n');
                }
                text
            }
            None => "The hub runs, without a plan.\n".to_owned(),
        },
        Some(state) => format!(
            "The hub does not run: it last did at {}, {}.\n",
            rfc3339(state.seen),
            ago(state.seen, now)
        ),
    }
}

fn alarm(alert: &Alert, now: UnixMillis) -> String {
    let words = AlertWords::of(alert);
    let mut text = format!(
        "{}: {} ({}), since {}\n",
        alert.state.word(),
        words.title,
        alert.task,
        ago(alert.since, now)
    );
    for sentence in words.why.iter().chain(&words.what_to_do) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {sentence}");
    }
    text
}

fn table(pairs: &[PairState], now: UnixMillis) -> String {
    let names: Vec<[String; 2]> = pairs
        .iter()
        .map(|pair| {
            let name = format!("{} > {}", pair.from, pair.to);
            [pair.task.to_string(), name]
        })
        .collect();
    let width = |column: usize| names.iter().map(|name| name[column].chars().count()).max();
    let (task, name) = (width(0).unwrap_or(0), width(1).unwrap_or(0));
    let mut text = String::new();
    for (pair, [its_task, its_name]) in pairs.iter().zip(&names) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{its_task:task$}  {its_name:name$}  {}",
            state(pair, now)
        );
    }
    text
}

fn state(pair: &PairState, now: UnixMillis) -> String {
    let latest = &pair.latest.run;
    let when = ago(latest.ended, now);
    match &latest.outcome {
        WatchOutcome::Measured(figures) => {
            let finding = figures.findings.first();
            let finding = finding.map_or(String::new(), |finding| format!("  {finding}"));
            format!("{}  {when}{finding}", rate(figures.goodput_bps))
        }
        WatchOutcome::Failed { why, .. } => format!("failed  {when}: {why}"),
        WatchOutcome::NotRun { reason, why, .. } => {
            format!("did not run ({})  {when}: {why}", reason.word())
        }
        WatchOutcome::Invalid { why } => format!("did not count  {when}: {why}"),
    }
}

/// A rate in words.
pub(super) fn rate(bps: f64) -> String {
    BitRate(whole(bps)).to_string()
}

/// How long ago.
pub(super) fn ago(at: UnixMillis, now: UnixMillis) -> String {
    format!("{} ago", span(now.since(at)))
}

/// A span in its largest unit, rounded down.
pub(super) fn span(millis: u64) -> String {
    match millis / 1000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}
