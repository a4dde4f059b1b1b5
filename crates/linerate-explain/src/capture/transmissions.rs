//! What one end of a captured connection sent, segment by segment, and what became of each.
//!
//! The capture shows a loss where a segment was sent again before anything acknowledged it, and no duplicate
//! selective acknowledgement (RFC 2883) said later that the repeat was needless. A packet of many segments, which
//! segmentation offload makes, is taken apart at the segment size that the other end's SYN allows.

use std::collections::BTreeMap;
use std::ops::Range;

use linerate_model::capture::{Conversation, Packet, TcpFlags};

/// Segments that are looked at; about 60 bytes each while they are.
const MOST_SEGMENTS: usize = 2_000_000;
/// Silence with nothing outstanding that ends a burst, ns: an idle connection's tokens grow again.
const IDLE_NS: u64 = 1_000_000_000;
/// What 1500 bytes leave without options: the largest payload that is surely one segment.
const ONE_SEGMENT: u32 = 1460;

/// A segment that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    /// When it passed, ns.
    pub(super) at_ns: u64,
    /// Its first byte.
    pub(super) seq: u64,
    /// Payload, bytes.
    pub(super) bytes: u32,
    /// It was sent again before it was acknowledged.
    pub(super) repeated: bool,
    /// The other end said that the repeat was needless.
    pub(super) needless: bool,
    /// It repeats what had been sent.
    pub(super) again: bool,
    /// Until it was acknowledged, where that is its own round trip, ns.
    pub(super) round_trip_ns: Option<u64>,
}

impl Sent {
    pub(super) const fn lost(&self) -> bool {
        self.repeated && !self.needless
    }
}

/// All that one end sent.
#[derive(Debug, Default)]
pub(super) struct Transmissions {
    /// In the order of the capture.
    pub(super) sent: Vec<Sent>,
    /// Stretches between one request, or one silence, and the next, as ranges of `sent`.
    pub(super) bursts: Vec<Range<usize>>,
    /// Segments sent although they had been acknowledged, or whose repeat was reported as received twice.
    pub(super) needless: u64,
    /// Segments that filled a gap: their first copy never passed here, so it was lost, or delayed, before.
    pub(super) filled: u64,
    /// Bytes acknowledged that never passed here: the capture missed them.
    pub(super) missed_bytes: u64,
    /// From the first payload to the last acknowledgement of it, ns.
    pub(super) span_ns: u64,
    /// Acknowledged, without repeats, bytes; absent where no acknowledgement passed here.
    pub(super) acknowledged_bytes: Option<u64>,
    /// Bytes that passed here, each counted once.
    pub(super) passed_bytes: u64,
    /// Segments beyond [`MOST_SEGMENTS`] were left out.
    pub(super) cut: bool,
    /// Packets that held more than a segment.
    pub(super) super_segments: u64,
}

impl Transmissions {
    pub(super) fn of(conversation: &Conversation, end: usize) -> Self {
        let mut walk = Walk::new(conversation, end);
        for packet in &conversation.packets {
            if usize::from(packet.from) == end {
                walk.send(packet);
            } else {
                walk.receive(packet, conversation.sacks(packet));
            }
        }
        walk.finish()
    }

    pub(super) fn lost(&self) -> usize {
        self.sent.iter().filter(|sent| sent.lost()).count()
    }

    pub(super) fn repeats(&self) -> usize {
        self.sent.iter().filter(|sent| sent.again).count()
    }

    /// Round trips in the order of sending, µs.
    pub(super) fn round_trips_us(&self) -> Vec<f64> {
        round_trips_us(&self.sent)
    }
}

/// Round trips of segments, in the order of sending, µs.
pub(super) fn round_trips_us(sent: &[Sent]) -> Vec<f64> {
    sent.iter()
        .filter_map(|one| one.round_trip_ns)
        .map(|ns| ns as f64 / 1e3)
        .collect()
}

/// The walk over the packets of a connection, from one end's side.
struct Walk {
    segment: Option<u32>,
    done: Transmissions,
    /// Not acknowledged in any way: first byte to the place in `sent`.
    outstanding: BTreeMap<u64, usize>,
    /// Repeated: first byte to the place of the latest copy that was given up.
    given_up: BTreeMap<u64, usize>,
    /// Bytes that never passed here: from, to.
    gaps: BTreeMap<u64, u64>,
    /// Behind the last byte sent; absent before the first.
    highest: Option<u64>,
    /// Behind the last byte acknowledged.
    acked: u64,
    first_byte: Option<u64>,
    first_ns: u64,
    last_ack_ns: u64,
    last_sent_ns: u64,
    burst_from: usize,
    /// The other end has sent payload since this one last did.
    asked: bool,
}

