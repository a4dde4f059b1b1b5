//! `linerate compare`: kept records side by side.

use std::path::{Path, PathBuf};

use linerate_analysis::evidence::Evidence;
use linerate_model::bounds::MAX_RECORD_BYTES;
use linerate_model::record::{RecordError, RunRecord};
use linerate_report::chart::Charts;
use linerate_report::compare::{self, Comparison, Grouped, Side};
use linerate_report::html::{self, Sheet};
use linerate_report::view::RunView;
use linerate_report::{json, record};

use crate::action::Failure;
use crate::arguments::CompareArguments;
use crate::input;
use crate::keep::{Keep, Kept};
use crate::printer::Printer;
use crate::report_files::refuse_one_file_for_two;
use crate::test;

/// Compares every file or folder with the first, or groups of all their records.
pub(crate) fn run(arguments: &CompareArguments, printer: &mut Printer) -> Result<(), Failure> {
    if let Some(key) = &arguments.by {
        return by(key, arguments, printer);
    }
    if arguments.paths.len() < 2 {
        return Err(Failure::Usage(
            "compare RECORD RECORD: it needs two records or folders; the runs of one folder are compared by a fact, as with \
             --by kernel"
                .to_owned(),
        ));
    }
    let kinds: Vec<Kind> = arguments
        .paths
        .iter()
        .map(|path| Kind::read(path))
        .collect::<Result<_, Failure>>()?;
    let sides: Vec<Side<'_>> = kinds
        .iter()
        .map(|kind| Side::of(&kind.name, kind.views.iter().collect()))
        .collect();
    let comparison = Comparison::of(&sides);
    let drawn = arguments
        .html
        .as_deref()
        .map_or(Ok(()), |path| draw(path, &kinds));
    if arguments.json {
        printer.json(&json::pretty(&comparison))?;
    } else {
        printer.print(&compare::report(&comparison, printer.style()))?;
    }
    drawn
}

/// Compares groups of the records.
fn by(key: &str, arguments: &CompareArguments, printer: &mut Printer) -> Result<(), Failure> {
    let mut views = Vec::new();
    for path in &arguments.paths {
        for file in files(path)? {
            // One record after the other: their samples are what takes memory.
            views.push(test::view(&Evidence::of(&run_of(&file)?)));
        }
    }
    let grouped = Grouped::of(key, &views, arguments.least)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    if arguments.json {
        printer.json(&json::pretty(&grouped))?;
    } else {
        printer.print(&compare::grouped_report(&grouped, printer.style()))?;
    }
    Ok(())
}

/// The runs of a file or of a folder.
struct Kind {
    name: String,
    files: Vec<PathBuf>,
    /// The first run's charts.
    charts: Charts,
    views: Vec<RunView>,
}

impl Kind {
    fn read(path: &Path) -> Result<Self, Failure> {
        let files = files(path)?;
        // One record after the other: their samples are what takes memory.
        let mut charts = None;
        let mut views = Vec::new();
        for file in &files {
            let run = run_of(file)?;
            let evidence = Evidence::of(&run);
            let view = test::view(&evidence);
            charts.get_or_insert_with(|| Charts::of(&view, &evidence));
            views.push(view);
        }
        let Some(charts) = charts else {
            return Err(no_record(path));
        };
        Ok(Self {
            name: path.display().to_string(),
            files,
            charts,
            views,
        })
    }
}

/// The file, or a folder's records in the order of their names.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: std::io::Error| Failure::cannot("read", path, &error);
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        // `lab grade --keep` puts what the path did beside each record.
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".json") && !name.ends_with(".path.json") {
            files.push(file);
        }
    }
    files.sort_unstable();
    if files.is_empty() {
        return Err(no_record(path));
    }
    Ok(files)
}

fn no_record(path: &Path) -> Failure {
    Failure::File(format!(
        "the folder {} contains no record: it needs a file whose name ends in .json",
        path.display()
    ))
}

fn run_of(path: &Path) -> Result<RunRecord, Failure> {
    let name = path.display();
    let bytes = input::read(path, MAX_RECORD_BYTES)?;
    record::from_json(&bytes).map_err(|error| {
        let hint = match error {
            RecordError::NotARecord { .. } => {
                "; what other tools printed is compared by `linerate explain A B`"
            }
            RecordError::Newer { .. } | RecordError::TooLarge { .. } => "",
        };
        Failure::File(format!("{name}: {error}{hint}"))
    })
}

/// Writes the page with the charts of each kind's first run side by side.
fn draw(path: &Path, kinds: &[Kind]) -> Result<(), Failure> {
    let records = kinds.iter().flat_map(|kind| &kind.files);
    for record in records {
        refuse_one_file_for_two(&[("a record".to_owned(), record), ("--html".to_owned(), path)])?;
    }
    let mut file = Keep::open(path, Kept::Report("html"))?;
    let kept: Vec<String> = kinds
        .iter()
        .map(|kind| kind.files[0].display().to_string())
        .collect();
    let sides: Vec<html::Side<'_>> = kinds
        .iter()
        .zip(&kept)
        .filter_map(|(kind, kept)| {
            let (view, more) = kind.views.split_first()?;
            let sheet = Sheet {
                view,
                charts: &kind.charts,
                kept: Some(kept),
            };
            Some(html::Side {
                label: &kind.name,
                sheet,
                more,
            })
        })
        .collect();
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
    let title = format!("Comparison of {}", names.join(", "));
    file.write(html::comparison(&title, &[], &sides).as_bytes())
}
