//! The file that says what is watched, and when it changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use linerate_fleet::nodes::{Groups, NodeSet, Sources};
use linerate_watch::plan::{self, Groups as Defined};
use linerate_watch::psconfig;
use linerate_watch::watched::{Reach, Watched};

use crate::action::Failure;
use crate::input;

/// The file, as it was read last.
pub(super) struct PlanFile {
    path: PathBuf,
    read: Option<(SystemTime, u64)>,
}

impl PlanFile {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            // The hub's own folder may change.
            path: fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
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
        let text = input::text(&self.path, input::WRITTEN)?;
        let name = self.path.display().to_string();
        let wrong = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
        if psconfig::is_template(&text) {
            return psconfig::read(&name, &text, &Reach::Iperf3(5201))
                .map_err(|error| wrong(&error));
        }
        plan::parse(&name, &text, &names).map_err(|error| wrong(&error))
    }
}

fn mark(path: &Path) -> Option<(SystemTime, u64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.modified().ok()?, found.len()))
}

/// The names of a set, in which the groups of the file may stand.
fn names(set: &str, defined: &Defined) -> Result<Vec<String>, String> {
    let mut groups = Groups::default();
    let texts = defined
        .iter()
        .map(|(name, members)| (name.clone(), members.join(",")));
    groups.add("watch", texts);
    let sources = Sources {
        groups: &groups,
        file: &crate::nodes::read_text,
    };
    let set = NodeSet::read(set, &sources).map_err(|error| error.to_string())?;
    Ok(set.names().collect())
}
