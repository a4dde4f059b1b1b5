//! Changes to a host's settings that were made together: their state, and what became of each.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::host::Fact;
use crate::tuning::Object;
use crate::units::Nanos;

/// The version of the documents made of these types.
pub const SCHEMA_VERSION: u32 = 1;

/// How far a set of changes is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum SetState {
    /// The old values are on disk; nothing is changed.
    Prepared,
    /// The rollback waits outside the process; nothing is changed.
    Armed,
    /// Changes are being made.
    Applying {
        /// The step that was begun last, from 0 on.
        step: usize,
    },
    /// All changes hold; they go back unless somebody confirms them.
    Applied,
    /// Somebody confirmed them.
    Confirmed,
    /// The old values are being restored.
    RollingBack,
    /// The old values are back.
    Reverted,
    /// Restoring ended, and not every old value is back.
    Unfinished,
    /// Nothing of it is left: the machine started again, or it ended before its first change.
    Ended,
}

impl SetState {
    /// As `tune status` prints it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Prepared => "prepared, nothing changed",
            Self::Armed => "armed, nothing changed",
            Self::Applying { .. } => "being applied",
            Self::Applied => "applied, not confirmed",
            Self::Confirmed => "confirmed",
            Self::RollingBack => "being rolled back",
            Self::Reverted => "reverted",
            Self::Unfinished => "not all reverted",
            Self::Ended => "ended",
        }
    }

    /// Whether changes may be in the kernel that nobody confirmed.
    pub const fn is_pending(self) -> bool {
        matches!(
            self,
            Self::Armed | Self::Applying { .. } | Self::Applied | Self::RollingBack
        )
    }
}

/// What became of an old value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Restored {
    /// It was there.
    AlreadySo,
    /// It was written back, and reads so.
    Restored,
    /// It was written back over a value that something else had set since.
    Overwrote {
        /// That value.
        found: String,
    },
    /// Something else has set another value since: that one stays.
    LeftAlone {
        /// That value.
        found: String,
    },
    /// It could not be written back.
    Failed {
        /// Why.
        reason: String,
    },
}

impl Restored {
    /// Whether the old value is there.
    pub const fn is_back(&self) -> bool {
        matches!(
            self,
            Self::AlreadySo | Self::Restored | Self::Overwrote { .. }
        )
    }
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadySo => f.write_str("had its old value"),
            Self::Restored => f.write_str("restored"),
            Self::Overwrote { found } => {
                write!(f, "restored over {found}, which something else had set")
            }
            Self::LeftAlone { found } => write!(
                f,
                "left at {found}, which something else has set since (--force restores it)"
            ),
            Self::Failed { reason } => write!(f, "NOT RESTORED: {reason}"),
        }
    }
}

/// A change of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetStep {
    /// What is changed.
    pub object: Object,
    /// The value before.
    pub before: String,
    /// The value that was wanted.
    pub wanted: String,
    /// Whether the change was begun.
    pub begun: bool,
    /// What was read after it was set; absent where that did not happen.
    pub read: Option<String>,
    /// What became of the old value, where it was to be restored.
    pub restored: Option<Restored>,
}

/// A set of changes, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetView {
    /// Its name.
    pub id: String,
    /// How far it is.
    #[serde(flatten)]
    pub state: SetState,
    /// When the old values were taken, s since 1970; a label.
    pub taken_unix_s: u64,
    /// The folder that stands for `/`; absent for the running machine.
    pub root: Option<String>,
    /// What rolls it back; empty where nothing does.
    pub rollback: String,
    /// Time left to confirm it; absent where there is nothing to confirm.
    pub confirm_left_ns: Option<Nanos>,
    /// Why it is as it is; empty where its state says all.
    pub note: String,
    /// Files that keep it over a boot.
    pub files: Vec<String>,
    /// Its changes, in order.
    pub steps: Vec<SetStep>,
}

/// Something that must work after the changes as it did before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// What: `gateway 192.0.2.1`.
    pub what: String,
    /// Whether it works; `None` where that could not be judged, because it did not work before either.
    pub holds: Option<bool>,
    /// What was seen.
    pub seen: String,
}

/// A setting of a confirmed set, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedSetting {
    /// What.
    pub object: Object,
    /// The set that set it last.
    pub set: String,
    /// The value that was confirmed.
    pub confirmed: String,
    /// The value that runs.
    pub runs: Fact<String>,
    /// Where it is persisted: `/etc/sysctl.d/95-linerate.conf`; absent where it is not.
    pub persisted: Option<String>,
    /// What a file sets at boot instead, with its line; absent where nothing does.
    pub at_boot: Option<String>,
    /// Who may have changed it, or may yet: files with their lines, programs that run.
    pub others: Vec<String>,
}

impl VerifiedSetting {
    /// Whether another value runs than was confirmed.
    pub fn has_drifted(&self) -> bool {
        self.runs.known() != Some(&self.confirmed)
    }

    /// Whether the next boot keeps it, as far as files tell.
    pub const fn survives_boot(&self) -> bool {
        self.persisted.is_some() && self.at_boot.is_none()
    }
}

/// What runs, what is persisted and what drifted, of all that was confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// Format of this document: [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Settings in the order in which they were set.
    pub settings: Vec<VerifiedSetting>,
    /// Files that were written and are no longer what was written.
    pub files: Vec<String>,
    /// Sets that wait for a confirmation, or whose rollback did not end well.
    pub open: Vec<String>,
}

impl Verification {
    /// Whether all is as it was confirmed.
    pub fn holds(&self) -> bool {
        self.files.is_empty()
            && self.open.is_empty()
            && !self
                .settings
                .iter()
                .any(|one| one.has_drifted() || one.persisted.is_some() && one.at_boot.is_some())
    }
}
