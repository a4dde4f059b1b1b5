//! `-F`: a file in the place of payload, between our ends and with stock ones.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{client, ours};
use crate::harness::{Folder, LONG, Server, beside, free_port, iperf3, newest, number, run};

/// iperf3's block: what a stock receiver reads whole or not at all.
const BLOCK: usize = 128 << 10;

/// Bytes that look random and are the same each time.
fn content(length: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005) + 1;
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

fn with_file(mut command: Command, file: &Path) -> Command {
    command.arg("-F").arg(file);
    command
}

/// Stock programs, and how they are called.
fn stock(what: &str) -> Vec<String> {
    let debian = iperf3(what).map(str::to_owned);
    debian.into_iter().chain(newest(what)).collect()
}

#[test]
fn a_file_goes_whole_from_our_client_to_our_server_and_back() {
    let _beside = beside();
    let folder = Folder::new();
    let sent = content(24 * BLOCK + 17);
    let source = folder.with("source", &sent);
    // What was in the file before is not there any more.
    let sink = folder.with("sink", content(40 * BLOCK));

    let server = Server::iperf3(&mut with_file(ours(), &sink));
    let done = run(
        &mut with_file(client(ours(), "127.0.0.1", server.port, ""), &source),
        LONG,
    )
    .expect(0);
    assert!(std::fs::read(&sink).unwrap() == sent, "the file differs");
    let line = format!(
        "        Sent 3.00 MByte / 3.00 MByte (100%) of {}",
        source.display()
    );
    assert!(
        done.out.lines().any(|one| one == line),
        "{line}\n{}",
        done.out
    );
    let line = format!("(100%) of {}", sink.display());
    server.tells(&line, 1);

    let back = folder.file("back");
    let server = Server::iperf3(&mut with_file(ours(), &source));
    let words = format!("-R -J -n {}", sent.len());
    let mut command = with_file(client(ours(), "127.0.0.1", server.port, &words), &back);
    let document = run(&mut command, LONG).expect(0).json();
    assert!(std::fs::read(&back).unwrap() == sent, "the file differs");
    let mode = back.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let file = &document["end"]["streams"][0]["diskfile"];
    let length = sent.len() as u64;
    assert_eq!(number(file, "/received"), length);
    assert_eq!(number(file, "/size"), length);
    assert_eq!(number(file, "/percent_received"), 100);
    assert_eq!(file["filename"], back.to_str().unwrap());
}

#[test]
fn a_file_goes_between_our_ends_and_stock_ones() {
    let _beside = beside();
    let folder = Folder::new();
    let sent = content(24 * BLOCK);
    let source = folder.with("source", &sent);
    for binary in stock("-F with a stock peer") {
        let theirs = || Command::new(&binary);
        for (words, client_file, server_file) in
            [("-t 3", "source", "sink"), ("-R -t 2", "sink", "source")]
        {
            let sink = folder.file("sink");
            drop(std::fs::remove_file(&sink));
            let (client_file, server_file) = (folder.file(client_file), folder.file(server_file));
            for (our_client, name) in [(true, "our client"), (false, "our server")] {
                let transferred = || {
                    let (near, far) = if our_client {
                        (ours(), theirs())
                    } else {
                        (theirs(), ours())
                    };
                    let server = Server::iperf3(&mut with_file(far, &server_file));
                    let near = client(near, "127.0.0.1", server.port, words);
                    run(&mut with_file(near, &client_file), LONG).expect(0);
                    drop(server);
                    let got = std::fs::read(&sink).unwrap();
                    assert!(
                        sent.starts_with(&got),
                        "{name} and {binary} {words}: another file of {} bytes",
                        got.len()
                    );
                    got.len()
                };
                // A stock receiver leaves what it has not read at the end: little, unless the machine is busy.
                let (tries, least) = if our_client == words.starts_with("-R") {
                    (1, sent.len())
                } else {
                    (5, sent.len() - 8 * BLOCK)
                };
                assert!(
                    (0..tries).any(|_| transferred() >= least),
                    "{name} and {binary} {words}: never {least} of {} bytes",
                    sent.len()
                );
            }
        }
    }
    assert_eq!(std::fs::read(&source).unwrap(), sent);
}

