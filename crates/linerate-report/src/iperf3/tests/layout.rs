//! Our lines have the shape of iperf3's.

use linerate_model::plan::{Direction, End, Plan, Protocol};
use linerate_model::record::{PeerResults, Role, RunRecord};
use linerate_model::units::Bytes;
use linerate_testing::fixture::{Traffic, against_stock};

use serde_json::Value;

use super::stage::{
    document, plan, pointed, record, sctp_plan, settings, text, udp_plan, with_omit,
};
use crate::iperf3::{Iperf3Settings, Text};

macro_rules! captured {
    ($name:literal) => {
        include_str!(concat!("../../../tests/captured/", $name, ".txt"))
    };
}

/// A line with each number, unit and name of a host or a cookie made equal, so that what is left is
/// the words, the columns' order and where there is a gap.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        let number = |c: &char| c.is_ascii_digit() || *c == '.';
        match character {
            ' ' if shape.ends_with(' ') => {}
            digit if digit.is_ascii_digit() => {
                while characters.next_if(number).is_some() {}
                // A number may be padded.
                if shape.ends_with(' ') || shape.ends_with('[') {
                    shape.truncate(shape.trim_end_matches(' ').len());
                }
                shape.push('0');
            }
            other => shape.push(other),
        }
    }
    for unit in ["KBytes", "MBytes", "GBytes", "Kbits", "Mbits", "Gbits"] {
        shape = shape.replace(
            unit,
            if unit.ends_with("Bytes") {
                "Bytes"
            } else {
                "bits"
            },
        );
    }
    shape
        .replace(" Bytes", "0Bytes")
        .replace(" bits", "0bits")
        .trim_end()
        .to_owned()
}

/// Lines that name what differs from run to run keep their first words only.
fn shapes<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let heads = [
        "      Cookie:",
        "Linux",
        "iperf ",
        "Time:",
        "      TCP MSS:",
        "snd_tcp_congestion",
        "rcv_tcp_congestion",
        "Control connection MSS",
    ];
    let cut = |line: &'a str| {
        heads
            .iter()
            .find(|head| line.starts_with(*head) && line != "iperf Done.")
            .map_or(line, |head| *head)
    };
    lines.map(|line| shape(cut(line))).collect()
}

/// What stands behind the rate, to the space. A TCP line's fields have fixed widths, so that its
/// length tells; a UDP line's have none, so that each number counts as one place.
fn behind_the_rate(line: &str, udp: bool) -> Option<String> {
    let (_, tail) = line.split_once("/sec")?;
    let words: String = tail
        .chars()
        .filter(char::is_ascii_alphabetic)
        .skip_while(|c| "KMG".contains(*c))
        .collect();
    if !udp {
        return Some(format!("{} {words}", tail.len()));
    }
    let mut places = String::new();
    for character in tail.chars() {
        let digit = character.is_ascii_digit() || character == '.';
        match (digit, places.ends_with('0')) {
            (true, true) => {}
            (true, false) => places.push('0'),
            (false, _) => places.push(character),
        }
    }
    Some(places)
}

fn compare(name: &str, theirs: &str, settings: Iperf3Settings, record: &RunRecord) {
    let ours = text(settings, record);
    let shown = ours.join("\n");
    assert_eq!(
        shapes(ours.iter().map(String::as_str)),
        shapes(theirs.lines()),
        "{name}\n{shown}"
    );
    let udp = record.plan.protocol == Protocol::Udp;
    for (our, their) in ours.iter().zip(theirs.lines()) {
        assert_eq!(
            behind_the_rate(our, udp),
            behind_the_rate(their, udp),
            "{name}\n{our}|\n{their}|"
        );
    }
}

fn two(plan: Plan) -> Plan {
    Plan { streams: 2, ..plan }
}

#[test]
fn a_clients_lines_have_iperf3s_shape() {
    let (both, back) = (Direction::Both, Direction::Receive);
    for (name, theirs, plan) in [
        ("tcp", captured!("tcp.client"), plan()),
        (
            "tcp -R",
            captured!("tcp_reverse.client"),
            pointed(plan(), back),
        ),
        (
            "tcp --bidir",
            captured!("tcp_bidir.client"),
            pointed(plan(), both),
        ),
        ("tcp -P 2", captured!("tcp_p2.client"), two(plan())),
        (
            "tcp -P 2 --bidir",
            captured!("tcp_p2_bidir.client"),
            two(pointed(plan(), both)),
        ),
        ("tcp -O 1", captured!("tcp_omit.client"), with_omit(plan())),
        ("udp", captured!("udp.client"), udp_plan()),
        (
            "udp -R",
            captured!("udp_reverse.client"),
            pointed(udp_plan(), back),
        ),
        (
            "udp --bidir",
            captured!("udp_bidir.client"),
            pointed(udp_plan(), both),
        ),
        ("udp -P 2", captured!("udp_p2.client"), two(udp_plan())),
        (
            "udp -O 1",
            captured!("udp_omit.client"),
            with_omit(udp_plan()),
        ),
    ] {
        let record = record(&plan, Role::Client, Traffic::default());
        compare(name, theirs, settings(&record), &record);
        let stock = against_stock(record, Role::Server);
        compare(
            &format!("{name} with a stock server"),
            theirs,
            settings(&stock),
            &stock,
        );
    }
}

