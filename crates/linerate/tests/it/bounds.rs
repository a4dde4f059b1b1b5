//! Bounds on all tests together: what one test may do, a hundred may not do a hundred times.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use linerate_wire::extension::Message;
use linerate_wire::udp::{HANDSHAKE_REQUEST, TokenHandshake};

use crate::harness::raw::{self, Raw};
use crate::harness::rude::{connect_from, parameters};
use crate::harness::{
    Folder, LINERATE, LONG, Server, beside, linerate, measured, run, say, start, wait_until,
};
use crate::server::{kept, serves};

/// `SERVER_ERROR`, and the numbers that the server gives with it.
const SERVER_ERROR: u8 = 0xFE;
const TOO_LONG: u32 = 37;
const BUSY: u32 = 121;
const EXPIRED: u32 = 160;
/// `ACCESS_DENIED`.
const DENIED: u8 = 0xFF;

/// What the server said as it gave up: the number after `SERVER_ERROR`.
fn refusal(client: &mut Raw) -> Option<u32> {
    loop {
        if client.state()? == SERVER_ERROR {
            let code: Vec<u8> = (0..4).map_while(|_| client.state()).collect();
            return Some(u32::from_be_bytes(code.try_into().ok()?));
        }
    }
}

/// A test of so many streams that runs and moves next to nothing; it ends with what comes back.
fn slow_test(server: &Server, streams: usize, sample_ns: u64) -> Option<(Raw, Vec<TcpStream>)> {
    let mut client = Raw::connect(server.port);
    client.agree_as_linerate(&parameters(streams, sample_ns, "\"tcp\":true,\"time\":0"))?;
    let mut data: Vec<TcpStream> = (0..streams).map(|_| client.data()).collect();
    client.expect(raw::TEST_START);
    client.expect(raw::TEST_RUNNING);
    for stream in &mut data {
        stream.write_all(b"x").unwrap();
    }
    Some((client, data))
}

#[test]
fn samples_of_all_tests_share_one_budget_and_the_record_says_so() {
    let _beside = beside();
    let folder = Folder::new();
    let path = folder.path().to_str().unwrap().to_owned();
    let bounds = "--max-memory 64M --max-sample-rate 20000";
    let mut words: Vec<&str> = bounds.split_whitespace().collect();
    words.extend(["-o", &path]);
    let server = Server::linerate(&words);
    serves(&server);
    let before = kept(&server)["memory"];
    let tests: Vec<(Raw, Vec<TcpStream>)> = (0..2)
        .map(|_| slow_test(&server, 40, 1_000_000).expect("a test"))
        .collect();
    // 80 streams at 1 ms would grow by 38 MB a second. A quarter of the memory is for samples: it is full after two
    // seconds at the rate that is sampled at most, and later on a machine that does not come to it.
    let mut most = before;
    let end = Instant::now() + Duration::from_secs(8);
    while Instant::now() < end {
        most = most.max(kept(&server)["memory"]);
        std::thread::sleep(Duration::from_millis(50));
    }
    for (mut client, data) in tests {
        for stream in data {
            drop(stream.shutdown(Shutdown::Write));
        }
        client.send(&[raw::TEST_END]);
        client.expect(raw::EXCHANGE_RESULTS);
    }
    say(&format!(
        "80 streams sampled each ms: the server grew by {} KiB of 64 MiB",
        most - before
    ));
    assert!(most - before < 64 << 10, "{before} KiB, then {most} KiB");
    // Either may end first, and each has its record before its last line.
    server.tells("test 2:", 2);
    server.tells("test 3:", 2);
    let thinned: Vec<u64> = std::fs::read_dir(folder.path())
        .unwrap()
        .filter_map(|entry| {
            let text = std::fs::read_to_string(entry.unwrap().path()).ok()?;
            let record: serde_json::Value = serde_json::from_str(&text).ok()?;
            record.pointer("/server/streams/0/thinned")?.as_u64()
        })
        .collect();
    assert!(
        thinned.iter().filter(|times| **times >= 4).count() == 2,
        "two of the three records say that samples were left out: {thinned:?}"
    );
    serves(&server);
}

