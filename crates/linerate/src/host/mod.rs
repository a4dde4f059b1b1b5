//! `linerate host`: what a host is, what is wrong with it for a task, and how two differ.

pub(crate) mod arguments;
mod peer;

use std::path::Path;
use std::time::{Duration, SystemTime};

use linerate_kernel::inventory::{self, NoKernel, Root, RunningKernel};
use linerate_model::host::HostFacts;
use linerate_model::units::Nanos;
use linerate_report::host as report;

use crate::action::Failure;
use crate::input;
use crate::on::{self, Kind};
use crate::printer::Printer;
use arguments::{AuditArguments, DiffArguments, HostArguments, HostCommand, ShowArguments};

/// The longest time between two readings: a day. Counters of 32 bits wrap.
const LONGEST: Nanos = Nanos::from_millis(86_400_000);

pub(crate) fn run(arguments: HostArguments, printer: &Printer) -> Result<(), Failure> {
    let (on, kind) = match &arguments.command {
        None => (
            &arguments.show.on,
            Kind::Facts {
                all: arguments.show.all,
            },
        ),
        Some(HostCommand::Audit(arguments)) => (&arguments.on, Kind::Text),
        Some(HostCommand::Diff(arguments)) => {
            (&arguments.on, Kind::Differences { all: arguments.all })
        }
    };
    if let Some(hosts) = on.hosts()? {
        return on::run(&hosts, &on.reach, kind, printer);
    }
    match arguments.command {
        None => show(&arguments.show, printer),
        Some(HostCommand::Audit(arguments)) => audit(&arguments, printer),
        Some(HostCommand::Diff(arguments)) => diff(&arguments, printer),
    }
}

fn show(arguments: &ShowArguments, printer: &Printer) -> Result<(), Failure> {
    let facts = facts_of(arguments.root.as_deref())?;
    let text = || report::facts_report(&facts, arguments.all);
    let described = report::Described::of(&facts);
    Ok(printer.outcome(arguments.json, ("host", &described), text)?)
}

fn audit(arguments: &AuditArguments, printer: &Printer) -> Result<(), Failure> {
    let mut earlier = arguments.since.as_deref().map(read).transpose()?;
    if let Some(span) = arguments.span {
        if span > LONGEST {
            return Err(Failure::Usage(format!("--for is at most {LONGEST}")));
        }
        earlier = Some(facts_of(None)?);
        printer.tell(&format!("reading the counters again in {span}"));
        std::thread::sleep(Duration::from_nanos(span.0));
    }
    let mut target = arguments.target();
    if let Some(host) = &arguments.peer {
        let plan = peer::plan(host, arguments.port)?;
        // The tests are a load under which counters may rise.
        earlier = match earlier {
            None => Some(facts_of(None)?),
            given => given,
        };
        target.measured = Some(peer::measure(&plan, printer)?);
    }
    let facts = match &arguments.from {
        Some(file) => read(file)?,
        None => facts_of(arguments.root.as_deref())?,
    };
    let audit = linerate_tune::audit(&facts, earlier.as_ref(), &target).map_err(Failure::Usage)?;
    let text = || report::audit_report(&audit, arguments.all);
    printer.outcome(arguments.json, ("host_audit", &audit), text)?;
    match audit.firing().count() {
        0 => Ok(()),
        // The report has said what; the code is for scripts.
        _ => Err(Failure::Said),
    }
}

fn diff(arguments: &DiffArguments, printer: &Printer) -> Result<(), Failure> {
    let (Some(a_file), Some(b_file)) = (&arguments.a, &arguments.b) else {
        return Err(Failure::Usage("two files of facts are compared".to_owned()));
    };
    let (a, b) = (read(a_file)?, read(b_file)?);
    let differences = linerate_tune::difference::compare(&a, &b);
    let name = |facts: &HostFacts, file: &Path| {
        let name = facts.system.hostname.known().cloned();
        name.unwrap_or_else(|| file.display().to_string())
    };
    let (left, right) = (name(&a, a_file), name(&b, b_file));
    let text = || report::difference_report(&differences, (&left, &right), arguments.all);
    Ok(printer.outcome(arguments.json, ("host_diff", &differences), text)?)
}

/// The facts of this host, or of the files below a folder.
pub(crate) fn facts_of(root: Option<&Path>) -> Result<HostFacts, Failure> {
    Ok(facts_below(&files_below(root)?))
}

/// The facts of a host by its files; of this one, by its kernel as well.
pub(crate) fn facts_below(root: &Root) -> HostFacts {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    if root.is_this_machine() {
        inventory::collect(root, &RunningKernel, now)
    } else {
        inventory::collect(root, &NoKernel, now)
    }
}

/// The files of a host: below a folder that stands for `/`, or this machine's.
pub(crate) fn files_below(root: Option<&Path>) -> Result<Root, Failure> {
    let Some(folder) = root else {
        return Ok(Root::of_this_machine());
    };
    Root::at(folder)
        .map_err(|error| Failure::cannot("read the files of a host below", folder, &error))
}

pub(crate) fn read(file: &Path) -> Result<HostFacts, Failure> {
    let name = file.display();
    let bytes = input::read(file, input::NOTED)?;
    report::from_json(&bytes).map_err(|error| Failure::File(format!("{name}: {error}")))
}
