//! The end of a run in iperf3's terms: each stream's sender and receiver, wherever they were measured.
//!
//! An end's own half comes first; the other end's is its own half where it is a linerate, and
//! iperf3's results message where it is a stock peer. What neither tells is absent.

use linerate_model::column::Column;
use linerate_model::plain_text::PlainText;
use linerate_model::plan::{End, Protocol};
use linerate_model::record::{CpuUse, EndRecord, Flow, PeerStream, Role, RunRecord, StreamRecord};

use super::summary_udp::Datagrams;
use super::timeline::{Seen, Span, Timeline, per_second};
use crate::view::told;

#[derive(Debug, Clone)]
pub(super) struct Summary {
    /// Each direction, the client's first.
    pub(super) flows: Vec<FlowSummary>,
    pub(super) own_cpu: Option<CpuPercent>,
    pub(super) peer_cpu: Option<CpuPercent>,
}

#[derive(Debug, Clone)]
pub(super) struct FlowSummary {
    pub(super) flow: Flow,
    pub(super) sends: bool,
    pub(super) streams: Vec<StreamSummary>,
    /// Congestion control of the sender.
    pub(super) sender_congestion: Option<PlainText>,
    /// Congestion control set at the receiver.
    pub(super) receiver_congestion: Option<PlainText>,
}

#[derive(Debug, Clone)]
pub(super) struct StreamSummary {
    /// The socket's number at this end.
    pub(super) socket: i64,
    pub(super) sent: Option<Moved>,
    pub(super) received: Option<Moved>,
    /// Segments sent again, where somebody counted them.
    pub(super) retransmits: Option<u64>,
    /// The sending kernel's figures, where the record has them.
    pub(super) kernel: KernelFigures,
    pub(super) udp: Option<Datagrams>,
    /// Size of this end's file of `-F` at the end, bytes.
    pub(super) file_bytes: Option<u64>,
}

/// Bytes and the time that they took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Moved {
    /// Payload bytes, without the omitted part.
    pub(super) bytes: u64,
    /// Without the omitted part.
    pub(super) seconds: f64,
}

/// The sending kernel's figures after the omitted part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct KernelFigures {
    /// Times that reordering was seen.
    pub(super) reorder: Option<u64>,
    /// Largest congestion window, bytes.
    pub(super) max_snd_cwnd: Option<u64>,
    /// Largest receive window of the peer, bytes.
    pub(super) max_snd_wnd: Option<u64>,
    /// Largest smoothed round-trip time, µs.
    pub(super) max_rtt: Option<u64>,
    /// Least.
    pub(super) min_rtt: Option<u64>,
    /// Mean of the samples.
    pub(super) mean_rtt: Option<u64>,
}

/// CPU use in % of one CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct CpuPercent {
    /// In all.
    pub(super) total: f64,
    /// In the program.
    pub(super) user: f64,
    /// In the kernel.
    pub(super) system: f64,
}

impl Moved {
    /// Bytes a second.
    pub(super) fn rate(self) -> f64 {
        per_second(self.bytes, self.seconds)
    }

    /// From the beginning on.
    pub(super) fn span(self) -> Span {
        Span {
            start: 0.0,
            end: self.seconds,
            seconds: self.seconds,
        }
    }

    /// Both together; the time is the longer one.
    fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            seconds: self.seconds.max(other.seconds),
        }
    }
}

impl Summary {
    /// From the record, and what was seen on the way.
    pub(super) fn new(record: &RunRecord, timeline: &Timeline) -> Self {
        let flows = record.flows().iter();
        let flows = flows.map(|flow| flow_summary(record, timeline, *flow));
        let told = record.peer_results.as_ref().map(|peer| CpuPercent {
            total: peer.cpu_total_percent,
            user: peer.cpu_user_percent,
            system: peer.cpu_system_percent,
        });
        Self {
            flows: flows.collect(),
            own_cpu: record.own_end().map(cpu_percent),
            peer_cpu: peer_end(record).map(cpu_percent).or(told),
        }
    }
}

impl FlowSummary {
    /// What all senders wrote; absent where one of them is not known.
    pub(super) fn sent(&self) -> Option<Moved> {
        together(self.streams.iter().map(|stream| stream.sent))
    }

