//! `linerate mesh`: every host of a set tested against every other, in rounds in which no host has two tests.
//!
//! [`field`] reaches the hosts, [`linerate_watch::rounds`] makes the rounds, [`rounds`] runs them over
//! [`crate::between::far`], [`linerate_watch::cause`] names what is slow, and [`folder`] keeps it all.

pub(crate) mod arguments;
mod field;
pub(crate) mod figures;
mod folder;
mod measure;
mod rounds;
mod trunk;

use linerate_fleet::nodes::{NodeSet, Sources};
use linerate_model::mesh::{Mesh, MeshCause};
use linerate_report::mesh::{self as report, MeshView, Source};
use linerate_watch::cause::causes;

use crate::action::Failure;
use crate::printer::Printer;
use arguments::{MeshArguments, MeshCommand, ShowArguments};

pub(crate) fn run(arguments: &MeshArguments, printer: &Printer) -> Result<(), Failure> {
    match &arguments.command {
        Some(MeshCommand::Trunk(arguments)) => trunk::run(arguments, printer),
        Some(MeshCommand::Show(arguments)) => show(arguments, printer),
        None => measure::run(&arguments.measure, printer),
    }
}

fn show(arguments: &ShowArguments, printer: &Printer) -> Result<(), Failure> {
    if let Some(ramp) = folder::ramp(&arguments.folder)? {
        return trunk::print(&ramp, arguments.json, printer);
    }
    let mesh = folder::mesh(&arguments.folder)?;
    print(&mesh, arguments.json, printer)?;
    verdict(&mesh, &causes(&mesh))
}

/// Prints a mesh, with what is found now to be its causes.
fn print(mesh: &Mesh, json: bool, printer: &Printer) -> Result<(), Failure> {
    let causes = causes(mesh);
    viewed(mesh, &causes, |source, view| {
        if json {
            printer.json(&report::json(source, view))
        } else {
            printer.print(&report::text(view, printer.style()))
        }
    })?;
    Ok(())
}

/// Hands a mesh's view on.
fn viewed<T>(
    mesh: &Mesh,
    causes: &[MeshCause],
    with: impl FnOnce(&Source<'_>, &MeshView) -> T,
) -> T {
    let source = Source {
        mesh,
        causes,
        fold: &folded,
    };
    let view = MeshView::of(&source);
    with(&source, &view)
}

/// Names of hosts as one set.
fn folded(names: &[&str]) -> String {
    NodeSet::read(&names.join(","), &Sources::none())
        .map_or_else(|_| names.join(","), |set| set.to_string())
}

/// What the exit code says of a mesh: hosts that could not be reached or tests without a result come first, then causes.
fn verdict(mesh: &Mesh, causes: &[MeshCause]) -> Result<(), Failure> {
    let missing = figures::unmeasured(mesh);
    if missing > 0 {
        return Err(Failure::Incomplete(format!(
            "{missing} of {} pairs have no result; the report says why, and the same command with --resume and -o FOLDER tries \
             them again",
            figures::pairs(mesh)
        )));
    }
    if !causes.is_empty() {
        return Err(Failure::Missed(
            "some hosts, links or groups are slower than the rest; the report names them"
                .to_owned(),
        ));
    }
    let below = viewed(mesh, causes, |_, view| view.below_expected());
    if mesh.expected_bps.is_some() && below > 0 {
        return Err(Failure::Missed(format!(
            "{below} of {} pairs reach less than 90 % of the expected rate",
            figures::pairs(mesh)
        )));
    }
    Ok(())
}
