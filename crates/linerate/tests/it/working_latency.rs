//! `--latency`: round trips of small messages beside the load, against servers of every kind and across paths whose queue is
//! known.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use linerate_testing::{Need, skipped};
use serde_json::Value;

use crate::harness::raw::{self, Answers, RESULTS, Raw};
use crate::harness::{
    Folder, LONG, Server, alone, beside, lacks_a_lab, linerate, measured, number, run, say, start,
    wait_until,
};
use crate::server::{keeps_no_more_than, kept, serves};

const SOON: Duration = Duration::from_secs(20);

fn to(port: u16, words: &str) -> Command {
    linerate(&format!(
        "test 127.0.0.1 -p {port} --latency --json {words}"
    ))
}

/// A phase in which messages were answered and connections stood.
#[track_caller]
fn assert_measured(document: &Value, phase: &str, what: &str) {
    let of = |field: &str| number(document, &format!("/latency/{phase}/{field}"));
    assert!(
        of("message/count") > 0 && of("connect/count") > 0,
        "{what}, {phase}: {document}"
    );
    assert_eq!(
        of("message/count") + of("unanswered"),
        of("sent"),
        "{what}, {phase}"
    );
    assert!(
        of("message/median_ns") <= of("message/max_ns"),
        "{what}, {phase}"
    );
}

#[test]
fn every_kind_of_test_has_its_three_phases() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    for words in [
        "-t 2 -b 20M",
        "-t 2 -b 20M -R",
        "-t 2 -b 10M -P 3 --bidir",
        "-t 2 -b 10M -u",
        "-t 2 -b 10M -u -R -P 2",
        "-n 8M -b 20M",
    ] {
        let document = run(&mut to(server.port, words), LONG).expect(0).json();
        assert_eq!(document["outcome"]["how"], "completed", "{words}");
        for phase in ["idle", "loaded", "after"] {
            assert_measured(&document, phase, words);
        }
        let latency = &document["latency"];
        assert!(latency.get("missing").is_none(), "{words}: {latency}");
        let minute = latency["responsiveness"]["per_minute"].as_f64();
        assert!(
            minute.is_some_and(|minute| minute > 0.0),
            "{words}: {latency}"
        );
        let without = latency["responsiveness"]["without"].as_array().unwrap();
        assert_eq!(
            without.is_empty(),
            !words.contains("-u"),
            "{words}: {latency}"
        );
    }
}

#[test]
fn over_ipv6_too_and_the_text_says_it() {
    let _beside = beside();
    if let Err(error) = TcpListener::bind("[::1]:0") {
        return skipped(Need::Ipv6, "latency over IPv6", &error.to_string());
    }
    let server = Server::linerate(&[]);
    let words = format!("test ::1 -p {} --latency -t 2 -b 10M", server.port);
    let done = run(&mut linerate(&words), LONG);
    let text = done.expect(0).out;
    for label in ["Latency     idle ", "Responsive  "] {
        assert!(text.contains(label), "{text}");
    }
}

/// What a client says of a server that answers no probes, in a test that runs all the same.
#[track_caller]
fn is_told(port: u16, reason: &str) {
    let done = run(&mut to(port, "-t 2 -b 1M"), LONG).expect(0);
    assert!(done.error.contains(reason), "{}", done.error);
    let document = done.json();
    let missing = document["latency"]["missing"].as_str().unwrap_or_default();
    assert!(missing.contains(reason), "{document}");
    assert_eq!(document["latency"]["idle"]["sent"], 0);
    assert_eq!(document["notes"][0]["id"], "no-latency", "{document}");
}

#[test]
fn a_server_without_probes_is_told_and_tested() {
    let _beside = beside();
    let stock = Answers {
        results: RESULTS.to_owned(),
        linerate: None,
    };
    is_told(stock.serve(), "the server is no linerate");
    let old = Answers {
        results: RESULTS.to_owned(),
        linerate: Some([
            r#"{"version":1,"software":"linerate 0.0.1"}"#.to_owned(),
            "{}".to_owned(),
        ]),
    };
    is_told(old.serve(), "does not know --latency");
}

#[test]
fn a_server_that_answers_no_probe_keeps_no_client() {
    let _beside = beside();
    // It promises answers, and reads the probes as if they were a stream.
    let silent = Answers {
        results: RESULTS.to_owned(),
        linerate: Some([
            r#"{"version":1,"software":"x","probe":true}"#.to_owned(),
            "{}".to_owned(),
        ]),
    };
    let done = run(&mut to(silent.serve(), "-t 2"), LONG);
    assert_ne!(done.code(), Some(0), "{}", done.out);
    assert!(done.error.contains("idle latency"), "{}", done.error);
}

