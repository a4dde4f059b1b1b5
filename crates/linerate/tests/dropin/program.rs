//! What a program sees of ours as of iperf3: sentences of errors, signals, the server's words, files, names. What ref
//! wrote was captured from iperf3 3.21+, and is compared with the newest iperf3 where `IPERF3_NEW` names one.

use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{client, ours};
use crate::harness::{
    Done, Folder, LINERATE, LONG, Running, Server, beside, free_port, iperf3, newest, run, start,
    wait_until,
};

const UNCONNECTED: &str = "unable to connect to server - server may have stopped running or use a different port, firewall issue, etc.: Connection refused";
const SIGNALS: [(&str, &str); 3] = [
    ("INT", "Interrupt(2)"),
    ("TERM", "Terminated(15)"),
    ("HUP", "Hangup(1)"),
];

/// Starts a program anew.
pub(super) type Program = Box<dyn Fn() -> Command>;

/// A program and whose it is: ours, and the newest iperf3 where there is one, of which the same is asserted.
pub(super) fn programs(what: &str) -> Vec<(&'static str, Program)> {
    let mut all: Vec<(&str, Program)> = vec![("ours", Box::new(ours))];
    if let Some(binary) = newest(what) {
        all.push(("the newest", Box::new(move || Command::new(&binary))));
    }
    all
}

/// A server that writes at once, and listens.
fn server(command: &dyn Fn() -> Command, words: &str) -> Server {
    let mut command = command();
    command.arg("--forceflush").args(words.split_whitespace());
    Server::iperf3(&mut command)
}

/// The `error` of what was written with `-J`, or of the line of `--json-stream`.
#[track_caller]
fn error_of(done: &Done, json_stream: bool) -> String {
    let error = if json_stream {
        let events = done.out.lines().map(|line| {
            serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        });
        let mut errors = events.filter(|event| event["event"] == "error");
        errors.next().map(|event| event["data"].clone())
    } else {
        done.json().get("error").cloned()
    };
    let error = error.unwrap_or_else(|| panic!("no error: {}{}", done.out, done.error));
    error.as_str().unwrap().to_owned()
}

/// iperf3's lines on standard error; those of ours begin with our name.
fn iperf3s(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| !line.starts_with("linerate: "))
        .collect()
}

/// The same failure in text, as a document, and as lines.
#[track_caller]
fn fails_as(whose: &str, command: &dyn Fn() -> Command, port: u16, words: &str, sentence: &str) {
    let text = run(&mut client(command(), "127.0.0.1", port, words), LONG).expect(1);
    let last = iperf3s(&text.error).last().copied().unwrap_or_default();
    assert_eq!(last, format!("iperf3: error - {sentence}"), "{whose}");
    for (json, json_stream) in [("-J", false), ("--json-stream", true)] {
        let words = format!("{words} {json}");
        let done = run(&mut client(command(), "127.0.0.1", port, &words), LONG).expect(1);
        if whose == "ours" || !sentence.contains("duration") {
            assert_eq!(error_of(&done, json_stream), sentence, "{whose} {json}");
        }
        assert_eq!(done.error, "", "{whose} {json}");
    }
}

#[test]
fn a_server_that_is_not_there_is_iperf3s_sentence() {
    let _beside = beside();
    let port = free_port();
    for (whose, command) in programs("the sentence for no server") {
        fails_as(whose, &*command, port, "-t 1", UNCONNECTED);
        let done = run(&mut client(command(), "127.0.0.1", port, "-t 1"), LONG).expect(1);
        assert_eq!(
            done.error,
            format!("iperf3: error - {UNCONNECTED}\n"),
            "{whose}"
        );
        assert_eq!(done.out, "", "{whose}");
    }
}

#[test]
fn a_busy_server_is_iperf3s_sentence() {
    let _beside = beside();
    let Some(binary) = iperf3("a busy server of Debian's") else {
        return;
    };
    let stock = Server::stock(&mut Command::new(binary));
    let mut first = start(&mut client(
        Command::new(binary),
        "127.0.0.1",
        stock.free().port,
        "-t 60 -b 1M",
    ));
    stock.tells("connected to", 1);
    for (whose, command) in programs("the sentence for a busy server") {
        let sentence = "the server is busy running a test. try again later";
        fails_as(whose, &*command, stock.port, "-t 1", sentence);
    }
    first.kill();
}

