//! Putting old values back: the last change first, each read back, and what cannot be put back named.

use linerate_model::change_set::{Restored, SetState};
use linerate_model::tuning::{BlockSetting, Object};

use crate::apply::{Journal, same};
use crate::journal::{Change, ChangeSet, Entry};
use crate::settings::Settings;

/// What becomes of values that something else has changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drifted {
    /// They are restored like all others, and named: a rollback, or a revert that was told to.
    Overwrite,
    /// They stay, and are named.
    Leave,
}

impl Drifted {
    /// What becomes of them where nobody is asked: a revert that was begun and cut short is finished as it was begun.
    pub fn unasked(set: &ChangeSet) -> Self {
        if set.leaves_drifted {
            Self::Leave
        } else {
            Self::Overwrite
        }
    }
}

/// Restores what a set changed. All that can be restored is, whatever fails on the way: the journal too may fail, and
/// is said to have. It may be begun again after it was cut short.
///
/// Gives back what kept the journal from being written, where something did.
pub fn restore(
    set: &mut ChangeSet,
    why: &str,
    drifted: Drifted,
    settings: &mut dyn Settings,
    journal: &mut dyn Journal,
) -> Option<String> {
    let resumed = set.state == SetState::RollingBack;
    let mut unwritten = None;
    let mut note = |set: &mut ChangeSet, entry: Entry| {
        if let Err(error) = journal.append(&entry) {
            unwritten.get_or_insert(error);
        }
        // Steps are this set's own.
        let _ = set.follow(&entry);
    };
    note(
        set,
        Entry::RollingBack {
            why: why.to_owned(),
            leaves_drifted: drifted == Drifted::Leave,
        },
    );
    let due = set.to_restore();
    for &step in &due {
        let outcome = restore_one(set, step, drifted, settings, &mut note);
        note(set, Entry::Restored { step, outcome });
    }
    // What stood in the way of one may be gone now, and restoring one may have upset another, also one that was back
    // before this was cut short. What an earlier restore that came to its end brought back and somebody has set since
    // is theirs.
    let mut again = set.begun();
    again.retain(|step| drifted == Drifted::Overwrite || resumed || due.contains(step));
    for step in again {
        let outcome = match &set.fates[step].restored {
            Some(Restored::LeftAlone { .. }) => continue,
            before if is_back(&set.snapshot.changes[step], settings) => match before {
                Some(Restored::Failed { .. }) => Restored::Restored,
                _ => continue,
            },
            _ => restore_one(set, step, Drifted::Overwrite, settings, &mut note),
        };
        note(set, Entry::Restored { step, outcome });
    }
    note(set, Entry::RolledBack);
    debug_assert!(matches!(
        set.state,
        SetState::Reverted | SetState::Unfinished
    ));
    unwritten
}

/// Values of a set of an earlier boot that run in this one: a file, or a program, sets them again.
pub fn still_running(set: &ChangeSet, settings: &mut dyn Settings) -> Vec<(Object, String)> {
    let running = |step: usize| {
        let change = &set.snapshot.changes[step];
        let ours = set.fates[step].read.as_deref()?;
        let found = settings.read(&change.step.object).ok()?;
        (same(&found, ours) && !same(&found, &change.saved.value))
            .then(|| (change.step.object.clone(), found))
    };
    set.begun().into_iter().rev().filter_map(running).collect()
}

/// Whether an old value is there after all were written. What is set queue by queue is made anew with the queues, and
/// its options with it, which its value does not tell.
fn is_back(change: &Change, settings: &mut dyn Settings) -> bool {
    let object = &change.step.object;
    match object {
        // A scheduler that is set again brings other limits of its queue.
        Object::Block {
            setting: BlockSetting::Scheduler,
            ..
        } => settings
            .save(object)
            .is_ok_and(|found| found == change.saved),
        Object::Interface { setting, .. } if setting.is_per_queue() => settings
            .save(object)
            .is_ok_and(|found| found == change.saved),
        _ => settings
            .read(object)
            .is_ok_and(|read| same(&read, &change.saved.value)),
    }
}

fn restore_one(
    set: &mut ChangeSet,
    step: usize,
    drifted: Drifted,
    settings: &mut dyn Settings,
    note: &mut dyn FnMut(&mut ChangeSet, Entry),
) -> Restored {
    let change = set.snapshot.changes[step].clone();
    let object = &change.step.object;
    let found = settings.save(object);
    if found.as_ref().is_ok_and(|found| *found == change.saved) {
        return Restored::AlreadySo;
    }
    // Where nothing was read after the change, or writing the old value was begun, it was cut short: whatever is there
    // is ours.
    let fate = &set.fates[step];
    let ours = fate.read.clone().filter(|_| !fate.restoring);
    let other = found.ok().map(|found| found.value).filter(|found| {
        let ours = ours.as_deref();
        ours.is_some_and(|ours| !same(ours, found)) && !same(found, &change.saved.value)
    });
    if let (Some(found), Drifted::Leave) = (&other, drifted) {
        return Restored::LeftAlone {
            found: found.clone(),
        };
    }
    note(set, Entry::Restoring { step });
    let failed = |reason: String| Restored::Failed { reason };
    if let Err(error) = settings.restore(object, &change.saved) {
        return failed(error.to_string());
    }
    match settings.read(object) {
        Err(error) => failed(error.to_string()),
        Ok(read) if !same(&read, &change.saved.value) => failed(format!(
            "{object} was set to {} and reads {read}",
            change.saved.value
        )),
        Ok(_) => match other {
            Some(found) => Restored::Overwrote { found },
            None => Restored::Restored,
        },
    }
}
