//! UDP's opening datagrams: each makes a connected socket of its own.
//!
//! The datagram is believed only if it comes from the address of a control connection that waits for
//! it: otherwise one spoofed datagram would make a reverse test flood a third party. A linerate's
//! carries a token, so several clients behind one address can open their streams at once.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_kernel::{clock, socket, udp};
use linerate_wire::udp::{HANDSHAKE_ANSWER, TokenHandshake, is_request};
use socket2::{Domain, SockAddr, Socket, Type};

use super::iperf2::door::NewFlows;
use super::listen::{UdpListener, bound};
use super::{Arrival, Entry, Shared};
use crate::stream::iperf2::Early;

/// Datagrams that are looked at before others get their turn.
const MOST: usize = 64;
/// An opening datagram is 4 or 22 bytes long.
const LONGEST_OPENING: usize = 64;
/// Those of iperf2 are payload as well, and counted.
const LONGEST: usize = 65_536;
/// Datagrams that are read of what came between bind(2) and connect(2).
const MOST_BETWEEN: usize = 512;
/// Looks at a listener before others get their turn, where datagrams keep coming.
const ROUNDS: usize = 64;

/// Takes all opening datagrams that wait.
pub(super) fn accept_all(listener: &UdpListener, shared: &Arc<Shared>) {
    let longest = if shared.options.answers_iperf2() {
        LONGEST
    } else {
        LONGEST_OPENING
    };
    let mut batch = udp::Receiver::new(MOST, longest);
    let mut flows = shared.options.answers_iperf2().then(NewFlows::default);
    for _ in 0..ROUNDS {
        let Ok(count) = batch.receive(listener.socket.as_fd()) else {
            break;
        };
        take(listener, shared, &batch, count, &mut flows);
        if flows.is_none() {
            break;
        }
    }
    if let Some(flows) = flows {
        flows.hand_on(shared);
    }
}

fn take(
    listener: &UdpListener,
    shared: &Shared,
    batch: &udp::Receiver,
    count: usize,
    flows: &mut Option<NewFlows>,
) {
    for index in 0..count {
        let message = batch.message(index);
        if let (Some(source), Some(destination), false) =
            (message.source, message.destination, message.truncated)
        {
            let mut local = SocketAddr::new(destination, listener.port);
            if let (SocketAddr::V6(local), SocketAddr::V6(source)) = (&mut local, source) {
                // A link-local address means nothing without its interface.
                local.set_scope_id(source.scope_id());
            }
            if !open(shared, message.data, source, local)
                && let Some(flows) = flows
            {
                flows.take(shared, message.data, source, listener.port, || {
                    connected(local, source)
                });
            }
        }
    }
}

/// Opens a stream of a test that waits for it. False = the datagram is no opening one.
fn open(shared: &Shared, datagram: &[u8], source: SocketAddr, local: SocketAddr) -> bool {
    let peer = source.ip().to_canonical();
    if let Some(handshake) = TokenHandshake::decode(datagram) {
        if let Some(entry) = find(shared, peer, |entry| {
            entry.lock().token == Some(handshake.token)
        }) {
            let mut state = entry.lock();
            let new =
                handshake.stream < state.expected_ours && !state.came.contains(&handshake.stream);
            if new && let Ok((socket, _)) = connected(local, source) {
                state.came.push(handshake.stream);
                drop(socket::send(socket.as_fd(), &HANDSHAKE_ANSWER));
                entry.bring(
                    state,
                    Arrival::Udp(socket, Some(handshake.stream), datagram.to_vec()),
                );
            }
        }
        return true;
    }
    if !is_request(datagram) {
        return false;
    }
    if let Some(entry) = find(shared, peer, |entry| entry.lock().expected_stock_udp > 0) {
        let mut state = entry.lock();
        if let Ok((socket, _)) = connected(local, source) {
            state.expected_stock_udp = state.expected_stock_udp.saturating_sub(1);
            drop(socket::send(socket.as_fd(), &HANDSHAKE_ANSWER));
            entry.bring(state, Arrival::Udp(socket, None, datagram.to_vec()));
        }
    }
    true
}

/// The test of a peer that this is true of.
pub(super) fn find(
    shared: &Shared,
    peer: IpAddr,
    which: impl Fn(&Entry) -> bool,
) -> Option<Arc<Entry>> {
    let sessions = shared.sessions();
    sessions
        .by_cookie
        .values()
        .find(|entry| entry.peer == peer && which(entry))
        .cloned()
}

/// A socket of our port that hears this one peer: the kernel prefers it to the listening one. Until it is connected it may get
/// anybody's datagrams; those of the peer are returned, all others are dropped.
fn connected(local: SocketAddr, peer: SocketAddr) -> io::Result<(UdpSocket, Vec<Early>)> {
    let raw = Socket::new(Domain::for_address(peer), Type::DGRAM, None)?;
    let raw = bound(raw, local, None)?;
    raw.connect(&SockAddr::from(peer))?;
    let socket = raw.into();
    let early = without_strangers(&socket, peer);
    Ok((socket, early))
}

/// Reads what waits at a socket, and keeps the peer's: strangers' are among the first that came, and a peer that sends without a
/// pause does not hold this up for more than [`MOST_BETWEEN`] datagrams.
fn without_strangers(socket: &UdpSocket, peer: SocketAddr) -> Vec<Early> {
    let mut datagram = vec![0; LONGEST];
    let mut early = Vec::new();
    for _ in 0..MOST_BETWEEN {
        match socket.recv_from(&mut datagram) {
            Ok((bytes, source)) => {
                if (source.ip(), source.port()) == (peer.ip(), peer.port()) {
                    early.push(Early::of(&datagram[..bytes], clock::monotonic()));
                }
            }
            // An error that somebody's answer caused is none of this flow.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused
                ) => {}
            Err(_) => break,
        }
    }
    early
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_strangers_sent_before_the_socket_was_connected_is_dropped() {
        let ours = UdpSocket::bind("127.0.0.1:0").unwrap();
        ours.set_nonblocking(true).unwrap();
        let local = ours.local_addr().unwrap();
        let [peer, stranger] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        // Over loopback a datagram is there when send(2) has returned.
        for (from, text) in [(&stranger, "one"), (&peer, "first"), (&stranger, "two")] {
            from.send_to(text.as_bytes(), local).unwrap();
        }
        let from = peer.local_addr().unwrap();
        ours.connect(from).unwrap();
        let early = without_strangers(&ours, from);
        let bytes: Vec<_> = early.iter().map(|early| early.bytes).collect();
        assert_eq!(bytes, [5]);
        assert_eq!(early[0].head[..5], *b"first");
        let nothing = ours.recv(&mut [0; 8]).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    }
}
