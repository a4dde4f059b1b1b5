//! `linerate tune revert`, `rollback` and `recover`: old values back, by a user, by a timer, at boot.

use std::time::Duration;

use linerate_kernel::thread::block_signals;
use linerate_model::change_set::SetState;
use linerate_tune::apply::Journal;
use linerate_tune::journal::{ChangeSet, Entry};
use linerate_tune::restore::{Drifted, restore, still_running};
use linerate_tune::state_folder::Lock;

use super::arguments::{RevertArguments, RollbackArguments, ShowArguments};
use super::place::{Place, now};
use super::{arming, persist, print_set};
use crate::action::Failure;
use crate::printer::Printer;

/// So often the one that waits looks whether there is still something to wait for.
const LOOK: Duration = Duration::from_millis(200);
/// So long a rollback waits for the process that applies; a process that holds the lock then hangs in a driver.
const LOCK_TRIES: u32 = 50;
/// SIGHUP, SIGINT, SIGTERM: what ends a session ends no rollback.
const NOT_HEARD: [i32; 3] = [1, 2, 15];

pub(super) fn run(arguments: &RevertArguments, printer: &Printer) -> Result<(), Failure> {
    let place = Place::of(&arguments.place)?;
    let _lock = place.state.lock()?;
    let mut set = match &arguments.id {
        Some(id) => place.state.read(id)?,
        None => last(&place)?,
    };
    if let Some(why) = place.stranger(&set) {
        return Err(Failure::Refused(why));
    }
    let has_files = !set.files.is_empty();
    if matches!(set.state, SetState::Reverted | SetState::Ended) && !has_files {
        let (id, words) = (&set.snapshot.id, set.state.words());
        return Err(Failure::Refused(format!("{id} is {words} already")));
    }
    let may_be_kept = may_be_kept(&set);
    if arguments.dry_run {
        return foresee(&set, may_be_kept, &place, printer);
    }
    if may_be_kept && !arguments.force {
        // What is wrong with another set's journal is reported when the values are back.
        for one in place.own_sets().unwrap_or_default() {
            persist::refuse_changed(&place, &one)?;
        }
    }
    let drifted = if arguments.force {
        Drifted::Overwrite
    } else if set.state.is_pending() {
        Drifted::unasked(&set)
    } else {
        Drifted::Leave
    };
    put_back(&place, &mut set, "requested", drifted, printer)?;
    // What runs is back first: a folder that cannot be written keeps only files.
    let files = if may_be_kept {
        persist::write_without(&place, &mut set, printer)
    } else {
        Ok(())
    };
    let shown = show(&set, arguments.json, printer).and_then(|()| refuse_running(&set, &place));
    match files {
        Ok(()) => shown,
        Err(failure) => Err(not_rewritten(&set, &failure, shown)),
    }
}

/// What was never confirmed is in no file; what was may be in another set's.
fn may_be_kept(set: &ChangeSet) -> bool {
    !set.files.is_empty() || set.was_confirmed
}

fn not_rewritten(set: &ChangeSet, failure: &Failure, shown: Result<(), Failure>) -> Failure {
    let id = &set.snapshot.id;
    let values = shown
        .err()
        .map(|failure| format!("{failure}; "))
        .unwrap_or_default();
    Failure::NotBack(format!(
        "{values}the files that keep settings over a boot were not rewritten without {id}: {failure}; when that is \
         fixed, linerate tune persist writes them, and linerate tune persist --remove removes them"
    ))
}

/// The last set that is not reverted.
fn last(place: &Place) -> Result<ChangeSet, Failure> {
    let open = |set: &ChangeSet| {
        let ended = matches!(set.state, SetState::Reverted | SetState::Ended);
        !ended && place.stranger(set).is_none()
    };
    place
        .sets()?
        .into_iter()
        .rfind(open)
        .ok_or_else(|| Failure::Refused("there is nothing to revert".to_owned()))
}

