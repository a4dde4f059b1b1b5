//! A server that many use at once, that some use badly, and that must go on serving.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::raw::{self, Raw};
use crate::harness::{
    Folder, LINERATE, LONG, Running, Server, alone, asked, assert_balanced, beside, iperf3,
    measured, number, run, say, start, start_with, wait_until,
};

/// A short test goes well, with a balanced ledger.
#[track_caller]
pub(crate) fn serves(server: &Server) {
    let document = run(&mut server.client("-n 1M --json"), LONG)
        .expect(0)
        .json();
    assert_balanced(&document, "the server goes on serving");
}

#[track_caller]
fn wait_for_interval(client: &Running) {
    let moves = wait_until(Duration::from_secs(20), || {
        client.out().contains("\"interval\"")
    });
    assert!(moves, "{}{}", client.out(), client.error());
}

/// What a server keeps: threads, descriptors, KiB of memory.
pub(crate) fn kept(server: &Server) -> BTreeMap<&'static str, u64> {
    let count = |what: &str| {
        let folder = std::fs::read_dir(format!("/proc/{}/{what}", server.pid())).unwrap();
        folder.count() as u64
    };
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let memory = memory.and_then(|text| text.split_whitespace().next()?.parse().ok());
    BTreeMap::from([
        ("threads", count("task")),
        ("descriptors", count("fd")),
        ("memory", memory.unwrap()),
    ])
}

/// The server comes back to what it kept before.
#[track_caller]
pub(crate) fn keeps_no_more_than(server: &Server, before: &BTreeMap<&'static str, u64>) {
    let now = keeps_no_more_threads_than(server, before);
    // The allocator keeps some, more or less by chance; 96 MiB is a seventh of what the killed tests had together.
    assert!(
        now["memory"] < before["memory"] + (96 << 10),
        "before: {before:?}, now: {now:?}"
    );
}

/// Waits until a server has no more threads and descriptors than before; what it has then.
fn keeps_no_more_threads_than(
    server: &Server,
    before: &BTreeMap<&'static str, u64>,
) -> BTreeMap<&'static str, u64> {
    let mut now = kept(server);
    let back = wait_until(Duration::from_secs(90), || {
        now = kept(server);
        ["threads", "descriptors"]
            .iter()
            .all(|what| now[what] <= before[what])
    });
    assert!(
        back,
        "before: {before:?}, now: {now:?}\n{}",
        server.process.out()
    );
    now
}

#[test]
fn sixty_four_clients_at_once_get_their_results() {
    let _alone = alone();
    let server = Server::linerate(&["--max-clients-per-address", "64"]);
    let clients: Vec<Running> = (0..64)
        .map(|index| {
            let words = ["-b 10M", "-b 10M -R", "-u -b 5M", "-u -b 5M -R"][index % 4];
            start(&mut server.client(&format!("-t 2 {words} --json")))
        })
        .collect();
    for client in clients {
        let document = client.wait(LONG).expect(0).json();
        assert!(number(&document, "/ledger/directions/0/total/read") > 0);
        assert_balanced(&document, "one of 64");
    }
}

/// Numbers that are the same in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// So many tests of 1 MiB, one after the other, in all kinds.
fn short_tests_leave_nothing_behind(tests: usize) {
    let _alone = alone();
    let server = Server::linerate(&[]);
    let kinds = ["", "-R", "-P 2 --bidir", "-u -b 0", "-u -b 0 -R"];
    let mut before = kept(&server);
    // The first of each kind warm up what the allocator keeps for good.
    for index in 0..tests {
        let words = kinds[index % kinds.len()];
        run(&mut server.client(&format!("-n 1M {words}")), LONG).expect(0);
        if index + 1 == kinds.len() {
            keeps_no_more_than(&server, &before);
            before = kept(&server);
        }
    }
    keeps_no_more_than(&server, &before);
    let grown = kept(&server)["memory"].saturating_sub(before["memory"]);
    say(&format!(
        "{tests} tests of 1 MiB: the server grew by {grown} KiB"
    ));
    // What stays of an allocator with many threads is 1 to 2 MiB; more than 40 KiB a test would be kept by mistake.
    let most = 8 << 10;
    assert!(grown < most, "{grown} KiB after {tests} tests");
}

