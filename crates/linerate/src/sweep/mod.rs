//! `linerate sweep`: every combination of factors, measured.

pub(crate) mod arguments;
mod folder;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use linerate_experiment::measured::Measured;
use linerate_experiment::sweep::{self, Course, Results, Row, Sweep, Turn};
use linerate_kernel::clock;
use linerate_model::words;
use linerate_report::bars;

use crate::action::Failure;
use crate::input;
use crate::place::{self, Gave, HostPlace, Pace, Place, Wanted};
use crate::printer::Printer;
use crate::prove::said;
use crate::tune::claim;
use arguments::SweepArguments;
use folder::{Folder, Texts};

pub(crate) fn run(arguments: &SweepArguments, printer: &Printer) -> Result<(), Failure> {
    if let Some(folder) = &arguments.show {
        return show(folder, arguments, printer);
    }
    let file = arguments.file.as_deref().unwrap_or(Path::new("-"));
    let (sweep, texts) = read(file)?;
    check_tests(&sweep)?;
    if arguments.dry_run {
        return dry_run(&sweep, printer);
    }
    let folder = arguments
        .output
        .clone()
        .unwrap_or_else(|| default_folder(file));
    let folder = Folder::at(&folder);
    // Two at once would measure each other's traffic, and mix their runs.
    let _lock = folder.lock()?;
    folder.begin(&texts)?;
    let rows = folder.rows()?;
    let mut course = Course::new(&sweep, rows);
    announce(&sweep, &course, &folder, printer);
    let stopped = if course.upcoming().is_some() {
        let wishes = sweep.cells.iter().flat_map(|setup| &setup.wishes);
        let lock = || claim(arguments.state.as_deref());
        let mut place = place::of(sweep.peer.as_deref(), wishes, lock)?;
        measure(&sweep, &mut course, &folder, place.as_mut(), printer)?
    } else {
        false
    };
    let results = sweep::results(&sweep, course.rows(), course.left());
    keep(&sweep, &results, course.rows(), &folder)?;
    print(&sweep, &results, course.rows(), arguments, printer)?;
    printer.tell(&format!(
        "Table, runs.csv, results.json and charts are in {}",
        folder.path().display()
    ));
    if stopped {
        return Err(Failure::Incomplete(format!(
            "the sweep was stopped with {} runs left; the same command continues it",
            results.left
        )));
    }
    Ok(())
}

/// Reads a sweep and the profiles that it names, which lie beside it.
fn read(file: &Path) -> Result<(Sweep, Texts), Failure> {
    let name = file.display().to_string();
    let text = input::text(file, input::WRITTEN)?;
    let beside = file.parent().unwrap_or(Path::new("")).to_path_buf();
    let profiles: RefCell<BTreeMap<String, String>> = RefCell::default();
    let load = |profile: &str| {
        let path = beside.join(profile);
        let text = input::string(&path, input::WRITTEN)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        profiles
            .borrow_mut()
            .insert(profile.to_owned(), text.clone());
        Ok(text)
    };
    let sweep =
        Sweep::parse(&name, &text, &load).map_err(|error| Failure::Usage(error.to_string()))?;
    let texts = Texts {
        file: name,
        text,
        profiles: profiles.take(),
    };
    Ok((sweep, texts))
}

fn default_folder(file: &Path) -> PathBuf {
    let folder = file.with_extension("");
    if folder == file {
        file.with_extension("sweep")
    } else {
        folder
    }
}

/// Every cell's test is one that can be made.
fn check_tests(sweep: &Sweep) -> Result<(), Failure> {
    let peer = sweep.peer.as_deref().unwrap_or("192.0.2.1");
    for (cell, setup) in sweep.cells.iter().enumerate() {
        HostPlace::request(peer, &setup.words).map_err(|failure| {
            Failure::Usage(format!(
                "{} ({}): {failure}",
                sweep.name,
                sweep.words_of(cell)
            ))
        })?;
    }
    Ok(())
}

fn dry_run(sweep: &Sweep, printer: &Printer) -> Result<(), Failure> {
    for (cell, setup) in sweep.cells.iter().enumerate() {
        let wishes: Vec<String> = setup
            .wishes
            .iter()
            .map(|wish| format!("{} = {}", wish.object, wish.value))
            .collect();
        let why = words::with(setup.impossible.as_ref(), |why| {
            format!("; impossible: {why}")
        });
        printer.line(&format!(
            "{}: linerate test {}; {}{why}",
            sweep.words_of(cell),
            setup.words.join(" "),
            if wishes.is_empty() {
                "nothing is set".to_owned()
            } else {
                wishes.join(", ")
            }
        ))?;
    }
    printer.tell(&format!(
        "{} cells, {} repetitions: {} runs; nothing was measured",
        sweep.cells.len(),
        sweep.repetitions,
        sweep.runs()
    ));
    Ok(())
}

