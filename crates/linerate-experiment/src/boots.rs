//! Whether a host is faster in one boot than in another: boots in turn, a test in each, as [`crate::prove`] orders and judges
//! them.
//!
//! Each boot ends the process, so the state is a journal: [`Entry`] by entry, each on disk before what it announces is
//! done. [`Boots::next`] says what the journal asks for in this boot; [`go_on`] does it through a [`Machine`], and whoever
//! starts a host's programs calls it again after each boot, until it says [`Ended::Over`].
//!
//! The default of the boot loader is never changed. What boots next is set for one boot alone, right before it; `go_on`
//! begins by unsetting it, so that a process that was killed in between leaves a host that boots its default.
//!
//! It reads no clock and no file; what it needs to know of the host is asked of the [`Machine`].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::measured::Measured;
use crate::prove::{ATTEMPTS, Proof, Proving, Question, Side, Turn};

/// A boot of the host: the kernel's random id of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(pub String);

/// What a host was booted with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Running {
    /// One of the two that are compared.
    Side(Side),
    /// Neither: what its boot loader boots by itself.
    Default,
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Side(Side::Before) => "the first of the two boots",
            Self::Side(Side::After) => "the second of the two boots",
            Self::Default => "the boot loader's default",
        })
    }
}

/// A line of the journal. All but [`Entry::Tested`] are written before they are done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "entry")]
pub enum Entry {
    /// What is asked.
    Begun {
        /// How many pairs, and which effect is of interest.
        question: Question,
    },
    /// The host is about to leave this boot for that of a run.
    Booting {
        /// The run.
        turn: Turn,
        /// The boot that it leaves.
        from: BootId,
    },
    /// The test of a run is about to start.
    Testing {
        /// The run.
        turn: Turn,
        /// In this boot.
        boot: BootId,
    },
    /// A run gave this.
    Tested {
        /// The run.
        turn: Turn,
        /// What it gave; a boot that did not come is a run that failed.
        measured: Measured,
    },
    /// All runs are made, and the host is about to boot its default.
    Returning {
        /// The boot that it leaves.
        from: BootId,
    },
    /// Nothing is left to do.
    Over {
        /// Why it ended before its end; absent where it did not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
}

/// What is to be done in this boot.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Boot for this run.
    Boot(Turn),
    /// Make this run's test.
    Test(Turn),
    /// Write this down: a run that cannot be made any more.
    Note(Entry),
    /// Boot the default.
    Return,
    /// Take away what started this process, and say that it is over.
    Finish,
    /// Nothing.
    Nothing,
}

/// A series of boots, as its journal tells of it.
#[derive(Debug, Clone)]
pub struct Boots {
    proving: Proving,
    /// The last entry.
    last: Entry,
    /// How often the last entry was tried for its run.
    tried: u32,
}

/// A journal that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// It has no beginning.
    #[error("the journal of the boots does not begin with what is asked; remove it to start anew")]
    NoBeginning,
    /// A run stands in it that was not its turn.
    #[error(
        "line {line} of the journal of the boots has a run that was not due; remove it to start anew"
    )]
    OutOfTurn {
        /// From 1 on.
        line: usize,
    },
}

impl Boots {
    /// The state that a journal leads to.
    ///
    /// # Errors
    /// A journal that no series wrote.
    pub fn of(journal: &[Entry]) -> Result<Self, JournalError> {
        let Some(first @ Entry::Begun { question }) = journal.first() else {
            return Err(JournalError::NoBeginning);
        };
        let mut boots = Self {
            proving: Proving::new(*question),
            last: first.clone(),
            tried: 0,
        };
        for (at, entry) in journal.iter().enumerate().skip(1) {
            if let Entry::Tested { turn, measured } = entry {
                if boots.proving.upcoming() != Some(*turn) {
                    return Err(JournalError::OutOfTurn { line: at + 1 });
                }
                boots.proving.took(measured.clone());
            }
            if let Entry::Over { why: Some(why) } = entry {
                boots.proving.stop(why);
            }
            boots.tried = if same_try(&boots.last, entry) {
                boots.tried + 1
            } else {
                1
            };
            boots.last = entry.clone();
        }
        Ok(boots)
    }

    /// What is to be done in this boot, which runs that.
    pub fn next(&self, boot: &BootId, running: Running) -> Step {
        match &self.last {
            Entry::Begun { .. } | Entry::Tested { .. } => {
                self.proving.upcoming().map_or(Step::Return, Step::Boot)
            }
            Entry::Booting { turn, from } if from == boot => self.again(
                *turn,
                Step::Boot(*turn),
                "the host did not leave its boot for this one",
            ),
            Entry::Booting { turn, .. } if running == Running::Side(turn.side) => Step::Test(*turn),
            Entry::Booting { turn, .. } => failed(
                *turn,
                &format!("the host was to boot this one and came up with {running}"),
            ),
            Entry::Testing { turn, boot: own } if own == boot => {
                self.again(*turn, Step::Test(*turn), "the test was killed")
            }
            Entry::Testing { turn, .. } => failed(*turn, "the host restarted during the test"),
            Entry::Returning { from } if from == boot && self.tried < ATTEMPTS => Step::Return,
            Entry::Returning { .. } => Step::Finish,
            Entry::Over { .. } => Step::Nothing,
        }
    }

