//! A server with a session token takes its own client and nobody else, and `serve --wait` ends.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use crate::harness::{Done, LINERATE, LONG, Server, beside, run, start, wait_until};

const TOKEN: &str = "abcdefghijklmnopqrstuvwxyz234567abcd";
const WRONG: &str = "abcdefghijklmnopqrstuvwxyz234567abce";
const VARIABLE: &str = "LINERATE_SESSION_TOKEN";

fn server(words: &[&str]) -> Server {
    let mut command = Command::new(LINERATE);
    command
        .args(["serve", "-p", "0", "-B", "127.0.0.1", "--json-stream"])
        .args(words);
    Server::announced(command.env(VARIABLE, TOKEN))
}

fn client(server: &Server, token: Option<&str>, words: &str) -> Done {
    let mut command = server.client(words);
    if let Some(token) = token {
        command.env(VARIABLE, token);
    }
    run(&mut command, LONG)
}

/// What a server answers to some bytes.
fn answer(server: &Server, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    stream.write_all(bytes).unwrap();
    let mut said = Vec::new();
    // A reset is an end as well.
    drop(stream.read_to_end(&mut said));
    said
}

#[test]
fn only_clients_with_the_token_are_served() {
    let _beside = beside();
    let server = server(&[]);
    for token in [None, Some(WRONG)] {
        let refused = client(&server, token, "-n 1M").expect(3);
        let why = "it takes only clients that have its session token";
        assert!(refused.error.contains(why), "{}", refused.error);
    }
    // One after the other with one token, as --counter-test makes them; the last one may still be leaving.
    for words in [
        "",
        "-R",
        "--bidir -P 2",
        "-u -b 5M -t 1",
        "-u -b 5M -t 1 -R",
    ] {
        let bounded = if words.contains("-t") { "" } else { "-n 1M" };
        let words = format!("{words} {bounded} --json");
        let mut done = client(&server, Some(TOKEN), &words);
        let came_too_early = |done: &Done| done.code() == Some(3) && done.error.contains("busy");
        for _ in 0..20 {
            if !came_too_early(&done) {
                break;
            }
            done = client(&server, Some(TOKEN), &words);
        }
        let document = done.expect(0).json();
        assert_eq!(document["cookie"], TOKEN, "{words}");
    }
    server.tells("does not have this server's session token", 2);
}

#[test]
fn garbage_is_answered_with_one_error_and_its_owner_with_a_test() {
    let _beside = beside();
    let server = server(&[]);
    // SERVER_ERROR, iperf3's number 106, no errno.
    let refusal = [&[0xFE][..], &106_i32.to_be_bytes(), &0_i32.to_be_bytes()].concat();
    let parameters = [&[b'x'; 37][..], &8_u32.to_be_bytes(), b"{\"tcp\":1"].concat();
    for garbage in [&[0; 37][..], &[0xFF; 37], &[b'a'; 37], &parameters] {
        let said = answer(&server, garbage);
        // Bytes behind the cookie are never read: the kernel may answer them with a reset.
        assert!(
            said == refusal || (garbage.len() > 37 && said.is_empty()),
            "{said:?}"
        );
    }
    // Without its NUL, and cut short.
    let almost = TOKEN.to_owned() + "x";
    assert_eq!(answer(&server, almost.as_bytes()), refusal);
    let mut cut = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    cut.write_all(&TOKEN.as_bytes()[..36]).unwrap();
    // Three times as many connections as may be on their way to their cookie.
    let silent: Vec<TcpStream> = (0..1500)
        .filter_map(|_| TcpStream::connect(("127.0.0.1", server.port)).ok())
        .collect();
    for _ in 0..50 {
        assert_eq!(answer(&server, &[b'q'; 37]), refusal);
    }
    client(&server, Some(TOKEN), "-n 1M").expect(0);
    drop((silent, cut));
}

#[test]
fn a_token_is_used_once_where_the_server_is_for_one_test() {
    let _beside = beside();
    let server = server(&["--one-off", "--wait", "60s"]);
    client(&server, Some(WRONG), "-n 1M").expect(3);
    let mut running = start(
        server
            .client("-t 30 -i 0.2 --json-stream")
            .env(VARIABLE, TOKEN),
    );
    assert!(wait_until(LONG, || running.out().contains("\"interval\"")));
    let replayed = client(&server, Some(TOKEN), "-n 1M").expect(3);
    assert!(replayed.error.contains("busy"), "{}", replayed.error);
    server.tells("a test with its session token has not ended yet", 1);
    assert!(!running.ended());
    running.signal("INT");
    running.wait(LONG).expect(0);
    let port = server.port;
    server.ends().expect(0);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_server_that_nobody_visits_ends_in_time() {
    let _beside = beside();
    let server = server(&["--one-off", "--wait", "700ms"]);
    // Whoever has no token does not keep it alive, and neither does a connection that says nothing.
    let _silent = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    assert_eq!(answer(&server, &[b'q'; 37]).len(), 9);
    let ended = server.ends().expect(4);
    assert_eq!(
        ended.error.trim(),
        "linerate: error: no test began within 700 ms"
    );
}

#[test]
fn a_server_waits_after_each_test_again() {
    let _beside = beside();
    let server = server(&["--wait", "3s"]);
    // Longer than the wait.
    client(&server, Some(TOKEN), "-t 4").expect(0);
    let ended = server.ends().expect(4);
    assert!(ended.out.contains("\"finished\""), "{}", ended.out);
}

#[test]
fn what_is_no_token_is_refused_and_not_shown() {
    let _beside = beside();
    for secret in ["", "UPPERCASE-SECRET", &TOKEN[1..]] {
        for words in ["serve -p 0 --wait 1s", "test 127.0.0.1 -p 9"] {
            let refused =
                run(crate::harness::linerate(words).env(VARIABLE, secret), LONG).expect(2);
            assert!(refused.error.contains(VARIABLE), "{}", refused.error);
            assert!(secret.is_empty() || !refused.error.contains(secret));
        }
    }
}