#[test]
fn what_cannot_be_is_refused() {
    let _beside = beside();
    for (words, reason) in [
        ("--latency -t 1", "does not fill a queue"),
        ("--latency --iperf2", "needs linerate at both ends"),
    ] {
        let done = run(&mut linerate(&format!("test 127.0.0.1 {words}")), LONG).expect(2);
        assert!(done.error.contains("--latency"), "{}", done.error);
        assert!(done.error.contains(reason), "{}", done.error);
    }
}

/// A message of a probe connection.
fn message(number: u64) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(b"linerate");
    bytes[8..16].copy_from_slice(&number.to_be_bytes());
    bytes
}

#[test]
fn a_client_s_probe_connection_is_bounded_and_ends_with_its_test() {
    let _alone = alone();
    let server = Server::linerate(&[]);
    serves(&server);
    let before = kept(&server);
    // Garbage, and many messages without reading an answer.
    let many: Vec<u8> = (0..1 << 16).flat_map(message).collect();
    for rude in [vec![7; 1 << 16], many] {
        let mut client = Raw::connect(server.port);
        client.expect(raw::PARAM_EXCHANGE);
        client
            .message(r#"{"tcp":true,"time":5,"linerate":{"version":1,"software":"x","probe":1}}"#);
        client.expect(76);
        client.send(&[&[76], raw::framed(r#"{"ready":{}}"#).as_slice()].concat());
        // Behind the hello, in which this byte does not occur.
        while client.state().expect("a server") != raw::CREATE_STREAMS {}
        let mut probe = client.data();
        drop(probe.write_all(&rude));
        let ended = wait_until(SOON, || probe.write_all(&[1]).is_err());
        assert!(ended, "the probe connection goes on");
    }
    // A client that is killed.
    let mut client = start(&mut to(server.port, "-t 60"));
    let running = wait_until(SOON, || kept(&server)["threads"] > before["threads"] + 1);
    assert!(running, "{}", client.error());
    client.kill();
    keeps_no_more_than(&server, &before);
    serves(&server);
}

/// A test across a path of 20 Mbit/s and 10 ms whose queue is as the line says; `None` where there can be no lab.
fn across(name: &str, queue: &str, words: &str) -> Option<Value> {
    let folder = Folder::new();
    let text = format!(
        "name = \"{name}\"\n[path]\nrate = \"20M\"\nrtt = \"10ms\"\n{queue}\n[test]\nargs = \"-t 8 --latency {words}\"\n"
    );
    let file = folder.with(&format!("{name}.toml"), text);
    let done = run(
        &mut linerate(&format!("lab run {} --json", file.display())),
        LONG,
    );
    if lacks_a_lab(name, &done.error) {
        return None;
    }
    let document = done.expect(0).json();
    let latency = &document["test"]["latency"];
    say(&format!(
        "{name} {words}: idle {}, loaded {}, loaded connection {}, {} a minute",
        latency["idle"]["message"]["median_ns"],
        latency["loaded"]["message"]["median_ns"],
        latency["loaded_connection"]["median_ns"],
        latency["responsiveness"]["per_minute"],
    ));
    Some(document["test"].clone())
}

fn median(document: &Value, pointer: &str) -> f64 {
    number(document, &format!("/latency/{pointer}/median_ns")) as f64 / 1e6
}

#[test]
fn probes_and_the_loaded_connection_see_the_same_queue() {
    measured(alone, || {
        // 250 kB at 20 Mbit/s are 100 ms.
        for words in ["", "-R"] {
            let Some(long) = across("queue-100ms", "queue = \"250kB\"", words) else {
                return;
            };
            let (idle, loaded) = (
                median(&long, "idle/message"),
                median(&long, "loaded/message"),
            );
            let connection = median(&long, "loaded_connection");
            assert!(
                loaded > 4.0 * idle && loaded > 50.0,
                "{words}: {idle} ms, {loaded} ms"
            );
            let ratio = loaded / connection;
            assert!(
                (0.7..1.4).contains(&ratio),
                "{words}: {loaded} ms, {connection} ms"
            );
            let found = long["findings"].as_array().unwrap();
            let ids: Vec<_> = found.iter().filter_map(|one| one["id"].as_str()).collect();
            assert!(
                ids.contains(&"working-latency") && !ids.contains(&"bufferbloat"),
                "{ids:?}"
            );
        }
    });
}

#[test]
fn a_short_queue_keeps_messages_short() {
    measured(alone, || {
        let Some(long) = across("queue-100ms", "queue = \"250kB\"", "") else {
            return;
        };
        let short = across("codel", "queue = \"250kB\"\ncodel = true", "").unwrap();
        let (long, short) = (
            median(&long, "loaded/message"),
            median(&short, "loaded/message"),
        );
        assert!(short < 0.6 * long, "{short} ms, {long} ms");
    });
}
