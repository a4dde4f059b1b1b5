//! What iperf2 would have printed: its text and its CSV (`-y C`), made from linerate's events while a test runs and from the
//! record at its end.
//!
//! Three layouts: those of 2.0 up to 2.0.12, of 2.1 (as Debian builds it) and of 2.2. It prints nothing and reads no clock: lines go out
//! as strings, without their newline. Figures mean what they mean in iperf2: a sender's are what it wrote, whatever arrived.

mod csv;
mod lines;

use linerate_model::plan::{Direction, Plan, Protocol};
use linerate_model::progress::{Event, Interval, StreamInterval, StreamOpened};
use linerate_model::record::{Role, RunRecord, StreamRecord};
use linerate_model::units::Nanos;

use csv::Csv;
use lines::{Datagrams, Figures};

const BAR: &str = "------------------------------------------------------------";
const HEAD: &str = "[ ID] Interval       Transfer     Bandwidth";
const HEAD_UDP: &str =
    "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams";

/// Whose layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// 2.0.12 and older: streams by their sockets' numbers, tenths of a second.
    V2_0,
    /// 2.1: by their places, ten thousandths of a second, no sums in CSV.
    V2_1,
    /// 2.2: hundredths of a second.
    V2_2,
}

/// How to show a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Iperf2Settings {
    /// Which end this is.
    pub role: Role,
    /// Whose layout.
    pub layout: Layout,
    /// `-y C`.
    pub csv: bool,
    /// `-f`: one of `kmgtaKMGTA`; absent = the best unit for each figure.
    pub format: Option<char>,
    /// `-i`: whether intervals are shown.
    pub intervals: bool,
    /// Client: the server as it was named.
    pub host: String,
}

/// The text of one test.
#[derive(Debug, Clone)]
pub struct Iperf2Text {
    settings: Iperf2Settings,
    plan: Plan,
    streams: Vec<StreamOpened>,
    /// The heads that were printed: each once.
    heads: Vec<&'static str>,
    /// `YYYYMMDDhhmmss` of now, for CSV.
    now: String,
}

/// What a server says before anybody comes: the protocol, the port, and the receive buffer of its sockets, bytes.
pub fn listening(
    layout: Layout,
    protocol: Protocol,
    port: u16,
    block_bytes: u64,
    buffer_bytes: u64,
) -> Vec<String> {
    let (name, buffer) = names(protocol);
    let mut lines = vec![
        BAR.to_owned(),
        format!("Server listening on {name} port {port}"),
    ];
    if protocol == Protocol::Udp && layout == Layout::V2_0 {
        lines.push(format!("Receiving {block_bytes} byte datagrams"));
    }
    let size = lines::bytes(buffer_bytes, layout, None);
    lines.push(format!("{buffer} size: {size} (default)"));
    lines.push(BAR.to_owned());
    lines
}

fn names(protocol: Protocol) -> (&'static str, &'static str) {
    match protocol {
        Protocol::Udp => ("UDP", "UDP buffer"),
        Protocol::Tcp | Protocol::Sctp => ("TCP", "TCP window"),
    }
}

impl Iperf2Text {
    /// For a test.
    pub fn new(settings: Iperf2Settings, plan: Plan) -> Self {
        Self {
            settings,
            plan,
            streams: Vec::new(),
            heads: Vec::new(),
            now: String::new(),
        }
    }

    /// Tells the time of what is printed from here on, `YYYYMMDDhhmmss` of the place.
    pub fn set_now(&mut self, now: String) {
        self.now = now;
    }

    /// The lines for an event.
    pub fn event(&mut self, event: &Event) -> Vec<String> {
        match event {
            Event::Opened { streams } => {
                self.streams.clone_from(streams);
                if self.settings.csv {
                    Vec::new()
                } else {
                    self.opened()
                }
            }
            Event::Interval(interval) if self.settings.intervals => self.interval(interval),
            _ => Vec::new(),
        }
    }

