//! Clients that break off or say what cannot be: what the server tells them (`SERVER_ERROR` with iperf3's number), its lines
//! and its document. The same is asserted of the newest iperf3 where `IPERF3_NEW` names one.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::harness::raw::{self, Raw};
use crate::harness::{Done, LONG, Server, beside, run, start, wait_until};

use super::program::programs;
use super::{client, ours};

const PARAMETERS: &str = r#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":131072,"pacing_timer":1000}"#;
const CLIENT_TERMINATE: u8 = 12;
const IPERF_DONE: u8 = 16;
const UNKNOWN: &str =
    "error - received an unknown control message (ensure other side is iperf3 and not iperf)";
const CLOSED: &str = "the client has unexpectedly closed the connection";
const TERMINATED: &str = "the client has terminated";
const NO_RESULTS: &str = "error - unable to receive results: ";
const NO_COOKIE: &str = "error - unable to receive cookie at server: ";
const NO_PARAMETERS: &str = "error - unable to receive parameters from client: ";
const RESET: &str = "error - unable to send control message - port may not be available, the other side may have stopped running, etc.: Transport endpoint is not connected";
const IDLE: &str = "error - idle timeout for receiving data";
const SUMMARY: &str = "- - - - -";

/// How far a client goes before it breaks off.
#[derive(Debug, Clone, Copy, PartialEq)]
enum At {
    Cookie,
    Parameters,
    Streams,
    Running,
    Results,
}

/// What it does then.
#[derive(Debug, Clone, Copy)]
enum Does {
    Says(u8),
    /// A message of its own length, or one cut short.
    Sends(u32, &'static str),
    Closes,
    /// By a reset.
    Resets,
    Nothing,
}

/// What the server says of it.
#[derive(Clone, Copy)]
struct Case {
    at: At,
    does: Does,
    /// The number in `SERVER_ERROR`; absent = the server says nothing.
    told: Option<u8>,
    /// Behind `iperf3: `; empty = no line.
    sentence: &'static str,
    warning: Option<&'static str>,
    /// Whether the end of the document is more than `{}`.
    summary: bool,
}

const fn case(at: At, does: Does, told: Option<u8>, sentence: &'static str) -> Case {
    Case {
        at,
        does,
        told,
        sentence,
        warning: None,
        summary: false,
    }
}

const fn warned(does: Does, warning: &'static str) -> Case {
    Case {
        warning: Some(warning),
        summary: true,
        ..case(At::Results, does, Some(117), NO_RESULTS)
    }
}

const fn summed(case: Case) -> Case {
    Case {
        summary: true,
        ..case
    }
}

fn cases() -> Vec<Case> {
    use At::{Cookie, Parameters, Results, Running, Streams};
    use Does::{Closes, Nothing, Resets, Says, Sends};
    vec![
        case(Cookie, Closes, Some(106), NO_COOKIE),
        case(Parameters, Sends(3, "no!"), Some(114), NO_PARAMETERS),
        case(Streams, Says(99), Some(110), UNKNOWN),
        case(Streams, Closes, Some(109), CLOSED),
        case(Streams, Nothing, Some(144), IDLE),
        case(Streams, Says(IPERF_DONE), None, ""),
        summed(case(Streams, Says(CLIENT_TERMINATE), Some(119), TERMINATED)),
        case(Running, Says(99), Some(110), UNKNOWN),
        case(Running, Says(raw::TEST_RUNNING), Some(110), UNKNOWN),
        case(Running, Closes, Some(109), CLOSED),
        case(Running, Resets, None, RESET),
        case(Running, Nothing, Some(144), IDLE),
        case(Running, Says(IPERF_DONE), None, ""),
        summed(case(Running, Says(CLIENT_TERMINATE), Some(119), TERMINATED)),
        warned(
            Sends(0, ""),
            "JSON data length overflow - 0 bytes JSON size is not allowed",
        ),
        warned(
            Sends(500, "{\"cp"),
            "JSON size of data read does not correspond to offered length - expected 500 bytes but received 4; errno=0",
        ),
        Case {
            told: None,
            sentence: RESET,
            ..warned(
                Resets,
                "Failed to read JSON data size - read returned -2; errno=104",
            )
        },
        summed(case(Results, Sends(3, "no!"), Some(117), NO_RESULTS)),
    ]
}

/// Plays the client of a case; what the server said last.
fn play(port: u16, case: &Case) -> Vec<u8> {
    let mut last = Vec::new();
    if case.at == At::Cookie {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"short").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.read_to_end(&mut last).unwrap();
        return last;
    }
    let mut client = Raw::connect(port);
    client.expect(raw::PARAM_EXCHANGE);
    let mut data = None;
    if case.at != At::Parameters {
        client.message(PARAMETERS);
        client.expect(raw::CREATE_STREAMS);
    }
    if matches!(case.at, At::Running | At::Results) {
        data = Some(client.data());
        client.expect(raw::TEST_START);
        client.expect(raw::TEST_RUNNING);
    }
    if case.at == At::Results {
        client.send(&[raw::TEST_END]);
        client.expect(raw::EXCHANGE_RESULTS);
    }
    match case.does {
        Does::Says(state) => client.send(&[state]),
        Does::Sends(length, text) => {
            client.send(&[&length.to_be_bytes(), text.as_bytes()].concat());
            // Only then is a message that was cut short over.
            client.stream.shutdown(Shutdown::Write).unwrap();
        }
        Does::Closes => client.stream.shutdown(Shutdown::Write).unwrap(),
        Does::Resets => {
            let socket = socket2::SockRef::from(&client.stream);
            socket.set_linger(Some(Duration::ZERO)).unwrap();
            return last;
        }
        Does::Nothing => {}
    }
    drop(client.stream.read_to_end(&mut last));
    drop(data);
    last
}

