//! The journal of a set of changes: what is written before and after each of them, so that a program that comes later, after
//! a crash or a power cut, knows what to put back. One JSON object a line; a last line that was cut is ignored,
//! because what it would have said had not happened yet.

use linerate_model::change_set::{Restored, SetState, SetStep, SetView};
use linerate_model::tuning::Step;
use linerate_model::units::Nanos;
use serde::{Deserialize, Serialize};

use crate::settings::Saved;

/// The version of the entries. A newer one is refused by name.
pub const SCHEMA_VERSION: u32 = 1;

/// The old values, and all that is needed to put them back: the first entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Format of the journal: [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The set's name.
    pub id: String,
    /// The boot in which it was taken (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
    /// The network namespace, by its inode; absent where files stand for the kernel.
    pub network: Option<u64>,
    /// The folder that stands for `/`; absent for the running machine.
    pub root: Option<String>,
    /// When, s since 1970; a label.
    pub taken_unix_s: u64,
    /// When all goes back unless it was confirmed, on the monotonic clock of this boot.
    pub deadline: Nanos,
    /// The changes in their order, each with the old value.
    pub changes: Vec<Change>,
}

/// A change, and the value before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What is changed, to what.
    pub step: Step,
    /// As it was.
    pub saved: Saved,
}

/// What rolls a set back when nobody confirms it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum Rollback {
    /// A transient timer of systemd.
    Systemd {
        /// Name of the timer: `linerate-tune-rollback-ID.timer`.
        unit: String,
    },
    /// A process of its own session.
    Process {
        /// Its number.
        pid: u32,
        /// When it was started, in ticks since boot: with the number it names it for good.
        start_ticks: u64,
    },
}

impl std::fmt::Display for Rollback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Systemd { unit } => write!(f, "{unit}.timer"),
            Self::Process { pid, .. } => write!(f, "process {pid}"),
        }
    }
}

/// A file that keeps settings over a boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFile {
    /// Its path below the root: `/etc/sysctl.d/95-linerate.conf`.
    pub path: String,
    /// The text that was there before; absent where there was no file.
    pub before: Option<String>,
    /// The text that was written.
    pub text: String,
}

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "entry")]
pub enum Entry {
    /// The old values.
    Snapshot(Snapshot),
    /// The rollback waits outside the process.
    Armed {
        /// What it is.
        rollback: Rollback,
    },
    /// A change is about to be made.
    Applying {
        /// Which, from 0 on.
        step: usize,
    },
    /// A change was made, and reads back.
    Applied {
        /// Which.
        step: usize,
        /// The value read.
        read: String,
    },
    /// All changes hold, and what worked before works.
    Complete,
    /// Somebody confirmed it.
    Confirmed {
        /// When, s since 1970; a label.
        at_unix_s: u64,
    },
    /// The old values are about to be restored.
    RollingBack {
        /// Part of a sentence: `requested`, `it was not confirmed in time`.
        why: String,
        /// Whether what something else has changed since stays.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        leaves_drifted: bool,
    },
    /// One of them is about to be written: cut short, whatever is there is of this set.
    Restoring {
        /// Which.
        step: usize,
    },
    /// One of them was dealt with.
    Restored {
        /// Which.
        step: usize,
        /// How.
        outcome: Restored,
    },
    /// Restoring has ended.
    RolledBack,
    /// There is nothing left to restore.
    Ended {
        /// Part of a sentence.
        why: String,
    },
    /// Files are about to be written.
    Persisting {
        /// With what was there before.
        files: Vec<KeptFile>,
    },
    /// All of them are written.
    Persisted,
    /// All of them are as they were before.
    Unpersisted,
}

