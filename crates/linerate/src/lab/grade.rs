//! `linerate lab grade`: a folder of scenarios, run and held against what they expect.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use linerate_experiment::grade::{self, Observed, Rounds, Step};
use linerate_experiment::remedy::{self, Promise};
use linerate_kernel::thread::SignalFd;
use linerate_lab::draw;
use linerate_lab::runner::{self, Isolation};
use linerate_lab::scenario::{EngineWish, Scenario};
use linerate_model::finding::Finding;
use linerate_model::nearest;
use linerate_model::units::grouped;

use super::arguments::GradeArguments;
use super::run::{self, Ran, RunOptions};
use super::{kept, star};
use crate::action::Failure;
use crate::input;
use crate::printer::Printer;
use crate::signals;

/// Why a run was not made, or does not count.
const STOPPED: &str = "stopped by a signal";

pub(super) fn run(arguments: &GradeArguments, printer: &Printer) -> Result<(), Failure> {
    let mut scenarios = match (&arguments.folder, arguments.drawn) {
        (Some(folder), _) => scenarios(folder, &arguments.only, printer)?,
        (None, count) => drawn(count.unwrap_or(1), arguments, printer)?,
    };
    if let Some(engine) = arguments.engine {
        scenarios = by_engine(scenarios, engine, printer)?;
    }
    if let Some(folder) = &arguments.kept {
        let read = |scenario: &Scenario, seed, _| kept::read(folder, &scenario.name, seed);
        return graded(arguments, &scenarios, read, |_, _| {}, printer);
    }
    let keep = arguments.keep.as_deref();
    keep.map_or(Ok(()), kept::prepare)?;
    let signals = signals::take_stops()?;
    let isolation = runner::isolate()?;
    let mut stopped = false;
    let one = |scenario: &Scenario, seed, attempt| {
        if let Some(folder) = keep.filter(|_| arguments.resume && attempt == 1)
            && let Ok(known) = kept::read(folder, &scenario.name, seed)
        {
            return Ok(known);
        }
        // After a signal nothing more is started; what ran is reported.
        stopped = stopped || matches!(signals.read(), Ok(Some(_)));
        if stopped {
            return Err(STOPPED.to_owned());
        }
        if attempt > 1 {
            printer.tell(&format!(
                "{}, seed {seed}: the lab was late, attempt {attempt} of {} …",
                scenario.name,
                grade::ATTEMPTS
            ));
        }
        let seeded = Scenario {
            seed,
            ..scenario.clone()
        };
        let observed = observe(&seeded, attempt, arguments, isolation, &signals);
        stopped = observed.as_ref().is_err_and(|why| why == STOPPED);
        observed
    };
    let tell = |what: &str, step: Step<'_>| {
        printer.tell(&format!(
            "{} of {}: {}, seed {}{what} …",
            step.done + 1,
            step.of,
            step.name,
            step.seed
        ));
    };
    graded(arguments, &scenarios, one, tell, printer)
}

/// Grades what `one` gives of each scenario, and of the remedies where they were asked for.
fn graded(
    arguments: &GradeArguments,
    scenarios: &[Scenario],
    mut one: impl FnMut(&Scenario, u64, u32) -> Result<Observed, String>,
    tell: impl Fn(&str, Step<'_>),
    printer: &Printer,
) -> Result<(), Failure> {
    let rounds = Rounds {
        runs: arguments.runs,
        // The numbers of draws are their seeds.
        seeds_from: if arguments.drawn.is_some() {
            0
        } else {
            arguments.seeds_from
        },
        attempts: match arguments.kept {
            Some(_) => 1,
            None => grade::ATTEMPTS,
        },
    };
    let grades = grade::run(scenarios, rounds, &mut one, |step| tell("", step));
    let remedies = arguments.remedies.then(|| {
        let once = |scenario: &Scenario, seed| one(scenario, seed, 1);
        remedy::run(scenarios, &grades, once, |step| {
            tell(", with its remedy", step);
        })
    });
    let drawn = arguments.drawn.is_some();
    let text = if drawn {
        grades.drawn_text()
    } else {
        grades.text()
    };
    print(&grades, &text, remedies.as_ref(), arguments.json, printer)?;
    if drawn && !grades.drawn_passed() {
        return Err(Failure::Missed(
            "the first finding is right in fewer than 97 of 100 draws".to_owned(),
        ));
    }
    if !drawn && !grades.passed() {
        return Err(Failure::Missed(
            "some scenarios missed what they expect".to_owned(),
        ));
    }
    if remedies.is_some_and(|remedies| !remedies.passed()) {
        return Err(Failure::Missed(format!(
            "fewer than 9 in 10 remedies gave the predicted rate, within {:.0} %",
            100.0 * remedy::WITHIN
        )));
    }
    Ok(())
}

fn print(
    grades: &grade::Report,
    text: &str,
    remedies: Option<&remedy::Report>,
    json: bool,
    printer: &Printer,
) -> Result<(), Failure> {
    match (remedies, json) {
        (None, true) => printer.json(&serde_json::json!(grades).to_string())?,
        (Some(remedies), true) => {
            let document = serde_json::json!({ "scenarios": grades, "remedies": remedies });
            printer.json(&document.to_string())?;
        }
        (None, false) => printer.print(text)?,
        (Some(remedies), false) => printer.print(&format!("{text}\n{}", remedies.text()))?,
    }
    Ok(())
}

/// Paths drawn at random: the first `count` from a number on, of the families asked for.
fn drawn(
    count: u64,
    arguments: &GradeArguments,
    printer: &Printer,
) -> Result<Vec<Scenario>, Failure> {
    let only = &arguments.only;
    let known: Vec<&str> = draw::families().collect();
    if let Some(odd) = only.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Failure::Usage(format!(
            "--only {odd}: there is no such family of draws: {}",
            nearest::hint(odd, &known)
        )));
    }
    let mut scenarios = Vec::new();
    let mut unclear = 0;
    let mut number = arguments.seeds_from;
    // Ends: each family has its share of the numbers.
    while (scenarios.len() as u64) < count {
        let drawn = draw::draw(number)?;
        number = number.wrapping_add(1);
        if only.is_empty() || only.iter().any(|name| name == drawn.family) {
            unclear += drawn.unclear;
            scenarios.push(drawn.scenario);
        }
    }
    printer.tell(&format!(
        "{count} paths drawn from number {} on; {} other sets of parameters were not used, since their truth is not clear.",
        arguments.seeds_from,
        grouped(u64::from(unclear))
    ));
    Ok(scenarios)
}