/// A server of one test, and what it wrote.
fn served(command: &dyn Fn() -> Command, words: &str, case: &Case) -> (Vec<u8>, Done) {
    let mut command = command();
    command.args(["-1", "--rcv-timeout", "1000", "--forceflush"]);
    let server = Server::iperf3(command.args(words.split_whitespace()));
    let last = play(server.port, case);
    (last, server.ends().expect(0))
}

/// What is skipped without the newest iperf3.
const WHAT: &str = "what the newest server says of clients that break off";

/// Whether this is what iperf3 says. Where its sentence ends with the text of an error number and there was none, it writes
/// that of the last error that it had.
fn says(found: &str, sentence: &str) -> bool {
    found == sentence || (sentence.ends_with(": ") && found.starts_with(sentence))
}

#[test]
fn a_client_that_breaks_off_hears_and_leaves_what_it_does_with_iperf3() {
    let _beside = beside();
    for (whose, command) in programs(WHAT) {
        for case in cases() {
            let what = format!("{whose}, {:?}: {:?}", case.at, case.does);
            let told = case
                .told
                .map_or_else(Vec::new, |code| vec![254, 0, 0, 0, code, 0, 0, 0, 0]);
            let warning = case.warning.map(|text| format!("warning: {text}"));

            let (last, text) = served(&*command, "", &case);
            assert_eq!(last, told, "{what}");
            let sentence = Some(case.sentence).filter(|sentence| !sentence.is_empty());
            let sentence = sentence.map(|sentence| format!("iperf3: {sentence}"));
            let lines: Vec<String> = warning.iter().cloned().chain(sentence).collect();
            let error: Vec<&str> = text.error.lines().collect();
            let all = error.len() == lines.len()
                && error
                    .iter()
                    .zip(&lines)
                    .all(|(found, line)| says(found, line));
            assert!(all, "{what}: {error:?}, not {lines:?}");
            assert_eq!(
                text.out.contains(SUMMARY),
                case.summary,
                "{what}: {}",
                text.out
            );

            let (last, json) = served(&*command, "-J", &case);
            assert_eq!(last, told, "{what} -J");
            let error: Vec<&str> = json.error.lines().collect();
            assert_eq!(error, warning.iter().collect::<Vec<_>>(), "{what} -J");
            let document = json.json();
            let error = document.get("error").and_then(Value::as_str);
            let error = error.unwrap_or_default();
            assert!(says(error, case.sentence), "{what} -J: {error}");
            let end = document["end"].as_object().unwrap();
            assert_eq!(!end.is_empty(), case.summary, "{what} -J: {document}");
            for key in ["accepted_connection", "sock_bufsize", "sndbuf_actual"] {
                let agreed = !matches!(case.at, At::Cookie | At::Parameters);
                let there = document["start"].get(key).is_some();
                assert_eq!(there, agreed, "{what} -J: {key}: {document}");
            }
        }
    }
}

