//! The congestion control of accepted connections.
//!
//! A connection that was BBR's for an instant is paced by a timer for good: `bbr_init` (`net/ipv4/tcp_bbr.c`)
//! sets the socket's `sk_pacing_status`, and no later choice of another algorithm clears it. An accepted
//! connection begins with the host's default before anybody can ask for another one, so with BBR as the
//! default `-R -C cubic` would measure a paced CUBIC (9 instead of 65 Gbit/s over veth here). Where that is
//! so, accepted connections begin with Reno instead, which leaves nothing behind, and get what the test asks
//! for, or the host's default of that moment, before their first byte of payload.
//!
//! Listening sockets that were passed in are left as they are: the choice stays with the program that passes them.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

use linerate_kernel::{route, tcp};
use socket2::{Domain, Socket, Type};

/// What they begin with: every kernel has it and everybody may choose it.
const NEUTRAL: &str = "reno";

/// Whether accepted connections begin with [`NEUTRAL`] whatever the host's default is.
#[derive(Debug, Clone, Copy)]
pub(super) struct AcceptedCongestion {
    prepared: bool,
}

impl AcceptedCongestion {
    /// Leaves listeners, and what they accept, alone.
    pub(super) const fn untouched() -> Self {
        Self { prepared: false }
    }

    /// Sees to it that what these accept from here on leaves the choice open.
    pub(super) fn prepare(listeners: &[TcpListener]) -> Self {
        // Only where the way back is open too: the default may be one that ordinary users may not choose.
        // To choose what a socket has already is always granted, so it takes the detour.
        let back = || {
            let socket = fresh().ok()?;
            let default = tcp::congestion(&socket).ok()?;
            tcp::set_congestion(&socket, NEUTRAL).ok()?;
            tcp::set_congestion(&socket, &default).ok()
        };
        let prepared = back().is_some();
        if prepared {
            for listener in listeners {
                // Where it fails, connections begin with the default, as without us.
                drop(tcp::set_congestion(listener, NEUTRAL));
            }
        }
        Self { prepared }
    }

    /// Gives an accepted connection what it would have begun with, unless `asked` is set later anyway.
    ///
    /// Where the kernel refuses, which takes a default that became forbidden meanwhile, it stays with
    /// [`NEUTRAL`], and the record names that.
    pub(super) fn settle(self, stream: &TcpStream, peer: SocketAddr, asked: Option<&str>) {
        if !self.prepared || asked.is_some() || !begins_neutral(stream) {
            return;
        }
        let default = fresh().and_then(|socket| tcp::congestion(&socket));
        let Some(default) = default.ok().filter(|name| name != NEUTRAL) else {
            return;
        };
        // A route's own choice was made at once, and stands; where that is Reno only the route tells.
        let by_route = route::to(peer.ip())
            .ok()
            .flatten()
            .is_some_and(|route| route.congestion.is_some());
        if !by_route {
            drop(tcp::set_congestion(stream, &default));
        }
    }
}

/// A socket that has the host's default of this moment.
fn fresh() -> io::Result<Socket> {
    Socket::new(Domain::IPV4, Type::STREAM, None)
        .or_else(|_| Socket::new(Domain::IPV6, Type::STREAM, None))
}

fn begins_neutral(stream: &TcpStream) -> bool {
    tcp::congestion(stream).is_ok_and(|name| name == NEUTRAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_is_put_off_until_it_is_chosen() {
        let default = tcp::congestion(fresh().unwrap()).unwrap();
        let listeners = [TcpListener::bind("127.0.0.1:0").unwrap()];
        let choice = AcceptedCongestion::prepare(&listeners);
        assert!(choice.prepared);
        let _active = TcpStream::connect(listeners[0].local_addr().unwrap()).unwrap();
        let (stream, peer) = listeners[0].accept().unwrap();
        assert_eq!(tcp::congestion(&stream).unwrap(), NEUTRAL);
        AcceptedCongestion::untouched().settle(&stream, peer, None);
        assert_eq!(tcp::congestion(&stream).unwrap(), NEUTRAL);
        choice.settle(&stream, peer, Some("cubic"));
        assert_eq!(tcp::congestion(&stream).unwrap(), NEUTRAL);
        choice.settle(&stream, peer, None);
        assert_eq!(tcp::congestion(&stream).unwrap(), default);
    }
}