#[test]
fn two_hundred_short_tests_leave_nothing_behind() {
    short_tests_leave_nothing_behind(200);
}

#[test]
#[ignore = "a minute: run it with --ignored"]
fn a_thousand_short_tests_leave_nothing_behind() {
    short_tests_leave_nothing_behind(1000);
}

#[test]
fn clients_that_are_killed_leave_nothing_behind() {
    let _alone = alone();
    let seconds = asked("LINERATE_SOAK_SECONDS").unwrap_or(10);
    let server = Server::linerate(&["--max-clients-per-address", "32"]);
    let mut before = kept(&server);
    let mut dice = Dice(20_250_101);
    // The first half warms up what the allocator keeps for good: a heap for each of the threads that ran at once.
    let warm = kill_clients(&server, &mut dice, Duration::from_secs(seconds) / 2);
    serves(&server);
    keeps_no_more_threads_than(&server, &before);
    before.insert("memory", kept(&server)["memory"]);
    let killed = warm + kill_clients(&server, &mut dice, Duration::from_secs(seconds) / 2);
    serves(&server);
    keeps_no_more_than(&server, &before);
    serves(&server);
    say(&format!(
        "soak: {killed} clients were killed in {seconds} s; {before:?}, then {:?}",
        kept(&server)
    ));
}

/// Starts clients, twelve at once, and kills each at a random moment; says how many they were.
fn kill_clients(server: &Server, dice: &mut Dice, span: Duration) -> usize {
    let mut running: Vec<(Instant, Running)> = Vec::new();
    let (end, mut killed) = (Instant::now() + span, 0);
    while Instant::now() < end {
        running.retain(|(until, _)| *until > Instant::now());
        while running.len() < 12 {
            let protocol = ["", "-b 20M", "-u -b 10M", "-u -b 0"][dice.below(4)];
            let direction = ["", "-R", "--bidir"][dice.below(3)];
            let words = format!("-t 30 {protocol} {direction} -P {}", 1 + dice.below(4));
            let until = Instant::now() + Duration::from_millis(dice.below(700) as u64);
            running.push((until, start(&mut server.client(&words))));
            killed += 1;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    killed
}

#[test]
fn half_open_and_broken_connections_are_closed_and_cost_others_nothing() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    let before = kept(&server);
    serves(&server);
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.push(TcpStream::connect(("127.0.0.1", server.port)).unwrap());
        let mut some = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        some.write_all(b"0123456789").unwrap();
        silent.push(some);
    }
    let mut after_cookie = Raw::connect(server.port);
    after_cookie.expect(raw::PARAM_EXCHANGE);
    let mut garbage = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    garbage.write_all(&[0xff; 4096]).unwrap();
    let mut browser = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    browser
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    serves(&server);
    // All of them are still held on our side: the server lets them go by itself.
    keeps_no_more_than(&server, &before);
    assert!(after_cookie.is_closed_within(Duration::from_secs(30)));
    serves(&server);
}

