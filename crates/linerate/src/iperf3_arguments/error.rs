//! What is wrong with a command line, in iperf3's own words where it has some.

use std::fmt;

/// What iperf3 prints after every refusal.
pub(crate) const USAGE_HINT: &str =
    "Usage: iperf3 [-s|-c host] [options]\nTry `iperf3 --help' for more information.\n";

/// What a client needs that names a user.
pub(crate) const CLIENT_KEYS: &str =
    "you must specify a username, password, and path to a valid RSA public key";
/// What a server needs that asks for users.
pub(crate) const SERVER_KEYS: &str =
    "you must specify a path to a valid RSA private key and a user credential file";

/// iperf3's refusal of a command line whose files cannot be used, with our reason.
pub(crate) fn refusal(text: &str, reason: &str) -> String {
    let error = Iperf3ArgumentError::parameter(text);
    let report = format!("iperf3: {error}\n  {reason}\n\n{USAGE_HINT}");
    report.trim_end().to_owned()
}

/// A command line that cannot be carried out. The exit code is 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Iperf3ArgumentError {
    /// No such long option.
    UnknownLong {
        /// As typed.
        name: String,
    },
    /// No such letter.
    UnknownShort {
        /// As typed.
        letter: String,
    },
    /// An abbreviation that several options begin with.
    Ambiguous {
        /// As typed.
        name: String,
        /// The options that begin so.
        possibilities: Vec<&'static str>,
    },
    /// A long option without its argument.
    LongNeedsArgument {
        /// The option's whole name.
        name: &'static str,
    },
    /// A letter without its argument.
    ShortNeedsArgument {
        /// The letter.
        letter: char,
    },
    /// A flag that was given an argument.
    TakesNoArgument {
        /// The option's whole name.
        name: &'static str,
    },
    /// A value or a combination that iperf3 refuses, or that cannot be run.
    Parameter {
        /// iperf3's text.
        text: String,
        /// The option at fault, as typed, where there is one.
        given: Option<String>,
        /// The format of `--timestamps`, for what concerns the command line as a whole.
        timestamps: Option<String>,
    },
}

impl fmt::Display for Iperf3ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownLong { name } => write!(f, "unrecognized option '--{name}'"),
            Self::UnknownShort { letter } => write!(f, "invalid option -- '{letter}'"),
            Self::Ambiguous {
                name,
                possibilities,
            } => {
                write!(f, "option '--{name}' is ambiguous; possibilities:")?;
                possibilities
                    .iter()
                    .try_for_each(|possibility| write!(f, " '--{possibility}'"))
            }
            Self::LongNeedsArgument { name } => write!(f, "option '--{name}' requires an argument"),
            Self::ShortNeedsArgument { letter } => {
                write!(f, "option requires an argument -- '{letter}'")
            }
            Self::TakesNoArgument { name } => {
                write!(f, "option '--{name}' doesn't allow an argument")
            }
            Self::Parameter { text, .. } => write!(f, "parameter error - {text}"),
        }
    }
}

impl std::error::Error for Iperf3ArgumentError {}

impl Iperf3ArgumentError {
    /// A refusal that concerns the command line as a whole.
    pub(super) fn parameter(text: impl Into<String>) -> Self {
        Self::Parameter {
            text: text.into(),
            given: None,
            timestamps: None,
        }
    }

    /// With a time before its message, where there is a format for it.
    pub(super) fn stamped(mut self, format: Option<String>) -> Self {
        if let Self::Parameter { timestamps, .. } = &mut self {
            *timestamps = format;
        }
        self
    }

    /// The format of the time that stands before the message.
    pub(crate) fn timestamps(&self) -> Option<&str> {
        match self {
            Self::Parameter { timestamps, .. } => timestamps.as_deref(),
            _ => None,
        }
    }

    /// All that goes to stderr: `stamp` and the message, what was given, and the hint.
    pub(crate) fn report(&self, stamp: &str) -> String {
        let given = match self {
            Self::Parameter {
                given: Some(given), ..
            } => format!("  given: {given}\n"),
            _ => String::new(),
        };
        format!("{stamp}iperf3: {self}\n{given}\n{USAGE_HINT}")
    }
}
