//! From a stream's record to iperf3's results message, and from the peer's message to its record.

use linerate_model::plain_text::json_for_terminal;
use linerate_model::record::{EndRecord, PeerResults, PeerStream, StreamRecord};
use linerate_model::units::Nanos;
use linerate_wire::results::Results;

/// Our results, for the peer.
pub(crate) fn of_half(half: &EndRecord) -> Results {
    let (streams, start, end, cpu) = (&half.streams, half.start_ns, half.end_ns, half.cpu);
    let elapsed = end.since(start).0.max(1) as f64;
    let percent = |nanos: u64| nanos as f64 * 100.0 / elapsed;
    let mut senders = streams.iter().filter(|stream| stream.sends);
    // iperf3 prints a column for every number but 0, which says that the sender of such a protocol has no count.
    let sender_has_retransmits = match senders.next() {
        Some(sender) if sender.tcp.is_some() => 1,
        Some(sender) if sender.udp.is_none() => 0,
        _ => -1,
    };
    Results {
        cpu_util_total: percent(cpu.user_ns + cpu.system_ns),
        cpu_util_user: percent(cpu.user_ns),
        cpu_util_system: percent(cpu.system_ns),
        sender_has_retransmits,
        congestion_used: streams.iter().find_map(|stream| stream.congestion.clone()),
        streams: streams
            .iter()
            .map(|stream| stream_result(stream, start, end))
            .collect(),
        ..Results::default()
    }
}

fn stream_result(stream: &StreamRecord, start: Nanos, end: Nanos) -> PeerStream {
    let begun = stream.omit_until_ns.unwrap_or(start);
    let udp = stream.udp.clone().unwrap_or_default();
    let (packets, errors, omitted_packets, omitted_errors) = if stream.sends {
        (udp.sent, 0, udp.sent_omitted, 0)
    } else {
        // Counted to the last datagram that the peer says it sent, where it says so.
        let sent = udp.peer_sent.unwrap_or(udp.highest);
        let lost_at_omit = udp.highest_omitted.saturating_sub(udp.unique_omitted);
        (
            sent.max(udp.highest),
            sent.saturating_sub(udp.unique),
            udp.highest_omitted,
            lost_at_omit,
        )
    };
    let retransmits = stream
        .tcp
        .as_ref()
        .filter(|_| stream.sends)
        .and_then(|facts| facts.total_retrans_packets);
    PeerStream {
        id: stream.id,
        bytes: stream.app_bytes - stream.omitted_bytes.min(stream.app_bytes),
        retransmits: retransmits
            .and_then(|count| i64::try_from(count).ok())
            .unwrap_or(-1),
        jitter_s: udp.jitter_ns.unwrap_or(0) as f64 / 1e9,
        errors: i64::try_from(errors).unwrap_or(i64::MAX),
        packets,
        end_time_s: end.since(begun).as_secs_f64(),
        omitted_errors: Some(i64::try_from(omitted_errors).unwrap_or(i64::MAX)),
        omitted_packets: Some(omitted_packets),
    }
}

/// The peer's results, for the record.
pub(crate) fn from_peer(results: Results) -> PeerResults {
    PeerResults {
        cpu_total_percent: results.cpu_util_total,
        cpu_user_percent: results.cpu_util_user,
        cpu_system_percent: results.cpu_util_system,
        congestion: results.congestion_used,
        sender_has_retransmits: results.sender_has_retransmits,
        streams: results.streams,
        output_text: results.server_output_text,
        // As JSON escapes, so that it stays the JSON that the peer sent.
        output_json: results
            .server_output_json
            .map(|value| json_for_terminal(&value.to_string()).as_ref().into()),
    }
}
