//! `linerate iperf` beside the real program: the same words in, and lines that differ in figures alone.

use std::process::Command;
use std::time::Duration;

use crate::harness::{
    LONG, Running, alone, beside, free_port, lacks_programs, linerate, run, start, wait_until,
};

/// Lines without their figures: numbers are `#`, units lose their prefix. What the real program tells of its own sockets, of this
/// machine's CPUs and of datagrams that a busy machine delivers late is left out. Streams come in any order,
/// and lines that are alike then are one.
fn shape(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| !line.contains("WARN") && !line.contains("out-of-order"))
        .map(|line| line.split(" (icwnd/").next().unwrap_or_default())
        .map(|line| {
            let words = line.split_whitespace().map(without_figures);
            words.collect::<Vec<String>>().join(" ")
        })
        .map(|line| line.replace("[ #]", "[#]"))
        .collect();
    lines.sort();
    // A last interval of a moment is shown or not.
    lines.dedup();
    lines
}

fn without_figures(word: &str) -> String {
    for unit in ["Bytes", "Byte", "bits/sec", "Bytes/sec"] {
        if word
            .strip_suffix(unit)
            .is_some_and(|prefix| prefix.len() <= 1)
        {
            return unit.to_owned();
        }
    }
    let mut shape = String::new();
    for letter in word.chars() {
        if !(letter.is_ascii_digit() || letter == '.') {
            shape.push(letter);
        } else if !shape.ends_with('#') {
            shape.push('#');
        }
    }
    // An adaptive figure is as often "0%" as "1e+02%".
    shape.replace("#e+#", "#").replace("#e-#", "#")
}

/// A server of the real program on a port.
fn real_server(port: u16, words: &str) -> Running {
    let words = format!("-s -p {port} {words}");
    let server = start(Command::new("iperf").args(words.split_whitespace()));
    assert!(wait_until(Duration::from_secs(20), || {
        server.out().contains("Server listening")
    }));
    server
}

/// Whether the wanted program is the one whose lines these are.
fn lacks_iperf(what: &str) -> bool {
    lacks_programs(what, &["iperf"])
}

#[test]
fn a_client_s_lines_are_the_real_program_s() {
    let _alone = alone();
    if lacks_iperf("lines of iperf's client") {
        return;
    }
    for words in [
        "-t 1",
        "-t 1 -i 0.5",
        "-n 1M",
        "-n 1M -P 2",
        "-n 1M -f m",
        "-n 1M -R",
        "-t 0.5 -b 10m --full-duplex",
        "-u -t 1 -b 1M -R",
        "-t 1 -i 0",
        "-t 9 -t 1",
        "-n 1M -N -M 1000",
        "-n 1M -y C",
        "-u -t 1 -b 1M",
        "-u -t 1 -b 1M -P 2",
        "-u -t 1 -b 1M -l 500",
    ] {
        let udp = if words.contains("-u") { "-u" } else { "" };
        // A server of 2.1.8 answers its first client over UDP alone.
        let told = |program: &mut dyn FnMut(&str) -> Command| {
            let port = free_port();
            let _server = real_server(port, udp);
            run(
                &mut program(&format!("-c 127.0.0.1 -p {port} {words}")),
                LONG,
            )
        };
        let real = told(&mut |words| {
            let mut command = Command::new("iperf");
            command.args(words.split_whitespace());
            command
        });
        let ours =
            told(&mut |words| linerate(&format!("iperf --iperf-version 2.1 {words}"))).expect(0);
        assert_eq!(
            shape(&ours.out),
            shape(&real.out),
            "{words}\nours:\n{}\nthe real program's:\n{}",
            ours.out,
            real.out
        );
    }
}

