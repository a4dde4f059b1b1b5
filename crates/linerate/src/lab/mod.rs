//! `linerate lab`: paths on one machine, and tests across them.

pub(crate) mod arguments;
mod by_options;
mod cross;
mod grade;
mod kept;
mod measure;
mod programs;
mod run;
mod selfcheck;
mod standing;
mod star;
mod state;
mod text;
mod until;

use std::ffi::OsString;
use std::path::Path;

use linerate_analysis::evidence::Evidence;
use linerate_document::DocumentError;
use linerate_experiment::remedy::{Change, Promise};
use linerate_lab::runner::{self, LabError};
use linerate_lab::scenario::{PRESETS, Preset, Scenario};
use linerate_model::record::Role;
use linerate_model::units::{BitRate, whole};
use linerate_model::words;

use crate::action::Failure;
use crate::input;
use crate::printer::Printer;
use crate::{show, signals};
use arguments::{LabArguments, LabCommand, PathOptions, RunArguments, UpArguments};
pub(crate) use measure::measure;
pub(crate) use programs::{Program, linerate as ourselves};
use run::{Ran, RunOptions};

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        Self::Lab(error.to_string())
    }
}

impl From<DocumentError> for Failure {
    fn from(error: DocumentError) -> Self {
        Self::Usage(error.to_string())
    }
}

pub(crate) fn run(arguments: LabArguments, printer: &Printer) -> Result<(), Failure> {
    match arguments.command {
        LabCommand::Run(arguments) => run_one(&arguments, printer),
        LabCommand::Presets { name } => presets(name.as_deref(), printer),
        LabCommand::Up(arguments) => standing::up(&arguments, printer),
        LabCommand::Hold { name, seed } => standing::hold(&name, seed, printer),
        LabCommand::Exec(arguments) => standing::exec(&arguments),
        LabCommand::List(arguments) => match arguments.groups {
            Some(name) => star::groups(&name, printer),
            None => standing::list(arguments.json, printer),
        },
        LabCommand::Down { name, .. } => standing::down(name.as_deref(), printer),
        LabCommand::Selfcheck { seed, json } => selfcheck::run(seed, json, printer),
        LabCommand::Grade(arguments) => grade::run(&arguments, printer),
        LabCommand::Draw { number } => {
            printer.print(&linerate_lab::draw::draw(number)?.text)?;
            Ok(())
        }
    }
}

fn run_one(arguments: &RunArguments, printer: &Printer) -> Result<(), Failure> {
    let mut scenario = scenario(&arguments.scenario)?;
    scenario.seed = arguments.seed.unwrap_or(scenario.seed);
    scenario.engine = arguments.engine.unwrap_or(scenario.engine);
    if let Some(record) = &arguments.remedy_of {
        scenario = remedied(&scenario, record, printer)?;
    }
    let signals = signals::take_stops()?;
    let isolation = runner::isolate()?;
    if let Some(until) = &arguments.until {
        return until::run(scenario, until, arguments, isolation, &signals, printer);
    }
    let options = RunOptions {
        more: arguments.test_arguments(),
        document: arguments.json,
    };
    let ran = run::run(&scenario, isolation, &options, &signals)?;
    if arguments.json {
        printer.json(&document(&scenario, &ran).to_string())?;
    } else {
        printer.print(&format!("\n{}", text::report(&scenario, &ran.lab)))?;
    }
    passed_on(&ran)
}

/// The scenario with the first remedy that the findings of a record name, and a word on what is changed.
fn remedied(scenario: &Scenario, file: &Path, printer: &Printer) -> Result<Scenario, Failure> {
    let record = show::read(file)?;
    let findings = linerate_explain::explain(&Evidence::of(&record));
    let promise = findings.iter().find_map(Promise::of).ok_or_else(|| {
        let found: Vec<&str> = findings.iter().map(|finding| finding.id.as_str()).collect();
        Failure::Missed(format!(
            "{} names no remedy to apply: found was {}",
            file.display(),
            found.join(", ")
        ))
    })?;
    let change = Change::of(&promise.remedy).map_err(|error| Failure::Usage(error.to_string()))?;
    printer.tell(&format!("Remedy for {}", applied_words(&promise)));
    Ok(change.applied(scenario))
}

