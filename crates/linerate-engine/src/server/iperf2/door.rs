//! The way in: connections and datagrams of iperf2's clients, on the accepting thread.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;

use linerate_kernel::{clock, thread};
use linerate_model::units::Nanos;
use linerate_wire::cookie::Cookie;
use linerate_wire::iperf2::caller::Caller;
use linerate_wire::iperf2::datagram::Layout;

use super::super::listen::Pending;
use super::super::occupancy::Origin;
use super::super::place::Place;
use super::super::udp_accept::find;
use super::super::{Arrival, Cause, Entry, EntryState, ServerEvent, Shared};
use super::heard::Beginning;
use super::session::{self, Opened};
use super::{Door, key};
use crate::stream::iperf2::Early;

/// Datagrams of a flow that are kept until it has its socket; the rest of them counts as lost.
const MOST_EARLY: usize = 4096;
/// New flows of one look: each takes a descriptor before it is known whether it may have one.
const MOST_NEW: usize = 256;
/// How often a refusal of flows is reported.
const TELL_EVERY: Nanos = Nanos::from_millis(1000);
/// Why a client gets no datagrams.
pub(super) const UNPROVED: &str = "it wants UDP from this server, and its address has not proved that it is there; a TCP test from \
                                   there (iperf -c, without -u) proves it for one test within ten minutes";
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
        came: clock::monotonic(),
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
pub(in super::super) struct NewFlows(HashMap<SocketAddr, NewFlow>);

/// A flow that has its own socket.
struct NewFlow {
    opened: Opened,
    socket: UdpSocket,
    /// Its datagrams that came to the listener.
    early: Vec<Early>,
    /// Those that came to the socket while it was made: after all that wait at the listener.
    between: Vec<Early>,
}

impl NewFlows {
    /// Takes a datagram that may be iperf2's; `open` makes a socket that hears its sender alone.
    pub(in super::super) fn take(
        &mut self,
        shared: &Shared,
        datagram: &[u8],
        source: SocketAddr,
        port: u16,
        open: impl FnOnce() -> std::io::Result<(UdpSocket, Vec<Early>)>,
    ) {
        let came = clock::monotonic();
        if let Some(flow) = self.0.get_mut(&source) {
            if flow.early.len() < MOST_EARLY && datagram.len() >= SHORTEST {
                flow.early.push(Early::of(datagram, came));
            }
            return;
        }
        if !shared.options.limits.allows(source.ip().to_canonical()) || self.0.len() >= MOST_NEW {
            return;
        }
        let first = Beginning::of(datagram, came);
        let proved = first.is_some() && shared.sessions().proofs.holds(source.ip(), came);
        // A client that wants to be sent datagrams sends one alone.
        let begins = match first {
            Some(first) if proved || first.asks() => Some(first),
            first => shared.heard().take(first, datagram, source, came),
        };
        let Some(begins) = begins else { return };
        let opened = Opened {
            caller: begins.caller,
            over_udp: true,
            peer: source,
            came: begins.came,
            layout: begins.layout,
            read: 0,
            port,
        };
        // The first flow of a test has used its proof up.
        if begins.asks() && !proved && !is_awaited(shared, &opened) {
            return turn_away(shared, &opened, UNPROVED);
        }
        let Ok((socket, between)) = open() else {
            return;
        };
        let flow = NewFlow {
            opened,
            socket,
            early: begins.early,
            between,
        };
        self.0.insert(source, flow);
    }

    /// Hands them on.
    pub(in super::super) fn hand_on(self, shared: &Arc<Shared>) {
        for mut flow in self.0.into_values() {
            flow.early.append(&mut flow.between);
            let arrival = Arrival::Flow(flow.socket, flow.early);
            come(shared, flow.opened, None, arrival);
        }
    }
}

/// Whether a test waits for this flow.
fn is_awaited(shared: &Shared, opened: &Opened) -> bool {
    let fits = |entry: &Entry| {
        let state = entry.lock();
        let door = state.iperf2.as_ref();
        door.is_some_and(|door| door.fits(&opened.caller, opened.over_udp))
    };
    find(shared, address_of(opened), fits).is_some()
}

fn address_of(opened: &Opened) -> IpAddr {
    opened.peer.ip().to_canonical()
}

/// A stream joins the test that waits for it, or begins one.
fn come(shared: &Arc<Shared>, opened: Opened, handle: Option<TcpStream>, arrival: Arrival) {
    let address = address_of(&opened);
    if !shared.options.limits.allows(address) {
        return turn_away(shared, &opened, "its network is not allowed");
    }
    if shared.options.verifier.is_some() {
        let reason = "this server wants credentials, and iperf2's clients have none";
        return turn_away(shared, &opened, reason);
    }
    let sessions = shared.sessions();
    for entry in sessions.by_cookie.values().filter(|it| it.peer == address) {
        let mut state = entry.lock();
        let door = state.iperf2.as_mut();
        // Under the same lock: a test that stops waiting takes what was admitted.
        if door.is_some_and(|door| door.admits(&opened.caller, opened.over_udp)) {
            return entry.bring(state, arrival);
        }
    }
    drop(sessions);
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
    // Whoever has tested over TCP may be forged as well; nobody forges this host to itself.
    let origin = if opened.over_udp && !address_of(&opened).is_loopback() {
        Origin::Claimed
    } else {
        Origin::Proved
    };
    let taken = Place::take(shared, cookie, opened.peer, handle, origin, state);
    let (entry, place) = match taken {
        Ok(taken) => taken,
        Err(reason) => return turn_away(shared, &opened, reason),
    };
    let (number, peer, over_udp) = (place.number, opened.peer, opened.over_udp);
    let for_thread = Arc::clone(shared);
    let spawned = std::thread::Builder::new()
        .name(format!("test {number}"))
        .stack_size(512 << 10)
        .spawn(move || session::run(&for_thread, &entry, place, opened, arrival));
    if let Err(error) = spawned {
        let refused = ServerEvent::Refused {
            test: None,
            peer,
            reason: format!("no thread for it: {error}").into(),
            cause: Cause::Host,
        };
        tell_refusal(shared, over_udp, refused);
    }
}

/// There is no way to tell an iperf2 why: its connection is closed, its datagrams are not answered.
fn turn_away(shared: &Shared, opened: &Opened, reason: &str) {
    let refused = ServerEvent::Refused {
        test: None,
        peer: opened.peer,
        reason: reason.into(),
        cause: Cause::TurnedAway,
    };
    tell_refusal(shared, opened.over_udp, refused);
}

/// Tells of a refusal; of those that are `bounded` one a second: a line for each datagram that anybody sends would be too many.
pub(super) fn tell_refusal(shared: &Shared, bounded: bool, refused: ServerEvent) {
    if bounded {
        let (now, mut sessions) = (clock::monotonic(), shared.sessions());
        if now.since(sessions.told_of_udp) < TELL_EVERY {
            return;
        }
        sessions.told_of_udp = now;
    }
    (shared.observe)(refused);
}
