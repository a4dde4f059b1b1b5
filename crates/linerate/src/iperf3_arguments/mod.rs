//! iperf3's command line: the words of `linerate iperf3 …`, or of the program started as `iperf3`,
//! as a typed action. Options, values, defaults and refusals are those of iperf3 3.21.
//!
//! It reads no file and no environment: whether a key can be read and what the password is, is for
//! the caller to find out.

mod build;
mod error;
mod finish;
mod getopt;
mod help;
mod options;
#[cfg(test)]
mod tests;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use linerate_kernel::tcp::Keepalive;
use linerate_model::plan::{Family, Plan};
use linerate_model::units::{BitRate, Nanos};

pub(crate) use error::Iperf3ArgumentError;
pub(crate) use help::{help_text, version_text};

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Iperf3Action {
    Client(Box<Iperf3Client>),
    Server(Box<Iperf3Server>),
    /// Print [`help_text`] on stdout and exit with 0.
    Help,
    /// Print [`version_text`] on stdout and exit with 0.
    Version,
}

/// What both ends can be told.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a flag of the command line each"
)]
pub(crate) struct Iperf3Common {
    /// `-f`: one of `kmgtKMGT`; absent = the best unit for each figure.
    pub(crate) format: Option<char>,
    /// `-J`, or implied by `--json-stream`.
    pub(crate) json: bool,
    /// `--json-stream`.
    pub(crate) json_stream: bool,
    /// `--json-stream-full-output`.
    pub(crate) json_stream_full: bool,
    /// `-V`.
    pub(crate) verbose: bool,
    /// `-d`: 0 = off, 4 = all.
    pub(crate) debug_level: u8,
    /// `-i 0`: one report at the end. The interval is then the longest that a plan can have.
    pub(crate) without_intervals: bool,
    /// `--timestamps`: a `strftime` format.
    pub(crate) timestamps: Option<String>,
    /// `--logfile`.
    pub(crate) logfile: Option<PathBuf>,
    /// `-I`.
    pub(crate) pidfile: Option<PathBuf>,
    /// `-F`.
    pub(crate) file: Option<PathBuf>,
    /// `-A n`: CPU of this end.
    pub(crate) affinity: Option<u16>,
    /// `--rcv-timeout`, ms; 120000 unless given.
    pub(crate) receive_timeout_ms: u64,
    /// `--snd-timeout`, ms.
    pub(crate) send_timeout_ms: Option<u64>,
    /// `--cntl-ka=idle/interval/count`.
    pub(crate) control_keepalive: Option<Keepalive>,
    /// `--use-pkcs1-padding`.
    pub(crate) use_pkcs1_padding: bool,
    /// What iperf3 warns of on stderr, a sentence each, as `warning: …`.
    pub(crate) warnings: Vec<String>,
}

/// `iperf3 -c`.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a flag of the command line each"
)]
pub(crate) struct Iperf3Client {
    /// The test; it passed [`Plan::check`].
    pub(crate) plan: Plan,
    /// What a server can be told too.
    pub(crate) common: Iperf3Common,
    /// Whether `-l` was given. Where not, a UDP test should take the control connection's segment size.
    pub(crate) length_given: bool,
    /// Whether one of `-t`, `-n`, `-k` was given. Where not, `-F` sends the file's length.
    pub(crate) end_given: bool,
    /// `-t 0`, or `-t` with what is no number: until interrupted. The plan then has the longest time that it can have.
    pub(crate) endless: bool,
    /// `--get-server-output`.
    pub(crate) get_server_output: bool,
    /// `--udp-counters-64bit`.
    pub(crate) udp_counters_64bit: bool,
    /// `--gsro`.
    pub(crate) gsro: bool,
    /// `--username`.
    pub(crate) username: Option<String>,
    /// `--rsa-public-key-path`.
    pub(crate) rsa_public_key_path: Option<PathBuf>,
}

/// `iperf3 -s`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Iperf3Server {
    /// What a client can be told too.
    pub(crate) common: Iperf3Common,
    /// `-p`.
    pub(crate) port: u16,
    /// `-4`, `-6`.
    pub(crate) family: Family,
    /// `-B`.
    pub(crate) bind: Option<String>,
    /// `--bind-dev`, or `-B address%device`.
    pub(crate) bind_device: Option<String>,
    /// `-X`, as often as it was given: where SCTP's listener is bound.
    pub(crate) sctp_bind: Vec<String>,
    /// `-i`; with `-i 0` the longest interval.
    pub(crate) interval_ns: Nanos,
    /// `-1`.
    pub(crate) one_off: bool,
    /// `-D`.
    pub(crate) daemon: bool,
    /// `--idle-timeout`, s.
    pub(crate) idle_timeout_s: Option<u32>,
    /// `--server-bitrate-limit`; absent = none.
    pub(crate) bitrate_limit: Option<BitrateLimit>,
    /// `--server-max-duration`, s; absent = no limit.
    pub(crate) max_duration_s: Option<u32>,
    /// `--rsa-private-key-path`; given together with the users or not at all.
    pub(crate) rsa_private_key_path: Option<PathBuf>,
    /// `--authorized-users-path`.
    pub(crate) authorized_users_path: Option<PathBuf>,
    /// `--time-skew-threshold`, s; 10 unless given.
    pub(crate) time_skew_threshold_s: u32,
}

/// `--server-bitrate-limit rate/seconds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BitrateLimit {
    /// Of all streams of a test together.
    pub(crate) rate: BitRate,
    /// What it is averaged over; zero = every interval on its own.
    pub(crate) averaged_over: Nanos,
}

/// Reads the words after the program's name.
pub(crate) fn parse(
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Iperf3Action, Iperf3ArgumentError> {
    let mut scanner = getopt::Scanner::new(arguments.into_iter());
    let mut draft = build::Draft::default();
    while let Some(piece) = scanner.next_piece()? {
        match piece {
            getopt::Piece::Option(found) => match found.spelling.long {
                "help" => return Ok(Iperf3Action::Help),
                "version" => return Ok(Iperf3Action::Version),
                _ => draft.take(&found)?,
            },
            // iperf3 passes over it, too.
            getopt::Piece::Word(_) => {}
        }
    }
    let timestamps = draft.common.timestamps.clone();
    draft.finish().map_err(|error| error.stamped(timestamps))
}