#[test]
fn a_duration_above_the_servers_limit_is_iperf3s_sentence() {
    let _beside = beside();
    let sentence = "client's requested duration exceeds the server's maximum permitted limit";
    for (of_server, serve) in programs("a server with a longest duration") {
        let limited = server(&*serve, "--server-max-duration 2");
        for (whose, command) in programs("the sentence for a long test") {
            fails_as(whose, &*command, limited.port, "-t 9", sentence);
        }
        assert!(
            wait_until(LONG, || limited.process.error().contains(sentence)),
            "{of_server}: {}",
            limited.process.error()
        );
        let said = iperf3s(&limited.process.error()).join("\n");
        assert!(
            said.starts_with(&format!("iperf3: error - {sentence}")),
            "{of_server}: {said}"
        );
        assert!(!limited.process.out().contains("error"), "{of_server}");
    }
}

#[test]
fn a_server_that_dies_is_iperf3s_sentence() {
    let _beside = beside();
    for (whose, command) in programs("the sentence for a server that dies") {
        for words in ["", "-J"] {
            let mut dying = server(&ours, "");
            let mut running = client(command(), "127.0.0.1", dying.port, "-t 60 -b 1M");
            let running = start(running.args(words.split_whitespace()));
            dying.tells("connected to", 1);
            dying.process.kill();
            let done = running.wait(LONG).expect(1);
            let sentence = "control socket has closed unexpectedly";
            if words == "-J" {
                assert_eq!(error_of(&done, false), sentence, "{whose}");
            } else {
                assert_eq!(
                    iperf3s(&done.error),
                    [format!("iperf3: error - {sentence}")],
                    "{whose}"
                );
            }
        }
    }
}

#[test]
fn errors_go_to_the_log_file() {
    let _beside = beside();
    let folder = Folder::new();
    let port = free_port();
    for (whose, command) in programs("errors in the log file") {
        let log = folder.file(whose);
        let words = format!(
            "-t 1 --logfile {}",
            log.display().to_string().replace(' ', "_")
        );
        let done = run(&mut client(command(), "127.0.0.1", port, &words), LONG).expect(1);
        assert_eq!(
            (done.out.as_str(), done.error.as_str()),
            ("", ""),
            "{whose}"
        );
        let log = words.rsplit(' ').next().unwrap();
        let written = std::fs::read_to_string(log).unwrap();
        assert_eq!(
            written,
            format!("iperf3: error - {UNCONNECTED}\n"),
            "{whose}"
        );

        let done = run(
            &mut client(
                command(),
                "127.0.0.1",
                port,
                "-t 1 --logfile /nonexistent/log",
            ),
            LONG,
        )
        .expect(1);
        assert_eq!(
            iperf3s(&done.error),
            ["iperf3: error - unable to open log file: No such file or directory"],
            "{whose}"
        );
    }
}

#[test]
fn an_unknown_congestion_control_is_iperf3s_sentence() {
    let _beside = beside();
    let sentence = "unable to set TCP_CONGESTION: Supplied congestion control algorithm not supported on this host";
    let ours_serves = server(&ours, "");
    for (whose, command) in programs("the sentence for a congestion control") {
        fails_as(
            whose,
            &*command,
            ours_serves.port,
            "-t 1 -C nosuch",
            sentence,
        );
    }
}

/// A client whose test runs at a server that says so.
fn running_at(server: &Server, command: Command, words: &str) -> Running {
    let running = start(&mut client(command, "127.0.0.1", server.port, words));
    assert!(
        wait_until(LONG, || server.process.out().contains("connected to")),
        "{}{}",
        server.process.out(),
        server.process.error()
    );
    running
}

#[test]
fn a_signal_ends_a_client_with_its_summary() {
    let _beside = beside();
    for (whose, command) in programs("a client that gets a signal") {
        for (signal, named) in SIGNALS {
            let sentence = format!("interrupt - the client has terminated by signal {named}");
            let one = server(&ours, "-1");
            let running = running_at(&one, command(), "-t 60 -b 10M -i 0.1 --forceflush");
            assert!(
                wait_until(LONG, || running.out().contains("sec")),
                "{whose}"
            );
            running.signal(signal);
            let done = running.wait(LONG).expect(0);
            assert_eq!(done.error, format!("iperf3: {sentence}\n"), "{whose}");
            assert!(done.out.contains(" sender"), "{whose}: {}", done.out);
            assert!(!done.out.contains("iperf Done."), "{whose}: {}", done.out);
            // The server knows that the client left.
            let served = one.ends().expect(0);
            assert_eq!(
                served.error, "iperf3: the client has terminated\n",
                "{whose}"
            );
            assert!(served.out.contains("receiver"), "{whose}: {}", served.out);
        }
        let one = server(&ours, "-1 -J");
        let mut running = start(&mut client(
            command(),
            "127.0.0.1",
            one.port,
            "-t 60 -b 10M -i 0.1 --json-stream --forceflush",
        ));
        assert!(
            wait_until(LONG, || running.out().contains("interval")),
            "{whose}"
        );
        running.signal("TERM");
        assert!(wait_until(LONG, || running.ended()), "{whose}");
        let done = running.wait(LONG).expect(0);
        assert_eq!(
            error_of(&done, true),
            "interrupt - the client has terminated by signal Terminated(15)"
        );
        let served = one.ends().expect(0);
        assert_eq!(
            error_of(&served, false),
            "the client has terminated",
            "{whose}"
        );
        assert!(served.json()["end"]["sum_received"].is_object(), "{whose}");
    }
}