#[test]
fn a_server_stopped_while_a_refused_client_reads_why_says_only_that_it_was_stopped() {
    let _beside = beside();
    for (whose, command) in programs(WHAT) {
        let server = Server::iperf3(command().args(["-1", "-J", "--server-max-duration", "1"]));
        let mut client = Raw::connect(server.port);
        client.expect(raw::PARAM_EXCHANGE);
        client.message(r#"{"tcp":true,"time":30,"parallel":1,"len":4096,"bandwidth":2000000}"#);
        let mut told = [0; 9];
        client.stream.read_exact(&mut told).unwrap();
        assert_eq!(told, [254, 0, 0, 0, 37, 0, 0, 0, 0], "{whose}");
        server.process.signal("TERM");
        let document = server.ends().expect(0).json();
        let error = document["error"].as_str().unwrap();
        assert!(error.starts_with("interrupt - "), "{whose}: {error}");
        assert_eq!(document["start"]["target_bitrate"], 2_000_000, "{whose}");
    }
}

#[test]
fn what_stands_behind_a_message_does_not_disturb_the_server() {
    let _beside = beside();
    let results = r#"{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":0,"streams":[{"id":1,"bytes":0,"retransmits":0,"jitter":0,"errors":0,"packets":0}]} trailing"#;
    let programs = programs(WHAT);
    let with = |junk| programs.iter().map(move |one| (one, junk));
    for ((whose, command), junk) in with("").chain(with("JJ")) {
        let server = Server::iperf3(command().arg("-1"));
        let mut client = Raw::connect(server.port);
        client.agree(&format!("{PARAMETERS} trailing"));
        let data = client.data();
        client.expect(raw::TEST_START);
        client.expect(raw::TEST_RUNNING);
        // To iperf3 it means nothing while a test runs.
        client.send(&[raw::TEST_START, raw::TEST_END]);
        client.expect(raw::EXCHANGE_RESULTS);
        client.send(&[raw::framed(results), junk.as_bytes().to_vec()].concat());
        let mut last = [0; 4];
        client.stream.read_exact(&mut last).unwrap();
        let mut theirs = vec![0; usize::try_from(u32::from_be_bytes(last)).unwrap()];
        client.stream.read_exact(&mut theirs).unwrap();
        client.expect(raw::DISPLAY_RESULTS);
        let error = if junk.is_empty() {
            client.send(&[IPERF_DONE]);
            String::new()
        } else {
            drop(client.stream.read_to_end(&mut Vec::new()));
            format!("iperf3: {UNKNOWN}\n")
        };
        drop((client, data));
        assert_eq!(server.ends().expect(0).error, error, "{whose} {junk}");
    }
}

/// A server that takes a connection, the parameters where `asks` is set, and then says nothing; whether it got so far.
fn silent(asks: bool) -> (u16, Arc<AtomicBool>) {
    let waits = Arc::new(AtomicBool::new(false));
    let reached = Arc::clone(&waits);
    let port = raw::RawServer::start(move |server| {
        if asks {
            server.send(&[raw::PARAM_EXCHANGE])?;
            server.message()?;
        }
        reached.store(true, Ordering::Relaxed);
        server.hold()
    });
    (port, waits)
}

#[test]
fn a_client_stopped_before_its_streams_has_a_summary_of_nothing() {
    let _beside = beside();
    for (whose, command) in programs(WHAT) {
        for asks in [false, true] {
            let stopped = |words: &str| {
                let (port, waits) = silent(asks);
                let running = start(&mut client(command(), "127.0.0.1", port, words));
                let came = wait_until(LONG, || waits.load(Ordering::Relaxed));
                assert!(came, "{whose} {words}: nobody came");
                running.signal("TERM");
                running.wait(LONG).expect(0)
            };
            let text = stopped("");
            assert!(text.out.contains(SUMMARY), "{whose}: {}", text.out);
            assert!(
                text.out.ends_with("Bitrate         Retr\n"),
                "{whose}: {}",
                text.out
            );
            let document = stopped("-J").json();
            let end = &document["end"];
            assert_eq!(end["streams"], Value::Array(Vec::new()), "{whose}");
            for sum in ["sum_sent", "sum_received"] {
                assert_eq!(end[sum]["seconds"], 0, "{whose}: {document}");
            }
            assert_eq!(document["start"].get("cookie").is_some(), asks, "{whose}");
        }
    }
}

#[test]
fn a_client_whose_server_breaks_off_has_no_summary() {
    let _beside = beside();
    let port = raw::RawServer::start(|server| {
        server.send(&[raw::PARAM_EXCHANGE])?;
        server.message()?;
        server.send(&[raw::CREATE_STREAMS])?;
        let (data, _) = server.listener.accept()?;
        server.send(&[raw::TEST_START, raw::TEST_RUNNING])?;
        let mut some = [0; 4096];
        (&data).read_exact(&mut some)?;
        server.stream.shutdown(Shutdown::Both)
    });
    for (whose, command) in programs(WHAT) {
        let text = run(&mut client(command(), "127.0.0.1", port, "-t 5"), LONG).expect(1);
        assert!(!text.out.contains(SUMMARY), "{whose}: {}", text.out);
        let json = run(&mut client(command(), "127.0.0.1", port, "-t 5 -J"), LONG).expect(1);
        let document = json.json();
        assert_eq!(document["end"], serde_json::json!({}), "{whose}");
        assert_eq!(
            document["error"], "control socket has closed unexpectedly",
            "{whose}"
        );
    }
}

#[test]
fn a_client_says_what_came_of_results_that_were_cut_short() {
    let _beside = beside();
    let port = raw::RawServer::start(|server| {
        server.test()?;
        server.send(&[0, 0, 1, 244, b'{', b'"', b'c', b'p', b'u'])?;
        server.stream.shutdown(Shutdown::Both)
    });
    let mut command = client(ours(), "127.0.0.1", port, "-t 1");
    let done = run(&mut command, LONG).expect(1);
    let lines: Vec<&str> = done.error.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "warning: JSON size of data read does not correspond to offered length - expected 500 bytes but received 5; errno=0",
            "iperf3: error - unable to receive results: ",
        ],
        "{lines:?}"
    );
    assert!(!done.out.contains(SUMMARY), "{}", done.out);
}

/// Longer than the server allows: what is omitted counts, and what does not end by time is refused.
#[test]
fn the_longest_duration_counts_as_with_iperf3() {
    let _beside = beside();
    for (whose, command) in programs(WHAT) {
        for words in ["-t 2 -O 2", "-n 100M", "-k 10"] {
            let mut one = command();
            let server = Server::iperf3(one.args(["-1", "--server-max-duration", "3"]));
            let done = run(&mut client(ours(), "127.0.0.1", server.port, words), LONG).expect(1);
            assert!(
                done.error.contains("client's requested duration exceeds"),
                "{whose} {words}: {}",
                done.error
            );
            server.ends().expect(0);
        }
    }
    let server = Server::iperf3(ours().args(["-1", "--server-max-duration", "3"]));
    let words = "-t 2 -O 1 -b 1M";
    run(&mut client(ours(), "127.0.0.1", server.port, words), LONG).expect(0);
}
