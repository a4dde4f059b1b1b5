//! What is wrong with a sweep's file.

use linerate_document::DocumentError;

use crate::in_lab::NotInLab;

/// Why a sweep cannot be run. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SweepError {
    /// Something in it, in a profile that it names, or in a path that it describes, cannot be.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A setting that a lab's hosts cannot have.
    #[error(transparent)]
    NotInLab(#[from] NotInLab),
    /// The file is not the one that a folder's runs were made with.
    #[error(
        "{file}:{line}: differs from what the runs in {folder} were made with ({was}); take the old line, or another folder"
    )]
    Changed {
        /// Path of the sweep's file.
        file: String,
        /// The first line that differs.
        line: usize,
        /// Path of the folder that holds the runs.
        folder: String,
        /// The line as it was.
        was: String,
    },
}

/// Refuses a text that is not the one that was kept.
///
/// # Errors
/// [`SweepError::Changed`] with the first line that differs.
pub fn changed(file: &str, folder: &str, kept: &str, now: &str) -> Result<(), SweepError> {
    if kept == now {
        return Ok(());
    }
    let mut old = kept.lines();
    let mut new = now.lines();
    let mut line = 1;
    // Ends with the longer of the two.
    let was = loop {
        match (old.next(), new.next()) {
            (Some(old), Some(new)) if old == new => line += 1,
            (Some(old), _) => break format!("there it is: {}", old.trim()),
            (None, _) => break "there it ended".to_owned(),
        }
    };
    Err(SweepError::Changed {
        file: file.to_owned(),
        line,
        folder: folder.to_owned(),
        was,
    })
}
