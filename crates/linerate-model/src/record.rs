//! The record of a run: raw facts of both ends, versioned, as it is kept in a file.
//!
//! Derived figures (goodput, ledger, findings) are computed from it and never stored in it. Every
//! `_ns` instant stands on the monotonic clock of the end that took it; [`RunRecord::clock`] relates
//! the two. A reader ignores fields it does not know and refuses a newer [`SCHEMA_VERSION`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::clock::ClockPair;
use crate::column::Column;
use crate::counter_test::CounterRun;
use crate::fingerprint::Fingerprint;
use crate::plain_text::{PlainLines, PlainText};
use crate::plan::Plan;
use crate::series::Series;
use crate::tcp_info::TcpFacts;
use crate::transfer::{CellRun, StageRecord};
use crate::transit::{MOST_ENTRIES, Transits};
use crate::units::{Bytes, Nanos};
use crate::working_latency::LatencyProbes;

/// The version of the record that this build writes; it reads this one and older ones.
pub const SCHEMA_VERSION: u32 = 1;

/// What kind of record a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A test that linerate ran.
    Test,
    /// What a kernel said of connections that other programs held ([`crate::observation`]).
    Observation,
    /// What a kernel counted of block devices ([`crate::disk_watch`]).
    DiskWatch,
    /// What another program printed ([`crate::transcript`]); made to be judged, never kept in a file.
    Transcript,
}

/// Which end of the control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The end that connected.
    Client,
    /// The end that listened.
    Server,
}

/// Which way payload went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    /// The client sent.
    ClientToServer,
    /// The server sent.
    ServerToClient,
}

/// A program and its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Software {
    /// `linerate`, or `iperf3` of a stock peer.
    pub name: PlainText,
    /// As the program prints it: `3.16`, `0.1.0`.
    pub version: PlainText,
}

impl Software {
    /// This program, as it names itself in records and to its peers.
    pub fn this_program() -> Self {
        Self {
            name: "linerate".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum Outcome {
    /// As planned.
    Completed,
    /// The user of this end stopped it.
    Interrupted,
    /// The peer's user stopped it.
    PeerInterrupted,
    /// It failed on the way; what was measured until then is in the record.
    Failed {
        /// What was attempted, on what, and why it failed.
        error: PlainText,
    },
}

/// Something worth knowing about how the run went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// A stable name.
    pub id: PlainText,
    /// A sentence.
    pub text: PlainText,
}

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// What kind of record this is.
    pub kind: Kind,
    /// The end that wrote it.
    pub written_by: Role,
    /// The writer.
    pub software: Software,
    /// Wall-clock label of the start, ms since 1970-01-01 UTC. Nothing is computed from it.
    pub started_at_unix_ms: u64,
    /// The plan in force.
    pub plan: Plan,
    /// How it ended.
    pub outcome: Outcome,
    /// The test's cookie on the wire, which both ends know.
    pub cookie: PlainText,
    /// The control connection.
    pub control: ControlFacts,
    /// The client's half. Absent in a server's record of a stock client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<EndRecord>,
    /// The server's half. Absent in a client's record of a stock server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<EndRecord>,
    /// What the peer said in iperf3's results message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_results: Option<PeerResults>,
    /// The server's monotonic clock minus the client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockPair>,
    /// Round trips of small messages before, under and after the load, measured by the client; absent where they were
    /// not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Box<LatencyProbes>>,
    /// Remarks on how the run went.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Runs made after it to decide its findings, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counter_runs: Vec<CounterRun>,
    /// Runs that tell the stages of a transfer apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<CellRun>,
    /// What the user calls the hosts, where the test was started from elsewhere (`test --from --to`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_names: Option<HostNames>,
}

/// What a user calls the two hosts of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostNames {
    /// The client's.
    pub client: PlainText,
    /// The server's.
    pub server: PlainText,
}

/// The control connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlFacts {
    /// Our address and port.
    pub local: PlainText,
    /// The peer's address and port.
    pub remote: PlainText,
    /// The peer's software, where it said so; absent = a stock iperf3 of unknown version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_software: Option<PlainText>,
    /// The peer is an iperf2, and this is its version as far as it shows; absent = it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iperf2: Option<PlainText>,
    /// Maximum segment size of the control connection, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u32>,
    /// Time that the connection took to open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ns: Option<Nanos>,
}