#[test]
fn streams_of_all_tests_are_bounded_and_a_newcomer_still_finds_room() {
    let _beside = beside();
    let server = Server::linerate(&["--max-total-streams", "64", "--max-streams", "32"]);
    let first = slow_test(&server, 32, 10_000_000).expect("half of them");
    // 127.0.0.1 has half of them now, which is what an address may have.
    let mut more = Raw::connect(server.port);
    more.expect(raw::PARAM_EXCHANGE);
    more.message(&parameters(1, 10_000_000, "\"tcp\":true,\"time\":0"));
    assert_eq!(refusal(&mut more), Some(BUSY));
    let done = run(&mut server.client("-t 1"), LONG).expect(3);
    assert!(done.error.contains("busy"), "{}", done.error);
    let elsewhere = |last, words: &str| {
        let from = format!("-B 127.0.0.{last} {words}");
        run(&mut server.client(&from), LONG).code()
    };
    assert_eq!(elsewhere(2, "-P 17 -n 1M"), Some(3), "a quarter is kept");
    assert_eq!(elsewhere(2, "-P 8 -n 1M"), Some(0));
    drop(first);
    let free = wait_until(Duration::from_secs(20), || {
        run(&mut server.client("-P 32 -n 1M"), LONG).code() == Some(0)
    });
    assert!(free, "{}", server.process.out());
}

#[test]
fn silent_connections_of_some_addresses_lock_nobody_out() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    let (mut wordless, mut silent) = (Vec::new(), Vec::new());
    for last in 2..6 {
        for _ in 0..128 {
            let connect = || connect_from([127, 0, 0, last], server.port).unwrap();
            wordless.push(connect());
            // These said their cookie and nothing more.
            silent.push(Raw::over(connect(), server.port));
        }
    }
    serves(&server);
    let sessions = kept(&server)["threads"];
    assert!(sessions < 100, "{sessions} threads for silent connections");
    let gone = wait_until(Duration::from_secs(30), || kept(&server)["threads"] < 5);
    assert!(gone, "{:?}", kept(&server));
    drop((wordless, silent));
    serves(&server);
}

#[test]
fn parameters_and_credentials_have_five_seconds() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    let began = Instant::now();
    let mut silent = Raw::connect(server.port);
    silent.expect(raw::PARAM_EXCHANGE);
    assert!(silent.is_closed_within(Duration::from_secs(14)));
    assert!(began.elapsed() > Duration::from_secs(4));
}

#[test]
fn iperf3_s_forgets_clients_that_leave_before_their_streams_run() {
    let _beside = beside();
    let server = Server::iperf3(Command::new(LINERATE).arg("iperf3"));
    let leave = |times: usize| {
        for _ in 0..times {
            // Who left is not gone at once, and an address has a few places only.
            let agreed = wait_until(Duration::from_secs(20), || {
                let mut client = Raw::connect(server.port);
                if client.state() != Some(raw::PARAM_EXCHANGE) {
                    return false;
                }
                client.message(r#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":1000,"client_version":"3.12"}"#);
                client.state() == Some(raw::CREATE_STREAMS)
            });
            assert!(agreed, "{}", server.process.out());
        }
    };
    // What the allocator keeps for good.
    leave(200);
    let before = kept(&server)["memory"];
    leave(1500);
    let grown = kept(&server)["memory"].saturating_sub(before);
    say(&format!("1500 clients that left: {grown} KiB"));
    // It was 16 KiB for each of them.
    assert!(grown < 8 << 10, "{grown} KiB for 1500 clients");
}

#[test]
fn a_longest_test_is_the_default_and_one_without_an_end_ends_there() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    let mut client = Raw::connect(server.port);
    client.expect(raw::PARAM_EXCHANGE);
    client.message(&parameters(1, 10_000_000, "\"tcp\":true,\"time\":3601"));
    assert_eq!(refusal(&mut client), Some(TOO_LONG));
    let server = Server::linerate(&["--max-duration", "1s"]);
    let (mut client, mut data) = slow_test(&server, 1, 10_000_000).expect("a test");
    let ended = wait_until(Duration::from_secs(20), || {
        data[0].write_all(&[0; 4096]).is_err()
    });
    assert!(ended, "it goes on");
    assert_eq!(refusal(&mut client), Some(EXPIRED));
}

#[test]
fn a_byte_now_and_then_does_not_keep_a_test_alive() {
    let _beside = beside();
    let server = Server::linerate(&["--idle-timeout", "1s"]);
    let (mut client, mut data) = slow_test(&server, 4, 10_000_000).expect("a test");
    let ended = wait_until(Duration::from_secs(20), || {
        std::thread::sleep(Duration::from_millis(100));
        data.iter_mut()
            .any(|stream| stream.write_all(b"x").is_err())
    });
    assert!(ended, "it goes on");
    assert_eq!(refusal(&mut client), Some(EXPIRED));
    // A slow test that does what it asked for goes on.
    let server = Server::linerate(&["--idle-timeout", "5s"]);
    run(&mut server.client("-b 64K -t 12"), LONG).expect(0);
}

