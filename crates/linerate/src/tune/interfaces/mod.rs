//! `linerate tune interfaces`: a guest's data-plane interfaces as a file declares them.

pub(super) mod arguments;
mod effects;
mod store;

use std::path::PathBuf;

use linerate_kernel::inventory::Root;
use linerate_tune::guest::{self, Applied, Declaration, Done, GuestPlan, Situation, State};
use serde::Serialize;

use crate::action::Failure;
use crate::host::{facts_of, files_below};
use crate::input;
use crate::printer::Printer;
use arguments::{InterfacesApply, InterfacesArguments, InterfacesCommand, Place};
use effects::Guest;
use store::Store;

/// The version of the documents.
const SCHEMA_VERSION: u32 = 1;

pub(super) fn run(arguments: &InterfacesArguments, printer: &Printer) -> Result<(), Failure> {
    match &arguments.command {
        InterfacesCommand::Apply(arguments) => apply(arguments, printer),
        InterfacesCommand::Status(place) => status(place, printer),
    }
}

/// What is asked for, as one document.
#[derive(Serialize)]
struct Document<'a> {
    kind: &'static str,
    schema_version: u32,
    file: String,
    changes: bool,
    #[serde(flatten)]
    plan: &'a GuestPlan,
    #[serde(flatten)]
    done: &'a Done,
}

fn apply(arguments: &InterfacesApply, printer: &Printer) -> Result<(), Failure> {
    let files = Files::of(&arguments.place)?;
    let declaration = files.declaration()?;
    let store = files.store();
    // Two at once would each undo the other's.
    let lock = if arguments.dry_run {
        None
    } else {
        Some(store.lock().map_err(Failure::File)?)
    };
    let start = arguments.start.clone().unwrap_or_default();
    let situation = files.situation(store.read().map_err(Failure::File)?, start)?;
    let plan = guest::plan(&declaration, &situation);
    let mut done = Done::default();
    if !arguments.dry_run {
        let mut guest = Guest::below(files.root.clone());
        done = guest::carry_out(&plan, &mut guest);
        if situation.interfaces.is_some() {
            let state = after(&declaration, &situation, &plan, &done);
            if state != situation.state {
                store.write(&state).map_err(Failure::File)?;
            }
        }
    }
    drop(lock);
    if arguments.place.json {
        print_document(&files, !arguments.dry_run, &plan, &done, printer)?;
    } else {
        print_plan(&plan, &done, arguments.dry_run, printer)?;
    }
    if plan.refused.is_empty() && done.failed.is_empty() {
        Ok(())
    } else {
        // The output has said what.
        Err(Failure::Said)
    }
}

fn status(place: &Place, printer: &Printer) -> Result<(), Failure> {
    let files = Files::of(place)?;
    let declaration = files.declaration()?;
    let store = files.store();
    let situation = files.situation(store.read().map_err(Failure::File)?, String::new())?;
    let plan = guest::plan(&declaration, &situation);
    if place.json {
        print_document(&files, false, &plan, &Done::default(), printer)?;
    } else {
        print_plan(&plan, &Done::default(), true, printer)?;
    }
    let as_declared = plan.actions.is_empty() && plan.by_hand.is_empty() && plan.refused.is_empty();
    if as_declared {
        Ok(())
    } else {
        Err(Failure::Said)
    }
}

/// What the next time has to know.
fn after(declaration: &Declaration, situation: &Situation, plan: &GuestPlan, done: &Done) -> State {
    let mut state = situation.state.clone();
    // Of another boot or start, what was applied then says nothing of now.
    let new_start = !situation.start.is_empty() && state.start != situation.start;
    if state.boot_id != situation.boot_id || new_start {
        state.applied.clear();
        state.boot_id.clone_from(&situation.boot_id);
        state.start.clone_from(&situation.start);
    }
    for mac in plan.due.keys().filter(|mac| !done.whole.contains(mac)) {
        state.applied.remove(mac);
    }
    for declared in &declaration.interfaces {
        if let Some(index) = plan.due.get(&declared.mac)
            && done.whole.contains(&declared.mac)
        {
            let applied = Applied {
                index: *index,
                declared: declared.clone(),
            };
            state.applied.insert(declared.mac, applied);
        }
    }
    let declared = |mac: &guest::Mac| declaration.interfaces.iter().any(|one| one.mac == *mac);
    state.applied.retain(|mac, _| declared(mac));
    state
}