#[test]
fn a_server_s_lines_are_the_real_program_s() {
    let _alone = alone();
    if lacks_iperf("lines of iperf's server") {
        return;
    }
    for (server_words, words) in [("", "-n 1M"), ("-u", "-u -t 1 -b 1M")] {
        let client = |port: u16| {
            let words = format!("-c 127.0.0.1 -p {port} {words}");
            run(Command::new("iperf").args(words.split_whitespace()), LONG)
        };
        let port = free_port();
        let real = real_server(port, server_words);
        client(port);
        let complete = |text: &str| text.contains("bits/sec");
        assert!(wait_until(Duration::from_secs(20), || complete(
            &real.out()
        )));
        let real = real.out();
        let port = free_port();
        let ours = start(&mut linerate(&format!(
            "iperf -s --iperf-version 2.1 -p {port} {server_words}"
        )));
        assert!(wait_until(Duration::from_secs(20), || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        }));
        client(port);
        assert!(wait_until(Duration::from_secs(20), || complete(
            &ours.out()
        )));
        let ours = ours.out();
        assert_eq!(
            shape(&ours),
            shape(&real),
            "{words}\nours:\n{ours}\nthe real program's:\n{real}"
        );
    }
}

/// What people's scripts read.
#[test]
fn parsers_that_people_have_read_it() {
    let _beside = beside();
    let port = free_port();
    let server = start(&mut linerate(&format!("iperf -s -p {port}")));
    assert!(wait_until(Duration::from_secs(20), || {
        server.out().contains("Server listening on TCP port")
    }));
    let words = format!("iperf -c 127.0.0.1 -p {port} -n 10M -y C");
    let done = run(&mut linerate(&words), LONG).expect(0);
    // As `check_iperf` and its like do: the ninth field of the last line is bits a second, the eighth bytes.
    let fields: Vec<&str> = done.out.trim().split(',').collect();
    assert_eq!((fields.len(), fields[7]), (9, "10485760"), "{}", done.out);
    assert!(fields[8].parse::<f64>().unwrap() > 0.0);
    assert!(
        fields[0].len() == 14 && fields[0].starts_with("20"),
        "{}",
        done.out
    );
    // As mininet does: `([\d\.]+ \w+/sec)`, the last one, of both ends.
    let words = format!("iperf -c 127.0.0.1 -p {port} -n 10M --iperf-version 2.0");
    let done = run(&mut linerate(&words), LONG).expect(0);
    assert!(wait_until(Duration::from_secs(20), || {
        server.out().matches("/sec").count() >= 2
    }));
    for text in [done.out, server.out()] {
        let words: Vec<&str> = text.split_whitespace().collect();
        let at = words
            .iter()
            .rposition(|word| word.ends_with("/sec"))
            .unwrap();
        assert!(words[at - 1].parse::<f64>().unwrap() > 0.0, "{text}");
    }
}

#[test]
fn what_is_not_carried_out_is_refused_by_its_name() {
    let _beside = beside();
    for (words, said) in [
        ("iperf -c 127.0.0.1 -d", "--full-duplex"),
        ("iperf", "one of -s"),
        ("iperf -c 127.0.0.1 --isochronous", "frames"),
        ("iperf -c 127.0.0.1 -m", "segment size"),
        ("iperf -s -w 4M", "not carried out"),
    ] {
        let done = run(&mut linerate(words), LONG).expect(1);
        assert!(done.error.contains(said), "{words}: {}", done.error);
    }
    let port = free_port();
    let done = run(
        &mut linerate(&format!("iperf -c 127.0.0.1 -p {port} -t 1")),
        LONG,
    );
    assert_ne!(done.code(), Some(0));
    assert!(done.error.contains("refused"), "{}", done.error);
    // Over UDP nobody answers, and it is said as iperf says it.
    let words = format!("iperf -c 127.0.0.1 -p {port} -u -t 0.5");
    let done = run(&mut linerate(&words), LONG);
    assert!(
        done.error.contains("[  1] WARNING: did not receive ack"),
        "{}",
        done.error
    );
    let done = run(&mut linerate("iperf -v"), LONG).expect(0);
    assert!(done.out.starts_with("iperf version 2.2"), "{}", done.out);
}
