//! `linerate show`: a kept record, as it was reported when it was measured.

use std::path::Path;

use linerate_analysis::evidence::Evidence;
use linerate_explain::same_share::{OverLink, over_link};
use linerate_model::bounds::MAX_RECORD_BYTES;
use linerate_model::disk_watch::DiskWatch;
use linerate_model::observation::Observation;
use linerate_model::record::{Kind, RunRecord};
use linerate_report::{disk_watch, observation, record};

use crate::action::Failure;
use crate::arguments::{Format, ShowArguments};
use crate::disk;
use crate::input;
use crate::observe;
use crate::printer::Printer;
use crate::report_files::OpenFiles;
use crate::test;

pub(crate) fn run(arguments: &ShowArguments, printer: &mut Printer) -> Result<(), Failure> {
    let format = Format::of(arguments.json);
    let bytes = input::read(&arguments.file, MAX_RECORD_BYTES)?;
    let other = match record::kind_of(&bytes) {
        Some(Kind::Observation) => Some("an observation"),
        Some(Kind::DiskWatch) => Some("a record of disks"),
        _ => None,
    };
    if let Some(kind) = other {
        arguments.files.refuse(kind)?;
        let name = arguments.file.display().to_string();
        return show(&name, &bytes, format, printer).map(drop);
    }
    let run = parsed(&arguments.file, &bytes)?;
    let mut files = OpenFiles::open(&arguments.files, Some(&arguments.file))?;
    let evidence = Evidence::of(&run);
    let view = test::view(&evidence);
    let written = files.write(&view, &evidence);
    test::print(&view, &run, format, arguments.full, printer)?;
    written
}

/// Reads a kept record of a test.
pub(crate) fn read(file: &Path) -> Result<RunRecord, Failure> {
    parsed(file, &input::read(file, MAX_RECORD_BYTES)?)
}

fn parsed(file: &Path, bytes: &[u8]) -> Result<RunRecord, Failure> {
    record::from_json(bytes).map_err(|error| Failure::File(format!("{}: {error}", file.display())))
}

/// What was shown, for those who say more of several.
pub(crate) enum Shown {
    Test(Vec<OverLink>),
    Connections(Observation),
    Disks(DiskWatch),
}

/// Shows a record of any kind.
pub(crate) fn show(
    name: &str,
    bytes: &[u8],
    format: Format,
    printer: &Printer,
) -> Result<Shown, Failure> {
    let unreadable =
        |error: linerate_model::record::RecordError| Failure::File(format!("{name}: {error}"));
    if record::kind_of(bytes) == Some(Kind::Observation) {
        let seen = observation::from_json(bytes).map_err(unreadable)?;
        observe::show(&seen, format, printer)?;
        return Ok(Shown::Connections(seen));
    }
    if record::kind_of(bytes) == Some(Kind::DiskWatch) {
        let seen = disk_watch::from_json(bytes).map_err(unreadable)?;
        disk::show(&seen, format, printer)?;
        return Ok(Shown::Disks(seen));
    }
    let run: RunRecord = record::from_json(bytes).map_err(unreadable)?;
    let evidence = Evidence::of(&run);
    let view = test::view(&evidence);
    test::print(&view, &run, format, false, printer)?;
    let findings = linerate_explain::explain(&evidence);
    Ok(Shown::Test(over_link(name, &evidence, &findings)))
}