fn print_document(
    files: &Files,
    changes: bool,
    plan: &GuestPlan,
    done: &Done,
    printer: &Printer,
) -> Result<(), Failure> {
    let document = Document {
        kind: "guest_interfaces",
        schema_version: SCHEMA_VERSION,
        file: files.name(),
        changes,
        plan,
        done,
    };
    let text = serde_json::to_string(&document)
        .map_err(|error| Failure::File(format!("cannot write JSON: {error}")))?;
    Ok(printer.json(&text)?)
}

fn print_plan(
    plan: &GuestPlan,
    done: &Done,
    only_shown: bool,
    printer: &Printer,
) -> Result<(), Failure> {
    let mut lines: Vec<String> = Vec::new();
    if only_shown {
        lines.extend(plan.actions.iter().map(|action| format!("would {action}")));
    } else {
        lines.extend(done.done.iter().cloned());
    }
    lines.extend(done.failed.iter().map(|line| format!("failed   {line}")));
    lines.extend(plan.refused.iter().map(|line| format!("refused  {line}")));
    lines.extend(plan.by_hand.iter().map(|line| format!("by hand  {line}")));
    lines.extend(plan.notes.iter().map(|line| format!("note     {line}")));
    let changes = if only_shown {
        plan.actions.len()
    } else {
        done.done.len()
    };
    let fulfilled = match plan.fulfilled.as_slice() {
        [] => String::new(),
        all => format!("; as declared: {}", all.join(", ")),
    };
    lines.push(match (changes, only_shown) {
        (0, true) => format!("Nothing is to be changed{fulfilled}."),
        (0, false) => format!("Nothing was changed{fulfilled}."),
        (1, true) => format!("1 change to make{fulfilled}."),
        (1, false) => format!("1 change made{fulfilled}."),
        (count, true) => format!("{count} changes to make{fulfilled}."),
        (count, false) => format!("{count} changes made{fulfilled}."),
    });
    let mut text = lines.join("\n");
    text.push('\n');
    Ok(printer.print(&text)?)
}

/// Where everything is.
struct Files {
    root: Root,
    /// Where the declaration is, and the folder of the state, by their paths from a root.
    declaration: (Root, PathBuf),
    state: (Root, PathBuf),
    /// Whether this kernel's interfaces are looked at and changed.
    live: bool,
}

impl Files {
    fn of(place: &Place) -> Result<Self, Failure> {
        let root = files_below(place.root.as_deref())?;
        let at = |named: &Option<PathBuf>, path: &str| -> Result<(Root, PathBuf), Failure> {
            let Some(named) = named else {
                return Ok((root.clone(), PathBuf::from(path)));
            };
            let named = std::path::absolute(named)
                .map_err(|error| Failure::Usage(format!("{}: {error}", named.display())))?;
            Ok((Root::of_this_machine(), named))
        };
        Ok(Self {
            declaration: at(&place.file, "/etc/linerate/interfaces.toml")?,
            state: at(&place.state, "/var/lib/linerate")?,
            live: place.root.is_none() || place.live,
            root,
        })
    }

    /// The path of the declaration, as messages print it.
    fn name(&self) -> String {
        let (root, path) = &self.declaration;
        root.path(path).display().to_string()
    }

    fn declaration(&self) -> Result<Declaration, Failure> {
        let (root, path) = &self.declaration;
        let name = self.name();
        // One that was named may be a pipe.
        let text = if root.is_this_machine() {
            input::string(&root.path(path), input::WRITTEN)
        } else {
            root.whole_text(path)
        };
        let text = text.map_err(|error| Failure::File(format!("cannot read {name}: {error}")))?;
        guest::declaration::parse(&name, &text).map_err(|error| Failure::File(error.to_string()))
    }

    fn store(&self) -> Store {
        let (root, folder) = self.state.clone();
        Store::at(root, folder)
    }

    fn situation(&self, state: State, start: String) -> Result<Situation, Failure> {
        let mut situation = if self.live {
            Situation::of(&facts_of(None)?).map_err(|why| {
                Failure::File(format!(
                    "cannot determine which interfaces may be changed: {why}"
                ))
            })?
        } else {
            Situation::default()
        };
        if !self.root.is_this_machine() {
            // They run on this machine and not below the folder.
            situation.running.clear();
        }
        [situation.files, situation.links] = store::files(&self.root).map_err(Failure::File)?;
        situation.state = state;
        situation.start = start;
        Ok(situation)
    }
}