fn foresee(
    set: &ChangeSet,
    may_be_kept: bool,
    place: &Place,
    printer: &Printer,
) -> Result<(), Failure> {
    let mut settings = place.settings();
    for step in set.begun() {
        let change = &set.snapshot.changes[step];
        let object = &change.step.object;
        let now = settings.read(object);
        let now = now.unwrap_or_else(|error| error.to_string());
        printer.line(&format!("{object} = {} (now: {now})", change.saved.value))?;
    }
    if !may_be_kept {
        return Ok(());
    }
    let others =
        |one: &ChangeSet| one.snapshot.id != set.snapshot.id && one.state == SetState::Confirmed;
    let sets = place.own_sets()?;
    let done = if sets.iter().any(others) {
        "written again without it"
    } else {
        "removed"
    };
    for file in sets.iter().flat_map(|set| &set.files) {
        printer.line(&format!("{} would be {done}", file.path))?;
    }
    Ok(())
}

/// A journal that cannot be written, and why: that keeps no old value from being restored.
struct Unwritten(String);

impl Journal for Unwritten {
    fn append(&mut self, _: &Entry) -> Result<(), String> {
        Err(self.0.clone())
    }
}

/// Restores, writes down what came of it, and calls off what waits.
fn put_back(
    place: &Place,
    set: &mut ChangeSet,
    why: &str,
    drifted: Drifted,
    printer: &Printer,
) -> Result<(), Failure> {
    let mut journal: Box<dyn Journal> = match place.state.append(&set.snapshot.id) {
        Ok(journal) => Box::new(journal),
        Err(error) => Box::new(Unwritten(error.to_string())),
    };
    if !set.is_of_boot(&place.boot_id) {
        let why = "the machine started again since: values that ran went with the boot";
        let entry = Entry::Ended {
            why: why.to_owned(),
        };
        journal.append(&entry).map_err(Failure::File)?;
        // It names no step.
        let _ = set.follow(&entry);
        return Ok(());
    }
    let unwritten = restore(set, why, drifted, &mut *place.settings(), &mut *journal);
    arming::call_off(set.rollback.as_ref());
    if let Some(why) = unwritten {
        printer.tell(&format!("linerate: the journal is incomplete: {why}"));
    }
    Ok(())
}

/// Whatever ran in an earlier boot: files may have set it again in this one.
fn refuse_running(set: &ChangeSet, place: &Place) -> Result<(), Failure> {
    if set.is_of_boot(&place.boot_id) {
        return Ok(());
    }
    let running = still_running(set, &mut *place.settings());
    if running.is_empty() {
        return Ok(());
    }
    let running: Vec<String> = running
        .iter()
        .map(|(object, now)| format!("{object} = {now}"))
        .collect();
    Err(Failure::NotBack(format!(
        "{} is of an earlier boot, and of its values these run in this one too, because a file or a program set them: \
         {}; they run until the next boot, or until the old values above are set by hand",
        set.snapshot.id,
        running.join(", ")
    )))
}

fn show(set: &ChangeSet, json: bool, printer: &Printer) -> Result<(), Failure> {
    print_set(set, json, printer)?;
    match set.state {
        SetState::Reverted | SetState::Ended => Ok(()),
        _ => Err(Failure::NotBack(format!(
            "not all old values of {} are restored; --force also restores what something else has changed",
            set.snapshot.id
        ))),
    }
}

/// What the timer runs, and the process that waits.
pub(super) fn roll_back(arguments: &RollbackArguments, printer: &Printer) -> Result<(), Failure> {
    let place = Place::of(&arguments.place)?;
    // The process that armed it may be gone before it speaks.
    drop(linerate_kernel::thread::ignore_sigpipe());
    block_signals(&NOT_HEARD)
        .map_err(|error| Failure::File(format!("taking over the signals: {error}")))?;
    place.state.read(&arguments.id)?;
    if arguments.wait {
        printer.line(arming::WAITS)?;
        wait(&place, &arguments.id)?;
    }
    let lock = lock_in_time(&place);
    let mut set = place.state.read(&arguments.id)?;
    if !is_waiting(set.state) {
        return Ok(());
    }
    if let Some(why) = place.stranger(&set) {
        return Err(Failure::Refused(why));
    }
    let why = match (&lock, set.left(now()).0) {
        (None, _) => "it was not confirmed in time, and the applying process hangs",
        (Some(_), 0) => "it was not confirmed in time",
        (Some(_), _) => "requested",
    };
    let drifted = Drifted::unasked(&set);
    put_back(&place, &mut set, why, drifted, printer)?;
    match set.state {
        SetState::Reverted | SetState::Ended => Ok(()),
        _ => Err(Failure::NotBack(format!(
            "not all old values of {} are back",
            set.snapshot.id
        ))),
    }
}

