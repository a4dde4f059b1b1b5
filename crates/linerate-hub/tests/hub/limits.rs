//! Whom the hub answers, and what nobody may use up.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use linerate_hub::memory::MemoryStore;
use linerate_hub::shared::Shared;
use linerate_hub::{ServeError, serve};

use crate::sample;
use crate::served::Served;

const POLICY: &str = "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

#[test]
fn only_loopback_is_listened_on() {
    let shared = Arc::new(Shared::new(Arc::new(MemoryStore::default()), || {
        sample::NOW
    }));
    let error = serve(TcpListener::bind("0.0.0.0:0").unwrap(), shared).unwrap_err();
    assert!(matches!(error, ServeError::NoUsers { .. }));
    let text = error.to_string();
    assert!(
        text.contains("without users") && text.contains("ssh -L"),
        "{text}"
    );
}

#[test]
fn every_answer_has_the_policy() {
    let hub = Served::sample();
    for path in [
        "/",
        "/nothing",
        "/api/v1/pairs",
        "/metrics",
        "/static/hub.js",
        "/static/x",
        "/run/1",
    ] {
        let answer = hub.get(path);
        assert!(answer.head.contains(POLICY), "{path}: {}", answer.head);
        assert!(
            answer.head.contains("x-content-type-options: nosniff"),
            "{path}"
        );
    }
    let refused = hub.ask("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert!(
        refused.status == 421 && refused.head.contains(POLICY),
        "{refused:?}"
    );
}

#[test]
fn other_sites_and_other_names_are_refused() {
    let hub = Served::sample();
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: hub.evil.example", 421),
        ("GET / HTTP/1.1\r\nX: y", 421),
        (
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0",
            403,
        ),
        (
            "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nSec-Fetch-Site: cross-site",
            403,
        ),
        (
            "DELETE / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example",
            403,
        ),
        (
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nSec-Fetch-Site: same-origin",
            405,
        ),
        (
            "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000",
            413,
        ),
    ] {
        let answer = hub.ask(&format!("{request}\r\nConnection: close\r\n\r\n"));
        assert_eq!(answer.status, status, "{request}");
    }
}

#[test]
fn a_long_head_is_refused() {
    let hub = Served::sample();
    let mut stream = hub.connect();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
        .unwrap();
    // The hub answers and closes long before 10 MB.
    let part = vec![b'x'; 64 * 1024];
    let taken = (0..160)
        .take_while(|_| stream.write_all(&part).is_ok())
        .count();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(
        taken < 160 || answer.starts_with(b"HTTP/1.1 431"),
        "{taken} parts taken"
    );
    assert_eq!(hub.get("/").status, 200);
}

#[test]
fn a_body_without_a_length_is_bounded() {
    let hub = Served::empty();
    let mut stream = hub.connect();
    let head = "POST /silences HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n\
                Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = [&b"1000\r\n"[..], &[b'x'; 4096], b"\r\n"].concat();
    // The hub answers and closes long before 10 MB.
    let taken = (0..2560)
        .take_while(|_| stream.write_all(&chunk).is_ok())
        .count();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(
        taken < 2560 || answer.starts_with(b"HTTP/1.1 4"),
        "{taken} chunks taken"
    );
    assert_eq!(hub.get("/").status, 200);
}

#[test]
fn two_thousand_idle_connections_are_bounded_and_keep_nobody_out() {
    let hub = Served::empty();
    let mut idle = Vec::new();
    for _ in 0..2000 {
        // A machine with few descriptors has fewer.
        match std::net::TcpStream::connect(hub.address()) {
            Ok(stream) => idle.push(stream),
            Err(_) => break,
        }
    }
    assert!(idle.len() > 400, "{}", idle.len());
    assert_eq!(hub.get("/").status, 200);
    let closed = idle.iter().filter(|stream| is_closed(stream)).count();
    assert!(
        idle.len() < 600 || closed >= idle.len() - 600,
        "{closed} of {} closed",
        idle.len()
    );
}

/// Whether the other end closed the connection.
fn is_closed(mut stream: &std::net::TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    match stream.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

#[test]
fn a_connection_that_says_nothing_is_closed() {
    let hub = Served::empty();
    let mut silent = hub.connect();
    let mut slow = hub.connect();
    let mut bodiless = hub.connect();
    let head = "POST /silences HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n\
                Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\nhost=";
    bodiless.write_all(head.as_bytes()).unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
    // The time that a request's head may take, and not a test's: a read without an end fails after two minutes.
    for stream in [&mut silent, &mut slow, &mut bodiless] {
        let mut rest = Vec::new();
        let read = stream.read_to_end(&mut rest);
        assert!(
            !matches!(&read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock),
            "{read:?}"
        );
    }
}