impl ControlFacts {
    /// What the peer is where it is no linerate.
    pub const fn stock_peer(&self) -> &'static str {
        if self.iperf2.is_some() {
            "iperf 2"
        } else {
            "iperf3"
        }
    }
}

/// One end's half of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndRecord {
    /// Which end.
    pub role: Role,
    /// Its program.
    pub software: Software,
    /// Kernel, CPUs and settings of the host that this end ran on.
    pub host: HostFacts,
    /// The interface that carried the streams, where it could be found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<InterfaceFacts>,
    /// When the streams were let go, this end's clock.
    pub start_ns: Nanos,
    /// When the test was ended, before draining, this end's clock.
    pub end_ns: Nanos,
    /// CPU time of the whole process between start and end.
    pub cpu: CpuUse,
    /// Its streams: of both directions, in the order of their ids.
    pub streams: Vec<StreamRecord>,
    /// Host counters about ten times a second: `cpu0.busy_ms`, `softnet.dropped`, `if.tx_bytes`,
    /// `qdisc.drops`, `Tcp.RetransSegs` …
    #[serde(default)]
    pub counters: Series,
    /// The interface's counters before the first and after the last byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_counters: Option<InterfacePair>,
    /// Growth of the namespace's protocol counters from before to after, those that moved.
    #[serde(default)]
    pub protocol_growth: BTreeMap<PlainText, u64>,
    /// What this end read from files, or wrote to them, where the test was a transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<StageRecord>,
}

/// A process's or thread's CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuUse {
    /// In the program, ns.
    pub user_ns: u64,
    /// In the kernel on its behalf, ns.
    pub system_ns: u64,
}

/// What a host is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<PlainText>,
    /// Kernel release, as `uname -r`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<PlainText>,
    /// Machine architecture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<PlainText>,
    /// The kernel's random id of this boot: equal at both ends = one machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<PlainText>,
    /// Inode of the network namespace: equal at both ends of one machine = no network between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_namespace: Option<u64>,
    /// Processor model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<PlainText>,
    /// Processors online.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// `MemTotal`, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Virtual machine or container, where it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtualisation: Option<PlainText>,
    /// `net.ipv4.tcp_rmem`: least, initial, most, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_rmem: Option<[u64; 3]>,
    /// `net.ipv4.tcp_wmem`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_wmem: Option<[u64; 3]>,
    /// `net.core.rmem_max`, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmem_max: Option<u64>,
    /// `net.core.wmem_max`, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wmem_max: Option<u64>,
    /// Default congestion control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<PlainText>,
    /// Default queueing discipline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_qdisc: Option<PlainText>,
    /// What else of the host can make the same test give another figure, read when the run was over. Absent in older
    /// records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
}

/// What an interface is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterfaceFacts {
    /// As `ip link` prints it.
    pub name: PlainText,
    /// Its index in its namespace.
    pub index: u32,
    /// Largest IP packet, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu_bytes: Option<u32>,
    /// Its kind: `veth`, `bond`, `loopback` …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<PlainText>,
    /// Name of the kernel driver: `mlx5_core`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<PlainText>,
    /// Link speed, Mbit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_mbit_per_s: Option<u64>,
    /// Kind of its root queueing discipline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qdisc: Option<PlainText>,
}

/// Kinds of interface whose speed is made up.
const VIRTUAL: [&str; 6] = ["veth", "loopback", "tun", "bridge", "dummy", "macvlan"];

impl InterfaceFacts {
    /// The link's speed, bit/s; `None` where it is not known or where the kind of interface has none.
    pub fn speed_bps(&self) -> Option<u64> {
        let real = !self
            .kind
            .as_deref()
            .is_some_and(|kind| VIRTUAL.contains(&kind));
        self.speed_mbit_per_s
            .filter(|speed| real && *speed > 0)
            .map(|speed| speed.saturating_mul(1_000_000))
    }
}

/// An interface's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceCounters {
    /// Bytes received, with link headers.
    pub rx_bytes: u64,
    /// Bytes sent, with link headers.
    pub tx_bytes: u64,
    /// Packets received (merged ones count once).
    pub rx_packets: u64,
    /// Packets sent (segmented later, they count once).
    pub tx_packets: u64,
    /// Received and dropped.
    pub rx_dropped: u64,
    /// Dropped on sending.
    pub tx_dropped: u64,
    /// Dropped by its root queueing discipline; absent where that does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qdisc_dropped: Option<u64>,
}

