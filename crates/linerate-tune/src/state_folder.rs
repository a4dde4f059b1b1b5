//! Journals on disk: a folder with one file for each set of changes. What an append wrote is on disk when it returns.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use linerate_kernel::inventory::Root;

use crate::apply::Journal;
use crate::journal::{ChangeSet, Entry, JournalError, Snapshot, line};

/// A journal is no longer: thousands of steps, some hundred bytes each.
const LONGEST: u64 = 64 << 20;
const SUFFIX: &str = ".journal";

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
    #[error("another linerate changes settings now (it holds {}); try again when it has ended", .0.display())]
    Busy(PathBuf),
    /// A name that no set can have.
    #[error("'{0}' is no name of a set of changes; `linerate tune status` lists them")]
    NoName(String),
    /// There is no such set.
    #[error("there is no set of changes {0}; `linerate tune status` lists those that there are")]
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
        io::ErrorKind::StorageFull => " (nothing more is changed; make room first)",
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

/// The folder.
#[derive(Debug, Clone)]
pub struct StateFolder(PathBuf);

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
    /// A folder that may not be there yet.
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the folder where it is not there, for its owner alone, and takes the lock. A second caller does not wait.
    ///
    /// # Errors
    /// [`StateError::Busy`], and those of the file system.
    pub fn lock(&self) -> Result<Lock, StateError> {
        if !self.0.is_dir() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.0)
                .map_err(failed("make the folder", &self.0))?;
            if let Some(parent) = self.0.parent() {
                sync_folder(parent)?;
            }
        }
        let path = self.file("lock")?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .or_else(|error| match error.kind() {
                // Old values can be restored all the same, and a lock needs no writing.
                io::ErrorKind::ReadOnlyFilesystem => File::open(&path),
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
        let entries = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(failed("read the folder", &self.0))?,
        };
        let mut ids: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
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
        let path = self.journal(id)?;
        let mut bytes = Vec::new();
        match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StateError::NoSet(id.to_owned()));
            }
            other => other
                .and_then(|file| file.take(LONGEST).read_to_end(&mut bytes))
                .map_err(failed("read", &path))?,
        };
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
        let path = self.journal(&snapshot.id)?;
        // A reader sees the whole snapshot or no journal.
        let begun = self.0.join(format!("{}.begun", snapshot.id));
        let written = write_new(
            &begun,
            line(&Entry::Snapshot(snapshot.clone())).as_bytes(),
            None,
        )
        .and_then(|()| std::fs::hard_link(&begun, &path).map_err(failed("make", &path)));
        // What is left of it says nothing to anybody.
        drop(std::fs::remove_file(&begun));
        written?;
        sync_folder(&self.0)?;
        self.append(&snapshot.id)
    }

    /// Goes on with the journal of a set. A last line that was cut is removed, so that the next is whole.
    ///
    /// # Errors
    /// There is none of this name; those of the file system.
    pub fn append(&self, id: &str) -> Result<JournalFile, StateError> {
        let path = self.journal(id)?;
        // Two may write: the process that applies, and the rollback that found it hanging.
        let file = match File::options().read(true).append(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StateError::NoSet(id.to_owned()));
            }
            other => other.map_err(failed("open", &path))?,
        };
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

    fn journal(&self, id: &str) -> Result<PathBuf, StateError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if id.is_empty() || id.len() > 64 || !id.chars().all(plain) {
            return Err(StateError::NoName(id.to_owned()));
        }
        self.file(&format!("{id}{SUFFIX}"))
    }

    /// A file in it; no link leads out of it.
    fn file(&self, name: &str) -> Result<PathBuf, StateError> {
        let found = Root::at(&self.0).resolved(name);
        found.map_err(failed("find", &self.0.join(name)))
    }
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

/// Writes a file that nobody has, and has it on disk. A failure leaves nothing behind.
pub(crate) fn write_new(
    path: &Path,
    bytes: &[u8],
    permissions: Option<Permissions>,
) -> Result<(), StateError> {
    // One of an earlier attempt that was killed, or a link that somebody put there, is in the way of nobody.
    drop(std::fs::remove_file(path));
    let written = File::create_new(path).and_then(|mut file| {
        file.write_all(bytes)?;
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.sync_all()
    });
    if written.is_err() {
        drop(std::fs::remove_file(path));
    }
    written.map_err(failed("write", path))
}

/// Has the names in a folder on disk.
pub(crate) fn sync_folder(path: &Path) -> Result<(), StateError> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(failed("sync", path))
}
