//! What all tests use: processes that end with the test, folders, waiting for a condition.

mod bed;
pub(crate) mod copies;
mod disturbance;
mod hosts;
mod http;
mod lacking;
mod machine;
mod process;
pub(crate) mod raw;
pub(crate) mod rude;
mod server;
mod volume;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use linerate_analysis::ledger::Check;
use linerate_model::record::RunRecord;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use bed::Bed;
pub(crate) use copies::findings;
pub(crate) use disturbance::measured;
pub(crate) use hosts::{B, Host, Hosts};
pub(crate) use http::{exchange, get};
pub(crate) use lacking::{has, iperf3, lacks_a_lab, lacks_namespaces, lacks_programs, newest};
pub(crate) use machine::{alone, beside};
pub(crate) use process::{Done, Running, linerate, run, start, start_with};
pub(crate) use server::{Server, free_port};
pub(crate) use volume::{Loop, Volume};

/// The binary under test.
pub(crate) const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");
/// Debian's iperf3.
pub(crate) const IPERF3: &str = "iperf3";
/// No client that does as planned takes longer.
pub(crate) const LONG: Duration = Duration::from_secs(90);

/// A number that whoever started this asks for by a variable; `None` where it is not set, or empty.
pub(crate) fn asked(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value}")))
}

/// Says a figure, for whoever reads the log.
pub(crate) fn say(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}

/// Waits until something holds; false when it does not in time.
pub(crate) fn wait_until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A folder that ends with the test.
#[derive(Debug)]
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::with_prefix("linerate-it-").unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file.
    pub(crate) fn with(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// The records in it, in the order of their names.
    pub(crate) fn records(&self) -> Vec<RunRecord> {
        let mut files: Vec<PathBuf> = std::fs::read_dir(self.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .collect();
        files.sort();
        files.iter().map(|path| record(path)).collect()
    }
}

/// A text that acts on a terminal by each class of character, as a hostile peer would write it.
pub(crate) const HOSTILE: &str = "x\u{7}\u{1b}[2J\r\u{7f}\u{9b}31m\u{9d}0;t\u{9c}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\nforged";

/// No character of these classes is in the text, where lines may have ends and tabs.
#[track_caller]
pub(crate) fn assert_harmless(text: &str, what: &str) {
    let acts = |c: char| {
        let mark = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        mark || (c.is_control() && !matches!(c, '\n' | '\t'))
    };
    if let Some(at) = text.find(acts) {
        let around = text[..at].char_indices().rev().nth(60);
        let from = around.map_or(0, |(from, _)| from);
        let rest: String = text[from..].chars().take(120).collect();
        panic!("{what}: a raw character in {rest:?}");
    }
    let forged = text.lines().find(|line| line.starts_with("forged"));
    assert_eq!(forged, None, "{what}: a line was forged");
}

/// Reads a record.
pub(crate) fn record(path: &Path) -> RunRecord {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    linerate_report::record::from_json(&bytes).unwrap()
}

/// A number in a document, by its JSON pointer.
#[track_caller]
pub(crate) fn number(document: &Value, pointer: &str) -> u64 {
    let found = document.pointer(pointer);
    found
        .and_then(Value::as_u64)
        .unwrap_or_else(|| panic!("{pointer} is {found:?}"))
}

/// The equations of all directions.
pub(crate) fn checks(document: &Value) -> Vec<Check> {
    document["ledger"]["directions"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|page| serde_json::from_value::<Vec<Check>>(page["checks"].clone()).unwrap())
        .collect()
}

/// The ledger holds, and says so.
#[track_caller]
pub(crate) fn assert_balanced(document: &Value, what: &str) {
    let broken: Vec<Check> = checks(document)
        .into_iter()
        .filter(|check| !check.holds)
        .collect();
    assert!(broken.is_empty(), "{what}: {broken:?}");
    assert_eq!(document["ledger"]["balanced"], true, "{what}");
}
