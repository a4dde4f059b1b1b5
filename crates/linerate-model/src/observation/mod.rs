//! What one kernel said of TCP connections that other programs held, while it was watched.
//!
//! The far ends are not known: their kernels were not asked. So an observation has no sum over two ends, only
//! this host's account of each connection, and [`Observation::run_of`] gives it to the same evidence that a test
//! gives, with the peer's half absent.

mod run;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::column::Column;
use crate::plain_text::PlainText;
use crate::record::{HostFacts, InterfaceFacts, Kind, Note, Software};
use crate::series::Series;
use crate::tcp_info::{FIELDS, Field, TcpFacts};
use crate::units::Nanos;

/// A connection that moved less than this in either direction while it was watched is listed, not explained.
pub const WORTH_EXPLAINING_BYTES: u64 = 1 << 20;

/// Fields of `tcp_info` that are no columns: what is a constant of the connection, grows with the clock alone, or
/// tells nothing of its rate. Their last values are in [`Connection::tcp`].
const NOT_SAMPLED: [Column; 28] = [
    Column::options,
    Column::wscales,
    Column::rto_us,
    Column::ato_us,
    Column::fackets_packets,
    Column::rcv_mss_bytes,
    Column::last_data_sent_ms,
    Column::last_data_recv_ms,
    Column::last_ack_recv_ms,
    Column::rcv_ssthresh_bytes,
    Column::rcv_space_bytes,
    Column::advmss_bytes,
    Column::reordering_packets,
    Column::max_pacing_rate_bytes_per_s,
    Column::segs_out,
    Column::segs_in,
    Column::total_rto_recoveries,
    Column::total_rto_time_ms,
    Column::probes,
    Column::sacked_packets,
    Column::received_ce_packets,
    Column::delivered_e1_bytes,
    Column::delivered_e0_bytes,
    Column::delivered_ce_bytes,
    Column::received_e1_bytes,
    Column::received_e0_bytes,
    Column::received_ce_bytes,
    Column::accecn_word,
];

/// Columns beside those of `tcp_info`: received and not read; written and not acknowledged; memory held by the
/// receive queue and its bound; memory held by the send queue and its bound; all in bytes, memory with the
/// kernel's overhead.
pub const SOCKET_COLUMNS: [Column; 6] = [
    Column::unread_bytes,
    Column::unacknowledged_bytes,
    Column::receive_memory_bytes,
    Column::receive_buffer_bytes,
    Column::send_memory_bytes,
    Column::send_buffer_bytes,
];

/// Columns of a connection that BBR controls: its model of the path.
pub const BBR_COLUMNS: [Column; 2] = [Column::bbr_bandwidth_bps, Column::bbr_min_rtt_us];

/// The fields of `tcp_info` that an observation samples, in the kernel's order.
pub fn sampled_fields() -> impl Iterator<Item = &'static Field> {
    FIELDS
        .iter()
        .filter(|field| !NOT_SAMPLED.contains(&field.column()))
}

/// A whole observation, as it is kept in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// [`SCHEMA_VERSION`](crate::record::SCHEMA_VERSION) of the writer.
    pub schema_version: u32,
    /// [`Kind::Observation`].
    pub kind: Kind,
    /// The writer.
    pub software: Software,
    /// Wall-clock label of the start, ms since 1970-01-01 UTC. Nothing is computed from it.
    pub started_at_unix_ms: u64,
    /// What was asked for.
    pub watch: Watch,
    /// How it ended.
    pub ended: Ended,
    /// The host whose kernel was asked.
    pub host: HostFacts,
    /// When watching began, this host's monotonic clock.
    pub start_ns: Nanos,
    /// When it ended.
    pub end_ns: Nanos,
    /// The interfaces that the connections' packets left by.
    #[serde(default)]
    pub interfaces: Vec<InterfaceFacts>,
    /// Host counters about ten times a second, as in a test's record.
    #[serde(default)]
    pub counters: Series,
    /// Growth of the network namespace's protocol counters, those that moved.
    #[serde(default)]
    pub protocol_growth: BTreeMap<PlainText, u64>,
    /// What sampling was like.
    pub sampling: Sampling,
    /// The connections, in the order in which they were first seen.
    pub connections: Vec<Connection>,
    /// Remarks on how it went.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// What to watch. What is left out asks for nothing; with nothing asked for, all connections are watched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Watch {
    /// Ports, at either end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// Peers, as asked for: names, addresses, networks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PlainText>,
    /// A process; its descendants are watched with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Only connections that came in to a port that is listened on.
    pub listening: bool,
    /// How long; absent = until stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<Nanos>,
    /// Between two samples.
    pub sample_ns: Nanos,
    /// Between two lines of progress.
    pub interval_ns: Nanos,
}

/// How an observation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Its time was over.
    TimeIsOver,
    /// Its user stopped it.
    Stopped,
    /// The process that was watched ended.
    ProcessEnded,
    /// The kernel did not tell of its sockets any more.
    Unreadable,
}

/// What sampling was like and what it cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// Times that the kernel's table was read.
    pub readings: u64,
    /// Of them, those that the kernel said were not whole.
    pub not_whole: u64,
    /// Samples that fell out because the one before took too long.
    pub missed: u64,
    /// Longest time between two readings, ns.
    pub longest_gap_ns: u64,
    /// CPU time of the thread that sampled, ns.
    pub cpu_ns: u64,
    /// Most connections at once.
    pub most_connections: u64,
    /// Connections that were seen and not kept, because the bound was reached.
    pub not_kept: u64,
    /// Whether the kernel told its last account of connections that closed.
    pub hears_last_words: bool,
}

/// Who opened a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opener {
    /// This host: nobody listened on the local port.
    ThisHost,
    /// The peer: the local port was listened on.
    Peer,
}

