use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use linerate_model::watch::RunId;

/// Why an archive cannot do what was asked. After an error nothing of that call is in the archive.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// A file or folder.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// What was attempted.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: Arc<io::Error>,
    },
    /// The database.
    #[error("the archive's database cannot {what}: {source}")]
    Database {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        source: Arc<rusqlite::Error>,
    },
    /// No space is left, after every raw record that retention may remove was removed.
    #[error(
        "cannot {what}: the archive's disk is full. Free some space, or move the archive's folder to a larger disk; what was \
         acknowledged before is kept"
    )]
    Full {
        /// What was attempted.
        what: &'static str,
    },
    /// The archive was written by a newer program.
    #[error(
        "the archive in {} has schema {found}, and this linerate knows schemas up to {known}: use the linerate that wrote it, or a \
         newer one",
        folder.display()
    )]
    Newer {
        /// Its folder.
        folder: PathBuf,
        /// Its schema.
        found: u32,
        /// The newest schema that this build knows.
        known: u32,
    },
    /// There is no archive in the folder.
    #[error("there is no archive in {} (no archive.sqlite3); check the folder", .0.display())]
    NoArchive(PathBuf),
    /// An export.
    #[error("cannot write the export: {0}")]
    Output(Arc<io::Error>),
    /// A file that is in the way.
    #[error("{} exists already; choose another folder", .0.display())]
    Exists(PathBuf),
    /// A run that no archive can keep.
    #[error("test {id} cannot be kept: {why}")]
    Unfit {
        /// Its id.
        id: RunId,
        /// What about it.
        why: &'static str,
    },
    /// A value that no archive can keep.
    #[error("{what} cannot be kept: {why}")]
    UnfitValue {
        /// Of what.
        what: &'static str,
        /// What about it.
        why: String,
    },
    /// Something in the archive is not what was written there.
    #[error(
        "the archive is damaged: {0}. `linerate archive verify` lists all damage; restore a backup"
    )]
    Damaged(String),
    /// The thread that writes has ended.
    #[error("the archive's writer has ended; open the archive again")]
    Closed,
}

impl ArchiveError {
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            if is_full(&source) {
                return Self::Full { what };
            }
            Self::File {
                what,
                path: path.to_owned(),
                source: Arc::new(source),
            }
        }
    }

    /// Where an export goes to is its caller's, on another disk perhaps.
    pub(crate) fn output(source: io::Error) -> Self {
        Self::Output(Arc::new(source))
    }

    pub(crate) fn database(what: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| {
            if source.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) {
                return Self::Full { what };
            }
            Self::Database {
                what,
                source: Arc::new(source),
            }
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}
