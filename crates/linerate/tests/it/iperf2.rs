//! Our server for iperf2's clients, and our client at iperf2's servers: {iperf, linerate} × {TCP, UDP} × {plain, `-r`, `-d`,
//! `--reverse`, `--full-duplex`} × {1, 8 streams} × {time, bytes}, and what comes of those who do not keep to the protocol.
//!
//! apt's iperf is used, and those that `IPERF2=PATH,PATH` names.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::process::Command;
use std::time::Duration;

use linerate_analysis::ledger::Ledger;
use linerate_model::record::{Flow, Outcome, RunRecord};

use crate::harness::{
    Folder, LONG, Running, Server, alone, beside, free_port, lacks_programs, run, say, start,
    wait_until,
};

/// apt's iperf 2, and what the caller names.
fn programs(what: &str) -> Vec<String> {
    if lacks_programs(what, &["iperf"]) {
        return Vec::new();
    }
    let named = std::env::var("IPERF2").unwrap_or_default();
    let named = named.split(',').filter(|path| !path.is_empty());
    std::iter::once("iperf")
        .chain(named)
        .map(str::to_owned)
        .collect()
}

/// Its version, as it prints it: `2.1.8`.
fn version(program: &str) -> String {
    let done = run(Command::new(program).arg("-v"), LONG);
    let told = format!("{}{}", done.out, done.error);
    told.split_whitespace().nth(2).unwrap().to_owned()
}

/// What an iperf prints in a line of a stream that is no sum: bytes, and of UDP lost and total datagrams.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    bytes: u64,
    datagrams: Option<(u64, u64)>,
    reversed: bool,
}

fn lines(out: &str) -> Vec<Line> {
    let figures = out.lines().filter(|line| line.contains(" Bytes "));
    figures
        .filter(|line| !line.starts_with("[SUM"))
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let at = words.iter().position(|word| *word == "Bytes").unwrap();
            let text = words[at..].join(" ");
            let datagrams = text.split_once(" ms ").map(|(_, counts)| {
                let (lost, rest) = counts.split_once('/').unwrap();
                let total = rest.split_whitespace().next().unwrap();
                (lost.trim().parse().unwrap(), total.parse().unwrap())
            });
            Line {
                bytes: words[at - 1].parse().unwrap(),
                datagrams,
                reversed: line.contains('*'),
            }
        })
        .collect()
}

fn moved(record: &RunRecord, flow: Flow) -> u64 {
    let half = record.own_end().unwrap();
    half.streams_of(flow).map(|stream| stream.app_bytes).sum()
}

/// Waits until a server has kept so many records.
fn kept(folder: &Folder, many: usize) -> Vec<RunRecord> {
    let mut records = Vec::new();
    let there = wait_until(Duration::from_secs(20), || {
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        if files == many {
            records = folder.records();
        }
        records.len() == many
    });
    assert!(there, "{} records of {many}", records.len());
    records
}

/// A server of ours, a client of iperf2, and the records of ours.
struct Cell<'a> {
    program: &'a str,
    version: &'a str,
    udp: bool,
    way: &'a str,
    streams: u16,
    end: &'a str,
}

impl Cell<'_> {
    fn run(&self) -> (String, Vec<RunRecord>) {
        let folder = Folder::new();
        let server = Server::linerate(&["-o", folder.path().to_str().unwrap()]);
        let mut words = format!("-c {} -f B -P {} {}", server.at(), self.streams, self.end);
        if self.udp {
            words.push_str(" -u -b 20M");
        }
        let back = ["-r", "-d"].contains(&self.way);
        if back {
            // Both ends are this host, and the server has its own port.
            write!(words, " {} -L {}", self.way, free_port()).unwrap();
        } else {
            write!(words, " {}", self.way).unwrap();
        }
        let words: Vec<&str> = words.split_whitespace().collect();
        let done = run(Command::new(self.program).args(words), LONG);
        let records = kept(&folder, self.tests());
        (format!("{}{}", done.out, done.error), records)
    }

    /// How many tests it is to our server: a way back is a second one, and 2.0.13 says how many streams it has only where it asks for
    /// that, so that each of them is one otherwise.
    fn tests(&self) -> usize {
        match self.way {
            "-r" => 2,
            "" if self.version.starts_with("2.0.13") => usize::from(self.streams),
            _ => 1,
        }
    }

    fn name(&self) -> String {
        let Self {
            program,
            udp,
            way,
            streams,
            end,
            ..
        } = self;
        let udp = if *udp { "UDP" } else { "TCP" };
        format!("{program} {udp} {way} -P {streams} {end}")
    }
}

