//! `linerate check`: whether this node is well, and what Slurm is told of it.
//!
//! The process itself touches no disk: its memory is in /run, and whatever may hang is done by children.

pub(crate) mod arguments;
mod children;
mod folders;
mod looks;
mod order;
mod slurm;

use std::path::Path;
use std::time::{Duration, Instant};

use linerate_check::judge;
use linerate_check::memory::Memory;
use linerate_check::settings::{Check, Settings};
use linerate_kernel::{clock, host};
use linerate_model::check::{CheckRun, Found, Item, Outcome, State};
use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;
use linerate_model::watch::UnixMillis;
use linerate_report::check as report;

use crate::action::Failure;
use crate::on::{self, Kind};
use crate::place::unix_ms;
use crate::printer::Printer;
use arguments::{CheckArguments, CheckCommand, Form, PlaceArguments, RunArguments};
use children::{Ask, Ended, Reply, ask, ask_all};
use folders::Folders;
use order::{Answer, Order};

/// Where the checks are named.
const CONFIG: &str = "/etc/linerate/check.toml";
/// Reading or writing a small file takes no longer, unless its disk hangs.
const FILE_LIMIT: Duration = Duration::from_secs(3);
/// Time that is kept for the controller's answers, and for the end of a run without one.
const FOR_CONTROLLER: Duration = Duration::from_secs(22);
const FOR_END: Duration = Duration::from_secs(1);

pub(crate) fn run(arguments: &CheckArguments, printer: &Printer) -> Result<(), Failure> {
    let mode = match &arguments.command {
        Some(CheckCommand::Plan(plan)) => {
            if let Some(hosts) = plan.on.hosts()? {
                return on::run(&hosts, &plan.on.reach, Kind::Text, printer);
            }
            Mode::Plan
        }
        None if arguments.run.one => return order::carry_out(),
        None if arguments.run.slurm => Mode::Slurm,
        None => Mode::Plain,
    };
    if let Some(CheckCommand::Plan(plan)) = &arguments.command {
        let form = if plan.json { Form::Json } else { Form::Text };
        let run = made(&plan.place, &[], None, mode, printer)?;
        return show(&run, form, printer);
    }
    let RunArguments {
        names,
        place,
        prometheus,
        exit_code,
        ..
    } = &arguments.run;
    let form = arguments.run.form();
    let run = match made(place, names, prometheus.as_deref(), mode, printer) {
        Ok(run) => run,
        Err(failure) => return not_made(failure, form, mode, *exit_code, printer),
    };
    show(&run, form, printer)?;
    match (mode, form) {
        (Mode::Slurm, _) if !exit_code => Ok(()),
        (_, Form::Nagios) => ends_with(report::nagios_code(run.state)),
        (_, Form::Nhc) => ends_with(u8::from(run.state == State::Fail)),
        _ => ends_with(match run.state {
            State::Ok | State::Warn => 0,
            State::Fail => 1,
            State::Unknown => 3,
        }),
    }
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// To be read.
    Plain,
    /// To tell the controller.
    Slurm,
    /// To show what would be told.
    Plan,
}

fn ends_with(code: u8) -> Result<(), Failure> {
    match code {
        0 => Ok(()),
        code => Err(Failure::Inner {
            code,
            why: String::new(),
        }),
    }
}

fn show(run: &CheckRun, form: Form, printer: &Printer) -> Result<(), Failure> {
    let shown = match form {
        Form::Json => printer.json(&linerate_report::json::of_kind("check", run)),
        Form::Text => printer.print(&report::text(run, printer.style())),
        Form::Nagios => printer.print(&report::nagios(run)),
        Form::Nhc => printer.line(&report::line(run)),
    };
    Ok(shown?)
}

/// A run that could not be made: nothing is known of the node, each caller in its own words.
fn not_made(
    failure: Failure,
    form: Form,
    mode: Mode,
    exit_code: bool,
    printer: &Printer,
) -> Result<(), Failure> {
    match form {
        Form::Nagios => {
            printer.print(&report::nagios_unknown(&failure.to_string()))?;
            ends_with(report::nagios_code(State::Unknown))
        }
        // Neither may take a node out because of it.
        Form::Nhc => {
            printer.complain(&failure);
            Ok(())
        }
        _ if mode == Mode::Slurm && !exit_code => {
            printer.complain(&failure);
            Ok(())
        }
        _ => Err(failure),
    }
}

