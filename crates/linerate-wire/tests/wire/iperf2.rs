//! iperf2's wire: what real clients and servers of four versions sent, and what holds for all bytes.

use std::path::{Path, PathBuf};

use linerate_model::units::Nanos;
use linerate_wire::iperf2::Version;
use linerate_wire::iperf2::ack::Ack;
use linerate_wire::iperf2::caller::{self, Caller, Opening, Way};
use linerate_wire::iperf2::datagram::{Head, Layout};
use linerate_wire::iperf2::header::{
    Amount, Extension, First, IsochronousSettings, LONGEST_HEADER, Start, TcpHeader, UdpHeader,
};
use linerate_wire::iperf2::isochronous::Frame;
use linerate_wire::iperf2::report::{Form, Report, Transit};
use proptest::prelude::*;

#[expect(clippy::disallowed_methods, reason = "a test reads what was captured")]
fn captured(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captured/iperf2")
}

/// All captured files of a kind, by name.
#[expect(clippy::disallowed_methods, reason = "a test reads what was captured")]
fn all(kind: &str) -> Vec<(String, Vec<u8>)> {
    let names = std::fs::read_dir(folder()).unwrap();
    let mut found: Vec<(String, Vec<u8>)> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| Some((name.strip_suffix(kind)?.to_owned(), captured(&name))))
        .collect();
    found.sort();
    found
}

/// A caller in a line.
fn line(caller: &Caller) -> String {
    let mut words = vec![caller.name(), format!("{:?}", caller.way)];
    let mut say = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{name} {value}")));
    };
    say("streams", caller.streams.map(|it| it.to_string()));
    say("block", caller.block_bytes.map(|it| it.to_string()));
    say("amount", caller.amount.map(|it| format!("{it:?}")));
    say("rate", caller.rate.map(|it| it.to_string()));
    say("tos", (caller.tos > 0).then(|| caller.tos.to_string()));
    say(
        "apart",
        (caller.apart() > 0).then(|| caller.apart().to_string()),
    );
    for (is, word) in [
        (caller.takes_ack, "ack"),
        (caller.trip_times.is_some(), "trip times"),
        (caller.is_isochronous, "isochronous"),
        (caller.no_report, "no report"),
        (caller.has_key, "key"),
    ] {
        words.extend(is.then(|| word.to_owned()));
    }
    words.join(", ")
}

/// Reads a connection's bytes as a server does: as many as are asked for, from the first on.
fn opened(bytes: &[u8]) -> (Opening, usize) {
    let mut have = caller::LEAST;
    loop {
        match caller::of_connection(&bytes[..have.min(bytes.len())]) {
            Opening::Partial { bytes: more } => {
                assert!(more > have, "{more} bytes wanted after {have}");
                have = more;
            }
            opening => return (opening, have),
        }
    }
}

#[test]
fn connections_of_real_clients_are_told_apart() {
    let found: Vec<String> = all(".connection.bin")
        .iter()
        .map(|(name, bytes)| match opened(bytes) {
            (Opening::Iperf2(caller), read) => format!("{name}: {}, read {read}", line(&caller)),
            (other, _) => panic!("{name}: {other:?}"),
        })
        .collect();
    let expected = captured("connections.txt");
    assert_eq!(found.join("\n"), String::from_utf8_lossy(&expected).trim());
}

#[test]
fn datagrams_of_real_clients_are_told_apart() {
    let found: Vec<String> = all(".datagram.bin")
        .iter()
        .map(|(name, bytes)| {
            let (layout, caller) = caller::of_datagram(bytes).unwrap();
            let number = Head::decode(layout, bytes).unwrap().number;
            let form = caller.report_form(layout);
            format!(
                "{name}: {}, {layout:?}, {form:?}, number {number}",
                line(&caller)
            )
        })
        .collect();
    let expected = captured("datagrams.txt");
    assert_eq!(found.join("\n"), String::from_utf8_lossy(&expected).trim());
}