#[test]
fn a_signal_ends_a_client_at_once_though_its_server_is_wedged() {
    let _beside = beside();
    // A stock server, so that the test's end is waited for with stock words only, and ours.
    let stock = iperf3("a wedged server of Debian's");
    let mut servers = vec![server(&ours, "")];
    servers.extend(stock.map(|binary| server(&|| Command::new(binary), "")));
    for wedged in &servers {
        let words = "-t 5 -i 5 -b 10M --forceflush";
        let running = running_at(wedged, ours(), words);
        wedged.process.signal("STOP");
        // Its only interval is over: it waits for the server's results.
        assert!(
            wait_until(LONG, || running.out().contains(" sec ")),
            "{}",
            running.out()
        );
        running.signal("INT");
        let began = Instant::now();
        let done = running.wait(LONG).expect(0);
        // The wait for results alone is 15 s.
        assert!(
            began.elapsed() < Duration::from_secs(8),
            "{:?}",
            began.elapsed()
        );
        wedged.process.signal("CONT");
        assert_eq!(
            done.error,
            "iperf3: interrupt - the client has terminated by signal Interrupt(2)\n"
        );
        assert!(done.out.contains(" sender"), "{}", done.out);
    }
    // One that never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let running = start(&mut client(ours(), "127.0.0.1", port, "-t 1"));
    let (mut control, _) = silent.accept().unwrap();
    control.read_exact(&mut [0; 37]).unwrap();
    running.signal("HUP");
    let done = running.wait(Duration::from_secs(20)).expect(0);
    assert_eq!(
        done.error,
        "iperf3: interrupt - the client has terminated by signal Hangup(1)\n"
    );
}

#[test]
fn a_signal_ends_a_server_with_its_words() {
    let _beside = beside();
    for (whose, command) in programs("a server that gets a signal") {
        for (signal, named) in SIGNALS {
            let sentence = format!("interrupt - the server has terminated by signal {named}");
            for (words, json_stream) in [
                ("", None),
                ("-J", Some(false)),
                ("--json-stream", Some(true)),
            ] {
                let idle = server(&*command, words);
                let listening = format!("Server listening on {} (test #1)", idle.port);
                let banner = || json_stream.is_some() || idle.process.out().contains(&listening);
                assert!(wait_until(LONG, banner), "{whose} {words}");
                idle.process.signal(signal);
                let done = idle.ends().expect(0);
                if let Some(json_stream) = json_stream {
                    assert_eq!(error_of(&done, json_stream), sentence, "{whose} {words}");
                    assert_eq!(done.error, "", "{whose} {words}");
                } else {
                    assert_eq!(done.error, format!("iperf3: {sentence}\n"), "{whose}");
                    assert_eq!(done.out.lines().count(), 3, "{whose}: {}", done.out);
                }
            }
        }
        let busy = server(&*command, "-i 0.1");
        let running = running_at(&busy, ours(), "-t 60 -b 10M");
        assert!(
            wait_until(LONG, || busy.process.out().contains("sec")),
            "{whose}"
        );
        busy.process.signal("TERM");
        let served = busy.ends().expect(0);
        assert!(served.out.contains("receiver"), "{whose}: {}", served.out);
        assert_eq!(
            served.error,
            "iperf3: interrupt - the server has terminated by signal Terminated(15)\n",
            "{whose}"
        );
        let done = running.wait(LONG).expect(1);
        assert_eq!(
            iperf3s(&done.error),
            ["iperf3: error - the server has terminated"],
            "{whose}"
        );
    }
}

