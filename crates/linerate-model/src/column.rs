//! The names of columns: of a stream's samples and of a host's counters.
//!
//! A column that is not in this table, in that of [`tcp_info`](crate::tcp_info) or a [`CpuTime`] has no name in this program:
//! reading one that does not exist does not compile. A record may hold others, which
//! [`Series::names`](crate::series::Series::names) lists.
//!
//! ```
//! use linerate_model::{column::Column, series::Series};
//!
//! assert_eq!(Series::default().last(Column::bytes_acked), None);
//! ```
//!
//! ```compile_fail
//! use linerate_model::{column::Column, series::Series};
//!
//! assert_eq!(Series::default().last(Column::bytes_acknowledged), None);
//! ```

use std::borrow::Cow;
use std::fmt;

use crate::plain_text::PlainText;

/// The name of a column as records have it: `bytes_acked`, `if.rx_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column(pub(crate) &'static str);

macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        #[expect(non_upper_case_globals, reason = "named as records name them")]
        impl Column {
            $($(#[$doc])* pub const $name: Self = Self($text);)*
        }
    };
}

columns! {
    /// Payload that the application has written or read, bytes.
    app_bytes = "app_bytes";
    /// Received and not yet read, bytes.
    unread_bytes = "unread_bytes";
    /// Written and not acknowledged, bytes.
    unacknowledged_bytes = "unacknowledged_bytes";
    /// CPU time of the stream's thread, ns.
    thread_cpu_ns = "thread_cpu_ns";
    /// Time that the stream's thread was ready and waited for a CPU, ns.
    thread_wait_ns = "thread_wait_ns";
    /// Memory held by the receive queue, bytes.
    receive_memory_bytes = "receive_memory_bytes";
    /// Bound of the receive queue's memory, bytes.
    receive_buffer_bytes = "receive_buffer_bytes";
    /// Memory held by the send queue, bytes.
    send_memory_bytes = "send_memory_bytes";
    /// Bound of the send queue's memory, bytes.
    send_buffer_bytes = "send_buffer_bytes";
    /// BBR's model of the path: bandwidth, bit/s.
    bbr_bandwidth_bps = "bbr_bandwidth_bps";
    /// BBR's model of the path: minimum round-trip time, µs.
    bbr_min_rtt_us = "bbr_min_rtt_us";
    /// UDP: datagrams sent or received.
    datagrams = "datagrams";
    /// UDP: datagrams received for the first time.
    unique = "unique";
    /// UDP: datagrams received again.
    duplicates = "duplicates";
    /// UDP: datagrams received out of order.
    reordered = "reordered";
    /// UDP: the highest sequence number received.
    highest = "highest";
    /// UDP: datagrams dropped in the receiver's socket.
    socket_drops = "socket_drops";
    /// UDP: how much longer the last datagrams were on their way than the fastest so far, ns: the least since the sample
    /// before.
    transit_over_least_ns = "transit_over_least_ns";
    /// The interface: bytes received.
    if_rx_bytes = "if.rx_bytes";
    /// The interface: bytes sent.
    if_tx_bytes = "if.tx_bytes";
    /// The interface: packets received.
    if_rx_packets = "if.rx_packets";
    /// The interface: packets sent.
    if_tx_packets = "if.tx_packets";
    /// The interface: packets dropped, receiving.
    if_rx_dropped = "if.rx_dropped";
    /// The interface: packets dropped, sending.
    if_tx_dropped = "if.tx_dropped";
    /// The root qdisc: bytes.
    qdisc_bytes = "qdisc.bytes";
    /// The root qdisc: packets.
    qdisc_packets = "qdisc.packets";
    /// The root qdisc: packets dropped.
    qdisc_drops = "qdisc.drops";
    /// The root qdisc: packets that had to wait for a rate limit.
    qdisc_overlimits = "qdisc.overlimits";
    /// The root qdisc: bytes that wait now.
    qdisc_backlog_bytes = "qdisc.backlog_bytes";
    /// Packets processed by softirqs of all CPUs.
    softnet_processed = "softnet.processed";
    /// Packets dropped for a full backlog of a CPU.
    softnet_dropped = "softnet.dropped";
    /// Times that a softirq ran out of time or budget.
    softnet_time_squeeze = "softnet.time_squeeze";
    /// A block device: reads that ended, since watching began, as all that follow but the gauge.
    disk_reads = "disk.reads";
    /// Reads that joined another one.
    disk_reads_merged = "disk.reads_merged";
    /// Bytes read.
    disk_read_bytes = "disk.read_bytes";
    /// Time of all reads, summed, ms.
    disk_read_ms = "disk.read_ms";
    /// Writes that ended.
    disk_writes = "disk.writes";
    /// Writes that joined another one.
    disk_writes_merged = "disk.writes_merged";
    /// Bytes written.
    disk_written_bytes = "disk.written_bytes";
    /// Time of all writes, summed, ms.
    disk_write_ms = "disk.write_ms";
    /// Discards that ended.
    disk_discards = "disk.discards";
    /// Bytes discarded.
    disk_discarded_bytes = "disk.discarded_bytes";
    /// Time of all discards, summed, ms.
    disk_discard_ms = "disk.discard_ms";
    /// Flushes that ended.
    disk_flushes = "disk.flushes";
    /// Time of all flushes, summed, ms.
    disk_flush_ms = "disk.flush_ms";
    /// Requests under way (a gauge).
    disk_in_flight = "disk.in_flight";
    /// Time with at least one request under way, ms.
    disk_busy_ms = "disk.busy_ms";
    /// Time of all requests, summed, ms.
    disk_weighted_ms = "disk.weighted_ms";
}