#[test]
fn a_wide_number_below_0_begins_no_flow() {
    let mut wide = 0;
    for (name, mut bytes) in all(".datagram.bin") {
        if caller::of_datagram(&bytes).unwrap().0 == Layout::Bytes16 {
            // The upper half of the number.
            bytes[12] |= 0x80;
            assert_eq!(caller::of_datagram(&bytes), None, "{name}");
            wide += 1;
        }
    }
    assert!(wide > 0);
}

#[test]
fn last_datagrams_begin_no_flow_and_tell_how_many_there_were() {
    for (name, bytes) in all(".last.bin") {
        assert_eq!(caller::of_datagram(&bytes), None, "{name}");
        let layout = if name.starts_with("2.0") {
            Layout::Bytes12
        } else {
            Layout::Bytes16
        };
        let head = Head::decode(layout, &bytes).unwrap();
        let count = head.ends(80).unwrap();
        assert!((10..200_000).contains(&count), "{name}: {count}");
    }
}

#[test]
fn text_and_other_protocols_are_no_iperf2() {
    for other in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"SSH-2.0-OpenSSH_9",
        b"tf4qbmoxwkhzabcdef",
        b"LAB1.example.org.1400000",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"@ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    ] {
        assert_eq!(caller::of_connection(other), Opening::Other, "{other:?}");
    }
    for other in [
        &b"9876"[..],
        &[0; 64],
        &[0xff; 64],
        b"M-SEARCH * HTTP/1.1\r\nHOST: 239.255",
    ] {
        assert_eq!(caller::of_datagram(other), None, "{other:?}");
    }
}

#[test]
fn reports_of_real_servers_are_read_in_all_their_forms() {
    for (version, form, datagrams, bytes) in [
        ("2.0.6", Form::After12, 10, 4288),
        ("2.1.8", Form::Wide, 11, 5940),
        ("2.2.n", Form::Wide, 11, 5940),
    ] {
        let (found, report) = Report::decode(&captured(&format!("{version}.report.bin"))).unwrap();
        assert_eq!(found, form, "{version}");
        assert_eq!(
            (report.datagrams, report.bytes),
            (datagrams, bytes),
            "{version}"
        );
        assert_eq!((report.lost, report.out_of_order), (2, 1), "{version}");
        assert!(report.lasted > Nanos(70_000_000) && report.jitter < Nanos(10_000_000));
    }
    // This build does not understand a number that was negated.
    let (form, report) = Report::decode(&captured("2.0.13a.report.bin")).unwrap();
    assert_eq!(
        (form, report.bytes, report.out_of_order),
        (Form::After16, 4288, 1)
    );
}

#[test]
fn a_report_of_a_real_server_is_written_as_it_was() {
    for version in ["2.1.8", "2.2.n"] {
        let bytes = captured(&format!("{version}.report.bin"));
        let (form, report) = Report::decode(&bytes).unwrap();
        let mut written = report.encode(form, &[]);
        // Transit times stand there also where nobody asked for them.
        written[56..116].copy_from_slice(&bytes[56..116]);
        assert_eq!(written, bytes, "{version}");
    }
}

#[test]
fn answers_of_real_servers_are_read_and_written_as_they_were() {
    for name in [
        "2.0.13a_ack",
        "2.1.8_ack",
        "2.2.n_ack",
        "2.1.8_ack_trip_times",
        "2.2.n_ack_trip_times",
    ] {
        let bytes = captured(&format!("{name}.bin"));
        let ack = Ack::decode(&bytes).unwrap();
        assert_eq!(ack.times.is_some(), name.ends_with("times"), "{name}");
        assert!(
            name.starts_with(&ack.version.to_string()[..3]),
            "{name}: {}",
            ack.version
        );
        assert_eq!(ack.encode(), bytes, "{name}");
    }
}

