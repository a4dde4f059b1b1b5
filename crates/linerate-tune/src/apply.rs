//! Making the changes of a plan: the old values on disk first, the rollback armed outside the process before the
//! first change, every value read back, what worked before asked again; on any failure all goes back.

use linerate_model::audit::Risk;
use linerate_model::change_set::Probe;
use linerate_model::tuning::{Step, TuningPlan};
use linerate_model::units::Nanos;

use crate::journal::{Change, ChangeSet, Entry, Rollback, SCHEMA_VERSION, Snapshot};
use crate::restore::{Drifted, restore};
use crate::settings::{SettingError, Settings};

/// Where entries are kept.
pub trait Journal {
    /// Adds an entry. It is on disk when this returns.
    ///
    /// # Errors
    /// Why it is not, with the file's name.
    fn append(&mut self, entry: &Entry) -> Result<(), String>;
}

/// What an apply needs of the world around the settings.
pub trait Surroundings: Journal {
    /// Starts what rolls the set back at its deadline, outside this process. It waits when this returns.
    ///
    /// # Errors
    /// Why nothing waits.
    fn arm(&mut self, snapshot: &Snapshot) -> Result<Rollback, String>;

    /// Asks whether what worked before the changes works now. It is bounded in time.
    fn probe(&mut self) -> Vec<Probe>;

    /// The monotonic clock.
    fn now(&mut self) -> Nanos;

    /// Whether somebody asks to stop.
    fn stopped(&mut self) -> bool;
}

/// What the caller of an apply allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    /// The greatest risk that a step may have.
    pub risk: Risk,
    /// Programs whose settings may be changed under them, by name.
    pub over: Vec<String>,
}

/// Why a plan is not applied, as a sentence each with what to do; empty where it may be.
pub fn objections(plan: &TuningPlan, permissions: &Permissions) -> Vec<String> {
    let refused = plan.refused.iter().map(|refusal| {
        format!(
            "{} = {} ({}) cannot be done: {}",
            refusal.object, refusal.wanted, refusal.from, refusal.why
        )
    });
    let risky = plan
        .steps
        .iter()
        .filter(|step| step.risk > permissions.risk);
    let risky = risky.map(|step| {
        let word = step.risk.words().replace(' ', "-");
        format!(
            "{} = {} may cost a {}: --allow {word} allows it",
            step.object,
            step.wanted,
            step.risk.words()
        )
    });
    let owned = plan.steps.iter().flat_map(|step| {
        let programs = step.programs.iter();
        let others = programs.filter(|program| !permissions.over.contains(program));
        others.map(|owner| {
            format!(
                "{owner} runs and sets {} too: change it there, or --over {owner} changes it under it",
                step.object
            )
        })
    });
    refused.chain(risky).chain(owned).collect()
}

/// What is to be applied.
#[derive(Debug, Clone)]
pub struct Order<'a> {
    /// The set's name.
    pub id: &'a str,
    /// `/proc/sys/kernel/random/boot_id` of the boot whose settings these are.
    pub boot_id: &'a str,
    /// The network namespace.
    pub network: Option<u64>,
    /// The folder that stands for `/`.
    pub root: Option<&'a str>,
    /// The wall clock, s since 1970: a label.
    pub now_unix_s: u64,
    /// Time to confirm, from now on.
    pub confirm_within: Nanos,
    /// The changes.
    pub steps: &'a [Step],
}

/// Why changes were not made, or were taken back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// An old value cannot be saved, so that it could not be restored either.
    #[error("{0}; what cannot be saved is not changed")]
    Save(SettingError),
    /// The old values are not on disk.
    #[error("the old values cannot be kept: {0}")]
    Snapshot(String),
    /// Nothing would roll back.
    #[error("the rollback cannot be armed: {0}")]
    Arm(String),
    /// What is about to happen cannot be written down.
    #[error("the journal cannot be written: {0}")]
    Journal(String),
    /// The kernel or the driver refuses.
    #[error("{0}")]
    Refused(SettingError),
    /// It was taken, and something else is there.
    #[error(
        "{object} was set to {wanted} and reads {read}: the kernel or the driver rounded or ignored it"
    )]
    NotTaken {
        /// What.
        object: String,
        /// The value set.
        wanted: String,
        /// The value read.
        read: String,
    },
    /// It was there, and a later change undid it.
    #[error("{object} was {wanted} after it was set and reads {read} after the last change")]
    Undone {
        /// What.
        object: String,
        /// The value set.
        wanted: String,
        /// The value read.
        read: String,
    },
    /// The time to confirm ended before the last change.
    #[error(
        "the time to confirm ended before all changes were made; --confirm-within takes a longer one"
    )]
    Late,
    /// Somebody asked to stop.
    #[error("stopped by a signal")]
    Stopped,
    /// What worked before does not any more.
    #[error("{}", .0.join("; "))]
    Lost(Vec<String>),
}

/// How an apply ended badly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Why.
    pub cause: Cause,
    /// The set with what became of each old value; `None` where nothing had been changed.
    pub set: Option<Box<ChangeSet>>,
    /// Why the journal does not tell all of it; `None` where it does.
    pub unwritten: Option<String>,
}