    fn opened(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.settings.role == Role::Client {
            lines = self.connecting();
        }
        let way = match self.plan.direction {
            _ if self.settings.layout == Layout::V2_0 => "",
            Direction::Send => "",
            Direction::Receive => " (reverse)",
            Direction::Both => " (full-duplex)",
        };
        lines.extend(self.connections().map(|stream| {
            let (local, port) = place(&stream.local);
            let (remote, remote_port) = place(&stream.remote);
            format!(
                "{} local {local} port {port} connected with {remote} port {remote_port}{way}",
                self.tag(stream.id)
            )
        }));
        lines
    }

    fn connecting(&self) -> Vec<String> {
        let plan = &self.plan;
        let (name, buffer) = names(plan.protocol);
        let mut lines = vec![
            BAR.to_owned(),
            format!(
                "Client connecting to {}, {name} port {}",
                self.settings.host, plan.port
            ),
        ];
        if plan.protocol == Protocol::Udp {
            lines.push(self.sending());
        }
        let mss = plan
            .mss_bytes
            .filter(|_| self.settings.layout != Layout::V2_0);
        lines.extend(mss.map(|mss| format!("MSS req size {mss} bytes (per TCP_MAXSEG)")));
        let granted = self
            .streams
            .first()
            .and_then(|stream| stream.send_buffer_bytes);
        if let Some(granted) = granted {
            let asked = match plan.window_bytes {
                None => " (default)".to_owned(),
                Some(asked) if asked.count() == granted => String::new(),
                Some(asked) => {
                    let asked = self.bytes(asked.count());
                    format!(" (WARNING: requested {})", asked.trim_start())
                }
            };
            lines.push(format!("{buffer} size: {}{asked}", self.bytes(granted)));
        }
        lines.push(BAR.to_owned());
        lines
    }

    fn sending(&self) -> String {
        let block = self.plan.block_bytes.count();
        match (self.settings.layout, self.plan.rate_bps) {
            (Layout::V2_1 | Layout::V2_2, Some(rate)) if rate.0 > 0 => {
                let gap = (block * 8) as f64 / rate.0 as f64 * 1e6;
                format!("Sending {block} byte datagrams, IPG target: {gap:.2} us (kalman adjust)")
            }
            _ => format!("Sending {block} byte datagrams"),
        }
    }

    fn bytes(&self, bytes: u64) -> String {
        lines::bytes(bytes, self.settings.layout, self.settings.format)
    }

    /// The connections: in both directions each has two streams.
    fn connections(&self) -> impl Iterator<Item = &StreamOpened> {
        let both = self.plan.direction == Direction::Both;
        let first = self.settings.role == Role::Client;
        let mut all = self.streams.iter();
        std::iter::from_fn(move || all.find(|stream| !both || stream.sends == first))
    }

    /// The stream's number: since 2.1 its connection's place, before that its socket's, of which 0 to 2 are taken.
    fn number(&self, id: u32) -> usize {
        let stream = self.streams.iter().find(|stream| stream.id == id);
        let of = |one: &StreamOpened| {
            stream
                .is_some_and(|stream| (&one.local, &one.remote) == (&stream.local, &stream.remote))
        };
        let at = self.connections().position(of).unwrap_or(0);
        match self.settings.layout {
            Layout::V2_0 => at + 3,
            Layout::V2_1 | Layout::V2_2 => at + 1,
        }
    }

    fn tag(&self, id: u32) -> String {
        format!("[{:3}]", self.number(id))
    }

    /// The tag of a stream's figures: one against the usual direction has a star.
    fn tag_of_figures(&self, id: u32) -> String {
        let usual = match (self.plan.direction, self.settings.role) {
            (Direction::Receive, Role::Server) => true,
            (_, role) => role == Role::Client,
        };
        let stream = self.streams.iter().find(|stream| stream.id == id);
        let turned = self.settings.layout != Layout::V2_0
            && stream.is_some_and(|stream| stream.sends != usual);
        if turned {
            return format!("[{:>3}]", format!("*{}", self.number(id)));
        }
        self.tag(id)
    }