/// Why a journal cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// A line in its midst is not what this build writes.
    #[error(
        "line {line} of the journal is damaged ({reason}); the old values are in its first line"
    )]
    Damaged {
        /// Which, from 1 on.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// It does not begin with the old values.
    #[error("the journal does not begin with a snapshot")]
    NoSnapshot,
    /// A newer build wrote it.
    #[error(
        "the journal has schema version {found}, this build reads up to {SCHEMA_VERSION}; use the newer linerate"
    )]
    Newer {
        /// The version.
        found: u32,
    },
    /// An entry names a step that the snapshot does not have.
    #[error("line {line} of the journal names step {step}, and there are {steps}")]
    NoStep {
        /// From 1 on.
        line: usize,
        /// From 0 on.
        step: usize,
        /// How many there are.
        steps: usize,
    },
}

/// What became of a change so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fate {
    /// Whether it was begun.
    pub begun: bool,
    /// What was read after it.
    pub read: Option<String>,
    /// Whether the old value was about to be written, and nothing is known of it since.
    pub restoring: bool,
    /// What became of the old value.
    pub restored: Option<Restored>,
}

/// A set of changes as its journal tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSet {
    /// The old values.
    pub snapshot: Snapshot,
    /// How far it is.
    pub state: SetState,
    /// Whether somebody confirmed it at any time: what was never confirmed is in no file.
    pub was_confirmed: bool,
    /// What became of each change.
    pub fates: Vec<Fate>,
    /// What rolls it back.
    pub rollback: Option<Rollback>,
    /// Why it was rolled back or ended.
    pub note: String,
    /// Whether the last rollback that was begun leaves what something else has changed; the program that finishes it does too.
    pub leaves_drifted: bool,
    /// Files that were written, or were about to be.
    pub files: Vec<KeptFile>,
    /// Whether all of them were.
    pub files_are_whole: bool,
    /// Where they were not: those of the time before.
    pub earlier_files: Vec<KeptFile>,
}

impl ChangeSet {
    /// A set of which only the old values are known.
    pub fn new(snapshot: Snapshot) -> Self {
        Self {
            fates: vec![Fate::default(); snapshot.changes.len()],
            snapshot,
            state: SetState::Prepared,
            was_confirmed: false,
            rollback: None,
            note: String::new(),
            leaves_drifted: false,
            files: Vec::new(),
            files_are_whole: true,
            earlier_files: Vec::new(),
        }
    }

    /// Reads a journal.
    ///
    /// # Errors
    /// A line in its midst that was not written by this build or an older one.
    pub fn parse(text: &str) -> Result<Self, JournalError> {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = (1..).zip(whole.lines());
        let (_, first) = lines.next().ok_or(JournalError::NoSnapshot)?;
        let entry = entry(1, first)?;
        let Entry::Snapshot(snapshot) = entry else {
            return Err(JournalError::NoSnapshot);
        };
        if snapshot.schema_version > SCHEMA_VERSION {
            return Err(JournalError::Newer {
                found: snapshot.schema_version,
            });
        }
        let mut set = Self::new(snapshot);
        for (line, text) in lines {
            set.follow(&self::entry(line, text)?)
                .map_err(|step| JournalError::NoStep {
                    line,
                    step,
                    steps: set.fates.len(),
                })?;
        }
        Ok(set)
    }

