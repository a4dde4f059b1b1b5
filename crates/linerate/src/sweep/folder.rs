//! A sweep's folder: what it was begun with, a line for each run, and what is made of them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use linerate_experiment::sweep::{self, Row};
use linerate_kernel::directory::{Access, Directory};
use serde::{Deserialize, Serialize};

use crate::action::Failure;
use crate::input;
use crate::keep::replace;

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
    pub(super) text: String,
    /// The profiles that it names, with their texts.
    pub(super) profiles: BTreeMap<String, String>,
}

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
            .map_err(|error| Failure::cannot("make the folder", &self.path, &error))?;
        let path = self.path.join(LOCK);
        let fail = |error: io::Error| Failure::cannot("lock", &path, &error);
        let mut file = self.file(LOCK, Access::CHANGE.or_make()).map_err(fail)?;
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
        let Some(bytes) = self.read(BEGUN)? else {
            return Ok(None);
        };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| Failure::cannot("understand", &file, &error))
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
        let Some(bytes) = self.read(RUNS)? else {
            return Ok(Vec::new());
        };
        let text = str::from_utf8(&bytes[..whole_lines(&bytes)])
            .map_err(|error| Failure::cannot("understand", &file, &error))?;
        let rows = text.lines().enumerate().map(|(number, line)| {
            serde_json::from_str(line).map_err(|error| {
                Failure::cannot(&format!("understand line {} of", number + 1), &file, &error)
            })
        });
        rows.collect()
    }

    /// Opens the runs for more of them.
    pub(super) fn open(&self) -> Result<Runs, Failure> {
        let path = self.path.join(RUNS);
        let fail = |error: io::Error| Failure::cannot("open", &path, &error);
        let file = self.file(RUNS, Access::APPEND.or_make()).map_err(fail)?;
        let bytes = input::whole(&file, input::NOTED).map_err(fail)?;
        let whole = whole_lines(&bytes);
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(fail)?;
        }
        Ok(Runs { path, file })
    }

    /// Writes one of the files that are made of the runs, whole or not at all.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.path.join(name);
        replace(&path, text.as_bytes()).map_err(|error| Failure::cannot("write", &path, &error))
    }

    /// The bytes of one of its files; `None` where it is not there.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        let read = self
            .file(name, Access::READ)
            .and_then(|file| input::whole(file, input::NOTED));
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::cannot("read", &self.path.join(name), &error)),
        }
    }

    /// Opens one of its files, no link.
    fn file(&self, name: &str, access: Access) -> io::Result<File> {
        Directory::open(&self.path)?.file(OsStr::new(name), access)
    }
}

/// The length of a text up to the end of its last whole line, in bytes.
fn whole_lines(text: &[u8]) -> usize {
    let end = text.iter().rposition(|byte| *byte == b'\n');
    end.map_or(0, |at| at + 1)
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
        add.map_err(|error| Failure::cannot("add a run to", &self.path, &error))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_in_the_folder_empty_and_replace_nothing() {
        let above = tempfile::tempdir().unwrap();
        let above = above.path();
        let folder = Folder::at(&above.join("sweep"));
        fs::create_dir_all(folder.path()).unwrap();
        let secret = above.join("secret");
        fs::write(&secret, "theirs").unwrap();
        for name in [LOCK, RUNS, BEGUN] {
            symlink(&secret, folder.path().join(name)).unwrap();
        }
        let refused = |error: Failure| {
            let error = error.to_string();
            assert!(error.contains("a symbolic link"), "{error}");
        };
        refused(folder.lock().unwrap_err());
        refused(folder.open().unwrap_err());
        refused(folder.rows().unwrap_err());
        folder.write(BEGUN, "ours").unwrap();
        assert!(!folder.path().join(BEGUN).is_symlink());
        assert_eq!(fs::read_to_string(&secret).unwrap(), "theirs");
    }
}
