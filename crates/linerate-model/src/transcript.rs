//! What another tool printed, as it was pasted: figures with the precision of their digits.
//!
//! Nothing here is computed; what can be said of a transcript is said by rules.

use serde::{Deserialize, Serialize};

use crate::capture::{Capture, Conversation};
use crate::finding::Finding;
use crate::plain_text::PlainText;
use crate::plan::Protocol;
use crate::storage::{
    Arrays, CopySummary, CrashRun, Diskstats, DrbdGeneration, DrbdMeasured, DrbdMessage,
    DrbdSettings, DrbdStatus, FioJob, Geometry, GlusterEvent, GlusterState, Iostat, Iozone,
    NodeGroup, Session, Volumes,
};
use crate::units::{BitRate, Bytes, Nanos};

/// A number as it was printed: the true one lies within `half` of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Printed {
    /// The number, in the unit of the field that holds it.
    pub value: f64,
    /// Half of the last digit, in the same unit; 0 = exact.
    pub half: f64,
}

impl Printed {
    /// A number that nothing rounded.
    pub const fn exact(value: f64) -> Self {
        Self { value, half: 0.0 }
    }

    /// The least that it can have been.
    pub fn low(self) -> f64 {
        self.value - self.half
    }

    /// The most that it can have been.
    pub fn high(self) -> f64 {
        self.value + self.half
    }

    /// In another unit.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            half: self.half * factor,
        }
    }

    /// Whether a true number can lie both here and between `low` and `high`.
    pub fn meets(self, low: f64, high: f64) -> bool {
        self.low() <= high * (1.0 + 1e-9) && low <= self.high() * (1.0 + 1e-9)
    }
}

/// A line of the input, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// From 1 on.
    pub number: usize,
    /// Its text, at most 200 characters.
    pub text: PlainText,
}

/// A file, or what came from standard input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// The name that it was given under.
    pub name: PlainText,
    /// What it holds, in order.
    pub parts: Vec<Part>,
    /// Lines that no reader knows.
    pub not_understood: Vec<Line>,
}

/// One thing in a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", content = "held", rename_all = "snake_case")]
pub enum Part {
    /// A throughput test.
    Test(Box<TestOutput>),
    /// A table of transfers with amount, duration and rate.
    Table(RateTable),
    /// Sockets as `ss -ti` shows them.
    Sockets(Vec<Socket>),
    /// `iostat -x`.
    Iostat(Iostat),
    /// `/proc/diskstats`.
    Diskstats(Vec<Diskstats>),
    /// `/proc/drbd`, `drbdsetup status` or `drbdsetup events2`.
    Drbd(DrbdStatus),
    /// `drbdsetup show`.
    DrbdSettings(Vec<DrbdSettings>),
    /// `drbdadm show-gi`.
    DrbdGeneration(DrbdGeneration),
    /// What DRBD's tools and its kernel module refused or reported.
    DrbdMessages(Vec<DrbdMessage>),
    /// Resynchronisations that somebody measured under settings that are written beside them.
    DrbdMeasured(Vec<DrbdMeasured>),
    /// glusterd's log.
    Gluster(Vec<GlusterEvent>),
    /// Answers of gluster's command line.
    GlusterState(GlusterState),
    /// `sinfo`.
    Nodes(Vec<NodeGroup>),
    /// `vgs`, `lvs` and `pvs`.
    Volumes(Volumes),
    /// `/proc/mdstat`.
    Arrays(Arrays),
    /// fio's JSON.
    Fio(Vec<FioJob>),
    /// iozone's table.
    Iozone(Iozone),
    /// What programs that copy files say at their end.
    Copies(Vec<CopySummary>),
    /// Power cuts, and what was left.
    Crashes(Vec<CrashRun>),
    /// Lines of `/proc/mounts` of disk file systems.
    Geometry(Geometry),
    /// What stands around outputs in a pasted session.
    Session(Session),
    /// A packet capture's facts about itself.
    Capture(Box<Capture>),
    /// A TCP connection of the capture before it.
    Conversation(Box<Conversation>),
}

/// Which program printed a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// iperf 1 or 2, whose text is the same.
    Iperf2,
    /// iperf3, any version.
    Iperf3,
    /// nuttcp: rows of intervals and of the whole test.
    Nuttcp,
}

impl Tool {
    /// As people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iperf2 => "iperf 1 or 2",
            Self::Iperf3 => "iperf3",
            Self::Nuttcp => "nuttcp",
        }
    }
}

/// How it was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// For people.
    Text,
    /// Comma-separated.
    Csv,
    /// One document.
    Json,
    /// One object a line.
    JsonStream,
}

/// Which end printed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The end that connected.
    Client,
    /// The end that listened.
    Server,
}