impl Walk {
    fn new(conversation: &Conversation, end: usize) -> Self {
        let largest = conversation.ends[end].largest_bytes;
        // Where no SYN tells, a payload that surely fits one frame is one segment.
        let guess = (largest <= ONE_SEGMENT).then_some(largest);
        Self {
            segment: conversation
                .segment_bytes(end)
                .or(guess)
                .filter(|size| *size > 0),
            done: Transmissions::default(),
            outstanding: BTreeMap::new(),
            given_up: BTreeMap::new(),
            gaps: BTreeMap::new(),
            highest: None,
            acked: 0,
            first_byte: None,
            first_ns: 0,
            last_ack_ns: 0,
            last_sent_ns: 0,
            burst_from: 0,
            asked: false,
        }
    }

    fn send(&mut self, packet: &Packet) {
        if packet.payload == 0 {
            return;
        }
        if self.first_byte.is_none() {
            self.first_byte = Some(packet.seq);
            self.first_ns = packet.at_ns;
            self.acked = self.acked.max(packet.seq);
        }
        let idle = self.outstanding.is_empty()
            && packet.at_ns.saturating_sub(self.last_sent_ns) >= IDLE_NS;
        let all = self.done.sent.len();
        if (self.asked || idle) && all > self.burst_from {
            self.done.bursts.push(self.burst_from..all);
            self.burst_from = all;
        }
        self.asked = false;
        self.last_sent_ns = packet.at_ns;
        // Where no SYN told, a payload larger than a frame stays whole: where to cut it is not known.
        let size = self.segment.unwrap_or(packet.payload).max(1);
        if packet.payload > size || packet.payload > 9000 {
            self.done.super_segments += 1;
        }
        let mut at = 0;
        while at < packet.payload {
            let bytes = size.min(packet.payload - at);
            self.segment(packet.at_ns, packet.seq + u64::from(at), bytes);
            at += bytes;
        }
    }

    fn segment(&mut self, at_ns: u64, seq: u64, bytes: u32) {
        if self.done.sent.len() >= MOST_SEGMENTS {
            self.done.cut = true;
            return;
        }
        let end = seq + u64::from(bytes);
        let highest = self.highest.unwrap_or(seq);
        let mut sent = Sent {
            at_ns,
            seq,
            bytes,
            repeated: false,
            needless: false,
            again: false,
            round_trip_ns: None,
        };
        let place = self.done.sent.len();
        if seq < highest {
            if self.fills(seq, end) {
                self.done.filled += 1;
                self.done.passed_bytes += u64::from(bytes);
            } else if end <= self.acked || !self.give_up(seq) {
                // A probe repeats a byte that was acknowledged, to hear whether the other end is there.
                self.done.needless += u64::from(bytes > 1);
                sent.again = bytes > 1;
            } else {
                sent.again = true;
            }
            self.done.passed_bytes += end.saturating_sub(highest.max(seq));
        } else {
            if seq > highest && self.gaps.len() < 65_536 {
                self.gaps.insert(highest, seq);
            }
            self.done.passed_bytes += u64::from(bytes);
        }
        self.highest = Some(highest.max(end));
        if end > self.acked {
            self.outstanding.insert(seq, place);
        }
        self.done.sent.push(sent);
    }

    /// Whether these bytes had never passed here; the gap that they fill shrinks.
    fn fills(&mut self, seq: u64, end: u64) -> bool {
        let Some((from, to)) = self
            .gaps
            .range(..end)
            .next_back()
            .map(|(from, to)| (*from, *to))
            .filter(|(_, to)| *to > seq)
        else {
            return false;
        };
        self.gaps.remove(&from);
        if from < seq {
            self.gaps.insert(from, seq);
        }
        if end < to {
            self.gaps.insert(end, to);
        }
        true
    }