#[test]
fn a_test_ends_with_its_file() {
    let _beside = beside();
    let folder = Folder::new();
    let source = folder.with("source", content(3 * BLOCK));
    let server = Server::iperf3(&mut ours());
    let length = 3 * BLOCK as u64;
    // The time is over when the file is; several streams have read it at least once together; a pipe and an empty file end.
    for words in ["-t 80", "-P 2", "-n 80M"] {
        let near = client(ours(), "127.0.0.1", server.port, &format!("-J {words}"));
        let done = run(&mut with_file(near, &source), Duration::from_secs(60)).expect(0);
        let document = done.json();
        let sent = number(&document, "/end/sum_sent/bytes");
        assert!(sent >= length, "{words}: {sent}");
        if words != "-P 2" {
            assert_eq!(sent, length, "{words}");
        }
        let received = number(&document, "/end/sum_received/bytes");
        assert_eq!(received, sent, "{words}");
    }
    let empty = folder.with("empty", b"");
    for file in [empty.as_path(), Path::new("/dev/null")] {
        let near = client(ours(), "127.0.0.1", server.port, "");
        let done = run(&mut with_file(near, file), Duration::from_secs(60)).expect(0);
        assert!(done.out.contains("Sent 0.00 Byte"), "{}", done.out);
    }
}

#[test]
fn what_cannot_be_written_ends_the_test() {
    let _beside = beside();
    let full = Path::new("/dev/full");
    let server = Server::iperf3(&mut ours());
    let near = client(ours(), "127.0.0.1", server.port, "-R -t 60");
    let done = run(&mut with_file(near, full), Duration::from_secs(45)).expect(1);
    assert!(
        done.error.contains("No space left on device"),
        "{}",
        done.error
    );
    let near = client(ours(), "127.0.0.1", server.port, "-R -t 60 -J");
    let document = run(&mut with_file(near, full), Duration::from_secs(45)).expect(1);
    let document = document.json();
    assert_eq!(number(&document, "/end/streams/0/receiver/bytes"), 0);
    assert!(document["error"].is_string(), "{document}");

    let server = Server::iperf3(&mut with_file(ours(), full));
    let near = client(ours(), "127.0.0.1", server.port, "-t 60");
    let done = run(&mut { near }, Duration::from_secs(45)).expect(1);
    assert!(
        done.error.contains("No space left on device"),
        "{}",
        done.error
    );
    if let Some(binary) = newest("the newest client at a server whose disk is full") {
        let near = client(Command::new(binary), "127.0.0.1", server.port, "-t 60");
        let done = run(&mut { near }, Duration::from_secs(45)).expect(1);
        let text = "error - unable to open -F file: No space left on device";
        assert!(done.error.contains(text), "{}", done.error);
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_refused_in_iperf3s_words() {
    let _beside = beside();
    let folder = Folder::new();
    let missing = folder.file("missing");
    let server = Server::iperf3(&mut ours());
    let text = "iperf3: error - unable to open -F file: No such file or directory";
    let newest = newest("a missing file of -F with the newest client");
    let near = std::iter::once(ours()).chain(newest.map(Command::new));
    for near in near {
        let near = client(near, "127.0.0.1", server.port, "-t 1");
        let done = run(&mut with_file(near, &missing), LONG).expect(1);
        assert!(done.error.starts_with(text), "{}", done.error);
    }
    let near = client(ours(), "127.0.0.1", server.port, "-t 1 -J");
    let document = run(&mut with_file(near, &missing), LONG).expect(1).json();
    let error = document["error"].as_str().unwrap();
    assert_eq!(error, text.strip_prefix("iperf3: error - ").unwrap());

    let far = Server::iperf3(&mut with_file(ours(), &missing));
    let near = client(ours(), "127.0.0.1", far.port, "-R -t 1");
    let done = run(&mut { near }, LONG).expect(1);
    assert!(
        done.error.contains("No such file or directory"),
        "{}",
        done.error
    );
}

#[test]
fn a_file_stays_as_it_is_where_no_test_runs() {
    let _beside = beside();
    let folder = Folder::new();
    let kept = folder.with("kept", b"precious");
    let near = client(ours(), "127.0.0.1", free_port(), "-R -t 1");
    run(&mut with_file(near, &kept), LONG).expect(1);
    let server = Server::iperf3(&mut with_file(ours(), &kept));
    for words in ["-u -t 1", "--bidir -t 1", "-P 128 --bidir -t 1"] {
        run(&mut client(ours(), "127.0.0.1", server.port, words), LONG).expect(1);
    }
    for words in ["-R --bidir", "--bidir", "-u"] {
        let near = client(ours(), "127.0.0.1", server.port, words);
        run(&mut with_file(near, &kept), LONG).expect(1);
    }
    assert_eq!(std::fs::read(&kept).unwrap(), b"precious");
}
