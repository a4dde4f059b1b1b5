//! {linerate, iperf3} client × server × {TCP, UDP} × {send, reverse, both} × {1, 8 streams} × {time, bytes}:
//! the totals of both ends, from both ends' reports.
//!
//! - linerate and linerate: every total equal to the byte, in both ends' records, and the ledger balanced;
//! - our client, a stock server: TCP totals of `-n` equal to the byte;
//! - a stock client, our server: what our server kept is what it reported, sender ≥ receiver, and the
//!   equations that can be tested hold;
//! - UDP: delivered + lost = sent.

use std::collections::VecDeque;
use std::process::Command;
use std::sync::Mutex;

use linerate_analysis::ledger::{Check, Ledger};
use linerate_model::record::{Flow, RunRecord};
use serde_json::Value;

use crate::harness::{
    Folder, LONG, Server, alone, assert_balanced, checks, iperf3, measured, newest, number, run,
    say,
};

/// Cells at once. Two where a stock server must have read everything within the time that our client gives it.
const AT_ONCE: usize = 4;
const AT_ONCE_AT_STOCK: usize = 2;
/// What the newest iperf3 writes at once, by its own default and where our client asks. Its threads are
/// cancelled in the middle of a write, so that its own count misses up to one of these a stream.
const BLOCK: u64 = 128 << 10;
const OUR_BLOCK: u64 = 128 << 10;
/// What `-n 4M` moves in each direction.
const FOUR_MIB: u64 = 4 << 20;

/// One cell of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    udp: bool,
    direction: &'static str,
    streams: u32,
    end: &'static str,
}

impl Cell {
    fn all() -> VecDeque<Self> {
        let mut cells = VecDeque::new();
        for udp in [false, true] {
            for direction in ["", "-R", "--bidir"] {
                for streams in [1, 8] {
                    for end in ["-t 1", "-n 4M"] {
                        cells.push_back(Self {
                            udp,
                            direction,
                            streams,
                            end,
                        });
                    }
                }
            }
        }
        cells
    }

    fn words(self) -> String {
        let udp = if self.udp { "-u -b 50M" } else { "" };
        format!("{udp} {} -P {} {}", self.direction, self.streams, self.end)
    }

    const fn flows(self) -> &'static [Flow] {
        match self.direction.as_bytes() {
            b"-R" => &[Flow::ServerToClient],
            b"--bidir" => &[Flow::ClientToServer, Flow::ServerToClient],
            _ => &[Flow::ClientToServer],
        }
    }

    fn exact(self) -> Option<u64> {
        (self.end == "-n 4M").then_some(FOUR_MIB)
    }
}

/// Runs every cell, some at once, and tells all that fail.
#[track_caller]
fn every_cell(name: &str, at_once: usize, test: impl Fn(Cell) + Sync) {
    let cells = Cell::all();
    let many = cells.len();
    let queue = Mutex::new(cells);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(cell) = { queue.lock().unwrap().pop_front() } {
                    let outcome =
                        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(cell)));
                    if let Err(panic) = outcome {
                        let text = panic.downcast_ref::<String>().cloned().or_else(|| {
                            panic.downcast_ref::<&str>().map(|text| (*text).to_owned())
                        });
                        let text = text.unwrap_or_default();
                        failed
                            .lock()
                            .unwrap()
                            .push(format!("{}: {text}", cell.words()));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    say(&format!(
        "matrix, {name}: {} of {many} cells agree",
        many - failed.len()
    ));
    assert!(failed.is_empty(), "{name}:\n{}", failed.join("\n"));
}

/// Runs our client; its document and the server's record.
fn ours(server: &Server, cell: Cell) -> Value {
    run(
        &mut server.client(&format!("{} --json", cell.words())),
        LONG,
    )
    .expect(0)
    .json()
}

/// What the applications of one end counted in a direction.
fn counted(record: &RunRecord, flow: Flow) -> u64 {
    let end = record.own_end().unwrap();
    end.streams_of(flow).map(|stream| stream.app_bytes).sum()
}