#[test]
fn verbose_lines_have_iperf3s_shape() {
    let (both, back) = (Direction::Both, Direction::Receive);
    for (name, theirs, plan) in [
        ("tcp", captured!("tcp.verbose.client"), plan()),
        (
            "tcp -R",
            captured!("tcp_reverse.verbose.client"),
            pointed(plan(), back),
        ),
        (
            "tcp --bidir",
            captured!("tcp_bidir.verbose.client"),
            pointed(plan(), both),
        ),
        (
            "tcp -O 1",
            captured!("tcp_omit.verbose.client"),
            with_omit(plan()),
        ),
        ("udp", captured!("udp.verbose.client"), udp_plan()),
    ] {
        let record = record(&plan, Role::Client, Traffic::default());
        compare(
            name,
            theirs,
            Iperf3Settings {
                verbose: true,
                ..settings(&record)
            },
            &record,
        );
    }
    let bytes = Plan {
        end: End::Bytes(Bytes(5 << 20)),
        ..plan()
    };
    let record = record(&bytes, Role::Client, Traffic::default());
    let ours = text(
        Iperf3Settings {
            verbose: true,
            ..settings(&record)
        },
        &record,
    );
    let expected = "Starting Test: protocol: TCP, 1 streams, 131072 byte blocks, omitting 0 seconds, 5242880 bytes to send, tos 0";
    assert!(ours.iter().any(|line| line == expected));
    assert!(shapes(captured!("tcp_bytes.verbose.client").lines()).contains(&shape(expected)));
}

/// iperf3's servers close with a last interval of some milliseconds; our made-up runs have none.
#[test]
fn a_servers_lines_have_iperf3s_shape() {
    for (name, theirs, plan) in [
        ("tcp", captured!("tcp.server"), plan()),
        (
            "tcp -R",
            captured!("tcp_reverse.server"),
            pointed(plan(), Direction::Receive),
        ),
        (
            "tcp --bidir",
            captured!("tcp_bidir.server"),
            pointed(plan(), Direction::Both),
        ),
        ("udp", captured!("udp.server"), udp_plan()),
        (
            "udp -R",
            captured!("udp_reverse.server"),
            pointed(udp_plan(), Direction::Receive),
        ),
    ] {
        let record = record(&plan, Role::Server, Traffic::default());
        let mut ours = Text::listening(5201, 1);
        ours.extend(text(settings(&record), &record));
        let last_interval = |line: &&str| !(line.contains("2.00-2.0") && line.contains("sec"));
        assert_eq!(
            shapes(ours.iter().map(String::as_str)),
            shapes(theirs.lines().filter(last_interval)),
            "{name}"
        );
    }
}

/// Also where the client's half is in the record: iperf3's server has printed before it comes.
#[test]
fn a_verbose_server_says_that_it_does_not_know_the_client() {
    let tcp = record(&plan(), Role::Server, Traffic::default());
    let verbose = Iperf3Settings {
        verbose: true,
        ..settings(&tcp)
    };
    let ours = text(verbose, &tcp);
    let theirs = "[  5] (sender statistics not available)";
    assert!(
        ours.iter().any(|line| line == theirs)
            && captured!("tcp.verbose.server")
                .lines()
                .any(|line| line == theirs)
    );
    assert!(
        !ours
            .iter()
            .any(|line| line.starts_with("snd_tcp_congestion"))
    );
}

#[test]
fn a_whole_text_to_the_letter() {
    let made = Traffic {
        rate_bps: 8.0 * 1_048_576.0 * 100.0,
        ramp_s: 0.0,
        noise: 0.0,
        notsent_bytes: 0,
        in_flight_bytes: 0,
        ..Traffic::default()
    };
    let record = record(&plan(), Role::Client, made);
    assert_eq!(
        text(settings(&record), &record),
        [
            "Connecting to host 192.0.2.2, port 5201",
            "[  5] local 192.0.2.1 port 40001 connected to 192.0.2.2 port 5201",
            "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd",
            "[  5]   0.00-1.00   sec   100 MBytes   839 Mbits/sec   10    479 KBytes       ",
            "[  5]   1.00-2.00   sec   100 MBytes   839 Mbits/sec   11    479 KBytes       ",
            "- - - - - - - - - - - - - - - - - - - - - - - - -",
            "[ ID] Interval           Transfer     Bitrate         Retr",
            "[  5]   0.00-2.00   sec   200 MBytes   839 Mbits/sec   21            sender",
            "[  5]   0.00-2.00   sec   200 MBytes   839 Mbits/sec                  receiver",
            "",
            "iperf Done.",
        ]
    );
}