    /// A head, the first time.
    fn head(&mut self, head: &'static str) -> Option<String> {
        let new = !self.heads.contains(&head);
        if new {
            self.heads.push(head);
        }
        new.then(|| head.to_owned())
    }

    fn interval(&mut self, interval: &Interval) -> Vec<String> {
        // The last one, of less than a moment, is none of iperf2's.
        if interval.to_ns.since(interval.from_ns).0 == 0 {
            return Vec::new();
        }
        let figures: Vec<(u32, Figures)> = interval
            .streams
            .iter()
            .map(|stream| (stream.id, of_interval(interval, stream)))
            .collect();
        self.table(&figures)
    }

    /// A line for each stream, and their sum.
    fn table(&mut self, figures: &[(u32, Figures)]) -> Vec<String> {
        if self.settings.csv {
            return self.csv(figures);
        }
        let mut lines = Vec::new();
        for (id, one) in figures {
            let head = if one.datagrams.is_some() {
                HEAD_UDP
            } else {
                HEAD
            };
            lines.extend(self.head(head));
            let tag = self.tag_of_figures(*id);
            lines.push(self.line(&tag, one));
            lines.extend(one.late(&tag, self.settings.layout));
        }
        if figures.len() > 1 {
            let sum = Figures::sum(figures.iter().map(|(_, one)| one));
            if self.settings.layout != Layout::V2_0 {
                lines.extend(self.head(HEAD));
            }
            lines.push(self.line("[SUM]", &sum));
        }
        lines
    }

    fn line(&self, tag: &str, figures: &Figures) -> String {
        figures.line(tag, self.settings.layout, self.settings.format)
    }

