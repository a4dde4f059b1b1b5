//! iperf2's clients: telling them apart, gathering the streams of a test, and running it.
//!
//! There is no control connection: the first connection or datagram of a client makes a test, and those that say the same
//! from the same address join it until it has as many streams as they say. Its place, streams, samples and bounds are those of
//! all tests of this server.
//!
//! UDP proves nothing of its sender. Over UDP this server therefore sends to an address, beside the report of a flow that is
//! longer than it, only if that address has proved itself (`proof`), once for each proof; a single datagram begins no test
//! (`heard`); and tests that datagrams begin have a share of their own (`super::occupancy`).

pub(super) mod door;
pub(super) mod heard;
mod plan;
pub(super) mod proof;
mod session;

use linerate_wire::iperf2::caller::Caller;

use super::Cause;
use super::refusal::Refusal;

/// What iperf2's clients may join: a test whose streams are still coming.
#[derive(Debug)]
pub(crate) struct Door {
    caller: Caller,
    over_udp: bool,
    /// Streams still expected.
    expected: u16,
}

impl Door {
    /// Whether a stream belongs here.
    fn fits(&self, caller: &Caller, over_udp: bool) -> bool {
        self.expected > 0 && self.over_udp == over_udp && self.caller == key(caller)
    }

    /// Takes a stream in, if it belongs here.
    fn admits(&mut self, caller: &Caller, over_udp: bool) -> bool {
        let fits = self.fits(caller, over_udp);
        self.expected -= u16::from(fits);
        fits
    }
}

/// What all streams of a test say alike.
fn key(caller: &Caller) -> Caller {
    Caller {
        trip_times: caller.trip_times.map(|_| [0; 2]),
        ..*caller
    }
}

fn refusal(reason: impl Into<String>) -> Refusal {
    Refusal::new(Cause::TurnedAway, reason)
}
