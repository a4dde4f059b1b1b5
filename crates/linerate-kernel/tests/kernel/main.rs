//! Real sockets on loopback. Nothing here needs a privilege; what this kernel does not have is
//! skipped with a word on why.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail like the test")]

mod below_root;
mod emulation;
mod forwarding;
mod namespaced;
mod settings;
mod sockets;
mod tcp_account;
mod tcp_settings;
mod tcp_table;
mod udp_batches;
mod udp_drops;

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;

use linerate_kernel::{clock, poll, tcp};
use linerate_model::tcp_info::TcpFacts;
use linerate_model::units::Nanos;

/// Active and passive end of a connection.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let active = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (passive, _) = listener.accept().unwrap();
    (active, passive)
}

/// A connected sender and its receiver.
fn datagram_pair() -> (UdpSocket, UdpSocket) {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    (sender, receiver)
}

fn facts(stream: &TcpStream) -> TcpFacts {
    TcpFacts::from(&tcp::info(stream).unwrap())
}

/// Waits until `done`, at most 5 s: acknowledgements are delayed by up to 40 ms.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = clock::monotonic();
    while !done() {
        assert!(
            clock::monotonic().since(begin) < Nanos::from_millis(5000),
            "never: {what}"
        );
        poll::wait(&mut [], Some(Nanos::from_millis(1))).unwrap();
    }
}

/// Says a figure, for whoever reads the log.
#[expect(clippy::print_stderr, reason = "a figure of a test")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// A test that this kernel or user cannot run.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// Runs a test again, alone, in user and network namespaces of its own: `unshare` makes them while the process has one
/// thread. `mark` is set in its environment. What it said on its error output; `None` where no such namespace can be
/// made, which is said. However else it ends but well, it fails.
fn in_a_namespace(test: &str, mark: &str) -> Option<String> {
    let apart = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "--"]);
        command
    };
    let plain = apart().arg("true").output();
    if !plain.as_ref().is_ok_and(|plain| plain.status.success()) {
        skipped(&format!("no user namespace: {plain:?}"));
        return None;
    }
    let output = apart()
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", test])
        .env(mark, "1")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stderr);
    assert!(
        output.status.success(),
        "{}: {}{said}",
        output.status,
        text(&output.stdout)
    );
    Some(said)
}