    fn rows(&self, own_first: bool) -> Csv<'_> {
        Csv {
            now: &self.now,
            layout: self.settings.layout,
            own_first,
        }
    }

    fn csv(&self, figures: &[(u32, Figures)]) -> Vec<String> {
        let (is_client, layout) = (self.settings.role == Role::Client, self.settings.layout);
        let csv = self.rows(is_client || layout == Layout::V2_0);
        let stream = |id: u32| self.streams.iter().find(|stream| stream.id == id);
        let mut lines: Vec<String> = figures
            .iter()
            .filter_map(|(id, one)| Some(csv.line(stream(*id)?, self.number(*id), one)))
            .collect();
        if let (Some(first), true) = (self.streams.first(), figures.len() > 1)
            && layout != Layout::V2_1
        {
            let sum = Figures::sum(figures.iter().map(|(_, one)| one));
            lines.push(csv.sum(first, &sum, is_client));
        }
        lines
    }

    /// The lines at the end.
    pub fn end(&mut self, record: &RunRecord) -> Vec<String> {
        let Some(half) = record.own_end() else {
            return Vec::new();
        };
        let figures: Vec<(u32, Figures)> = half
            .streams
            .iter()
            .map(|stream| (stream.id, of_stream(half.start_ns, stream)))
            .collect();
        let mut lines = self.table(&figures);
        if self.plan.protocol == Protocol::Udp
            && self.plan.direction == Direction::Send
            && self.settings.role == Role::Client
        {
            let sent = half.streams.iter().filter(|stream| stream.sends);
            let sent: Vec<(u32, u64)> = sent
                .filter_map(|stream| Some((stream.id, stream.udp.as_ref()?.sent)))
                .collect();
            if !self.settings.csv {
                lines.extend(self.sent(&sent));
            }
            lines.extend(self.server_report(record));
        }
        lines
    }

    /// What goes to standard error: flows whose report did not come.
    pub fn unanswered(&self, record: &RunRecord) -> Vec<String> {
        let reports = self.plan.protocol == Protocol::Udp && self.plan.direction == Direction::Send;
        let flows = self.streams.iter().filter(|stream| {
            let told = record.peer_results.iter().flat_map(|peer| &peer.streams);
            reports && !told.into_iter().any(|one| one.id == stream.id)
        });
        flows
            .map(|stream| {
                let tag = self.tag(stream.id);
                format!("{tag} WARNING: did not receive ack of last datagram after 10 tries.")
            })
            .collect()
    }

    fn sent(&self, sent: &[(u32, u64)]) -> Vec<String> {
        let mut lines: Vec<String> = sent
            .iter()
            .map(|(id, count)| format!("{} Sent {count} datagrams", self.tag(*id)))
            .collect();
        if sent.len() > 1 && self.settings.layout != Layout::V2_0 {
            let all: u64 = sent.iter().map(|(_, count)| count).sum();
            lines.push(format!("[SUM-{}] Sent {all} datagrams", sent.len()));
        }
        lines
    }

    /// What the server said of each flow.
    fn server_report(&mut self, record: &RunRecord) -> Vec<String> {
        let Some(peer) = &record.peer_results else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        for stream in &peer.streams {
            let figures = Figures {
                to_s: stream.end_time_s,
                bytes: stream.bytes,
                datagrams: Some(Datagrams {
                    jitter_ms: stream.jitter_s * 1e3,
                    lost: stream.errors,
                    total: stream.packets,
                    out_of_order: 0,
                }),
                ..Figures::default()
            };
            if self.settings.csv {
                lines.extend(self.csv_report(stream.id, &figures));
                continue;
            }
            let tag = self.tag(stream.id);
            lines.push(format!("{tag} Server Report:"));
            if self.settings.layout != Layout::V2_0 {
                lines.push(HEAD_UDP.to_owned());
            }
            lines.push(self.line(&tag, &figures));
        }
        lines
    }

    /// Before 2.1 a server's report is a line of its own, as the server would write it.
    fn csv_report(&self, id: u32, figures: &Figures) -> Option<String> {
        let stream = self.streams.iter().find(|stream| stream.id == id)?;
        let line = self.rows(false).line(stream, self.number(id), figures);
        (self.settings.layout == Layout::V2_0).then_some(line)
    }
}

/// An address and its port; of IPv6 without brackets.
fn place(text: &str) -> (&str, &str) {
    let (host, port) = text.rsplit_once(':').unwrap_or((text, "0"));
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

fn seconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e9
}

fn of_interval(interval: &Interval, stream: &StreamInterval) -> Figures {
    Figures {
        from_s: seconds(interval.from_ns),
        to_s: seconds(interval.to_ns),
        bytes: stream.bytes,
        sent: stream.udp.filter(|_| stream.sends).map(|udp| udp.packets),
        datagrams: stream.udp.filter(|_| !stream.sends).map(|udp| Datagrams {
            jitter_ms: udp.jitter_ns as f64 / 1e6,
            lost: udp.lost,
            total: udp.packets,
            out_of_order: udp.out_of_order,
        }),
    }
}

fn of_stream(start: Nanos, stream: &StreamRecord) -> Figures {
    let last = stream.last_byte_ns.unwrap_or(start);
    let udp = stream.udp.as_ref();
    Figures {
        from_s: 0.0,
        sent: udp.filter(|_| stream.sends).map(|udp| udp.sent),
        to_s: seconds(last.since(start)),
        bytes: stream.app_bytes,
        datagrams: udp.filter(|_| !stream.sends).map(|udp| {
            let lost = i64::try_from(udp.highest.saturating_sub(udp.unique)).unwrap_or(i64::MAX);
            Datagrams {
                jitter_ms: udp.jitter_ns.unwrap_or(0) as f64 / 1e6,
                lost,
                total: udp.highest,
                out_of_order: udp.reordered,
            }
        }),
    }
}
