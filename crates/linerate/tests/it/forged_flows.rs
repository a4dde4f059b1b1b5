//! Datagrams of iperf2's wire from addresses that anybody may have written on them: they take nothing from those who test.
//!
//! All addresses of 10.9.0.0/16 are this end's there, and none is of loopback's network, from which nothing can be forged.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use linerate_model::record::Outcome;

use crate::harness::{Folder, Host, LONG, Server, beside, lacks_programs, run, start, wait_until};

const SERVER: &str = "10.9.0.1";

/// `$1` the port, `$2` datagrams each of 200 addresses sends, `$3` for how many seconds it does so again from others.
const FORGED: &str = r"
import socket, struct, sys, time
port, each, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
digits = bytes(48 + at % 10 for at in range(1470))
end, last = time.monotonic() + seconds, 1
while True:
    for address in range(last, last + 200):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.bind((f'10.9.{1 + address // 250}.{1 + address % 250}', 0))
            for number in range(each):
                head = struct.pack('>III', number, 1700000000, 7)
                one.sendto(head + digits[12:], ('10.9.0.1', port))
    last += 200
    if time.monotonic() >= end or last > 50000:
        break
    time.sleep(0.05)
print(last - 1)
";

/// A host whose addresses are all of 10.9.0.0/16, and a server on it.
fn served(what: &str, words: &str) -> Option<(Host, Server)> {
    if lacks_programs(what, &["iperf", "python3"]) {
        return None;
    }
    let host = Host::new(what)?;
    host.ip("route add local 10.9.0.0/16 dev lo");
    let server = host.serve(words);
    Some((host, server))
}

fn forged(host: &Host, server: &Server, each: u32, seconds: u32) -> Command {
    let mut command = host.command("python3");
    let figures = [u32::from(server.port), each, seconds].map(|figure| figure.to_string());
    command.args(["-c", FORGED]).args(figures);
    command
}

/// An iperf 2 from an address.
fn iperf(host: &Host, server: &Server, words: &str) -> Command {
    let mut command = host.command("iperf");
    let words = format!("-c {SERVER} -p {} {words}", server.port);
    command.args(words.split_whitespace());
    command
}

/// An iperf 2 asks several times, and is told of once a second.
#[track_caller]
fn says(server: &Server, what: &str) {
    let told = || server.process.out().contains(what);
    assert!(wait_until(Duration::from_secs(20), told), "no '{what}'");
}

fn accepted(server: &Server) -> usize {
    let out = server.process.out();
    out.lines()
        .filter(|line| line.starts_with("test ") && line.contains(": from 10.9."))
        .count()
}

#[test]
fn forged_flows_have_a_quarter_of_the_places_and_others_test_beside_them() {
    let _beside = beside();
    let what = "flows from forged addresses";
    let Some((host, server)) = served(what, "--max-clients 8") else {
        return;
    };
    let attack = start(&mut forged(&host, &server, 2, 4));
    assert!(wait_until(Duration::from_secs(20), || accepted(&server) > 0));
    for _ in 0..3 {
        let words = format!("test 127.0.0.1 -p {} -n 1M", server.port);
        run(&mut host.linerate(&words), LONG).expect(0);
    }
    let done = attack.wait(LONG).expect(0);
    assert!(
        done.out.trim().parse::<u32>().unwrap() >= 200,
        "{}",
        done.out
    );
    // A silent flow is a test for ten seconds, which none of these had when the first of them were taken.
    let out = server.process.out();
    let most = out.matches(": from 10.9.").count();
    assert!((1..=4).contains(&most), "{most} of them were tests: {out}");
    let refused = out.matches("only their datagrams say").count();
    assert!((1..=10).contains(&refused), "told {refused} times: {out}");
}

#[test]
fn one_datagram_of_an_address_is_no_test() {
    let _beside = beside();
    let what = "single datagrams from forged addresses";
    let folder = Folder::new();
    let words = format!("-o {}", folder.path().display());
    let Some((host, server)) = served(what, &words) else {
        return;
    };
    run(&mut forged(&host, &server, 1, 0), LONG).expect(0);
    // This one's address has not proved itself, and it wants datagrams.
    run(&mut iperf(&host, &server, "-B 10.9.0.7 -u -R -t 0.5"), LONG);
    says(&server, "has not proved");
    let done = run(
        &mut iperf(&host, &server, "-B 10.9.0.7 -u -b 10M -t 1"),
        LONG,
    )
    .expect(0);
    assert!(done.out.contains("Server Report"), "{}", done.out);
    assert!(wait_until(Duration::from_secs(20), || {
        folder.records().len() == 1
    }));
    assert_eq!(accepted(&server), 1, "{}", server.process.out());
}

#[test]
fn forged_flows_are_not_the_one_test_that_a_server_is_for() {
    let _beside = beside();
    let Some((host, server)) = served("forged flows and a server for one test", "-1") else {
        return;
    };
    run(&mut forged(&host, &server, 3, 0), LONG).expect(0);
    says(&server, "two forged ones would use it up");
    let words = format!("test 10.9.0.1 -p {} -n 1M", server.port);
    run(&mut host.linerate(&words), LONG).expect(0);
    let done = server.ends().expect(0);
    assert_eq!(done.out.matches("test 1: from").count(), 1, "{}", done.out);
}

#[test]
fn an_address_gets_datagrams_once_for_each_proof() {
    let _beside = beside();
    let folder = Folder::new();
    let words = format!("-o {}", folder.path().display());
    let Some((host, server)) = served("UDP to an address that proved itself", &words) else {
        return;
    };
    run(&mut iperf(&host, &server, "-B 10.9.0.7 -n 1M"), LONG).expect(0);
    run(
        &mut iperf(&host, &server, "-B 10.9.0.7 -u -R -P 3 -b 10M -t 1"),
        LONG,
    );
    assert!(wait_until(Duration::from_secs(20), || {
        folder.records().len() == 2
    }));
    run(
        &mut iperf(&host, &server, "-B 10.9.0.7 -u -R -b 10M -t 0.5"),
        LONG,
    );
    says(&server, "has not proved");
    let records = folder.records();
    let streams = records.iter().map(|record| record.plan.streams);
    assert_eq!(streams.collect::<BTreeSet<_>>(), BTreeSet::from([1, 3]));
    for record in &records {
        let half = record.own_end().unwrap();
        assert!(half.streams.iter().all(|stream| stream.app_bytes > 0));
        assert_eq!(record.outcome, Outcome::Completed);
    }
}
