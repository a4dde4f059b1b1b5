//! What is wrong with a command line, in iperf3's own words where it has some.

use std::fmt;

/// What iperf3 prints after every refusal.
pub(crate) const USAGE_HINT: &str =
    "Usage: iperf3 [-s|-c host] [options]\nTry `iperf3 --help' for more information.\n";

/// A command line that cannot be carried out. The exit code is 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Iperf3ArgumentError {
    /// No such long option, as typed.
    UnknownLong(String),
    /// No such letter, as typed.
    UnknownShort(String),
    /// An abbreviation, as typed, and the options that begin so.
    Ambiguous(String, Vec<&'static str>),
    /// A long option, by its whole name, without its argument.
    LongNeedsArgument(&'static str),
    /// A letter without its argument.
    ShortNeedsArgument(char),
    /// A flag, by its whole name, that was given an argument.
    TakesNoArgument(&'static str),
    /// A value or a combination that iperf3 refuses, or that cannot be run.
    Parameter {
        /// iperf3's text.
        text: String,
        /// The option at fault, as typed, or why a file cannot be used.
        detail: Option<String>,
        /// The format of `--timestamps`, for what concerns the command line as a whole.
        timestamps: Option<String>,
    },
}

impl fmt::Display for Iperf3ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownLong(name) => write!(f, "unrecognized option '--{name}'"),
            Self::UnknownShort(letter) => write!(f, "invalid option -- '{letter}'"),
            Self::Ambiguous(name, possibilities) => {
                write!(f, "option '--{name}' is ambiguous; possibilities:")?;
                possibilities
                    .iter()
                    .try_for_each(|possibility| write!(f, " '--{possibility}'"))
            }
            Self::LongNeedsArgument(name) => write!(f, "option '--{name}' requires an argument"),
            Self::ShortNeedsArgument(letter) => {
                write!(f, "option requires an argument -- '{letter}'")
            }
            Self::TakesNoArgument(name) => {
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
        Self::detailed(text, None)
    }

    /// A client that names a user needs more; `detail` is what is wrong with what it has.
    pub(crate) fn client_keys(detail: Option<String>) -> Self {
        let text = "you must specify a username, password, and path to a valid RSA public key";
        Self::detailed(text, detail)
    }

    /// A server that asks for users needs more.
    pub(crate) fn server_keys(detail: Option<String>) -> Self {
        let text = "you must specify a path to a valid RSA private key and a user credential file";
        Self::detailed(text, detail)
    }

    pub(crate) fn detailed(text: impl Into<String>, detail: Option<String>) -> Self {
        Self::Parameter {
            text: text.into(),
            detail,
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

    /// All that goes to stderr: `stamp` and the message, what is at fault, and the hint.
    pub(crate) fn report(&self, stamp: &str) -> String {
        let detail = match self {
            Self::Parameter {
                detail: Some(detail),
                ..
            } => format!("  {detail}\n"),
            _ => String::new(),
        };
        format!("{stamp}iperf3: {self}\n{detail}\n{USAGE_HINT}")
    }
}
