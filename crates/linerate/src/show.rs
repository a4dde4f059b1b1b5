//! `linerate show`: a kept record, as it was reported when it was measured.

use std::path::Path;

use linerate_model::record::RunRecord;
use linerate_report::record;

use crate::action::Failure;
use crate::arguments::ShowRequest;
use crate::pictures::Pictures;
use crate::printer::Printer;
use crate::test;

/// Shows the record.
pub(crate) fn run(request: &ShowRequest, printer: &mut Printer) -> Result<(), Failure> {
    let run = read(&request.file)?;
    let mut pictures = Pictures::open(&request.pictures, Some(&request.file))?;
    let drawn = pictures.write(&run);
    test::show(&run, request.format, printer)?;
    drawn
}

/// Reads a kept record.
pub(crate) fn read(file: &Path) -> Result<RunRecord, Failure> {
    let path = file.display();
    let bytes = std::fs::read(file)
        .map_err(|error| Failure::File(format!("cannot read {path}: {error}")))?;
    record::from_json(&bytes).map_err(|error| Failure::File(format!("{path}: {error}")))
}