    /// Takes note of what happened.
    ///
    /// # Errors
    /// The number of a step that there is not.
    pub fn follow(&mut self, entry: &Entry) -> Result<(), usize> {
        match entry {
            // A second one would be another set's; the first line alone counts.
            Entry::Snapshot(_) => {}
            Entry::Armed { rollback } => {
                self.rollback = Some(rollback.clone());
                self.state = SetState::Armed;
            }
            Entry::Applying { step } => {
                self.fate(*step)?.begun = true;
                self.state = SetState::Applying { step: *step };
            }
            Entry::Applied { step, read } => self.fate(*step)?.read = Some(read.clone()),
            Entry::Complete => self.state = SetState::Applied,
            Entry::Confirmed { .. } => {
                self.state = SetState::Confirmed;
                self.was_confirmed = true;
            }
            Entry::RollingBack {
                why,
                leaves_drifted,
            } => {
                self.note.clone_from(why);
                self.leaves_drifted = *leaves_drifted;
                self.state = SetState::RollingBack;
            }
            Entry::Restoring { step } => self.fate(*step)?.restoring = true,
            Entry::Restored { step, outcome } => {
                let fate = self.fate(*step)?;
                fate.restored = Some(outcome.clone());
                fate.restoring = false;
            }
            Entry::RolledBack => self.state = self.after_rollback(),
            Entry::Ended { why } => {
                self.note.clone_from(why);
                self.state = SetState::Ended;
            }
            Entry::Persisting { files } => {
                let before = std::mem::replace(&mut self.files, files.clone());
                if self.files_are_whole {
                    self.earlier_files = before;
                }
                self.files_are_whole = false;
            }
            Entry::Persisted => {
                self.earlier_files.clear();
                self.files_are_whole = true;
            }
            Entry::Unpersisted => {
                self.files.clear();
                self.earlier_files.clear();
                self.files_are_whole = true;
            }
        }
        Ok(())
    }

    fn fate(&mut self, step: usize) -> Result<&mut Fate, usize> {
        self.fates.get_mut(step).ok_or(step)
    }

    fn after_rollback(&self) -> SetState {
        let back =
            |fate: &Fate| !fate.begun || fate.restored.as_ref().is_some_and(Restored::is_back);
        if self.fates.iter().all(back) {
            SetState::Reverted
        } else {
            SetState::Unfinished
        }
    }

    /// Changes that were begun: the last before the first.
    pub fn begun(&self) -> Vec<usize> {
        (0..self.fates.len())
            .rev()
            .filter(|at| self.fates[*at].begun)
            .collect()
    }

    /// Those whose old value is not known to be back.
    pub fn to_restore(&self) -> Vec<usize> {
        let is_back = |at: &usize| {
            let restored = self.fates[*at].restored.as_ref();
            restored.is_some_and(Restored::is_back)
        };
        let mut begun = self.begun();
        begun.retain(|at| !is_back(at));
        begun
    }

    /// Whether values of this set may be in the kernel of a boot.
    pub fn is_of_boot(&self, boot_id: &str) -> bool {
        self.snapshot.root.is_some() || self.snapshot.boot_id == boot_id
    }

    /// Time left to confirm it, at an instant of the monotonic clock.
    pub fn left(&self, now: Nanos) -> Nanos {
        Nanos(self.snapshot.deadline.0.saturating_sub(now.0))
    }

    /// As it is shown.
    pub fn view(&self, now: Nanos) -> SetView {
        let steps = self.snapshot.changes.iter().zip(&self.fates);
        SetView {
            id: self.snapshot.id.clone(),
            state: self.state,
            taken_unix_s: self.snapshot.taken_unix_s,
            root: self.snapshot.root.clone(),
            rollback: self
                .rollback
                .as_ref()
                .filter(|_| self.state.is_pending())
                .map(ToString::to_string)
                .unwrap_or_default(),
            confirm_left_ns: self.state.is_pending().then(|| self.left(now)),
            note: self.note.clone(),
            files: self.files.iter().map(|file| file.path.clone()).collect(),
            steps: steps
                .map(|(change, fate)| SetStep {
                    object: change.step.object.clone(),
                    before: change.saved.value.clone(),
                    wanted: change.step.wanted.clone(),
                    begun: fate.begun,
                    read: fate.read.clone(),
                    restored: fate.restored.clone(),
                })
                .collect(),
        }
    }
}

fn entry(line: usize, text: &str) -> Result<Entry, JournalError> {
    serde_json::from_str(text).map_err(|error| JournalError::Damaged {
        line,
        reason: error.to_string(),
    })
}

/// An entry as a line with its end.
pub fn line(entry: &Entry) -> String {
    // A value of these types always has a text: no maps with keys that are no strings, no numbers that are none.
    let mut line = serde_json::to_string(entry).unwrap_or_default();
    line.push('\n');
    line
}
