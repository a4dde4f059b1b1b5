//! What iperf3 would have printed: its text, its `-J` document and its `--json-stream` lines, made from
//! linerate's events while a test runs and from the record at its end.
//!
//! It prints nothing and reads no clock: lines go out as strings, without their newline. Layout, keys,
//! types and units are those of iperf3 3.21; where iperf3's own figures mislead, the figures are right
//! here and the key keeps its meaning (docs/iperf3.md lists each difference).
//!
//! ```
//! use linerate_model::record::Role;
//! use linerate_report::iperf3::{Iperf3Settings, Json, Text};
//!
//! let settings = Iperf3Settings::new(Role::Client);
//! let text = Text::new(settings.clone(), None);
//! assert!(text.begin().is_empty());
//! let document = Json::new(settings, None).failed(Some("unable to connect to server")).join("\n");
//! assert!(document.contains("\"intervals\":"));
//! ```

pub(crate) mod amounts;
mod json;
mod json_end;
mod json_start;
mod sentences;
mod stopped_early;
mod summary;
mod summary_udp;
#[cfg(test)]
mod tests;
mod text;
mod text_end;
mod timeline;

use linerate_model::plan::{Direction, Plan, Protocol};
use linerate_model::progress::StreamOpened;
use linerate_model::record::{Flow, Outcome, Role, RunRecord};

pub use json::{IntervalRoom, Json};
pub use sentences::{ErrorCode, errno_text};
pub use text::Text;

/// The release of iperf3 whose layout is followed.
const RELEASE: &str = "3.21";

/// How to show a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a flag of the command line each"
)]
pub struct Iperf3Settings {
    /// Which end this is.
    pub role: Role,
    /// linerate's version, shown behind iperf3's.
    pub version: String,
    /// The system, as `uname -srnvm` prints it.
    pub system_info: String,
    /// `-f`: one of `kmgtKMGT`; absent = the best unit for each figure.
    pub format: Option<char>,
    /// `-V`.
    pub verbose: bool,
    /// `--json-stream`: one JSON object per line, live.
    pub json_stream: bool,
    /// `--json-stream-full-output`.
    pub json_stream_full: bool,
    /// `-T`: put before every line of a client's text.
    pub title: Option<String>,
    /// Whether `-l` was given: where not, `-V` tells the datagram size that was chosen.
    pub length_given: bool,
    /// `-t 0`: the JSON then says that the duration is 0.
    pub endless: bool,
    /// `-i 0`: the JSON then says that the interval is 0.
    pub without_intervals: bool,
    /// `--gsro`: named in the JSON's `test_start`.
    pub gsro: bool,
    /// `--get-server-output`: the server's report follows the client's.
    pub get_server_output: bool,
    /// The file of `-F`, as typed.
    pub file: Option<String>,
}

impl Iperf3Settings {
    /// A run without any option.
    pub fn new(role: Role) -> Self {
        Self {
            role,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            system_info: String::new(),
            format: None,
            verbose: false,
            json_stream: false,
            json_stream_full: false,
            title: None,
            length_given: false,
            endless: false,
            without_intervals: false,
            gsro: false,
            get_server_output: false,
            file: None,
        }
    }

    /// `iperf 3.21 (linerate 0.1.0)`: what reads `iperf 3.x` out of it finds a release that has the
    /// keys, and a human finds who wrote it.
    pub fn version_line(&self) -> String {
        format!("iperf {RELEASE} (linerate {})", self.version)
    }
}

/// Why a run did not end as planned, by its record alone: what the `error` key says where [`Json::set_error`] was not
/// called. `None` = it did.
fn error_text(record: &RunRecord) -> Option<String> {
    let (own, peer) = match record.written_by {
        Role::Client => ("client", "server"),
        Role::Server => ("server", "client"),
    };
    match &record.outcome {
        Outcome::Completed => None,
        Outcome::Interrupted => Some(format!("interrupt - the {own} has terminated")),
        Outcome::PeerInterrupted => Some(format!("the {peer} has terminated")),
        Outcome::Failed { error } => Some(error.to_string()),
    }
}

/// The plan as far as the streams show it, for a server that was not told.
fn plan_of(streams: &[StreamOpened]) -> Plan {
    let mut plan = Plan::new("");
    let of = |flow| streams.iter().filter(|stream| stream.flow == flow).count();
    let (forward, reverse) = (of(Flow::ClientToServer), of(Flow::ServerToClient));
    plan.direction = match (forward, reverse) {
        (_, 0) => Direction::Send,
        (0, _) => Direction::Receive,
        _ => Direction::Both,
    };
    plan.streams = u16::try_from(forward.max(reverse)).unwrap_or(u16::MAX);
    if streams
        .first()
        .is_some_and(|stream| stream.mss_bytes.is_none())
    {
        plan.protocol = Protocol::Udp;
    }
    plan
}

/// `[TX-C]` and its like, where both directions are shown.
fn tag(plan: &Plan, role: Role, sends: bool) -> &'static str {
    match (plan.direction, sends, role) {
        (Direction::Send | Direction::Receive, ..) => "",
        (_, true, Role::Client) => "[TX-C]",
        (_, false, Role::Client) => "[RX-C]",
        (_, true, Role::Server) => "[TX-S]",
        (_, false, Role::Server) => "[RX-S]",
    }
}

/// Host and port of `192.0.2.1:5201` or `[2001:db8::1]:5201`; an IPv4 address in IPv6 clothes is
/// undressed.
fn host_and_port(address: &str) -> (String, u16) {
    if let Ok(address) = address.parse::<std::net::SocketAddr>() {
        return (address.ip().to_canonical().to_string(), address.port());
    }
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    (
        host.trim_matches(['[', ']']).to_owned(),
        port.parse().unwrap_or(0),
    )
}

/// The directions of a plan, the client's first.
fn flows(plan: &Plan) -> &'static [Flow] {
    match plan.direction {
        Direction::Send => &[Flow::ClientToServer],
        Direction::Receive => &[Flow::ServerToClient],
        Direction::Both => &[Flow::ClientToServer, Flow::ServerToClient],
    }
}

/// How much of a file went over, in whole %; an empty file did so entirely.
fn percent_of_file(bytes: u64, size: u64) -> u64 {
    u128::from(bytes)
        .checked_mul(100)
        .and_then(|part| part.checked_div(u128::from(size)))
        .map_or(100, |percent| u64::try_from(percent).unwrap_or(u64::MAX))
}
