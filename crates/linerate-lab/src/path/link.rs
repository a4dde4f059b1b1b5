//! The bottleneck: a queue, and a link that sends one packet after the other.

use std::collections::VecDeque;

use linerate_model::units::{Bytes, Nanos};

use super::codel::ControlLaw;
use super::packet::{Ecn, Packet};
use super::settings::{Bottleneck, Discipline};

/// Units of a byte: 8 bits of 10^9, so that a service time leaves a whole remainder.
const BYTE: u128 = 8_000_000_000;

/// A packet on its way through the machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) packet: Packet,
    /// Its place in the order of arrival.
    pub(super) place: u64,
    pub(super) arrived: Nanos,
    /// What it costs wherever a rate counts: IP bytes and overhead.
    pub(super) cost: u64,
    /// Packets that it is on the wire.
    pub(super) pieces: u32,
    pub(super) marked: bool,
    pub(super) fragmented: bool,
    pub(super) copies: u32,
}

/// What the link did with the head of its queue.
#[derive(Debug, Clone, Copy)]
pub(super) enum Served {
    /// Sent whole after waiting this long for its turn.
    Sent(Held, Nanos),
    /// Dropped by `CoDel`.
    Dropped(Held),
}

/// A link without a rate sends at once.
#[derive(Debug, Clone, Default)]
pub(super) struct Link {
    bottleneck: Option<Bottleneck>,
    waiting: VecDeque<Held>,
    waiting_bytes: u64,
    most_waiting: u64,
    /// What is being sent, how long it waited, and when it will have been sent.
    sending: Option<(Held, Nanos, Nanos)>,
    /// Dropped since the last [`Link::serve`].
    dropped: VecDeque<Held>,
    /// What rounding took from the last service time, in nanoseconds × bit/s.
    remainder: u128,
    law: ControlLaw,
}

impl Link {
    pub(super) fn set(&mut self, bottleneck: Option<Bottleneck>) {
        self.bottleneck = bottleneck;
        self.remainder = 0;
    }

    /// Most that ever waited.
    pub(super) fn most_waiting(&self) -> Bytes {
        Bytes(self.most_waiting)
    }

    /// Takes a packet; gives it back where the queue is full.
    pub(super) fn offer(&mut self, now: Nanos, mut held: Held) -> Result<(), Held> {
        let Some(bottleneck) = self.bottleneck else {
            self.enqueue(held);
            self.start(now);
            return Ok(());
        };
        let room = bottleneck.queue.0.saturating_sub(self.waiting_bytes);
        // A packet that finds nothing waiting is taken: a queue always has room for one.
        if held.cost > room && !self.waiting.is_empty() {
            return Err(held);
        }
        let over = bottleneck
            .ecn_threshold
            .is_some_and(|threshold| self.waiting_bytes > threshold.0);
        held.marked |= over && held.packet.ecn == Ecn::Capable;
        self.enqueue(held);
        if self.sending.is_none() {
            self.start(now);
        }
        self.most_waiting = self.most_waiting.max(self.waiting_bytes);
        Ok(())
    }

    fn enqueue(&mut self, held: Held) {
        self.waiting_bytes = self.waiting_bytes.saturating_add(held.cost);
        self.waiting.push_back(held);
    }

    /// When [`Link::serve`] has something to say.
    pub(super) fn next(&self) -> Option<Nanos> {
        match (self.dropped.front(), &self.sending) {
            (Some(_), _) => Some(Nanos::ZERO),
            (None, Some((_, _, until))) => Some(*until),
            (None, None) => None,
        }
    }

    /// What was sent or dropped by `now`, one packet a call.
    pub(super) fn serve(&mut self, now: Nanos) -> Option<Served> {
        if let Some(held) = self.dropped.pop_front() {
            return Some(Served::Dropped(held));
        }
        let (held, waited, until) = self.sending.filter(|(_, _, until)| *until <= now)?;
        self.sending = None;
        self.start(until);
        Some(Served::Sent(held, waited))
    }

    /// Begins to send the next packet that is not dropped.
    fn start(&mut self, now: Nanos) {
        // Ends: each turn takes a packet from the queue.
        while self.sending.is_none()
            && let Some(mut held) = self.waiting.pop_front()
        {
            self.waiting_bytes = self.waiting_bytes.saturating_sub(held.cost);
            let waited = now.since(held.arrived);
            if let Some(ecn) = self.law_drops(now, waited, &held) {
                if !(ecn && held.packet.ecn != Ecn::NotCapable) {
                    self.dropped.push_back(held);
                    continue;
                }
                held.marked = true;
            }
            let service = self.service_time(held.cost);
            self.sending = Some((held, waited, now.plus(service)));
        }
        if self.sending.is_none() {
            self.remainder = 0;
        }
    }

    /// Whether `CoDel` drops the head, and if so whether it may mark instead.
    fn law_drops(&mut self, now: Nanos, waited: Nanos, held: &Held) -> Option<bool> {
        let Discipline::Codel(codel) = self.bottleneck?.discipline else {
            return None;
        };
        let head = held.cost / u64::from(held.pieces.max(1));
        let drops = self
            .law
            .drops(&codel, now, waited, head, self.waiting_bytes);
        drops.then_some(codel.ecn)
    }

    fn service_time(&mut self, cost: u64) -> Nanos {
        let Some(bottleneck) = self.bottleneck else {
            return Nanos::ZERO;
        };
        let rate = u128::from(bottleneck.rate.0.max(1));
        let work = u128::from(cost) * BYTE + self.remainder;
        self.remainder = work % rate;
        Nanos(u64::try_from(work / rate).unwrap_or(u64::MAX))
    }
}
