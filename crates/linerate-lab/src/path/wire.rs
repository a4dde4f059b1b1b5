//! The delay line: packets on their way, in order or overtaken.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use linerate_model::units::Nanos;

use super::link::Held;
use super::random;
use super::settings::Settings;

/// The extra delay of jitter goes from one random value to the next in this time, or in as much time as
/// it is large where that is longer: then it never falls faster than time passes, so nothing is overtaken.
const JITTER_PERIOD: Nanos = Nanos::from_millis(10);

/// A packet and when it arrives.
#[derive(Debug, Clone)]
struct Flight {
    due: Nanos,
    held: Held,
}

impl PartialEq for Flight {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Flight {}

impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Flight {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.due, self.held.place).cmp(&(other.due, other.held.place))
    }
}

/// Packets on the wire.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    seed: u64,
    /// When the first packet was sent: jitter counts from there, so that a run does not depend on the epoch.
    origin: Option<Nanos>,
    ordered: VecDeque<Flight>,
    last_due: Nanos,
    slow: BinaryHeap<Reverse<Flight>>,
}

impl Wire {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            origin: None,
            ordered: VecDeque::new(),
            last_due: Nanos::ZERO,
            slow: BinaryHeap::new(),
        }
    }

    /// Puts a packet on the wire; `extra` lets those behind it overtake it.
    pub(super) fn send(
        &mut self,
        now: Nanos,
        settings: &Settings,
        held: Held,
        extra: Option<Nanos>,
    ) {
        let origin = *self.origin.get_or_insert(now);
        let jitter = jitter_at(self.seed, settings.jitter, now.since(origin));
        let due = now.plus(settings.delay).plus(jitter);
        if let Some(extra) = extra {
            let due = due.plus(extra);
            self.slow.push(Reverse(Flight { due, held }));
            return;
        }
        // A path that becomes shorter does not let later packets overtake either.
        self.last_due = self.last_due.max(due);
        let due = self.last_due;
        self.ordered.push_back(Flight { due, held });
    }

    /// When the next packet arrives.
    pub(super) fn next(&self) -> Option<Nanos> {
        let ordered = self.ordered.front().map(|flight| flight.due);
        let slow = self.slow.peek().map(|Reverse(flight)| flight.due);
        [ordered, slow].into_iter().flatten().min()
    }

    /// The next packet that has arrived by `now`, with its instant.
    pub(super) fn arrive(&mut self, now: Nanos) -> Option<(Nanos, Held)> {
        let due = self.next().filter(|due| *due <= now)?;
        let from_slow = self.slow.peek().is_some_and(|Reverse(slow)| {
            let ordered = self.ordered.front();
            ordered.is_none_or(|ordered| slow < ordered)
        });
        let flight = if from_slow {
            self.slow.pop().map(|Reverse(flight)| flight)
        } else {
            self.ordered.pop_front()
        };
        flight.map(|flight| (due, flight.held))
    }
}

/// The extra delay at `now` since the first packet: between random values, each of which only its place in time decides.
fn jitter_at(seed: u64, jitter: Nanos, now: Nanos) -> Nanos {
    if jitter == Nanos::ZERO {
        return Nanos::ZERO;
    }
    let period = jitter.max(JITTER_PERIOD).0;
    let (place, into) = (now.0 / period, (now.0 % period) as f64 / period as f64);
    let value = |place| random::unit(random::at(seed, place));
    let share = value(place) * (1.0 - into) + value(place + 1) * into;
    Nanos::from_secs_f64(jitter.as_secs_f64() * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_within_its_bound_and_overtakes_nothing() {
        for jitter in [Nanos::from_millis(1), Nanos::from_millis(25)] {
            let mut last = Nanos::ZERO;
            let (mut least, mut most) = (f64::MAX, 0.0_f64);
            for step in 0..1_000_000 {
                let now = Nanos(step * 10_000);
                let extra = jitter_at(5, jitter, now);
                assert!(extra <= jitter);
                let arrival = now.plus(extra);
                // A nanosecond is what rounding may take.
                assert!(arrival.plus(Nanos(1)) >= last, "{now} {arrival} {last}");
                last = arrival;
                let share = extra.as_secs_f64() / jitter.as_secs_f64();
                (least, most) = (least.min(share), most.max(share));
            }
            assert!(least < 0.05 && most > 0.95, "{least} {most}");
        }
    }
}