    /// The same once more, up to [`ATTEMPTS`] times.
    fn again(&self, turn: Turn, step: Step, why: &str) -> Step {
        if self.tried < ATTEMPTS {
            step
        } else {
            failed(turn, &format!("{why}, {ATTEMPTS} times"))
        }
    }

    /// Runs that are at most still to be made.
    pub fn left(&self) -> u32 {
        self.proving.left()
    }

    /// Whether it ended.
    pub const fn is_over(&self) -> bool {
        matches!(self.last, Entry::Over { .. })
    }

    /// What the runs say until now.
    pub fn proof(&self) -> Proof {
        self.proving.proof()
    }
}

fn same_try(last: &Entry, entry: &Entry) -> bool {
    match (last, entry) {
        (Entry::Booting { turn, .. }, Entry::Booting { turn: other, .. })
        | (Entry::Testing { turn, .. }, Entry::Testing { turn: other, .. }) => turn == other,
        (Entry::Returning { .. }, Entry::Returning { .. }) => true,
        _ => false,
    }
}

fn failed(turn: Turn, why: &str) -> Step {
    Step::Note(Entry::Tested {
        turn,
        measured: Measured::failed(why),
    })
}

/// A host that can be booted.
pub trait Machine {
    /// The boot that this process runs in.
    ///
    /// # Errors
    /// Where the kernel does not tell.
    fn boot(&mut self) -> Result<BootId, String>;
    /// What it was booted with.
    ///
    /// # Errors
    /// Where the kernel does not tell.
    fn running(&mut self) -> Result<Running, String>;
    /// Writes a line of the journal; it is on disk when this returns.
    ///
    /// # Errors
    /// Where it cannot be written.
    fn write(&mut self, entry: &Entry) -> Result<(), String>;
    /// Has the next boot be the boot loader's default.
    ///
    /// # Errors
    /// Where that cannot be had.
    fn unset_next(&mut self) -> Result<(), String>;
    /// Has the next boot alone be this one.
    ///
    /// # Errors
    /// Where that cannot be had.
    fn set_next(&mut self, side: Side) -> Result<(), String>;
    /// Shuts the host down and boots it. The process ends with it, or returns before.
    ///
    /// # Errors
    /// Where the host does not go down.
    fn restart(&mut self) -> Result<(), String>;
    /// Makes the test of a run.
    fn test(&mut self, turn: Turn) -> Measured;
    /// Takes away what starts this process after a boot.
    ///
    /// # Errors
    /// Where it stays.
    fn dismiss(&mut self) -> Result<(), String>;
}

/// Why [`go_on`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The host is going down.
    Restarting,
    /// Nothing is left to do.
    Over,
}

/// Why a series cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BootsError {
    /// Its journal is none.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What was to be done failed; the host boots its default from now on.
    #[error("{0}")]
    Failed(String),
}

/// Does what the journal asks for in this boot, until the host goes down or nothing is left.
///
/// # Errors
/// Where a step fails: then the series ends, what starts it is taken away, and the next boot is the default.
pub fn go_on(journal: &mut Vec<Entry>, machine: &mut impl Machine) -> Result<Ended, BootsError> {
    Boots::of(journal)?;
    match advance(journal, machine) {
        Ok(ended) => Ok(ended),
        Err(Trouble::Journal(error)) => Err(error.into()),
        Err(Trouble::Failed(why)) => {
            // Whatever of this fails as well, the next boot is set for one boot alone.
            let mut all = vec![why.clone()];
            all.extend(machine.unset_next().err());
            all.extend(machine.dismiss().err());
            let over = Entry::Over { why: Some(why) };
            all.extend(machine.write(&over).err());
            journal.push(over);
            all.dedup();
            Err(BootsError::Failed(all.join("; ")))
        }
    }
}

enum Trouble {
    Journal(JournalError),
    Failed(String),
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

fn advance(journal: &mut Vec<Entry>, machine: &mut impl Machine) -> Result<Ended, Trouble> {
    // A process before this one may have been killed between setting the next boot and booting.
    machine.unset_next()?;
    let (boot, running) = (machine.boot()?, machine.running()?);
    // Each turn adds a line, and a series has a bound: pairs, attempts and tries are.
    loop {
        let state = Boots::of(journal).map_err(Trouble::Journal)?;
        let mut note = |machine: &mut _, entry: Entry| -> Result<(), String> {
            Machine::write(machine, &entry)?;
            journal.push(entry);
            Ok(())
        };
        match state.next(&boot, running) {
            Step::Boot(turn) => {
                let from = boot.clone();
                note(machine, Entry::Booting { turn, from })?;
                machine.set_next(turn.side)?;
                machine.restart()?;
                return Ok(Ended::Restarting);
            }
            Step::Test(turn) => {
                let boot = boot.clone();
                note(machine, Entry::Testing { turn, boot })?;
                let measured = machine.test(turn);
                note(machine, Entry::Tested { turn, measured })?;
            }
            Step::Note(entry) => note(machine, entry)?,
            Step::Return => {
                note(machine, Entry::Returning { from: boot })?;
                machine.restart()?;
                return Ok(Ended::Restarting);
            }
            Step::Finish => {
                machine.dismiss()?;
                let why = (running != Running::Default).then(|| {
                    format!("the last restart ended in {running}: restart this host to have its default boot")
                });
                note(machine, Entry::Over { why })?;
            }
            Step::Nothing => return Ok(Ended::Over),
        }
    }
}

#[cfg(test)]
#[path = "boots_tests.rs"]
mod tests;