/// Counters before and after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfacePair {
    /// Before the first byte of payload.
    pub before: InterfaceCounters,
    /// After the streams were drained.
    pub after: InterfaceCounters,
}

/// One stream at one end.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts of a stream, each a field of the record"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamRecord {
    /// Positional id, the same at both ends: 1, 3, 4, 5 …
    pub id: u32,
    /// Which way its payload goes.
    pub flow: Flow,
    /// Whether this end sends the payload.
    pub sends: bool,
    /// Local address and port.
    pub local: PlainText,
    /// Remote address and port.
    pub remote: PlainText,
    /// Congestion control really in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<PlainText>,
    /// Maximum segment size at the start, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u32>,
    /// Path MTU that the kernel believes in, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_mtu_bytes: Option<u32>,
    /// Socket buffer asked for with `-w`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_asked_bytes: Option<Bytes>,
    /// Send buffer granted, as the kernel accounts it (twice what was asked for), at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u64>,
    /// Receive buffer granted, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
    /// First payload byte written or read, this end's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ns: Option<Nanos>,
    /// Last payload byte written or read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_byte_ns: Option<Nanos>,
    /// When the omitted part ended at this end; absent where nothing was omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omit_until_ns: Option<Nanos>,
    /// Payload that the application wrote or read, the omitted part included, the cookie not.
    pub app_bytes: u64,
    /// Of it, in the omitted part.
    #[serde(default)]
    pub omitted_bytes: u64,
    /// Size of the file that this end sent from or wrote into (`-F`), when the stream ended; absent = no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// Cookie bytes that this end wrote (client) or read (server) on this connection: 37, or 0.
    #[serde(default)]
    pub cookie_bytes: u64,
    /// Whether this end is the active opener: its SYN is then counted in `bytes_acked`.
    #[serde(default)]
    pub active_opener: bool,
    /// What lay in the receive queue when reading ended, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_bytes: Option<u64>,
    /// Receiver: the peer's end of data was read. Sender: all was acknowledged before closing.
    #[serde(default)]
    pub drained: bool,
    /// The kernel's own account when the stream ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpFacts>,
    /// Datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpCounts>,
    /// Whether the payload went to the kernel by reference, through a pipe (splice(2)), from when the copying held the sender.
    #[serde(default)]
    pub spliced: bool,
    /// Zero-copy sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zerocopy: Option<ZerocopyCounts>,
    /// CPU time of the stream's thread.
    #[serde(default)]
    pub cpu: CpuUse,
    /// `app_bytes` and the kernel's counters over time.
    #[serde(default)]
    pub samples: Series,
    /// 1 = every sample was kept; n = memory was bounded by keeping every n-th.
    #[serde(default = "one")]
    pub thinned: u32,
    /// CPU time spent taking samples, ns.
    #[serde(default)]
    pub sampling_ns: u64,
    /// What ended this stream before its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<PlainText>,
    /// Whether the kernel refused a datagram as longer than the path MTU it knows (`EMSGSIZE`), which ended the stream.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub too_long: bool,
}

const fn one() -> u32 {
    1
}

/// One end's datagrams of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UdpCounts {
    /// Handed to the kernel (sender).
    pub sent: u64,
    /// Of them, in the omitted part.
    pub sent_omitted: u64,
    /// Read from the socket (receiver), duplicates included.
    pub received: u64,
    /// First deliveries.
    pub unique: u64,
    /// Deliveries of a counter already delivered.
    pub duplicates: u64,
    /// First deliveries with a counter below the highest seen (RFC 4737).
    pub reordered: u64,
    /// Too far behind the highest to tell late from duplicate.
    pub too_old: u64,
    /// Highest counter seen.
    pub highest: u64,
    /// First deliveries in the omitted part.
    pub unique_omitted: u64,
    /// Highest counter when the omitted part ended.
    pub highest_omitted: u64,
    /// Datagrams dropped at the receiver's socket: those missing between two deliveries across which
    /// the kernel's count grew; absent = not known. A loss on the path in the same gap counts here too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_drops: Option<u64>,
    /// The kernel's own count of these drops (`SO_RXQ_OVFL`). A buffer of merged datagrams counts one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_drops_buffers: Option<u64>,
    /// Datagrams that were no data of this test, or shorter than their header.
    pub malformed: u64,
    /// Smoothed interarrival jitter (RFC 3550), ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<u64>,
    /// Distribution of the change of transit time between neighbours: median, 90 %, 99 %, most; ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transit_change_ns: Option<[u64; 4]>,
    /// How long datagrams were on their way (receiver): arrival minus the sender's stamp, on two clocks. Its count and
    /// `omitted` are together `received`; absent in older records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transits: Option<Transits>,
    /// Largest number of datagrams handed over in one call.
    pub largest_batch: u32,
    /// Times that the opening datagram was repeated.
    pub handshake_repeats: u32,
    /// Sends that the kernel refused, datagrams.
    pub send_errors: u64,
    /// What the sender had sent when it stopped, told by the peer: the truth that loss is counted to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_sent: Option<u64>,
}

