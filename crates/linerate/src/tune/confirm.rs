//! `linerate tune confirm`: what was applied stays.

use linerate_model::change_set::SetState;
use linerate_tune::apply::Journal;
use linerate_tune::journal::{ChangeSet, Entry};
use linerate_tune::state_folder::JournalFile;

use super::arguments::SetArguments;
use super::place::{Place, now, unix_s};
use super::{arming, print_set};
use crate::action::Failure;
use crate::printer::Printer;

pub(super) fn run(arguments: &SetArguments, printer: &Printer) -> Result<(), Failure> {
    let place = Place::of(&arguments.place)?;
    let _lock = place.state.lock()?;
    let mut set = match &arguments.id {
        Some(id) => place.state.read(id)?,
        None => place
            .sets()?
            .into_iter()
            .rfind(|set| set.state.is_pending())
            .ok_or_else(|| Failure::Refused("nothing is waiting for confirmation".to_owned()))?,
    };
    if let Some(why) = place.stranger(&set) {
        return Err(Failure::Refused(why));
    }
    may_be_confirmed(&set, &place)?;
    if !arguments.dry_run {
        let mut journal = place.state.append(&set.snapshot.id)?;
        confirm(&mut set, &mut journal)?;
    }
    Ok(print_set(&set, arguments.json, printer)?)
}

fn may_be_confirmed(set: &ChangeSet, place: &Place) -> Result<(), Failure> {
    let id = &set.snapshot.id;
    let why = match set.state {
        SetState::Applied if !set.is_of_boot(&place.boot_id) => {
            "the machine started again since, and its values went with the boot".to_owned()
        }
        SetState::Applied if set.left(now()).0 == 0 => {
            "its time to confirm is over, and it is about to be rolled back".to_owned()
        }
        SetState::Applied => return Ok(()),
        state => format!("it is {}", state.words()),
    };
    Err(Failure::Refused(format!("{id} cannot be confirmed: {why}")))
}

/// Writes down that it stays, then calls the rollback off.
pub(super) fn confirm(set: &mut ChangeSet, journal: &mut JournalFile) -> Result<(), Failure> {
    let entry = Entry::Confirmed {
        at_unix_s: unix_s(),
    };
    journal.append(&entry).map_err(|why| {
        Failure::File(format!(
            "{why}; it is not confirmed, and will be rolled back"
        ))
    })?;
    arming::call_off(set.rollback.as_ref());
    // A confirmation names no step.
    let _ = set.follow(&entry);
    Ok(())
}