    /// What all receivers read.
    pub(super) fn received(&self) -> Option<Moved> {
        together(self.streams.iter().map(|stream| stream.received))
    }

    pub(super) fn retransmits(&self) -> Option<u64> {
        let mut all = self.streams.iter().map(|stream| stream.retransmits);
        all.try_fold(0_u64, |sum, one| Some(sum.saturating_add(one?)))
    }

    pub(super) fn datagrams(&self) -> Option<Datagrams> {
        let mut all = self.streams.iter().map(|stream| stream.udp);
        let first = all.next()??;
        let sum = all.try_fold(first, |sum, one| Some(sum.and(one?)))?;
        Some(sum.with_mean_jitter(self.streams.len()))
    }
}

fn together(mut all: impl Iterator<Item = Option<Moved>>) -> Option<Moved> {
    let first = all.next()??;
    all.try_fold(first, |sum, one| Some(sum.and(one?)))
}

/// The other end's half, where it is a linerate.
fn peer_end(record: &RunRecord) -> Option<&EndRecord> {
    record.end(match record.written_by {
        Role::Client => Role::Server,
        Role::Server => Role::Client,
    })
}

fn flow_summary(record: &RunRecord, timeline: &Timeline, flow: Flow) -> FlowSummary {
    let sends = flow.sender() == record.written_by;
    let own = record.own_end();
    let streams = own.into_iter().flat_map(|end| {
        end.streams_of(flow)
            .map(move |stream| stream_summary(record, timeline, end, stream))
    });
    let streams = streams.collect();
    let of = |end: Option<&EndRecord>| {
        end?.streams_of(flow)
            .find_map(|stream| stream.congestion.clone())
    };
    let told = || record.peer_results.as_ref()?.congestion.clone();
    // iperf3's server has printed before the client's results come.
    let client = record.written_by == Role::Client;
    let peer = || of(peer_end(record)).or_else(told);
    let (own, peer) = (of(own), client.then(peer).flatten());
    let (sender_congestion, receiver_congestion) = if sends { (own, peer) } else { (peer, own) };
    FlowSummary {
        flow,
        sends,
        streams,
        sender_congestion,
        receiver_congestion,
    }
}

/// One stream as each end knows it.
pub(super) struct BothEnds<'a> {
    /// This end's half.
    pub(super) own: &'a StreamRecord,
    /// The other end's, where it is a linerate.
    pub(super) peer: Option<&'a StreamRecord>,
    /// What the other end's results say.
    pub(super) told: Option<&'a PeerStream>,
}

fn stream_summary(
    record: &RunRecord,
    timeline: &Timeline,
    end: &EndRecord,
    own: &StreamRecord,
) -> StreamSummary {
    let peer_half = peer_end(record);
    let both = BothEnds {
        own,
        peer: peer_half.and_then(|end| end.stream(own.id)),
        told: told(record, own.id),
    };
    let here = own_moved(record, timeline, end, own);
    let there = match (peer_half, both.peer, both.told) {
        (Some(end), Some(stream), _) => Some(measured(end, stream)),
        (_, _, Some(told)) => Some(told_moved(told, here)),
        _ => None,
    };
    let (sent, received) = if own.sends {
        (Some(here), there)
    } else {
        (there, Some(here))
    };
    let sender = if own.sends {
        Some(own)
    } else {
        both.peer.filter(|_| record.written_by == Role::Client)
    };
    let udp = (record.plan.protocol == Protocol::Udp).then(|| Datagrams::new(&both));
    StreamSummary {
        socket: timeline.socket(own.id),
        sent,
        received,
        retransmits: retransmits(record, timeline, &both),
        kernel: sender.map(kernel_figures).unwrap_or_default(),
        udp,
        file_bytes: own.file_bytes,
    }
}

/// What this end measured. A test of `-t` takes its time, or the intervals' where they go on longer: a
/// paced stream's last interval ends with its last block, the test does not. One of `-n` or `-k` takes
/// the time in which the bytes moved.
fn own_moved(
    record: &RunRecord,
    timeline: &Timeline,
    end: &EndRecord,
    own: &StreamRecord,
) -> Moved {
    let measured = measured(end, own);
    let is_whole = |seen: &&Seen| seen.bytes == measured.bytes && seen.seconds > 0.0;
    let seconds = match timeline.seen(own.id).filter(is_whole) {
        Some(seen) if matches!(record.plan.end, End::TimeNs(_)) => {
            seen.seconds.max(measured.seconds)
        }
        Some(seen) => seen.seconds,
        None => measured.seconds,
    };
    Moved {
        seconds,
        ..measured
    }
}

