//! Options of the host's: what they do, and what iperf3 says where the host does not grant them.

use std::iter;
use std::process::Command;
use std::time::Duration;

use linerate_kernel::{sctp, socket};
use linerate_testing::{Need, skipped};
use serde_json::Value;

use super::{client, ours};
use crate::harness::{
    B, Hosts, LONG, Server, beside, free_port, iperf3, newest, run, start, wait_until,
};

/// A CPU that no machine of these tests has.
const NO_CPU: &str = "1023";

/// The largest timer of an idle connection from or to a port, s (`/proc/net/tcp`).
fn keepalive_s(port: u16, local: bool) -> u64 {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let end = format!(":{port:04X}");
    let timers = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let address = fields[if local { 1 } else { 2 }];
        // 01 is ESTABLISHED, timer 2 that of keepalive; in hundredths of a second.
        let (kind, when) = fields[5].split_once(':')?;
        let idle = address.ends_with(&end) && fields[3] == "01" && kind == "02";
        let when = u64::from_str_radix(when, 16).ok()?;
        idle.then_some(when / 100)
    });
    timers.max().unwrap_or(0)
}

#[test]
fn keepalive_of_the_control_connection_is_what_was_asked_for() {
    let _beside = beside();
    let words = "--cntl-ka=900/5/3";
    let far = Server::iperf3(&mut {
        let mut command = ours();
        command.args(["-4", words]);
        command
    });
    let mut near = client(ours(), "127.0.0.1", far.port, "-t 20 -b 1M");
    let near = start(near.arg(words));
    let seen = || keepalive_s(far.port, false) > 600 && keepalive_s(far.port, true) > 600;
    assert!(wait_until(Duration::from_secs(15), seen));
    drop(near);
    let mut near = client(ours(), "127.0.0.1", far.port, "-t 1 -V");
    let done = run(near.arg(words), LONG).expect(0);
    let line = "Control connection TCP Keepalive TCP_KEEPIDLE/TCP_KEEPINTVL/TCP_KEEPCNT are set to 900/5/3";
    assert!(done.out.contains(line), "{}", done.out);
    assert_eq!(done.error, "");
}

#[test]
fn keepalive_that_is_too_short_is_refused_as_iperf3_does() {
    let _beside = beside();
    let Some(binary) = newest("the checks of --cntl-ka") else {
        return;
    };
    let server = Server::stock(&mut Command::new(&binary));
    // The second is found out by the system's own times, after connecting.
    for words in ["--cntl-ka=15/5/3", "--cntl-ka=10"] {
        let port = server.port;
        let refused = |command| {
            let done = run(&mut client(command, "127.0.0.1", port, words), LONG).expect(1);
            let lines = done.error.lines();
            let texts = lines.filter_map(|line| Some(line.split_once(": ")?.1.to_owned()));
            texts.take(2).collect::<Vec<_>>()
        };
        let (ours, theirs) = (refused(ours()), refused(Command::new(&binary)));
        assert_eq!(ours[0], theirs[0], "{words}");
        if words == "--cntl-ka=10" {
            assert_eq!(ours, theirs, "{words}");
        }
    }
}

#[test]
fn a_receiver_gives_up_after_its_timeout() {
    let _beside = beside();
    let text = "idle timeout for receiving data";
    // A server whose client stands still.
    let mut command = ours();
    let far = Server::iperf3(command.args(["--rcv-timeout", "1000"]));
    let stock = newest("a newest client that a server of ours gives up");
    let near = stock.map_or_else(ours, Command::new);
    let near = start(&mut client(
        near,
        "127.0.0.1",
        far.port,
        "-t 80 -b 1M -i 0.2",
    ));
    far.tells("connected to", 1);
    near.signal("STOP");
    let gave_up = || far.process.out().contains(text) || far.process.error().contains(text);
    assert!(wait_until(Duration::from_secs(20), gave_up));
    near.signal("CONT");
    near.wait(Duration::from_secs(60)).expect(1);
    // A client whose server does.
    let far = Server::iperf3(&mut ours());
    let words = "-R -t 80 -b 1M --rcv-timeout 1000";
    let near = start(&mut client(ours(), "127.0.0.1", far.port, words));
    far.tells("connected to", 1);
    far.process.signal("STOP");
    let done = near.wait(Duration::from_secs(60));
    far.process.signal("CONT");
    let done = done.expect(1);
    assert!(done.error.contains(text), "{}", done.error);
}

