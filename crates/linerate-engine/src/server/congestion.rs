//! The congestion control of accepted connections.
//!
//! A connection that was BBR's for an instant is paced by a timer for good: `bbr_init` (`net/ipv4/tcp_bbr.c`)
//! sets the socket's `sk_pacing_status`, and no later choice of another algorithm clears it. An accepted
//! connection begins with the host's default before anybody can ask for another one, so with BBR as the
//! default `-R -C cubic` would measure a paced CUBIC (9 instead of 65 Gbit/s over veth here). Where that is
//! so, accepted connections begin with Reno instead, which leaves nothing behind, and get what the test asks
//! for, or the default, before their first byte of payload.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

use linerate_kernel::{route, tcp};

/// What they begin with: every kernel has it and everybody may choose it.
const NEUTRAL: &str = "reno";

/// The host's default, where accepted connections do not begin with it.
#[derive(Debug, Clone, Default)]
pub(super) struct AcceptedCongestion {
    default: Option<String>,
}

impl AcceptedCongestion {
    /// Sees to it that connections accepted from here on leave the choice open.
    pub(super) fn of(listeners: &[TcpListener]) -> Self {
        let Some(default) = listeners
            .iter()
            .find_map(|listener| tcp::congestion(listener).ok())
            .filter(|name| name.starts_with("bbr"))
        else {
            return Self::default();
        };
        for listener in listeners {
            // Only where the way back is open too: it may be a module that ordinary users may not choose.
            let back = tcp::set_congestion(listener, &default);
            if back.is_err() || tcp::set_congestion(listener, NEUTRAL).is_err() {
                return Self::default();
            }
        }
        Self {
            default: Some(default),
        }
    }

    /// Gives an accepted connection what it would have begun with, unless `asked` is set later anyway.
    ///
    /// # Errors
    /// Where the kernel refuses what it allowed for the listener.
    pub(super) fn settle(
        &self,
        stream: &TcpStream,
        peer: SocketAddr,
        asked: Option<&str>,
    ) -> io::Result<()> {
        let Some(default) = self.default.as_deref().filter(|_| asked.is_none()) else {
            return Ok(());
        };
        // A route's own choice was made at once, and stands; where that is Reno only the route tells.
        let by_route = || {
            route::to(peer.ip())
                .ok()
                .flatten()
                .is_some_and(|route| route.congestion.is_some())
        };
        if tcp::congestion(stream)? != NEUTRAL || by_route() {
            return Ok(());
        }
        tcp::set_congestion(stream, default)
            .map_err(|error| io::Error::new(error.source.kind(), error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// A connection accepted from a listener whose own default is `default`; `None` where the kernel
    /// does not have it.
    fn accepted(default: &str) -> Option<(AcceptedCongestion, TcpStream, SocketAddr, TcpStream)> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        tcp::set_congestion(&listener, default).ok()?;
        let listeners = [listener];
        let choice = AcceptedCongestion::of(&listeners);
        let active = TcpStream::connect(listeners[0].local_addr().unwrap()).unwrap();
        let (passive, peer) = listeners[0].accept().unwrap();
        Some((choice, passive, peer, active))
    }

    #[test]
    fn a_default_that_paces_is_put_off_until_it_is_chosen() {
        let Some((choice, stream, peer, _active)) = accepted("bbr") else {
            let mut talk = io::stderr();
            drop(writeln!(
                talk,
                "skipped: a default that paces: this kernel does not offer bbr"
            ));
            return;
        };
        assert_eq!(tcp::congestion(&stream).unwrap(), NEUTRAL);
        choice.settle(&stream, peer, Some("cubic")).unwrap();
        assert_eq!(tcp::congestion(&stream).unwrap(), NEUTRAL);
        choice.settle(&stream, peer, None).unwrap();
        assert_eq!(tcp::congestion(&stream).unwrap(), "bbr");
    }

    #[test]
    fn a_default_that_does_not_pace_is_left_alone() {
        let (choice, stream, peer, _active) = accepted(NEUTRAL).unwrap();
        assert_eq!(choice.default, None);
        choice.settle(&stream, peer, None).unwrap();
        assert_eq!(tcp::congestion(&stream).unwrap(), NEUTRAL);
    }
}
