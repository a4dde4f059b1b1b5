//! The binary in iperf3's place: its options, its documents, its exit codes.

mod broken_off;
mod differ;
mod failures;
mod files;
mod granted;
mod normal;
mod program;
mod wire;

use std::collections::VecDeque;
use std::iter;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::Mutex;

use serde_json::Value;

use crate::harness::{
    Folder, LINERATE, LONG, Server, alone, beside, free_port, iperf3, newest, number, run,
};

/// Our binary as iperf3.
fn ours() -> Command {
    let mut command = Command::new(LINERATE);
    command.arg("iperf3");
    command
}

/// A client's command for a server.
fn client(mut command: Command, host: &str, port: u16, words: &str) -> Command {
    command.args(["-c", host, "-p", &port.to_string()]);
    command.args(words.split_whitespace());
    command
}

/// A key, wherever it is wanted to be a number.
#[track_caller]
fn numbers(document: &Value, at: &str, keys: &[&str]) {
    for key in keys {
        let found = document.pointer(&format!("{at}/{key}"));
        assert!(
            found.is_some_and(Value::is_number),
            "{at}/{key} is {found:?}"
        );
    }
}

/// What pScheduler's parser and `iperf3_exporter` read in a client's document.
#[track_caller]
fn consumers_find_what_they_read(document: &Value, udp: bool) {
    assert_eq!(document.get("error"), None);
    let intervals = document["intervals"].as_array().unwrap();
    assert!(!intervals.is_empty());
    for interval in intervals {
        let sum = ["start", "end", "seconds", "bytes", "bits_per_second"];
        numbers(interval, "/sum", &sum);
        numbers(interval, "/streams/0", &sum);
        assert!(interval["streams"][0]["omitted"].is_boolean());
    }
    for sum in ["/end/sum_sent", "/end/sum_received"] {
        numbers(
            document,
            sum,
            &["start", "end", "seconds", "bytes", "bits_per_second"],
        );
        assert!(number(document, &format!("{sum}/bytes")) > 0);
    }
    numbers(
        document,
        "/end/cpu_utilization_percent",
        &[
            "host_total",
            "host_user",
            "host_system",
            "remote_total",
            "remote_user",
            "remote_system",
        ],
    );
    numbers(document, "/start/timestamp", &["timesecs"]);
    numbers(
        document,
        "/start/test_start",
        &[
            "num_streams",
            "blksize",
            "omit",
            "duration",
            "bytes",
            "blocks",
            "reverse",
        ],
    );
    assert_eq!(
        document["start"]["test_start"]["protocol"],
        if udp { "UDP" } else { "TCP" }
    );
    assert!(
        document["start"]["version"]
            .as_str()
            .unwrap()
            .starts_with("iperf 3")
    );
    let end = &document["end"]["streams"][0];
    if udp {
        let keys = [
            "jitter_ms",
            "lost_packets",
            "packets",
            "lost_percent",
            "bytes",
            "seconds",
        ];
        numbers(document, "/end/sum", &keys);
        numbers(
            end,
            "/udp",
            &[
                "socket",
                "jitter_ms",
                "lost_packets",
                "packets",
                "lost_percent",
                "out_of_order",
            ],
        );
    } else {
        numbers(document, "/end/sum_sent", &["retransmits"]);
        numbers(
            end,
            "/sender",
            &[
                "socket",
                "bytes",
                "retransmits",
                "max_snd_cwnd",
                "max_rtt",
                "min_rtt",
                "mean_rtt",
            ],
        );
        numbers(end, "/receiver", &["socket", "bytes"]);
    }
}

#[test]
fn documents_have_what_their_consumers_read() {
    let _beside = beside();
    let server = Server::iperf3(&mut ours());
    let debian = iperf3("documents of a test with Debian's iperf3");
    let debian = debian.map(|binary| Server::stock(&mut Command::new(binary)));
    for server in iter::once(&server).chain(&debian) {
        for words in ["", "-u -b 20M", "-b 50M"] {
            let port = server.free().port;
            let mut command = client(ours(), "127.0.0.1", port, &format!("-J -t 1 {words}"));
            let document = run(&mut command, LONG).expect(0).json();
            consumers_find_what_they_read(&document, words.starts_with("-u"));
        }
    }
}

