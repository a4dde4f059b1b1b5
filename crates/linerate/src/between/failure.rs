//! Why a test between two hosts was not made.

use linerate_fleet::{FleetError, Trouble};
use linerate_model::plain_text::PlainText;

/// What was being done when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Connecting to the host's agent.
    Session,
    /// Asking for the host's addresses.
    Addresses,
    /// Starting the server.
    Server,
    /// Finding out who reaches whom.
    Reach,
    /// Counting the traffic of others.
    Traffic,
    /// The test itself.
    Test,
    /// Reading the record that came back.
    Record,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Session => "connecting to the host",
            Self::Addresses => "asking the host for its addresses",
            Self::Server => "starting the server",
            Self::Reach => "finding an address that answers",
            Self::Traffic => "looking for other traffic",
            Self::Test => "the test ran",
            Self::Record => "reading the record",
        })
    }
}

/// A test that was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FarFailure {
    pub(crate) stage: Stage,
    /// The host where it failed, as the user calls it; absent = it lies between both.
    pub(crate) host: Option<String>,
    pub(crate) why: PlainText,
    /// Whose test the host runs instead, where it runs another.
    pub(crate) busy: Option<PlainText>,
    /// Whether the host's own rules forbid it.
    pub(crate) refused: bool,
    /// Whether the user stopped it.
    pub(crate) stopped: bool,
}

impl FarFailure {
    pub(crate) fn at(stage: Stage, host: &str, why: impl Into<PlainText>) -> Self {
        Self {
            stage,
            host: Some(host.to_owned()),
            why: why.into(),
            busy: None,
            refused: false,
            stopped: false,
        }
    }

    /// Of both hosts.
    pub(crate) fn between(stage: Stage, why: impl Into<PlainText>) -> Self {
        Self {
            host: None,
            ..Self::at(stage, "", why)
        }
    }

    /// The host runs somebody else's test.
    pub(crate) fn busy(stage: Stage, host: &str, by: &PlainText) -> Self {
        Self {
            busy: Some(by.clone()),
            ..Self::at(stage, host, format!("another test runs on this host: {by}"))
        }
    }

    /// The user wants no more.
    pub(crate) fn stopped(stage: Stage) -> Self {
        Self {
            stopped: true,
            ..Self::between(stage, "stopped")
        }
    }

    /// What the agent's session says.
    pub(crate) fn of(stage: Stage, error: FleetError) -> Self {
        match error.trouble {
            Trouble::Busy { who } => Self::busy(stage, &error.host, &who),
            trouble => Self {
                refused: matches!(trouble, Trouble::Refused { .. }),
                ..Self::at(stage, &error.host, trouble.to_string())
            },
        }
    }
}

impl std::fmt::Display for FarFailure {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.host {
            Some(host) => write!(out, "{}: {}", PlainText::from(host.as_str()), self.why),
            None => self.why.fmt(out),
        }
    }
}