#[test]
fn headers_of_real_clients_are_written_as_they_were() {
    for (name, bytes) in all(".connection.bin") {
        let Ok((header, length)) = TcpHeader::decode(&bytes) else {
            continue;
        };
        // 2.0.13 leaves payload behind its rate, and does not tell the header's length.
        let kept = |it: Extension| (it.version.major, it.version.minor) != (2, 0);
        if header.extension.is_some_and(kept) {
            let written = header.encode();
            assert_eq!(written, bytes[..length], "{name}");
        }
    }
    for (name, bytes) in all(".datagram.bin") {
        if let Some((Layout::Bytes16, caller)) = caller::of_datagram(&bytes)
            && caller.version.is_some()
        {
            let header = UdpHeader::decode(&bytes[16..]).unwrap();
            assert_eq!(header.encode(), bytes[16..160], "{name}");
        }
    }
}

fn version() -> impl Strategy<Value = Version> {
    any::<[u16; 4]>().prop_map(|[major, minor, patch, stage]| Version {
        major,
        minor,
        patch,
        stage,
    })
}

fn first() -> impl Strategy<Value = First> {
    let amount = prop_oneof![
        (0_u32..=0x7FFF_FFFF).prop_map(Amount::Bytes),
        (1_u32..=1 << 31).prop_map(Amount::Time),
    ];
    (any::<[u32; 5]>(), amount).prop_map(|(words, amount)| First {
        flags: words[0],
        streams: words[1],
        port: words[2],
        block_bytes: words[3],
        window_or_rate: words[4],
        amount,
    })
}

fn extension() -> impl Strategy<Value = Extension> {
    (
        version(),
        any::<[u32; 4]>(),
        any::<[u16; 4]>(),
        0_u64..1 << 56,
    )
        .prop_map(|(version, words, halves, rate)| Extension {
            kind: words[0],
            length: words[1],
            upper: halves[0],
            lower: halves[1] & 0x7FFF,
            version,
            reserved: halves[2],
            tos: halves[3],
            rate,
            write_prefetch: words[2],
            barrier_us: (version.major > 2 || (version.major == 2 && version.minor >= 2))
                .then_some(words[3]),
        })
}

fn start() -> impl Strategy<Value = Start> {
    (any::<[u32; 2]>(), any::<u64>()).prop_map(|([seconds, microseconds], pacing)| Start {
        seconds,
        microseconds,
        pacing,
    })
}

fn settings() -> impl Strategy<Value = IsochronousSettings> {
    any::<[[u32; 2]; 4]>().prop_map(|[frames, mean, variance, gap]| IsochronousSettings {
        frames,
        mean,
        variance,
        gap,
    })
}

fn frame() -> impl Strategy<Value = Frame> {
    any::<[u32; 8]>().prop_map(|words| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        Frame::decode(&bytes).unwrap()
    })
}

