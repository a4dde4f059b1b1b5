//! `linerate tune apply --on NODES`: a change on many hosts, a few at a time, each of which proves itself or goes back.
//!
//! [`linerate_watch::roll_out`] decides what comes next, [`acts`] does it over the sessions of [`hosts`], and [`journal`]
//! has each step on disk before it begins, so that a later run goes on (`--resume`) or back (`--back`).

mod acts;
pub(super) mod arguments;
mod hosts;
mod journal;
mod plans;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use linerate_fleet::{answers, each};
use linerate_kernel::process::raise_descriptor_limit;
use linerate_kernel::thread::SignalFd;
use linerate_model::plain_text::PlainText;
use linerate_model::roll_out::{RollOut as Table, RollOutOutcome, RollOutState};
use linerate_report::roll_out as report;
use linerate_watch::roll_out::{
    Beginning, Change, Entry, JOURNAL_VERSION, Member, Plan, RollOut, Settings,
};

use super::arguments::ApplyArguments;
use super::place::unix_s;
use crate::action::Failure;
use crate::printer::Printer;
use crate::signals;
use acts::{Task, act};
use hosts::Hosts;
use journal::{JournalFile, usual_path};
use plans::HostPlan;

/// How often it is looked whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(250);

/// Runs it, new or from the journal of an earlier run.
pub(super) fn run(arguments: &ApplyArguments, printer: &Printer) -> Result<(), Failure> {
    // Three pipes a host; where the limit stays, some hosts say so.
    drop(raise_descriptor_limit());
    let stop = signals::take_stops()?;
    let options = &arguments.roll_out;
    match (&options.resume, &options.back) {
        (Some(file), _) => again(file, false, arguments, &stop, printer),
        (None, Some(file)) => again(file, true, arguments, &stop, printer),
        (None, None) => begin(arguments, &stop, printer),
    }
}

/// A new one: plans everywhere, then the change.
fn begin(arguments: &ApplyArguments, stop: &SignalFd, printer: &Printer) -> Result<(), Failure> {
    if arguments.prove.is_some() && arguments.roll_out.canary == 0 {
        return Err(Failure::Usage(
            "with --on, the hosts of --canary prove the change: --prove needs --canary 1 or more"
                .to_owned(),
        ));
    }
    let names = arguments.on.hosts()?.unwrap_or_default();
    let change = arguments::change(arguments)?;
    let groups = arguments::groups(arguments, &names)?;
    let hosts = Hosts::new(names.clone(), arguments.on.reach.reach()?, change.clone());
    // The output may be gone; the last write says so.
    drop(printer.status(&format!("planning on {} hosts …", names.len())));
    let plans: Vec<HostPlan> = each(&names, arguments.on.reach.fan_out, |name| {
        let host = names.iter().position(|other| other == name);
        plans::of(&hosts, host.unwrap_or_default())
    });
    if !arguments.json {
        printer.print(&plans::folded(&hosts, &plans))?;
    }
    let options = &arguments.roll_out;
    let beginning = Beginning {
        version: JOURNAL_VERSION,
        profile: arguments::profile(&change),
        started_unix_s: unix_s(),
        settings: Settings {
            canary: options.canary,
            prove: arguments.prove.is_some(),
            batch: options.batch.hosts(names.len()),
            one_per_group: options.one_per.is_some(),
            max_failures: options.max_failures,
            tolerance: f64::from(options.tolerance) / 100.0,
        },
        nodes: members(&names, groups, plans),
        change,
    };
    let due = |member: &Member| matches!(member.plan, Plan::Changes { .. });
    let any = beginning.nodes.iter().any(due);
    let roll_out = RollOut::new(beginning.clone());
    if arguments.dry_run || !any {
        let mut table = roll_out.table();
        if arguments.dry_run {
            table.state = RollOutState::DryRun;
        }
        return end(&table, arguments.json, false, printer);
    }
    if crate::between::asked(stop) {
        return Err(Failure::Incomplete(
            "it was stopped before anything was changed".to_owned(),
        ));
    }
    let path = match &options.journal {
        Some(path) => path.clone(),
        None => usual_path()?,
    };
    let journal = JournalFile::create(&path, &Entry::Beginning(beginning))?;
    printer.tell(&format!(
        "linerate: journal: {} (after an interruption: linerate tune apply --resume FILE goes on, --back FILE goes back)",
        journal.path().display()
    ));
    Drive {
        roll_out,
        journal,
        hosts: &hosts,
        under_way: 0,
        printer,
    }
    .run(stop, arguments.json)
}

fn members(names: &[String], groups: Vec<Option<PlainText>>, plans: Vec<HostPlan>) -> Vec<Member> {
    let members = names.iter().zip(groups).zip(plans);
    let members = members.map(|((name, group), plan)| Member {
        name: name.as_str().into(),
        group,
        plan: plan.plan,
    });
    members.collect()
}

/// One that an earlier run began.
fn again(
    file: &std::path::Path,
    back: bool,
    arguments: &ApplyArguments,
    stop: &SignalFd,
    printer: &Printer,
) -> Result<(), Failure> {
    let (journal, roll_out) = JournalFile::of_earlier(file)?;
    let names: Vec<String> = roll_out.names().map(ToString::to_string).collect();
    let change: Change = roll_out.change().clone();
    let hosts = Hosts::new(names, arguments.on.reach.reach()?, change);
    let mut drive = Drive {
        roll_out,
        journal,
        hosts: &hosts,
        under_way: 0,
        printer,
    };
    drive.note(&Entry::Resumed { back })?;
    drive.run(stop, arguments.json)
}

