//! The `end` part of iperf3's JSON.

use linerate_model::plan::{Plan, Protocol};
use serde_json::{Map, Value, json};

use super::Iperf3Settings;
use super::json::{head, insert, named, number};
use super::summary::{FlowSummary, Moved, StreamSummary, Summary};
use super::summary_udp::Datagrams;
use super::timeline::Timeline;

/// All of it. An end that nobody told of is left out: it did not move 0 bytes.
pub(super) fn value(settings: &Iperf3Settings, timeline: &Timeline, summary: &Summary) -> Value {
    let plan = timeline.plan();
    let mut end = Map::new();
    if summary.flows.iter().all(|flow| flow.streams.is_empty()) {
        return Value::Object(end);
    }
    let streams = summary.flows.iter().flat_map(|flow| {
        flow.streams
            .iter()
            .map(|stream| stream_value(settings, &plan, flow, stream))
    });
    insert(&mut end, "streams", streams.collect::<Vec<_>>());
    for flow in &summary.flows {
        match plan.protocol {
            Protocol::Tcp | Protocol::Sctp => tcp_sums(&mut end, &plan, flow),
            Protocol::Udp => udp_sums(&mut end, &plan, flow),
        }
    }
    insert(&mut end, "cpu_utilization_percent", cpu(summary));
    // In a test of both directions iperf3 speaks of the server's.
    if let Some(flow) = summary
        .flows
        .last()
        .filter(|_| plan.protocol == Protocol::Tcp)
    {
        for (key, name) in [
            ("sender_tcp_congestion", &flow.sender_congestion),
            ("receiver_tcp_congestion", &flow.receiver_congestion),
        ] {
            if let Some(name) = name {
                insert(&mut end, key, name.as_str());
            }
        }
    }
    Value::Object(end)
}

fn cpu(summary: &Summary) -> Value {
    let mut object = Map::new();
    for (side, cpu) in [("host", summary.own_cpu), ("remote", summary.peer_cpu)] {
        if let Some(cpu) = cpu {
            insert(&mut object, &format!("{side}_total"), number(cpu.total));
            insert(&mut object, &format!("{side}_user"), number(cpu.user));
            insert(&mut object, &format!("{side}_system"), number(cpu.system));
        }
    }
    Value::Object(object)
}

fn moved_head(moved: Moved) -> Map<String, Value> {
    head(moved.span(), moved.bytes, moved.rate())
}

fn with_socket(stream: &StreamSummary, moved: Moved) -> Map<String, Value> {
    let mut object = Map::new();
    insert(&mut object, "socket", stream.socket);
    object.extend(moved_head(moved));
    object
}

fn stream_value(
    settings: &Iperf3Settings,
    plan: &Plan,
    flow: &FlowSummary,
    stream: &StreamSummary,
) -> Value {
    let mut object = Map::new();
    if plan.protocol == Protocol::Udp {
        insert(&mut object, "udp", udp_stream(flow, stream));
    } else {
        if let Some(sent) = stream.sent {
            insert(&mut object, "sender", tcp_sender(flow, stream, sent));
        }
        if let (Some(name), Some(size)) = (&settings.file, stream.file_bytes) {
            insert(&mut object, "diskfile", disk_file(stream, name, size));
        }
        if let Some(received) = stream.received {
            let mut receiver = with_socket(stream, received);
            insert(&mut receiver, "sender", flow.sends);
            insert(&mut object, "receiver", receiver);
        }
    }
    Value::Object(object)
}

fn disk_file(stream: &StreamSummary, name: &str, size: u64) -> Value {
    let (sent, received) = (bytes_of(stream.sent), bytes_of(stream.received));
    json!({
        "sent": sent,
        "received": received,
        "size": size,
        "percent_sent": super::percent_of_file(sent, size),
        "percent_received": super::percent_of_file(received, size),
        "filename": name,
    })
}

fn bytes_of(moved: Option<Moved>) -> u64 {
    moved.map_or(0, |moved| moved.bytes)
}

/// A stock sender's kernel figures are not told: iperf3 has zeros there, which no connection can have,
/// and they are kept because programs ask for the keys.
fn tcp_sender(flow: &FlowSummary, stream: &StreamSummary, sent: Moved) -> Value {
    let mut object = with_socket(stream, sent);
    if let Some(retransmits) = stream.retransmits {
        let kernel = &stream.kernel;
        insert(&mut object, "retransmits", retransmits);
        for (key, value) in [
            ("reorder", kernel.reorder),
            ("max_snd_cwnd", kernel.max_snd_cwnd),
            ("max_snd_wnd", kernel.max_snd_wnd),
            ("max_rtt", kernel.max_rtt),
            ("min_rtt", kernel.min_rtt),
            ("mean_rtt", kernel.mean_rtt),
        ] {
            insert(&mut object, key, value.unwrap_or(0));
        }
    }
    insert(&mut object, "sender", flow.sends);
    Value::Object(object)
}

fn tcp_sums(end: &mut Map<String, Value>, plan: &Plan, flow: &FlowSummary) {
    for (name, moved, retransmits) in [
        ("sum_sent", flow.sent(), flow.retransmits()),
        ("sum_received", flow.received(), None),
    ] {
        let Some(moved) = moved else { continue };
        let mut sum = moved_head(moved);
        if let Some(retransmits) = retransmits {
            insert(&mut sum, "retransmits", retransmits);
        }
        insert(&mut sum, "sender", flow.sends);
        insert(end, &named(plan, name, flow.flow), sum);
    }
}

/// The keys of datagrams, about `packets` of them.
fn add_datagrams(object: &mut Map<String, Value>, datagrams: Datagrams, packets: u64) {
    let (jitter, lost) = (datagrams.jitter_ms, datagrams.lost);
    insert(object, "jitter_ms", number(jitter.unwrap_or(0.0)));
    insert(object, "lost_packets", lost.unwrap_or(0));
    insert(object, "packets", packets);
    let lost = number(datagrams.lost_percent(packets));
    insert(object, "lost_percent", lost);
}

fn udp_stream(flow: &FlowSummary, stream: &StreamSummary) -> Value {
    let datagrams = stream.udp.unwrap_or_default();
    let moved = stream.sent.or(stream.received).unwrap_or_default();
    let mut object = with_socket(stream, moved);
    add_datagrams(&mut object, datagrams, datagrams.packets());
    let late = datagrams.out_of_order.unwrap_or(0);
    insert(&mut object, "out_of_order", late);
    insert(&mut object, "sender", flow.sends);
    Value::Object(object)
}

fn udp_sums(end: &mut Map<String, Value>, plan: &Plan, flow: &FlowSummary) {
    let datagrams = flow.datagrams().unwrap_or_default();
    let none_lost = Datagrams {
        lost: Some(0),
        jitter_ms: Some(0.0),
        ..datagrams
    };
    let all = datagrams.packets();
    let (sent, received) = (flow.sent(), flow.received());
    for (name, moved, datagrams, packets, sender) in [
        ("sum", sent.or(received), datagrams, all, flow.sends),
        ("sum_sent", sent, none_lost, all, true),
        (
            "sum_received",
            received,
            datagrams,
            datagrams.expected.unwrap_or(all),
            false,
        ),
    ] {
        let Some(moved) = moved else { continue };
        let mut sum = moved_head(moved);
        add_datagrams(&mut sum, datagrams, packets);
        insert(&mut sum, "sender", sender);
        insert(end, &named(plan, name, flow.flow), sum);
    }
}
