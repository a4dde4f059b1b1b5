//! What went wrong, in iperf3's words, and what linerate knows beyond them.

use std::io::{self, ErrorKind};

use linerate_engine::EngineError;
use linerate_engine::client::Ended;
use linerate_engine::server::{Cause, Unread};
use linerate_kernel::tcp::Keepalive;
use linerate_kernel::thread::SignalFd;
use linerate_model::record::{Outcome, Role};
use linerate_model::words;
use linerate_report::iperf3::{ErrorCode, errno_text};
use linerate_wire::error::ProtocolError;

use crate::signals::{HANGUP, INTERRUPT, TERMINATE};

/// `ETIMEDOUT`, for waits that the engine itself gave up.
const TIMED_OUT: i32 = 110;
/// `ECONNRESET`.
const RESET: i32 = 104;
/// `ENOTCONN`.
const NOT_CONNECTED: i32 = 107;
/// `NET_HARDERROR`: what iperf3's reads return where the connection fails.
const READ_FAILED: i32 = -2;
/// The longest parameters that iperf3 reads, bytes.
const MOST_PARAMETERS: u32 = 8192;
/// `IESETCONGESTION`.
const CONGESTION: ErrorCode = ErrorCode(134);
/// `EINVAL`: what iperf3 says of a name that has no address.
pub(super) const INVALID: i32 = 22;

/// Why a run did not end as planned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wrong {
    /// iperf3's sentence: what the `error` key says.
    pub(super) sentence: String,
    /// What iperf3 warns of before it, on standard error whatever the output is.
    warning: Option<String>,
    /// Lines of text before it, without `iperf3: `.
    before: Option<String>,
    /// Whether iperf3 calls it an error: it writes `error - ` then.
    is_error: bool,
    /// What linerate knows beyond it.
    beyond: Option<String>,
    /// Whether iperf3's server says that it exits.
    exits: bool,
}

impl Wrong {
    /// An error of iperf3's table.
    pub(super) fn error(sentence: String) -> Self {
        Self {
            sentence,
            is_error: true,
            ..Self::default()
        }
    }

    /// What iperf3 says without calling it an error.
    pub(super) fn plain(sentence: String) -> Self {
        Self {
            sentence,
            ..Self::default()
        }
    }

    /// An error that the kernel gave.
    pub(super) fn of_kernel(code: ErrorCode, error: &std::io::Error) -> Self {
        Self::error(code.sentence(errno_of(error)))
    }

    /// With a line of iperf3's before it.
    pub(super) fn preceded_by(mut self, before: String) -> Self {
        self.before = Some(before);
        self
    }

    /// Without a sentence of ours.
    pub(super) fn alone(mut self) -> Self {
        self.beyond = None;
        self
    }

    /// With a sentence of ours behind it, unless it is iperf3's.
    pub(super) fn and(mut self, beyond: String) -> Self {
        self.beyond = Some(beyond).filter(|beyond| *beyond != self.sentence);
        self
    }

    /// With the word of a server that exits for it.
    pub(super) fn and_exiting(mut self) -> Self {
        self.exits = true;
        self
    }

    /// What iperf3 warns of before it.
    pub(super) fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// What the `error` key of a server's document says: a server writes the mark there, too.
    pub(super) fn of_server(&self) -> String {
        format!("{}{}", self.mark(), self.sentence)
    }