fn measured(end: &EndRecord, stream: &StreamRecord) -> Moved {
    let begin = stream.omit_until_ns.unwrap_or(end.start_ns);
    // A receiver goes on reading what was under way when the test ended.
    let last = stream.last_byte_ns.filter(|_| !stream.sends);
    let last = last.map_or(end.end_ns, |last| last.max(end.end_ns));
    Moved {
        bytes: stream.app_bytes.saturating_sub(stream.omitted_bytes),
        seconds: last.since(begin).as_secs_f64(),
    }
}

/// iperf3 before 3.2 told no time.
fn told_moved(told: &PeerStream, here: Moved) -> Moved {
    let seconds = if told.end_time_s > 0.0 {
        told.end_time_s
    } else {
        here.seconds
    };
    Moved {
        bytes: told.bytes,
        seconds,
    }
}

fn retransmits(record: &RunRecord, timeline: &Timeline, both: &BothEnds) -> Option<u64> {
    // iperf3's server has printed before the client's results come.
    let known = both.own.sends || record.written_by == Role::Client;
    if record.plan.protocol != Protocol::Tcp || !known {
        return None;
    }
    if both.own.sends {
        let seen = timeline.seen(both.own.id);
        let seen = seen.and_then(|seen| seen.retransmits);
        return seen.or_else(|| counted_retransmits(both.own));
    }
    let told = both.told.map(|told| u64::try_from(told.retransmits));
    let told = told.and_then(Result::ok);
    both.peer.and_then(counted_retransmits).or(told)
}

/// By the sending kernel's counter, without the omitted part.
fn counted_retransmits(stream: &StreamRecord) -> Option<u64> {
    let total = stream.tcp.as_ref()?.total_retrans_packets?;
    let column = stream.samples.column(Column::total_retrans_packets);
    let omitted = stream.omit_until_ns.and_then(|until| {
        let at = stream.samples.at_ns().iter();
        let before = at.take_while(|at| **at <= until.0).count();
        column?.get(before.checked_sub(1)?).copied()
    });
    Some(total.saturating_sub(omitted.unwrap_or(0)))
}

fn kernel_figures(stream: &StreamRecord) -> KernelFigures {
    let samples = &stream.samples;
    let begin = stream.omit_until_ns.map_or(0, |until| until.0);
    let first = samples.at_ns().iter().take_while(|at| **at < begin).count();
    let column = |name| {
        let values = samples.column(name).and_then(|values| values.get(first..));
        values.unwrap_or_default().iter().copied()
    };
    let windows = column(Column::snd_cwnd_packets).zip(column(Column::snd_mss_bytes));
    let rtt = || column(Column::rtt_us).filter(|rtt| *rtt > 0);
    let sum: u128 = rtt().map(u128::from).sum();
    let mean = sum.checked_div(rtt().count() as u128);
    let reorder = stream.tcp.as_ref().and_then(|tcp| tcp.reord_seen);
    KernelFigures {
        reorder: reorder.or_else(|| samples.last(Column::reord_seen)),
        max_snd_cwnd: windows
            .map(|(packets, mss)| packets.saturating_mul(mss))
            .max(),
        max_snd_wnd: column(Column::snd_wnd_bytes).max(),
        max_rtt: rtt().max(),
        min_rtt: rtt().min(),
        mean_rtt: mean.and_then(|mean| u64::try_from(mean).ok()),
    }
}

fn cpu_percent(end: &EndRecord) -> CpuPercent {
    let span = end.end_ns.since(end.start_ns).0;
    let percent = |nanos: u64| {
        if span == 0 {
            0.0
        } else {
            100.0 * nanos as f64 / span as f64
        }
    };
    let CpuUse { user_ns, system_ns } = end.cpu;
    CpuPercent {
        total: percent(user_ns.saturating_add(system_ns)),
        user: percent(user_ns),
        system: percent(system_ns),
    }
}
