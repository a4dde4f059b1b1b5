//! `linerate tune persist`: files that keep what was confirmed over a boot, and their removal as a whole.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use linerate_model::host::HostFacts;
use linerate_report::host as report;
use linerate_tune::apply::Journal as _;
use linerate_tune::guest::NETWORK;
use linerate_tune::journal::{ChangeSet, Entry, KeptFile};
use linerate_tune::kept_file;
use linerate_tune::persist::irqbalance;
use linerate_tune::persist::networkd::{self, DropIns, FOLDERS, NetworkFile};
use linerate_tune::persist::{self, Confirmed, Kept, MARK, Others};

use super::arguments::PersistArguments;
use super::place::Place;
use crate::action::Failure;
use crate::host::read;
use crate::printer::Printer;

pub(super) fn run(arguments: &PersistArguments, printer: &Printer) -> Result<(), Failure> {
    let place = Place::of(&arguments.place)?;
    if arguments.dry_run {
        return dry_run(arguments, &place, printer);
    }
    let _lock = place.state.lock()?;
    if arguments.remove {
        return remove(arguments, &place, printer);
    }
    let sets = place.own_sets()?;
    let (kept, last) = planned(arguments.from.as_deref(), &place, &sets)?;
    write(&place, &kept, &last, &sets, arguments.force)?;
    tell(arguments, &place, &kept, printer)
}

/// What would be kept of these sets, and the last of them that was confirmed.
fn planned(
    from: Option<&Path>,
    place: &Place,
    sets: &[ChangeSet],
) -> Result<(Kept, String), Failure> {
    let confirmed = persist::confirmed(sets);
    let Some(last) = confirmed.iter().map(|one| one.set.clone()).max() else {
        return Err(Failure::Refused(
            "nothing was confirmed: only that is persisted (linerate tune apply, then confirm)"
                .to_owned(),
        ));
    };
    let facts = match from {
        Some(file) => read(file)?,
        None => place.facts(),
    };
    let (runs, drifted) = still_running(place, confirmed);
    let mut kept = persist::files(&runs, &facts, &others(place, &facts)?, &last);
    kept.left_out.extend(drifted);
    Ok((kept, last))
}

/// What was confirmed and is no longer so is not what was proven.
fn still_running(
    place: &Place,
    confirmed: Vec<Confirmed>,
) -> (
    Vec<Confirmed>,
    Vec<(linerate_model::tuning::Object, String)>,
) {
    let mut settings = place.settings();
    let (mut runs, mut drifted) = (Vec::new(), Vec::new());
    for one in confirmed {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        match settings.read(&one.object) {
            Ok(now) if words(&now) == words(&one.value) => runs.push(one),
            Ok(now) => drifted.push((
                one.object,
                format!("{} was confirmed and {now} runs", one.value),
            )),
            Err(error) => drifted.push((one.object, error.to_string())),
        }
    }
    (runs, drifted)
}

fn dry_run(arguments: &PersistArguments, place: &Place, printer: &Printer) -> Result<(), Failure> {
    if arguments.remove {
        return remove(arguments, place, printer);
    }
    let (kept, _) = planned(arguments.from.as_deref(), place, &place.own_sets()?)?;
    tell(arguments, place, &kept, printer)
}

fn tell(
    arguments: &PersistArguments,
    place: &Place,
    kept: &Kept,
    printer: &Printer,
) -> Result<(), Failure> {
    let files: Vec<(String, String)> = kept
        .files
        .iter()
        .map(|file| {
            let path = path(place, &file.path).display().to_string();
            (path, file.text.clone())
        })
        .collect();
    let left_out: Vec<(String, String)> = kept
        .left_out
        .iter()
        .map(|(object, why)| (object.to_string(), why.clone()))
        .collect();
    let written = !arguments.dry_run;
    if arguments.json {
        let document = report::persist_document(written, &files, &left_out, &kept.warnings);
        printer.json(&document)?;
    } else {
        let text = report::persist_report(written, &files, &left_out, &kept.warnings);
        printer.print(&text)?;
    }
    Ok(())
}

/// Files of others that bear on ours.
pub(super) fn others(place: &Place, facts: &HostFacts) -> Result<Others, Failure> {
    let mut networks = BTreeMap::new();
    for interface in facts.interfaces.known().into_iter().flatten() {
        let state = format!("{}/{}", networkd::LINKS, interface.index);
        let state = kept_file::read(&place.files, &state)?;
        let Some(file) = state.as_deref().and_then(networkd::file_in) else {
            continue;
        };
        if let Some(text) = kept_file::read(&place.files, file)? {
            let network = NetworkFile {
                path: file.to_owned(),
                text,
                drop_ins: drop_ins(place, file)?,
            };
            networks.insert(interface.name.clone(), network);
        }
    }
    let links = links(place)?;
    Ok(Others { links, networks })
}

