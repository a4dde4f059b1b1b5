//! IPv6 alone is enough.

use crate::harness::{Host, LINERATE, LONG, Server, assert_balanced, beside, iperf3, number, run};
use std::process::Command;

const WORDS: [&str; 4] = [
    "-n 4M",
    "-n 4M -R -P 4",
    "-u -b 50M -n 1M",
    "-u -b 50M -n 1M --bidir -P 2",
];

/// Runs tests over IPv6 and checks where they went.
#[track_caller]
fn tests(command: impl Fn() -> Command, port: u16) {
    for words in WORDS {
        let mut command = command();
        command.args(["test", "::1", "-p", &port.to_string(), "-6", "--json"]);
        let document = run(command.args(words.split_whitespace()), LONG)
            .expect(0)
            .json();
        assert_balanced(&document, words);
        assert_eq!(document["control"]["remote"], format!("[::1]:{port}"));
        for stream in document["streams"].as_array().expect("streams") {
            assert!(
                stream["client_address"]
                    .as_str()
                    .expect("an address")
                    .starts_with("[::1]"),
                "{stream}"
            );
        }
        assert!(number(&document, "/ledger/directions/0/total/read") > 0);
    }
}

#[test]
fn all_runs_over_ipv6() {
    let _beside = beside();
    for family in [&["-6"][..], &[]] {
        let server = Server::linerate(family);
        tests(|| Command::new(LINERATE), server.port);
    }
}

#[test]
fn a_server_for_ipv6_does_not_answer_over_ipv4() {
    let _beside = beside();
    // On a host of its own: elsewhere another program may listen at this port over IPv4.
    let Some(host) = Host::new("a server for IPv6 alone") else {
        return;
    };
    let server = host.serve("-6");
    let done = run(
        &mut host.linerate(&format!("test 127.0.0.1 -p {} -t 1", server.port)),
        LONG,
    )
    .expect(3);
    assert!(done.error.contains("refused"), "{}", done.error);
    assert!(
        !server.process.out().contains("0.0.0.0"),
        "{}",
        server.process.out()
    );
}

#[test]
fn a_host_without_ipv4_measures() {
    let _beside = beside();
    let Some(host) = Host::new("a host without IPv4") else {
        return;
    };
    host.ip("address del 127.0.0.1/8 dev lo");
    let server = host.serve("");
    tests(|| host.command(LINERATE), server.port);
}

#[test]
fn stock_clients_come_over_ipv6() {
    let _beside = beside();
    let Some(binary) = iperf3("stock clients over IPv6") else {
        return;
    };
    let server = Server::linerate(&["-6"]);
    for words in ["-n 4M", "-u -b 50M -n 1M -R"] {
        let words = format!("-c ::1 -6 -p {} -J {words}", server.port);
        let document = run(Command::new(binary).args(words.split_whitespace()), LONG)
            .expect(0)
            .json();
        assert_eq!(document.get("error"), None);
    }
}