/// As Debian's iperf3 has it: no columns of TCP's, of whose figures the kernel has none for SCTP.
#[test]
fn a_whole_text_and_document_of_sctp() {
    let made = Traffic {
        rate_bps: 8.0 * 1_048_576.0 * 100.0,
        ramp_s: 0.0,
        noise: 0.0,
        ..Traffic::default()
    };
    let record = record(&sctp_plan(), Role::Client, made);
    let verbose = Iperf3Settings {
        verbose: true,
        ..settings(&record)
    };
    let lines = text(verbose, &record);
    let told = "Starting Test: protocol: SCTP, 1 streams, 65536 byte blocks, omitting 0 seconds, 2 second test, tos 0";
    assert!(lines.iter().any(|line| line == told), "{lines:#?}");
    assert!(
        !lines
            .iter()
            .any(|line| line.contains("TCP MSS") || line.contains("_congestion"))
    );
    assert_eq!(
        text(settings(&record), &record),
        [
            "Connecting to host 192.0.2.2, port 5201",
            "[  5] local 192.0.2.1 port 40001 connected to 192.0.2.2 port 5201",
            "[ ID] Interval           Transfer     Bitrate",
            "[  5]   0.00-1.00   sec   100 MBytes   839 Mbits/sec                  ",
            "[  5]   1.00-2.00   sec   100 MBytes   839 Mbits/sec                  ",
            "- - - - - - - - - - - - - - - - - - - - - - - - -",
            "[ ID] Interval           Transfer     Bitrate",
            "[  5]   0.00-2.00   sec   200 MBytes   839 Mbits/sec                  sender",
            "[  5]   0.00-2.00   sec   200 MBytes   839 Mbits/sec                  receiver",
            "",
            "iperf Done.",
        ]
    );
    let document = document(&record);
    assert_eq!(document["start"]["test_start"]["protocol"], "SCTP");
    assert_eq!(document["start"]["test_start"]["blksize"], 65_536);
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    let moved = [
        "socket",
        "start",
        "end",
        "seconds",
        "bytes",
        "bits_per_second",
    ];
    let sum = &moved[1..];
    assert_eq!(
        keys(&document["intervals"][0]["streams"][0]),
        [&moved[..], &["omitted", "sender"]].concat()
    );
    assert_eq!(
        keys(&document["intervals"][0]["sum"]),
        [sum, &["omitted", "sender"]].concat()
    );
    let stream = &document["end"]["streams"][0];
    for side in ["sender", "receiver"] {
        assert_eq!(keys(&stream[side]), [&moved[..], &["sender"]].concat());
    }
    assert_eq!(
        keys(&document["end"]["sum_sent"]),
        [sum, &["sender"]].concat()
    );
    assert_eq!(
        keys(&document["end"]),
        [
            "streams",
            "sum_sent",
            "sum_received",
            "cpu_utilization_percent"
        ]
    );
    for key in ["tcp_mss_default", "sock_bufsize", "sndbuf_actual"] {
        assert!(document["start"].get(key).is_none(), "{key}");
    }
}

#[test]
fn formats_titles_and_the_servers_output_show() {
    let titled = Plan {
        title: Some("hello".into()),
        ..plan()
    };
    let mut record = record(&titled, Role::Client, Traffic::default());
    record.peer_results = Some(PeerResults {
        output_text: Some("Accepted\nmore\n".into()),
        ..PeerResults::default()
    });
    let asked = Iperf3Settings {
        format: Some('K'),
        get_server_output: true,
        ..settings(&record)
    };
    let ours = text(asked, &record);
    assert!(ours.iter().all(|line| line.starts_with("hello:  ")));
    assert!(
        ours.iter().any(|line| line.contains(" KBytes/sec")),
        "{ours:#?}"
    );
    let output: Vec<_> = ours
        .iter()
        .skip_while(|line| !line.ends_with("Server output:"))
        .map(|line| &line[8..])
        .collect();
    assert_eq!(
        output,
        ["Server output:", "Accepted", "more", "", "", "iperf Done."]
    );
}