/// A roll-out that goes on.
struct Drive<'a> {
    roll_out: RollOut,
    journal: JournalFile,
    hosts: &'a Hosts,
    under_way: usize,
    printer: &'a Printer,
}

impl Drive<'_> {
    /// Writes an entry to the journal, then takes it.
    fn note(&mut self, entry: &Entry) -> Result<(), Failure> {
        self.journal.write(entry)?;
        self.roll_out.handle(entry).map_err(|error| {
            Failure::File(format!(
                "the journal {} does not go on: {error}",
                self.journal.path().display()
            ))
        })
    }

    /// Goes on to the end.
    fn run(mut self, stop: &SignalFd, json: bool) -> Result<(), Failure> {
        self.act(stop)?;
        signals::release(stop, &[signals::INTERRUPT, signals::TERMINATE]);
        let table = self.roll_out.table();
        end(&table, json, self.roll_out.is_taken_back(), self.printer)
    }

    fn act(&mut self, stop: &SignalFd) -> Result<(), Failure> {
        let hosts = self.hosts;
        let (answers, answered) = mpsc::channel();
        let mut stopped = false;
        std::thread::scope(|scope| {
            loop {
                while let Some(action) = self.roll_out.poll_action() {
                    let task = self.task(action);
                    self.note(&Entry::Begun(task.action.clone()))?;
                    if task.action.node().is_some() {
                        self.under_way += 1;
                        let answers = answers.clone();
                        // Nobody listens any more where the journal cannot be written.
                        scope.spawn(move || drop(answers.send(act(hosts, &task))));
                    }
                }
                self.progress();
                if self.under_way == 0 {
                    return Ok(());
                }
                match answered.recv_timeout(LOOK) {
                    Ok(answer) => {
                        self.under_way -= 1;
                        self.note(&answer)?;
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
                if !stopped && crate::between::asked(stop) {
                    stopped = true;
                    // A second one ends the program at once; the journal says where it was.
                    signals::release(stop, &[signals::INTERRUPT, signals::TERMINATE]);
                    let why = "it was stopped here".into();
                    self.note(&Entry::Stopped { why })?;
                    self.printer.tell(
                        "linerate: no further host is begun; waiting for those in the middle of it",
                    );
                }
            }
        })
    }

    fn task(&self, action: linerate_watch::roll_out::Action) -> Task {
        let node = action.node();
        let set = node.and_then(|node| self.roll_out.set_of(node));
        Task {
            set: set.map(ToString::to_string),
            before: node.map_or_else(Vec::new, |node| self.roll_out.before(node).to_vec()),
            tolerance: self.roll_out.settings().tolerance,
            action,
        }
    }

    fn progress(&self) {
        let failed = match self.roll_out.failures() {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        let line = format!(
            "{} of {} hosts done{failed}, {} in the middle of it",
            self.roll_out.ended(),
            self.roll_out.names().count(),
            self.roll_out.in_flight()
        );
        // The output may be gone; the last write says so.
        drop(self.printer.status(&line));
    }
}

/// Prints the table, and what the exit code says of it.
fn end(table: &Table, json: bool, back: bool, printer: &Printer) -> Result<(), Failure> {
    if json {
        printer.json(&report::document(table))?;
    } else {
        printer.print(&report::report(table, &fold, printer.style()))?;
    }
    verdict(table, back)
}

/// Names of hosts as one set.
fn fold(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    answers::names(&names)
}

/// What is worst comes first: hosts whose settings are not known, then such as went back, were not reached, cannot have it.
fn verdict(table: &Table, back: bool) -> Result<(), Failure> {
    let named = |is: fn(&RollOutOutcome) -> bool| {
        let hosts = table.hosts.iter().filter(|host| is(&host.outcome));
        let names: Vec<&str> = hosts.map(|host| host.name.as_str()).collect();
        (!names.is_empty()).then(|| fold(&names))
    };
    if let Some(names) = named(|one| matches!(one, RollOutOutcome::Unknown { .. })) {
        return Err(Failure::NotBack(format!(
            "it is not known which settings these hosts have: {names}"
        )));
    }
    let rolled_back = named(|one| matches!(one, RollOutOutcome::RolledBack { .. }));
    if let Some(names) = rolled_back.filter(|_| !back) {
        return Err(Failure::TakenBack(format!(
            "these hosts have their old settings again: {names}"
        )));
    }
    if let Some(names) = named(|one| matches!(one, RollOutOutcome::Unreachable { .. })) {
        return Err(Failure::Unreachable(format!(
            "these hosts were not reached: {names}"
        )));
    }
    match &table.state {
        RollOutState::Stopped { why } if !back => Err(Failure::Incomplete(format!(
            "not all hosts had their turn: {why}"
        ))),
        _ if table.hosts.iter().any(is_refused) && !back => Err(Failure::Refused(
            "some hosts cannot have it; the report names them".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Whether its plan said that it cannot have the change.
fn is_refused(host: &linerate_model::roll_out::RollOutHost) -> bool {
    matches!(&host.outcome, RollOutOutcome::Unchanged { why } if why.starts_with("it cannot have them"))
}
