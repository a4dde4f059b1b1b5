//! iperf3's text while a test runs.

use linerate_model::plan::{Direction, End, Plan, Protocol};
use linerate_model::progress::{Event, Interval, StreamOpened};
use linerate_model::record::{ControlFacts, Role, RunRecord};

use super::amounts::{amount, two_digits};
use super::timeline::{Shown, Span, Sum, Timeline};
use super::{Iperf3Settings, host_and_port, stopped_early, tag, text_end};
use crate::date;
use crate::words;

pub(super) const SEPARATOR: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -";
const BAR: &str = "-----------------------------------------------------------";
const OMITTED: &str = "(omitted)";

/// The text of one test. Lines come without their newline and without `--timestamps`, which is the
/// caller's to put before each.
#[derive(Debug, Clone)]
pub struct Text {
    settings: Iperf3Settings,
    timeline: Timeline,
    /// Whether the table's head was printed.
    headed: bool,
}

impl Text {
    /// For a test. A client knows its plan; a server tells it with [`Self::set_plan`] once it has it.
    pub fn new(settings: Iperf3Settings, plan: Option<Plan>) -> Self {
        Self {
            settings,
            timeline: Timeline::new(plan),
            headed: false,
        }
    }

    /// The plan in force, as soon as it is known: before [`Event::Opened`] at the latest.
    pub fn set_plan(&mut self, plan: &Plan) {
        self.timeline.set_plan(plan);
    }

    /// What a server says before it waits for its next client.
    pub fn listening(port: u16, test_number: u64) -> Vec<String> {
        vec![
            BAR.to_owned(),
            format!("Server listening on {port} (test #{test_number})"),
            BAR.to_owned(),
        ]
    }

    /// What is said before anything is attempted.
    pub fn begin(&self) -> Vec<String> {
        if !self.settings.verbose {
            return Vec::new();
        }
        self.prefixed(vec![
            self.settings.version_line(),
            self.settings.system_info.clone(),
        ])
    }

    /// The lines for an event. [`Event::Warning`] has none: it belongs on stderr.
    pub fn event(&mut self, event: &Event) -> Vec<String> {
        let lines = match event {
            Event::Connected {
                control,
                cookie,
                at_unix_ms,
            } => self.connected(control, cookie, *at_unix_ms),
            Event::Opened { streams } => {
                self.timeline.open(streams);
                let told = self.timeline.told().filter(|_| self.settings.verbose);
                let asked = told.into_iter().flat_map(|plan| asked(plan, streams));
                asked.chain(streams.iter().map(opened)).collect()
            }
            Event::Started if self.settings.verbose => self.started().into_iter().collect(),
            Event::Interval(interval) => self.interval(interval),
            Event::Started | Event::Ending | Event::Warning { .. } => Vec::new(),
        };
        self.prefixed(lines)
    }

    /// The lines at the end. Why a run failed is said on stderr, see [`super::ErrorCode`].
    pub fn end(&mut self, record: &RunRecord) -> Vec<String> {
        self.timeline.set_plan(&record.plan);
        let lines = text_end::lines(&self.settings, &self.timeline, record);
        self.prefixed(lines)
    }

    /// The lines of a test that somebody stopped before its streams ran.
    pub fn stopped_early(&self) -> Vec<String> {
        self.prefixed(stopped_early::lines(&self.settings, &self.timeline.plan()))
    }

    fn prefixed(&self, lines: Vec<String>) -> Vec<String> {
        match &self.settings.title {
            Some(title) if self.settings.role == Role::Client => lines
                .into_iter()
                .map(|line| format!("{title}:  {line}"))
                .collect(),
            _ => lines,
        }
    }

    fn connected(&self, control: &ControlFacts, cookie: &str, at_unix_ms: u64) -> Vec<String> {
        let (plan, settings) = (self.timeline.plan(), &self.settings);
        let client = settings.role == Role::Client;
        let mut lines = Vec::new();
        if settings.verbose {
            if let Some(mss) = control.mss_bytes.filter(|_| client) {
                lines.push(format!("Control connection MSS {mss}"));
            }
            if client && plan.protocol == Protocol::Udp && !settings.length_given {
                lines.push(format!(
                    "Setting UDP block size to {}",
                    plan.block_bytes.count()
                ));
            }
            lines.push(format!("Time: {}", date::rfc1123(at_unix_ms / 1000)));
        }
        if client {
            lines.push(format!(
                "Connecting to host {}, port {}",
                plan.host, plan.port
            ));
            if plan.direction == Direction::Receive {
                lines.push(format!(
                    "Reverse mode, remote host {} is sending",
                    plan.host
                ));
            }
        } else {
            let (host, port) = host_and_port(&control.remote);
            lines.push(format!("Accepted connection from {host}, port {port}"));
        }
        if settings.verbose {
            lines.push(format!("      Cookie: {cookie}"));
        }
        lines
    }

    /// A server that was not told the plan does not make one up.
    fn started(&self) -> Option<String> {
        let plan = self.timeline.told()?;
        let protocol = protocol_name(plan);
        let head = format!(
            "Starting Test: protocol: {protocol}, {} streams, {} byte blocks, omitting {} seconds",
            plan.streams,
            plan.block_bytes.count(),
            whole_seconds(plan.omit_ns.as_secs_f64()),
        );
        let end = match plan.end {
            _ if self.settings.endless => "0 second test".to_owned(),
            End::TimeNs(span) => format!("{} second test", whole_seconds(span.as_secs_f64())),
            End::Bytes(bytes) => format!("{} bytes to send", bytes.count()),
            End::Blocks(blocks) => format!("{blocks} blocks to send"),
        };
        Some(format!("{head}, {end}, tos {}", plan.tos))
    }