#[test]
fn stock_clients_find_the_same_in_our_servers_answers() {
    let _beside = beside();
    let server = Server::iperf3(&mut ours());
    let stock = [
        iperf3("Debian's client at our iperf3 server").map(str::to_owned),
        newest("the newest client at our iperf3 server"),
    ];
    for binary in stock.into_iter().flatten() {
        for words in ["", "-u -b 20M", "-R -b 50M"] {
            let command = Command::new(&binary);
            let mut command = client(
                command,
                "127.0.0.1",
                server.port,
                &format!("-J -t 1 {words}"),
            );
            let document = run(&mut command, LONG).expect(0).json();
            if words != "-R -b 50M" {
                consumers_find_what_they_read(&document, words.starts_with("-u"));
            }
        }
    }
}

#[test]
fn under_the_name_iperf3_it_is_iperf3() {
    let _beside = beside();
    let folder = Folder::new();
    let link = folder.file("iperf3");
    symlink(LINERATE, &link).unwrap();
    let version = run(Command::new(&link).arg("-v"), LONG).expect(0);
    assert!(version.out.starts_with("iperf 3."), "{}", version.out);
    let help = run(Command::new(&link).arg("-h"), LONG).expect(0);
    assert!(
        help.out.contains("Usage: iperf3 [-s|-c host] [options]"),
        "{}",
        help.out
    );
    let server = Server::iperf3(Command::new(&link).arg("-1"));
    let done = run(
        &mut client(Command::new(&link), "127.0.0.1", server.port, "-t1 -P2"),
        LONG,
    )
    .expect(0);
    for text in [
        "Connecting to host 127.0.0.1, port ",
        "[ ID] Interval",
        "[SUM]",
        "sender",
        "receiver",
        "iperf Done.",
    ] {
        assert!(done.out.contains(text), "{text}: {}", done.out);
    }
    let served = server.ends().expect(0);
    for text in [
        "Server listening on ",
        "Accepted connection from 127.0.0.1, port ",
        "receiver",
    ] {
        assert!(served.out.contains(text), "{text}: {}", served.out);
    }
}

#[test]
fn what_cannot_be_done_exits_with_1() {
    let _beside = beside();
    let port = free_port();
    let refused = run(&mut client(ours(), "127.0.0.1", port, "-t 1"), LONG).expect(1);
    assert!(
        refused.error.starts_with("iperf3: error - "),
        "{}",
        refused.error
    );
    let refused = run(&mut client(ours(), "127.0.0.1", port, "-t 1 -J"), LONG).expect(1);
    assert!(refused.json()["error"].is_string());
    for words in [
        "--no-such-option",
        "-t 5 -n 5M",
        "-P 1000",
        "-t",
        "-R --bidir",
    ] {
        let done = run(&mut client(ours(), "127.0.0.1", port, words), LONG).expect(1);
        assert!(
            done.error.starts_with("iperf3: "),
            "{words}: {}",
            done.error
        );
    }
    let none = run(&mut ours(), LONG).expect(1);
    assert!(none.error.contains("Usage: iperf3"), "{}", none.error);
}

/// The lines of upstream's `test_commands.sh`, a second long each. Its `--sctp` fails where the kernel has no SCTP, its
/// `-n 5M -t 5` is a contradiction; `-A 2/2` wants a third CPU, and `-w 8M` more than many kernels grant.
const COMMANDS: [&str; 37] = [
    "-V -t 1 -T test1",
    "-u -V -t 1",
    "-i .3 -O 1 -t 1",
    "-i 1 -J -t 1",
    "-4 -t 1",
    "-4 -u -t 1",
    "-6 -t 1",
    "-6 -u -t 1",
    "-V -t 1 --fq-rate 5m",
    "-u -V -t 1 --fq-rate 5m",
    "-P 3 -t 1",
    "-u -P 3 -t 1",
    "-P 2 -t 1 -R",
    "-u -P 2 -t 1 -R",
    "-P 2 -t 1 --bidir",
    "-u -P 2 -t 1 --bidir",
    "-Z -t 1",
    "-Z -t 1 -R",
    "-t 1 -w 256K",
    "-n 5M",
    "-n 5M -u -b1G",
    "-n 5M -R",
    "-n 5M -u -b1G -R",
    "-k 1K",
    "-k 1K -u -b1G",
    "-k 1K -R",
    "-k 1K -u -b1G -R",
    "-A 0/0 -t 1",
    "-A 0/0 -u -b1G -t 1",
    "-u -b1G/100 -t 1",
    "-C reno -V -t 1",
    "-M 1000 -V -t 1",
    "-t 1 --get-server-output",
    "-t 1 -J --get-server-output -R",
    "-t1 -P2 -fm --timestamps",
    "-t 1 --json --interval 0.5 --udp --bitrate 5M --length 1000",
    "-t 1 -S 0x08 --dscp ef -N -l 64K",
];