impl UdpCounts {
    /// The same with the transit times of so many neighbouring slices as one.
    fn thinned(&self, factor: usize) -> Self {
        let transits = self.transits.as_ref();
        Self {
            transits: transits.map(|transits| transits.merged(factor)),
            ..self.clone()
        }
    }
}

/// What became of zero-copy sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZerocopyCounts {
    /// Sends asked for without copying.
    pub asked: u64,
    /// Completions that the kernel reported.
    pub completed: u64,
    /// Of them, copied all the same.
    pub copied: u64,
}

/// iperf3's results message, as the peer sent it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerResults {
    /// CPU use in % of one CPU.
    pub cpu_total_percent: f64,
    /// Of it, in the program.
    pub cpu_user_percent: f64,
    /// Of it, in the kernel.
    pub cpu_system_percent: f64,
    /// Congestion control that it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<PlainText>,
    /// Whether its retransmit counts mean something: 1, 0, or -1 from a receiver.
    #[serde(default)]
    pub sender_has_retransmits: i64,
    /// One for each stream, by id.
    pub streams: Vec<PeerStream>,
    /// Its own report as text (`--get-server-output`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_text: Option<PlainLines>,
    /// Its own report as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_json: Option<PlainLines>,
}

/// A stream in iperf3's results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerStream {
    /// Positional id.
    pub id: u32,
    /// Bytes that its application wrote or read, without the omitted part.
    pub bytes: u64,
    /// Retransmitted segments, -1 = not available.
    pub retransmits: i64,
    /// Smoothed interarrival jitter (RFC 3550, section 6.4.1), s.
    pub jitter_s: f64,
    /// Datagrams that it holds lost.
    pub errors: i64,
    /// Datagrams sent, or the highest counter seen.
    pub packets: u64,
    /// Seconds that its test took.
    pub end_time_s: f64,
    /// Datagrams lost in the omitted part, where it says so (3.14 and newer).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted_errors: Option<i64>,
    /// Datagrams in the omitted part, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted_packets: Option<u64>,
}

/// A file that is no record this build can read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Written by a newer program.
    #[error(
        "the record has schema version {found}, this build reads up to {SCHEMA_VERSION}; a newer linerate can show it"
    )]
    Newer {
        /// Its version.
        found: u64,
    },
    /// More of something than this build reads.
    #[error(
        "the record has {found} {what}, more than the {most} that are read; keep fewer (--sample, -t, -P)"
    )]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much there is of it.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// No record at all.
    #[error("this is not a linerate record, or it is damaged or truncated: {reason}")]
    NotARecord {
        /// Why.
        reason: PlainText,
    },
}

/// What is looked at before the rest is believed.
#[derive(Deserialize)]
struct Head {
    schema_version: Option<u64>,
}

impl RunRecord {
    /// Refuses a newer schema before anything else is read; `parse` turns the text into a type.
    ///
    /// The two steps are apart so that a newer record gives a clear word and not a missing field.
    pub fn check_version(schema_version: Option<u64>) -> Result<(), RecordError> {
        match schema_version {
            None => Err(RecordError::NotARecord {
                reason: "it has no schema_version".into(),
            }),
            Some(found) if found > u64::from(SCHEMA_VERSION) => Err(RecordError::Newer { found }),
            Some(0) => Err(RecordError::NotARecord {
                reason: "its schema_version is 0".into(),
            }),
            Some(_) => Ok(()),
        }
    }

    /// Reads a record from any of serde's formats: `parse` is called twice, once for the head.
    pub fn read<E: std::fmt::Display>(
        head: impl FnOnce() -> Result<Option<u64>, E>,
        whole: impl FnOnce() -> Result<Self, E>,
    ) -> Result<Self, RecordError> {
        let not_a_record = |error: E| RecordError::NotARecord {
            reason: error.to_string().into(),
        };
        Self::check_version(head().map_err(not_a_record)?)?;
        whole().map_err(not_a_record)
    }