#[test]
fn a_server_of_one_test_has_one_banner_and_its_version_lines() {
    let _beside = beside();
    for (whose, command) in programs("the banner of -1 -V") {
        let one = server(&*command, "-1 -V");
        run(
            &mut client(ours(), "127.0.0.1", one.port, "-t 1 -b 10M"),
            LONG,
        )
        .expect(0);
        let served = one.ends().expect(0);
        assert_eq!(
            served.out.matches("Server listening on").count(),
            1,
            "{whose}"
        );
        let lines: Vec<&str> = served.out.lines().collect();
        assert!(lines[0].starts_with("iperf 3."), "{whose}: {lines:?}");
        assert!(lines[1].starts_with("Linux "), "{whose}: {lines:?}");
        assert!(
            lines[3].starts_with("Server listening on"),
            "{whose}: {lines:?}"
        );
        assert!(
            served.out.contains("[  5] local 127.0.0.1 port "),
            "{whose}: {}",
            served.out
        );
        assert_eq!(served.error, "", "{whose}");
    }
}

#[test]
fn sockets_have_the_numbers_that_scripts_look_for() {
    let _beside = beside();
    let ours_serves = server(&ours, "");
    let done = run(
        &mut client(ours(), "127.0.0.1", ours_serves.port, "-t 1 -b 10M -P 2"),
        LONG,
    )
    .expect(0);
    for text in ["[  5] local ", "[  7] local ", "[SUM]"] {
        assert!(done.out.contains(text), "{text}: {}", done.out);
    }
    assert!(ours_serves.process.out().contains("[  5] local "));
}

