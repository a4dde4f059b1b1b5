//! The file that says what is watched, and when it changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use linerate_watch::watched::Watched;

use crate::action::Failure;
use crate::nodes::GroupArguments;
use crate::watch::file;

/// The file, as it was read last.
pub(super) struct PlanFile {
    path: PathBuf,
    groups: GroupArguments,
    read: Option<(SystemTime, u64)>,
}

impl PlanFile {
    pub(super) fn new(path: &Path, groups: &GroupArguments) -> Self {
        Self {
            // The hub's own folder may change.
            path: fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
            groups: groups.clone(),
            read: None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is another one than the one that was read. One that is missing is none.
    pub(super) fn changed(&self) -> bool {
        let now = mark(&self.path);
        now.is_some() && now != self.read
    }

    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with it; it is not read again before it changes.
    pub(super) fn read(&mut self) -> Result<Watched, Failure> {
        self.read = mark(&self.path);
        file::read(&self.path, &self.groups)
    }
}

fn mark(path: &Path) -> Option<(SystemTime, u64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.modified().ok()?, found.len()))
}