proptest! {
    #[test]
    fn tcp_headers_survive(
        first in first(),
        extension in extension(),
        parts in 0_usize..4,
        (start, settings) in (start(), settings()),
        name in "[a-z]{1,16}",
        key in prop::option::of("[A-Za-z0-9]{1,40}"),
    ) {
        let header = TcpHeader {
            first: First { flags: first.flags | 0x4001_0000, ..first },
            extension: Some(extension),
            start: (parts > 0).then_some(start),
            isochronous: (parts > 1).then_some(settings),
            congestion: (parts > 2).then(|| name.into()),
            key: key.map(Into::into),
        };
        let bytes = header.encode();
        let (read, length) = TcpHeader::decode(&bytes).unwrap();
        prop_assert_eq!(length, bytes.len());
        prop_assert!(length <= LONGEST_HEADER);
        // What follows from what is there was set.
        let mut expected = header;
        expected.first.flags = read.first.flags;
        let lower = read.extension.map_or(0, |extension| extension.lower);
        expected.extension = expected.extension.map(|extension| Extension { lower, ..extension });
        prop_assert_eq!(&read, &expected);
        // Cut anywhere, it says how much is missing, and never more than there is.
        for cut in 0..length {
            match TcpHeader::decode(&bytes[..cut]) {
                Err(linerate_wire::iperf2::header::Unreadable::Short { bytes }) =>
                    prop_assert!(cut < bytes && bytes <= length),
                other => prop_assert!(false, "{:?} after {} of {} bytes", other, cut, length),
            }
        }
    }

    #[test]
    fn udp_headers_survive(
        first in first(),
        extension in extension(),
        frame in frame(),
        start in start(),
        isochronous in settings(),
    ) {
        let header = UdpHeader { first, extension, frame, start, isochronous };
        let bytes = header.encode();
        prop_assert_eq!(bytes.len(), UdpHeader::BYTES);
        prop_assert_eq!(UdpHeader::decode(&bytes), Some(header));
    }

    #[test]
    fn heads_survive(number: i64, at in 0_u64..1 << 62, size in 0_usize..24) {
        for (layout, number) in [(Layout::Bytes16, number), (Layout::Bytes12, number >> 32)] {
            let head = Head::at(number, Nanos(at));
            let mut datagram = vec![7; size];
            let written = head.encode(layout, &mut datagram);
            prop_assert_eq!(written.is_some(), size >= layout.bytes());
            let read = written.and_then(|()| Head::decode(layout, &datagram));
            prop_assert_eq!(read, written.map(|()| head));
        }
    }

    #[test]
    fn the_end_of_a_flow_is_near_its_last_number(sent in 0_u64..1 << 30) {
        let negated = Head { number: -i64::try_from(sent + 1).unwrap(), seconds: 0, microseconds: 0 };
        prop_assert_eq!(negated.ends(sent), Some(sent + 1));
        let marked = i64::from((u32::try_from(sent + 1).unwrap() | 0x8000_0000).cast_signed());
        prop_assert_eq!(Head { number: marked, ..negated }.ends(sent), Some(sent + 1));
        prop_assert_eq!(Head { number: 5, ..negated }.ends(sent), None);
    }

    #[test]
    fn reports_survive(
        (bytes, lost, out_of_order, datagrams) in (0_u64..1 << 63, any::<u64>(), any::<u64>(), any::<u64>()),
        (lasted, jitter) in (0_u64..1 << 51, 0_u64..1 << 51),
        transit in prop::option::of(any::<([[u32; 2]; 6], [u32; 3])>()),
        wide in any::<bool>(),
    ) {
        let micros = |time: u64| Nanos(time / 1000 * 1000);
        let narrow = |count: u64| if wide { count } else { count & 0xFFFF_FFFF };
        let report = Report {
            bytes,
            lasted: micros(lasted),
            lost: narrow(lost),
            out_of_order: narrow(out_of_order),
            datagrams: narrow(datagrams),
            jitter: micros(jitter),
            transit: transit.filter(|_| wide).map(|(parts, [count, rate, gaps])| Transit { parts, count, rate, gaps }),
        };
        let forms: &[Form] = if wide { &[Form::Wide] } else { &[Form::After12, Form::After16] };
        for form in forms {
            let sent = report.encode(*form, &[0x80; 40]);
            let read = Report::decode(&sent);
            prop_assert_eq!(read, Some((*form, report)));
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), at in 0_usize..20) {
        let _ = (Ack::decode(&bytes), Report::decode(&bytes), Frame::decode(&bytes));
        let _ = (caller::of_datagram(&bytes), UdpHeader::decode(&bytes));
        let mut bytes = bytes;
        // Flags that mean something, in either place.
        for place in [0, at] {
            if let Some(four) = bytes.get_mut(place..place + 4) {
                four.copy_from_slice(&0x5801_00ff_u32.to_be_bytes());
            }
            let _ = (caller::of_datagram(&bytes), TcpHeader::decode(&bytes));
            if let Opening::Partial { bytes: more } = caller::of_connection(&bytes) {
                prop_assert!(more > bytes.len() && more <= LONGEST_HEADER);
            }
        }
    }
}

#[test]
fn a_bounceback_is_known() {
    let (opening, _) = opened(&captured("2.1.8_tcp_bounceback.connection.bin"));
    assert!(matches!(
        opening,
        Opening::Iperf2(Caller {
            way: Way::Bounceback,
            ..
        })
    ));
}
