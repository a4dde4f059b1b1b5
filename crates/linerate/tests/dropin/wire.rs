//! What a server that knows nothing of linerate sees of our client, and what a stock peer counts.

use std::io::{ErrorKind, Read as _};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::raw::{self, RawServer};
use crate::harness::{LINERATE, LONG, Server, alone, beside, iperf3, newest, run, say, wait_until};

use super::{client, ours};

const BLOCK: u64 = 131_072;
const SERVER_TERMINATE: u8 = 11;

/// The parameters that a client sends.
fn parameters_of(client: impl Fn(u16) -> Command) -> Value {
    let heard = Arc::new(Mutex::new(Value::Null));
    let hears = Arc::clone(&heard);
    let port = RawServer::start(move |server| {
        server.send(&[raw::PARAM_EXCHANGE])?;
        *hears.lock().unwrap() = serde_json::from_slice(&server.message()?)?;
        server.send(&[SERVER_TERMINATE])
    });
    run(&mut client(port), LONG);
    heard.lock().unwrap().take()
}

fn under_iperf3s_name(words: &str) -> Value {
    parameters_of(|port| client(ours(), "127.0.0.1", port, words))
}

#[test]
fn only_what_was_asked_for_is_asked_for() {
    let _beside = beside();
    for (words, key, value) in [
        ("-u", "udp_counters_64bit", Value::Null),
        ("-u --udp-counters-64bit", "udp_counters_64bit", 1.into()),
        ("", "len", BLOCK.into()),
        ("-k 10", "len", BLOCK.into()),
        ("-l 1M", "len", (1 << 20).into()),
        // The segment size that iperf3 finds on loopback.
        ("-u", "len", 32_768.into()),
    ] {
        let found = &under_iperf3s_name(words)[key];
        assert_eq!(*found, value, "iperf3 {words}: {key}");
    }
    let test = |words: &'static str| {
        move |port: u16| {
            let mut command = Command::new(LINERATE);
            command.args(["test", "127.0.0.1", "-p", &port.to_string()]);
            command.args(words.split(' '));
            command
        }
    };
    assert_eq!(parameters_of(test("-t 1"))["len"], BLOCK);
    let udp = parameters_of(test("-t 1 -u -b 1M"));
    assert_eq!(udp["udp_counters_64bit"], Value::Null, "{udp}");
    if let Some(newest) = newest("the parameters of the newest client") {
        for words in ["-u", "", "-k 10"] {
            let theirs =
                parameters_of(|port| client(Command::new(&newest), "127.0.0.1", port, words));
            let our = under_iperf3s_name(words);
            for key in ["udp_counters_64bit", "len"] {
                assert_eq!(our[key], theirs[key], "{words}: {key}");
            }
        }
    }
}

/// What a server saw of one stream that the client sent on.
#[derive(Debug, Default)]
struct Seen {
    bytes: u64,
    /// The data ended before the client said that the test is over.
    ended_first: bool,
    /// The data ended before the results were exchanged.
    ended_early: bool,
    /// The client has closed its data connection, and all that it sent was read.
    ended: bool,
}

