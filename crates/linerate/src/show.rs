//! `linerate show`: a kept record, as it was reported when it was measured.

use linerate_model::record::{Kind, RunRecord};
use linerate_report::{observation, record};

use crate::action::Failure;
use crate::arguments::{Format, ShowRequest};
use crate::observe;
use crate::printer::Printer;
use crate::test;

/// Shows the record.
pub(crate) fn run(request: &ShowRequest, printer: &mut Printer) -> Result<(), Failure> {
    let path = request.file.display();
    let bytes = std::fs::read(&request.file)
        .map_err(|error| Failure::File(format!("cannot read {path}: {error}")))?;
    show(&path.to_string(), &bytes, request.format, printer)
}

/// Shows a record of any kind.
pub(crate) fn show(
    name: &str,
    bytes: &[u8],
    format: Format,
    printer: &Printer,
) -> Result<(), Failure> {
    let unreadable =
        |error: linerate_model::record::RecordError| Failure::File(format!("{name}: {error}"));
    if record::kind_of(bytes) == Some(Kind::Observation) {
        let seen = observation::from_json(bytes).map_err(unreadable)?;
        return observe::show(&seen, format, printer);
    }
    let run: RunRecord = record::from_json(bytes).map_err(unreadable)?;
    test::show(&run, format, printer)
}
