//! The journal of a roll-out as a file: each line is on disk before what it announces is done.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use linerate_kernel::{clock, file, process};
use linerate_watch::roll_out::{Entry, RollOut, line, read};

use crate::action::Failure;

/// No journal is longer, bytes.
const MOST: u64 = 256 << 20;

/// A journal that this process writes.
#[derive(Debug)]
pub(super) struct JournalFile {
    path: PathBuf,
    file: File,
}

impl JournalFile {
    /// A new one, with its first line.
    pub(super) fn create(path: &Path, first: &Entry) -> Result<Self, Failure> {
        let fail = |error: std::io::Error| Failure::cannot("make the journal", path, &error);
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        fs::create_dir_all(folder).map_err(fail)?;
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(fail)?;
        let mut journal = Self {
            path: path.to_owned(),
            file,
        };
        journal.claim()?;
        journal.write(first)?;
        let folder = File::open(folder).map_err(fail)?;
        folder.sync_all().map_err(fail)?;
        Ok(journal)
    }

    /// One that an earlier run wrote, and the roll-out as it left it.
    pub(super) fn of_earlier(path: &Path) -> Result<(Self, RollOut), Failure> {
        let fail = |error: std::io::Error| Failure::cannot("read the journal", path, &error);
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(path)
            .map_err(fail)?;
        let journal = Self {
            path: path.to_owned(),
            file,
        };
        journal.claim()?;
        let mut text = String::new();
        (&journal.file)
            .take(MOST)
            .read_to_string(&mut text)
            .map_err(fail)?;
        let damaged = |error| Failure::File(format!("{}: {error}", path.display()));
        let entries = read(&text).map_err(damaged)?;
        let roll_out = RollOut::of_journal(&entries).map_err(damaged)?;
        // A line that was cut did not happen.
        let length = u64::try_from(entries.bytes).unwrap_or(u64::MAX);
        journal.file.set_len(length).map_err(fail)?;
        Ok((journal, roll_out))
    }

    /// No two runs go on with the same roll-out.
    fn claim(&self) -> Result<(), Failure> {
        let fail = |error| Failure::cannot("lock the journal", &self.path, &error);
        if file::try_lock(&self.file).map_err(fail)? {
            return Ok(());
        }
        Err(Failure::Refused(format!(
            "another linerate goes on with {}: wait for its end",
            self.path.display()
        )))
    }

    /// Writes a line, and has it on disk.
    pub(super) fn write(&mut self, entry: &Entry) -> Result<(), Failure> {
        let written = self.file.write_all(line(entry).as_bytes());
        written
            .and_then(|()| self.file.sync_data())
            .map_err(|error| {
                Failure::File(format!(
                    "cannot write the journal {}: {error}; hosts that wait for their confirmation roll themselves back",
                    self.path.display()
                ))
            })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Where journals are where nobody says it.
pub(super) fn usual_path() -> Result<PathBuf, Failure> {
    let folder = |name: &str| std::env::var_os(name).filter(|folder| !folder.is_empty());
    let state = folder("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(folder("HOME")?).join(".local/state")));
    let state = state.ok_or_else(|| {
        Failure::Usage(
            "neither XDG_STATE_HOME nor HOME is set: --journal FILE names the journal".to_owned(),
        )
    })?;
    let date = process::local_label(clock::wall(), "%Y%m%d-%H%M%S");
    Ok(state
        .join("linerate/roll-outs")
        .join(format!("{date}.jsonl")))
}
