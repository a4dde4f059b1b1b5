//! `linerate explain`: what another tool printed, or a kept record.

use std::io::Read;
use std::path::PathBuf;

use linerate_explain::transcript::explain;
use linerate_explain::{replication, same_share};
use linerate_model::transcript::Transcript;
use linerate_readers::{MOST_BYTES, capture, read};
use linerate_report::transcript;

use crate::action::Failure;
use crate::arguments::{ExplainArguments, Format};
use crate::printer::Printer;
use crate::show::{self, Shown};

/// What tells a packet capture from text, bytes.
const HEAD: u64 = 4;
/// A capture may be larger than memory and is read in pieces of so many bytes.
const PIECE: u64 = 1 << 20;

/// Reads every input, then says what each shows and what they show together.
pub(crate) fn run(arguments: &ExplainArguments, printer: &mut Printer) -> Result<(), Failure> {
    let mut transcripts: Vec<Transcript> = Vec::new();
    let (mut watched, mut observed, mut over_links) = (Vec::new(), Vec::new(), Vec::new());
    for input in arguments.inputs() {
        let (name, mut source) = open(input)?;
        let mut bytes = Vec::new();
        let cannot = |error: &std::io::Error| Failure::File(format!("cannot read {name}: {error}"));
        take(&mut source, &mut bytes, HEAD).map_err(|error| cannot(&error))?;
        if capture::is_capture(&bytes) {
            let mut reader = capture::Reader::new(&name);
            while !bytes.is_empty() {
                reader.push(&bytes);
                bytes.clear();
                take(&mut source, &mut bytes, PIECE).map_err(|error| cannot(&error))?;
            }
            transcripts.push(
                reader
                    .finish()
                    .map_err(|error| Failure::File(error.to_string()))?,
            );
            continue;
        }
        // One byte more than is read, so that the reader can refuse it by its size.
        take(&mut source, &mut bytes, MOST_BYTES as u64 + 1 - HEAD)
            .map_err(|error| cannot(&error))?;
        if is_record(&bytes) {
            match show::show(&name, &bytes, Format::of(arguments.json), printer)? {
                Shown::Disks(record) => watched.push(record),
                Shown::Connections(record) => observed.push(record),
                Shown::Test(directions) => over_links.extend(directions),
            }
            continue;
        }
        transcripts.push(read(&name, &bytes).map_err(|error| Failure::File(error.to_string()))?);
    }
    let mut reading = explain(transcripts, arguments.given());
    let together = replication::together(&watched, &observed, &reading.given);
    reading.together.extend(together);
    reading.together.extend(same_share::together(&over_links));
    if reading.transcripts.is_empty() && reading.together.is_empty() {
        return Ok(());
    }
    if arguments.json {
        printer.json(&transcript::document(&reading))?;
    } else {
        printer.print(&transcript::report(&reading))?;
    }
    Ok(())
}

/// A file or standard input, and the name that it goes by.
fn open(file: Option<&PathBuf>) -> Result<(String, Box<dyn Read>), Failure> {
    let Some(path) = file else {
        return Ok(("standard input".to_owned(), Box::new(std::io::stdin())));
    };
    let opened = std::fs::File::open(path);
    let opened = opened.map_err(|error| Failure::cannot("read", path, &error))?;
    Ok((path.display().to_string(), Box::new(opened)))
}

/// Appends at most `most` bytes; fewer only at the end.
fn take(source: &mut dyn Read, bytes: &mut Vec<u8>, most: u64) -> std::io::Result<()> {
    source.take(most).read_to_end(bytes).map(|_| ())
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
