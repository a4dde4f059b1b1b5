//! A made-up run as this end lived through it: its events, then its record.

use linerate_model::column::Column;
use linerate_model::plan::{DEFAULT_SCTP_BLOCK, DEFAULT_UDP_BLOCK, Direction, End, Plan, Protocol};
use linerate_model::progress::{
    Event, Interval, StreamInterval, StreamOpened, TcpInterval, UdpInterval,
};
use linerate_model::record::{EndRecord, Role, RunRecord, StreamRecord};
use linerate_model::units::{BitRate, Nanos};
use linerate_testing::fixture::{self, Traffic};
use serde_json::Value;

use crate::iperf3::{Iperf3Settings, Json, Text};

/// Two seconds of TCP.
pub(super) fn plan() -> Plan {
    Plan {
        end: End::TimeNs(Nanos::from_millis(2000)),
        ..Plan::new("192.0.2.2")
    }
}

/// Two seconds of UDP.
pub(super) fn udp_plan() -> Plan {
    Plan {
        protocol: Protocol::Udp,
        block_bytes: DEFAULT_UDP_BLOCK,
        rate_bps: Some(BitRate(1 << 20)),
        rate_is_default: true,
        ..plan()
    }
}

/// Two seconds of SCTP.
pub(super) fn sctp_plan() -> Plan {
    Plan {
        protocol: Protocol::Sctp,
        block_bytes: DEFAULT_SCTP_BLOCK,
        ..plan()
    }
}

/// `plan` the other way.
pub(super) fn pointed(plan: Plan, direction: Direction) -> Plan {
    Plan { direction, ..plan }
}

/// A second left out before the two.
pub(super) fn with_omit(plan: Plan) -> Plan {
    Plan {
        omit_ns: Nanos::from_millis(1000),
        ..plan
    }
}

/// The record of a run between two linerates, as `role` wrote it.
pub(super) fn record(plan: &Plan, role: Role, traffic: Traffic) -> RunRecord {
    let length = 2.0 + plan.omit_ns.as_secs_f64();
    RunRecord {
        written_by: role,
        ..fixture::run(
            plan,
            &Traffic {
                seconds: length,
                ..traffic
            },
        )
    }
}

/// All the events of a run at the end that wrote its record.
pub(super) fn events(record: &RunRecord) -> Vec<Event> {
    let end = record.own_end().unwrap();
    let streams = end
        .streams
        .iter()
        .enumerate()
        .map(|(place, stream)| opened(place, stream))
        .collect();
    let connected = Event::Connected {
        control: record.control.clone(),
        cookie: record.cookie.clone(),
        at_unix_ms: record.started_at_unix_ms,
    };
    let mut events = vec![connected, Event::Opened { streams }, Event::Started];
    let last = end.end_ns.since(end.start_ns).0;
    let second = record.plan.interval_ns.0;
    let mut from = 0;
    while from < last {
        let to = (from + second).min(last);
        events.push(Event::Interval(interval(record, end, from, to)));
        from = to;
    }
    events.push(Event::Ending);
    events
}

fn opened(place: usize, stream: &StreamRecord) -> StreamOpened {
    StreamOpened {
        id: stream.id,
        flow: stream.flow,
        sends: stream.sends,
        socket: 5 + 2 * i32::try_from(place).unwrap(),
        local: stream.local.clone(),
        remote: stream.remote.clone(),
        mss_bytes: stream.mss_bytes,
        send_buffer_bytes: stream.send_buffer_bytes,
        receive_buffer_bytes: stream.receive_buffer_bytes,
    }
}

/// What had moved `at` ns after the start.
fn moved_until(end: &EndRecord, stream: &StreamRecord, column: Column, at: u64) -> u64 {
    let instant = end.start_ns.0 + at;
    match column {
        Column::app_bytes if at == 0 => 0,
        Column::app_bytes if instant >= end.end_ns.0 => stream.app_bytes,
        Column::app_bytes if stream.omit_until_ns == Some(Nanos(instant)) => stream.omitted_bytes,
        _ => {
            let row = stream
                .samples
                .at_ns()
                .iter()
                .take_while(|taken| **taken <= instant)
                .count()
                .saturating_sub(1);
            stream
                .samples
                .column(column)
                .map_or(0, |values| values[row])
        }
    }
}

fn interval(record: &RunRecord, end: &EndRecord, from: u64, to: u64) -> Interval {
    let streams = end.streams.iter().map(|stream| {
        let grown =
            |column| moved_until(end, stream, column, to) - moved_until(end, stream, column, from);
        let bytes = grown(Column::app_bytes);
        let gauge = |column| moved_until(end, stream, column, to);
        let tcp = record.plan.protocol == Protocol::Tcp && stream.sends;
        StreamInterval {
            id: stream.id,
            flow: stream.flow,
            sends: stream.sends,
            // Each stream has its own stamps, a little apart.
            from_ns: Nanos(from + u64::from(stream.id)),
            to_ns: Nanos(to + u64::from(stream.id)),
            bytes,
            tcp: tcp.then(|| TcpInterval {
                retransmits: grown(Column::total_retrans_packets),
                snd_cwnd_bytes: gauge(Column::snd_cwnd_packets) * gauge(Column::snd_mss_bytes),
                snd_wnd_bytes: Some(gauge(Column::snd_wnd_bytes)),
                rtt_us: gauge(Column::rtt_us),
                rttvar_us: gauge(Column::rttvar_us),
                pmtu_bytes: gauge(Column::pmtu_bytes),
                reord_seen: Some(gauge(Column::reord_seen)),
                clocks: None,
            }),
            udp: (record.plan.protocol == Protocol::Udp).then(|| UdpInterval {
                packets: bytes / record.plan.block_bytes.count(),
                jitter_ns: if stream.sends { 0 } else { 21_000 },
                ..UdpInterval::default()
            }),
        }
    });
    Interval {
        from_ns: Nanos(from),
        to_ns: Nanos(to),
        omitted: to <= record.plan.omit_ns.0,
        left_ns: None,
        streams: streams.collect(),
    }
}

/// The settings of the end that wrote the record.
pub(super) fn settings(record: &RunRecord) -> Iperf3Settings {
    Iperf3Settings {
        system_info: "Linux host 6.18.5 #1 SMP x86_64".to_owned(),
        title: record.plan.title.as_deref().map(str::to_owned),
        ..Iperf3Settings::new(record.written_by)
    }
}

/// The whole text of a run.
pub(super) fn text(settings: Iperf3Settings, record: &RunRecord) -> Vec<String> {
    let mut text = Text::new(settings, Some(record.plan.clone()));
    let mut lines = text.begin();
    lines.extend(events(record).iter().flat_map(|event| text.event(event)));
    lines.extend(text.end(record));
    lines
}

/// All the JSON lines of a run.
pub(super) fn json_lines(settings: Iperf3Settings, record: &RunRecord) -> Vec<String> {
    let mut json = Json::new(settings, Some(record.plan.clone()));
    let mut lines: Vec<_> = events(record)
        .iter()
        .flat_map(|event| json.event(event))
        .collect();
    lines.extend(json.end(record));
    lines
}

/// The document of a run.
pub(super) fn document(record: &RunRecord) -> Value {
    let lines = json_lines(settings(record), record);
    assert_eq!(lines.len(), 1);
    serde_json::from_str(&lines[0]).unwrap()
}
