//! The machine: packets in, verdicts out.

use std::collections::VecDeque;

use linerate_model::units::Nanos;

use super::counters::Counters;
use super::link::{Held, Link, Served};
use super::loss::LossModel;
use super::packet::{Cause, Fate, Packet, Verdict};
use super::policer::TokenBucket;
use super::random::Random;
use super::settings::{Change, DirectionSpec, Settings};
use super::wire::Wire;

/// Which stream of random numbers decides what.
const LOSS: u64 = 0;
const DUPLICATION: u64 = 1;
const REORDERING: u64 = 2;
const JITTER: u64 = 3;

/// One direction of a path.
///
/// It holds what it was given until that is due, however much that is: its caller bounds what it hands in.
/// In steady state it allocates nothing; a packet costs O(1), with reordering O(log n).
#[derive(Debug, Clone)]
pub struct Direction {
    settings: Settings,
    changes: VecDeque<Change>,
    begun: Option<Nanos>,
    now: Nanos,
    arrivals: u64,
    /// One more than the latest place in the order of arrival that was let pass.
    passed: u64,
    policer: Option<TokenBucket>,
    link: Link,
    loss: LossModel,
    duplication: Random,
    reordering: Random,
    wire: Wire,
    ready: VecDeque<Verdict>,
    counters: Counters,
}

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Event {
    Change,
    Link,
    Wire,
}