    fn interval(&mut self, interval: &Interval) -> Vec<String> {
        let plan = self.timeline.plan();
        let Some(shown) = self.timeline.book(interval) else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        if !self.headed {
            self.headed = true;
            lines.push(self.head(&plan, &shown));
        } else if plan.streams > 1 {
            lines.push(SEPARATOR.to_owned());
        }
        let row = Row {
            settings: &self.settings,
            plan: &plan,
            note: if shown.omitted { OMITTED } else { "" },
        };
        for flow in super::flows(&plan) {
            lines.extend(shown.of(*flow).map(|stream| {
                let window = stream.moved.tcp.map(|tcp| tcp.snd_cwnd_bytes);
                let id = stream.socket.to_string();
                row.line(&id, stream.span, Sum::of([stream.moved]), window)
            }));
            if plan.streams > 1 {
                lines.push(row.line("SUM", shown.span(*flow), shown.sum(*flow), None));
            }
        }
        lines
    }

    fn head(&self, plan: &Plan, shown: &Shown) -> String {
        let columns = match plan.protocol {
            Protocol::Tcp
                if shown
                    .streams
                    .iter()
                    .any(|stream| stream.moved.tcp.is_some()) =>
            {
                "         Retr  Cwnd"
            }
            Protocol::Tcp | Protocol::Sctp => "",
            Protocol::Udp if plan.direction != Direction::Both && sends(&self.settings, plan) => {
                "         Total Datagrams"
            }
            Protocol::Udp => "         Jitter    Lost/Total Datagrams",
        };
        head(plan, columns)
    }
}

/// `-V`: what the test asks of its connections. The segment size is the data streams'; the control
/// connection's may be held down so that it survives a path on which large packets vanish.
fn asked(plan: &Plan, streams: &[StreamOpened]) -> Vec<String> {
    let found = streams.first().and_then(|stream| stream.mss_bytes);
    let mss = match (plan.protocol, plan.mss_bytes, found) {
        (Protocol::Tcp, Some(mss), _) => Some(format!("      TCP MSS: {mss}")),
        (Protocol::Tcp, None, Some(mss)) => Some(format!("      TCP MSS: {mss} (default)")),
        (Protocol::Tcp, None, None) | (Protocol::Udp | Protocol::Sctp, ..) => None,
    };
    let rate = plan
        .rate_bps
        .map(|rate| format!("      Target Bitrate: {}", rate.bits_per_second()));
    mss.into_iter().chain(rate).collect()
}

fn opened(stream: &StreamOpened) -> String {
    let ((local, local_port), (remote, remote_port)) =
        (host_and_port(&stream.local), host_and_port(&stream.remote));
    format!(
        "[{:3}] local {local} port {local_port} connected to {remote} port {remote_port}",
        stream.socket
    )
}

/// Whether this end sends, where there is one direction.
fn sends(settings: &Iperf3Settings, plan: &Plan) -> bool {
    (settings.role == Role::Client) == plan.client_sends()
}

/// The table's head with the columns after the rate.
pub(super) fn head(plan: &Plan, columns: &str) -> String {
    let role = words::when(plan.direction == Direction::Both, "[Role]");
    format!("[ ID]{role} Interval           Transfer     Bitrate{columns}")
}

/// `TCP`, `UDP` or `SCTP`.
pub(super) fn protocol_name(plan: &Plan) -> &'static str {
    match plan.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Sctp => "SCTP",
    }
}

/// Seconds as iperf3 takes them: whole ones.
pub(super) fn whole_seconds(seconds: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a plan's spans are at most a day"
    )]
    let whole = seconds as u64;
    whole
}

/// What the beginning of a line is made of.
pub(super) fn figures(
    id: &str,
    tag: &str,
    span: Span,
    bytes: u64,
    rate: f64,
    format: Option<char>,
) -> String {
    let (transfer, rate) = (
        amount(bytes as f64, 'A'),
        amount(rate, format.unwrap_or('a')),
    );
    format!(
        "[{id:>3}]{tag} {:6.2}-{:<6.2} sec  {transfer}s  {rate}s/sec",
        span.start, span.end
    )
}

/// `lost/all (percent%)`.
pub(super) fn lost_of(lost: i64, packets: u64, percent: f64) -> String {
    format!("{lost}/{packets} ({}%)", two_digits(percent))
}

/// The rows of an interval.
struct Row<'a> {
    settings: &'a Iperf3Settings,
    plan: &'a Plan,
    note: &'a str,
}

impl Row<'_> {
    /// Of a stream, which has a congestion window in bytes where TCP told it, or of all together.
    fn line(&self, id: &str, span: Span, sum: Sum, window: Option<u64>) -> String {
        let (note, settings) = (self.note, self.settings);
        let tag = tag(self.plan, settings.role, sum.sends);
        let rate = span.rate(sum.bytes);
        let figures = figures(id, tag, span, sum.bytes, rate, settings.format);
        match (self.plan.protocol, sum.retransmits) {
            (Protocol::Tcp, Some(retransmits)) => {
                let window = window.map(|bytes| amount(bytes as f64, 'A'));
                let window =
                    window.map_or_else(|| " ".repeat(13), |window| format!("   {window}s       "));
                format!("{figures}  {retransmits:3}{window}{note}")
            }
            (Protocol::Tcp, None) | (Protocol::Sctp, _) => {
                format!("{figures}                  {note}")
            }
            (Protocol::Udp, _) if sum.sends => {
                let gap = words::when(self.plan.direction == Direction::Both, "          ");
                format!("{figures} {gap} {}  {note}", sum.packets)
            }
            (Protocol::Udp, _) => {
                let lost = lost_of(sum.lost, sum.packets, sum.lost_percent());
                format!("{figures}  {:5.3} ms  {lost}  {note}", sum.jitter_ms)
            }
        }
    }
}
