//! What can go wrong before there is anything to report. Once a test runs, a failure is part of its record.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use linerate_kernel::tcp::Keepalive;
use linerate_model::plan::PlanError;
use linerate_wire::error::ProtocolError;
use linerate_wire::frame::Unread;

/// Why a test could not be run.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The plan contradicts itself.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The host's name gave no address.
    #[error("cannot find the address of '{host}': {reason}")]
    Resolve {
        /// The name.
        host: String,
        /// Why.
        reason: String,
    },
    /// Nobody answered, or who listened closed before the connection was accepted.
    #[error("cannot connect to {address}: {source}{}", advice(source))]
    Connect {
        /// Address and port that were tried.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The server runs another test and takes one at a time.
    #[error(
        "the server at {address} is busy, or does not allow this address; its log says which; try again later"
    )]
    Busy {
        /// The server.
        address: String,
    },
    /// The server refused.
    #[error("the server at {address} refused the test: {reason}")]
    Refused {
        /// The server.
        address: String,
        /// Its reason, as far as it says.
        reason: String,
        /// iperf3's error number; 0 = the server was stopped.
        code: i32,
        /// The server's errno, 0 where it sent none.
        errno: i32,
    },
    /// The peer does not speak the protocol.
    #[error("talking to {address}: {source}")]
    Protocol {
        /// The peer.
        address: String,
        /// What came.
        source: ProtocolError,
    },
    /// The control connection failed.
    #[error("the control connection to {address} failed while {doing}: {source}")]
    Control {
        /// The peer.
        address: String,
        /// What was being done.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The server's results could not be read.
    #[error("cannot read the results of {address}: {reason}")]
    Results {
        /// The server.
        address: String,
        /// Why.
        reason: String,
        /// The kernel's errno where the connection failed, 0 where it did not.
        errno: i32,
        /// What came of them, where not all of them came.
        unread: Option<Unread>,
    },
    /// A data stream could not be opened.
    #[error("cannot open data stream {id} to {address}: {source}")]
    Stream {
        /// Positional id, from 1 on.
        id: u32,
        /// The peer.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// A precision was asked for of a rate that is not known before the test ends.
    #[error(
        "--precision: the server at {address} is a stock iperf3, which does not report what arrives over UDP before \
         the test ends; omit --precision, test with -R, or run `linerate serve` there"
    )]
    Unseen {
        /// The server.
        address: String,
    },
    /// Less moved than shows that the test goes on.
    #[error("{reason}")]
    Idle {
        /// What did not move, and for how long.
        reason: String,
    },
    /// The server takes no files.
    #[error("the server at {address} does not take the files: {reason}")]
    Target {
        /// The server.
        address: String,
        /// Its reason.
        reason: String,
    },
    /// iperf2's wire does not carry what is asked for.
    #[error(
        "--iperf2: {what} does not go over iperf 2's wire; omit it, or test a `linerate serve` without --iperf2"
    )]
    NotOverIperf2 {
        /// What.
        what: &'static str,
    },
    /// The user stopped the test before it began.
    #[error("stopped before the test began")]
    StoppedEarly,
    /// The process whose connections are asked for is not there, or not ours to look at.
    #[error(
        "cannot list the sockets of process {pid}: {source}{}",
        process_advice(source)
    )]
    Process {
        /// Its number.
        pid: u32,
        /// Why.
        source: io::Error,
    },
    /// The kernel does not tell of its sockets.
    #[error("cannot watch connections: {reason}")]
    Watch {
        /// What was attempted, on what, and why it failed.
        reason: String,
    },
    /// Authentication cannot be done.
    #[error("authentication: {reason}")]
    Authentication {
        /// Why, and what to do.
        reason: String,
    },
    /// The file that a stream should send or write into cannot be opened.
    #[error("cannot open {} for the payload (-F): {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel grants smaller socket buffers than asked for.
    #[error(
        "-w {asked}: the kernel counts {granted} bytes for a socket buffer at most; raise net.core.rmem_max and net.core.wmem_max, or ask for less"
    )]
    Buffers {
        /// Asked for, bytes.
        asked: u64,
        /// The smaller of the two, with the kernel's own overhead, bytes.
        granted: u64,
    },
    /// The probes of the control connection's keepalive take at least as long as the idle time before them.
    #[error(
        "--cntl-ka: {} probes, one every {} s, take at least as long as the {} s of idle time before them; ask for a longer idle time",
        .in_force.count.unwrap_or(0), .in_force.interval_s.unwrap_or(0), .in_force.idle_s.unwrap_or(0)
    )]
    Keepalive {
        /// What the kernel has set.
        in_force: Keepalive,
    },
    /// A flow label for a server at an IPv4 address.
    #[error(
        "-L: {address} is an IPv4 address, and only IPv6 packets have a flow label; test over IPv6 (-6)"
    )]
    FlowLabel {
        /// The server.
        address: String,
    },
    /// This host refused something that every test needs.
    #[error("{operation}: {source}")]
    Host {
        /// What was attempted.
        operation: String,
        /// Why it failed.
        source: io::Error,
    },
}

impl EngineError {
    /// This host refused something that every test needs.
    pub(crate) fn host(operation: &'static str) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::Host {
            operation: operation.to_owned(),
            source,
        }
    }
}

/// What to do about a process that cannot be looked at.
fn process_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; there is no process of this number",
        io::ErrorKind::PermissionDenied => {
            "; it is another user's: observe as that user or as root, or by port (--port)"
        }
        _ => "",
    }
}

/// What to do about a failed connection.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "; is `linerate serve` running there, and is the port right (-p)?"
        }
        io::ErrorKind::TimedOut => "; a firewall may be dropping the port, or the host is down",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "; there is no route to it"
        }
        _ if was_let_fall(error) => {
            "; a server of one test at a time does that between two (try again), and so does one of something else (-p)"
        }
        _ => "",
    }
}

/// Whether the peer let a connection fall rather than the path, by whichever call heard of it first.
pub(crate) fn was_let_fall(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::NotConnected
    )
}
