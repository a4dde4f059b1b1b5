//! Single datagrams that look like the first of a flow.
//!
//! Anybody's garbage may: only a second one whose number follows makes a test of it.

use std::collections::VecDeque;
use std::net::SocketAddr;

use linerate_model::units::Nanos;
use linerate_wire::iperf2::caller::{Caller, Way, of_datagram};
use linerate_wire::iperf2::datagram::{Head, Layout};

use crate::stream::iperf2::Early;

/// Sources that are remembered.
const MOST: usize = 1024;
/// The second datagram of a flow has come by then: of 1,470 bytes at 1.2 kbit/s.
const LASTS: Nanos = Nanos::from_millis(10_000);
/// A flow whose first datagram has a higher number has been going on for a while: it is no test from its beginning.
const LATEST_FIRST: i64 = 4096;

/// What the first datagrams of a flow say.
#[derive(Debug, Clone)]
pub(super) struct Beginning {
    pub(super) layout: Layout,
    pub(super) caller: Caller,
    /// The datagrams.
    pub(super) early: Vec<Early>,
    /// Of the first of them.
    number: i64,
    /// When that came.
    pub(super) came: Nanos,
}

impl Beginning {
    /// What a datagram begins, if it is one that may begin a flow.
    pub(super) fn of(datagram: &[u8], came: Nanos) -> Option<Self> {
        let (layout, caller) = of_datagram(datagram)?;
        let number = Head::decode(layout, datagram)?.number;
        (number <= LATEST_FIRST).then(|| Self {
            layout,
            caller,
            early: vec![Early::of(datagram, came)],
            number,
            came,
        })
    }

    /// Whether it asks to be sent datagrams, and brings none.
    pub(super) fn asks(&self) -> bool {
        self.caller.way == Way::ToClient
    }

    /// Whether a datagram follows: the next ones have higher numbers, and the last one's is negative.
    fn goes_on(&self, datagram: &[u8]) -> bool {
        Head::decode(self.layout, datagram).is_some_and(|head| {
            let number = head.number.saturating_abs();
            let next = self.number..=self.number.saturating_add(LATEST_FIRST);
            head.microseconds < 1_000_000 && next.contains(&number) && head.number != self.number
        })
    }
}

/// The sources that one datagram came from. Of too many the oldest is forgotten.
#[derive(Debug, Default)]
pub(in super::super) struct Heard(VecDeque<(SocketAddr, Beginning)>);

impl Heard {
    /// Takes a datagram, which may be the `first` one of a flow, and gives what begins with it and the one before.
    pub(super) fn take(
        &mut self,
        first: Option<Beginning>,
        datagram: &[u8],
        source: SocketAddr,
        came: Nanos,
    ) -> Option<Beginning> {
        let known = self.0.iter().position(|(other, _)| *other == source);
        if let Some(known) = known
            && let Some((_, mut beginning)) = self.0.remove(known)
            && came.since(beginning.came) <= LASTS
            && beginning.goes_on(datagram)
        {
            beginning.early.push(Early::of(datagram, came));
            return Some(beginning);
        }
        let first = first?;
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back((source, first));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    /// A datagram of iperf 2.0: a head and digits.
    fn datagram(number: i64) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..64).map(|at| b'0' + at % 10).collect();
        let head = Head {
            number,
            seconds: 1_700_000_000,
            microseconds: 7,
        };
        head.encode(Layout::Bytes12, &mut bytes);
        bytes[12..16].copy_from_slice(b"2345");
        bytes[16..20].copy_from_slice(b"6789");
        bytes
    }

    #[test]
    fn two_datagrams_whose_numbers_follow_begin_a_flow() {
        let mut heard = Heard::default();
        let mut take = |port, number| {
            let bytes = datagram(number);
            let first = Beginning::of(&bytes, Nanos(1));
            let flow = heard.take(first, &bytes, source(port), Nanos(1));
            flow.map(|flow| flow.early.len())
        };
        assert_eq!(take(1, 0), None);
        assert_eq!(take(2, 1), None, "another source");
        assert_eq!(take(1, 1), Some(2));
        assert_eq!(take(2, 1), None, "the same again");
        assert_eq!(take(2, 5), Some(2), "some between were lost");
        assert_eq!(take(3, 0), None);
        assert_eq!(take(3, -1), Some(2), "a flow of one datagram and its end");
        assert_eq!(take(4, -3), None, "the end of one that is over");
        assert_eq!(take(4, 5000), None);
        assert_eq!(take(4, 5001), None, "one that has been going on");
        assert_eq!(take(5, 4000), None);
        assert_eq!(take(5, 3000), None, "which does not follow");
    }

    #[test]
    fn garbage_begins_none_and_what_is_old_or_too_much_is_forgotten() {
        let mut heard = Heard::default();
        let mut take = |bytes: &[u8], port, at| {
            let first = Beginning::of(bytes, at);
            heard.take(first, bytes, source(port), at).is_some()
        };
        let (early, late) = (Nanos(1), Nanos(2).plus(LASTS));
        for port in 0..=u16::try_from(MOST).unwrap() {
            assert!(!take(&datagram(0), port, early));
            assert!(!take(&[0xff; 40], port, early));
            assert!(!take(&datagram(0), port, early));
        }
        assert!(
            !take(&datagram(1), 0, early),
            "it was the first of too many"
        );
        assert!(take(&datagram(1), 9, early));
        assert!(!take(&datagram(1), 10, late));
        assert_eq!(heard.0.len(), MOST - 1);
    }
}