#[test]
fn a_used_port_is_told_in_iperf3s_words() {
    let _beside = beside();
    let taken = TcpListener::bind(("0.0.0.0", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let sentence = "error - unable to start listener for connections: Address already in use";
    for (whose, command) in programs("a server on a used port") {
        let serve = |words: &str| {
            let mut command = command();
            command
                .args(["-s", "-4", "-p", &port])
                .args(words.split_whitespace());
            run(&mut command, LONG).expect(1)
        };
        let text = serve("");
        assert_eq!(
            text.error,
            format!("iperf3: {sentence}\niperf3: exiting\n"),
            "{whose}"
        );
        assert_eq!(text.out, "", "{whose}");
        assert_eq!(error_of(&serve("-J"), false), sentence, "{whose}");
        assert_eq!(error_of(&serve("--json-stream"), true), sentence, "{whose}");
        let verbose = serve("-V");
        assert_eq!(verbose.out.lines().count(), 2, "{whose}: {}", verbose.out);
    }
}

#[test]
fn the_pid_file_of_a_daemon_is_where_the_user_is() {
    let _beside = beside();
    for (whose, command) in programs("-D -I") {
        let folder = Folder::new();
        let path = folder.file("own.pid");
        let port = free_port().to_string();
        let mut daemon = command();
        daemon.current_dir(folder.path());
        daemon.args(["-s", "-D", "-p", &port, "-I", "own.pid"]);
        run(&mut daemon, LONG).expect(0);
        let written = || std::fs::read_to_string(&path).unwrap_or_default();
        assert!(wait_until(LONG, || !written().is_empty()), "{whose}");
        let pid: u32 = written()
            .parse()
            .unwrap_or_else(|error| panic!("{whose}: {error}: {:?}", written()));
        let mut second = command();
        second.current_dir(folder.path());
        let again = run(second.args(["-s", "-p", &port, "-I", "own.pid"]), LONG).expect(1);
        assert_eq!(
            iperf3s(&again.error),
            ["iperf3: Another instance of iperf3 appears to be running"],
            "{whose}"
        );
        let ended = Command::new("sh")
            .args(["-c", &format!("kill -TERM {pid}")])
            .status();
        assert!(ended.unwrap().success(), "{whose}");
        let gone = || !std::path::Path::new("/proc").join(pid.to_string()).exists();
        assert!(wait_until(LONG, gone), "{whose}: {pid}");
        assert!(!path.exists(), "{whose}");
    }
}

#[test]
fn warnings_are_iperf3s_and_no_others() {
    let _beside = beside();
    let ours_serves = server(&ours, "");
    for (words, warning) in [
        (
            "-J -f k",
            "warning: Report format (-f) flag ignored with JSON output (-J)\n",
        ),
        (
            "-J -V",
            "warning: Verbose output (-v) may interfere with JSON output (-J)\n",
        ),
        ("-b 10Mbit stray", ""),
        ("--cntl-ka", ""),
        ("--no-fq-socket-pacing", ""),
        ("-u -N", ""),
    ] {
        for (whose, command) in programs("warnings") {
            if words.contains("bit") && whose != "ours" {
                continue;
            }
            let words = format!("-t 1 -b 10M {words}");
            let done = run(
                &mut client(command(), "127.0.0.1", ours_serves.port, &words),
                LONG,
            );
            assert_eq!(done.error, warning, "{whose}: {words}");
            done.expect(0);
        }
    }
}

#[test]
fn a_test_without_end_runs_until_it_is_interrupted() {
    let _beside = beside();
    let mut servers = vec![server(&ours, "")];
    let stock = iperf3("-t inf at Debian's server");
    servers.extend(stock.map(|binary| server(&|| Command::new(binary), "")));
    for endless in &servers {
        for time in ["0", "inf"] {
            let words = format!("-t {time} -b 10M -i 0.2 --json-stream --forceflush");
            let running = start(&mut client(ours(), "127.0.0.1", endless.port, &words));
            let intervals = || running.out().matches("\"event\":\"interval\"").count();
            assert!(
                wait_until(LONG, || intervals() >= 8),
                "{}{}",
                running.out(),
                running.error()
            );
            running.signal("INT");
            let done = running.wait(LONG).expect(0);
            assert!(done.out.contains("\"duration\":0,"), "{}", done.out);
            assert_eq!(
                error_of(&done, true),
                "interrupt - the client has terminated by signal Interrupt(2)"
            );
            assert_eq!(done.error, "");
            // A stock server has to see that it left, before it takes the next.
            let left = || {
                endless
                    .process
                    .error()
                    .matches("the client has terminated")
                    .count()
            };
            let so_far = if time == "0" { 1 } else { 2 };
            assert!(
                wait_until(LONG, || left() >= so_far),
                "{}",
                endless.process.error()
            );
            let listens = || endless.process.out().matches("Server listening on").count();
            assert!(
                wait_until(LONG, || listens() > so_far),
                "{}",
                endless.process.out()
            );
        }
    }
}

#[test]
fn a_servers_report_has_the_servers_form() {
    let _beside = beside();
    for (whose, serve) in programs("the form of a server's report") {
        for words in ["-J", "--json-stream"] {
            let reporting = server(&*serve, words);
            for (of_client, command) in programs("a client that wants the server's report") {
                let words = "-t 1 -b 10M -J --get-server-output";
                let done = run(
                    &mut client(command(), "127.0.0.1", reporting.port, words),
                    LONG,
                );
                let document = done.expect(0).json();
                let report = &document["server_output_json"];
                assert!(
                    report["end"]["sum_received"]["bytes"].is_number()
                        && report["start"]["accepted_connection"]["port"].is_number()
                        && report["start"]["test_start"]["duration"] == 1
                        && !report["intervals"].as_array().unwrap().is_empty(),
                    "{whose}, {of_client}: {report}"
                );
                assert_eq!(
                    document.get("server_output_text"),
                    None,
                    "{whose}, {of_client}"
                );
            }
            let text = "-t 1 -b 10M --get-server-output";
            let done = run(&mut client(ours(), "127.0.0.1", reporting.port, text), LONG).expect(0);
            let (_, json) = done.out.split_once("\nServer JSON output:\n").unwrap();
            let (json, _) = json.split_once("\n\niperf Done.").unwrap();
            assert!(serde_json::from_str::<Value>(json).unwrap()["end"].is_object());
            assert!(json.starts_with("{\n\t\"start\":"), "{json}");
        }
        let mut stamped = serve();
        stamped.arg("--timestamps=STAMP ");
        let reporting = Server::iperf3(&mut stamped);
        let words = "-t 1 -b 10M -J --get-server-output";
        let done = run(
            &mut client(ours(), "127.0.0.1", reporting.port, words),
            LONG,
        )
        .expect(0);
        let document = done.json();
        let report = document["server_output_text"].as_str().unwrap();
        let lines = report.lines().filter(|line| !line.trim().is_empty());
        assert!(lines.clone().count() >= 4, "{report}");
        assert!(
            lines.clone().all(|line| line.starts_with("STAMP ")),
            "{whose}: {report}"
        );
    }
}

#[test]
fn any_name_that_begins_with_iperf3_is_iperf3() {
    let _beside = beside();
    let folder = Folder::new();
    for name in ["iperf3-amd64", "iperf3.exe", "iperf3.17"] {
        let link = folder.file(name);
        symlink(LINERATE, &link).unwrap();
        let version = run(Command::new(&link).arg("-v"), LONG).expect(0);
        assert!(
            version.out.starts_with("iperf 3."),
            "{name}: {}",
            version.out
        );
    }
}
