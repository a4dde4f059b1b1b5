//! Packet captures: every format and link type, cut and damaged files, and what is said of the connections.

use linerate_explain::transcript::explain;
use linerate_model::capture::{Capture, CaptureEnd, Conversation, TcpFlags, UNKNOWN_ORIGIN};
use linerate_model::finding::Finding;
use linerate_model::transcript::{Given, Part, Reading, Transcript};
use linerate_readers::{ReadError, read};
use linerate_report::transcript::{document, report};
use proptest::prelude::*;

use crate::segments::{ACK, File, Format, Frame, Path, SYN, Talk, Trouble, Wrap, handshake, talk};

fn parts(transcript: &Transcript) -> (&Capture, Vec<&Conversation>) {
    let mut capture = None;
    let mut conversations = Vec::new();
    for part in &transcript.parts {
        match part {
            Part::Capture(held) => capture = Some(held.as_ref()),
            Part::Conversation(held) => conversations.push(held.as_ref()),
            other => panic!("{other:?}"),
        }
    }
    (capture.unwrap(), conversations)
}

fn explained(bytes: &[u8]) -> Reading {
    explain(vec![read("test.pcap", bytes).unwrap()], Given::default())
}

/// The report in one line, so that wrapping does not matter.
fn text(bytes: &[u8]) -> String {
    let text = report(&explained(bytes));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn findings(bytes: &[u8]) -> Vec<Finding> {
    let reading = explained(bytes);
    reading
        .explained
        .into_iter()
        .flat_map(|one| one.findings)
        .collect()
}

fn ids(bytes: &[u8]) -> Vec<String> {
    findings(bytes).into_iter().map(|one| one.id).collect()
}

#[track_caller]
fn found(bytes: &[u8], id: &str) -> Finding {
    let all = findings(bytes);
    all.iter()
        .find(|one| one.id == id)
        .unwrap_or_else(|| panic!("no {id} in {all:#?}"))
        .clone()
}

#[test]
fn every_format_link_type_and_byte_order_holds_the_same_connection() {
    let frames = talk(&Talk::default());
    let expected = read("a", &File::default().write(&frames)).unwrap();
    let (_, expected) = parts(&expected);
    assert_eq!(expected.len(), 1);
    assert!(expected[0].packets.len() > 100);
    let formats = [Format::Micros, Format::Nanos, Format::Pcapng];
    let wraps = [
        Wrap::Ethernet,
        Wrap::Vlan,
        Wrap::QinQ,
        Wrap::Raw,
        Wrap::Null,
        Wrap::Loop,
        Wrap::Sll,
        Wrap::Sll2,
    ];
    for format in formats {
        for wrap in wraps {
            for big in [false, true] {
                let file = File {
                    format,
                    wrap,
                    big,
                    ..File::default()
                };
                let transcript = read("a", &file.write(&frames)).unwrap();
                let (capture, all) = parts(&transcript);
                assert_eq!(capture.end, CaptureEnd::Whole, "{file:?}");
                assert_eq!(capture.packets, frames.len() as u64, "{file:?}");
                assert!(capture.links.iter().all(|link| link.read), "{file:?}");
                assert_eq!(all.len(), 1, "{file:?}");
                assert_eq!(all[0].packets, expected[0].packets, "{file:?}");
                assert_eq!(all[0].ends, expected[0].ends, "{file:?}");
            }
        }
    }
    let v6 = read(
        "a",
        &File {
            v6: true,
            ..File::default()
        }
        .write(&frames),
    )
    .unwrap();
    let (_, all) = parts(&v6);
    assert_eq!(all[0].packets, expected[0].packets);
    assert_eq!(all[0].ends[0].address, "[2001:db8::1]:40000");
}

#[test]
fn lengths_are_the_ip_header_s_where_the_snapshot_length_cuts() {
    let frames = talk(&Talk::default());
    let whole = read("a", &File::default().write(&frames)).unwrap();
    let short = File {
        snapshot: 96,
        ..File::default()
    };
    let cut = read("a", &short.write(&frames)).unwrap();
    let ((_, one), (capture, other)) = (parts(&whole), parts(&cut));
    assert_eq!(one[0].packets, other[0].packets);
    assert_eq!(capture.snapshot_bytes, Some(96));
    assert!(capture.clipped > 50, "{}", capture.clipped);
    // Into the TCP header: such a packet is counted and not guessed at.
    let shorter = File {
        snapshot: 40,
        ..File::default()
    };
    let cut = read("a", &shorter.write(&frames)).unwrap();
    let (capture, all) = parts(&cut);
    assert_eq!(capture.passed_over.headers, frames.len() as u64);
    assert!(all.is_empty());
    assert!(ids(&shorter.write(&frames)).contains(&"cannot-tell".to_owned()));
}

#[test]
fn sequence_numbers_go_on_where_32_bits_end() {
    let wrapping = Talk {
        first: [u32::MAX - 20_000, u32::MAX - 3],
        ..Talk::default()
    };
    let read = read("a", &File::default().write(&talk(&wrapping))).unwrap();
    let (_, all) = parts(&read);
    let sent = || all[0].packets.iter().filter(|one| one.payload > 0);
    assert_eq!(sent().map(|one| one.seq).min(), Some(1));
    let end = sent()
        .map(linerate_model::capture::Packet::end)
        .max()
        .unwrap();
    assert_eq!(end, 1 + u64::from(wrapping.segments) * 1448);
    assert_eq!(all[0].packets.iter().map(|one| one.ack).max(), Some(end));
}

#[test]
fn without_its_handshake_a_connection_has_an_origin_and_no_scale() {
    let frames: Vec<Frame> = talk(&Talk::default()).split_off(3);
    let read = read("a", &File::default().write(&frames)).unwrap();
    let (_, all) = parts(&read);
    assert!(
        all[0]
            .packets
            .iter()
            .all(|one| one.seq >= UNKNOWN_ORIGIN - 1)
    );
    assert_eq!(all[0].window_shift(0), None);
    let text = text(&File::default().write(&frames));
    assert!(
        text.contains("its handshake is not in the capture"),
        "{text}"
    );
}

#[test]
fn ports_used_again_are_another_connection_and_an_unanswered_one_is_counted() {
    let mut frames = talk(&Talk::default());
    let again = Talk {
        first: [77, 99],
        from_ns: 60_000_000_000,
        ..Talk::default()
    };
    frames.extend(talk(&again));
    frames.push(Frame {
        at_ns: 90_000_000_000,
        flags: SYN,
        seq: 5,
        ports: [40_009, 5201],
        ..handshake(0, 0)
    });
    let read = read("a", &File::default().write(&frames)).unwrap();
    let (capture, all) = parts(&read);
    assert_eq!((capture.connections, capture.kept, all.len()), (3, 2, 2));
    assert_eq!(capture.unanswered, 1);
}

#[test]
fn a_file_cut_anywhere_is_read_as_far_as_it_goes() {
    let frames = talk(&Talk {
        segments: 12,
        ..Talk::default()
    });
    for format in [Format::Micros, Format::Pcapng] {
        let file = File {
            format,
            snapshot: 90,
            ..File::default()
        };
        let bytes = file.write(&frames);
        let mut before = 0;
        for length in 4..=bytes.len() {
            match read("a", &bytes[..length]) {
                Err(ReadError::NoCapture { .. }) => assert!(length < 28, "{length}"),
                Err(other) => panic!("{length}: {other}"),
                Ok(transcript) => {
                    let (capture, _) = parts(&transcript);
                    assert!(!matches!(capture.end, CaptureEnd::Damaged(_)), "{length}");
                    assert!(capture.packets >= before, "{length}");
                    before = capture.packets;
                    let reading = explain(vec![transcript], Given::default());
                    assert!(!report(&reading).is_empty());
                }
            }
        }
        assert_eq!(before, frames.len() as u64);
    }
}

#[test]
fn a_damaged_record_is_named_by_its_place_and_what_stood_before_it_is_kept() {
    let frames = talk(&Talk::default());
    let file = File::default();
    let mut bytes = file.write(&frames);
    let at = file.write(&frames[..50]).len();
    bytes[at + 8..at + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    let transcript = read("a", &bytes).unwrap();
    let (capture, _) = parts(&transcript);
    assert_eq!(capture.end, CaptureEnd::Damaged(at as u64));
    assert_eq!(capture.packets, 50);
    let fault = found(&bytes, "capture-gaps");
    assert!(
        fault.sentence.contains("damaged at byte"),
        "{}",
        fault.sentence
    );
}

#[test]
fn what_is_no_capture_of_tcp_is_named() {
    let frames = talk(&Talk::default());
    let radio = File {
        wrap: Wrap::Unread,
        ..File::default()
    };
    let text = text(&radio.write(&frames));
    assert!(text.contains("802.11 (link type 105, not read)"), "{text}");
    assert!(
        text.contains("packets of its link type (802.11) are not read"),
        "{text}"
    );
    for (head, program) in [
        (&[0x1f, 0x8b, 8, 0][..], "gzip -dc"),
        (b"\xfd7zXZ\0..", "xz -dc"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd -dc"),
        (b"BZh91AY", "bzip2 -dc"),
    ] {
        let error = read("trace.pcap.xz", head).unwrap_err().to_string();
        assert!(
            error.contains(&format!("`{program} trace.pcap.xz")),
            "{error}"
        );
    }
    let error = read("a.pcap", &[0xd4, 0xc3, 0xb2, 0xa1, 2]).unwrap_err();
    assert!(
        error.to_string().contains("ends within its header"),
        "{error}"
    );
}

#[test]
fn pcapng_s_own_count_of_drops_is_a_fault_and_its_absence_is_said() {
    let frames = talk(&Talk::default());
    let counted = |dropped| File {
        format: Format::Pcapng,
        dropped: Some(dropped),
        ..File::default()
    };
    let fault = found(&counted(17).write(&frames), "capture-gaps");
    assert!(
        fault.sentence.contains("dropped 17 packets"),
        "{}",
        fault.sentence
    );
    assert!(!ids(&counted(0).write(&frames)).contains(&"capture-gaps".to_owned()));
    let text = text(&File::default().write(&frames));
    assert!(
        text.contains("dropped packets is not in the file"),
        "{text}"
    );
}

#[test]
fn bytes_acknowledged_that_never_passed_are_a_fault_and_silence_what_is_said_of_losses() {
    let path = Path::with(Trouble::Chance(0.02));
    let frames = path.carry(20.0);
    let sound = ids(&File::default().write(&frames));
    assert!(sound.contains(&"network-loss".to_owned()), "{sound:?}");
    let holed: Vec<Frame> = frames
        .iter()
        .enumerate()
        .filter(|(place, frame)| place % 50 != 7 || frame.payload == 0)
        .map(|(_, frame)| frame.clone())
        .collect();
    let bytes = File::default().write(&holed);
    let said = ids(&bytes);
    assert!(said.contains(&"capture-gaps".to_owned()), "{said:?}");
    assert!(!said.contains(&"network-loss".to_owned()), "{said:?}");
}

#[test]
fn a_policer_is_told_by_its_empty_bucket() {
    for (rate, bucket) in [(4e6, 100_000.0), (10e6, 1_500_000.0), (2e6, 400_000.0)] {
        let path = Path::with(Trouble::Policer { rate, bucket });
        let bytes = File::default().write(&path.carry(30.0));
        let finding = found(&bytes, "policer");
        let told = finding.figures[0].value;
        assert!((told / rate - 1.0).abs() < 0.06, "{told} of {rate}");
    }
}

#[test]
fn chance_and_full_queues_are_no_policer() {
    let troubles = [
        Trouble::Chance(0.005),
        Trouble::Chance(0.03),
        Trouble::Queue {
            rate: 5e6,
            packets: 6,
        },
        Trouble::Queue {
            rate: 5e6,
            packets: 20,
        },
        Trouble::Queue {
            rate: 5e6,
            packets: 80,
        },
    ];
    for trouble in troubles {
        for seed in 1..=5 {
            let path = Path {
                seed,
                ..Path::with(trouble)
            };
            let said = ids(&File::default().write(&path.carry(30.0)));
            assert!(
                !said.contains(&"policer".to_owned()),
                "{trouble:?} {seed}: {said:?}"
            );
        }
    }
    let deep = Path::with(Trouble::Queue {
        rate: 5e6,
        packets: 80,
    });
    let said = ids(&File::default().write(&deep.carry(30.0)));
    assert!(said.contains(&"path-full".to_owned()), "{said:?}");
}

#[test]
fn behind_the_loss_a_capture_says_that_it_cannot_tell() {
    let path = Path {
        at_receiver: true,
        ..Path::with(Trouble::Policer {
            rate: 4e6,
            bucket: 100_000.0,
        })
    };
    let bytes = File::default().write(&path.carry(30.0));
    let said = ids(&bytes);
    assert!(!said.contains(&"policer".to_owned()), "{said:?}");
    let finding = found(&bytes, "cannot-tell");
    assert!(
        finding.sentence.contains("filled a gap"),
        "{}",
        finding.sentence
    );
    let text = text(&bytes);
    assert!(text.contains("taken at or near 10.0.0.2:5201"), "{text}");
}

#[test]
fn a_window_without_room_limits_and_one_never_scaled_is_named() {
    let narrow = Talk {
        window: 20,
        shift: [7, 7].map(Some),
        segments: 4000,
        ..Talk::default()
    };
    let finding = found(&File::default().write(&talk(&narrow)), "receive-window");
    assert!(
        finding.sentence.contains("2.50 KiB"),
        "{}",
        finding.sentence
    );
    let unscaled = Talk {
        window: 29_000,
        shift: [Some(7), None],
        segments: 4000,
        ..Talk::default()
    };
    let finding = found(&File::default().write(&talk(&unscaled)), "receive-window");
    assert!(
        finding
            .sentence
            .contains("10.0.0.2:5201 offered no window scaling"),
        "{}",
        finding.sentence
    );
    let wide = Talk {
        window: 60_000,
        shift: [7, 7].map(Some),
        segments: 4000,
        ..Talk::default()
    };
    let said = ids(&File::default().write(&talk(&wide)));
    assert_eq!(said, ["cannot-tell"]);
}

#[test]
fn a_window_that_closes_is_the_receiving_program_s() {
    let mut frames = talk(&Talk {
        segments: 2000,
        ..Talk::default()
    });
    let last = frames.last().unwrap().clone();
    frames.push(Frame {
        at_ns: last.at_ns + 1_000_000,
        window: 0,
        ..last.clone()
    });
    frames.push(Frame {
        at_ns: last.at_ns + 9_000_000_000,
        ..last
    });
    let finding = found(&File::default().write(&frames), "receiver-application");
    assert!(
        finding.sentence.contains("closed its window once"),
        "{}",
        finding.sentence
    );
}

#[test]
fn small_segments_and_marks_are_noted() {
    let small = Talk {
        mss: 548,
        segments: 500,
        ..Talk::default()
    };
    let finding = found(&File::default().write(&talk(&small)), "small-mss");
    assert!(
        finding.sentence.contains("536 bytes"),
        "{}",
        finding.sentence
    );
    let marked: Vec<Frame> = talk(&Talk::default())
        .into_iter()
        .map(|frame| Frame {
            marked: true,
            ..frame
        })
        .collect();
    found(&File::default().write(&marked), "ecn");
}

#[test]
fn a_document_holds_figures_and_no_packets() {
    let bytes = File::default().write(&talk(&Talk::default()));
    let text = document(&explained(&bytes));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let parts = &value["transcripts"][0]["parts"];
    assert_eq!(parts[0]["read"]["what"], "capture");
    assert_eq!(parts[1]["read"]["what"], "conversation");
    assert!(text.len() < 10_000, "{}", text.len());
}

#[test]
fn flags_are_told_apart() {
    assert!(TcpFlags(SYN | ACK).has(TcpFlags::SYN));
    assert!(!TcpFlags(ACK).has(TcpFlags::SYN));
}

proptest! {
    #[test]
    fn any_bytes_behind_a_header_are_read_without_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..600),
        format in 0..3_usize,
        at in 0..600_usize,
    ) {
        let formats = [Format::Micros, Format::Nanos, Format::Pcapng];
        let file = File { format: formats[format], snapshot: 90, ..File::default() };
        let mut whole = file.write(&talk(&Talk { segments: 6, ..Talk::default() }));
        let head = file.write(&[]).len();
        let at = (head + at).min(whole.len());
        // Some packets, then anything, in the place of what stood there.
        whole.truncate(at);
        whole.append(&mut bytes);
        if let Ok(transcript) = read("a", &whole) {
            let reading = explain(vec![transcript], Given::default());
            prop_assert!(!report(&reading).is_empty());
        }
    }
}
