//! `linerate explain`: what another tool printed, or a kept record.

use std::io::Read as _;
use std::path::Path;

use linerate_explain::transcript::explain;
use linerate_model::transcript::Transcript;
use linerate_readers::{MOST_BYTES, read};
use linerate_report::transcript;

use crate::action::Failure;
use crate::arguments::{ExplainRequest, Format};
use crate::printer::Printer;
use crate::show;

/// Reads every input, then says what each shows and what they show together.
pub(crate) fn run(request: &ExplainRequest, printer: &mut Printer) -> Result<(), Failure> {
    let mut transcripts: Vec<Transcript> = Vec::new();
    for input in &request.inputs {
        let (name, bytes) = bytes(input.as_deref())?;
        if is_record(&bytes) {
            show::show(&name, &bytes, request.format, printer)?;
            continue;
        }
        transcripts.push(read(&name, &bytes).map_err(|error| Failure::File(error.to_string()))?);
    }
    if transcripts.is_empty() {
        return Ok(());
    }
    let reading = explain(transcripts, request.given.clone());
    match request.format {
        Format::Text => printer.print(&transcript::report(&reading))?,
        Format::Json | Format::JsonStream => printer.line(&transcript::document(&reading))?,
    }
    Ok(())
}

/// A file's bytes or standard input's, and the name that they go by.
fn bytes(file: Option<&Path>) -> Result<(String, Vec<u8>), Failure> {
    let Some(path) = file else {
        let name = "standard input".to_owned();
        let mut bytes = Vec::new();
        // One byte more than is read, so that the reader can refuse it by its size.
        std::io::stdin()
            .take(MOST_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::File(format!("cannot read {name}: {error}")))?;
        return Ok((name, bytes));
    };
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::File(format!("cannot read {}: {error}", path.display())))?;
    Ok((path.display().to_string(), bytes))
}

/// Whether the bytes are linerate's own record: a JSON object with its version.
fn is_record(bytes: &[u8]) -> bool {
    let start = bytes.iter().position(|byte| !byte.is_ascii_whitespace());
    let head = &bytes[start.unwrap_or(0)..];
    head.first() == Some(&b'{')
        && head
            .get(..4096)
            .unwrap_or(head)
            .windows(16)
            .any(|word| word == b"\"schema_version\"")
}
