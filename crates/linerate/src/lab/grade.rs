//! `linerate lab grade`: a folder of scenarios, run and held against what they expect.

use std::path::{Path, PathBuf};

use linerate_experiment::grade::{self, Observed, Report, Rounds};
use linerate_kernel::thread::SignalFd;
use linerate_lab::runner::{self, Isolation};
use linerate_lab::scenario::{Mode, Scenario};

use super::arguments::GradeArguments;
use super::kept;
use super::run::{self, Ran, RunOptions};
use super::take_signals;
use crate::action::Failure;
use crate::printer::Printer;

/// Runs and grades.
pub(super) fn run(arguments: &GradeArguments, printer: &Printer) -> Result<(), Failure> {
    let scenarios = scenarios(&arguments.folder, &arguments.only)?;
    let rounds = Rounds {
        runs: arguments.runs,
        seeds_from: arguments.seeds_from,
    };
    let report = match &arguments.kept {
        Some(folder) => grade::run(
            &scenarios,
            rounds,
            |scenario, seed| kept::read(folder, &scenario.name, seed),
            |_| {},
        ),
        None => run_all(&scenarios, rounds, arguments.keep.as_deref(), printer)?,
    };
    if arguments.json {
        printer.line(&serde_json::json!(report).to_string())?;
    } else {
        printer.print(&report.text())?;
    }
    if report.passed() {
        Ok(())
    } else {
        Err(Failure::Missed(
            "some scenarios missed what they expect".to_owned(),
        ))
    }
}

fn run_all(
    scenarios: &[Scenario],
    rounds: Rounds,
    keep: Option<&Path>,
    printer: &Printer,
) -> Result<Report, Failure> {
    keep.map_or(Ok(()), kept::prepare)?;
    let signals = take_signals()?;
    let isolation = runner::isolate()?;
    let mut stopped = false;
    Ok(grade::run(
        scenarios,
        rounds,
        |scenario, seed| {
            // After a signal nothing more is started; what ran is told.
            stopped = stopped || matches!(signals.read(), Ok(Some(_)));
            if stopped {
                return Err("stopped by a signal".to_owned());
            }
            observe(scenario, seed, keep, isolation, &signals)
        },
        |step| {
            printer.tell(&format!(
                "{} of {}: {}, seed {} …",
                step.done + 1,
                step.of,
                step.name,
                step.seed
            ));
        },
    ))
}

/// The scenarios of a folder, by name.
fn scenarios(folder: &Path, only: &[String]) -> Result<Vec<Scenario>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::File(format!(
            "cannot read the folder {}: {error}",
            folder.display()
        ))
    };
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    files.sort();
    let mut scenarios = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Failure::File(format!("cannot read {}: {error}", path.display())))?;
        let scenario = Scenario::parse(&path.display().to_string(), &text)?;
        if only.is_empty() || only.iter().any(|part| scenario.name.contains(part)) {
            scenarios.push(scenario);
        }
    }
    if scenarios.is_empty() {
        return Err(Failure::Usage(format!(
            "there is no scenario to run in {}",
            folder.display()
        )));
    }
    Ok(scenarios)
}

/// One run.
fn observe(
    scenario: &Scenario,
    seed: u64,
    keep: Option<&Path>,
    isolation: Isolation,
    signals: &SignalFd,
) -> Result<Observed, String> {
    let mut scenario = scenario.clone();
    scenario.seed = seed;
    let options = RunOptions {
        document: true,
        more: keep.map_or_else(Vec::new, |folder| {
            vec![
                "-o".into(),
                kept::record(folder, &scenario.name, seed).into(),
            ]
        }),
    };
    let ran =
        run::run(&scenario, isolation, &options, signals).map_err(|failure| failure.to_string())?;
    let document: serde_json::Value = serde_json::from_slice(&ran.document)
        .map_err(|_| format!("the test gave no document: {}", ran.complaint))?;
    let observed = observed(&scenario, &ran, &document);
    if let Some(folder) = keep {
        kept::write(folder, &scenario.name, &observed)?;
    }
    Ok(observed)
}

fn observed(scenario: &Scenario, ran: &Ran, document: &serde_json::Value) -> Observed {
    let findings = document["findings"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let ids = findings
        .iter()
        .filter_map(|finding| finding["id"].as_str().map(str::to_owned));
    let path = &ran.lab.path;
    Observed {
        seed: scenario.seed,
        findings: ids.collect(),
        goodput_bps: document
            .pointer("/summary/goodput_bps")
            .and_then(serde_json::Value::as_f64),
        engine: ran.lab.in_force.engine.to_owned(),
        mode: match ran.lab.in_force.mode {
            Mode::Packet => "packet",
            Mode::Bulk => "bulk",
        }
        .to_owned(),
        claims: scenario.check_claims(&path.forward.counters, &path.back.counters),
        bottleneck: ran.lab.bottleneck.clone(),
    }
}