fn announce(sweep: &Sweep, course: &Course<'_>, folder: &Folder, printer: &Printer) {
    let made = sweep.runs().saturating_sub(course.left());
    let before = if made > 0 {
        format!(", {made} of which are there already")
    } else {
        String::new()
    };
    printer.tell(&format!(
        "{}: {} cells, {} repetitions, {} runs{before}; kept in {}. Ctrl-C stops it, and the same command continues \
         it.",
        sweep.name,
        sweep.cells.len(),
        sweep.repetitions,
        sweep.runs(),
        folder.path().display()
    ));
}

/// Makes the runs; whether the user stopped it.
fn measure(
    sweep: &Sweep,
    course: &mut Course<'_>,
    folder: &Folder,
    place: &mut dyn Place,
    printer: &Printer,
) -> Result<bool, Failure> {
    let mut runs = folder.open()?;
    let mut pace = Pace::default();
    let of = sweep.runs();
    // Ends: each turn makes a run, of which there are at most three times those that are wanted.
    while let Some(turn) = course.upcoming() {
        let begun = clock::monotonic();
        let Some(row) = row(sweep, turn, place)? else {
            return Ok(true);
        };
        if row.impossible.is_none() {
            pace.took(clock::monotonic().since(begun));
        }
        runs.add(&row)?;
        let said = row
            .impossible
            .as_ref()
            .map_or_else(|| said(&row.measured), |why| format!("impossible: {why}"));
        course.took(row);
        let left = course.left();
        printer.tell(&format!(
            "  {} of {of}: {}: {said}{}",
            of.saturating_sub(left),
            sweep.words_of(turn.cell),
            pace.left(left)
        ));
    }
    Ok(false)
}

/// A run; `None` where the user wants no more.
fn row(sweep: &Sweep, turn: Turn, place: &mut dyn Place) -> Result<Option<Row>, Failure> {
    let setup = &sweep.cells[turn.cell];
    let mut row = Row {
        cell: turn.cell,
        repetition: turn.repetition,
        attempt: turn.attempt,
        started_at_unix_ms: place::unix_ms(),
        impossible: setup.impossible.clone(),
        measured: Measured::default(),
    };
    if row.impossible.is_some() {
        return Ok(Some(row));
    }
    let gave = place.measure(Wanted {
        wishes: &setup.wishes,
        words: &setup.words,
        scenario: setup.scenario.as_ref(),
        seed: sweep.seed.wrapping_add(u64::from(turn.repetition)) & (u64::MAX >> 1),
    })?;
    match gave {
        Gave::Measured(measured) => row.measured = *measured,
        Gave::Impossible(why) => row.impossible = Some(why),
        Gave::Stopped => return Ok(None),
    }
    Ok(Some(row))
}

/// Writes what is made of the runs.
fn keep(sweep: &Sweep, results: &Results, rows: &[Row], folder: &Folder) -> Result<(), Failure> {
    folder.write("table.txt", &sweep::table(results))?;
    folder.write("runs.csv", &sweep::csv(sweep, rows))?;
    folder.write("results.json", &format!("{}\n", document(results)))?;
    for (number, figure) in (1..).zip(sweep::figure(sweep, results)) {
        let name = match number {
            1 => "chart.svg".to_owned(),
            number => format!("chart-{number}.svg"),
        };
        folder.write(&name, &bars::svg(&figure))?;
    }
    Ok(())
}

fn document(results: &Results) -> serde_json::Value {
    serde_json::json!({
        "software": linerate_model::record::Software::this_program(),
        "sweep": results,
    })
}

fn print(
    sweep: &Sweep,
    results: &Results,
    rows: &[Row],
    arguments: &SweepArguments,
    printer: &Printer,
) -> Result<(), Failure> {
    if arguments.json {
        printer.json(&document(results).to_string())?;
    } else if arguments.csv {
        printer.print(&sweep::csv(sweep, rows))?;
    } else {
        printer.print(&sweep::table(results))?;
    }
    Ok(())
}

/// Shows what a folder holds, computed again from its runs.
fn show(folder: &Path, arguments: &SweepArguments, printer: &Printer) -> Result<(), Failure> {
    let folder = Folder::at(folder);
    let texts = folder.texts()?.ok_or_else(|| {
        Failure::File(format!(
            "{} contains no sweep: sweep.json is missing",
            folder.path().display()
        ))
    })?;
    let load = |profile: &str| {
        let text = texts.profiles.get(profile).cloned();
        text.ok_or_else(|| "the folder does not contain it".to_owned())
    };
    let sweep = Sweep::parse(&texts.file, &texts.text, &load)
        .map_err(|error| Failure::File(error.to_string()))?;
    let course = Course::new(&sweep, folder.rows()?);
    let results = sweep::results(&sweep, course.rows(), course.left());
    print(&sweep, &results, course.rows(), arguments, printer)
}
