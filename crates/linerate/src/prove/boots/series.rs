//! The folder of a series: what it was begun with, and its journal, each line of which is on disk before what it announces
//! is done.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use linerate_experiment::boots::{Boots, Entry};
use linerate_kernel::file;
use serde::{Deserialize, Serialize};

use super::entry::Entries;
use crate::action::Failure;
use crate::input;
use crate::keep::replace;

const SERIES: &str = "series.json";
const JOURNAL: &str = "journal.jsonl";
/// A series of a hundred pairs, every run made three times, has a fifth of it.
const MOST: usize = 16 << 20;

/// What a series was begun with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Series {
    /// Tells its boots from those of others.
    pub(super) id: String,
    pub(super) entries: Entries,
    /// The host that tests go to; absent = this host, over loopback.
    pub(super) peer: Option<String>,
    /// Arguments of `linerate test`.
    pub(super) words: Vec<String>,
    /// No test starts earlier after a boot, s.
    pub(super) settle_s: u32,
}

/// Eight digits of the kernel's random ids.
pub(super) fn new_id() -> Result<String, Failure> {
    let path = Path::new("/proc/sys/kernel/random/uuid");
    let id = fs::read_to_string(path).map_err(|error| Failure::cannot("read", path, &error))?;
    Ok(id.chars().take(8).collect())
}

/// Where a series is kept.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// A new series with its first line. One that is over is replaced.
    pub(super) fn begin(&self, series: &Series, first: &Entry) -> Result<JournalFile, Failure> {
        if let Some((_, entries)) = self.look()?
            && !Boots::of(&entries).is_ok_and(|boots| boots.is_over())
        {
            return Err(Failure::Refused(format!(
                "a series of boots is under way in {}: `linerate prove --boots-show` shows it, --boots-cancel ends it",
                self.0.display()
            )));
        }
        let fail = |error: std::io::Error| Failure::cannot("make", &self.0, &error);
        fs::create_dir_all(&self.0).map_err(fail)?;
        let journal = self.0.join(JOURNAL);
        match fs::remove_file(&journal) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::cannot("remove", &journal, &error));
            }
            _ => {}
        }
        let begun = self.0.join(SERIES);
        replace(&begun, serde_json::json!(series).to_string().as_bytes())
            .map_err(|error| Failure::cannot("write", &begun, &error))?;
        let mut journal = JournalFile::open(&journal, true)?;
        journal.write(first).map_err(Failure::File)?;
        let folder = File::open(&self.0).and_then(|folder| folder.sync_all());
        folder.map_err(fail)?;
        Ok(journal)
    }

    /// The series that is kept here, for this process to go on with.
    pub(super) fn open(&self) -> Result<Option<(Series, JournalFile)>, Failure> {
        let Some(series) = self.series()? else {
            return Ok(None);
        };
        let journal = JournalFile::open(&self.0.join(JOURNAL), false)?;
        Ok(Some((series, journal)))
    }

    /// The same to look at, whoever goes on with it.
    pub(super) fn look(&self) -> Result<Option<(Series, Vec<Entry>)>, Failure> {
        let Some(series) = self.series()? else {
            return Ok(None);
        };
        let journal = self.0.join(JOURNAL);
        let bytes = input::read(&journal, MOST)?;
        Ok(Some((series, entries(&journal, &bytes)?.0)))
    }

    fn series(&self) -> Result<Option<Series>, Failure> {
        let path = self.0.join(SERIES);
        if !path.exists() || !self.0.join(JOURNAL).exists() {
            return Ok(None);
        }
        let bytes = input::read(&path, MOST)?;
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| Failure::cannot("understand", &path, &error))
    }
}

/// The entries of whole lines, and how many bytes these have: a line that was cut did not happen.
fn entries(path: &Path, bytes: &[u8]) -> Result<(Vec<Entry>, usize), Failure> {
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let lines = bytes[..whole].split(|byte| *byte == b'\n');
    let entries = lines
        .filter(|line| !line.is_empty())
        .map(serde_json::from_slice)
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::cannot("understand", path, &error))?;
    Ok((entries, whole))
}

/// A journal that this process alone writes.
#[derive(Debug)]
pub(super) struct JournalFile {
    path: PathBuf,
    file: File,
}

impl JournalFile {
    fn open(path: &Path, new: bool) -> Result<Self, Failure> {
        let fail = |error: std::io::Error| Failure::cannot("open the journal", path, &error);
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(new)
            .mode(0o600)
            .open(path)
            .map_err(fail)?;
        if !file::try_lock(&file).map_err(fail)? {
            return Err(Failure::Refused(format!(
                "another linerate goes on with the series of {}: wait for its end",
                path.display()
            )));
        }
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// The lines until now; one that was cut is taken away.
    pub(super) fn entries(&mut self) -> Result<Vec<Entry>, Failure> {
        let fail = |error: std::io::Error| Failure::cannot("read the journal", &self.path, &error);
        let file = File::open(&self.path).map_err(fail)?;
        let mut bytes = Vec::new();
        file.take(MOST as u64)
            .read_to_end(&mut bytes)
            .map_err(fail)?;
        let (entries, whole) = entries(&self.path, &bytes)?;
        self.file.set_len(whole as u64).map_err(fail)?;
        Ok(entries)
    }

    /// Writes a line, and has it on disk.
    pub(super) fn write(&mut self, entry: &Entry) -> Result<(), String> {
        let mut line = serde_json::json!(entry).to_string();
        line.push('\n');
        let written = self.file.write_all(line.as_bytes());
        written
            .and_then(|()| self.file.sync_data())
            .map_err(|error| format!("cannot write the journal {}: {error}", self.path.display()))
    }
}