/// What a client printed of bytes to the server and from it is what our records have.
#[track_caller]
fn agrees(cell: &Cell<'_>, out: &str, records: &[RunRecord]) {
    let name = cell.name();
    for record in records {
        assert_eq!(record.outcome, Outcome::Completed, "{name}\n{out}");
        let broken = Ledger::of(record);
        let broken: Vec<_> = broken.broken().collect();
        assert!(broken.is_empty(), "{name}: {broken:?}");
        assert!(record.control.iperf2.is_some(), "{name}");
    }
    let to_server: u64 = records
        .iter()
        .map(|it| moved(it, Flow::ClientToServer))
        .sum();
    let from_server: u64 = records
        .iter()
        .map(|it| moved(it, Flow::ServerToClient))
        .sum();
    let printed = lines(out);
    if cell.udp {
        // Its own count of a stream is printed, and beside it what our server reported of it.
        let mut told: Vec<u64> = printed.iter().map(|line| line.bytes).collect();
        told.sort_unstable();
        let halves = records.iter().map(|record| record.own_end().unwrap());
        for stream in halves.flat_map(|half| half.streams_of(Flow::ClientToServer)) {
            assert!(
                told.contains(&stream.app_bytes),
                "{name}: {stream:?}\n{out}"
            );
            let counts = stream.udp.as_ref().unwrap();
            assert_eq!(counts.peer_sent, Some(counts.highest), "{name}");
        }
        return;
    }
    let told: u64 = printed.iter().map(|line| line.bytes).sum();
    assert_eq!(told, to_server + from_server, "{name}\n{out}");
    let streams = printed.len();
    let ways = if ["", "--reverse"].contains(&cell.way) {
        1
    } else {
        2
    };
    assert_eq!(streams, usize::from(cell.streams) * ways, "{name}\n{out}");
}

/// Why a cell does not work with the program's own server either.
fn broken(version: &str, udp: bool, way: &str, streams: u16) -> Option<&'static str> {
    if version.starts_with("2.0.6") && !udp && way == "-r" {
        return Some("its client ends before the way back, as with its own server");
    }
    if version.starts_with("2.0.13") && !udp && way == "-d" {
        return Some(
            "its client counts what comes back twice or leaves it out, as with its own server",
        );
    }
    if version.starts_with("2.2") && udp && ["-r", "-d"].contains(&way) && streams > 1 {
        return Some("its client mixes flows back and waits for ever, as with its own server");
    }
    None
}

fn cells(udp: bool) {
    let _alone = alone();
    for program in programs("our server for iperf 2") {
        let version = version(&program);
        let mut agreed = 0;
        for way in ["", "-r", "-d", "--reverse", "--full-duplex"] {
            if version.starts_with("2.0") && way.starts_with("--") {
                continue;
            }
            for (streams, end) in [(1, "-t 1"), (8, "-n 1M")] {
                if let Some(why) = broken(&version, udp, way, streams) {
                    say(&format!("iperf {version}, {way} -P {streams}: {why}"));
                    continue;
                }
                let cell = Cell {
                    program: &program,
                    version: &version,
                    udp,
                    way,
                    streams,
                    end,
                };
                let (out, records) = cell.run();
                agrees(&cell, &out, &records);
                agreed += 1;
            }
        }
        let protocol = if udp { "UDP" } else { "TCP" };
        say(&format!(
            "iperf {version}, our server, {protocol}: {agreed} cells agree"
        ));
    }
}

#[test]
fn tcp_clients_of_iperf2_and_our_server_agree_in_every_cell() {
    cells(false);
}

#[test]
fn udp_clients_of_iperf2_and_our_server_agree_in_every_cell() {
    cells(true);
}

/// A stock server, which listens when the kernel says so.
fn stock(program: &str, udp: bool) -> (Running, u16) {
    let port = free_port();
    let mut words = vec!["-s".to_owned(), "-p".to_owned(), port.to_string()];
    words.extend(udp.then(|| "-u".to_owned()));
    let server = start(Command::new(program).args(words));
    let there = wait_until(Duration::from_secs(20), || {
        let table = if udp { "udp" } else { "tcp" };
        let table = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap();
        table.contains(&format!(":{port:04X} "))
    });
    assert!(there, "no server of {program}");
    (server, port)
}

