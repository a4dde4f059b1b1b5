//! What is wrong is named, with what to do about it, and an exit code of its own.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::time::Duration;

use linerate_kernel::poll::{self, Interest, PollEntry};

use crate::harness::{Done, Folder, LONG, Server, beside, free_port, linerate, run};

/// A listener that treats each connection in some way; it ends with the process.
fn listener(treat: impl Fn(TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().flatten().for_each(treat));
    port
}

/// A command fails with this code, and its error has these words.
#[track_caller]
fn fails(words: &str, code: i32, told: &[&str]) {
    let done = run(&mut linerate(words), LONG).expect(code);
    for word in told {
        assert!(
            done.error.contains(word),
            "{words}: no '{word}' in: {}",
            done.error
        );
    }
    assert!(
        done.error.starts_with("linerate: error: "),
        "{}",
        done.error
    );
    // Where the test had not begun, there is nothing to report.
    assert!(!done.out.contains("Goodput"), "{words}: {}", done.out);
}

#[test]
fn an_unknown_host_is_named() {
    let _beside = beside();
    fails(
        "test no-such-host.invalid -t 1",
        3,
        &["no-such-host.invalid", "address"],
    );
    fails("test 300.1.1.1 -t 1", 3, &["300.1.1.1"]);
}

#[test]
fn a_refused_connection_says_what_to_look_at() {
    let _beside = beside();
    let port = free_port();
    fails(
        &format!("test 127.0.0.1 -p {port} -t 1"),
        3,
        &[
            &format!("127.0.0.1:{port}"),
            "refused",
            "linerate serve",
            "-p",
        ],
    );
}

#[test]
fn a_listener_that_closes_over_who_waits_for_it_says_to_try_again() {
    let _beside = beside();
    // Wherever in its first steps a client hears of it.
    for _ in 0..20 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let closing = std::thread::spawn(move || {
            let mut entries = [PollEntry::new(listener.as_fd(), Interest::READ)];
            poll::wait(&mut entries, None).unwrap();
        });
        fails(
            &format!("test 127.0.0.1 -p {port} -t 1"),
            3,
            &[&format!("cannot connect to 127.0.0.1:{port}"), "try again"],
        );
        closing.join().unwrap();
    }
}

#[test]
fn a_peer_that_speaks_something_else_is_told_apart() {
    let _beside = beside();
    let http = listener(|mut stream| {
        let mut asked = [0; 64];
        drop(stream.read(&mut asked));
        drop(stream.write_all(
            b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ));
    });
    fails(
        &format!("test 127.0.0.1 -p {http} -t 1"),
        3,
        &[&format!("127.0.0.1:{http}"), "HTTP"],
    );
    let ssh = listener(|mut stream| drop(stream.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")));
    fails(
        &format!("test 127.0.0.1 -p {ssh} -t 1"),
        3,
        &[&format!("127.0.0.1:{ssh}")],
    );
    let garbage = listener(|mut stream| drop(stream.write_all(&[0xa5; 4096])));
    fails(
        &format!("test 127.0.0.1 -p {garbage} -t 1"),
        3,
        &[&format!("127.0.0.1:{garbage}")],
    );
    let closing = listener(drop);
    fails(
        &format!("test 127.0.0.1 -p {closing} -t 1"),
        3,
        &[&format!("127.0.0.1:{closing}")],
    );
}

#[test]
fn a_peer_that_says_nothing_is_not_waited_for_without_end() {
    let _beside = beside();
    let silent = listener(|stream| {
        std::thread::spawn(move || {
            // Until the client goes.
            let mut stream = stream;
            while stream.read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
        });
    });
    let done = run(
        &mut linerate(&format!("test 127.0.0.1 -p {silent} -t 1")),
        Duration::from_secs(45),
    )
    .expect(3);
    assert!(done.error.contains("did not answer"), "{}", done.error);
}

#[test]
fn what_contradicts_itself_is_a_usage_error() {
    let _beside = beside();
    for (words, told) in [
        ("-t 5 -n 5M", "--bytes"),
        ("-n 5M -k 5", "--blocks"),
        ("-R --bidir", "--bidir"),
        ("-4 -6", "--version6"),
        ("-u -C cubic", "-C"),
        ("-u --mptcp", "mptcp"),
        ("--json --json-stream", "--json-stream"),
        ("-S 8 --dscp ef", "--dscp"),
    ] {
        fails(&format!("test localhost {words}"), 2, &[told]);
    }
}

#[test]
fn values_out_of_range_are_named_with_their_option() {
    let _beside = beside();
    for (words, told) in [
        ("-P 0", "-P"),
        ("-P 129", "-P"),
        ("-t 0", "-t"),
        ("-t minus", "minus"),
        ("-n 1X", "1X"),
        ("-n 0", "-n"),
        ("-b 10Q", "10Q"),
        ("-l 0", "-l"),
        ("-u -l 70000", "-l"),
        ("-u -l 4", "-l"),
        ("-p 70000", "70000"),
        ("--sample 10us", "--sample"),
        ("--dscp af99", "af99"),
        ("-L 99999999", "-L"),
        ("-M 10", "-M"),
        ("--frobnicate", "--frobnicate"),
        ("--username joe", "--rsa-public-key-path"),
    ] {
        fails(&format!("test localhost {words}"), 2, &[told]);
    }
    fails("", 2, &[]);
    fails("serve --allow 10.0.0.0/99", 2, &["10.0.0.0/99"]);
    fails("serve --max-rate fast", 2, &["fast"]);
}

#[test]
fn a_congestion_control_that_is_not_there_is_named() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    fails(
        &format!("test {} -t 1 -C nosuch", server.at()),
        3,
        &["nosuch"],
    );
    fails(
        &format!("test {} -t 1 --bind-dev nosuch0", server.at()),
        3,
        &["nosuch0"],
    );
    fails(
        &format!("test {} -t 1 -B 192.0.2.77", server.at()),
        3,
        &["192.0.2.77"],
    );
}

#[test]
fn a_port_in_use_is_named() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    fails(
        &format!("serve -p {}", server.port),
        3,
        &[&server.port.to_string(), "in use"],
    );
}