/// The scenarios of a folder, by name.
fn scenarios(folder: &Path, only: &[String], printer: &Printer) -> Result<Vec<Scenario>, Failure> {
    let failed = |error: std::io::Error| Failure::cannot("read the folder", folder, &error);
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    files.sort();
    let mut scenarios = Vec::new();
    for path in files {
        let text = input::text(&path, input::WRITTEN)?;
        if star::is_star(&text) {
            printer.tell(&format!(
                "{} is left out: it is a star, which a mesh of tests grades",
                path.display()
            ));
            continue;
        }
        let scenario = Scenario::parse(&path.display().to_string(), &text)?;
        refuse_unknown_findings(&path, &scenario)?;
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

fn refuse_unknown_findings(path: &Path, scenario: &Scenario) -> Result<(), Failure> {
    let ids = linerate_explain::rule_ids().chain(linerate_explain::reading_ids());
    let known: Vec<&str> = ids.collect();
    match scenario.expect.named().find(|id| !known.contains(id)) {
        Some(id) => Err(Failure::Usage(format!(
            "{}: [expect] names the finding '{id}', which there is not: {}",
            path.display(),
            nearest::hint(id, &known)
        ))),
        None => Ok(()),
    }
}

/// The scenarios with another engine, without those that it cannot carry.
fn by_engine(
    scenarios: Vec<Scenario>,
    engine: EngineWish,
    printer: &Printer,
) -> Result<Vec<Scenario>, Failure> {
    let mut all = Vec::new();
    for scenario in scenarios {
        let beyond = match engine {
            EngineWish::Netem => scenario.beyond_netem(),
            EngineWish::Auto | EngineWish::Nfqueue => Vec::new(),
        };
        if beyond.is_empty() {
            all.push(Scenario { engine, ..scenario });
        } else {
            printer.tell(&format!(
                "{} is left out: netem cannot do {}",
                scenario.name,
                beyond.join("; ")
            ));
        }
    }
    if all.is_empty() {
        return Err(Failure::Usage(
            "netem can carry none of these scenarios".to_owned(),
        ));
    }
    Ok(all)
}

fn observe(
    scenario: &Scenario,
    attempt: u32,
    arguments: &GradeArguments,
    isolation: Isolation,
    signals: &SignalFd,
) -> Result<Observed, String> {
    let keep = arguments.keep.as_deref();
    let mut more: Vec<OsString> = keep.map_or_else(Vec::new, |folder| {
        let record = kept::record(folder, &scenario.name, scenario.seed);
        vec!["-o".into(), record.into()]
    });
    if arguments.diagnose {
        more.push("--diagnose".into());
    }
    let options = RunOptions {
        document: true,
        more,
    };
    let ran =
        run::run(scenario, isolation, &options, signals).map_err(|failure| failure.to_string())?;
    if ran.stopped {
        // What was measured until then is no run of this scenario.
        if let Some(folder) = keep {
            drop(std::fs::remove_file(kept::record(
                folder,
                &scenario.name,
                scenario.seed,
            )));
        }
        return Err(STOPPED.to_owned());
    }
    let document: serde_json::Value = serde_json::from_slice(&ran.document)
        .map_err(|_| format!("the test printed no JSON document: {}", ran.complaint))?;
    let observed = Observed {
        attempt,
        ..observed(scenario, &ran, &document)
    };
    if let Some(folder) = keep {
        kept::write(folder, &scenario.name, &observed)?;
    }
    Ok(observed)
}

fn observed(scenario: &Scenario, ran: &Ran, document: &serde_json::Value) -> Observed {
    let findings: Vec<Finding> =
        serde_json::from_value(document["findings"].clone()).unwrap_or_default();
    Observed {
        seed: scenario.seed,
        promises: findings.iter().filter_map(Promise::of).collect(),
        findings: findings.into_iter().map(|finding| finding.id).collect(),
        goodput_bps: document
            .pointer("/summary/goodput_bps")
            .and_then(serde_json::Value::as_f64),
        engine: ran.lab.in_force.engine.to_owned(),
        mode: ran.lab.in_force.mode.word().to_owned(),
        attempt: 1,
        // What further runs of a diagnosis sent says nothing of the test itself.
        claims: ran.first_test.check_claims(scenario),
        bottleneck: ran.lab.bottleneck.clone(),
    }
}