/// Runs every line, some at once, each thread at a server of its own.
#[track_caller]
fn every_line(server: impl Fn() -> Server + Sync) {
    let queue: Mutex<VecDeque<&str>> = Mutex::new(COMMANDS.into());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let server = server();
                while let Some(words) = { queue.lock().unwrap().pop_front() } {
                    let host = if words.contains("-6") {
                        "::1"
                    } else {
                        "127.0.0.1"
                    };
                    let done = run(&mut client(ours(), host, server.free().port, words), LONG);
                    let json = words.contains("-J") || words.contains("--json");
                    let good = done.code() == Some(0)
                        && if json {
                            done.json().get("error").is_none() && done.json()["end"].is_object()
                        } else {
                            done.out.contains("iperf Done.")
                        };
                    if !good {
                        let text =
                            format!("{words}: {:?}\n{}{}", done.code(), done.out, done.error);
                        failed.lock().unwrap().push(text);
                        // What its server does next is not known.
                        return;
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn upstreams_test_commands_run_through_at_our_server() {
    let _alone = alone();
    every_line(|| Server::iperf3(&mut ours()));
}

#[test]
fn upstreams_test_commands_run_through_at_debians_server() {
    let _alone = alone();
    let Some(binary) = iperf3("test_commands.sh at Debian's server") else {
        return;
    };
    every_line(|| Server::stock(&mut Command::new(binary)));
}

#[test]
fn upstreams_test_commands_run_through_at_the_newest_server() {
    let _alone = alone();
    let Some(binary) = newest("test_commands.sh at the newest server") else {
        return;
    };
    every_line(|| Server::stock(&mut Command::new(&binary)));
}

#[test]
fn the_servers_output_is_got() {
    let _beside = beside();
    let mut servers = vec![(Server::iperf3(&mut ours()), "ours")];
    let debian = iperf3("--get-server-output from Debian's iperf3");
    servers.extend(debian.map(|binary| (Server::stock(&mut Command::new(binary)), "Debian's")));
    for (server, whose) in &servers {
        let text = run(
            &mut client(
                ours(),
                "127.0.0.1",
                server.free().port,
                "-t 1 --get-server-output",
            ),
            LONG,
        )
        .expect(0);
        assert!(text.out.contains("Server output:"), "{whose}: {}", text.out);
        assert!(
            text.out.matches("receiver").count() >= 2,
            "{whose}: {}",
            text.out
        );
        let document = run(
            &mut client(
                ours(),
                "127.0.0.1",
                server.free().port,
                "-t 1 -J --get-server-output",
            ),
            LONG,
        )
        .expect(0)
        .json();
        let told = document
            .get("server_output_text")
            .or(document.get("server_output_json"));
        assert!(told.is_some(), "{whose}");
    }
    if let Some(binary) = debian {
        let done = run(
            &mut client(
                Command::new(binary),
                "127.0.0.1",
                servers[0].0.port,
                "-t 1 --get-server-output",
            ),
            LONG,
        )
        .expect(0);
        assert!(
            done.out.contains("Server output:") && done.out.contains("Accepted connection"),
            "{}",
            done.out
        );
    }
}

#[test]
fn a_stream_of_json_has_iperf3s_events() {
    let _beside = beside();
    let server = Server::iperf3(&mut ours());
    let done = run(
        &mut client(
            ours(),
            "127.0.0.1",
            server.port,
            "-t 1 -i 0.3 --json-stream",
        ),
        LONG,
    )
    .expect(0);
    let events: Vec<Value> = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<&str> = events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(names.first(), Some(&"start"));
    assert_eq!(names.last(), Some(&"end"));
    assert!(
        names[1..names.len() - 1]
            .iter()
            .all(|name| *name == "interval"),
        "{names:?}"
    );
    assert!(names.len() >= 5, "{names:?}");
    assert!(number(&events[events.len() - 1], "/data/sum_sent/bytes") > 0);
}