/// Takes the old values of everything that will change.
///
/// # Errors
/// The first that cannot be saved. Nothing is changed.
pub fn snapshot(
    order: &Order<'_>,
    settings: &mut dyn Settings,
    now: Nanos,
) -> Result<Snapshot, Cause> {
    let change = |step: &Step| {
        Ok(Change {
            saved: settings.save(&step.object).map_err(Cause::Save)?,
            step: step.clone(),
        })
    };
    Ok(Snapshot {
        schema_version: SCHEMA_VERSION,
        id: order.id.to_owned(),
        boot_id: order.boot_id.to_owned(),
        network: order.network,
        root: order.root.map(str::to_owned),
        taken_unix_s: order.now_unix_s,
        deadline: Nanos(now.0.saturating_add(order.confirm_within.0)),
        changes: order.steps.iter().map(change).collect::<Result<_, _>>()?,
    })
}

/// Makes the changes of a snapshot that is in the journal already. The set that comes back is applied and waits to be
/// confirmed.
///
/// # Errors
/// Why not; all that was changed was restored as far as it could be.
pub fn apply(
    snapshot: Snapshot,
    settings: &mut dyn Settings,
    around: &mut dyn Surroundings,
) -> Result<(ChangeSet, Vec<Probe>), Box<Failed>> {
    let mut set = ChangeSet::new(snapshot);
    let outcome = make(&mut set, settings, around);
    let cause = match outcome {
        Ok(probes) => return Ok((set, probes)),
        Err(cause) => cause,
    };
    if !set.fates.iter().any(|fate| fate.begun) {
        let why = format!("nothing had been changed: {cause}");
        let unwritten = note(&mut set, around, &Entry::Ended { why }).err();
        return Err(Box::new(Failed {
            cause,
            set: None,
            unwritten,
        }));
    }
    let unwritten = restore(
        &mut set,
        &cause.to_string(),
        Drifted::Overwrite,
        settings,
        around,
    );
    Err(Box::new(Failed {
        cause,
        set: Some(Box::new(set)),
        unwritten,
    }))
}

fn make(
    set: &mut ChangeSet,
    settings: &mut dyn Settings,
    around: &mut dyn Surroundings,
) -> Result<Vec<Probe>, Cause> {
    let write = Cause::Journal;
    let rollback = around.arm(&set.snapshot).map_err(Cause::Arm)?;
    note(set, around, &Entry::Armed { rollback }).map_err(write)?;
    for step in 0..set.snapshot.changes.len() {
        may_go_on(set, around)?;
        note(set, around, &Entry::Applying { step }).map_err(write)?;
        let read = change(set, step, settings)?;
        note(set, around, &Entry::Applied { step, read }).map_err(write)?;
    }
    undone(set, settings)?;
    let probes = around.probe();
    let lost: Vec<String> = probes
        .iter()
        .filter(|probe| probe.holds == Some(false))
        .map(|probe| format!("{}: {}", probe.what, probe.seen))
        .collect();
    if !lost.is_empty() {
        return Err(Cause::Lost(lost));
    }
    may_go_on(set, around)?;
    note(set, around, &Entry::Complete).map_err(write)?;
    Ok(probes)
}

/// The process that rolls back at the deadline must not be overtaken.
fn may_go_on(set: &ChangeSet, around: &mut dyn Surroundings) -> Result<(), Cause> {
    if around.stopped() {
        return Err(Cause::Stopped);
    }
    if around.now() >= set.snapshot.deadline {
        return Err(Cause::Late);
    }
    Ok(())
}

/// Makes one change and reads it back.
fn change(set: &ChangeSet, step: usize, settings: &mut dyn Settings) -> Result<String, Cause> {
    let Step { object, wanted, .. } = &set.snapshot.changes[step].step;
    settings.write(object, wanted).map_err(Cause::Refused)?;
    let read = settings.read(object).map_err(Cause::Refused)?;
    if same(&read, wanted) {
        return Ok(read);
    }
    Err(Cause::NotTaken {
        object: object.to_string(),
        wanted: wanted.clone(),
        read,
    })
}

/// A driver that makes its rings anew may forget what was set before.
fn undone(set: &ChangeSet, settings: &mut dyn Settings) -> Result<(), Cause> {
    for change in &set.snapshot.changes {
        let Step { object, wanted, .. } = &change.step;
        let read = settings.read(object).map_err(Cause::Refused)?;
        if !same(&read, wanted) {
            return Err(Cause::Undone {
                object: object.to_string(),
                wanted: wanted.clone(),
                read,
            });
        }
    }
    Ok(())
}

fn note(
    set: &mut ChangeSet,
    journal: &mut (impl Journal + ?Sized),
    entry: &Entry,
) -> Result<(), String> {
    journal.append(entry)?;
    // Steps are this set's own.
    let _ = set.follow(entry);
    Ok(())
}

/// Whether two texts are one value: the kernel separates numbers by tabs.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}
