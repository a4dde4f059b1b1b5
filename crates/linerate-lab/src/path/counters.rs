//! What a direction did, by class of traffic and by cause.

use linerate_model::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::packet::{Cause, Packet};

/// A number of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Packets as they came; a super-segment is one.
    pub packets: u64,
    /// Segments of them.
    pub segments: u64,
    /// IP bytes of them.
    pub bytes: u64,
}

impl Tally {
    pub(super) fn book(&mut self, packet: &Packet) {
        self.packets += 1;
        self.segments += u64::from(packet.segments);
        self.bytes += packet.bytes;
    }

    pub(super) fn unbook(&mut self, packet: &Packet) {
        self.packets -= 1;
        self.segments -= u64::from(packet.segments);
        self.bytes -= packet.bytes;
    }
}

/// What was lost, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Drops {
    /// The queue was full.
    pub queue: Tally,
    /// The policer had no tokens.
    pub policer: Tally,
    /// Random loss.
    pub loss: Tally,
    /// `CoDel`.
    pub codel: Tally,
    /// Larger than the path takes.
    pub too_big: Tally,
}

impl Drops {
    /// Those of one cause.
    pub const fn of(&self, cause: Cause) -> Tally {
        match cause {
            Cause::Queue => self.queue,
            Cause::Policer => self.policer,
            Cause::Loss => self.loss,
            Cause::Codel => self.codel,
            Cause::TooBig => self.too_big,
        }
    }

    /// Those of all causes.
    pub fn total(&self) -> Tally {
        let all = [
            self.queue,
            self.policer,
            self.loss,
            self.codel,
            self.too_big,
        ];
        all.iter().fold(Tally::default(), |sum, part| Tally {
            packets: sum.packets + part.packets,
            segments: sum.segments + part.segments,
            bytes: sum.bytes + part.bytes,
        })
    }

    pub(super) fn book(&mut self, cause: Cause, packet: &Packet) {
        match cause {
            Cause::Queue => self.queue.book(packet),
            Cause::Policer => self.policer.book(packet),
            Cause::Loss => self.loss.book(packet),
            Cause::Codel => self.codel.book(packet),
            Cause::TooBig => self.too_big.book(packet),
        }
    }
}

/// What became of one class of traffic. At any time offered = delivered + dropped + held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClassCounters {
    /// Handed in.
    pub offered: Tally,
    /// Let pass, without copies.
    pub delivered: Tally,
    /// Lost, by cause.
    pub dropped: Drops,
    /// In the queue or on the wire now.
    pub held: Tally,
    /// Of those delivered: marked with Congestion Experienced.
    pub marked: Tally,
    /// Of those delivered: a copy was asked for.
    pub duplicated: Tally,
    /// Of those delivered: a packet that came later had left before.
    pub overtaken: Tally,
    /// Of those delivered: larger than the path takes, but allowed to be cut. Each cost what its fragments cost.
    pub fragmented: Tally,
    /// The shortest time from arrival to delivery, where anything was delivered.
    pub transit_min: Option<Nanos>,
    /// The longest time from arrival to delivery.
    pub transit_max: Nanos,
    /// Packets that passed the bottleneck after waiting for it, however shortly.
    pub queued: u64,
    /// Time that all packets together waited for the bottleneck.
    pub queue_time_total: Nanos,
    /// The longest time that one packet waited for the bottleneck.
    pub queue_time_max: Nanos,
}

/// What a direction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// The traffic of the test.
    pub ours: ClassCounters,
    /// Competing traffic.
    pub cross: ClassCounters,
    /// Segments and fragments that the loss model chose. In packet mode as many as were lost by it; in bulk mode
    /// fewer, since a super-segment is lost whole, and so is a packet that was cut.
    pub loss_hits: u64,
    /// Segments and fragments that the loss model was asked about.
    pub loss_trials: u64,
    /// Runs of consecutive segments that the loss model chose.
    pub loss_runs: u64,
    /// Most that ever waited for the bottleneck, counted like its rate.
    pub queue_bytes_max: Bytes,
    /// Changes of the settings that took effect.
    pub changes: u32,
}

impl Counters {
    pub(super) fn class(&mut self, packet: &Packet) -> &mut ClassCounters {
        if packet.cross {
            &mut self.cross
        } else {
            &mut self.ours
        }
    }
}