/// Behind "Remedy for ": whose it is, what is set where, and what is expected of it.
fn applied_words(promise: &Promise) -> String {
    let remedy = &promise.remedy;
    let expected = words::with(promise.expected.as_ref(), |expected| {
        format!(
            "; then expect {}, limited by {}",
            BitRate(whole(expected.rate_bps)),
            expected.then
        )
    });
    let host = match remedy.host {
        Role::Client => "sender",
        Role::Server => "receiver",
    };
    format!(
        "{}: on the lab's {host}, set {} = {}{expected}",
        promise.finding,
        remedy.fix.setting(),
        remedy.fix.value()
    )
}

/// The child said why it failed; its exit code says it to programs.
fn passed_on(ran: &Ran) -> Result<(), Failure> {
    if ran.status.success() {
        return Ok(());
    }
    let code = ran.status.code().and_then(|code| u8::try_from(code).ok());
    let why = if ran.complaint.is_empty() {
        format!("`linerate test` in the lab ended with {}", ran.status)
    } else {
        format!("`linerate test` in the lab: {}", ran.complaint)
    };
    Err(Failure::Inner {
        code: code.unwrap_or(3),
        why,
    })
}

fn document(scenario: &Scenario, ran: &Ran) -> serde_json::Value {
    let test: serde_json::Value = serde_json::from_slice(&ran.document).unwrap_or_default();
    serde_json::json!({ "scenario": scenario, "test": test, "lab": ran.lab })
}

/// A file, or a preset where there is no such file.
pub(crate) fn scenario(asked: &str) -> Result<Scenario, Failure> {
    let (label, text) = scenario_text(asked)?;
    if star::is_star(&text) {
        return Err(star::no_path(&label));
    }
    Ok(Scenario::parse(&label, &text)?)
}

/// Where it is from, and its text.
fn scenario_text(asked: &str) -> Result<(String, String), Failure> {
    if let Some(preset) = Preset::named(asked)
        && !Path::new(asked).exists()
    {
        return Ok((asked.to_owned(), preset.text.to_owned()));
    }
    let text = input::string(Path::new(asked), input::WRITTEN).map_err(|error| {
        let hint = match Preset::nearest(asked) {
            Some(nearest) => format!("; did you mean the preset {nearest}?"),
            None => "; `linerate lab presets` lists the presets".to_owned(),
        };
        Failure::File(format!("cannot read the scenario {asked}: {error}{hint}"))
    })?;
    Ok((asked.to_owned(), text))
}

/// A path by options: rate, rtt, queue, loss and mode as `lab up` takes them.
pub(crate) fn scenario_by_options(path: &PathOptions) -> Result<Scenario, Failure> {
    let arguments = UpArguments {
        rate: path.rate.clone(),
        rtt: path.rtt.clone(),
        queue: path.queue.clone(),
        loss: path.loss,
        mode: path.mode.clone(),
        ..UpArguments::default()
    };
    by_options::scenario(&arguments).map(|(_, scenario)| scenario)
}

fn presets(name: Option<&str>, printer: &Printer) -> Result<(), Failure> {
    let Some(name) = name else {
        for preset in PRESETS {
            let about = preset.scenario()?.about;
            printer.line(&format!("{:<12} {about}", preset.name))?;
        }
        return Ok(());
    };
    let preset = Preset::named(name).ok_or_else(|| {
        let hint = words::with(Preset::nearest(name), |near| {
            format!("; did you mean {near}?")
        });
        Failure::Usage(format!("there is no preset '{name}'{hint}"))
    })?;
    Ok(printer.print(preset.text)?)
}

/// Words of a command line as they were typed.
fn words(arguments: &[OsString]) -> String {
    let words = arguments.iter().map(|word| word.to_string_lossy());
    words.collect::<Vec<_>>().join(" ")
}