/// Writes the text file; what went wrong is a note of the run, which is shown all the same.
fn write_for_prometheus(file: &Path, run: &mut CheckRun, folders: &Folders) {
    let order = Order::Write {
        path: file.to_owned(),
        text: Some(report::prometheus(run)),
        // node_exporter runs as another user.
        mode: 0o644,
    };
    let asked = Ask {
        name: "prometheus file",
        order,
        limit: FILE_LIMIT,
    };
    if let Err(why) = done(&ask(&asked, &folders.remembered)) {
        let file = file.display();
        run.notes.push(format!("cannot write {file}: {why}").into());
    }
}

/// Makes a run.
fn made(
    place: &PlaceArguments,
    names: &[String],
    prometheus: Option<&Path>,
    mode: Mode,
    printer: &Printer,
) -> Result<CheckRun, Failure> {
    let begun = Instant::now();
    let started = UnixMillis(unix_ms());
    let folders = Folders::of(place, mode)?;
    let _turn = folders.turn()?;
    let mut notes: Vec<PlainText> = Vec::new();
    let mut settings = settings(place, &folders, &mut notes)?;
    settings.only(names).map_err(Failure::Usage)?;
    let deadline = place.deadline.unwrap_or(settings.deadline);
    if mode != Mode::Plain {
        is_enough(deadline, &settings.checks)?;
    }
    let deadline = begun + Duration::from_nanos(deadline.0);
    let mut memory = folders.memory(&mut notes);
    let outcomes = look(&settings.checks, &mut memory, &folders, mode, deadline);
    let mut run = CheckRun {
        host: host::name().into(),
        begun: started,
        state: State::of_all(outcomes.iter().map(|outcome| outcome.state)),
        outcomes,
        ..CheckRun::default()
    };
    let mut alert = false;
    if mode != Mode::Plain {
        memory.add(&run.outcomes, started);
        let mut turn = slurm::Turn::new(&settings, &folders, &mut memory, deadline);
        let told = turn.take(&run.outcomes, started, mode == Mode::Slurm);
        alert = turn.is_new_hold;
        notes.append(&mut turn.notes);
        run.controller = Some(told);
    }
    if mode != Mode::Plan {
        folders.keep(&memory, &mut notes);
    }
    run.notes = notes;
    run.took = nanos(begun.elapsed());
    run.cpu = clock::cpu_with_children();
    if let Some(file) = prometheus {
        write_for_prometheus(file, &mut run, &folders);
    }
    if alert && let Err(why) = raise(&settings, &folders, &run) {
        printer.tell(&format!("linerate: the alert was not raised: {why}"));
    }
    Ok(run)
}

/// Slurm ends a health check after 60 s, and the controller's answers take a part of the deadline: a check that is well by hand is not
/// to be cut off there.
fn is_enough(deadline: Nanos, checks: &[Check]) -> Result<(), Failure> {
    const LEAST: Nanos = Nanos::from_millis(30_000);
    const MOST: Nanos = Nanos::from_millis(55_000);
    if !(LEAST..=MOST).contains(&deadline) {
        return Err(Failure::Usage(format!(
            "with --slurm the deadline is from {LEAST} to {MOST}, and not {deadline}"
        )));
    }
    let kept = nanos(FOR_CONTROLLER);
    let left = Nanos(deadline.0.saturating_sub(kept.0));
    match checks.iter().find(|check| check.limit > left) {
        None => Ok(()),
        Some(check) => Err(Failure::Usage(format!(
            "with --slurm {kept} of the deadline are kept for the controller, and the limit of '{}' is {}: at most {left}",
            check.name, check.limit
        ))),
    }
}

/// Gives the run to the operator's program.
fn raise(settings: &Settings, folders: &Folders, run: &CheckRun) -> Result<(), String> {
    if settings.slurm.alert.is_empty() {
        return Ok(());
    }
    let order = Order::Feed {
        run: settings.slurm.alert.clone(),
        input: linerate_report::json::of_kind("check", run),
    };
    let asked = Ask {
        name: "alert",
        order,
        limit: FILE_LIMIT,
    };
    done(&ask(&asked, &folders.remembered))
}