impl Column {
    /// As records have it.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

impl From<Column> for PlainText {
    fn from(column: Column) -> Self {
        column.0.into()
    }
}

impl From<Column> for Cow<'static, str> {
    fn from(column: Column) -> Self {
        Self::Borrowed(column.0)
    }
}

/// What a CPU spent time on; a host's counters have one column of each kind for each CPU, ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuTime {
    /// Anything but idling.
    Busy,
    /// Softirqs, which packets are received in.
    Softirq,
    /// What the hypervisor gave to others.
    Steal,
}

impl CpuTime {
    const fn suffix(self) -> &'static str {
        match self {
            Self::Busy => ".busy_ms",
            Self::Softirq => ".softirq_ms",
            Self::Steal => ".steal_ms",
        }
    }

    /// The column's name for a CPU: `cpu0.busy_ms`.
    pub fn of(self, cpu: u32) -> String {
        format!("cpu{cpu}{}", self.suffix())
    }

    /// The CPU of a column, where it is one of this kind.
    pub(crate) fn cpu(self, column: &str) -> Option<u32> {
        let number = column.strip_prefix("cpu")?.strip_suffix(self.suffix())?;
        number.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Series;

    #[test]
    fn counters_of_cpus_come_in_the_order_of_the_cpus() {
        let mut series = Series::new(vec![1, 2]);
        for (name, values) in [
            (CpuTime::Busy.of(10), vec![0, 10]),
            (CpuTime::Busy.of(2), vec![0, 2]),
            (CpuTime::Steal.of(2), vec![0, 3]),
            ("cpu.busy_ms".to_owned(), vec![0, 4]),
            ("cpu1x.busy_ms".to_owned(), vec![0, 5]),
        ] {
            series.insert(name, values).unwrap();
        }
        assert_eq!(
            series.cpus(CpuTime::Busy),
            [(2, &[0, 2][..]), (10, &[0, 10])]
        );
        assert_eq!(series.cpus(CpuTime::Steal), [(2, &[0, 3][..])]);
        assert!(series.cpus(CpuTime::Softirq).is_empty());
    }
}
