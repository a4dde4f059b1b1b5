//! Journals on disk: a folder with one file for each set of changes. What an append wrote is on disk when it returns.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use linerate_kernel::directory::{Access, Directory, Replacement};
use linerate_kernel::inventory::Root;

use crate::apply::Journal;
use crate::journal::{ChangeSet, Entry, JournalError, Snapshot, line};

/// A journal is no longer: thousands of steps, some hundred bytes each.
const LONGEST: u64 = 64 << 20;
const SUFFIX: &str = ".journal";
const LOCK: &str = "lock";

/// Why the state of earlier sets cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file system refuses.
    #[error("cannot {operation} {}: {source}{}", .path.display(), advice(.source))]
    File {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Another process changes settings now.
    #[error("another linerate is changing settings (it has locked {}); try again when it has ended", .0.display())]
    Busy(PathBuf),
    /// A name that no set can have.
    #[error("'{0}' is not the name of a set of changes; `linerate tune status` lists them")]
    NoName(String),
    /// There is no such set.
    #[error("there is no set of changes {0}; `linerate tune status` lists the existing ones")]
    NoSet(String),
    /// A journal is damaged, or too new.
    #[error("{}: {source}", .path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: JournalError,
    },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            " (settings are changed by root; --state names another folder)"
        }
        io::ErrorKind::StorageFull => " (nothing more is changed; free some space first)",
        _ => "",
    }
}