/// What was asked for, as far as a command line in the transcript tells.
#[expect(
    clippy::struct_excessive_bools,
    reason = "options of a command line, each by itself"
)]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The command as printed there.
    pub command: PlainText,
    /// `-c` or `--dest`.
    pub host: Option<PlainText>,
    /// `-u`.
    pub udp: bool,
    /// `--sctp`, as the command line in the output shows it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sctp: bool,
    /// `-b`, with its number and the letter behind it: a letter is 1000 to some versions, 1024 to others.
    pub rate_bps: Option<f64>,
    /// `-b` with letters of 1024.
    pub rate_binary_bps: Option<f64>,
    /// `-w`, bytes.
    pub window_bytes: Option<f64>,
    /// `-t`, seconds.
    pub time_s: Option<f64>,
    /// `-i`, seconds.
    pub interval_s: Option<f64>,
    /// `-P`.
    pub streams: Option<u32>,
    /// `-l`, bytes.
    pub length_bytes: Option<f64>,
    /// `-R`.
    pub reverse: bool,
    /// `-d`, `--bidir`, `--full-duplex`.
    pub both_ways: bool,
}

/// The socket buffer that a tool announced.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// What the kernel gave, bytes.
    pub bytes: Printed,
    /// What was asked for, bytes, where the tool says that it differs.
    pub asked_bytes: Option<Printed>,
    /// It was not asked for.
    pub is_default: bool,
}

/// A connection of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// The number in brackets.
    pub id: u32,
    /// Local address.
    pub local: PlainText,
    /// TCP, UDP or SCTP port of this end.
    pub local_port: u16,
    /// The peer's address.
    pub remote: PlainText,
    /// The peer's port.
    pub remote_port: u16,
}

/// Whose figures a row holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// One stream, by the number in brackets.
    One(u32),
    /// All streams.
    Sum,
}

/// Where the figures of a row were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The row says `sender`.
    Sender,
    /// The row says `receiver`, or stands below iperf 2's `Server Report`.
    Receiver,
}

/// Which way the data of a row went, seen from the end that printed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// It sent them.
    Out,
    /// It received them.
    In,
}

/// Part of a test, or all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Span {
    /// One interval.
    Interval,
    /// The whole test.
    Total,
    /// An interval that the totals leave out.
    Omitted,
}

/// Datagrams of a row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Datagrams {
    /// All of them.
    pub total: u64,
    /// Those that did not arrive; absent in a sender's row.
    pub lost: Option<u64>,
    /// The loss as printed, in percent.
    pub lost_percent: Option<Printed>,
    /// Interarrival jitter as printed, ms.
    pub jitter_ms: Option<Printed>,
}

/// A row of figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// Whose.
    pub stream: Stream,
    /// Interval or total.
    pub span: Span,
    /// Begin, s since the start of the test.
    pub start_s: Printed,
    /// End, s since the start of the test.
    pub end_s: Printed,
    /// Payload, bytes.
    pub bytes: Printed,
    /// Rate, bit/s.
    pub bps: Printed,
    /// Where, if the row says so.
    pub end: Option<End>,
    /// Segments sent again.
    pub retransmits: Option<u64>,
    /// Congestion window, bytes.
    pub window_bytes: Option<Printed>,
    /// The peer's receive window, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_window_bytes: Option<Printed>,
    /// Smoothed round-trip time, µs.
    pub rtt_us: Option<Printed>,
    /// UDP: how many, and how many were lost.
    pub datagrams: Option<Datagrams>,
    /// Which way, where the row says so: in tests that run both ways at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<Way>,
    /// Requests that were answered, in iperf 2's `--bounceback`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounces: Option<Bounces>,
}

/// Requests and the times until their answers came.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bounces {
    /// How many.
    pub count: u64,
    /// Mean time to the answer, ms.
    pub mean_ms: f64,
    /// Shortest time to the answer, ms.
    pub least_ms: f64,
    /// Longest time to the answer, ms.
    pub most_ms: f64,
}

/// A histogram of a whole test, by its percentiles, each the upper end of its bin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// What was measured: the letters before `8-PDF` (`T`, `W`, `F`, `BB`).
    pub what: PlainText,
    /// Percentages and the times that so many did not exceed, ms.
    pub percentiles: Vec<(f64, f64)>,
}

impl Asked {
    /// The protocol, where an option names one.
    pub fn protocol(&self) -> Option<Protocol> {
        let sctp = self.sctp.then_some(Protocol::Sctp);
        self.udp.then_some(Protocol::Udp).or(sctp)
    }
}

impl Row {
    /// Its length, s.
    pub fn seconds(&self) -> f64 {
        self.end_s.value - self.start_s.value
    }
}