/// Until its time to confirm is over, or nothing is left to wait for.
fn wait(place: &Place, id: &str) -> Result<(), Failure> {
    let deadline = place.state.read(id)?.snapshot.deadline;
    // Its deadline bounds the wait: an hour at most.
    loop {
        let left = deadline.0.saturating_sub(now().0);
        // A journal that cannot be read now may be at the deadline; nobody else would roll back.
        let waits = place
            .state
            .read(id)
            .map_or(true, |set| is_waiting(set.state));
        if left == 0 || !waits {
            return Ok(());
        }
        std::thread::sleep(LOOK.min(Duration::from_nanos(left)));
    }
}

/// Whether there may be something to roll back.
fn is_waiting(state: SetState) -> bool {
    state.is_pending() || state == SetState::Prepared
}

fn lock_in_time(place: &Place) -> Option<Lock> {
    for _ in 0..LOCK_TRIES {
        if let Ok(lock) = place.state.lock() {
            return Some(lock);
        }
        std::thread::sleep(LOOK);
    }
    None
}

/// At boot, and whenever somebody wants to be sure: reverts what was never confirmed and has nothing that waits.
pub(super) fn recover(arguments: &ShowArguments, printer: &Printer) -> Result<(), Failure> {
    let place = Place::of(&arguments.place)?;
    if place.state.ids()?.is_empty() {
        return Ok(());
    }
    let _lock = place.state.lock()?;
    let mut bad = Vec::new();
    for id in place.state.ids()? {
        match recover_one(&place, &id, printer) {
            Ok(None) => {}
            Ok(Some(told)) => printer.line(&told)?,
            // One damaged journal must not keep the others from being recovered.
            Err(failure) => bad.push(failure.to_string()),
        }
    }
    if bad.is_empty() {
        return Ok(());
    }
    Err(Failure::NotBack(bad.join("\n")))
}

fn recover_one(place: &Place, id: &str, printer: &Printer) -> Result<Option<String>, Failure> {
    let mut set = place.state.read(id)?;
    if set.snapshot.root != place.root_text() {
        return Ok(None);
    }
    // Files that were being written when the power went are as they were before, or they are whole.
    let half = !set.files_are_whole;
    let reverts = set.state == SetState::RollingBack && may_be_kept(&set);
    let values = recover_values(place, &mut set, printer);
    if half {
        persist::finish_half(place, &mut set)?;
    }
    // The files are part of a revert that was cut short.
    if reverts
        && set.state != SetState::RollingBack
        && let Err(failure) = persist::write_without(place, &mut set, printer)
    {
        return Err(not_rewritten(&set, &failure, values.map(drop)));
    }
    let told = half.then(|| format!("{id}: files that were half written are as they were before"));
    Ok(values?.or(told))
}

/// Restores what was never confirmed and has nothing that waits.
fn recover_values(
    place: &Place,
    set: &mut ChangeSet,
    printer: &Printer,
) -> Result<Option<String>, Failure> {
    let waits = is_waiting(set.state);
    let armed = set.rollback.as_ref().is_some_and(arming::waits) && set.left(now()).0 > 0;
    if !waits || (armed && set.is_of_boot(&place.boot_id)) {
        return Ok(None);
    }
    if let Some(why) = place.stranger(set) {
        return Err(Failure::Refused(why));
    }
    let drifted = Drifted::unasked(set);
    let why = match drifted {
        Drifted::Leave => "a revert was cut short",
        Drifted::Overwrite => "it was not confirmed, and nothing was waiting to roll it back",
    };
    put_back(place, set, why, drifted, printer)?;
    let id = &set.snapshot.id;
    match set.state {
        SetState::Unfinished => Err(Failure::NotBack(format!(
            "not all old values of {id} are back: linerate tune status names them"
        ))),
        state => Ok(Some(format!("{id}: {}", state.words()))),
    }
}