/// What became of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It still stood when watching ended.
    Open,
    /// It closed, and the kernel told its last account.
    ClosedAndTold,
    /// It closed after its last sample; what moved since then is not known.
    Closed,
}

/// One connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// Its number in this record, from 1.
    pub id: u32,
    /// Address and port at this host.
    pub local: PlainText,
    /// The peer's.
    pub remote: PlainText,
    /// Who opened it.
    pub opener: Opener,
    /// The user that made its socket.
    pub uid: u32,
    /// Its socket's inode when it was first seen with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inode: Option<u64>,
    /// The process that holds it, where that may be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Holder>,
    /// Whether it stood already when watching began: its beginning was missed.
    pub began_before: bool,
    /// What became of it.
    pub fate: Fate,
    /// The interface that its packets leave by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<PlainText>,
    /// Congestion control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<PlainText>,
    /// The kernel's account at the last sample, or its last word.
    pub tcp: TcpFacts,
    /// Received and not read at the last sample, bytes.
    pub unread_bytes: u64,
    /// Written and not acknowledged at the last sample, bytes.
    pub unacknowledged_bytes: u64,
    /// [`sampled_fields`], [`SOCKET_COLUMNS`] and [`BBR_COLUMNS`] over time, as far as this kernel has them. Between
    /// two samples that are further apart than the cadence, nothing changed.
    pub samples: Series,
    /// 1 = every sample with a change was kept; n = memory was bounded by keeping every n-th.
    pub thinned: u32,
}

/// The process that holds a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its number.
    pub pid: u32,
    /// `comm` of the process, at most 15 bytes.
    pub name: PlainText,
}

impl Connection {
    /// What was acknowledged and received while it was watched, bytes.
    pub fn moved(&self) -> [u64; 2] {
        [Column::bytes_acked, Column::bytes_received]
            .map(|column| self.samples.growth(column).unwrap_or(0))
    }

    /// Whether it moved enough to explain it.
    pub fn is_worth_explaining(&self) -> bool {
        self.moved()
            .iter()
            .any(|bytes| *bytes >= WORTH_EXPLAINING_BYTES)
    }

    /// How long samples were taken of it, ns.
    pub fn span_ns(&self) -> u64 {
        let at = self.samples.at_ns();
        at.last()
            .zip(at.first())
            .map_or(0, |(last, first)| last.saturating_sub(*first))
    }
}

/// What an observation tells while it runs. Instants are ns since it began.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sighting {
    /// A connection was seen for the first time.
    Found {
        /// When.
        at_ns: Nanos,
        /// Its number.
        id: u32,
        /// Address and port at this host.
        local: PlainText,
        /// The peer's.
        remote: PlainText,
        /// Who opened it.
        opener: Opener,
        /// Whether it stood already when watching began.
        began_before: bool,
        /// Who holds it, where that may be seen.
        #[serde(skip_serializing_if = "Option::is_none")]
        process: Option<Holder>,
    },
    /// A connection is gone.
    Gone {
        /// When that was noticed.
        at_ns: Nanos,
        /// Its number.
        id: u32,
        /// Its addresses.
        local: PlainText,
        /// The peer's.
        remote: PlainText,
        /// Acknowledged in all, bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes_acked: Option<u64>,
        /// Received in all, bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes_received: Option<u64>,
        /// What became of it.
        fate: Fate,
    },
    /// An interval passed.
    Interval {
        /// Begin.
        from_ns: Nanos,
        /// End.
        to_ns: Nanos,
        /// The connections that stand, the fastest first.
        connections: Vec<Glimpse>,
        /// Time left.
        #[serde(skip_serializing_if = "Option::is_none")]
        left_ns: Option<Nanos>,
    },
    /// Something that the user should know now.
    Warning {
        /// A sentence.
        text: PlainText,
    },
}

/// A connection in an interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Glimpse {
    /// Its number.
    pub id: u32,
    /// Address and port at this host.
    pub local: PlainText,
    /// The peer's.
    pub remote: PlainText,
    /// Who holds it, where that may be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Holder>,
    /// Acknowledged by the peer, bit/s.
    pub sent_bps: u64,
    /// Received in order, bit/s.
    pub received_bps: u64,
    /// Segments sent again in the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Smoothed round-trip time, µs; absent where the kernel has measured none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<u64>,
    /// `snd_cwnd` × MSS, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_window_bytes: Option<u64>,
    /// The peer's receive window, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_window_bytes: Option<u64>,
    /// Received and not read, bytes.
    pub unread_bytes: u64,
    /// Written and not acknowledged, bytes.
    pub unacknowledged_bytes: u64,
    /// Share of the interval that the kernel's clocks give to each cause, 0 to 1; absent before Linux 4.10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
}

/// Where a sender's time went by its kernel's clocks alone; shares that add to one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Clocks {
    /// Nothing to send.
    pub application: f64,
    /// Limited by the send buffer.
    pub send_buffer: f64,
    /// Limited by the peer's receive window.
    pub receive_window: f64,
    /// The rest.
    pub network: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_sampled_exists() {
        for column in NOT_SAMPLED {
            assert!(
                FIELDS.iter().any(|field| field.column() == column),
                "{column}"
            );
        }
        let sampled: Vec<_> = sampled_fields().map(Field::column).collect();
        assert_eq!(sampled.len() + NOT_SAMPLED.len(), FIELDS.len());
        for needed in [
            Column::bytes_acked,
            Column::bytes_received,
            Column::busy_time_us,
            Column::rtt_us,
            Column::snd_wnd_bytes,
        ] {
            assert!(sampled.contains(&needed), "{needed}");
        }
    }
}
