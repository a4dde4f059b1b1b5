//! Drives one direction on virtual time.

use linerate_lab::path::{Bottleneck, Direction, Discipline, Ecn, Packet, Settings, Verdict};
use linerate_model::units::{BitRate, Bytes, Nanos};

/// A packet of `bytes`, of ours, that may neither be cut nor marked.
pub(crate) fn packet(id: u64, bytes: u64) -> Packet {
    Packet {
        id,
        bytes,
        segments: 1,
        ecn: Ecn::NotCapable,
        dont_fragment: true,
        cross: false,
    }
}

/// A drop-tail bottleneck.
pub(crate) fn bottleneck(rate: &str, queue: u64) -> Bottleneck {
    Bottleneck {
        rate: rate.parse().expect("a rate"),
        queue: Bytes(queue),
        discipline: Discipline::DropTail,
        ecn_threshold: None,
    }
}

/// Ethernet's overhead and nothing else.
pub(crate) fn plain() -> Settings {
    Settings {
        overhead: 38,
        ..Settings::default()
    }
}

/// A direction, and the verdicts that it gave so far.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) direction: Direction,
    pub(crate) verdicts: Vec<Verdict>,
}

impl Course {
    pub(crate) fn new(settings: Settings) -> Self {
        let spec = linerate_lab::path::DirectionSpec {
            settings,
            changes: Vec::new(),
        };
        Self::of(Direction::new(&spec, 1))
    }

    pub(crate) fn of(direction: Direction) -> Self {
        Self {
            direction,
            verdicts: Vec::new(),
        }
    }

    /// Hands a packet in, after waking the machine whenever it asked to be.
    pub(crate) fn offer(&mut self, now: Nanos, packet: Packet) {
        self.run_until(now);
        self.direction.handle_packet(now, packet);
        self.drain();
    }

    /// Lets time pass.
    pub(crate) fn run_until(&mut self, now: Nanos) {
        while let Some(due) = self.direction.poll_timeout().filter(|due| *due <= now) {
            self.direction.handle_timeout(due);
            self.drain();
        }
    }

    /// Lets time pass until nothing is held.
    pub(crate) fn finish(&mut self) {
        self.run_until(Nanos(u64::MAX));
    }

    fn drain(&mut self) {
        while let Some(verdict) = self.direction.poll() {
            self.verdicts.push(verdict);
        }
    }

    /// Offers packets like `model` at `rate` (of IP bytes and 38 a packet) from `from` to `to`; their handle
    /// is the instant of their arrival in nanoseconds.
    pub(crate) fn load(&mut self, model: Packet, rate: &str, from: Nanos, to: Nanos) {
        let rate: BitRate = rate.parse().expect("a rate");
        let wire = model.bytes + 38 * u64::from(model.segments);
        let gap = rate.time_for(Bytes(wire)).0.max(1);
        let mut now = from;
        while now < to {
            self.offer(now, Packet { id: now.0, ..model });
            now = now.plus(Nanos(gap));
        }
    }
}
