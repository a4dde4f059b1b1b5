//! The file that says what is watched, and when it changed.

use std::fs;
use std::path::{Path, PathBuf};

use linerate_model::plain_text::PlainText;
use linerate_watch::watched::Watched;

use super::stamp::Stamp;
use crate::action::Failure;
use crate::nodes::GroupArguments;
use crate::watch::file;

/// The file, as it was read last.
pub(super) struct PlanFile {
    path: PathBuf,
    groups: GroupArguments,
    read: Option<Stamp>,
    /// Why what was read last is not in force; absent = it is.
    trouble: Option<PlainText>,
}

impl PlanFile {
    pub(super) fn new(path: &Path, groups: &GroupArguments) -> Self {
        Self {
            // The hub's own folder may change.
            path: fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
            groups: groups.clone(),
            read: None,
            trouble: None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is another one than the one that was read. One that is missing is none.
    pub(super) fn changed(&self) -> bool {
        let now = Stamp::of(&self.path);
        now.is_some() && now != self.read
    }

    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with it; it is not read again before it changes.
    pub(super) fn read(&mut self) -> Result<Watched, Failure> {
        self.read = Stamp::of(&self.path);
        let read = file::read(&self.path, &self.groups);
        self.trouble = read.as_ref().err().map(|error| error.to_string().into());
        read
    }

    /// Why the file as it is now is not in force; `None` = it is.
    pub(super) const fn trouble(&self) -> Option<&PlainText> {
        self.trouble.as_ref()
    }
}
