//! The machine: packets in, verdicts out.

use std::collections::VecDeque;

use linerate_model::units::Nanos;

use super::counters::Counters;
use super::packet::{Fate, Packet, Verdict};
use super::settings::DirectionSpec;

/// One direction of a path.
#[derive(Debug, Clone)]
pub struct Direction {
    spec: DirectionSpec,
    counters: Counters,
    now: Nanos,
    wire: VecDeque<(Nanos, Packet)>,
    ready: VecDeque<Verdict>,
}

impl Direction {
    /// A direction that follows `spec`; equal seeds and equal calls give equal verdicts.
    pub fn new(spec: &DirectionSpec, seed: u64) -> Self {
        let _ = seed;
        Self {
            spec: spec.clone(),
            counters: Counters::default(),
            now: Nanos::ZERO,
            wire: VecDeque::new(),
            ready: VecDeque::new(),
        }
    }

    /// The test begins: from `now` on the changes' times are counted. Without it nothing ever changes.
    pub fn begin(&mut self, now: Nanos) {
        self.advance(now);
    }

    /// Takes a packet that arrives at `now`. A `now` before an earlier one counts as that one.
    pub fn handle_packet(&mut self, now: Nanos, packet: Packet) {
        self.advance(now);
        let due = self.now.plus(self.spec.settings.delay);
        let class = self.counters.class(&packet);
        class.offered.book(&packet);
        class.held.book(&packet);
        self.wire.push_back((due, packet));
        self.advance(now);
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.advance(now);
    }

    /// The next verdict; to be called until `None` after each `handle_` call.
    pub fn poll(&mut self) -> Option<Verdict> {
        self.ready.pop_front()
    }

    /// When [`Direction::handle_timeout`] is to be called next; `None` while nothing is held.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.wire.front().map(|(due, _)| *due)
    }

    /// What it did so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        while let Some((due, packet)) = self
            .wire
            .front()
            .copied()
            .filter(|(due, _)| *due <= self.now)
        {
            self.wire.pop_front();
            let class = self.counters.class(&packet);
            class.held.unbook(&packet);
            class.delivered.book(&packet);
            self.ready.push_back(Verdict {
                id: packet.id,
                fate: Fate::Deliver,
                due,
            });
        }
    }
}
