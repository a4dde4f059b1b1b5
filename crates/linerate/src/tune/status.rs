//! `linerate tune status`.

use linerate_model::change_set::SetView;
use linerate_report::host as report;

use super::arguments::ShowArguments;
use super::arming;
use super::place::{Place, now};
use crate::action::Failure;
use crate::printer::Printer;

pub(super) fn run(arguments: &ShowArguments, printer: &Printer) -> Result<(), Failure> {
    let place = Place::of(&arguments.place)?;
    let (mut views, mut bad): (Vec<SetView>, Vec<String>) = (Vec::new(), Vec::new());
    for id in place.state.ids()? {
        match place.state.read(&id) {
            Err(error) => bad.push(error.to_string()),
            Ok(set) => {
                let mut view = set.view(now());
                let waits = set.rollback.as_ref().is_some_and(arming::waits);
                if set.is_of_boot(&place.boot_id) && set.state.is_pending() && !waits {
                    "no rollback is pending: linerate tune recover does it now"
                        .clone_into(&mut view.note);
                }
                if !set.is_of_boot(&place.boot_id) {
                    // A deadline on another boot's clock says nothing, and what ran ended with it.
                    view.confirm_left_ns = None;
                    view.rollback.clear();
                    if view.note.is_empty() {
                        "of an earlier boot: what ran went with it".clone_into(&mut view.note);
                    }
                }
                views.push(view);
            }
        }
    }
    if arguments.json {
        printer.json(&report::sets_document(&views))?;
    } else {
        printer.print(&report::sets_report(&views))?;
    }
    if bad.is_empty() {
        return Ok(());
    }
    Err(Failure::File(bad.join("\n")))
}
