//! What the program is asked to do, and how it can fail.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use linerate_engine::EngineError;

use crate::arguments::{self, Command};

/// What the program is asked to do.
pub(crate) enum Action {
    /// A command of its own, or iperf3's.
    Run(Command),
    /// Help or version.
    Print(String),
    /// Arguments that cannot be understood.
    Refuse(String),
}

/// Why an action failed. Each kind has its exit code, which docs/reference/options.md lists.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments contradict themselves or cannot be read.
    Usage(String),
    /// The test could not be run.
    Engine(EngineError),
    /// The test ran and failed on the way; what was measured was reported.
    Incomplete(String),
    /// A file could not be read or written.
    File(String),
    /// The ledger does not balance; the report says where.
    Unbalanced(String),
    /// The rate is not what was expected.
    Unexpected(String),
    /// The run does not decide whether the rate is what was expected.
    Undecided(String),
    /// Another test runs on a host that takes one at a time.
    Busy(String),
    /// A far end of a test could not be had, or the test could not be run there.
    Far(String),
    /// A server was to wait so long for a test, and none began.
    NoTest(String),
    /// A lab could not be had, or failed on the way.
    Lab(String),
    /// A setting of this host could not be saved, set or restored.
    Setting(String),
    /// A program that was run in a lab failed, with this exit code; it may have said why itself.
    Inner { code: u8, why: String },
    /// A comparison did not come out as expected; the output says where.
    Missed(String),
    /// Changes to the host were not made, and nothing was touched.
    Refused(String),
    /// Changes to the host were made and taken back as a whole.
    TakenBack(String),
    /// Not all of a host's old values are back.
    NotBack(String),
    /// Not all hosts of `--on` answered; those that did are in the output.
    Unreachable(String),
    /// The message was printed already: in iperf3's words, or as a report.
    Said,
    /// Standard output is gone.
    Output(std::io::Error),
}

impl Failure {
    /// Of a file: what could not be done to which, and why.
    pub(crate) fn cannot(what: &str, path: &Path, error: &dyn std::fmt::Display) -> Self {
        Self::File(format!("cannot {what} {}: {error}", path.display()))
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            // The reader of our output has enough of it.
            Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
            Self::Said | Self::Missed(_) | Self::Refused(_) => 1,
            Self::Inner { code, .. } => *code,
            Self::Usage(_) => 2,
            Self::Engine(_) | Self::Busy(_) | Self::Far(_) | Self::Lab(_) | Self::Setting(_) => 3,
            Self::Incomplete(_) | Self::NoTest(_) => 4,
            Self::File(_) | Self::Output(_) => 5,
            Self::Unbalanced(_) => 6,
            Self::Unexpected(_) => 7,
            Self::Undecided(_) => 8,
            Self::TakenBack(_) => 9,
            Self::NotBack(_) => 10,
            Self::Unreachable(_) => 11,
        })
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Plan(error) => Self::Usage(error.to_string()),
            error => Self::Engine(error),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(text)
            | Self::Incomplete(text)
            | Self::Busy(text)
            | Self::Far(text)
            | Self::NoTest(text)
            | Self::File(text)
            | Self::Unbalanced(text)
            | Self::Unexpected(text)
            | Self::Undecided(text)
            | Self::Lab(text)
            | Self::Setting(text)
            | Self::Missed(text)
            | Self::Refused(text)
            | Self::TakenBack(text)
            | Self::NotBack(text)
            | Self::Unreachable(text)
            | Self::Inner { why: text, .. } => f.write_str(text),
            Self::Engine(error) => error.fmt(f),
            Self::Said => Ok(()),
            Self::Output(error) => write!(f, "cannot write the output: {error}"),
        }
    }
}

/// Finds out what is asked. The binary under a name that begins with `iperf3` (`iperf3-amd64`, `iperf3.exe`) is iperf3, under
/// another one that begins with `iperf` (`iperf`, `iperf2`, `iperf-2.2`) it is iperf2.
pub(crate) fn parse(arguments: Vec<OsString>) -> Action {
    let name = arguments
        .first()
        .and_then(|path| Path::new(path).file_name());
    let is_called = |start: &str| {
        name.is_some_and(|name| name.as_encoded_bytes().starts_with(start.as_bytes()))
    };
    let command = arguments.get(1).filter(|_| !is_called("iperf"));
    let is_command = |word: &str| command.is_some_and(|first| first == word);
    let words = arguments.iter().skip(if command.is_some() { 2 } else { 1 });
    if is_called("iperf3") || is_command("iperf3") {
        let arguments = words.cloned().collect();
        return Action::Run(Command::Iperf3 { arguments });
    }
    if is_called("iperf") || is_command("iperf") {
        let arguments = words.cloned().collect();
        return Action::Run(Command::Iperf { arguments });
    }
    arguments::parse(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_that_begins_with_iperf3_is_iperf3() {
        for name in ["iperf3", "/opt/iperf3-amd64", "iperf3.exe", "./iperf3.17"] {
            let action = parse(vec![name.into(), "-v".into()]);
            assert!(
                matches!(action, Action::Run(Command::Iperf3 { arguments }) if arguments == ["-v"]),
                "{name}"
            );
        }
        for name in ["iperf", "/usr/bin/iperf2", "iperf-2.2.1"] {
            let action = parse(vec![name.into(), "-v".into()]);
            assert!(
                matches!(action, Action::Run(Command::Iperf { arguments }) if arguments == ["-v"]),
                "{name}"
            );
        }
        for name in ["linerate", "/iperf3/linerate", "my-iperf3"] {
            let action = parse(vec![name.into(), "--version".into()]);
            let other = matches!(
                action,
                Action::Run(Command::Iperf3 { .. } | Command::Iperf { .. })
            );
            assert!(!other, "{name}");
        }
    }
}
