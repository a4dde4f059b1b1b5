//! `linerate tune`: what would be changed on a host, the change with a way back, and what became of it.

mod apply;
pub(crate) mod arguments;
mod arming;
mod confirm;
mod interfaces;
mod persist;
mod place;
mod probes;
mod revert;
mod roll_out;
mod status;
mod verify;

pub(crate) use arguments::PlaceArguments;
pub(crate) use verify::verification;

use std::path::Path;

use linerate_kernel::inventory::Root;
use linerate_model::tuning::TuningPlan;
use linerate_report::host as report;
use linerate_tune::journal::ChangeSet;
use linerate_tune::plan::{plan, wishes_of};
use linerate_tune::profile::{self, Wish};
use linerate_tune::state_folder::Lock;

use crate::action::Failure;
use crate::host::{facts_below, files_below, read};
use crate::input;
use crate::on::{self, Kind};
use crate::printer::Printer;
use arguments::{PlanArguments, TuneArguments, TuneCommand, WishArguments};

pub(crate) fn run(arguments: TuneArguments, printer: &Printer) -> Result<(), Failure> {
    let on = match &arguments.command {
        TuneCommand::Plan(arguments) => Some(&arguments.on),
        TuneCommand::Confirm(arguments) => Some(&arguments.on),
        TuneCommand::Revert(arguments) => Some(&arguments.on),
        TuneCommand::Status(arguments) | TuneCommand::Verify(arguments) => Some(&arguments.on),
        TuneCommand::Persist(arguments) => Some(&arguments.on),
        // A roll-out is more than a command on each host.
        TuneCommand::Apply(_)
        | TuneCommand::Rollback(_)
        | TuneCommand::Recover(_)
        | TuneCommand::Interfaces(_) => None,
    };
    if let Some(on) = on
        && let Some(hosts) = on.hosts()?
    {
        return on::run(&hosts, &on.reach, Kind::Text, printer);
    }
    match arguments.command {
        TuneCommand::Plan(arguments) => show_plan(&arguments, printer),
        TuneCommand::Apply(arguments) => apply::run(&arguments, printer),
        TuneCommand::Confirm(arguments) => confirm::run(&arguments, printer),
        TuneCommand::Revert(arguments) => revert::run(&arguments, printer),
        TuneCommand::Status(arguments) => status::run(&arguments, printer),
        TuneCommand::Verify(arguments) => verify::run(&arguments, printer),
        TuneCommand::Persist(arguments) => persist::run(&arguments, printer),
        TuneCommand::Rollback(arguments) => revert::roll_back(&arguments, printer),
        TuneCommand::Recover(arguments) => revert::recover(&arguments, printer),
        TuneCommand::Interfaces(arguments) => interfaces::run(&arguments, printer),
    }
}

fn show_plan(arguments: &PlanArguments, printer: &Printer) -> Result<(), Failure> {
    let (plan, _) = plan_for(&arguments.wishes, &files_below(arguments.root.as_deref())?)?;
    print_plan(&plan, arguments.json, printer)?;
    if plan.refused.is_empty() {
        Ok(())
    } else {
        // The plan has said what cannot be done.
        Err(Failure::Said)
    }
}

fn print_plan(plan: &TuningPlan, json: bool, printer: &Printer) -> std::io::Result<()> {
    printer.outcome(json, ("tune_plan", plan), || report::plan_report(plan))
}

/// Prints what became of a set.
fn print_set(set: &ChangeSet, json: bool, printer: &Printer) -> std::io::Result<()> {
    let view = set.view(place::now());
    if json {
        return printer.json(&report::set_document(&view, &[]));
    }
    printer.print(&report::set_report(&view, &[]))
}

/// The plan for what is wished and the wishes, on this host, below a folder, or for facts in a file.
fn plan_for(arguments: &WishArguments, root: &Root) -> Result<(TuningPlan, Vec<Wish>), Failure> {
    let facts = match &arguments.from {
        Some(file) => read(file)?,
        None => facts_below(root),
    };
    let mut wishes = Vec::new();
    if arguments.profiles.is_empty() {
        let audit =
            linerate_tune::audit(&facts, None, &arguments.target()).map_err(Failure::Usage)?;
        wishes.extend(wishes_of(&audit));
    }
    for file in &arguments.profiles {
        wishes.extend(wishes_in(file)?);
    }
    Ok((plan(&facts, &wishes), wishes))
}

/// The right to change this machine's settings, as `tune apply` takes it; `state` is where old values are kept, where
/// that is another folder than the default.
pub(crate) fn claim(state: Option<&Path>) -> Result<Lock, Failure> {
    let arguments = PlaceArguments {
        root: None,
        state: state.map(Path::to_owned),
    };
    place::Place::of(&arguments)?.claim()
}

/// The wishes of a profile: TOML, or lines of sysctl.conf(5) where the name ends in `.conf`.
pub(crate) fn wishes_in(file: &Path) -> Result<Vec<Wish>, Failure> {
    let name = file.display().to_string();
    let text = input::text(file, input::WRITTEN)?;
    profile::read(&name, &text).map_err(|error| Failure::File(error.to_string()))
}
