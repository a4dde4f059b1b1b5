//! What the dispatcher wants done, and what it hears of it.

use linerate_model::plain_text::PlainText;
use linerate_model::units::Bytes;
use linerate_model::watch::{RunClass, RunId, UnixMillis, WatchFigures, WatchRun};
use serde::{Deserialize, Serialize};

/// An end of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The sender of the data.
    From,
    /// The receiver.
    To,
}

impl End {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::From, Self::To];

    /// Its place where something is kept for both: 0 or 1.
    pub const fn at(self) -> usize {
        match self {
            Self::From => 0,
            Self::To => 1,
        }
    }

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::From => Self::To,
            Self::To => Self::From,
        }
    }
}

/// What a lease is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeaseId {
    /// Which start of the hub granted it; grows with each start.
    pub epoch: u64,
    /// Its number in the epoch, from 1 on.
    pub grant: u64,
}

/// The right to run a test, until it expires.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    /// What it is known by.
    pub id: LeaseId,
    /// The test.
    pub run: RunId,
    /// Name of its task.
    pub task: PlainText,
    /// Name of the sending host.
    pub from: PlainText,
    /// Name of the receiving host.
    pub to: PlainText,
    /// Why it was due.
    pub class: RunClass,
    /// When it was due.
    pub due: UnixMillis,
    /// By when it has to end.
    pub deadline: UnixMillis,
    /// When the lease was granted.
    pub granted: UnixMillis,
    /// When it ends: both ends stop by then, by their own monotonic clocks.
    pub expiry: UnixMillis,
    /// How long the load lasts, ms.
    pub load_millis: u64,
    /// The end that dials; where it is [`End::To`], the test runs in reverse.
    pub client: End,
    /// The share of its link, 0 to 1, above which other traffic forbids the start; absent = none does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub quiet: Option<f64>,
    /// Whether it starts although other traffic uses the link, because it waited long enough. The dispatcher marks its figures.
    #[serde(default)]
    pub with_traffic: bool,
    /// Which of several pairs of the task with the same hosts.
    #[serde(default)]
    pub(super) nth: u64,
}

/// What the dispatcher wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Prepare the server's end, start the client's.
    Start {
        /// The lease that both ends get.
        lease: Lease,
        /// Place of its task in [`crate::watched::Watched::tasks`] of the plan as it is now.
        task: usize,
        /// Place of its pair in [`crate::watched::Task::pairs`].
        pair: usize,
    },
    /// The lease is over: both ends stop, if they have not yet.
    Cancel {
        /// The lease.
        lease: LeaseId,
        /// Place of the sender in [`crate::watched::Watched::hosts`]; absent = no longer in the plan.
        from: Option<usize>,
        /// The same of the receiver.
        to: Option<usize>,
    },
    /// Try within 2 s whether a host can be reached: a session with its agent, a TCP connection to its server.
    Check {
        /// Place of the host in [`crate::watched::Watched::hosts`].
        host: usize,
        /// Place of the host that would be its peer.
        peer: usize,
    },
    /// A test that was due has ended: archive it.
    Row(Box<WatchRun>),
}

/// How a test ended for which there was a lease.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// When its load began; absent = it did not.
    pub started: Option<UnixMillis>,
    /// When it ended.
    pub ended: UnixMillis,
    /// Payload that it moved; absent = not known, as expected.
    pub bytes: Option<Bytes>,
    /// What became of it.
    pub ending: Ending,
}

/// What became of a test for which there was a lease.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// It measured.
    Measured(WatchFigures),
    /// It failed.
    Failed {
        /// What was being done: `connect`, `prepare`, `run`.
        stage: PlainText,
        /// Why it failed.
        why: PlainText,
        /// The end that is at fault, where that is known: one that fails again and again is checked before others wait for it.
        at: Option<End>,
    },
    /// It ran, but what it measured does not count.
    Invalid {
        /// Why not.
        why: PlainText,
    },
    /// A host's own rules forbid it.
    Refused {
        /// The host's words.
        why: PlainText,
    },
    /// An end runs something else at the moment, such as a test of another hub. The test waits and is leased again.
    Busy(End),
    /// It did not begin: traffic other than tests uses this share, 0 to 1, of an end's link, more than
    /// [`Lease::quiet`]. The test waits, and begins beside the traffic only when its time runs out.
    Traffic(End, f64),
}

/// Whether an answer was of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It belongs to a lease.
    Yes,
    /// Its lease has expired or was never granted: its test has a row already, or will be run again.
    Late,
}

/// A test that somebody asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Name of the task of which it is a test.
    pub task: PlainText,
    /// Name of the sending host.
    pub from: PlainText,
    /// Name of the receiving host.
    pub to: PlainText,
    /// [`RunClass::OnDemand`] or [`RunClass::Confirm`].
    pub class: RunClass,
    /// From when on it may run.
    pub due: UnixMillis,
    /// By when it has to end.
    pub deadline: UnixMillis,
    /// Tells apart requests for the same pair and moment.
    pub number: u64,
    /// How long its load lasts, ms; absent = as in its task.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load_millis: Option<u64>,
}

/// Why a test that somebody asked for cannot be due.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The plan does not have it.
    #[error(
        "cannot test {from} > {to}: task '{task}' has no such pair; `linerate watch plan` lists them"
    )]
    UnknownPair {
        /// The task that was named.
        task: PlainText,
        /// The sender.
        from: PlainText,
        /// The receiver.
        to: PlainText,
    },
    /// Regular tests are the schedule's.
    #[error("cannot ask for a regular test: ask for one on demand, or for one that confirms")]
    Regular,
    /// It cannot end in time.
    #[error("cannot run a test of {needed} ms within {given} ms: give it more time")]
    TooShort {
        /// How long it takes, ms.
        needed: u64,
        /// How long it has, ms.
        given: u64,
    },
}
