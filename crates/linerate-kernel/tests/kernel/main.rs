//! Real sockets on loopback. Nothing here needs a privilege; what this kernel does not have is
//! skipped with a word on why.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail like the test")]

mod below_root;
mod emulation;
mod filter;
mod forwarding;
mod namespaced;
mod ring;
mod settings;
mod sockets;
mod tcp_account;
mod tcp_settings;
mod tcp_table;
mod udp_batches;
mod udp_drops;

use std::net::{TcpListener, TcpStream, UdpSocket};

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
