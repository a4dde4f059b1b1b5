//! One stream, both ends side by side.

use linerate_analysis::evidence::Evidence;
use linerate_analysis::ledger::DatagramEntry;
use linerate_analysis::{round_trip, statistics};
use linerate_model::column::Column;
use linerate_model::plain_text::PlainText;
use linerate_model::record::{Flow, Role, RunRecord, StreamRecord};
use linerate_model::units::Bytes;
use serde::Serialize;

use super::direction::told;

/// A stream. What is not known is absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamView {
    /// Positional id, the same at both ends.
    pub id: u32,
    /// Which way its payload went.
    pub flow: Flow,
    /// The client's address and port.
    pub client_address: PlainText,
    /// The server's address and port.
    pub server_address: PlainText,
    /// Payload without the omitted part, where the direction was measured, bytes.
    pub bytes: Option<u64>,
    /// Congestion control in use at the sender.
    pub congestion: Option<PlainText>,
    /// Maximum segment size, bytes.
    pub mss_bytes: Option<u32>,
    /// Path MTU that the sender's kernel believes in, bytes.
    pub path_mtu_bytes: Option<u32>,
    /// Socket buffers asked for, bytes; absent = autotuned.
    pub window_asked_bytes: Option<Bytes>,
    /// Segments sent again, the omitted part included.
    pub retransmits: Option<u64>,
    /// Mean of the smoothed round-trip time over all samples, µs.
    pub rtt_us: Option<f64>,
    /// Least round-trip time, µs.
    pub min_rtt_us: Option<u64>,
    /// Datagrams (UDP).
    pub datagrams: Option<DatagramEntry>,
    /// Smoothed jitter (RFC 3550), ns (UDP).
    pub jitter_ns: Option<u64>,
    /// The sending end.
    pub sender: Option<StreamEndView>,
    /// The receiving end.
    pub receiver: Option<StreamEndView>,
}

/// A stream at one end.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StreamEndView {
    /// Payload that the application wrote or read, bytes; of a stock peer without the omitted part.
    pub app_bytes: u64,
    /// Of it, in the omitted part.
    pub omitted_bytes: Option<u64>,
    /// Whether a stock peer said so of itself; the rest is then absent.
    pub told_by_peer: bool,
    /// Send buffer granted, bytes.
    pub send_buffer_bytes: Option<u64>,
    /// Receive buffer granted, bytes.
    pub receive_buffer_bytes: Option<u64>,
    /// CPU time of its thread, s.
    pub cpu_s: Option<f64>,
    /// Samples taken.
    pub samples: Option<usize>,
    /// 1 = every sample was kept; n = every n-th.
    pub thinned: Option<u32>,
    /// Whether all was read (receiver) or acknowledged (sender) before closing.
    pub drained: Option<bool>,
    /// What ended it before its time.
    pub error: Option<PlainText>,
}

pub(super) fn views(record: &RunRecord, evidence: &Evidence<'_>) -> Vec<StreamView> {
    let mut all: Vec<StreamView> = Vec::new();
    for direction in &evidence.directions {
        for entry in &direction.ledger.streams {
            let Some(id) = entry.id else { continue };
            let side = |role: Role| record.end(role).and_then(|end| end.stream(id));
            let flow = direction.flow;
            let (sender, receiver) = (side(flow.sender()), side(flow.receiver()));
            let measured = direction
                .stream_bytes
                .iter()
                .find(|(of, _)| *of == id)
                .map(|(_, bytes)| *bytes);
            all.extend(
                view(record, flow, id, [sender, receiver]).map(|view| StreamView {
                    bytes: measured,
                    datagrams: entry.datagrams.clone(),
                    ..view
                }),
            );
        }
    }
    all.sort_by_key(|stream| stream.id);
    all
}

fn view(
    record: &RunRecord,
    flow: Flow,
    id: u32,
    [sender, receiver]: [Option<&StreamRecord>; 2],
) -> Option<StreamView> {
    let any = sender.or(receiver)?;
    let (client, server) = match flow.sender() {
        Role::Client => (sender, receiver),
        Role::Server => (receiver, sender),
    };
    let column = |column: Column| {
        let values = sender.and_then(|stream| stream.samples.column(column));
        values.unwrap_or_default().iter().copied()
    };
    let rtt = column(Column::rtt_us).filter(|rtt| *rtt > 0);
    let rtt: Vec<f64> = rtt.map(|rtt| rtt as f64).collect();
    let least = sender.and_then(round_trip::least_us);
    let last_retrans = |stream: &StreamRecord| {
        stream
            .tcp
            .as_ref()
            .and_then(|facts| facts.total_retrans_packets)
            .or_else(|| stream.samples.last(Column::total_retrans_packets))
    };
    Some(StreamView {
        id,
        flow,
        client_address: address(client, server),
        server_address: address(server, client),
        bytes: None,
        congestion: sender.and_then(|stream| stream.congestion.clone()),
        mss_bytes: any.mss_bytes,
        path_mtu_bytes: any.path_mtu_bytes,
        window_asked_bytes: any.window_asked_bytes,
        retransmits: sender.and_then(last_retrans),
        rtt_us: (!rtt.is_empty()).then(|| statistics::mean(&rtt)),
        min_rtt_us: least,
        datagrams: None,
        jitter_ns: receiver.and_then(|stream| stream.udp.as_ref()?.jitter_ns),
        sender: end(record, id, sender),
        receiver: end(record, id, receiver),
    })
}

/// An end's address, as it says itself, else as the other end sees it.
fn address(own: Option<&StreamRecord>, other: Option<&StreamRecord>) -> PlainText {
    let own = own.map(|stream| &stream.local);
    let seen = other.map(|stream| &stream.remote);
    [own, seen]
        .into_iter()
        .flatten()
        .find(|address| !address.is_empty())
        .cloned()
        .unwrap_or_default()
}

fn end(record: &RunRecord, id: u32, stream: Option<&StreamRecord>) -> Option<StreamEndView> {
    let Some(stream) = stream else {
        let told = told(record, id)?;
        return Some(StreamEndView {
            app_bytes: told.bytes,
            told_by_peer: true,
            ..StreamEndView::default()
        });
    };
    let cpu = stream.cpu.user_ns.saturating_add(stream.cpu.system_ns);
    Some(StreamEndView {
        app_bytes: stream.app_bytes,
        omitted_bytes: Some(stream.omitted_bytes),
        told_by_peer: false,
        send_buffer_bytes: stream.send_buffer_bytes,
        receive_buffer_bytes: stream.receive_buffer_bytes,
        cpu_s: (cpu > 0).then_some(cpu as f64 / 1e9),
        samples: Some(stream.samples.len()),
        thinned: Some(stream.thinned),
        drained: Some(stream.drained),
        error: stream.error.clone(),
    })
}
