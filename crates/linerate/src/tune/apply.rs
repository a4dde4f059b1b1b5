//! `linerate tune apply`: refuses what it must, keeps the old values, arms the rollback, makes the changes, asks
//! whether what worked before works.

use linerate_experiment::prove::{Pairs, Question, Verdict};
use linerate_kernel::thread::SignalFd;
use linerate_model::change_set::Probe;
use linerate_model::tuning::TuningPlan;
use linerate_model::units::Nanos;
use linerate_report::host as report;
use linerate_tune::apply::{self, Cause, Failed, Journal, Order, Permissions, Surroundings};
use linerate_tune::journal::{ChangeSet, Entry, Rollback, Snapshot};
use linerate_tune::profile::Wish;
use linerate_tune::state_folder::{JournalFile, Lock, StateError};

use super::arguments::ApplyArguments;
use super::place::{Place, now, unix_s};
use super::probes::Probes;
use super::{arming, confirm, plan_for, print_plan, roll_out};
use crate::action::Failure;
use crate::printer::Printer;
use crate::prove::arguments::{LEAST as LEAST_EFFECT, MOST as MOST_PAIRS};
use crate::{prove, signals};

const LEAST: Nanos = Nanos::from_millis(1000);
const MOST: Nanos = Nanos::from_millis(3_600_000);
/// A set's name is its second; more in one second than this is no accident.
const MOST_A_SECOND: u32 = 100;

pub(super) fn run(arguments: &ApplyArguments, printer: &Printer) -> Result<(), Failure> {
    if !(LEAST..=MOST).contains(&arguments.confirm_within) {
        return Err(Failure::Usage("--confirm-within is 1s to 1h".to_owned()));
    }
    if arguments.on.on.is_some() || arguments.roll_out.is_of_earlier() {
        return roll_out::run(arguments, printer);
    }
    if arguments.wishes.from.is_some() && arguments.place.root.is_none() {
        return Err(Failure::Usage(
            "--from plans for another host's facts: only below --root can that be applied"
                .to_owned(),
        ));
    }
    let place = Place::of(&arguments.place)?;
    let (plan, wishes) = plan_for(&arguments.wishes, &place.files)?;
    let permissions = Permissions {
        risk: arguments.allow,
        over: arguments.over.clone(),
    };
    let objections = apply::objections(&plan, &permissions);
    if arguments.dry_run {
        return dry_run(arguments, &plan, &objections, printer);
    }
    if !objections.is_empty() {
        let many = objections.join("\n  ");
        return Err(Failure::Refused(format!("nothing was changed:\n  {many}")));
    }
    if plan.steps.is_empty() {
        printer.line("Nothing is to be changed.")?;
        return Ok(());
    }
    let lock = place.claim()?;
    let proof = proven(arguments, wishes, &lock, printer)?;
    let probes = Probes::before(&place, &arguments.probe)?;
    let (snapshot, journal) = begin(arguments, &plan, &place)?;
    // What ends a process otherwise is heard between two changes; a lost terminal is no reason to stop at all.
    let stop = signals::take_stops()?;
    let _lost_terminal = signals::take(&[signals::HANGUP])?;
    let mut around = Around {
        journal,
        probes,
        place: &place,
        stop,
        printer,
        proof,
        json: arguments.json,
    };
    let mut settings = place.settings();
    match apply::apply(snapshot, &mut *settings, &mut around) {
        Ok((set, probes)) => applied(arguments, set, &probes, &mut around),
        Err(failed) => {
            let probes = match &failed.set {
                Some(_) => around.probe(),
                None => Vec::new(),
            };
            Err(taken_back(*failed, &probes, &around)?)
        }
    }
}

fn dry_run(
    arguments: &ApplyArguments,
    plan: &TuningPlan,
    objections: &[String],
    printer: &Printer,
) -> Result<(), Failure> {
    print_plan(plan, arguments.json, printer)?;
    if objections.is_empty() {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "this would be refused:\n  {}",
        objections.join("\n  ")
    )))
}

/// Measures with and without the change where that is asked for; what shows no gain is a failure. The proof's document.
fn proven(
    arguments: &ApplyArguments,
    wishes: Vec<Wish>,
    lock: &Lock,
    printer: &Printer,
) -> Result<Option<serde_json::Value>, Failure> {
    let Some(peer) = &arguments.prove else {
        return Ok(None);
    };
    let question = Question {
        pairs: arguments
            .pairs
            .map_or(Pairs::UntilDecided(MOST_PAIRS), Pairs::Exactly),
        least: LEAST_EFFECT,
        seed: 1,
    };
    let told = prove::of_change(wishes, peer, question, &arguments.test, lock, printer)?;
    let gain = told.proof.verdict == Verdict::Better && told.proof.stopped.is_none();
    if !arguments.json {
        printer.print(&format!("{}\n", told.text))?;
    } else if !gain {
        printer.json(&told.document.to_string())?;
    }
    if gain {
        return Ok(Some(told.document));
    }
    prove::ended(&told.proof)?;
    let why = &told.proof.sentence;
    Err(match (told.proof.stopped, told.proof.verdict) {
        (Some(stop), _) => Failure::Incomplete(format!(
            "nothing is applied: {stop}; all settings are as before"
        )),
        (None, Verdict::Worse) => Failure::Unexpected(format!(
            "nothing is applied, because it shows a loss: {why}; all settings are as before"
        )),
        (None, _) => Failure::Refused(format!(
            "nothing is applied, because no gain was shown: {why}; all settings are as before"
        )),
    })
}