pub(crate) fn failed(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StateError {
    let path = path.to_owned();
    move |source| StateError::File {
        operation,
        path,
        source,
    }
}

/// The folder, by its path from a root. Its files are opened relative to it, and a link of their names is refused.
#[derive(Debug, Clone)]
pub struct StateFolder {
    root: Root,
    folder: PathBuf,
}

/// The right to change settings, for as long as it, or a copy of its descriptor, is open in any process.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// The same right once more.
    ///
    /// # Errors
    /// `EMFILE`.
    pub fn share(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}

impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A journal that is written.
#[derive(Debug)]
pub struct JournalFile {
    file: File,
    path: PathBuf,
}

impl StateFolder {
    /// A folder that may not be there yet; its path is from the root.
    pub fn at(root: Root, folder: &Path) -> Self {
        let folder = folder.to_owned();
        Self { root, folder }
    }

    /// Makes the folder where it is not there, for its owner alone, and takes the lock. A second caller does not wait.
    ///
    /// # Errors
    /// [`StateError::Busy`], and those of the file system.
    pub fn lock(&self) -> Result<Lock, StateError> {
        let made = self.root.make_directories(&self.folder, 0o700);
        let folder = made.map_err(failed("make the folder", &self.path()))?;
        let (path, name) = (self.path().join(LOCK), OsStr::new(LOCK));
        let file = folder
            .file(name, Access::CHANGE.or_make())
            .or_else(|error| match error.kind() {
                // Old values can be restored all the same, and a lock needs no writing.
                io::ErrorKind::ReadOnlyFilesystem => folder.file(name, Access::READ),
                _ => Err(error),
            })
            .map_err(failed("open", &path))?;
        match linerate_kernel::file::try_lock(&file) {
            Ok(true) => Ok(Lock(file)),
            Ok(false) => Err(StateError::Busy(path)),
            Err(error) => Err(failed("lock", &path)(error)),
        }
    }

    /// The names of all sets, the oldest first; none where there is no folder.
    ///
    /// # Errors
    /// A folder that may not be read.
    pub fn ids(&self) -> Result<Vec<String>, StateError> {
        let names = match self.directory().and_then(|folder| folder.names()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(failed("read the folder", &self.path()))?,
        };
        let mut ids: Vec<String> = names
            .into_iter()
            .filter_map(|name| name.strip_suffix(SUFFIX).map(str::to_owned))
            .collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Reads a set.
    ///
    /// # Errors
    /// There is none of this name; its journal is damaged.
    pub fn read(&self, id: &str) -> Result<ChangeSet, StateError> {
        let (path, file) = self.journal(id, Access::READ)?;
        let mut bytes = Vec::new();
        file.take(LONGEST)
            .read_to_end(&mut bytes)
            .map_err(failed("read", &path))?;
        // A last line that was cut may end in the midst of a character.
        bytes.truncate(whole_lines(&bytes));
        let text = String::from_utf8(bytes).map_err(|error| {
            failed("read", &path)(io::Error::new(io::ErrorKind::InvalidData, error))
        })?;
        ChangeSet::parse(&text).map_err(|source| StateError::Journal { path, source })
    }

    /// Begins the journal of a set: the old values are on disk when this returns. A failure leaves nothing behind.
    ///
    /// # Errors
    /// Those of the file system; a set of this name.
    pub fn create(&self, snapshot: &Snapshot) -> Result<JournalFile, StateError> {
        let name = journal_name(&snapshot.id)?;
        let begin = || {
            let folder = self.directory()?;
            let mut new = Replacement::begin(folder.share()?, 0o666)?;
            let entry = line(&Entry::Snapshot(snapshot.clone()));
            new.file().write_all(entry.as_bytes())?;
            // A reader sees the whole snapshot or no journal.
            new.take_free(OsStr::new(&name))?;
            folder.sync()
        };
        begin().map_err(failed("write", &self.path().join(&name)))?;
        self.append(&snapshot.id)
    }

    /// Goes on with the journal of a set. A last line that was cut is removed, so that the next is whole.
    ///
    /// # Errors
    /// There is none of this name; those of the file system.
    pub fn append(&self, id: &str) -> Result<JournalFile, StateError> {
        // Two may write: the process that applies, and the rollback that found it hanging.
        let (path, file) = self.journal(id, Access::APPEND)?;
        let mut text = Vec::new();
        (&file)
            .take(LONGEST)
            .read_to_end(&mut text)
            .map_err(failed("read", &path))?;
        let whole = whole_lines(&text);
        if whole < text.len() {
            file.set_len(whole as u64)
                .map_err(failed("shorten", &path))?;
        }
        Ok(JournalFile { file, path })
    }

    /// The journal of a set, open, and its path.
    fn journal(&self, id: &str, access: Access) -> Result<(PathBuf, File), StateError> {
        let name = journal_name(id)?;
        let path = self.path().join(&name);
        let opened = self
            .directory()
            .and_then(|folder| folder.file(OsStr::new(&name), access));
        match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(StateError::NoSet(id.to_owned()))
            }
            other => Ok((path.clone(), other.map_err(failed("open", &path))?)),
        }
    }

    fn directory(&self) -> io::Result<Directory> {
        self.root.directory(&self.folder)
    }

    /// Where it is, as messages print it.
    fn path(&self) -> PathBuf {
        self.root.path(&self.folder)
    }
}

/// The file of a set.
fn journal_name(id: &str) -> Result<String, StateError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if id.is_empty() || id.len() > 64 || !id.chars().all(plain) {
        return Err(StateError::NoName(id.to_owned()));
    }
    Ok(format!("{id}{SUFFIX}"))
}

impl Journal for JournalFile {
    fn append(&mut self, entry: &Entry) -> Result<(), String> {
        let line = line(entry);
        let before = self.file.metadata();
        let written = self
            .file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_data());
        if let (Err(_), Ok(before)) = (&written, before) {
            // Half a line in the midst would make the rest unreadable.
            drop(self.file.set_len(before.len()));
        }
        written.map_err(|error| failed("write", &self.path)(error).to_string())
    }
}

/// The length of a text up to the end of its last whole line, in bytes.
fn whole_lines(text: &[u8]) -> usize {
    let end = text.iter().rposition(|byte| *byte == b'\n');
    end.map_or(0, |at| at + 1)
}