/// The totals of our test at a stock server. On a busy machine such a server loses the end of a flow among several: then it reports nothing,
/// and the test is made again.
fn totals_at(program: &str, udp: bool, words: &str) -> serde_json::Value {
    for attempt in 1_u32.. {
        let (_server, port) = stock(program, udp);
        let words = format!("test 127.0.0.1 -p {port} --iperf2 {words} --json");
        let done = run(&mut crate::harness::linerate(&words), LONG).expect(0);
        let document = done.json();
        let total = &document["ledger"]["directions"][0]["total"];
        let is_reported = total
            .pointer("/datagrams/delivered")
            .is_some_and(|it| !it.is_null());
        if is_reported || !udp || words.contains("-R") || attempt == 3 {
            return total.clone();
        }
        say(&format!("{program} reported nothing of {words}: again"));
    }
    unreachable!("the third is the last")
}

#[test]
fn our_client_agrees_with_servers_of_iperf2() {
    let _alone = alone();
    for program in programs("our client at iperf 2") {
        let is_old = version(&program).starts_with("2.0");
        for (udp, way, end) in [
            (false, "", "-t 1"),
            (false, "-P 4", "-n 4M"),
            (false, "-R", "-t 1"),
            (true, "-b 20M", "-t 1"),
            (true, "-b 20M -P 4", "-n 4M"),
            (true, "-b 20M -R", "-t 1"),
        ] {
            if is_old && way.ends_with("-R") {
                continue;
            }
            let words = format!("{} {way} {end}", if udp { "-u" } else { "" });
            let total = totals_at(&program, udp, &words);
            let count = |pointer: &str| total.pointer(pointer).and_then(serde_json::Value::as_u64);
            if udp && !way.ends_with("-R") {
                let sent = count("/datagrams/sent").unwrap();
                assert_eq!(
                    count("/datagrams/delivered").unwrap() + count("/datagrams/lost").unwrap(),
                    sent,
                    "{program} {words}: {total}"
                );
            } else if !udp && !way.ends_with("-R") {
                assert!(count("/written").unwrap() > 0, "{program} {words}: {total}");
                if end == "-n 4M" {
                    assert_eq!(count("/written"), Some(4 << 20), "{program} {words}");
                }
            } else {
                assert!(count("/read").unwrap() > 0, "{program} {words}: {total}");
            }
        }
    }
}

#[test]
fn who_does_not_keep_to_the_protocol_leaves_nothing_behind() {
    let _beside = beside();
    let folder = Folder::new();
    let mut server = Server::linerate(&["-o", folder.path().to_str().unwrap()]);
    let to = ("127.0.0.1", server.port);
    let header = [
        0x40, 1, 0, 0x78, 0, 0, 0, 1, 0, 0, 0x17, 0xd4, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff,
        0x9c,
    ];
    // Half a header, and then nothing; garbage; a header cut off; one that asks for 65,535 streams.
    let mut silent = TcpStream::connect(to).unwrap();
    silent.write_all(&header[..13]).unwrap();
    TcpStream::connect(to)
        .unwrap()
        .write_all(b"GET / HTTP/1.1\r\n\r\n garbage garbage")
        .unwrap();
    TcpStream::connect(to).unwrap().write_all(&header).unwrap();
    let mut many = TcpStream::connect(to).unwrap();
    let mut wide = header;
    wide[6..8].copy_from_slice(&[0xff, 0xff]);
    many.write_all(&wide).unwrap();
    many.write_all(&[0; 36]).unwrap();
    many.set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    assert_eq!(
        many.read(&mut [0; 64]).unwrap(),
        0,
        "it was to be turned away"
    );
    server.tells("65535 streams requested", 1);
    // The one with half a header is closed as well, within the bound.
    silent
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    assert_eq!(silent.read(&mut [0; 64]).unwrap(), 0);
    assert!(!server.process.ended());
    assert_eq!(folder.records().len(), 0);
}

