//! Why a session ended before there was a record, and the error that the server sends to its client.

use std::io;

use crate::control::LinkError;

use super::Cause;
use super::limits::{
    CLIENT_STOPPED, CONTROL_CLOSED, NOTHING_READ, NOTHING_RECEIVED, NOTHING_SENT, UNKNOWN_MESSAGE,
};

/// Why a session ended before there was a record, or its test before it was complete.
pub(super) struct Refusal {
    pub(super) cause: Cause,
    /// For the log of this server.
    pub(super) reason: String,
}

impl Refusal {
    pub(super) fn new(cause: Cause, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { cause, reason }
    }

    /// The server sends iperf3's error number.
    pub(super) fn code(code: i32, reason: impl Into<String>) -> Self {
        Self::new(Cause::Code(code), reason)
    }

    /// And the kernel's.
    pub(super) fn system(code: i32, error: &io::Error, what: &str) -> Self {
        let errno = error.raw_os_error().unwrap_or(0);
        Self::new(Cause::System(code, errno), format!("{what}: {error}"))
    }

    /// The client's user stopped it.
    pub(super) fn client_stopped() -> Self {
        Self::new(Cause::ClientStopped, "it stopped before the test")
    }

    pub(super) fn client_done() -> Self {
        Self::new(Cause::ClientDone, "it ended the session before the test")
    }

    pub(super) fn server_stopped() -> Self {
        Self::new(Cause::ServerStopped, "the server was stopped")
    }
}

impl Cause {
    /// Of a control connection that is of no more use.
    pub(super) fn of(error: &LinkError) -> Self {
        match error {
            LinkError::Closed => Self::ClientClosed,
            LinkError::Io(error) => Self::Control(error.raw_os_error()),
            LinkError::Unsent(error) => {
                Self::System(NOTHING_SENT, error.raw_os_error().unwrap_or(0))
            }
            LinkError::Protocol(_) => Self::NotUnderstood,
        }
    }

    /// What iperf3's server tells the client of it: its error number and the kernel's; absent where it tells nothing.
    pub(super) const fn told(self) -> Option<(i32, i32)> {
        match self {
            Self::ClientStopped => Some((CLIENT_STOPPED, 0)),
            Self::ClientClosed => Some((CONTROL_CLOSED, 0)),
            Self::Control(Some(errno)) => Some((NOTHING_READ, errno)),
            Self::Control(None) => Some((NOTHING_READ, 0)),
            Self::NotUnderstood => Some((UNKNOWN_MESSAGE, 0)),
            Self::ClientSilent => Some((NOTHING_RECEIVED, 0)),
            Self::Code(code) => Some((code, 0)),
            Self::System(code, errno) | Self::Message { code, errno, .. } => Some((code, errno)),
            Self::ClientDone | Self::ServerStopped | Self::TurnedAway | Self::Host => None,
        }
    }
}

impl From<LinkError> for Refusal {
    fn from(error: LinkError) -> Self {
        Self::new(Cause::of(&error), error.to_string())
    }
}

impl From<linerate_wire::error::ProtocolError> for Refusal {
    fn from(error: linerate_wire::error::ProtocolError) -> Self {
        LinkError::from(error).into()
    }
}
