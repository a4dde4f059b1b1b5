//! `linerate prove --boots A B`: whether this host is faster in one boot than in another.
//!
//! A unit of systemd starts `linerate prove --boots-resume` after each boot; it does what the journal in the state folder
//! asks for (`linerate_experiment::boots`) and restarts the host by kexec, or into its default once all is done.

mod entry;
mod kexec;
mod series;
mod unit;

use std::path::{Path, PathBuf};

use linerate_experiment::boots::{self, Boots, Entry};
use linerate_experiment::prove::Side;
use linerate_kernel::process;

use super::arguments::{BootsArguments, ProveArguments};
use super::ended;
use crate::action::Failure;
use crate::place::HostPlace;
use crate::printer::Printer;
use entry::Entries;
use kexec::Kexec;
use series::{Folder, Series};

/// Where a series is kept if no other folder is named.
const FOLDER: &str = "/var/lib/linerate/boots";
/// A test never starts earlier after a boot: services start, and caches are cold.
pub(super) const SETTLE_S: u32 = 60;

pub(super) fn run(arguments: &ProveArguments, printer: &Printer) -> Result<(), Failure> {
    let of_boots = &arguments.boots;
    let state = of_boots.boots_state.clone();
    let state = state.unwrap_or_else(|| PathBuf::from(FOLDER));
    // It goes into a unit, which has another working folder.
    let state =
        std::path::absolute(&state).map_err(|error| Failure::cannot("find", &state, &error))?;
    let folder = Folder::at(state.clone());
    if of_boots.boots_show {
        return show(&folder, arguments, printer);
    }
    if process::user() != 0 {
        return Err(Failure::Refused(
            "a host is restarted by root alone; nothing was changed".to_owned(),
        ));
    }
    if of_boots.boots_cancel {
        return cancel(&folder, printer);
    }
    if of_boots.boots_resume {
        return resume(&folder, printer);
    }
    begin(&folder, &state, arguments, of_boots, printer)
}

/// Plans a series, and starts it where the user agreed.
fn begin(
    folder: &Folder,
    state: &Path,
    arguments: &ProveArguments,
    of_boots: &BootsArguments,
    printer: &Printer,
) -> Result<(), Failure> {
    let [before, after] = of_boots.boots.as_slice() else {
        return Err(Failure::Usage(
            "--boots takes two: each a kernel's image, and options of its command line after it"
                .to_owned(),
        ));
    };
    let words = arguments.words();
    // Before anything is written.
    HostPlace::request(arguments.peer.as_deref().unwrap_or("127.0.0.1"), &words)?;
    let series = Series {
        id: series::new_id()?,
        entries: Entries::of(before, after)?,
        peer: arguments.peer.clone(),
        words,
        settle_s: of_boots.settle,
    };
    let question = arguments.question();
    let most = 2 * question.pairs.most() + 1;
    let plan = format!(
        "This host will restart up to {most} times, more if a boot or a test fails, and end in its default boot:\n  {}\n  \
         {}\nThe boot loader's default is not changed: each boot is loaded with kexec, which a reset forgets.\n",
        series.entries.text(Side::Before),
        series.entries.text(Side::After),
    );
    if !of_boots.yes {
        printer.print(&plan)?;
        return Err(Failure::Refused(
            "nothing was changed; with --yes the host restarts now".to_owned(),
        ));
    }
    kexec::required()?;
    unit::required()?;
    unit::can_find(state)?;
    printer.tell(&plan);
    let mut journal = folder.begin(&series, &Entry::Begun { question })?;
    unit::install(folder.path())?;
    let mut entries = journal.entries()?;
    let mut machine = Kexec::new(&series, &mut journal, printer);
    go(&mut entries, &mut machine)
}

/// Goes on after a boot; the unit calls it.
fn resume(folder: &Folder, printer: &Printer) -> Result<(), Failure> {
    let Some((series, mut journal)) = folder.open()? else {
        return Err(nothing(folder));
    };
    let mut entries = journal.entries()?;
    let mut machine = Kexec::new(&series, &mut journal, printer);
    go(&mut entries, &mut machine)?;
    let state = Boots::of(&entries).map_err(failed)?;
    if state.is_over() {
        printer.print(&state.proof().text())?;
    }
    Ok(())
}

fn go(entries: &mut Vec<Entry>, machine: &mut Kexec<'_>) -> Result<(), Failure> {
    boots::go_on(entries, machine).map(drop).map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Incomplete(error.to_string())
}

/// What the runs say until now.
fn show(folder: &Folder, arguments: &ProveArguments, printer: &Printer) -> Result<(), Failure> {
    let Some((series, entries)) = folder.look()? else {
        return Err(nothing(folder));
    };
    let state = Boots::of(&entries).map_err(failed)?;
    let proof = state.proof();
    let over = state.is_over();
    if arguments.json {
        let document = serde_json::json!({
            "software": linerate_model::record::Software::this_program(),
            "over": over,
            "boots": series.entries,
            "proof": proof,
        });
        printer.json(&document.to_string())?;
    } else {
        let left = if over {
            String::new()
        } else {
            format!("Not over: at most {} runs are left\n", state.left())
        };
        printer.print(&format!(
            "{left}Before  {}\nAfter   {}\n\n{}",
            series.entries.text(Side::Before),
            series.entries.text(Side::After),
            proof.text()
        ))?;
    }
    if over { ended(&proof) } else { Ok(()) }
}

/// Ends a series: the host stays in the boot that it is in, and its next one is its default.
fn cancel(folder: &Folder, printer: &Printer) -> Result<(), Failure> {
    let Some((_, mut journal)) = folder.open()? else {
        return Err(nothing(folder));
    };
    let entries = journal.entries()?;
    if Boots::of(&entries).map_err(failed)?.is_over() {
        return Err(Failure::Refused("the series is over already".to_owned()));
    }
    kexec::unload().map_err(failed)?;
    unit::remove().map_err(failed)?;
    let why = Some("it was cancelled".to_owned());
    journal.write(&Entry::Over { why }).map_err(failed)?;
    printer.tell("cancelled; this host's next boot is its default");
    Ok(())
}

fn nothing(folder: &Folder) -> Failure {
    Failure::Refused(format!(
        "no series of boots is kept in {}; `linerate prove --boots A B` starts one",
        folder.path().display()
    ))
}