#[test]
fn a_sender_gives_up_what_stays_unacknowledged() {
    let _beside = beside();
    let Some(hosts) = Hosts::new("--snd-timeout on a path that is cut") else {
        return;
    };
    let port = free_port();
    let far = start(&mut hosts.b.linerate(&format!("iperf3 -s -p {port}")));
    let listens = || far.out().contains("Server listening");
    assert!(wait_until(Duration::from_secs(20), listens));
    let words = format!("iperf3 -c {B} -p {port} -t 80 -i 0.2 --snd-timeout 3000");
    let near = start(&mut hosts.a.linerate(&words));
    let runs = || far.out().contains("connected to");
    let running = wait_until(Duration::from_secs(40), runs);
    assert!(running, "{}{}{}", far.out(), near.out(), near.error());
    hosts.b.ip("link set b0 down");
    // Without the option the keepalive of the control connection ends it after 20 s.
    let done = near.wait(Duration::from_secs(15)).expect(1);
    let lost = ["timed out", "No route to host"];
    assert!(
        lost.iter().any(|text| done.error.contains(text)),
        "{}",
        done.error
    );
}

#[test]
fn a_cpu_that_is_not_there_is_refused_as_iperf3_does() {
    let _beside = beside();
    let text = "unable to set CPU affinity: Invalid argument";
    let server = Server::iperf3(&mut ours());
    let own = ["-A", NO_CPU];
    let mut listens = ours();
    listens.args(["-s", "-p", &free_port().to_string()]);
    for mut command in [client(ours(), "127.0.0.1", server.port, "-t 1"), listens] {
        let done = run(command.args(own), LONG).expect(1);
        let error = format!("iperf3: error - {text}");
        assert!(done.error.starts_with(&error), "{}", done.error);
    }
    let mut documented = client(ours(), "127.0.0.1", server.port, "-t 1 -J");
    let document = run(documented.args(own), LONG).expect(1).json();
    assert_eq!(document["error"], text);
    let far = format!("-t 1 -A 0,{NO_CPU}");
    let done = run(&mut client(ours(), "127.0.0.1", server.port, &far), LONG).expect(1);
    assert!(done.error.contains("Invalid argument"), "{}", done.error);
    let what = "a stock client that asks our server for a CPU";
    if let Some(binary) = newest(what) {
        let stock = Server::stock(&mut Command::new(&binary));
        let errors = [&server, &stock].map(|server| {
            let port = server.free().port;
            let mut near = client(Command::new(&binary), "127.0.0.1", port, &far);
            run(&mut near, LONG).expect(1).error
        });
        assert_eq!(errors[0], errors[1]);
    }
    // The server serves on, and a CPU that is there is taken.
    run(
        &mut client(ours(), "127.0.0.1", server.port, "-t 1 -A 0,0"),
        LONG,
    )
    .expect(0);
}

#[test]
fn buffers_that_the_kernel_cuts_are_refused_as_iperf3_does() {
    let _beside = beside();
    let most = std::fs::read_to_string("/proc/sys/net/core/wmem_max").unwrap();
    if most.trim().parse::<u64>().unwrap() >= 256 << 20 {
        return skipped(
            Need::BoundedBuffers,
            "-w 512M",
            "net.core.wmem_max allows it here",
        );
    }
    let text = "error - socket buffer size not set correctly";
    let server = Server::iperf3(&mut ours());
    let newest = newest("-w 512M of the newest client at our server");
    for stock in iter::once(None).chain(newest.iter().map(Some)) {
        for words in ["-w 512M -t 1", "-w 512M -t 1 -u"] {
            let near = stock.map_or_else(ours, Command::new);
            let near = client(near, "127.0.0.1", server.port, words);
            let done = run(&mut { near }, LONG).expect(1);
            assert!(done.error.contains(text), "{words}: {}", done.error);
        }
    }
    run(
        &mut client(ours(), "127.0.0.1", server.port, "-w 64K -t 1"),
        LONG,
    )
    .expect(0);
}

#[test]
fn keys_that_cannot_be_read_are_refused_as_iperf3_does() {
    let _beside = beside();
    let client = "you must specify a username, password, and path to a valid RSA public key";
    let server = "you must specify a path to a valid RSA private key and a user credential file";
    for (words, sentence) in [
        (
            "-c localhost --username joe --rsa-public-key-path /nonexistent",
            client,
        ),
        (
            "-c localhost --username joe --rsa-public-key-path /etc/passwd",
            client,
        ),
        (
            "-s --rsa-private-key-path /nonexistent --authorized-users-path /etc/passwd",
            server,
        ),
        (
            "-s --rsa-private-key-path /etc/passwd --authorized-users-path /etc/passwd",
            server,
        ),
    ] {
        let mut command = ours();
        command
            .env("IPERF3_PASSWORD", "secret")
            .args(words.split_whitespace());
        let done = run(&mut command, LONG).expect(1);
        let lines: Vec<&str> = done.error.lines().collect();
        assert_eq!(
            lines[0],
            format!("iperf3: parameter error - {sentence}"),
            "{words}"
        );
        assert!(lines[1].starts_with("  "), "{words}: {lines:?}");
        assert_eq!(lines[3], "Usage: iperf3 [-s|-c host] [options]", "{words}");
    }
}

