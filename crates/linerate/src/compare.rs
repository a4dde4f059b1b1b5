//! `linerate compare`: kept records side by side.

use std::path::{Path, PathBuf};

use linerate_explain::explain;
use linerate_model::evidence::Evidence;
use linerate_report::compare::{self, Comparison, Side};
use linerate_report::record;
use linerate_report::view::RunView;

use crate::action::Failure;
use crate::arguments::{CompareRequest, Format};
use crate::printer::Printer;

/// Compares every file or folder with the first.
pub(crate) fn run(request: &CompareRequest, printer: &mut Printer) -> Result<(), Failure> {
    let sides: Vec<(String, Vec<RunView>)> = request
        .paths
        .iter()
        .map(|path| Ok((path.display().to_string(), views(path)?)))
        .collect::<Result<_, Failure>>()?;
    let sides: Vec<Side<'_>> = sides
        .iter()
        .map(|(name, views)| Side::of(name, views.iter().collect()))
        .collect();
    let comparison = Comparison::of(&sides);
    match request.format {
        Format::Text => printer.print(&compare::report(&comparison, printer.style()))?,
        Format::Json | Format::JsonStream => printer.line(&compare::document(&comparison))?,
    }
    Ok(())
}

/// The run of a file, or the runs of a folder's records.
fn views(path: &Path) -> Result<Vec<RunView>, Failure> {
    let failed =
        |error: std::io::Error| Failure::File(format!("cannot read {}: {error}", path.display()));
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![view(path)?]);
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(Failure::File(format!(
            "the folder {} holds no record: a file of it whose name ends in .json is wanted",
            path.display()
        )));
    }
    files.sort_unstable();
    files.iter().map(|file| view(file)).collect()
}

fn view(path: &Path) -> Result<RunView, Failure> {
    let name = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::File(format!("cannot read {name}: {error}")))?;
    let run = record::from_json(&bytes).map_err(|error| {
        Failure::File(format!(
            "{name}: {error}; what other tools printed is compared by `linerate explain A B`"
        ))
    })?;
    Ok(RunView::of(&run, &explain(&Evidence::of(&run))))
}