/// Takes a test as iperf3's server does, reading the data or not.
fn taken(words: &str, reads: bool) -> Seen {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let sees = Arc::clone(&seen);
    let port = RawServer::start(move |server| {
        server.send(&[raw::PARAM_EXCHANGE])?;
        server.message()?;
        server.send(&[raw::CREATE_STREAMS])?;
        let (mut data, _) = server.listener.accept()?;
        data.read_exact(&mut [0; 37])?;
        server.send(&[raw::TEST_START, raw::TEST_RUNNING])?;
        data.set_nonblocking(true)?;
        server.stream.set_nonblocking(true)?;
        let (mut state, mut block) = ([0], vec![0; 1 << 20]);
        let mut look = |seen: &mut Seen| match data.read(&mut block) {
            Ok(0) => true,
            Ok(bytes) => {
                seen.bytes += bytes as u64;
                false
            }
            Err(_) => false,
        };
        loop {
            if reads {
                let mut seen = sees.lock().unwrap();
                seen.ended_first |= look(&mut seen);
            }
            match server.stream.read(&mut state) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
        assert_eq!(state, [raw::TEST_END]);
        server.stream.set_nonblocking(false)?;
        let rest = Instant::now();
        while rest.elapsed() < Duration::from_millis(50) && reads {
            let mut seen = sees.lock().unwrap();
            seen.ended_early |= look(&mut seen);
        }
        server.send(&[raw::EXCHANGE_RESULTS])?;
        server.message()?;
        if reads {
            let mut seen = sees.lock().unwrap();
            seen.ended_early |= look(&mut seen);
        }
        server.send(&raw::framed(raw::RESULTS))?;
        server.send(&[raw::DISPLAY_RESULTS])?;
        data.set_nonblocking(false)?;
        data.set_read_timeout(Some(LONG))?;
        if reads {
            while let Ok(bytes @ 1..) = data.read(&mut block) {
                sees.lock().unwrap().bytes += bytes as u64;
            }
        }
        sees.lock().unwrap().ended = true;
        server.hold()
    });
    run(&mut client(ours(), "127.0.0.1", port, words), LONG);
    assert!(wait_until(LONG, || seen.lock().unwrap().ended), "{words}");
    std::mem::take(&mut *seen.lock().unwrap())
}

#[test]
fn data_connections_stay_open_until_the_results_are_exchanged() {
    let _beside = beside();
    for words in ["-t 1", "-t 1 -b 20M", "-n 1000000"] {
        // A reader that a busy machine kept from reading leaves a client no time to end its block.
        let mut left = Vec::new();
        while left.len() < 3 {
            let seen = taken(words, true);
            assert!(!seen.ended_first && !seen.ended_early, "{words}: {seen:?}");
            assert!(seen.bytes > 0);
            left.push(seen.bytes % BLOCK);
            if left.ends_with(&[0]) {
                break;
            }
            eprintln!("{words}: the last block was cut, again: {seen:?}");
        }
        assert!(left.ends_with(&[0]), "{words}: whole blocks, {left:?}");
    }
    assert_eq!(
        taken("-n 1000000", true).bytes,
        1_000_000_u64.next_multiple_of(BLOCK)
    );
}

#[test]
fn a_server_that_does_not_read_hears_of_the_end_in_time() {
    let _beside = beside();
    let began = Instant::now();
    taken("-t 1", false);
    // Neither the drain of our own streams (2 s) nor that of a server that reads whole blocks (10 s).
    assert!(began.elapsed() < Duration::from_secs(8));
}

/// What a server counted of a client's test, Mbit/s.
fn counted(server: &str, command: Command, words: &str) -> f64 {
    let server = Server::iperf3(Command::new(server).args(["-1"]));
    let done = run(
        &mut client(command, "127.0.0.1", server.port, &format!("{words} -J")),
        LONG,
    );
    let document = done.expect(0).json();
    server.ends().expect(0);
    let sum = if words.contains("-R") {
        "sum_sent"
    } else {
        "sum_received"
    };
    document["end"][sum]["bits_per_second"].as_f64().unwrap() / 1e6
}

/// What stock servers report of our tests is what they report of stock clients' tests.
#[test]
fn a_stock_servers_figure_of_our_test_is_that_of_a_stock_clients() {
    let mut servers: Vec<String> = iperf3("figures of Debian's server")
        .into_iter()
        .map(Into::into)
        .collect();
    servers.extend(newest("figures of the newest server"));
    let Some(newer) = servers.last() else { return };
    let _alone = alone();
    for server in &servers {
        for words in [
            "-t 2 -b 50M",
            "-t 2 -O 1 -b 50M",
            "-t 2 -u -b 20M",
            "-t 2 --bidir -b 50M",
        ] {
            // Whatever else runs here can only make them differ.
            let agree = (0..5).any(|_| {
                let stock = counted(server, Command::new(newer), words);
                let our = counted(server, ours(), words);
                say(&format!("{server} {words}: {our:.3} Mbit/s of our client's test, {stock:.3} of a stock client's"));
                (our / stock - 1.0).abs() < 0.005
            });
            assert!(agree, "{server} {words}");
        }
    }
}

/// A stock client counts whole blocks: 1 Mbit/s are four of them in four seconds, from a stock server and from ours.
#[test]
fn a_paced_server_sends_whole_blocks() {
    let _beside = beside();
    let words = "-t 4 -R -b 1M -J";
    let received = |command: Command, port: u16| {
        let done = run(&mut client(command, "127.0.0.1", port, words), LONG);
        done.expect(0).json()["end"]["sum_received"]["bytes"]
            .as_u64()
            .unwrap()
    };
    let server = Server::linerate(&[]);
    if let Some(iperf3) = iperf3("a stock client at our paced server") {
        let stock = Server::iperf3(&mut Command::new(iperf3));
        assert_eq!(
            received(ours(), stock.port),
            4 * BLOCK,
            "our client, a stock server"
        );
        let client = Command::new(iperf3);
        assert_eq!(
            received(client, server.port),
            4 * BLOCK,
            "a stock client, our server"
        );
    }
    if let Some(newest) = newest("the newest client at our paced server") {
        assert_eq!(received(Command::new(newest), server.port), 4 * BLOCK);
    }
}