/// What others have beside a `.network` file.
fn drop_ins(place: &Place, file: &str) -> Result<DropIns, Failure> {
    let (_, name) = file.rsplit_once('/').unwrap_or_default();
    let mut found = DropIns::new();
    for folder in FOLDERS {
        let folder = format!("{folder}/{name}.d");
        for name in kept_file::names(&place.files, &folder)? {
            let file = format!("{folder}/{name}");
            if name.strip_suffix(".conf").is_none() || found.contains_key(&name) {
                continue;
            }
            if let Some(text) = kept_file::read(&place.files, &file)? {
                found.insert(name, (file, text));
            }
        }
    }
    found.retain(|_, (_, text)| !text.contains(MARK));
    Ok(found)
}

/// The `.link` files that are there, by their path from `/`.
fn links(place: &Place) -> Result<Vec<String>, Failure> {
    let names = kept_file::names(&place.files, NETWORK)?;
    let links = names
        .iter()
        .filter(|name| name.strip_suffix(".link").is_some());
    Ok(links.map(|name| format!("{NETWORK}/{name}")).collect())
}

/// How a file is printed.
fn path(place: &Place, path: &str) -> PathBuf {
    place.files.path(path)
}

/// Writes down what was there, writes the files, and forgets those of earlier times.
fn write(
    place: &Place,
    kept: &Kept,
    last: &str,
    sets: &[ChangeSet],
    force: bool,
) -> Result<(), Failure> {
    let mut foreign = Vec::new();
    let mut found = Vec::new();
    let mut files = Vec::new();
    for file in &kept.files {
        let text = kept_file::read(&place.files, &file.path)?;
        let is_ours = text.as_ref().is_some_and(|text| text.contains(MARK));
        if text.is_some() && !is_ours {
            foreign.push(file.path.clone());
        }
        // One of ours is no state to go back to: what it replaced is.
        let earlier = earlier_file(sets, &file.path).filter(|_| is_ours);
        files.push(KeptFile {
            path: file.path.clone(),
            before: earlier.map_or_else(|| text.clone(), |earlier| earlier.before.clone()),
            text: file.text.clone(),
        });
        found.push(text);
    }
    if !foreign.is_empty() && !force {
        return Err(Failure::Refused(format!(
            "nothing was written: {} is not linerate's; --force overwrites it, and --remove brings it back",
            foreign.join(", ")
        )));
    }
    if files.is_empty() {
        return Ok(());
    }
    let mut journal = place.state.append(last)?;
    let append = |journal: &mut linerate_tune::state_folder::JournalFile, entry: Entry| {
        journal.append(&entry).map_err(Failure::File)
    };
    append(
        &mut journal,
        Entry::Persisting {
            files: files.clone(),
        },
    )?;
    for (done, file) in files.iter().enumerate() {
        if let Err(error) = kept_file::write(&place.files, &file.path, &file.text) {
            let back = files[..done]
                .iter()
                .zip(&found)
                .try_for_each(|(file, text)| put(place, &file.path, text.as_deref()));
            let told = match back {
                Ok(()) => "the files are restored".to_owned(),
                Err(failure) => failure.to_string(),
            };
            let earlier = sets.iter().find(|set| set.snapshot.id == last);
            for entry in went_back(earlier.map_or(&[], |set| &set.files)) {
                append(&mut journal, entry)?;
            }
            return Err(Failure::File(format!("{error}; {told}")));
        }
    }
    append(&mut journal, Entry::Persisted)?;
    forget_earlier(place, sets, last, &files)
}

/// Files that another set's journal has: removed where this time did not write them again.
fn forget_earlier(
    place: &Place,
    sets: &[ChangeSet],
    last: &str,
    files: &[KeptFile],
) -> Result<(), Failure> {
    let earlier = sets.iter().filter(|set| !set.files.is_empty());
    for set in earlier {
        for file in &set.files {
            if !files.iter().any(|new| new.path == file.path) {
                as_before(place, file)?;
            }
        }
        if set.snapshot.id != last {
            let mut journal = place.state.append(&set.snapshot.id)?;
            journal.append(&Entry::Unpersisted).map_err(Failure::File)?;
        }
    }
    Ok(())
}

/// What these sets have of a file.
fn earlier_file<'a>(sets: &'a [ChangeSet], path: &str) -> Option<&'a KeptFile> {
    let mut files = sets.iter().rev().flat_map(|set| &set.files);
    files.find(|file| file.path == path)
}

/// How a journal tells that files which were to be written are as they were before.
fn went_back(earlier: &[KeptFile]) -> Vec<Entry> {
    if earlier.is_empty() {
        return vec![Entry::Unpersisted];
    }
    let files = earlier.to_vec();
    vec![Entry::Persisting { files }, Entry::Persisted]
}

/// Makes a file what it was before linerate wrote it.
fn as_before(place: &Place, file: &KeptFile) -> Result<(), Failure> {
    // One of ours is no state to go back to.
    let before = file.before.as_deref().filter(|text| !text.contains(MARK));
    put(place, &file.path, before)
}

fn put(place: &Place, name: &str, text: Option<&str>) -> Result<(), Failure> {
    match text {
        Some(text) => kept_file::write(&place.files, name, text)?,
        None => kept_file::remove(&place.files, name)?,
    }
    Ok(())
}

