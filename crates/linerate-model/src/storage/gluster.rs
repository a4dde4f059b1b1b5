//! What gluster's daemon logs, and what its command line says of a cluster.

use serde::{Deserialize, Serialize};

use crate::plain_text::PlainText;

/// A lock that a command did not get.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GlusterLock {
    /// The volume; 3.5 and before lock the whole cluster.
    pub volume: Option<PlainText>,
    /// The node that asked, by its UUID; from 3.6 on it is the node that logs, and not named.
    pub asker: Option<PlainText>,
    /// The node that holds it, by its UUID.
    pub holder: PlainText,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GlusterKind {
    /// A lock was held by somebody.
    Held(GlusterLock),
    /// What follows from a lock that was not got, or was gone already.
    OfLock,
    /// Another glusterd (`host:port`) did not answer within the frame timeout.
    Silent(PlainText),
    /// A volume's lock was freed by the timer.
    Freed(PlainText),
    /// A command on a volume succeeded (`cmd_history.log`).
    Succeeded(Option<PlainText>),
    /// A command failed (`cmd_history.log`); whether for another transaction.
    Failed {
        /// Another command held the lock.
        for_lock: bool,
    },
    /// Anything else.
    Other,
}

/// A line of glusterd's log, or of its `cmd_history.log`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GlusterEvent {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// When, as printed.
    pub at: PlainText,
    /// When, s since 1970, where it can be read.
    pub at_s: Option<f64>,
    /// `E`, `W`, `I` …; empty in `cmd_history.log`.
    pub level: PlainText,
    /// What it says.
    pub kind: GlusterKind,
    /// The text after the function's name.
    pub message: PlainText,
}

/// A brick or a daemon of a volume (`volume status`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlusterBrick {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// Host and path; of daemons their name and host.
    pub name: PlainText,
    /// Whether its process runs.
    pub online: Option<bool>,
}

/// Another node (`peer status`, `pool list`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlusterPeer {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// Its name.
    pub name: PlainText,
    /// Whether this node is connected to it; a peer that does not answer is for a while.
    pub connected: Option<bool>,
}

/// What a brick has to heal (`heal info`, `heal info summary`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlusterHeal {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// The brick.
    pub brick: PlainText,
    /// `Connected`, or what is wrong.
    pub status: PlainText,
    /// Entries in all; none where the brick is down (`-`).
    pub entries: Option<u64>,
    /// Entries in split brain.
    pub split_brain: Option<u64>,
}

/// What gluster's command line printed, as text or XML.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlusterState {
    /// Bricks and daemons.
    pub bricks: Vec<GlusterBrick>,
    /// Other nodes.
    pub peers: Vec<GlusterPeer>,
    /// What is to be healed.
    pub heals: Vec<GlusterHeal>,
    /// Errors, as printed.
    pub errors: Vec<PlainText>,
    /// Commands that failed because another held the lock.
    pub refused: u64,
    /// Documents or answers that are well.
    pub answers: u64,
}