    const fn mark(&self) -> &'static str {
        words::when(self.is_error, "error - ")
    }

    /// This end was stopped by a signal, or by the engine's caller where there is none.
    pub(super) fn interrupted(role: Role, signal: Option<i32>) -> Self {
        let code = match role {
            Role::Client => ErrorCode::CLIENT_TERMINATED,
            Role::Server => ErrorCode::SERVER_TERMINATED,
        };
        let by = words::with(signal, |number| {
            format!(" by signal {}({number})", signal_text(number))
        });
        Self::plain(format!("interrupt - {}{by}", code.sentence(0)))
    }

    /// Keepalive probes of the control connection that take at least as long as the idle time before them.
    pub(super) fn of_keepalive(in_force: Keepalive) -> Self {
        let [idle, interval, count] =
            [in_force.idle_s, in_force.interval_s, in_force.count].map(Option::unwrap_or_default);
        let before = format!(
            "Keepalive Idle time ({idle}) should be greater than Retries-interval ({interval}) times Retries-count ({count})"
        );
        Self::error(ErrorCode::KEEPALIVE_PERIOD.sentence(0)).preceded_by(before)
    }

    /// Before a client's streams ran, or while they did.
    pub(super) fn of_client(error: &EngineError) -> Self {
        let (code, errno) = match error {
            EngineError::Connect { source, .. } if was_answered(source) => {
                (ErrorCode::RECEIVE_MESSAGE, errno_of(source))
            }
            // A local name that has no address has no number of the kernel's.
            EngineError::Connect { source, .. } => match errno_of(source) {
                0 => (ErrorCode::CONNECT, INVALID),
                errno => (ErrorCode::CONNECT, errno),
            },
            EngineError::Resolve { .. } => (ErrorCode::CONNECT, INVALID),
            EngineError::Busy { .. } => (ErrorCode::BUSY, 0),
            EngineError::Results { errno, .. } => (ErrorCode::RECEIVE_RESULTS, *errno),
            EngineError::Refused { code: 0, .. } => (ErrorCode::SERVER_TERMINATED, 0),
            EngineError::Keepalive { in_force } => return Self::of_keepalive(*in_force),
            EngineError::Refused { code, errno, .. } => (ErrorCode(*code), *errno),
            EngineError::Protocol { .. } => (ErrorCode::UNKNOWN_MESSAGE, 0),
            EngineError::Control { source, .. }
                if source.kind() == ErrorKind::ConnectionAborted =>
            {
                (ErrorCode::CONTROL_CLOSED, 0)
            }
            EngineError::Control { source, .. } => (ErrorCode::RECEIVE_MESSAGE, errno_of(source)),
            // Of all that is set on a stream, only a congestion control can be one that is not found.
            EngineError::Stream { source, .. } if source.kind() == ErrorKind::NotFound => {
                (CONGESTION, 0)
            }
            EngineError::Stream { source, .. } => (ErrorCode::STREAM_CONNECT, errno_of(source)),
            EngineError::Idle { .. } => (ErrorCode::IDLE, 0),
            EngineError::File { source, .. } => (ErrorCode::FILE, errno_of(source)),
            EngineError::Buffers { .. } => (ErrorCode::BUFFERS, 0),
            EngineError::FlowLabel { .. } => (ErrorCode::FLOW_LABEL, 0),
            EngineError::Host { source, .. } => (ErrorCode::INIT, errno_of(source)),
            _ => return Self::error(error.to_string()),
        };
        let sentence = code.sentence(errno);
        let said_all = match error {
            EngineError::Connect { source, .. } => source.kind() == ErrorKind::ConnectionRefused,
            EngineError::Busy { .. } | EngineError::Refused { code: 0, .. } => true,
            _ => false,
        };
        let warning = match error {
            EngineError::Results { unread, errno, .. } => {
                unread.map(|unread| unread_text(unread, *errno, None))
            }
            _ => None,
        };
        Self {
            warning,
            before: server_error(error),
            beyond: (!said_all).then(|| error.to_string()),
            ..Self::error(sentence)
        }
    }

    /// A client's test that has a record; `None` = it completed.
    pub(super) fn of_ended(ended: &Ended, signal: Option<i32>) -> Option<Self> {
        match &ended.record.outcome {
            Outcome::Completed => None,
            Outcome::Interrupted => Some(Self::interrupted(Role::Client, signal)),
            Outcome::PeerInterrupted => Some(Self::error(ErrorCode::SERVER_TERMINATED.sentence(0))),
            Outcome::Failed { error } => Some(match &ended.failure {
                // A server that ran the test is iperf3, whatever it said then.
                Some(failure) if is_unknown_state(failure) => Self::of_client(failure).alone(),
                Some(failure) => Self::of_client(failure).and(error.to_string()),
                None => Self::error(ErrorCode::STREAM_CLOSED.sentence(0)).and(error.to_string()),
            }),
        }
    }

    /// At a server. `reason` is ours. Of a client that only ends its session there is nothing to say.
    pub(super) fn at_server(cause: Cause, reason: &str, signal: Option<i32>) -> Option<Self> {
        let wrong = match cause {
            Cause::ClientDone => return None,
            Cause::ClientStopped => {
                return Some(Self::plain(ErrorCode::CLIENT_TERMINATED.sentence(0)));
            }
            Cause::ServerStopped => return Some(Self::interrupted(Role::Server, signal)),
            Cause::ClientClosed => {
                let sentence = "the client has unexpectedly closed the connection";
                return Some(Self::plain(sentence.to_owned()));
            }
            Cause::Code(code) if ErrorCode(code) == ErrorCode::EXPIRED => Self::error(
                "server test duration expired - test is terminated by the server".to_owned(),
            ),
            Cause::Code(code) => Self::error(ErrorCode(code).sentence(0)),
            // iperf3 fails to report the error to the client, and prints that failure.
            Cause::Control(Some(RESET)) | Cause::Message { errno: RESET, .. } => {
                Self::error(ErrorCode::SEND_MESSAGE.sentence(NOT_CONNECTED))
            }
            Cause::System(code, errno) | Cause::Message { code, errno, .. } => {
                Self::error(ErrorCode(code).sentence(errno))
            }
            Cause::Control(errno) => {
                Self::error(ErrorCode::RECEIVE_MESSAGE.sentence(errno.unwrap_or(0)))
            }
            Cause::ClientSilent => Self::error(ErrorCode::IDLE.sentence(0)),
            Cause::NotUnderstood => Self::error(ErrorCode::UNKNOWN_MESSAGE.sentence(0)),
            Cause::TurnedAway => Self::error(ErrorCode::BUSY.sentence(0)),
            Cause::Host => Self::error(ErrorCode::INIT.sentence(0)),
        };
        Some(wrong.and(reason.to_owned()))
    }

    /// The lines for standard error or the log, iperf3's first.
    pub(super) fn lines(&self) -> Vec<String> {
        let before = self.before.iter().map(|text| format!("iperf3: {text}"));
        let sentence = format!("iperf3: {}{}", self.mark(), self.sentence);
        let exits = self.exits.then(|| "iperf3: exiting".to_owned());
        let beyond = self.beyond.iter().map(|text| format!("linerate: {text}"));
        before
            .chain([sentence])
            .chain(exits)
            .chain(beyond)
            .collect()
    }
}

