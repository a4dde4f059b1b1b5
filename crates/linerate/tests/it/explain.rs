//! `linerate explain`: other tools' output, records, and what is neither.

use linerate_model::plan::Plan;
use linerate_report::record::to_json;
use linerate_testing::fixture;
use serde_json::Value;

use crate::harness::{Folder, LONG, beside, findings, linerate, run};

const IPERF: &str = "$ iperf -c 10.0.0.9 -i 1 -t 3\n\
    [  3] local 10.0.0.8 port 40000 connected with 10.0.0.9 port 5001\n\
    [  3]  0.0- 1.0 sec  112 MBytes  942 Mbits/sec\n\
    [  3]  1.0- 2.0 sec  112 MBytes  942 Mbits/sec\n\
    [  3]  2.0- 3.0 sec  112 MBytes  941 Mbits/sec\n\
    [  3]  0.0- 3.0 sec  337 MBytes  942 Mbits/sec\n";

#[test]
fn another_tool_s_output_is_explained_as_text_and_as_json() {
    let _beside = beside();
    let folder = Folder::new();
    let file = folder.with("pasted.txt", IPERF);
    let words = format!("explain {}", file.display());
    let text = run(&mut linerate(&words), LONG).expect(0).out;
    assert!(
        text.contains("path-full: 942 Mbit/s is the full payload rate of 1 GbE"),
        "{text}"
    );
    let json = run(&mut linerate(&format!("{words} --json")), LONG)
        .expect(0)
        .out;
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["kind"], "transcript");
    assert_eq!(
        findings(&document["transcripts"][0]["parts"][0]),
        ["path-full"]
    );
}

#[test]
fn a_record_is_explained_as_show_does() {
    let _beside = beside();
    let folder = Folder::new();
    let record = fixture::run(&Plan::new("server"), &fixture::Traffic::default());
    let file = folder.with("run.json", to_json(&record));
    let explained = run(&mut linerate(&format!("explain {}", file.display())), LONG).expect(0);
    let shown = run(&mut linerate(&format!("show {}", file.display())), LONG).expect(0);
    assert!(explained.out.contains("Goodput"), "{}", explained.out);
    assert_eq!(explained.out, shown.out);
}

#[test]
fn an_unknown_layout_names_its_line_and_what_is_known() {
    let _beside = beside();
    let folder = Folder::new();
    let file = folder.with("notes.txt", "\nbread\nmilk\n");
    let done = run(&mut linerate(&format!("explain {}", file.display())), LONG).expect(5);
    for word in ["notes.txt", "line 2", "'bread'", "iperf3", "iostat -x"] {
        assert!(done.error.contains(word), "no '{word}' in: {}", done.error);
    }
    let missing = folder.file("none");
    let done = run(
        &mut linerate(&format!("explain {}", missing.display())),
        LONG,
    )
    .expect(5);
    assert!(done.error.contains("cannot read"), "{}", done.error);
}

/// A pcap of one handshake and a segment, in pieces.
fn capture() -> Vec<u8> {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend(65_535_u32.to_le_bytes());
    bytes.extend(101_u32.to_le_bytes());
    let packets: [(u32, u8, u32, u32, u8, u16); 4] = [
        (0, 1, 99, 0, 0x02, 0),
        (20_000, 2, 499, 100, 0x12, 0),
        (20_010, 1, 100, 500, 0x10, 1000),
        (40_010, 2, 500, 1100, 0x10, 0),
    ];
    for (micros, from, seq, ack, flags, payload) in packets {
        let mut packet = vec![0x45, 0];
        packet.extend((40 + payload).to_be_bytes());
        packet.extend([
            0,
            0,
            0x40,
            0,
            64,
            6,
            0,
            0,
            10,
            0,
            0,
            from,
            10,
            0,
            0,
            3 - from,
        ]);
        let (source, destination) = if from == 1 {
            (40_000_u16, 5201_u16)
        } else {
            (5201, 40_000)
        };
        packet.extend(source.to_be_bytes());
        packet.extend(destination.to_be_bytes());
        packet.extend(seq.to_be_bytes());
        packet.extend(ack.to_be_bytes());
        packet.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        bytes.extend(7_u32.to_le_bytes());
        bytes.extend(micros.to_le_bytes());
        bytes.extend(40_u32.to_le_bytes());
        bytes.extend((40 + u32::from(payload)).to_le_bytes());
        bytes.extend(packet);
    }
    bytes
}

#[test]
fn a_packet_capture_is_explained_whole_cut_and_from_standard_input() {
    let _beside = beside();
    let folder = Folder::new();
    let file = folder.with("trace.pcap", capture());
    let words = format!("explain {}", file.display());
    let text = run(&mut linerate(&words), LONG).expect(0).out;
    for said in [
        "packet capture (pcap, times in µs; raw IP): 4 packets",
        "10.0.0.1:40000 to 10.0.0.2:5201: 1000 B",
        "taken at or near 10.0.0.1:40000",
    ] {
        assert!(text.contains(said), "no '{said}' in: {text}");
    }
    let json = run(&mut linerate(&format!("{words} --json")), LONG)
        .expect(0)
        .out;
    let document: Value = serde_json::from_str(&json).unwrap();
    let conversation = &document["transcripts"][0]["parts"][1]["read"]["held"];
    assert_eq!(conversation["ends"][0]["payload_bytes"], 1000);
    let mut cut = capture();
    cut.truncate(cut.len() - 3);
    let file = folder.with("cut.pcap", cut);
    let text = run(&mut linerate(&format!("explain {}", file.display())), LONG)
        .expect(0)
        .out;
    assert!(text.contains("ends within a packet"), "{text}");
    let file = folder.with("header.pcap", &capture()[..20]);
    let done = run(&mut linerate(&format!("explain {}", file.display())), LONG).expect(5);
    assert!(
        done.error.contains("ends within its header"),
        "{}",
        done.error
    );
}
