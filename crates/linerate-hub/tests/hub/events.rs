//! Server-sent events.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use linerate_hub::memory::MemoryStore;

use crate::sample::{self, failed};
use crate::served::Served;

/// Opens a stream; its head is read.
fn open(hub: &Served, last: Option<u64>) -> BufReader<TcpStream> {
    let mut stream = hub.connect();
    let last = last.map_or_else(String::new, |id| format!("Last-Event-ID: {id}\r\n"));
    stream
        .write_all(format!("GET /events HTTP/1.1\r\nHost: localhost\r\n{last}\r\n").as_bytes())
        .unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        assert!(
            reader.read_line(&mut line).unwrap() > 0,
            "the stream has a head"
        );
    }
    reader
}

/// Reads to the next event of this name, and gives its fields.
fn next(reader: &mut BufReader<TcpStream>, name: &str) -> (Option<u64>, String) {
    let (mut id, mut data, mut event) = (None, String::new(), String::new());
    loop {
        let mut line = String::new();
        assert!(
            reader.read_line(&mut line).unwrap() > 0,
            "the stream ended before {name}"
        );
        match line.trim_end().split_once(": ") {
            Some(("id", value)) => id = value.parse().ok(),
            Some(("data", value)) => value.clone_into(&mut data),
            Some(("event", value)) => value.clone_into(&mut event),
            _ if line == "\n" && event == name => return (id, data),
            _ => {}
        }
    }
}

fn append(store: &MemoryStore, to: &str) {
    store.append(
        sample::run(
            "t",
            "a",
            to,
            sample::before(1000),
            failed("connecting", "refused"),
        ),
        None,
    );
}

#[test]
fn a_stream_brings_what_happens_and_goes_on_where_it_ended() {
    let store = Arc::new(MemoryStore::default());
    append(&store, "before");
    let hub = Served::of(store.clone());
    let mut stream = open(&hub, None);
    let (place, _) = next(&mut stream, "ready");
    assert_eq!(place, Some(1), "it begins behind what was there");
    append(&store, "b");
    hub.shared.live().wake();
    let (id, data) = next(&mut stream, "run");
    assert_eq!(
        (id, data.as_str()),
        (Some(2), r#"{"task":"t","from":"a","to":"b"}"#)
    );
    drop(stream);
    append(&store, "c");
    append(&store, "d");
    let mut again = open(&hub, id);
    hub.shared.live().wake();
    let seen = [next(&mut again, "run"), next(&mut again, "run")];
    assert_eq!(seen.map(|(id, _)| id), [Some(3), Some(4)]);
    hub.shared.live().update(|live| live.running.clear());
    next(&mut again, "live");
}

#[test]
fn streams_end_with_the_hub() {
    let hub = Served::empty();
    let mut stream = open(&hub, None);
    next(&mut stream, "ready");
    drop(hub);
    let mut rest = String::new();
    let ended = std::io::Read::read_to_string(&mut stream, &mut rest);
    assert!(
        ended.is_err() || rest.trim_matches(['0', '\r', '\n', ':']).is_empty(),
        "{rest}"
    );
}

#[test]
fn streams_are_bounded() {
    let hub = Served::empty();
    let streams: Vec<_> = (0..128).map(|_| open(&hub, None)).collect();
    let refused = hub.get("/events");
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(hub.get("/").status, 200);
    drop(streams);
}