#[test]
fn lengths_that_lie_are_refused() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    let before = kept(&server);
    serves(&server);
    for length in [0xffff_ffff_u32, 0x7fff_ffff, 0x1000_0000, 0] {
        let mut client = Raw::connect(server.port);
        client.expect(raw::PARAM_EXCHANGE);
        client.send(&length.to_be_bytes());
        assert!(
            client.is_closed_within(Duration::from_secs(20)),
            "parameters of {length}"
        );
    }
    for text in [
        "",
        "[",
        "[]",
        "{\"tcp\":true,\"parallel\":1000000}",
        "{\"udp\":true,\"len\":99999999}",
        "\"text\"",
    ] {
        let mut client = Raw::connect(server.port);
        client.expect(raw::PARAM_EXCHANGE);
        client.message(text);
        assert!(
            client.is_closed_within(Duration::from_secs(20)),
            "parameters {text}"
        );
    }
    for length in [0xffff_ffff_u32, 0x7fff_ffff] {
        let mut client = Raw::connect(server.port);
        client.agree(r#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":1000,"client_version":"3.12"}"#);
        let mut data = client.data();
        client.expect(raw::TEST_START);
        client.expect(raw::TEST_RUNNING);
        data.write_all(&[0; 1000]).unwrap();
        client.send(&[raw::TEST_END]);
        client.expect(raw::EXCHANGE_RESULTS);
        client.send(&length.to_be_bytes());
        assert!(
            client.is_closed_within(Duration::from_secs(20)),
            "results of {length}"
        );
    }
    serves(&server);
    keeps_no_more_than(&server, &before);
}

#[test]
fn limits_are_kept_and_told() {
    let _beside = beside();
    for (limit, words, told) in [
        ("--max-streams 4", "-P 5 -t 1", "more streams"),
        ("--max-streams 4", "-P 3 --bidir -t 1", "more streams"),
        ("--max-duration 2", "-t 3", "duration"),
        ("--max-rate 10M", "-b 20M -t 1", "rate"),
        ("--max-rate 10M", "-b 6M -P 2 -t 1", "rate"),
    ] {
        let limit: Vec<&str> = limit.split_whitespace().collect();
        let server = Server::linerate(&limit);
        let done = run(&mut server.client(words), LONG).expect(3);
        assert!(
            done.error.contains("refused the test") && done.error.contains(told),
            "{limit:?} {words}: {}",
            done.error
        );
        server.tells("refused 127.0.0.1", 1);
        run(&mut server.client("-t 1 -b 2M"), LONG).expect(0);
    }
}

#[test]
fn a_rate_limit_holds_a_client_that_asks_for_none() {
    measured(beside, || {
        let server = Server::linerate(&["--max-rate", "10M"]);
        let done = run(&mut server.client("-t 30 --json"), LONG).expect(4);
        assert!(done.error.contains("rate"), "{}", done.error);
        assert_eq!(done.json()["outcome"]["how"], "failed");
        assert!(done.took < Duration::from_secs(20), "{:?}", done.took);
    });
}

#[test]
fn only_so_many_clients_at_once() {
    let _beside = beside();
    for limit in ["--max-clients", "--max-clients-per-address"] {
        let server = Server::linerate(&[limit, "2"]);
        let holders: Vec<Running> = (0..2)
            .map(|_| start(&mut server.client("-t 60 -b 1M -i 0.2 --json-stream")))
            .collect();
        holders.iter().for_each(wait_for_interval);
        let done = run(&mut server.client("-t 1"), LONG).expect(3);
        assert!(done.error.contains("busy"), "{limit}: {}", done.error);
        drop(holders);
        let free = wait_until(Duration::from_secs(20), || {
            run(&mut server.client("-n 1K"), LONG).code() == Some(0)
        });
        assert!(free, "{limit}: {}", server.process.out());
    }
}

#[test]
fn other_networks_are_not_allowed() {
    let _beside = beside();
    let server = Server::linerate(&["--allow", "192.0.2.0/24"]);
    run(&mut server.client("-t 1"), LONG).expect(3);
    server.tells("refused 127.0.0.1", 1);
    serves(&Server::linerate(&[
        "--allow",
        "192.0.2.0/24",
        "--allow",
        "127.0.0.0/8",
    ]));
}

#[test]
fn sigterm_lets_a_running_test_end() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    let client = start(&mut server.client("-t 3 -b 50M -i 0.2 --json-stream"));
    wait_for_interval(&client);
    server.process.signal("TERM");
    let done = client.wait(LONG).expect(0);
    assert!(done.took >= Duration::from_secs(3), "{:?}", done.took);
    let done = server.ends().expect(0);
    assert!(done.out.contains("client to server"), "{}", done.out);
}

