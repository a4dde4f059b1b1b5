//! `linerate lab run --until`: one remedy after the other, each measured.

use std::fmt::Write as _;

use linerate_experiment::remedy::Change;
use linerate_experiment::until::{Course, End, Next};
use linerate_kernel::thread::SignalFd;
use linerate_lab::runner::Isolation;
use linerate_lab::scenario::Scenario;
use linerate_model::finding::Finding;
use linerate_model::nearest;
use linerate_model::units::{BitRate, whole};

use super::arguments::RunArguments;
use super::run::{self, RunOptions};
use super::{applied_words, passed_on, text};
use crate::action::Failure;
use crate::printer::Printer;

/// Runs the scenario, and again with each remedy that the findings name.
pub(super) fn run(
    mut scenario: Scenario,
    until: &str,
    arguments: &RunArguments,
    isolation: Isolation,
    signals: &SignalFd,
    printer: &Printer,
) -> Result<(), Failure> {
    let known: Vec<&str> = linerate_explain::rule_ids().collect();
    if !known.contains(&until) {
        return Err(Failure::Usage(format!(
            "--until {until}: there is no such finding: {}",
            nearest::hint(until, &known)
        )));
    }
    let options = RunOptions {
        more: arguments.test_arguments(),
        document: true,
    };
    let mut course = Course::new(until);
    // Ends: the course allows five runs.
    let (end, path) = loop {
        let ran = run::run(&scenario, isolation, &options, signals)?;
        passed_on(&ran)?;
        let document: serde_json::Value = serde_json::from_slice(&ran.document).map_err(|_| {
            Failure::Lab(format!(
                "the test printed no JSON document: {}",
                ran.complaint
            ))
        })?;
        let findings: Vec<Finding> =
            serde_json::from_value(document["findings"].clone()).unwrap_or_default();
        let goodput = document.pointer("/summary/goodput_bps");
        let next = course.next(&findings, goodput.and_then(serde_json::Value::as_f64));
        if !arguments.json {
            printer.print(&round(&course))?;
        }
        match next {
            _ if ran.stopped => return Err(Failure::Incomplete("it was stopped".to_owned())),
            Next::Apply(promise) => {
                let change = Change::of(&promise.remedy)
                    .map_err(|error| Failure::Missed(error.to_string()))?;
                scenario = change.applied(&scenario);
            }
            Next::End(end) => break (end, text::report(&scenario, &ran.lab)),
        }
    };
    if arguments.json {
        let document = serde_json::json!({ "course": course, "end": end, "scenario": scenario });
        printer.json(&document.to_string())?;
    } else {
        printer.print(&format!("\n{}\n{path}", summary(&course)))?;
    }
    match end {
        End::Reached => Ok(()),
        End::NoRemedy | End::Rounds => Err(Failure::Missed(format!(
            "{until} is not the first finding: {}",
            end.words()
        ))),
    }
}

fn rate(bps: Option<f64>) -> String {
    bps.map_or_else(
        || "nothing arrived".to_owned(),
        |bps| BitRate(whole(bps)).to_string(),
    )
}

/// The last round: what was measured, what limits, and what is done about it.
fn round(course: &Course) -> String {
    let Some(last) = course.rounds.last() else {
        return String::new();
    };
    let mut text = format!(
        "{}. {}: {}\n",
        course.rounds.len(),
        rate(last.goodput_bps),
        last.finding.as_deref().unwrap_or("no finding")
    );
    if let Some(sentence) = &last.sentence {
        let _ = writeln!(text, "   {sentence}");
    }
    if let Some(promise) = &last.remedy {
        let _ = writeln!(text, "   Remedy for {}", applied_words(promise));
    }
    text
}

/// The rates in turn, what limits at the end, and what did not help.
fn summary(course: &Course) -> String {
    let rates: Vec<String> = course
        .rounds
        .iter()
        .map(|round| rate(round.goodput_bps))
        .collect();
    let limit = course
        .rounds
        .last()
        .and_then(|last| last.finding.as_deref());
    let mut text = format!(
        "{}; the first finding is now {}.\n",
        rates.join(" → "),
        limit.unwrap_or("none")
    );
    for promise in course.useless() {
        let _ = writeln!(
            text,
            "The remedy for {} did not raise the rate: {} = {}.",
            promise.finding,
            promise.remedy.fix.setting(),
            promise.remedy.fix.value()
        );
    }
    text
}
