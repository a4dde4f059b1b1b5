//! Why a session ended before there was a record, and the error that the server sends to its client.

use std::io;

use crate::control::LinkError;

use super::Cause;
use super::limits::{
    CLIENT_STOPPED, CONTROL_CLOSED, NOTHING_READ, NOTHING_RECEIVED, NOTHING_SENT, UNKNOWN_MESSAGE,
};

/// Why a session ended before there was a record.
pub(super) enum Refusal {
    /// The server sends iperf3's error number.
    Error(i32, String),
    /// And the kernel's.
    System(i32, io::Error, String),
    /// The connection is of no more use, or the client is of no interest.
    Gone(Cause, String),
}

impl Refusal {
    pub(super) fn cause(&self) -> Cause {
        match self {
            Self::Error(code, _) => Cause::Code(*code),
            Self::System(code, error, _) => Cause::System(*code, error.raw_os_error().unwrap_or(0)),
            Self::Gone(cause, _) => *cause,
        }
    }

    /// For the log of this server.
    pub(super) fn reason(self) -> String {
        match self {
            Self::Error(_, reason) | Self::Gone(_, reason) => reason,
            Self::System(_, error, what) => format!("{what}: {error}"),
        }
    }

    /// The client's user stopped it.
    pub(super) fn client_stopped() -> Self {
        Self::Gone(
            Cause::ClientStopped,
            "it stopped before the test".to_owned(),
        )
    }

    pub(super) fn client_done() -> Self {
        let reason = "it ended the session before the test".to_owned();
        Self::Gone(Cause::ClientDone, reason)
    }

    pub(super) fn server_stopped() -> Self {
        Self::Gone(Cause::ServerStopped, "the server was stopped".to_owned())
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
        Self::Gone(Cause::of(&error), error.to_string())
    }
}

impl From<linerate_wire::error::ProtocolError> for Refusal {
    fn from(error: linerate_wire::error::ProtocolError) -> Self {
        LinkError::from(error).into()
    }
}