fn is_unknown_state(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Protocol {
            source: ProtocolError::NotIperf3 { .. },
            ..
        }
    )
}

/// A connection that was accepted and then reset: iperf3 fails at its first read.
fn was_answered(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::NotConnected
    )
}

/// The kernel's number, where the engine put its own text to an error as well; 0 where there is none.
pub(super) fn errno_of(error: &io::Error) -> i32 {
    let mut inner = error.get_ref().map(|inner| inner as &dyn std::error::Error);
    let inner = std::iter::from_fn(|| {
        let one = inner?;
        inner = one.source();
        Some(one)
    });
    let mut codes = inner.filter_map(|one| one.downcast_ref::<io::Error>()?.raw_os_error());
    let known = error.raw_os_error().or_else(|| codes.next());
    known.unwrap_or(match error.kind() {
        ErrorKind::PermissionDenied => 13,
        ErrorKind::AddrInUse => 98,
        ErrorKind::AddrNotAvailable => 99,
        ErrorKind::NetworkUnreachable => 101,
        ErrorKind::ConnectionReset => 104,
        ErrorKind::TimedOut => TIMED_OUT,
        ErrorKind::ConnectionRefused => 111,
        ErrorKind::HostUnreachable => 113,
        _ => 0,
    })
}

/// iperf3 repeats what a server sends as its error.
fn server_error(error: &EngineError) -> Option<String> {
    let EngineError::Refused {
        code: code @ 1..,
        errno,
        ..
    } = error
    else {
        return None;
    };
    let sentence = ErrorCode(*code).sentence(*errno);
    Some(if *errno > 0 {
        format!("SERVER ERROR - {sentence}, errno: {}", errno_text(*errno))
    } else {
        format!("SERVER ERROR - {sentence}")
    })
}

/// What iperf3 warns of at a server where not all of a message came.
pub(super) fn unread(cause: Cause) -> Option<String> {
    let Cause::Message {
        code,
        errno,
        unread: Some(unread),
    } = cause
    else {
        return None;
    };
    let most = (ErrorCode(code) == ErrorCode::RECEIVE_PARAMETERS).then_some(MOST_PARAMETERS);
    Some(unread_text(unread, errno, most))
}

/// The same at either end; `most` is the longest message that is allowed, bytes.
fn unread_text(unread: Unread, errno: i32, most: Option<u32>) -> String {
    let Unread {
        announced,
        received,
    } = unread;
    let Some(length) = announced else {
        let returned = if errno == 0 {
            received.to_string()
        } else {
            READ_FAILED.to_string()
        };
        return format!("Failed to read JSON data size - read returned {returned}; errno={errno}");
    };
    // As iperf3 prints it.
    let shown = length.cast_signed();
    if length == 0 || most.is_some_and(|most| length > most) {
        format!("JSON data length overflow - {shown} bytes JSON size is not allowed")
    } else if errno != 0 {
        format!("JSON data read failed; errno={errno}")
    } else {
        format!(
            "JSON size of data read does not correspond to offered length - expected {shown} bytes but received {received}; errno=0"
        )
    }
}

/// The signal that stopped this process, taken from its descriptor.
pub(super) fn signal_of(fd: &SignalFd) -> Option<i32> {
    fd.read().ok().flatten()
}