    /// Marks the outstanding copy of a byte as repeated; false where there is none.
    fn give_up(&mut self, seq: u64) -> bool {
        let Some((from, place)) = self
            .outstanding
            .range(..=seq)
            .next_back()
            .map(|(from, place)| (*from, *place))
        else {
            return false;
        };
        let copy = &mut self.done.sent[place];
        if copy.seq + u64::from(copy.bytes) <= seq {
            return false;
        }
        copy.repeated = true;
        self.given_up.insert(from, place);
        true
    }

    fn receive(&mut self, packet: &Packet, sacks: &[[u64; 2]]) {
        self.asked |= packet.payload > 0;
        if !packet.flags.has(TcpFlags::ACK) || self.first_byte.is_none() {
            return;
        }
        let (duplicate, sacks) = split(packet.ack, sacks);
        if let Some(block) = duplicate {
            self.was_needless(block);
        }
        let sacked: Vec<usize> = sacks
            .iter()
            .flat_map(|block| self.take(block[0], block[1]))
            .collect();
        // Behind a gap only a selective acknowledgement tells a segment's own round trip.
        self.time(packet.at_ns, &sacked);
        if packet.ack > self.acked {
            let freed: Vec<usize> = self.take(0, packet.ack);
            let clean = !freed.iter().any(|place| {
                let sent = &self.done.sent[*place];
                sent.repeated || sent.again
            });
            if clean && sacked.is_empty() {
                self.time(packet.at_ns, &freed);
            }
            self.acked = packet.ack;
            self.last_ack_ns = packet.at_ns;
        }
    }

    /// The newest of the segments that an acknowledgement covers made it come.
    fn time(&mut self, at_ns: u64, places: &[usize]) {
        if let Some(newest) = places.iter().max() {
            let sent = &mut self.done.sent[*newest];
            if !sent.repeated && !sent.again {
                sent.round_trip_ns = Some(at_ns.saturating_sub(sent.at_ns));
            }
        }
    }

    /// Takes what lies between two numbers out of what is outstanding.
    fn take(&mut self, from: u64, to: u64) -> Vec<usize> {
        let whole = |place: &usize| {
            let sent = &self.done.sent[*place];
            sent.seq + u64::from(sent.bytes) <= to
        };
        let keys: Vec<u64> = if from < to {
            self.outstanding
                .range(from..to)
                .filter(|(_, place)| whole(place))
                .map(|(seq, _)| *seq)
                .collect()
        } else {
            Vec::new()
        };
        keys.iter()
            .filter_map(|seq| self.outstanding.remove(seq))
            .collect()
    }

    /// The receiver got these bytes twice: the copy that was given up had arrived.
    fn was_needless(&mut self, [from, to]: [u64; 2]) {
        if from >= to {
            return;
        }
        let found = self
            .given_up
            .range(from..to)
            .map(|(seq, place)| (*seq, *place))
            .next();
        if let Some((seq, place)) = found {
            self.given_up.remove(&seq);
            self.done.sent[place].needless = true;
            self.done.needless += 1;
        }
    }

    fn finish(mut self) -> Transmissions {
        let all = self.done.sent.len();
        if all > self.burst_from {
            self.done.bursts.push(self.burst_from..all);
        }
        if let Some(first) = self.first_byte {
            let acked = self.acked.saturating_sub(first);
            let last_ns = self.last_ack_ns.max(self.last_sent_ns);
            self.done.span_ns = last_ns.saturating_sub(self.first_ns);
            self.done.acknowledged_bytes = (self.last_ack_ns > 0).then_some(acked);
            let behind = self.acked.saturating_sub(self.highest.unwrap_or(first));
            let gaps: u64 = self
                .gaps
                .iter()
                .map(|(from, to)| to.min(&self.acked).saturating_sub(*from))
                .sum();
            // A FIN takes a number as well.
            self.done.missed_bytes = gaps + behind.saturating_sub(1);
        }
        self.done
    }
}

/// A duplicate selective acknowledgement, which comes first (RFC 2883), and the others.
fn split(ack: u64, sacks: &[[u64; 2]]) -> (Option<[u64; 2]>, &[[u64; 2]]) {
    match sacks {
        [first, rest @ ..] if first[1] <= ack => (Some(*first), rest),
        [first, second, ..] if first[0] >= second[0] && first[1] <= second[1] => {
            (Some(*first), &sacks[1..])
        }
        _ => (None, sacks),
    }
}
