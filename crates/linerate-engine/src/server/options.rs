//! How to serve.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use linerate_kernel::tcp::Keepalive;
use linerate_model::plan::{DEFAULT_PORT, Family};
use linerate_model::progress::Event;
use linerate_model::record::{RunRecord, Software};
use linerate_model::units::{BitRate, Nanos};
use linerate_wire::cookie::Cookie;

use crate::auth::Verifier;
use crate::transfer::Targets;

use super::ServerLimits;

/// Makes the report that a client asked for with `--get-server-output`.
pub type ServerOutput = Arc<dyn Fn(&RunRecord, &[Event]) -> OwnReport + Send + Sync>;

/// A server's report of a test, for its client.
#[derive(Debug, Clone, PartialEq)]
pub enum OwnReport {
    /// Lines.
    Text(String),
    /// A document.
    Json(serde_json::Value),
}

/// How to serve.
#[derive(Clone)]
pub struct ServerOptions {
    /// How it names itself.
    pub software: Software,
    /// The port; 0 = any free one.
    pub port: u16,
    /// The address to listen on; absent = all of both families.
    pub bind: Option<IpAddr>,
    /// The interface to listen on.
    pub bind_device: Option<String>,
    /// The addresses to listen on for SCTP (`-X`); none = those of TCP.
    pub sctp_bind: Vec<IpAddr>,
    /// Families to listen on.
    pub family: Family,
    /// Sockets that were passed in listening (systemd's socket activation).
    pub inherited: Vec<Arc<OwnedFd>>,
    /// End after one test.
    pub one_off: bool,
    /// Bounds.
    pub limits: ServerLimits,
    /// Who may test; absent = everybody.
    pub verifier: Option<Arc<Verifier>>,
    /// Between two intervals of progress.
    pub interval: Nanos,
    /// Tests that run may go on for this long after the server is asked to finish.
    pub grace: Nanos,
    /// For clients that ask for the server's report.
    pub output: Option<ServerOutput>,
    /// All TCP streams of a test together are read no faster than this: an application that is slow on
    /// purpose.
    pub read_rate: Option<BitRate>,
    /// The kernel gives a data connection up whose bytes stay unacknowledged for this long; `None` = as long as it
    /// repeats them.
    pub send_timeout: Option<Nanos>,
    /// A test from whose client nothing arrives for this long is ended (`--rcv-timeout`); absent = no such bound.
    pub receive_timeout: Option<Nanos>,
    /// TCP: send this file's content, or write what is received into it (`-F`). One test runs at a time then.
    pub file: Option<PathBuf>,
    /// Opens the targets that clients ask for; absent = none is taken.
    pub targets: Option<Targets>,
    /// The session token: no connection with another cookie is taken; absent = every client comes with its own. A server
    /// with a token runs one test at a time.
    pub token: Option<Cookie>,
    /// The server ends when no test has begun for this long, counted from its start or from the end of the last test;
    /// absent = it waits as long as it takes.
    pub wait: Option<Nanos>,
    /// A server of one test that no client visits for this long ends; absent = it waits as long as it takes.
    pub one_off_patience: Option<Nanos>,
    /// Probes of an idle control connection (`--cntl-ka`); absent = a peer that is gone is noticed within 20 s.
    pub control_keepalive: Option<Keepalive>,
    /// Answer iperf2's clients, on every port that is listened on.
    pub iperf2: bool,
    /// Listen on this port for them, TCP and UDP, beside [`ServerOptions::port`]; absent = on that one alone.
    pub iperf2_port: Option<u16>,
    /// Refuse a test whose socket buffers (`-w`) or CPU (`-A`) the kernel does not grant, as iperf3 does.
    pub strict: bool,
}

impl ServerOptions {
    /// Whether iperf2's clients are answered: not by a server for one owner of a token.
    pub(crate) fn answers_iperf2(&self) -> bool {
        self.iperf2 && self.token.is_none()
    }
}

impl std::fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerOptions")
            .field("port", &self.port)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            software: linerate_model::record::Software::this_program(),
            port: DEFAULT_PORT,
            bind: None,
            bind_device: None,
            sctp_bind: Vec::new(),
            family: Family::Any,
            inherited: Vec::new(),
            one_off: false,
            limits: ServerLimits::default(),
            verifier: None,
            interval: Nanos::from_millis(1000),
            grace: Nanos::from_millis(10_000),
            output: None,
            read_rate: None,
            send_timeout: None,
            receive_timeout: None,
            file: None,
            targets: None,
            token: None,
            wait: None,
            one_off_patience: None,
            control_keepalive: None,
            iperf2: false,
            iperf2_port: None,
            strict: false,
        }
    }
}
