//! Random events.

use linerate_model::watch::UnixMillis;

use super::{Event, Happening};
use crate::random::Random;

/// How much happens in the simulated span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// How often an agent goes away and comes back.
    pub away: usize,
    /// How often a host fails for a while.
    pub fails: usize,
    /// How often an agent runs something else for a while.
    pub busy: usize,
    /// How often the hub dies and starts again.
    pub hub_away: usize,
    /// The longest time that one of these takes, ms.
    pub longest_millis: u64,
}

/// Events between two moments that a seed decides.
pub fn script(
    seed: u64,
    hosts: usize,
    (from, until): (UnixMillis, UnixMillis),
    rates: &Rates,
) -> Vec<Event> {
    let mut random = Random::new(seed);
    let mut events = Vec::new();
    let times = |random: &mut Random| {
        let part =
            |random: &mut Random, of: u64| linerate_model::units::whole(random.unit() * of as f64);
        let begin = from.plus_millis(part(random, until.since(from)));
        let end = begin.plus_millis(1 + part(random, rates.longest_millis));
        (random.below(hosts), begin, end)
    };
    let mut two = |at: UnixMillis, what: Happening, end: UnixMillis, then: Happening| {
        events.push(Event { at, what });
        events.push(Event {
            at: end,
            what: then,
        });
    };
    for _ in 0..rates.away {
        let (host, begin, end) = times(&mut random);
        two(
            begin,
            Happening::Lost(host),
            end,
            Happening::Connected(host),
        );
    }
    for _ in 0..rates.fails {
        let (host, begin, end) = times(&mut random);
        two(begin, Happening::Fails(host), end, Happening::Works(host));
    }
    for _ in 0..rates.busy {
        let (host, at, until) = times(&mut random);
        let what = Happening::Busy(host, until);
        events.push(Event { at, what });
    }
    for _ in 0..rates.hub_away {
        let (host, at, until) = times(&mut random);
        let keeps_leases = host.is_multiple_of(2);
        let what = Happening::HubAway {
            until,
            keeps_leases,
        };
        events.push(Event { at, what });
    }
    events
}
