//! A sweep's folder: what it was begun with, a line for each run, and what is made of them.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use linerate_experiment::sweep::{self, Row};
use serde::{Deserialize, Serialize};

use crate::action::Failure;
use crate::input;

/// What the sweep was begun with.
const BEGUN: &str = "sweep.json";
/// Held by the process that measures, with its id in it.
const LOCK: &str = "lock";
/// The runs, a line each; only ever added to.
const RUNS: &str = "runs.jsonl";

/// The texts that a sweep was read from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Texts {
    /// The file's name, as it was typed.
    pub(super) file: String,
    /// Its text.
    pub(super) text: String,
    /// The profiles that it names, with their texts.
    pub(super) profiles: BTreeMap<String, String>,
}

/// The folder.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(super) fn at(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the folder for this process, until what comes back is dropped or the process ends; makes it where it is not
    /// there. A second process does not wait.
    pub(super) fn lock(&self) -> Result<File, Failure> {
        fs::create_dir_all(&self.path)
            .map_err(|error| failed("make the folder", &self.path, &error))?;
        let path = self.path.join(LOCK);
        let fail = |error: std::io::Error| failed("lock", &path, &error);
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(fail)?;
        if !linerate_kernel::file::try_lock(&file).map_err(fail)? {
            let mut holder = String::new();
            // Written right after the lock was had: in between there is none to name.
            drop((&file).take(64).read_to_string(&mut holder));
            let holder = match holder.trim() {
                "" => String::new(),
                id => format!(" (process {id})"),
            };
            return Err(Failure::Usage(format!(
                "another sweep{holder} measures into {}: wait for its end, or give this one another folder with -o",
                self.path.display()
            )));
        }
        file.set_len(0)
            .and_then(|()| write!(file, "{}", std::process::id()))
            .map_err(fail)?;
        Ok(file)
    }

    /// What it was begun with; `None` where nothing was.
    pub(super) fn texts(&self) -> Result<Option<Texts>, Failure> {
        let file = self.path.join(BEGUN);
        let bytes = match input::bytes(&file, input::NOTED) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &file, &error)),
        };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| failed("understand", &file, &error))
    }

    /// Begins a sweep here, or goes on with one that was begun with the same texts.
    pub(super) fn begin(&self, texts: &Texts) -> Result<(), Failure> {
        let Some(kept) = self.texts()? else {
            return self.write(BEGUN, &serde_json::json!(texts).to_string());
        };
        let folder = self.path.display().to_string();
        let same = |file: &str, kept: &str, now: &str| {
            sweep::changed(file, &folder, kept, now)
                .map_err(|error| Failure::Usage(error.to_string()))
        };
        same(&texts.file, &kept.text, &texts.text)?;
        for (name, text) in &texts.profiles {
            let empty = String::new();
            same(name, kept.profiles.get(name).unwrap_or(&empty), text)?;
        }
        Ok(())
    }

    /// The runs that were made. A last line that was cut short by the end of the machine is taken away.
    pub(super) fn rows(&self) -> Result<Vec<Row>, Failure> {
        let file = self.path.join(RUNS);
        let text = match input::string(&file, input::NOTED) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed("read", &file, &error)),
        };
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let rows = text[..whole].lines().enumerate().map(|(number, line)| {
            serde_json::from_str(line).map_err(|error| {
                failed(&format!("understand line {} of", number + 1), &file, &error)
            })
        });
        rows.collect()
    }

    /// Opens the runs for more of them.
    pub(super) fn open(&self) -> Result<Runs, Failure> {
        let path = self.path.join(RUNS);
        let fail = |error: std::io::Error| failed("open", &path, &error);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(fail)?;
        let text = input::bytes(&path, input::NOTED).map_err(fail)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n');
        let whole = whole.map_or(0, |end| end as u64 + 1);
        if whole < text.len() as u64 {
            file.set_len(whole).map_err(fail)?;
        }
        Ok(Runs { path, file })
    }

    /// Writes one of the files that are made of the runs, whole or not at all.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.path.join(name);
        let new = self.path.join(format!(".{name}.new"));
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        write().map_err(|error| failed("write", &path, &error))
    }
}

/// The runs, open for more.
#[derive(Debug)]
pub(super) struct Runs {
    path: PathBuf,
    file: File,
}

impl Runs {
    /// Adds one; it is on disk when this returns.
    pub(super) fn add(&mut self, row: &Row) -> Result<(), Failure> {
        let line = format!("{}\n", serde_json::json!(row));
        let add = self
            .file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_data());
        add.map_err(|error| failed("add a run to", &self.path, &error))
    }
}

fn failed(what: &str, path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::File(format!("cannot {what} {}: {error}", path.display()))
}
