//! Progress while a test runs.

use linerate_model::plan::{Direction, Plan};
use linerate_model::progress::{
    Event, Interval, SenderClocks, StreamInterval, TcpInterval, UdpInterval,
};
use linerate_model::record::{ControlFacts, Flow};
use linerate_model::units::{BitRate, Nanos};
use linerate_report::live::Block;
use linerate_report::progress::Progress;
use linerate_report::stream;
use linerate_report::text::{Charset, Style};
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
}

/// A second of a sending kernel that was busy, held by the receive window and by the send buffer for so long, µs.
fn clocked(
    bytes: u64,
    busy_us: u64,
    rwnd_limited_us: u64,
    sndbuf_limited_us: u64,
) -> StreamInterval {
    let clocks = Some(SenderClocks {
        busy_us,
        rwnd_limited_us,
        sndbuf_limited_us,
    });
    let stream = part(1, true, bytes, 3);
    StreamInterval {
        tcp: stream.tcp.map(|tcp| TcpInterval { clocks, ..tcp }),
        ..stream
    }
}

#[test]
fn on_a_terminal_one_block_is_drawn_again() {
    let mut block = Block::new(&runs::tcp(), Style::plain());
    let mut shown = |stream| block.show(&interval(vec![stream]), 80).unwrap();
    assert_eq!(
        shown(clocked(5_962_500, 1_000_000, 0, 0)),
        [
            "Sending    47.7 Mbit/s  █",
            "           limited by the network 100 % of the time, 3 retransmits, RTT 41.0 ms",
            "           2 s of 10 s",
        ]
    );
    assert_eq!(
        shown(clocked(11_925_000, 1_000_000, 830_000, 0))[..2],
        [
            "Sending    95.4 Mbit/s  ▄█",
            "           limited by the receive window 83 % of the time, 3 retransmits (6 in all), RTT 41.0 ms"
                .get(..79)
                .unwrap(),
        ]
    );
    assert!(shown(clocked(1, 1_000_000, 0, 600_000))[1].contains("the send buffer 60 %"));
    assert!(shown(clocked(1, 100_000, 0, 0))[1].contains("the sending program 90 %"));
    // A sender that the kernel says nothing of has no limit.
    assert!(!shown(part(1, true, 1, 0))[1].contains("limited"));
    assert_eq!(block.show(&Event::Ending, 80), Some(Vec::new()));
}

#[test]
fn a_sender_that_is_paced_waits_for_its_rate() {
    let plan = Plan {
        rate_bps: Some(BitRate(1_000_000)),
        ..runs::tcp()
    };
    let mut block = Block::new(&plan, Style::plain());
    let lines = block
        .show(&interval(vec![clocked(125_000, 10_000, 0, 0)]), 80)
        .unwrap();
    assert!(
        lines[1].contains("limited by the requested rate 99 %"),
        "{lines:?}"
    );
}

#[test]
fn a_block_has_the_width_of_the_terminal_and_its_characters() {
    let style = Style::plain().of_columns(60).with_charset(Charset::Ascii);
    let mut block = Block::new(&runs::tcp(), style);
    let mut last = Vec::new();
    for second in 0..100 {
        let both = vec![
            clocked(1_000_000 * second, 0, 0, 0),
            part(3, false, 1_000_000, 0),
        ];
        last = block.show(&interval(both), 60).unwrap();
    }
    assert_eq!(last.len(), 4, "{last:?}");
    assert!(last[2].starts_with("Receiving"), "{last:?}");
    assert!(
        last.iter().all(|line| line.is_ascii() && line.len() < 60),
        "{last:?}"
    );
    assert!(last[0].ends_with('#') && last[0].len() > 40, "{last:?}");
    // Narrower than any report is: a line that wraps would stand when the block is drawn again.
    let narrow = block
        .show(&interval(vec![clocked(1, 0, 0, 0)]), 20)
        .unwrap();
    assert!(narrow.iter().all(|line| line.len() < 20), "{narrow:?}");
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
        assert_eq!(stream::read(&line), Some(event));
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["event"], name);
        if name == "interval" {
            assert_eq!(value["streams"][0]["bps"], 95_400_000);
            assert_eq!(value["left_ns"], 8_000_000_000_u64);
        }
    }
    for other in [
        "",
        "{}",
        "[]",
        "{\"event\":\"end\",\"plan\":{}}",
        "{\"event\":7}",
    ] {
        assert_eq!(stream::read(other), None, "{other}");
    }
}
