//! What is said of published transcripts, and of others of the same kinds.

use std::path::{Path, PathBuf};

use linerate_explain::transcript::explain;
use linerate_model::transcript::{Given, Layout, Part, Transcript};
use linerate_model::units::{BitRate, Bytes, Nanos};
use linerate_readers::{ReadError, read};
use linerate_report::transcript::{document, report};
use proptest::prelude::*;

fn folder(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cases")
        .join(case)
}

fn transcript(case: &str) -> Transcript {
    let bytes = std::fs::read(folder(case).join("input.txt")).unwrap();
    read(case, &bytes).unwrap()
}

/// The report in one line, so that wrapping does not matter.
fn said(cases: &[&str], given: Given) -> String {
    let transcripts = cases.iter().map(|case| transcript(case)).collect();
    let text = report(&explain(transcripts, given));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first finding with its id.
fn first_finding(case: &str) -> String {
    let reading = explain(vec![transcript(case)], Given::default());
    let mut findings = reading.explained.iter().flat_map(|one| &one.findings);
    let first = findings.next();
    first.map_or_else(String::new, |one| format!("{}: {}", one.id, one.sentence))
}

#[track_caller]
fn says(cases: &[&str], given: Given, words: &str) {
    let text = said(cases, given);
    assert!(text.contains(words), "{cases:?}: no '{words}' in: {text}");
}

#[test]
fn every_case_is_said_as_expected() {
    let mut cases = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = said(&[&name], Given::default());
        let first = first_finding(&name);
        let expected = std::fs::read_to_string(folder(&name).join("expected.txt")).unwrap();
        assert!(!expected.trim().is_empty(), "{name}");
        for line in expected.lines().map(str::trim) {
            // What stands behind `! ` must not be said; behind `== ` stands the first finding, whole.
            let right = match (line.strip_prefix("! "), line.strip_prefix("== ")) {
                (Some(never), _) => !text.contains(never),
                (None, Some(whole)) => first == whole,
                (None, None) => text.contains(line),
            };
            if !right {
                wrong.push(format!("{name}: '{line}' is not so in: {text}"));
            }
        }
        cases += 1;
    }
    assert!(cases >= 40, "{cases} cases");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn published_transcripts_are_understood_to_the_last_line() {
    for entry in std::fs::read_dir(folder("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !name.starts_with("variant") {
            let read = transcript(&name);
            assert!(
                read.not_understood.is_empty(),
                "{name}: {:?}",
                read.not_understood
            );
        }
    }
}

#[test]
fn a_second_source_is_used_and_nothing_is_claimed_without_it() {
    let kernel = Given {
        kernel_bytes: Some(Bytes(68_456_218_624)),
        ..Given::default()
    };
    says(
        &["ucl-iperf1-run7-1000s"],
        kernel,
        "confirms k = 15 within 24.6 kB",
    );
    let buffer = Given {
        rtt: Some(Nanos::from_millis(60)),
        buffer: Some(Bytes(32 << 20)),
        ..Given::default()
    };
    says(
        &["esnet-60ms-autotuned-10s"],
        buffer,
        "a buffer of 32.0 MiB over 60.0 ms carries 4474 Mbit/s: it explains the plateau",
    );
    // Without it the least round trip that was printed, which the queue made longer, is all that is known.
    let rtt = Given {
        rtt: Some(Nanos::from_millis(20)),
        ..Given::default()
    };
    says(
        &["captured-json-full-queue"],
        rtt,
        "bufferbloat: The queue at the bottleneck delays everything that passes it by 127 ms",
    );
    let amounts = Given {
        amounts: Some([Bytes(1536 << 20), Bytes(5632 << 20), Bytes(512 << 20)]),
        ..Given::default()
    };
    says(
        &["ucl-do-bytes-table"],
        amounts,
        "each amount is N mod 2^32",
    );
    let link = Given {
        link: Some(BitRate(10_000_000_000)),
        ..Given::default()
    };
    says(&["openvz-new-kernel"], link, "well below the link");
    let depth = Given {
        queue_depth: Some(28_801.0),
        ..Given::default()
    };
    says(
        &["diskstats-dm2"],
        depth,
        "would wrap every 149 s at a queue depth of 28801",
    );
    for (case, word) in [
        ("ucl-iperf1-run7-1000s", "confirms"),
        ("esnet-60ms-autotuned-10s", "buffer"),
        ("captured-json-full-queue", "bufferbloat"),
        ("ucl-do-bytes-table", "N mod"),
        ("openvz-new-kernel", "link"),
        ("diskstats-dm2", "every 149 s"),
    ] {
        assert!(
            !said(&[case], Given::default()).contains(word),
            "{case}: {word}"
        );
    }
}

#[test]
fn two_transcripts_say_more_than_one() {
    let none = Given::default;
    says(
        &[
            "exogeni-vm-iperf3-tcp-untuned",
            "exogeni-vm-iperf3-tcp-tuned",
        ],
        none(),
        "by 2.7 times",
    );
    says(
        &["esnet-60ms-autotuned-10s", "esnet-60ms-window-128m"],
        none(),
        "the window was the limit before",
    );
    says(
        &["esnet-60ms-autotuned-10s", "esnet-60ms-parallel-2"],
        none(),
        "the limit was per connection",
    );
    says(
        &["mlx-loopback", "mlx-10g-default-driver"],
        none(),
        "far below the local throughput limit",
    );
    says(
        &["mlx-10g-vendor-driver-collapse", "mlx-10g-two-streams"],
        none(),
        "suspect one core or one queue",
    );
    says(
        &[
            "exogeni-vm-iperf2-udp-default-rate",
            "exogeni-vm-iperf3-udp-100m-lossy",
        ],
        none(),
        "not comparable",
    );
    says(
        &["diskstats-dm2", "iostat-raid10-lvm"],
        none(),
        "wraps every 149 s",
    );
    let pair = [
        "exogeni-vm-iperf3-udp-100m-lossy",
        "exogeni-vm-iperf3-udp-100m-tuned",
    ];
    says(&pair, none(), "what changed is not in the output");
    let changed = Given {
        changed: Some("sysctls".to_owned()),
        ..none()
    };
    says(
        &pair,
        changed,
        "the earlier loss happened in host buffers, not on the path",
    );
}

#[test]
fn csv_and_json_hold_the_same_test() {
    let csv = "20240101120000,10.0.0.1,40000,10.0.0.2,5001,3,0.0-10.0,1177000000,941600000\n";
    let json = r#"{"start":{"connected":[{"socket":5,"local_host":"10.0.0.1","local_port":1,"remote_host":"10.0.0.2","remote_port":5201}],
        "version":"iperf 3.16","test_start":{"protocol":"TCP","num_streams":1}},
        "intervals":[],"end":{"streams":[{"sender":{"socket":5,"start":0,"end":10,"bytes":1177000000,"bits_per_second":941600000,"retransmits":0}}]}}"#;
    for (text, layout) in [(csv, Layout::Csv), (json, Layout::Json)] {
        let read = read("x", text.as_bytes()).unwrap();
        let Some(Part::Test(test)) = read.parts.first() else {
            panic!("{layout:?}: no test");
        };
        assert_eq!(test.layout, layout);
        assert_eq!(test.rows.len(), 1, "{layout:?}");
        let text = report(&explain(vec![read], Given::default()));
        assert!(text.contains("the full payload rate of 1 GbE"), "{text}");
    }
}

