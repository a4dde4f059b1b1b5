//! The way in: connections and datagrams of iperf2's clients, on the accepting thread.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;

use linerate_kernel::{clock, thread};
use linerate_model::units::Nanos;
use linerate_wire::cookie::Cookie;
use linerate_wire::iperf2::caller::{Caller, of_datagram};
use linerate_wire::iperf2::datagram::{Head, Layout};

use super::super::listen::Pending;
use super::super::place::Place;
use super::super::{Arrival, Cause, EntryState, ServerEvent, Shared};
use super::session::{self, Opened};
use super::{Door, key};
use crate::stream::iperf2::Early;

/// Datagrams of a flow that are kept until it has its socket; the rest of them counts as lost.
const MOST_EARLY: usize = 4096;
/// A flow whose first datagram has a higher number has been going on for a while: it is no test from its beginning.
const LATEST_FIRST: i64 = 4096;
/// New flows of one look: each takes a descriptor before it is known whether it may have one.
const MOST_NEW: usize = 256;
/// How often a refusal of flows is reported.
const TELL_EVERY: Nanos = Nanos::from_millis(1000);
/// Bytes of the shorter head of a datagram.
const SHORTEST: usize = 12;

/// A connection has said that it is one of an iperf2.
pub(in super::super) fn connected(shared: &Arc<Shared>, caller: &Caller, connection: Pending) {
    let peer = connection.peer;
    let handle = connection.stream.try_clone().ok();
    let read = connection.received();
    let opened = Opened {
        caller: *caller,
        over_udp: false,
        peer,
        layout: Layout::Bytes16,
        read,
        port: local_port(&connection.stream),
    };
    come(shared, opened, handle, Arrival::Stream(connection.stream));
}

fn local_port(stream: &TcpStream) -> u16 {
    stream.local_addr().map_or(0, |address| address.port())
}

/// New flows of one look at a listener's datagrams. They are handed on when no more datagrams wait, so that those of a flow
/// that came to the listener are counted before those that come to the flow's own socket.
#[derive(Default)]
pub(in super::super) struct NewFlows(HashMap<SocketAddr, (Opened, UdpSocket, Vec<Early>)>);

impl NewFlows {
    /// Takes a datagram that may be iperf2's; `open` makes a socket that hears its sender alone.
    pub(in super::super) fn take(
        &mut self,
        datagram: &[u8],
        source: SocketAddr,
        port: u16,
        open: impl FnOnce() -> std::io::Result<UdpSocket>,
    ) {
        let came = clock::monotonic();
        if let Some((_, _, early)) = self.0.get_mut(&source) {
            if early.len() < MOST_EARLY && datagram.len() >= SHORTEST {
                early.push(beginning(datagram, came));
            }
            return;
        }
        let Some((layout, caller)) = of_datagram(datagram) else {
            return;
        };
        let number = Head::decode(layout, datagram).map_or(0, |head| head.number);
        if number > LATEST_FIRST || self.0.len() >= MOST_NEW {
            return;
        }
        let Ok(socket) = open() else { return };
        let opened = Opened {
            caller,
            over_udp: true,
            peer: source,
            layout,
            read: 0,
            port,
        };
        let early = vec![beginning(datagram, came)];
        self.0.insert(source, (opened, socket, early));
    }

    /// Hands them on.
    pub(in super::super) fn hand_on(self, shared: &Arc<Shared>) {
        for (opened, socket, early) in self.0.into_values() {
            come(shared, opened, None, Arrival::Flow(socket, early));
        }
    }
}

fn beginning(datagram: &[u8], came: Nanos) -> Early {
    let mut head = [0; 16];
    let length = datagram.len().min(head.len());
    head[..length].copy_from_slice(&datagram[..length]);
    Early {
        head,
        bytes: datagram.len(),
        came,
    }
}

/// A stream joins the test that waits for it, or begins one.
fn come(shared: &Arc<Shared>, opened: Opened, handle: Option<TcpStream>, arrival: Arrival) {
    let address = opened.peer.ip().to_canonical();
    if !shared.options.limits.allows(address) {
        return turn_away(shared, &opened, "its network is not allowed");
    }
    if shared.options.verifier.is_some() {
        let reason = "this server wants credentials, and iperf2's clients have none";
        return turn_away(shared, &opened, reason);
    }
    let waiting = shared.sessions().by_cookie.values().find_map(|entry| {
        let mut state = (entry.peer == address).then(|| entry.lock())?;
        let door = state.iperf2.as_mut()?;
        door.admits(&opened.caller, opened.over_udp)
            .then(|| Arc::clone(entry))
    });
    if let Some(entry) = waiting {
        return entry.bring(entry.lock(), arrival);
    }
    begin(shared, opened, handle, arrival);
}

fn begin(shared: &Arc<Shared>, opened: Opened, handle: Option<TcpStream>, arrival: Arrival) {
    let mut random = [0; 36];
    if thread::random(&mut random).is_err() {
        return turn_away(shared, &opened, "the kernel gives no random bytes");
    }
    let state = EntryState {
        iperf2: Some(Door {
            caller: key(&opened.caller),
            over_udp: opened.over_udp,
            expected: opened.caller.streams.unwrap_or(1).saturating_sub(1),
        }),
        ..EntryState::default()
    };
    let cookie = Cookie::from_random(random);
    let (entry, mut place) = match Place::take(shared, cookie, opened.peer, handle, state) {
        Ok(taken) => taken,
        Err(reason) => return turn_away(shared, &opened, reason),
    };
    if opened.over_udp && !place.takes_unproved(opened.peer.ip()) {
        let reason = "as many UDP tests run as may be of addresses that have not proved themselves";
        return turn_away(shared, &opened, reason);
    }
    let (number, peer) = (place.number, opened.peer);
    let for_thread = Arc::clone(shared);
    let spawned = std::thread::Builder::new()
        .name(format!("test {number}"))
        .stack_size(512 << 10)
        .spawn(move || session::run(&for_thread, &entry, place, opened, arrival));
    if let Err(error) = spawned {
        (shared.observe)(ServerEvent::Refused {
            test: None,
            peer,
            reason: format!("no thread for it: {error}").into(),
            cause: Cause::Host,
        });
    }
}

/// There is no way to tell an iperf2 why: its connection is closed, its datagrams are not answered.
fn turn_away(shared: &Shared, opened: &Opened, reason: &str) {
    // One line for each datagram that anybody sends would be too many.
    if opened.over_udp {
        let (now, mut sessions) = (clock::monotonic(), shared.sessions());
        if now.since(sessions.told_of_udp) < TELL_EVERY {
            return;
        }
        sessions.told_of_udp = now;
    }
    (shared.observe)(ServerEvent::Refused {
        test: None,
        peer: opened.peer,
        reason: reason.into(),
        cause: Cause::TurnedAway,
    });
}