#[test]
fn keys_that_cannot_be_read_are_named() {
    let _beside = beside();
    let folder = Folder::new();
    let wrong = folder.with("wrong.pem", "no key");
    let users = folder.with("users", "");
    let path = wrong.to_str().unwrap();
    fails(
        &format!(
            "serve --rsa-private-key-path {path} --authorized-users-path {}",
            users.display()
        ),
        3,
        &["key"],
    );
    fails(
        &format!(
            "serve --rsa-private-key-path /nowhere --authorized-users-path {}",
            users.display()
        ),
        5,
        &["/nowhere"],
    );
    let mut command = linerate(&format!(
        "test localhost -t 1 --username joe --rsa-public-key-path {path}"
    ));
    command
        .env_remove("LINERATE_PASSWORD")
        .env_remove("IPERF3_PASSWORD");
    let done = run(&mut command, LONG).expect(2);
    assert!(done.error.contains("LINERATE_PASSWORD"), "{}", done.error);
}

/// Runs linerate in a shell that limits its address space to 1 GiB.
fn within_a_gibibyte(words: &str) -> Done {
    let mut shell = std::process::Command::new("sh");
    let limited = format!("ulimit -v 1048576; exec \"$0\" {words}");
    shell.args(["-c", &limited, env!("CARGO_BIN_EXE_linerate")]);
    run(&mut shell, LONG)
}

#[test]
fn no_file_fills_the_memory() {
    let _beside = beside();
    let folder = Folder::new();
    let stream = r#"{"samples":{"rows":4000000,"at_ns":{"first":0,"steps":[[1,3999999]]},"columns":{"a":{"first":0,"steps":[[0,3999999]]}}}}"#;
    let streams = vec![stream; 200].join(",");
    let text =
        format!(r#"{{"schema_version":1,"kind":"test","client":{{"streams":[{streams}]}}}}"#);
    let bomb = folder.with("bomb.json", text).display().to_string();
    // One run of a total each: there is a limit on the number of runs.
    let line = "20260101000000,10.0.0.1,5001,10.0.0.2,40000,3,0.0-10.0,117000000,936000000\n";
    let runs = folder.with("runs.csv", line.repeat(800_000));
    let runs = runs.display().to_string();
    for (words, told) in [
        (
            format!("show {bomb}"),
            "samples (rows times columns), more than the 33554432",
        ),
        (
            format!("explain {bomb}"),
            "samples (rows times columns), more than the 33554432",
        ),
        (format!("compare {bomb} {bomb}"), "more than the 33554432"),
        (
            format!("explain {runs}"),
            "more than 16384 tests and tables",
        ),
        ("show /dev/zero".to_owned(), "67108864 bytes"),
        ("explain /dev/zero".to_owned(), "67108864"),
        ("compare /dev/zero /dev/zero".to_owned(), "67108864 bytes"),
        ("host diff /dev/zero /dev/zero".to_owned(), "67108864 bytes"),
        ("lab run /dev/zero".to_owned(), "4194304 bytes"),
        ("sweep /dev/zero".to_owned(), "4194304 bytes"),
        ("tune plan /dev/zero".to_owned(), "4194304 bytes"),
    ] {
        let done = within_a_gibibyte(&words);
        assert!(!done.status.success(), "{words}: {}", done.out);
        assert!(
            done.error.contains(told),
            "{words}: no '{told}' in: {}",
            done.error
        );
    }
}

#[test]
fn a_finding_that_no_rule_makes_is_refused_before_anything_is_graded() {
    let _beside = beside();
    let folder = Folder::new();
    let text = "name = \"x\"\n[expect]\ntop = \"recieve-window\"\n";
    std::fs::write(folder.file("x.toml"), text).unwrap();
    let words = format!("lab grade {}", folder.path().display());
    fails(&words, 2, &["x.toml", "did you mean 'receive-window'?"]);
}