#[test]
fn other_layouts_of_the_same_tools_are_read() {
    let stream = "{\"event\":\"start\",\"data\":{\"version\":\"iperf 3.17\",\"connected\":[{\"socket\":5,\"local_host\":\"10.0.0.1\",\"local_port\":1,\"remote_host\":\"10.0.0.2\",\"remote_port\":5201}]}}\n\
        {\"event\":\"interval\",\"data\":{\"streams\":[{\"socket\":5,\"start\":0,\"end\":1,\"bytes\":117700000,\"bits_per_second\":941600000,\"retransmits\":0,\"snd_cwnd\":400000}]}}\n\
        {\"event\":\"inter";
    let read_stream = read("x", stream.as_bytes()).unwrap();
    assert_eq!(read_stream.not_understood.len(), 1);
    let Some(Part::Test(test)) = read_stream.parts.first() else {
        panic!("no test");
    };
    assert_eq!((test.layout, test.rows.len()), (Layout::JsonStream, 1));
    let drbd = r#"[{"name":"r0","role":"Primary","devices":[{"volume":0,"disk-state":"UpToDate"}],
        "connections":[{"name":"b","connection-state":"Connected","peer-role":"Secondary",
        "peer_devices":[{"volume":0,"replication-state":"SyncSource","peer-disk-state":"Inconsistent","out-of-sync":1048576,"percent-in-sync":50.00}]}]}]"#;
    let sinfo = "REASON USER TIMESTAMP NODELIST\nbad disk root 2024-01-01T00:00:00 n[1-3]\n";
    for (text, words) in [
        (drbd, "sends missing data to the peer (SyncSource)"),
        (sinfo, "3 nodes are not usable, reason \"bad disk\""),
    ] {
        let read = read("x", text.as_bytes()).unwrap();
        let text = report(&explain(vec![read], Given::default()));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_log_of_many_streams_is_read_in_order_of_its_length() {
    use std::fmt::Write as _;
    let mut log = String::new();
    for second in 0..500 {
        for stream in 1..=100 {
            writeln!(
                log,
                "[{stream:3}] {second}.00-{}.00 sec 1.00 MBytes 8.39 Mbits/sec 0 1.00 MBytes",
                second + 1
            )
            .unwrap();
        }
    }
    let read = read("x", log.as_bytes()).unwrap();
    assert!(matches!(read.parts.as_slice(), [Part::Test(test)] if test.rows.len() == 50_000));
}

#[test]
fn sockets_say_what_the_kernel_waited_for() {
    let dump = "State Recv-Q Send-Q Local Address:Port Peer Address:Port\n\
        ESTAB 0 2172 10.0.0.1:5001 10.0.0.2:40000\n\
        \t cubic wscale:7,7 rto:204 rtt:20.5/1.2 mss:1448 cwnd:100 busy:1000ms rwnd_limited:780ms(78.0%) retrans:0/0\n";
    let read = read("ss", dump.as_bytes()).unwrap();
    let text = report(&explain(vec![read], Given::default()));
    assert!(
        text.contains("receive-window") && text.contains("78 %"),
        "{text}"
    );
}

#[test]
fn sctp_is_not_judged_as_tcp() {
    let rows = "Connecting to host h, port 5201\n\
        [  5] local 10.0.0.1 port 40000 connected to 10.0.0.2 port 5201\n\
        [ ID] Interval           Transfer     Bitrate\n\
        [  5]   0.00-10.00  sec  1.10 GBytes   942 Mbits/sec                  sender\n";
    let said = |typed: &str| {
        let transcript = read("x", format!("{typed}{rows}").as_bytes()).unwrap();
        let text = report(&explain(vec![transcript], Given::default()));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (typed, protocol) in [
        ("$ iperf3 -c h --sctp\n", "SCTP; 10.0.0.1"),
        ("", "TCP, or SCTP: no retransmits are printed"),
    ] {
        let text = said(typed);
        assert!(text.contains(protocol), "{text}");
        // Which is what 1 GbE carries in segments of TCP.
        assert!(!text.contains("path-full"), "{text}");
    }
    assert!(said("$ iperf3 -c h --sctp\n").contains("`linerate test h --sctp -t 10`"));
}

#[test]
fn readings_of_one_socket_are_a_series_wherever_they_stand() {
    let case = std::fs::read_to_string(folder("captured-ss-series-full-queue").join("input.txt"));
    let pasted = case
        .unwrap()
        .replace("State Recv-Q", "$ ss -tin\nState Recv-Q");
    let transcript = read("ss", pasted.as_bytes()).unwrap();
    assert_eq!(transcript.parts.len(), 1);
    let text = report(&explain(vec![transcript], Given::default()));
    assert!(text.contains("12 readings within 4.68 s"), "{text}");
    // One that is there twice at the same moment has no time between.
    let twice = format!(
        "{0}{0}",
        pasted
            .lines()
            .take(4)
            .fold(String::new(), |all, line| all + line + "\n")
    );
    let transcript = read("ss", twice.as_bytes()).unwrap();
    let text = report(&explain(vec![transcript], Given::default()));
    assert!(text.contains("cannot-tell"), "{text}");
}

#[test]
fn an_unknown_layout_names_its_line_and_what_is_known() {
    let error = read("notes", b"\nhello\nworld\n").unwrap_err();
    assert!(
        matches!(error, ReadError::Unknown { line: 2, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("iostat -x"), "{error}");
    assert!(matches!(read("x", b" \n"), Err(ReadError::Empty { .. })));
}

fn any_line() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "[ 3]",
        "[SUM]",
        "[ ID]",
        "0.0-",
        "10.0",
        "-",
        "sec",
        "1e300",
        "1.00",
        "GBytes",
        "Gbits/sec",
        "0",
        "99999999999999999999",
        "ms",
        "3/0",
        "(5%)",
        "sender",
        "receiver",
        "Server Report:",
        "local",
        "a",
        "port",
        "5001",
        "connected with",
        "$ iperf3 -b",
        "{",
        "}",
        "[",
        "\"event\":",
        "Device:",
        "%util",
        "cs:",
        "1:",
        "oos:",
        "finish:",
        "duration",
        "bytes",
        "rate",
        "LV",
        "Attr",
        "VG",
        "VSize",
        "NODELIST",
        "STATE",
        "ESTAB",
        "cwnd:",
        "rtt:0",
        "^C",
        "\u{e9}",
        "•",
        "253 2 dm-2 0 0 0 0 0 0 0 0 0 0 0",
    ]);
    prop::collection::vec(words, 0..14).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn no_text_panics(lines in prop::collection::vec(any_line(), 0..30)) {
        if let Ok(read) = read("x", lines.join("\n").as_bytes()) {
            let reading = explain(vec![read.clone(), read], Given::default());
            prop_assert!(report(&reading).contains("linerate explain: x"));
            let text = document(&reading);
            prop_assert!(text.contains("\"kind\": \"transcript\""));
        }
    }

    #[test]
    fn no_cut_or_changed_case_panics(case in 0..46_usize, cut in 0..4000_usize, at in 0..4000_usize, byte in any::<u8>()) {
        let mut names: Vec<_> = std::fs::read_dir(folder("")).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        let mut bytes = std::fs::read(names[case % names.len()].join("input.txt")).unwrap();
        let length = bytes.len().max(1);
        if let Some(there) = bytes.get_mut(at % length) {
            *there = byte;
        }
        bytes.truncate(cut);
        if let Ok(read) = read("x", &bytes) {
            prop_assert!(!report(&explain(vec![read], Given::default())).is_empty());
        }
    }
}