#[test]
fn a_flow_label_over_ipv4_is_refused_as_iperf3_does() {
    let _beside = beside();
    let server = Server::iperf3(&mut ours());
    let newest = newest("-L of the newest client over IPv4");
    let commands = iter::once(ours()).chain(newest.map(Command::new));
    for command in commands {
        let done = run(
            &mut client(command, "127.0.0.1", server.port, "-L 5 -t 1"),
            LONG,
        )
        .expect(1);
        let text = "iperf3: error - unable to set IPv6 flow label";
        assert!(done.error.starts_with(text), "{}", done.error);
    }
    // Over UDP iperf3 passes it over.
    run(
        &mut client(ours(), "127.0.0.1", server.port, "-L 5 -t 1 -u"),
        LONG,
    )
    .expect(0);
}

/// The keys of an object, in their order.
fn keys(value: &Value) -> Vec<&String> {
    value.as_object().unwrap().keys().collect()
}

#[test]
fn multipath_tcp_keeps_the_senders_figures() {
    let _beside = beside();
    if let Err(error) = socket::mptcp_stream_socket(socket::Family::V4) {
        return skipped(Need::Mptcp, "-m", &error.to_string());
    }
    let newest = newest("-m with the newest iperf3");
    let mut servers = vec![Server::iperf3(ours().arg("-m"))];
    let stock = newest.as_ref().map(Command::new);
    servers.extend(stock.map(|mut command| Server::stock(command.arg("-m"))));
    for server in &servers {
        let near = client(ours(), "127.0.0.1", server.free().port, "-m -t 1 -J");
        let document = run(&mut { near }, LONG).expect(0).json();
        let interval = &document["intervals"][0]["streams"][0];
        let sender = &document["end"]["streams"][0]["sender"];
        for (of, key) in [
            (interval, "snd_cwnd"),
            (interval, "rtt"),
            (interval, "pmtu"),
            (sender, "max_snd_cwnd"),
            (sender, "mean_rtt"),
        ] {
            assert!(
                of[key].as_u64().is_some_and(|value| value > 0),
                "{key}: {of}"
            );
        }
        assert!(sender["retransmits"].is_u64(), "{sender}");
        if let Some(binary) = &newest {
            let port = server.free().port;
            let near = client(Command::new(binary), "127.0.0.1", port, "-m -t 1 -J");
            let theirs = run(&mut { near }, LONG).expect(0).json();
            let stream = &theirs["intervals"][0]["streams"][0];
            assert_eq!(keys(interval), keys(stream));
            assert_eq!(keys(sender), keys(&theirs["end"]["streams"][0]["sender"]));
        }
        let near = client(ours(), "127.0.0.1", server.free().port, "-m -t 1");
        let text = run(&mut { near }, LONG).expect(0).out;
        assert!(text.contains("Retr  Cwnd"), "{text}");
    }
    // The server tells its client what it sent again.
    let near = client(ours(), "127.0.0.1", servers[0].port, "-m -R -t 1 -J");
    let document = run(&mut { near }, LONG).expect(0).json();
    assert!(document["end"]["sum_sent"]["retransmits"].is_u64());
}

#[test]
fn sctp_is_refused_with_the_kernels_word() {
    let _beside = beside();
    if sctp::stream_socket(socket::Family::V4).is_ok() {
        return skipped(
            Need::NoSctp,
            "--sctp without a kernel's SCTP",
            "this kernel has SCTP",
        );
    }
    let server = Server::iperf3(&mut ours());
    let words = "--sctp --nstreams 3 -X 127.0.0.1 -t 1";
    let done = run(&mut client(ours(), "127.0.0.1", server.port, words), LONG).expect(1);
    let text = "iperf3: error - unable to connect stream: Protocol not supported";
    assert!(done.error.starts_with(text), "{}", done.error);
    if let Some(binary) = iperf3("Debian's --sctp at our server") {
        let errors = [
            Server::iperf3(&mut ours()),
            Server::stock(&mut Command::new(binary)),
        ];
        let [ours, theirs] = errors.map(|server| {
            let mut near = client(
                Command::new(binary),
                "127.0.0.1",
                server.port,
                "--sctp -t 1",
            );
            run(&mut near, LONG).expect(1).error
        });
        assert_eq!(ours, theirs);
    }
}