/// The page of a direction in a document's ledger.
fn page(document: &Value, flow: Flow) -> &Value {
    let name = serde_json::to_value(flow).unwrap();
    document["ledger"]["directions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|page| page["flow"] == name)
        .unwrap()
}

#[test]
fn linerate_and_linerate_agree_to_the_byte_in_every_cell() {
    let _alone = alone();
    every_cell("linerate, linerate", AT_ONCE, |cell| {
        let folder = Folder::new();
        let server = Server::linerate(&["--one-off", "-o", folder.path().to_str().unwrap()]);
        let document = ours(&server, cell);
        server.ends().expect(0);
        assert_balanced(&document, &cell.words());
        let records = folder.records();
        let [kept] = &records[..] else {
            panic!("{} records", records.len())
        };
        let book = Ledger::of(kept);
        assert_eq!(
            book.broken().count(),
            0,
            "{:?}",
            book.broken().collect::<Vec<_>>()
        );
        assert_eq!(document["cookie"], *kept.cookie);
        for flow in cell.flows() {
            let total = &page(&document, *flow)["total"];
            let (written, read) = (number(total, "/written"), number(total, "/read"));
            assert!(written > 0, "nothing was moved");
            let server_side = if *flow == Flow::ClientToServer {
                read
            } else {
                written
            };
            assert_eq!(server_side, counted(kept, *flow), "the server's own record");
            if cell.udp {
                udp_adds_up(total);
            } else {
                assert_eq!(written, read);
            }
            if let Some(exact) = cell.exact() {
                assert_eq!(written, exact);
            }
        }
    });
}

/// delivered + dropped in the socket + lost on the path = sent.
#[track_caller]
fn udp_adds_up(total: &Value) {
    let sent = number(total, "/datagrams/sent");
    let delivered = number(total, "/datagrams/delivered");
    let lost = number(total, "/datagrams/lost");
    assert!(sent > 0);
    assert_eq!(delivered + lost, sent);
    if total["datagrams"]["path_lost"].is_u64() {
        let parts =
            number(total, "/datagrams/path_lost") + number(total, "/datagrams/socket_dropped");
        assert_eq!(parts, lost);
    }
}

/// Our client against a stock server. That one counts what it has read when it hears that the test is over: with `-t`, what the
/// two sockets of a stream hold may be missing.
fn our_client_at(binary: &str, name: &str, uncounted: u64) {
    let held = largest_buffer("tcp_rmem") + largest_buffer("tcp_wmem");
    every_cell(name, AT_ONCE_AT_STOCK, |cell| {
        let unread = our_client_once(binary, cell, uncounted);
        let most = held * u64::from(cell.streams);
        assert!(unread <= most, "{unread} bytes were written and not read");
    });
}

/// The largest buffer that the kernel gives a socket of itself, bytes.
fn largest_buffer(setting: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{setting}")).unwrap();
    text.split_whitespace().last().unwrap().parse().unwrap()
}

/// The bytes of TCP that the stock server had not read when the time was over.
fn our_client_once(binary: &str, cell: Cell, uncounted: u64) -> u64 {
    let server = Server::iperf3(Command::new(binary).arg("-1"));
    let done = run(
        &mut server.client(&format!("{} --json", cell.words())),
        LONG,
    );
    let document = done.json();
    server.ends().expect(0);
    let book: Vec<Check> = checks(&document);
    let broken: Vec<&Check> = book.iter().filter(|check| !check.holds).collect();
    assert!(
        broken.iter().all(|check| check.difference() <= uncounted),
        "{broken:?}"
    );
    done.expect(if broken.is_empty() { 0 } else { 6 });
    let uncounted = uncounted * u64::from(cell.streams);
    let mut unread = 0;
    for flow in cell.flows() {
        let total = &page(&document, *flow)["total"];
        let (written, read) = (number(total, "/written"), number(total, "/read"));
        assert!(written > 0, "nothing was moved");
        let short = if *flow == Flow::ServerToClient {
            uncounted
        } else {
            0
        };
        assert!(
            written + short >= read,
            "{flow:?}: {written} written, {read} read"
        );
        if cell.udp {
            udp_adds_up(total);
        } else if *flow == Flow::ClientToServer && cell.exact().is_none() {
            unread += written - read;
        } else {
            assert!(
                written.abs_diff(read) <= short,
                "{flow:?}: {written} written, {read} read"
            );
        }
        if let (Some(exact), Flow::ClientToServer) = (cell.exact(), *flow) {
            // Towards a stock server the last datagram is as long as the others.
            let block = number(&document, "/plan/block_bytes");
            let exact = if cell.udp {
                exact.next_multiple_of(block)
            } else {
                exact
            };
            assert_eq!(written, exact);
        }
    }
    unread
}

#[test]
fn our_client_and_debians_server_agree_in_every_cell() {
    measured(alone, || {
        let Some(binary) = iperf3("matrix, our client at Debian's iperf3") else {
            return;
        };
        our_client_at(binary, "linerate, iperf3", 0);
    });
}

#[test]
fn our_client_and_the_newest_server_agree_in_every_cell() {
    measured(alone, || {
        let Some(binary) = newest("matrix, our client at the newest iperf3") else {
            return;
        };
        our_client_at(&binary, "linerate, newest iperf3", OUR_BLOCK);
    });
}

/// A stock client at our server.
fn our_server_for(binary: &str, name: &str, uncounted: u64) {
    every_cell(name, AT_ONCE, |cell| {
        let folder = Folder::new();
        let server = Server::linerate(&["--one-off", "-o", folder.path().to_str().unwrap()]);
        let words = format!("-c {} {} -J", server.at(), cell.words());
        let done = run(Command::new(binary).args(words.split_whitespace()), LONG);
        let document = done.expect(0).json();
        server.ends().expect(0);
        assert_eq!(document.get("error"), None);
        let records = folder.records();
        let [kept] = &records[..] else {
            panic!("{} records", records.len())
        };
        let book = Ledger::of(kept);
        let broken: Vec<_> = book
            .broken()
            .filter(|(_, check)| check.difference() > uncounted)
            .collect();
        assert!(broken.is_empty(), "{broken:?}");
        let uncounted = uncounted * u64::from(cell.streams);
        for flow in cell.flows() {
            let second = cell.flows().len() > 1 && *flow == Flow::ServerToClient;
            let tail = if second { "_bidir_reverse" } else { "" };
            let sent = number(&document, &format!("/end/sum_sent{tail}/bytes"));
            let received = number(&document, &format!("/end/sum_received{tail}/bytes"));
            let counted = counted(kept, *flow);
            let reported = if *flow == Flow::ClientToServer {
                received
            } else {
                sent
            };
            assert_eq!(
                reported, counted,
                "{flow:?}: what our server reported and what it kept"
            );
            assert!(
                sent + uncounted >= received,
                "{flow:?}: {sent} sent, {received} received"
            );
            // A stock client ends a -n test in both directions when it has sent its own part.
            let first_moved = book.directions.iter().any(|page| page.total.read > Some(0));
            assert!(
                received > 0 || second && first_moved,
                "{flow:?}: nothing was moved"
            );
            let entry = book
                .directions
                .iter()
                .find(|page| page.flow == *flow)
                .unwrap();
            if cell.udp {
                udp_adds_up(&serde_json::to_value(&entry.total).unwrap());
            }
        }
    });
}

#[test]
fn debians_client_and_our_server_agree_in_every_cell() {
    let _alone = alone();
    let Some(binary) = iperf3("matrix, Debian's iperf3 at our server") else {
        return;
    };
    our_server_for(binary, "iperf3, linerate", 0);
}

#[test]
fn the_newest_client_and_our_server_agree_in_every_cell() {
    let _alone = alone();
    let Some(binary) = newest("matrix, the newest iperf3 at our server") else {
        return;
    };
    our_server_for(&binary, "newest iperf3, linerate", BLOCK);
}