#[test]
fn sigterm_ends_a_long_test_after_the_grace() {
    let _beside = beside();
    let server = Server::linerate(&["--grace", "500ms"]);
    let client = start(&mut server.client("-t 60 -b 50M -i 0.2 --json-stream"));
    wait_for_interval(&client);
    server.process.signal("TERM");
    server.ends().expect(0);
    let done = client.wait(LONG).expect(4);
    assert!(
        done.error.contains("the server was stopped"),
        "{}",
        done.error
    );
}

#[test]
fn one_off_ends_after_one_test() {
    let _beside = beside();
    let server = Server::linerate(&["--one-off"]);
    serves(&server);
    server.ends().expect(0);
}

#[test]
fn a_service_manager_may_pass_the_socket() {
    let _beside = beside();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" serve -p 1";
    let mut command = Command::new("sh");
    command.args(["-c", script, LINERATE]);
    let server = Server::heard(start_with(
        &mut command,
        Stdio::from(std::os::fd::OwnedFd::from(listener)),
    ));
    assert_eq!(server.port, port, "{}", server.process.out());
    serves(&server);
    run(&mut server.client("-u -b 10M -t 1"), LONG).expect(0);
    server.process.signal("TERM");
    server.ends().expect(0);
}

#[test]
fn udp_clients_of_one_address_do_not_take_each_others_streams() {
    let _alone = alone();
    let folder = Folder::new();
    let server = Server::linerate(&["-o", folder.path().to_str().unwrap()]);
    let clients: Vec<Running> = (0..6)
        .map(|index| {
            start(&mut server.client(&format!("-u -b 10M -n 1M -P {} --json", 1 + index % 3)))
        })
        .collect();
    for client in clients {
        let document = client.wait(LONG).expect(0).json();
        assert_eq!(
            number(&document, "/ledger/directions/0/total/written"),
            1 << 20
        );
        assert_balanced(&document, "one of six");
    }
    let Some(binary) = iperf3("UDP from several stock clients at once") else {
        return;
    };
    let clients: Vec<Running> = (0..4)
        .map(|index| {
            let reverse = if index % 2 == 0 { "" } else { "-R" };
            let words = format!("-c {} -u -b 10M -t 1 -P 3 -J {reverse}", server.at());
            start(Command::new(binary).args(words.split_whitespace()))
        })
        .collect();
    for client in clients {
        let document = client.wait(LONG).expect(0).json();
        assert_eq!(document.get("error"), None);
        assert_eq!(document["end"]["streams"].as_array().unwrap().len(), 3);
        for stream in document["end"]["streams"].as_array().unwrap() {
            assert!(number(stream, "/udp/bytes") > 0, "{stream}");
        }
    }
}

#[test]
fn a_udp_stream_opens_only_from_the_address_of_its_control_connection() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    let mut client = Raw::connect(server.port);
    client.agree(r#"{"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":1000,"bandwidth":1000000,"reverse":true,"client_version":"3.12"}"#);
    let ask = |from: &str, limit: u64| {
        let socket = UdpSocket::bind((from, 0)).unwrap();
        socket.connect(("127.0.0.1", server.port)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(limit)))
            .unwrap();
        socket.send(b"9876").unwrap();
        let mut answer = [0; 64];
        let heard = socket
            .recv(&mut answer)
            .ok()
            .map(|length| answer[..length].to_vec());
        (heard, socket)
    };
    assert_eq!(ask("127.0.0.2", 1000).0, None, "a stranger is not answered");
    let (heard, _socket) = ask("127.0.0.1", 10_000);
    assert_eq!(heard.as_deref(), Some(&b"6789"[..]));
    client.expect(raw::TEST_START);
    drop(client);
    serves(&server);
}
