//! Progress while a test runs.

use linerate_model::plan::{Direction, Plan};
use linerate_model::progress::{Event, Interval, StreamInterval, TcpInterval, UdpInterval};
use linerate_model::record::{ControlFacts, Flow};
use linerate_model::units::Nanos;
use linerate_report::progress::Progress;
use linerate_report::stream;
use serde_json::Value;

use crate::runs;

fn part(id: u32, sends: bool, bytes: u64, retransmits: u64) -> StreamInterval {
    StreamInterval {
        id,
        flow: if sends {
            Flow::ClientToServer
        } else {
            Flow::ServerToClient
        },
        sends,
        from_ns: Nanos::from_millis(1000),
        to_ns: Nanos::from_millis(2000),
        bytes,
        tcp: sends.then(|| TcpInterval {
            retransmits,
            rtt_us: 41_000,
            snd_cwnd_bytes: 492_000,
            ..TcpInterval::default()
        }),
        udp: None,
    }
}

fn interval(streams: Vec<StreamInterval>) -> Event {
    Event::Interval(Interval {
        from_ns: Nanos::from_millis(1000),
        to_ns: Nanos::from_millis(2000),
        omitted: false,
        left_ns: Some(Nanos::from_millis(8000)),
        streams,
    })
}

#[test]
fn one_stream_is_one_line() {
    let progress = Progress::new(&runs::tcp());
    let event = interval(vec![part(1, true, 11_925_000, 3)]);
    assert_eq!(
        progress.line(&event).unwrap(),
        "   1.00 -    2.00 s         11.4 MiB sent      95.4 Mbit/s  3 retransmits  RTT 41.0 ms"
    );
    assert_eq!(
        progress.status(&event, 80).unwrap(),
        "sending 95.4 Mbit/s, 3 retransmits, RTT 41.0 ms, 8 s left"
    );
    let narrow = progress.status(&event, 20).unwrap();
    assert_eq!(narrow, "sending 95.4 Mbit/s");
}

#[test]
fn several_streams_have_a_sum_and_few_have_lines_of_their_own() {
    let progress = Progress::new(&Plan {
        streams: 3,
        ..runs::tcp()
    });
    let few = interval((0..3).map(|n| part(n + 3, true, 4_000_000, 1)).collect());
    let text = progress.line(&few).unwrap();
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(
        text.lines()
            .last()
            .unwrap()
            .contains("sum    11.4 MiB sent      96.0 Mbit/s  3 retransmits"),
        "{text}"
    );
    let many = interval((0..8).map(|n| part(n + 3, true, 4_000_000, 1)).collect());
    assert_eq!(progress.line(&many).unwrap().lines().count(), 1);
}

#[test]
fn both_directions_are_told_apart() {
    let progress = Progress::new(&Plan {
        direction: Direction::Both,
        ..runs::tcp()
    });
    let event = interval(vec![
        part(1, true, 11_925_000, 1),
        part(3, false, 1_000_000, 0),
    ]);
    let text = progress.line(&event).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains("sent") && text.contains("received"), "{text}");
    assert!(text.contains("1 retransmit "), "{text}");
    assert_eq!(
        progress.status(&event, 100).unwrap(),
        "sending 95.4 Mbit/s, 1 retransmit, RTT 41.0 ms, receiving 8.00 Mbit/s, 8 s left"
    );
}

#[test]
fn a_receiver_of_datagrams_says_what_is_missing() {
    let progress = Progress::new(&runs::udp(100_000_000));
    let udp = UdpInterval {
        packets: 8000,
        lost: 12,
        out_of_order: 0,
        jitter_ns: 10,
    };
    let event = interval(vec![StreamInterval {
        udp: Some(udp),
        ..part(1, false, 11_680_000, 0)
    }]);
    assert!(
        progress
            .line(&event)
            .unwrap()
            .ends_with("93.4 Mbit/s  12 of 8,000 missing"),
        "{:?}",
        progress.line(&event)
    );
}

#[test]
fn the_rest_of_the_events_has_words() {
    let progress = Progress::new(&runs::tcp());
    let connected = Event::Connected {
        control: ControlFacts::default(),
        cookie: "c".into(),
        at_unix_ms: 1,
    };
    assert_eq!(
        progress.line(&connected).unwrap(),
        "Connected to server port 5201 (a stock iperf3)"
    );
    assert_eq!(progress.line(&Event::Started), None);
    let warning = Event::Warning {
        text: "a\u{1b}[2Jb".into(),
    };
    assert_eq!(progress.line(&warning).unwrap(), "warning: a\\u{1b}[2Jb");
    assert_eq!(
        progress.status(&warning, 80).unwrap(),
        "warning: a\\u{1b}[2Jb\n"
    );
    assert_eq!(progress.status(&Event::Ending, 80).unwrap(), "");
}

#[test]
fn every_event_is_one_line_of_json() {
    let connected = Event::Connected {
        control: ControlFacts::default(),
        cookie: "c".into(),
        at_unix_ms: 1,
    };
    let events = [
        (connected, "connected"),
        (
            Event::Opened {
                streams: Vec::new(),
            },
            "opened",
        ),
        (Event::Started, "started"),
        (interval(vec![part(1, true, 11_925_000, 3)]), "interval"),
        (Event::Ending, "ending"),
        (
            Event::Warning {
                text: "two\nlines".into(),
            },
            "warning",
        ),
    ];
    for (event, name) in events {
        let line = stream::line(&event);
        assert!(!line.contains('\n'), "{line}");
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["event"], name);
        if name == "interval" {
            assert_eq!(value["streams"][0]["bps"], 95_400_000);
            assert_eq!(value["left_ns"], 8_000_000_000_u64);
        }
    }
}
