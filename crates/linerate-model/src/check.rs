//! Checks of a node's health: what is checked, what each check found.

use serde::{Deserialize, Serialize};

use crate::finding::Finding;
use crate::plain_text::PlainText;
use crate::units::{Bytes, Nanos};
use crate::watch::UnixMillis;

/// How a check came out. It is ordered by what a sum of checks is: a failure outweighs all, and what is not known outweighs what
/// is well.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Ok,
    /// It could not be found out. Nothing follows from it.
    #[default]
    Unknown,
    /// Worth a look, and no reason to take the node out.
    Warn,
    /// The node should take no work.
    Fail,
}

impl State {
    /// As it is written everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    /// The state of a whole, by its parts; nothing that was checked is nothing that is known.
    pub fn of_all(states: impl IntoIterator<Item = Self>) -> Self {
        states.into_iter().max().unwrap_or_default()
    }
}

/// What a check looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckKind {
    /// A mount that takes writes and gives them back.
    Mount,
    /// Room on local file systems.
    Space,
    /// File systems that the kernel made read-only.
    ReadOnly,
    /// Network interfaces.
    Link,
    /// A small test to a peer.
    Path,
    /// Arrays of md.
    Md,
    /// Devices of DRBD.
    Drbd,
    /// Logical volumes.
    Lvm,
    /// What disks say of themselves.
    Smart,
    /// Whether the clock follows another.
    Clock,
    /// Memory errors and machine checks.
    Ecc,
    /// Settings that were to last.
    Audit,
    /// A command of the operator's own.
    Command,
}

impl CheckKind {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Mount,
        Self::Space,
        Self::ReadOnly,
        Self::Link,
        Self::Path,
        Self::Md,
        Self::Drbd,
        Self::Lvm,
        Self::Smart,
        Self::Clock,
        Self::Ecc,
        Self::Audit,
        Self::Command,
    ];

    /// As it is written in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mount => "mount",
            Self::Space => "space",
            Self::ReadOnly => "read-only",
            Self::Link => "link",
            Self::Path => "path",
            Self::Md => "md",
            Self::Drbd => "drbd",
            Self::Lvm => "lvm",
            Self::Smart => "smart",
            Self::Clock => "clock",
            Self::Ecc => "ecc",
            Self::Audit => "audit",
            Self::Command => "command",
        }
    }
}

/// A step of writing a file and reading it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileStep {
    /// Opening the directory.
    Open,
    /// Making a directory or file.
    Make,
    /// Writing.
    Write,
    /// fsync(2).
    Sync,
    /// Reading back.
    Read,
    /// Removing it.
    Remove,
}

/// What was found at one object. Only the words for it are made elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Found {
    /// A file was written, synced, read back and removed.
    Written {
        /// All of it.
        took: Nanos,
        /// What it may take without a warning.
        limit: Nanos,
    },
    /// It is mounted, and was only looked at.
    Mounted,
    /// Nothing is mounted there.
    NotMounted,
    /// Another file system is mounted there.
    OtherFileSystem {
        /// The kind that is wanted.
        expected: PlainText,
        /// The kind that is there.
        found: PlainText,
    },
    /// It takes no writes.
    ReadOnly,
    /// The kernel made it read-only below a mount that is writable, as after an error.
    TurnedReadOnly {
        /// What is mounted.
        device: PlainText,
    },
    /// A step of writing and reading back failed.
    Refused {
        /// Which.
        step: FileStep,
        /// The number of the error, errno(3); absent where it has none.
        errno: Option<i32>,
        /// The kernel's words for it.
        error: PlainText,
    },
    /// What was read is not what was written.
    Differs,
    /// Room on a file system.
    Room {
        /// What a user may still write.
        free: Bytes,
        /// All of it.
        size: Bytes,
        /// Files that may still be made, per cent; absent where the file system has no such bound.
        free_files_percent: Option<f64>,
    },
    /// All file systems that were looked at are as they should be.
    AllWell {
        /// How many.
        count: u64,
    },
    /// A link.
    Link {
        /// Speed, Mbit/s; absent where the device does not tell.
        mbps: Option<u32>,
        /// The speed that is wanted, Mbit/s.
        wanted_mbps: Option<u32>,
        /// Half duplex.
        half_duplex: bool,
    },
    /// There is no such interface.
    NoInterface,
    /// The interface is set down.
    SetDown,
    /// The interface is up and has no carrier.
    NoCarrier,
    /// Packets with errors, or dropped by the device, since the last run.
    LinkErrors {
        /// Bad packets, in and out, and those that the device dropped.
        bad: u64,
        /// All packets, in and out.
        packets: u64,
        /// Since when.
        over: Nanos,
    },
    /// Members of a bond.
    Members {
        /// Those that are up.
        up: u64,
        /// How many there are to be.
        wanted: u64,
    },
    /// Answers of a peer to echo requests.
    Replies {
        /// Requests that were sent.
        sent: u64,
        /// Answers that came.
        received: u64,
        /// Median round trip of them.
        round_trip: Option<Nanos>,
        /// The longest that is well.
        wanted: Option<Nanos>,
    },
    /// Packets of a size that do not pass, while smaller ones do.
    PathTooSmall {
        /// The size, IP header included, bytes.
        mtu: u32,
    },
    /// What a rule of `linerate explain` says.
    Finding(Box<Finding>),
    /// A disk's own verdict.
    DiskHealth {
        /// Whether it passed.
        passed: bool,
    },
    /// Whether the kernel's clock follows another.
    Clock {
        /// adjtimex(2): not `STA_UNSYNC`.
        synchronised: bool,
        /// The largest error that the kernel believes in.
        largest_error: Nanos,
    },
    /// Errors of memory since the last run, and since boot.
    Memory {
        /// Corrected since the last run.
        corrected: u64,
        /// Not corrected since boot.
        uncorrected: u64,
        /// Machine-check exceptions since boot.
        machine_checks: u64,
    },
    /// Settings that were confirmed or persisted.
    Settings {
        /// Those that are no longer as they were set.
        drifted: u64,
        /// All of them.
        count: u64,
    },
    /// A command of the operator's own.
    Said {
        /// Its exit code; absent where a signal ended it.
        code: Option<i32>,
        /// The first line that it printed.
        text: PlainText,
    },
    /// The check did not end within its limit.
    NoAnswer {
        /// The limit, or for how long its process has been waiting.
        after: Nanos,
        /// The process, where it could not be ended.
        stuck: Option<u32>,
    },
    /// There is nothing of this kind here.
    Nothing,
    /// It could not be found out.
    CannotTell {
        /// Why, and what would help.
        why: PlainText,
    },
}