impl Direction {
    /// A direction that follows `spec`; equal seeds and equal calls give equal verdicts.
    pub fn new(spec: &DirectionSpec, seed: u64) -> Self {
        let settings = spec.settings;
        let mut link = Link::default();
        link.set(settings.bottleneck);
        Self {
            settings,
            changes: spec.changes.iter().cloned().collect(),
            begun: None,
            now: Nanos::ZERO,
            arrivals: 0,
            passed: 0,
            policer: settings
                .policer
                .map(|policer| TokenBucket::new(policer, Nanos::ZERO)),
            link,
            loss: LossModel::new(settings.loss, Random::new(seed, LOSS)),
            duplication: Random::new(seed, DUPLICATION),
            reordering: Random::new(seed, REORDERING),
            wire: Wire::new(super::random::at(seed, JITTER)),
            ready: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// The test begins: from `now` on the changes' times are counted. Without it nothing ever changes.
    pub fn begin(&mut self, now: Nanos) {
        self.advance(now);
        self.begun = Some(self.now);
        self.advance(now);
    }

    /// Takes a packet that arrives at `now`. A `now` before an earlier one counts as that one.
    pub fn handle_packet(&mut self, now: Nanos, packet: Packet) {
        self.advance(now);
        self.admit(packet);
        self.advance(now);
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.advance(now);
    }

    /// The next verdict; to be called until `None` after each call that takes a `now`.
    pub fn poll(&mut self) -> Option<Verdict> {
        self.ready.pop_front()
    }

    /// When [`Direction::handle_timeout`] is to be called next; `None` while nothing is to come.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.next().map(|(due, _)| due)
    }

    /// What it did so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The settings in force.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The earliest event; of two at the same instant, the one that is further up.
    fn next(&self) -> Option<(Nanos, Event)> {
        let change = self
            .changes
            .front()
            .zip(self.begun)
            .map(|(change, begun)| (begun.plus(change.at), Event::Change));
        let link = self.link.next().map(|due| (due, Event::Link));
        let wire = self.wire.next().map(|due| (due, Event::Wire));
        [change, link, wire]
            .into_iter()
            .flatten()
            .min_by_key(|(due, _)| *due)
    }

    /// Does all that is due by `now`, each thing at its own instant.
    fn advance(&mut self, now: Nanos) {
        let now = self.now.max(now);
        // Ends: a change happens once, and a packet passes link and wire once each.
        while let Some((due, event)) = self.next().filter(|(due, _)| *due <= now) {
            self.now = self.now.max(due);
            match event {
                Event::Change => self.change(),
                Event::Link => self.serve(),
                Event::Wire => self.arrive(),
            }
        }
        self.now = now;
    }

    fn change(&mut self) {
        let Some(change) = self.changes.pop_front() else {
            return;
        };
        let new = change.settings;
        if new.bottleneck != self.settings.bottleneck {
            self.link.set(new.bottleneck);
        }
        self.loss.set(new.loss);
        match (new.policer, &mut self.policer) {
            (Some(policer), Some(bucket)) if self.settings.policer != Some(policer) => {
                bucket.set(policer, self.now);
            }
            (Some(policer), None) => self.policer = Some(TokenBucket::new(policer, self.now)),
            (None, _) => self.policer = None,
            (Some(_), Some(_)) => {}
        }
        self.settings = new;
        self.counters.changes += 1;
    }

    fn admit(&mut self, packet: Packet) {
        let packet = Packet {
            segments: packet.segments.max(1),
            ..packet
        };
        let held = Held {
            packet,
            place: self.arrivals,
            arrived: self.now,
            cost: self.cost(packet.bytes, packet.segments),
            pieces: packet.segments,
            marked: false,
            fragmented: false,
            copies: 0,
        };
        self.arrivals += 1;
        let class = self.counters.class(&packet);
        class.offered.book(&packet);
        class.held.book(&packet);
        self.measure(held);
    }

    /// What packets cost wherever a rate counts.
    fn cost(&self, bytes: u64, packets: u32) -> u64 {
        bytes.saturating_add(u64::from(packets) * u64::from(self.settings.overhead))
    }

    /// The largest size that passes. A packet that may be cut goes on as one, which costs and is lost as often as
    /// the fragments of it would be: the far host puts them together again, and has none where one is missing.
    fn measure(&mut self, mut held: Held) {
        let Packet {
            bytes, segments, ..
        } = held.packet;
        let largest = bytes.div_ceil(u64::from(segments));
        if let Some(limit) = self.settings.max_packet
            && largest > u64::from(limit.bytes)
        {
            if held.packet.dont_fragment {
                let fate = Fate::TooBig {
                    mtu: limit.bytes,
                    answer: limit.icmp,
                };
                return self.lose(&held, Cause::TooBig, fate);
            }
            let (pieces, bytes) = limit.cut(bytes);
            held.pieces = pieces;
            held.cost = self.cost(bytes, pieces);
            held.fragmented = true;
        }
        self.police(held);
    }

    fn police(&mut self, held: Held) {
        let now = self.now;
        if let Some(bucket) = &mut self.policer
            && !bucket.conforms(now, held.cost)
        {
            return self.lose(&held, Cause::Policer, Fate::Drop(Cause::Policer));
        }
        match self.link.offer(now, held) {
            Ok(()) => self.counters.queue_bytes_max = self.link.most_waiting(),
            Err(held) => self.lose(&held, Cause::Queue, Fate::Drop(Cause::Queue)),
        }
    }

    fn serve(&mut self) {
        match self.link.serve(self.now) {
            Some(Served::Dropped(held)) => {
                self.lose(&held, Cause::Codel, Fate::Drop(Cause::Codel));
            }
            Some(Served::Sent(held, waited)) => {
                let class = self.counters.class(&held.packet);
                class.queued += u64::from(waited > Nanos::ZERO);
                class.queue_time_total = class.queue_time_total.plus(waited);
                class.queue_time_max = class.queue_time_max.max(waited);
                self.transmit(held);
            }
            None => {}
        }
    }

    /// What random loss, duplication and reordering make of a packet that has left the link.
    fn transmit(&mut self, mut held: Held) {
        if !self.loss.is_idle() {
            let hits = self.loss.ask(held.pieces);
            self.counters.loss_trials += u64::from(held.pieces);
            self.counters.loss_hits += hits.segments;
            self.counters.loss_runs += hits.runs;
            if hits.segments > 0 {
                return self.lose(&held, Cause::Loss, Fate::Drop(Cause::Loss));
            }
        }
        held.copies = u32::from(self.duplication.happens(self.settings.duplicate));
        let extra = self
            .settings
            .reorder
            .filter(|reorder| self.reordering.happens(reorder.fraction))
            .map(|reorder| reorder.delay);
        self.wire.send(self.now, &self.settings, held, extra);
    }

    fn arrive(&mut self) {
        let Some((due, held)) = self.wire.arrive(self.now) else {
            return;
        };
        let fate = match (held.marked, held.copies) {
            // A marked packet is not copied: one verdict cannot ask for both.
            (true, _) => Fate::DeliverMarked,
            (false, 0) => Fate::Deliver,
            (false, copies) => Fate::Duplicate(copies),
        };
        let overtaken = held.place < self.passed;
        self.passed = self.passed.max(held.place + 1);
        let packet = &held.packet;
        let class = self.counters.class(packet);
        class.held.unbook(packet);
        class.delivered.book(packet);
        let transit = due.since(held.arrived);
        class.transit_min = Some(
            class
                .transit_min
                .map_or(transit, |least| least.min(transit)),
        );
        class.transit_max = class.transit_max.max(transit);
        for (happened, tally) in [
            (fate == Fate::DeliverMarked, &mut class.marked),
            (matches!(fate, Fate::Duplicate(_)), &mut class.duplicated),
            (overtaken, &mut class.overtaken),
            (held.fragmented, &mut class.fragmented),
        ] {
            if happened {
                tally.book(packet);
            }
        }
        self.say(packet.id, fate, due);
    }

    fn lose(&mut self, held: &Held, cause: Cause, fate: Fate) {
        let class = self.counters.class(&held.packet);
        class.held.unbook(&held.packet);
        class.dropped.book(cause, &held.packet);
        self.say(held.packet.id, fate, self.now);
    }

    fn say(&mut self, id: u64, fate: Fate, due: Nanos) {
        self.ready.push_back(Verdict { id, fate, due });
    }
}