/// As `strsignal`, of the signals that are taken.
fn signal_text(number: i32) -> &'static str {
    match number {
        HANGUP => "Hangup",
        INTERRUPT => "Interrupt",
        TERMINATE => "Terminated",
        _ => "Unknown signal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(source: io::Error) -> EngineError {
        EngineError::Control {
            address: "192.0.2.1:5201".to_owned(),
            doing: "the test ran",
            source,
        }
    }

    #[test]
    fn a_clients_errors_are_iperf3s_and_the_rest_is_on_another_line() {
        let connect = |errno| EngineError::Connect {
            address: "192.0.2.1:5201".parse().unwrap(),
            source: io::Error::from_raw_os_error(errno),
        };
        let refused = EngineError::Refused {
            address: "192.0.2.1:5201".to_owned(),
            reason: "ours".to_owned(),
            code: 37,
            errno: 0,
        };
        let closed = control(io::Error::new(ErrorKind::ConnectionAborted, "closed"));
        let unconnected = "unable to connect to server - server may have stopped running or use a different port, firewall issue, etc.: ";
        for (error, sentence, lines) in [
            (connect(111), format!("{unconnected}Connection refused"), 1),
            (connect(113), format!("{unconnected}No route to host"), 2),
            (
                EngineError::Connect {
                    address: "192.0.2.1:5201".parse().unwrap(),
                    source: io::Error::new(ErrorKind::AddrNotAvailable, "ours (-B)"),
                },
                format!("{unconnected}Cannot assign requested address"),
                2,
            ),
            (
                refused,
                "client's requested duration exceeds the server's maximum permitted limit"
                    .to_owned(),
                3,
            ),
            (
                EngineError::Connect {
                    address: "192.0.2.1:5201".parse().unwrap(),
                    source: io::Error::new(io::ErrorKind::AddrNotAvailable, "ours"),
                },
                format!("{unconnected}Cannot assign requested address"),
                2,
            ),
            (
                closed,
                "control socket has closed unexpectedly".to_owned(),
                2,
            ),
        ] {
            let wrong = Wrong::of_client(&error);
            assert_eq!(wrong.sentence, sentence);
            let written = wrong.lines();
            assert_eq!(written.len(), lines, "{written:?}");
            assert!(
                written.contains(&format!("iperf3: error - {sentence}")),
                "{written:?}"
            );
        }
    }

    #[test]
    fn who_stops_a_test_is_named_as_iperf3_does() {
        let wrong = Wrong::interrupted(Role::Client, Some(HANGUP));
        assert_eq!(
            wrong.lines(),
            ["iperf3: interrupt - the client has terminated by signal Hangup(1)"]
        );
        let gone = Wrong::at_server(Cause::ClientStopped, "", None).unwrap();
        assert_eq!(gone.lines(), ["iperf3: the client has terminated"]);
        assert_eq!(Wrong::at_server(Cause::ClientDone, "", None), None);
    }

    #[test]
    fn a_message_that_did_not_come_whole_is_warned_of_as_iperf3_does() {
        let warning = |code, errno, announced, received| {
            let unread = Some(Unread {
                announced,
                received,
            });
            unread_at_server(code, errno, unread)
        };
        for (warning, text) in [
            (
                warning(117, 0, None, 2),
                "Failed to read JSON data size - read returned 2; errno=0",
            ),
            (
                warning(117, 104, None, 0),
                "Failed to read JSON data size - read returned -2; errno=104",
            ),
            (
                warning(117, 0, Some(500), 4),
                "JSON size of data read does not correspond to offered length - expected 500 bytes but received 4; errno=0",
            ),
            (
                warning(117, 0, Some(0xffff_fff0), 0),
                "JSON size of data read does not correspond to offered length - expected -16 bytes but received 0; errno=0",
            ),
            (
                warning(117, 104, Some(500), 0),
                "JSON data read failed; errno=104",
            ),
            (
                warning(117, 0, Some(0), 0),
                "JSON data length overflow - 0 bytes JSON size is not allowed",
            ),
            (
                warning(114, 0, Some(8193), 0),
                "JSON data length overflow - 8193 bytes JSON size is not allowed",
            ),
        ] {
            assert_eq!(warning.as_deref(), Some(text));
        }
        let whole = Cause::Message {
            code: 117,
            errno: 0,
            unread: None,
        };
        assert_eq!(unread(whole), None);
    }

    fn unread_at_server(code: i32, errno: i32, unread: Option<Unread>) -> Option<String> {
        super::unread(Cause::Message {
            code,
            errno,
            unread,
        })
    }
}