    /// Reads the schema version alone.
    pub fn version_of<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
        Head::deserialize(input).map(|head| head.schema_version)
    }

    /// Whether it is of a connection that was only watched, from one end.
    pub fn is_observation(&self) -> bool {
        self.kind == Kind::Observation
    }

    /// The half of one end.
    pub fn end(&self, role: Role) -> Option<&EndRecord> {
        match role {
            Role::Client => self.client.as_ref(),
            Role::Server => self.server.as_ref(),
        }
    }

    /// The half that the writer measured itself.
    pub fn own_end(&self) -> Option<&EndRecord> {
        self.end(self.written_by)
    }

    /// The directions that this test had.
    pub fn flows(&self) -> &'static [Flow] {
        match self.plan.direction {
            crate::plan::Direction::Send => &[Flow::ClientToServer],
            crate::plan::Direction::Receive => &[Flow::ServerToClient],
            crate::plan::Direction::Both => &[Flow::ClientToServer, Flow::ServerToClient],
        }
    }
}

impl Flow {
    /// The direction in which an end sends.
    pub const fn sent_by(role: Role) -> Self {
        match role {
            Role::Client => Self::ClientToServer,
            Role::Server => Self::ServerToClient,
        }
    }

    /// The other direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::ClientToServer => Self::ServerToClient,
            Self::ServerToClient => Self::ClientToServer,
        }
    }

    /// The end that sends.
    pub const fn sender(self) -> Role {
        match self {
            Self::ClientToServer => Role::Client,
            Self::ServerToClient => Role::Server,
        }
    }

    /// The end that receives.
    pub const fn receiver(self) -> Role {
        match self {
            Self::ClientToServer => Role::Server,
            Self::ServerToClient => Role::Client,
        }
    }
}

impl EndRecord {
    /// The same with one in `factor` of its samples and readings, and the last ones, saying so.
    #[must_use]
    pub fn thinned(&self, factor: usize) -> Self {
        let times = u32::try_from(factor).unwrap_or(u32::MAX);
        let stream = |stream: &StreamRecord| StreamRecord {
            samples: stream.samples.thinned(factor),
            thinned: stream.thinned.saturating_mul(times),
            udp: stream.udp.as_ref().map(|counts| counts.thinned(factor)),
            ..stream.clone()
        };
        Self {
            streams: self.streams.iter().map(stream).collect(),
            stage: self.stage.clone(),
            counters: self.counters.thinned(factor),
            software: self.software.clone(),
            host: self.host.clone(),
            interface: self.interface.clone(),
            protocol_growth: self.protocol_growth.clone(),
            ..*self
        }
    }

    /// Leaves of the transit times of its streams no more than an end keeps of all of them together.
    pub fn bound_transits(&mut self) {
        let most = (MOST_ENTRIES / self.streams.len().max(1)).max(1);
        let counts = self.streams.iter_mut();
        for counts in counts.filter_map(|stream| stream.udp.as_mut()) {
            if let Some(transits) = &mut counts.transits {
                transits.bound(most);
            }
        }
    }

    /// Whether its traffic went over the loopback interface.
    pub fn over_loopback(&self) -> bool {
        let interface = self.interface.as_ref();
        interface.is_some_and(|interface| interface.name == "lo")
    }

    /// What its interface's root queueing discipline dropped from before the first byte to after the last, whosever packets
    /// they were; of an older record, between the first and the last reading of its series.
    pub fn qdisc_dropped(&self) -> Option<u64> {
        let counted = self.interface_counters.and_then(|pair| {
            let before = pair.before.qdisc_dropped?;
            Some(pair.after.qdisc_dropped?.saturating_sub(before))
        });
        counted.or_else(|| self.counters.growth(Column::qdisc_drops))
    }

    /// The streams of one direction.
    pub fn streams_of(&self, flow: Flow) -> impl Iterator<Item = &StreamRecord> {
        self.streams
            .iter()
            .filter(move |stream| stream.flow == flow)
    }

    /// A stream by its id.
    pub fn stream(&self, id: u32) -> Option<&StreamRecord> {
        self.streams.iter().find(|stream| stream.id == id)
    }
}