/// Takes the old values and has them on disk.
fn begin(
    arguments: &ApplyArguments,
    plan: &TuningPlan,
    place: &Place,
) -> Result<(Snapshot, JournalFile), Failure> {
    let second =
        linerate_kernel::process::local_label(linerate_kernel::clock::wall(), "%Y%m%d-%H%M%S");
    let taken = place.state.ids()?;
    let id = (1..=MOST_A_SECOND)
        .map(|number| match number {
            1 => second.clone(),
            number => format!("{second}-{number}"),
        })
        .find(|id| !taken.contains(id))
        .ok_or_else(|| Failure::Refused("too many sets of changes in one second".to_owned()))?;
    let root = place.root_text();
    let order = Order {
        id: &id,
        boot_id: &place.boot_id,
        network: place.network,
        root: root.as_deref(),
        now_unix_s: unix_s(),
        confirm_within: arguments.confirm_within,
        steps: &plan.steps,
    };
    let untouched = |why: String| Failure::Refused(format!("nothing was changed: {why}"));
    let snapshot = apply::snapshot(&order, &mut *place.settings(), now())
        .map_err(|cause| untouched(cause.to_string()))?;
    let journal = place.state.create(&snapshot).map_err(|error| match error {
        error @ StateError::File { .. } => {
            untouched(Cause::Snapshot(error.to_string()).to_string())
        }
        error => error.into(),
    })?;
    Ok((snapshot, journal))
}

/// What an apply has around it.
struct Around<'a> {
    journal: JournalFile,
    probes: Probes,
    place: &'a Place,
    stop: SignalFd,
    printer: &'a Printer,
    /// What `--prove` measured, as a document.
    proof: Option<serde_json::Value>,
    json: bool,
}

impl Around<'_> {
    /// Tells what became of a set.
    fn tell(&self, set: &ChangeSet, probes: &[Probe]) -> Result<(), Failure> {
        let view = set.view(now());
        if !self.json {
            return Ok(self.printer.print(&report::set_report(&view, probes))?);
        }
        let document = report::set_document(&view, probes);
        let Some(proof) = &self.proof else {
            return Ok(self.printer.json(&document)?);
        };
        let failed = |error| Failure::File(format!("cannot write JSON: {error}"));
        let mut document: serde_json::Value = serde_json::from_str(&document).map_err(failed)?;
        document["proof"] = proof["proof"].clone();
        Ok(self.printer.json(&document.to_string())?)
    }
}

impl Journal for Around<'_> {
    fn append(&mut self, entry: &Entry) -> Result<(), String> {
        self.journal.append(entry)
    }
}

impl Surroundings for Around<'_> {
    fn arm(&mut self, snapshot: &Snapshot) -> Result<Rollback, String> {
        arming::arm(self.place, snapshot, self.printer)
    }

    fn probe(&mut self) -> Vec<Probe> {
        self.probes.after(self.place)
    }

    fn now(&mut self) -> Nanos {
        now()
    }

    fn stopped(&mut self) -> bool {
        matches!(self.stop.read(), Ok(Some(_)))
    }
}

fn applied(
    arguments: &ApplyArguments,
    mut set: ChangeSet,
    probes: &[Probe],
    around: &mut Around<'_>,
) -> Result<(), Failure> {
    if arguments.yes {
        confirm::confirm(&mut set, &mut around.journal)?;
    }
    around.tell(&set, probes)
}

/// Tells both results: why the change failed, and what became of the old values.
fn taken_back(failed: Failed, probes: &[Probe], around: &Around<'_>) -> Result<Failure, Failure> {
    if let Some(why) = &failed.unwritten {
        around
            .printer
            .tell(&format!("linerate: the journal is incomplete: {why}"));
    }
    let Some(set) = failed.set else {
        return Ok(Failure::Refused(format!(
            "nothing was changed: {}",
            failed.cause
        )));
    };
    around.tell(&set, probes)?;
    // An address that went with a link does not come again with the old value of a setting.
    let still: Vec<&str> = probes
        .iter()
        .filter(|probe| probe.holds == Some(false))
        .map(|probe| probe.seen.as_str())
        .collect();
    let still = match still.as_slice() {
        [] => String::new(),
        still => format!(", and still: {}", still.join("; ")),
    };
    let back = set.to_restore().is_empty();
    Ok(if back {
        Failure::TakenBack(format!("{}; all old values are back{still}", failed.cause))
    } else {
        Failure::NotBack(format!(
            "{}; not all old values are back{still}: linerate tune revert {} --force tries again",
            failed.cause, set.snapshot.id
        ))
    })
}