/// What was found at one object of a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The mount, interface, device or peer; empty where the check has just one.
    pub on: PlainText,
    /// How it is judged.
    pub state: State,
    /// What was found.
    pub found: Found,
}

impl Item {
    /// What was found, with its state.
    pub fn new(on: impl Into<PlainText>, state: State, found: Found) -> Self {
        let on = on.into();
        Self { on, state, found }
    }
}

/// How a check came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its name, by which it can be asked for.
    pub check: PlainText,
    /// What it looks at.
    pub kind: CheckKind,
    /// The worst of its items.
    pub state: State,
    /// What was found.
    pub items: Vec<Item>,
    /// How long it took.
    pub took: Nanos,
    /// Its limit.
    pub limit: Nanos,
}

impl Outcome {
    /// The item to tell of it: the first of the worst.
    pub fn worst(&self) -> Option<&Item> {
        self.items.iter().find(|item| item.state == self.state)
    }
}

/// All checks of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckRun {
    /// The host.
    pub host: PlainText,
    /// When it began.
    pub begun: UnixMillis,
    /// How long it took.
    pub took: Nanos,
    /// CPU time of it, with its children.
    pub cpu: Nanos,
    /// The worst of the outcomes.
    pub state: State,
    /// In the order of the file.
    pub outcomes: Vec<Outcome>,
    /// What is told to the cluster's controller; absent where it was not asked about.
    pub controller: Option<Told>,
    /// What went wrong with the run itself: memory that could not be read or written.
    pub notes: Vec<PlainText>,
}

/// Why a node that should be drained is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Held {
    /// So many nodes of its partition are drained by checks already.
    Cap {
        /// Those.
        drained: u64,
        /// The most that may be.
        most: u64,
        /// The nodes of the partition.
        of: u64,
    },
    /// So many other nodes failed the same check at about the same time: one cause that they share.
    Shared {
        /// Those.
        others: u64,
    },
}

/// Why nothing is done about a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Idle {
    /// No check that could drain it fails.
    Well,
    /// A check failed, and not often enough yet.
    NotOftenEnough,
    /// It is drained by an earlier run, and a check still fails.
    StillFailing,
    /// It is drained by an earlier run, and was not well for long enough.
    NotYetWell,
    /// It is drained by an earlier run, for a check after which a person resumes it.
    ResumedByHand,
    /// It is drained by an earlier run, and a reboot is pending.
    RebootPending,
    /// Somebody else drained it or gave it a reason.
    Foreign,
    /// Its state takes no drain: down, powered off, rebooting, in maintenance.
    OtherState,
    /// What an earlier run had set was changed by somebody: it is theirs now.
    TakenOver,
}

/// What is done, or would be done, about a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum Act {
    /// Nothing.
    Nothing {
        /// Why.
        why: Idle,
    },
    /// It is drained.
    Drain {
        /// With this reason.
        reason: PlainText,
    },
    /// It should be drained and is not: a comment and an alert instead.
    Hold {
        /// Why.
        held: Held,
        /// The reason that it would have had.
        reason: PlainText,
    },
    /// It was drained, and too many others were as well: that was taken back.
    TakeBack {
        /// Why.
        held: Held,
        /// The reason that it would have had.
        reason: PlainText,
    },
    /// It takes work again.
    Resume,
    /// The controller's answer does not tell: nothing is done.
    Unknown {
        /// What it said, or did not say.
        why: PlainText,
    },
}

/// What was told to the controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The node, by its name there.
    pub node: PlainText,
    /// What is done about it.
    pub act: Act,
    /// Whether it was done; `false`: it would be.
    pub done: bool,
    /// Why it could not be done.
    pub trouble: Option<PlainText>,
}
