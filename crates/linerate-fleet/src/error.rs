//! Why a host did not answer.

use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;
use linerate_wire::agent::{FrameError, PROTOCOL};

/// A host and what went wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{host}: {trouble}")]
pub struct FleetError {
    /// The host, as it was named.
    pub host: String,
    /// What went wrong. It does not name the host, so that hosts with the same trouble can be named together.
    pub trouble: Trouble,
}

/// What went wrong with a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The carrier's program could not be started.
    #[error("cannot start `{program}`: {why}")]
    Carrier {
        /// The first word of its command line.
        program: String,
        /// The system's words.
        why: String,
    },
    /// Nothing came in time.
    #[error("no answer for {patience} while {phase}{}", last_words(.said))]
    Silent {
        /// What was waited for.
        phase: Phase,
        /// How long.
        patience: Nanos,
        /// The last line of standard error.
        said: PlainText,
    },
    /// The carrier ended.
    #[error("the connection ended while {phase}{}", last_words(.said))]
    Ended {
        /// What was done meanwhile.
        phase: Phase,
        /// The last line of standard error.
        said: PlainText,
    },
    /// The host cannot run linerate.
    #[error("{why}")]
    Bootstrap {
        /// The reason, as the script on the host gives it.
        why: PlainText,
    },
    /// The agent speaks other frames.
    #[error(
        "its linerate {version} speaks version {theirs} of the agent's protocol, this linerate version {PROTOCOL}; \
         use the same linerate on both"
    )]
    Protocol {
        /// The agent's version of linerate.
        version: PlainText,
        /// The agent's version of the protocol.
        theirs: u32,
    },
    /// What came is no frame, or none that belongs here.
    #[error("it sent what no agent sends: {source}")]
    Frame {
        /// What is wrong.
        source: FrameError,
    },
    /// A frame that makes no sense at this point.
    #[error("it sent what no agent sends: {what}")]
    OutOfTurn {
        /// What it was.
        what: String,
    },
    /// It sent output faster than it is read.
    #[error(
        "it sent more than {} MiB of output that was not read yet, which no command does; the connection was ended",
        most >> 20
    )]
    TooMuch {
        /// What may be queued, bytes.
        most: usize,
    },
    /// A question is too large for a frame.
    #[error("cannot ask for `{command}`: {source}")]
    Ask {
        /// The command.
        command: String,
        /// What is wrong.
        source: FrameError,
    },
    /// The agent did not run the command.
    #[error("it refused to run the command: {why}")]
    Refused {
        /// The agent's reason.
        why: PlainText,
    },
    /// Another command that must run alone runs there.
    #[error("it is busy: {who}")]
    Busy {
        /// Who asked for that.
        who: PlainText,
    },
    /// No password for sudo.
    #[error("sudo asks for a password there: {why}")]
    Password {
        /// Why there is none, or that it was refused.
        why: String,
    },
}

impl Trouble {
    pub(crate) fn of(self, host: &str) -> FleetError {
        FleetError {
            host: host.to_owned(),
            trouble: self,
        }
    }
}

/// What a connection was doing when something went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Until the first line of the script.
    Connecting,
    /// Sending the binary and checking it.
    Copying,
    /// Until the agent's first frame.
    Starting,
    /// From then on.
    Running,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Connecting => "connecting",
            Self::Copying => "copying linerate to it",
            Self::Starting => "starting linerate there",
            Self::Running => "the command ran",
        })
    }
}

/// The last line of standard error, behind a colon.
fn last_words(line: &PlainText) -> String {
    if line.is_empty() {
        String::new()
    } else {
        format!(": {line}")
    }
}