/// How a transcript of a test ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// With its totals.
    Whole,
    /// By hand (`^C`), with its totals.
    Stopped,
    /// The totals are missing.
    Cut,
}

/// A test that ran inside another one's log.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Inside {
    /// The other test, by its place among the parts.
    pub part: usize,
    /// When it began, s of the other test, to the other's interval.
    pub from_s: f64,
}

/// The output of one test at one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestOutput {
    /// The program.
    pub tool: Tool,
    /// Its version where it is printed.
    pub version: Option<PlainText>,
    /// How the tool printed it: text, CSV, JSON …
    pub layout: Layout,
    /// First and last line.
    pub lines: [usize; 2],
    /// What was asked for.
    pub asked: Asked,
    /// The end that printed it.
    pub side: Option<Side>,
    /// The way of this half of a test that ran both ways at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<Way>,
    /// The protocol, where it can be told.
    pub protocol: Option<Protocol>,
    /// The socket buffer.
    pub window: Option<Window>,
    /// Payload of a datagram, bytes, where it is printed.
    pub datagram_bytes: Option<f64>,
    /// Maximum segment size, bytes.
    pub mss_bytes: Option<f64>,
    /// Path MTU of the sender's kernel, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_mtu_bytes: Option<f64>,
    /// The sender's congestion control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<PlainText>,
    /// CPU time of the program that printed it, percent of one CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<f64>,
    /// In the order in which the output names them.
    pub connections: Vec<Connection>,
    /// Rows, in order.
    pub rows: Vec<Row>,
    /// Histograms of the whole test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histograms: Vec<Histogram>,
    /// Whether small requests were answered one by one (iperf 2's `--bounceback`): a test of latency.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_bounceback: bool,
    /// Least time that a connection took to open, ms: a round trip without a queue of the test's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ms: Option<f64>,
    /// `Sent N datagrams`.
    pub datagrams_sent: Option<u64>,
    /// Datagrams that arrived out of order.
    pub out_of_order: Option<u64>,
    /// How it ends.
    pub ending: Ending,
    /// The test in whose log it stands.
    pub inside: Option<Inside>,
    /// Errors that the program printed.
    pub errors: Vec<Line>,
}

/// A column of a table: its name, and the group above it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// As printed.
    pub name: PlainText,
    /// The heading of the group, where there are two lines of headings.
    pub group: Option<PlainText>,
}

/// A transfer: one cell for each column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableRow {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// A cell for each column; absent = no number.
    pub cells: Vec<Option<Printed>>,
}

/// Transfers as rows, with columns of amount, duration and rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateTable {
    /// First and last line.
    pub lines: [usize; 2],
    /// From left to right.
    pub columns: Vec<Column>,
    /// From the top.
    pub rows: Vec<TableRow>,
}

/// A TCP socket of `ss -ti`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Socket {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// Local address and port.
    pub local: PlainText,
    /// The peer's address and port.
    pub remote: PlainText,
    /// Bytes that wait in the receive queue.
    pub receive_queue: Option<u64>,
    /// Bytes that wait in the send queue, or are not acknowledged.
    pub send_queue: Option<u64>,
    /// Words with a value, `key:value`, in order.
    pub facts: Vec<(PlainText, PlainText)>,
}

/// What only a second source knows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Given {
    /// Round-trip time of the path.
    pub rtt: Option<Nanos>,
    /// Rate of the slowest link.
    pub link: Option<BitRate>,
    /// Socket buffer in force.
    pub buffer: Option<Bytes>,
    /// Bytes that the kernel counted.
    pub kernel_bytes: Option<Bytes>,
    /// Rate that was asked for.
    pub asked: Option<BitRate>,
    /// Amounts that were asked for, row by row: first, last, step.
    pub amounts: Option<[Bytes; 3]>,
    /// Mean queue depth of the disk.
    pub queue_depth: Option<f64>,
    /// Files written a second by all hosts together, before a power cut.
    #[serde(default)]
    pub files_per_second: Option<f64>,
    /// Files that are said to be lost in it.
    #[serde(default)]
    pub files_lost: Option<f64>,
    /// What changed between the transcripts.
    pub changed: Option<String>,
}

/// What was said of one part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// The transcript, by its place.
    pub transcript: usize,
    /// The part, by its place.
    pub part: usize,
    /// What it is, in words.
    pub title: String,
    /// What was computed again, and with what result.
    pub recomputed: Option<String>,
    /// Findings, the first is the answer.
    pub findings: Vec<Finding>,
}

/// Transcripts and what is said of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// One for each test, socket list, disk list … found in the input, in its order.
    pub transcripts: Vec<Transcript>,
    /// What a second source gave.
    pub given: Given,
    /// Part by part.
    pub explained: Vec<Explained>,
    /// What only several transcripts together say.
    pub together: Vec<Finding>,
}