/// Files of which only some were written when the power went: all of them as they were before.
pub(super) fn finish_half(place: &Place, set: &mut ChangeSet) -> Result<(), Failure> {
    // A journal that is damaged keeps no other from being recovered.
    let others = place.state.ids()?.into_iter();
    let others = others.filter_map(|id| place.state.read(&id).ok());
    let others: Vec<ChangeSet> = others
        .filter(|one| one.snapshot.root == set.snapshot.root && one.snapshot.id != set.snapshot.id)
        .collect();
    for file in &set.files {
        let own = set.earlier_files.iter().find(|one| one.path == file.path);
        match own.or_else(|| earlier_file(&others, &file.path)) {
            Some(earlier) => put(place, &file.path, Some(&earlier.text))?,
            None => put(place, &file.path, file.before.as_deref())?,
        }
    }
    let mut journal = place.state.append(&set.snapshot.id)?;
    for entry in went_back(&set.earlier_files.clone()) {
        journal.append(&entry).map_err(Failure::File)?;
        // It names no step.
        let _ = set.follow(&entry);
    }
    Ok(())
}

/// Removes all of it, or says what would be removed.
fn remove(arguments: &PersistArguments, place: &Place, printer: &Printer) -> Result<(), Failure> {
    let mut sets = place.own_sets()?;
    sets.retain(|set| !set.files.is_empty());
    if !arguments.force {
        sets.iter().try_for_each(|set| refuse_changed(place, set))?;
    }
    let files = sets.iter().flat_map(|set| &set.files);
    let names: Vec<String> = files.map(|file| file.path.clone()).collect();
    if !arguments.dry_run {
        sets.iter_mut()
            .try_for_each(|set| remove_files(place, set))?;
    }
    let files = names.iter().map(|name| path(place, name));
    let files: Vec<String> = files.map(|path| path.display().to_string()).collect();
    let told = irqbalance::after_removal(&names);
    if arguments.json {
        let document = report::removed_document(!arguments.dry_run, &files, told.as_slice());
        return Ok(printer.json(&document)?);
    }
    if files.is_empty() {
        printer.line("Nothing was persisted.")?;
    }
    for path in files {
        let done = if arguments.dry_run {
            "would be removed"
        } else {
            "removed"
        };
        printer.line(&format!("{path}: {done}"))?;
    }
    if let Some(told) = told {
        printer.line(told)?;
    }
    Ok(())
}

/// Writes the files again without a set that was reverted, from what of them is still confirmed and runs; removes them
/// where nothing is. A set that came after the last persist is not taken along.
pub(super) fn write_without(
    place: &Place,
    reverted: &mut ChangeSet,
    printer: &Printer,
) -> Result<(), Failure> {
    let mut sets = place.own_sets()?;
    let Some(holder) = sets.iter().rposition(|set| !set.files.is_empty()) else {
        return Ok(());
    };
    sets.truncate(holder + 1);
    let kept = if persist::confirmed(&sets).is_empty() {
        Kept::default()
    } else {
        let (kept, last) = planned(None, place, &sets)?;
        write(place, &kept, &last, &sets, true)?;
        kept
    };
    if kept.files.is_empty() {
        for set in sets.iter_mut().filter(|set| !set.files.is_empty()) {
            remove_files(place, set)?;
        }
    }
    // It names no step.
    let _ = reverted.follow(&Entry::Unpersisted);
    for file in &kept.files {
        let (path, id) = (path(place, &file.path), &reverted.snapshot.id);
        printer.tell(&format!(
            "linerate: {}: written again without {id}",
            path.display()
        ));
    }
    for (object, why) in &kept.left_out {
        printer.tell(&format!(
            "linerate: {object} is not kept over a boot: {why}"
        ));
    }
    Ok(())
}

/// Refuses where somebody has changed a file since linerate wrote it.
pub(super) fn refuse_changed(place: &Place, set: &ChangeSet) -> Result<(), Failure> {
    let mut changed = Vec::new();
    for file in &set.files {
        let found = kept_file::read(&place.files, &file.path)?;
        let earlier = set.earlier_files.iter().find(|one| one.path == file.path);
        let is_known = found.is_none()
            || found.as_ref() == Some(&file.text)
            || found == file.before
            || earlier.is_some_and(|earlier| found.as_ref() == Some(&earlier.text));
        if !is_known {
            changed.push(file.path.clone());
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "nothing was changed: something else has changed {} since; --force overwrites or removes it anyway",
        changed.join(", ")
    )))
}

/// Makes the files of a set what they were before linerate wrote them.
pub(super) fn remove_files(place: &Place, set: &mut ChangeSet) -> Result<(), Failure> {
    for file in &set.files {
        as_before(place, file)?;
    }
    let mut journal = place.state.append(&set.snapshot.id)?;
    journal.append(&Entry::Unpersisted).map_err(Failure::File)?;
    // It names no step.
    let _ = set.follow(&Entry::Unpersisted);
    Ok(())
}