#[test]
fn a_datagram_gets_no_more_than_it_brought() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.connect(("127.0.0.1", server.port)).unwrap();
    udp.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let datagram = |number: i32, length: usize| {
        let mut bytes = vec![0; length];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        bytes[12..16].copy_from_slice(if number < 0 { &[0xff; 4] } else { &[0; 4] });
        bytes[16..20].copy_from_slice(b"6789");
        bytes
    };
    // Garbage, and the end of a flow that never was, are not answered.
    for garbage in [
        &b"M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250"[..],
        &[0xff; 300],
        &datagram(-5, 1470),
    ] {
        udp.send(garbage).unwrap();
    }
    assert!(udp.recv(&mut [0; 2000]).is_err(), "it was answered");
    // 40 bytes are less than a report.
    for number in [1, -2, -3, -4] {
        udp.send(&datagram(number, 20)).unwrap();
    }
    assert!(udp.recv(&mut [0; 2000]).is_err(), "it was answered");
    // A flow that is longer gets one.
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.connect(("127.0.0.1", server.port)).unwrap();
    udp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    for number in [1, -2] {
        udp.send(&datagram(number, 1470)).unwrap();
    }
    assert_eq!(udp.recv(&mut [0; 2000]).unwrap(), 128);
}

#[test]
fn requests_of_iperf2_are_answered_with_as_many_bytes_as_it_asks_for() {
    let _beside = beside();
    for program in programs("requests and replies of iperf 2") {
        let version = version(&program);
        if version.starts_with("2.0") {
            say(&format!("iperf {version} sends no requests"));
            continue;
        }
        // Replies of another length are 2.2's.
        let lengths = if version.starts_with("2.1") {
            ""
        } else {
            "--bounceback-reply 300"
        };
        for lengths in ["", "-l 1000", lengths] {
            let folder = Folder::new();
            let server = Server::linerate(&["-o", folder.path().to_str().unwrap()]);
            let words = format!("-c {} --bounceback {lengths} -t 1", server.at());
            let done = run(Command::new(&program).args(words.split_whitespace()), LONG).expect(0);
            // `10=0.330/0.018/3.083/0.967 ms`: so many round trips; the last such line is of the whole test.
            let total = done
                .out
                .lines()
                .rfind(|line| line.contains(" ms "))
                .unwrap();
            let round_trips = total.split_once('=').and_then(|(before, _)| {
                let count = before.split_whitespace().last()?;
                count.parse::<u64>().ok()
            });
            let round_trips = round_trips.unwrap();
            assert!(round_trips > 0, "{program} {words}: {}", done.out);
            let records = kept(&folder, 1);
            agrees_on_requests(&records[0], round_trips, lengths);
        }
    }
}

/// Each request that its client had an answer to was read; the last ones it may have had none to.
#[track_caller]
fn agrees_on_requests(record: &RunRecord, round_trips: u64, lengths: &str) {
    assert_eq!(record.outcome, Outcome::Completed, "{lengths}");
    let request = if lengths == "-l 1000" { 1000 } else { 100 };
    let read = moved(record, Flow::ClientToServer);
    assert_eq!(read % request, 0, "{lengths}: {read}");
    let beyond = (read / request).checked_sub(round_trips);
    assert!(
        matches!(beyond, Some(0..=2)),
        "{lengths}: {read} bytes, {round_trips} round trips"
    );
    let ledger = Ledger::of(record);
    let broken: Vec<_> = ledger.broken().collect();
    assert!(broken.is_empty(), "{lengths}: {broken:?}");
}

#[test]
fn flows_from_a_server_are_asked_for_at_once() {
    let _beside = beside();
    let folder = Folder::new();
    let server = Server::linerate(&[]);
    let kept = folder.path().join("record.json");
    let words = format!("--iperf2 -u -R -P 4 -b 10M -t 1 -o {}", kept.display());
    run(&mut server.client(&words), LONG).expect(0);
    let records = folder.records();
    let half = records[0].own_end().unwrap();
    assert_eq!(half.streams.len(), 4);
    assert!(half.streams.iter().all(|stream| stream.app_bytes > 0));
}

#[test]
fn a_client_that_is_killed_is_a_test_that_was_stopped() {
    let _beside = beside();
    if lacks_programs("a killed client of iperf 2", &["iperf"]) {
        return;
    }
    let folder = Folder::new();
    let server = Server::linerate(&["-o", folder.path().to_str().unwrap(), "--json-stream"]);
    let words = format!("-c {} -t 60", server.at());
    let mut client = start(Command::new("iperf").args(words.split_whitespace()));
    assert!(wait_until(Duration::from_secs(20), || server
        .process
        .out()
        .contains("\"interval\"")));
    client.kill();
    let records = kept(&folder, 1);
    assert_eq!(records[0].outcome, Outcome::PeerInterrupted);
    assert!(moved(&records[0], Flow::ClientToServer) > 0);
}