#[test]
fn data_streams_come_from_allowed_networks_too() {
    let _beside = beside();
    let server = Server::linerate(&["--allow", "127.0.0.1"]);
    let mut client = Raw::connect(server.port);
    client
        .agree_as_linerate(&parameters(1, 10_000_000, "\"tcp\":true,\"time\":1"))
        .expect("a test");
    let mut elsewhere = connect_from([127, 0, 0, 9], server.port).unwrap();
    elsewhere.write_all(&client.cookie).unwrap();
    let mut answer = [0];
    // It is refused, and its end is seen, before the right one comes.
    match elsewhere.read(&mut answer) {
        Ok(0) => {}
        Ok(_) => assert_eq!(answer, [DENIED]),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    server.tells("refused 127.0.0.9", 1);
    let _data = client.data();
    client.expect(raw::TEST_START);
    client.expect(raw::TEST_RUNNING);
}

#[test]
fn a_neighbour_behind_the_same_address_gets_no_stream_of_udp() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    let mut client = Raw::connect(server.port);
    let asked = parameters(1, 10_000_000, "\"udp\":true,\"time\":1,\"reverse\":true");
    let Some(Message::Hello(hello)) = client.agree_as_linerate(&asked) else {
        panic!("no hello");
    };
    let token = hello.udp_token.expect("a token");
    let socket = || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", server.port)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        socket
    };
    let (neighbour, ours) = (socket(), socket());
    let request = |token, stream| TokenHandshake { token, stream }.encode();
    neighbour.send(&HANDSHAKE_REQUEST).unwrap();
    neighbour.send(&request([0; 16], 0)).unwrap();
    neighbour.send(&request(token, 1)).unwrap();
    ours.send(&request(token, 0)).unwrap();
    let mut answer = [0; 2048];
    assert!(ours.recv(&mut answer).is_ok());
    // They were read in this order: what had not been answered by now is not answered.
    neighbour.send(&request(token, 0)).unwrap();
    client.expect(raw::TEST_START);
    client.expect(raw::TEST_RUNNING);
    assert!(ours.recv(&mut answer).unwrap() > 4, "payload");
    neighbour.set_nonblocking(true).unwrap();
    let error = neighbour.recv(&mut answer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

/// A server that was stopped in the middle of a test: its kernel still answers, it neither reads nor sends.
fn wedged(words: &str, iperf3: bool) -> crate::harness::Done {
    let server = Server::linerate(&[]);
    let mut command = if iperf3 {
        linerate(&format!(
            "iperf3 -c {} -i 0.2 --forceflush {words}",
            server.at()
        ))
    } else {
        server.client(&format!("-i 0.2 --json-stream {words}"))
    };
    let client = start(&mut command);
    let runs = wait_until(Duration::from_secs(20), || {
        client.out().contains("\"interval\"") || client.out().contains(" sec ")
    });
    assert!(runs, "{}{}", client.out(), client.error());
    server.process.signal("STOP");
    let done = client.wait(LONG);
    server.process.signal("CONT");
    done
}

#[test]
fn a_client_gives_a_wedged_server_up_and_keeps_what_it_measured() {
    let _beside = beside();
    for words in ["-n 1000G", "-n 1000G -R", "-k 100000000 --bidir"] {
        let done = wedged(&format!("{words} --idle-timeout 2s"), false).expect(4);
        assert!(
            done.error.contains("--idle-timeout"),
            "{words}: {}",
            done.error
        );
        assert!(done.out.contains("\"outcome\""), "{words}: no record");
    }
}

#[test]
fn iperf3s_timeouts_have_their_effect() {
    let _beside = beside();
    let done = wedged("-n 1000G -R --rcv-timeout 2000", true).expect(1);
    assert!(
        done.error.contains("idle timeout for receiving data"),
        "{}",
        done.error
    );
    let done = wedged("-n 1000G --snd-timeout 2000", true).expect(1);
    assert!(done.error.contains("imed out"), "{}", done.error);
}

#[test]
fn a_server_shows_its_bounds_when_it_starts() {
    let _beside = beside();
    let server = Server::linerate(&["--max-memory", "100M", "--max-total-streams", "77"]);
    server.tells("limits: 256 tests, 8 from one address, 3600 s each; 77 streams, 256 in one test; 100 MiB of memory", 1);
}

#[test]
fn sixteen_streams_sampled_each_millisecond_keep_all_samples() {
    measured(beside, || {
        let server = Server::linerate(&[]);
        let words = "-t 2 -P 16 -b 1M --sample 1ms --json";
        let document = run(&mut server.client(words), LONG).expect(0).json();
        let thinned = document.pointer("/samples/server/streams/0/thinned");
        assert_eq!(thinned, Some(&serde_json::json!(1)));
    });
}
