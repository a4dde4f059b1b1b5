//! Whether the path carried what it can, whatever made it carry no more.

use crate::facts::bucket;
use crate::facts::case::Case;
use crate::facts::limit::Limit;
use crate::facts::loss::{self, Cause};
use crate::facts::repeats;

/// What shows that the path is full.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Full {
    /// The rate is what an interface carries, bit/s of line rate.
    Link(f64),
    /// Datagrams were sent as fast as the host could, and none was lost.
    NothingLost,
    /// A queue stands.
    Queue {
        /// How long it is, µs.
        queue_us: f64,
        /// Mean round trip, µs.
        mean_us: f64,
        /// Least round trip, µs.
        least_us: f64,
    },
    /// Segments were lost only when a queue had grown.
    QueueAtLosses {
        /// The queue then, µs.
        queue_us: f64,
        /// The round trip then, µs.
        rtt_us: f64,
        /// Least round trip, µs.
        least_us: f64,
    },
    /// Both ends are on one host, and nothing but its stack lies between them.
    OneHost,
    /// Both ends are on one machine, in two network namespaces without a delay between them.
    NextDoor,
    /// BBR, which keeps queues short, without repeats that would explain its rate.
    Bbr,
}

impl Full {
    pub(crate) fn of(case: &Case<'_>) -> Option<Self> {
        if case.limit != Some(Limit::Network) {
            return None;
        }
        case.rate()?;
        if let Some(link) = case.link_bps().filter(|_| case.direction.link_full) {
            return Some(Self::Link(link));
        }
        if case.udp() {
            return (case.datagrams_lost() == Some(0)).then_some(Self::NothingLost);
        }
        if bucket::spent(case).is_some() {
            return None;
        }
        let round_trips = case.round_trips();
        if let (Some(queue_us), Some((mean_us, least_us))) =
            (loss::standing_queue_us(case), round_trips)
        {
            return Some(Self::Queue {
                queue_us,
                mean_us,
                least_us,
            });
        }
        if let (Some(Cause::Queue { rtt_ratio }), Some((_, least_us))) =
            (loss::cause(case), round_trips)
            && !case.next_door()
        {
            return Some(Self::QueueAtLosses {
                queue_us: (rtt_ratio - 1.0) * least_us,
                rtt_us: rtt_ratio * least_us,
                least_us,
            });
        }
        if case.without_network() {
            return Some(Self::OneHost);
        }
        if repeats::explain(case) {
            return None;
        }
        if case.next_door() {
            return Some(Self::NextDoor);
        }
        let mut streams = case.sender()?.streams_of(case.direction.flow);
        let bbr = |name: &str| name.starts_with("bbr");
        streams
            .all(|stream| stream.congestion.as_deref().is_some_and(bbr))
            .then_some(Self::Bbr)
    }
}