fn nanos(time: Duration) -> Nanos {
    Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// The checks, read by a child: their file may be on a disk that hangs. Then those of the last run hold: such a node is to be found.
fn settings(
    place: &PlaceArguments,
    folders: &Folders,
    notes: &mut Vec<PlainText>,
) -> Result<Settings, Failure> {
    let path = place.config.as_deref().unwrap_or(Path::new(CONFIG));
    let order = Order::Read {
        path: path.to_owned(),
    };
    let asked = Ask {
        name: "config",
        order,
        limit: FILE_LIMIT,
    };
    match text(&ask(&asked, &folders.remembered)) {
        Ok(Some(text)) => {
            let settings = Settings::parse(&path.display().to_string(), &text)
                .map_err(|error| Failure::Usage(error.to_string()))?;
            folders.keep_settings(&settings);
            Ok(settings)
        }
        Ok(None) if place.config.is_none() => Ok(Settings::without_file()),
        Ok(None) => Err(Failure::cannot("read", path, &"there is no such file")),
        Err(why) => {
            let kept = folders.settings();
            if kept.is_some() {
                let path = path.display();
                let note =
                    format!("cannot read {path}: {why}; the checks are those of the last run");
                notes.push(note.into());
            }
            kept.ok_or_else(|| Failure::cannot("read", path, &why))
        }
    }
}

/// What a child answered that did not fail.
fn answer(reply: &Reply) -> Result<Answer, String> {
    match &reply.ended {
        Ended::By(Some(0)) => match serde_json::from_slice(&reply.out) {
            Ok(Answer::Failed(why)) => Err(why),
            Ok(answer) => Ok(answer),
            Err(error) => Err(format!("its answer is none: {error}")),
        },
        Ended::By(Some(code)) => Err(format!(
            "its process ended with {code}: {}",
            reply.error.trim()
        )),
        Ended::By(None) => Err("its process was ended by a signal".to_owned()),
        Ended::Silent(_) => Err(format!("no answer within {}", nanos(reply.took))),
        Ended::StillHangs { pid, since } => Err(format!(
            "process {pid} of an earlier run has been waiting for it for {}",
            nanos(*since)
        )),
        Ended::NotBegun(why) => Err(why.clone()),
    }
}

fn text(reply: &Reply) -> Result<Option<String>, String> {
    match answer(reply)? {
        Answer::Text(text) => Ok(text),
        _ => Err("its answer is none".to_owned()),
    }
}

fn done(reply: &Reply) -> Result<(), String> {
    answer(reply).map(drop)
}

/// Makes the checks, all at once.
fn look(
    checks: &[Check],
    memory: &mut Memory,
    folders: &Folders,
    mode: Mode,
    deadline: Instant,
) -> Vec<Outcome> {
    let left = deadline.saturating_duration_since(Instant::now());
    let kept = if mode == Mode::Plain {
        FOR_END
    } else {
        FOR_CONTROLLER
    };
    // Of a short deadline the checks have half.
    let left = left.saturating_sub(kept).max(left / 2);
    // What is ours to ask has names of its own.
    let names: Vec<String> = checks
        .iter()
        .map(|check| format!("check {}", check.name))
        .collect();
    let asks = checks.iter().zip(&names).map(|(check, name)| Ask {
        name,
        order: Order::Look {
            what: check.what.clone(),
            before: memory.before.get(&check.name).cloned(),
        },
        limit: Duration::from_nanos(check.limit.0).min(left),
    });
    let asks: Vec<Ask<'_>> = asks.collect();
    let replies = ask_all(&asks, &folders.remembered);
    let mut outcomes = Vec::new();
    for ((check, asked), reply) in checks.iter().zip(&asks).zip(&replies) {
        let (items, next) = items(check, nanos(asked.limit), reply);
        if let Some(next) = next {
            memory.before.insert(check.name.clone(), next);
        }
        outcomes.push(Outcome {
            check: check.name.as_str().into(),
            kind: check.what.kind(),
            state: judge::state(&items),
            items,
            took: nanos(reply.took),
            limit: nanos(asked.limit),
        });
    }
    outcomes
}

/// What a child found; one that gave no answer says as much of what it looked at.
fn items(check: &Check, limit: Nanos, reply: &Reply) -> (Vec<Item>, Option<serde_json::Value>) {
    let silent = |after, stuck| {
        let found = Found::NoAnswer { after, stuck };
        vec![Item::new("", judge::silence(&check.what), found)]
    };
    match &reply.ended {
        Ended::Silent(stuck) => (silent(limit, *stuck), None),
        Ended::StillHangs { pid, since } => (silent(nanos(*since), Some(*pid)), None),
        _ => match answer(reply) {
            Ok(Answer::Looked { items, next }) => (items, next),
            Ok(_) => (vec![cannot_tell("its answer is none")], None),
            Err(why) => (vec![cannot_tell(&why)], None),
        },
    }
}

fn cannot_tell(why: &str) -> Item {
    Item::new("", State::Unknown, Found::CannotTell { why: why.into() })
}
