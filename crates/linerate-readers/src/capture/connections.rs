//! TCP connections of a capture: who talks to whom, with sequence numbers unwrapped.

use std::collections::HashMap;
use std::net::SocketAddr;

use linerate_model::capture::{
    CapturedEnd, Conversation, Packet, SynOptions, TcpFlags, UNKNOWN_ORIGIN,
};

use super::frame::Segment;
use super::{MOST_CONNECTIONS, MOST_PACKETS};

/// What became of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Kept,
    /// Enough packets are kept.
    NotKept,
    /// Enough connections are told apart.
    NoPlace,
}

#[derive(Default)]
pub(super) struct Connections {
    /// The latest connection of a pair of addresses.
    latest: HashMap<[SocketAddr; 2], usize>,
    all: Vec<Connection>,
    packets: usize,
}

impl Connections {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Connections that one end alone spoke in, and only to open them.
    pub(super) fn unanswered(&self) -> u64 {
        let alone = |one: &&Connection| {
            one.held.ends[0].syn.is_some()
                && one.held.ends[0].payload_bytes == 0
                && one.held.ends[1].packets == 0
        };
        self.all.iter().filter(alone).count() as u64
    }

    pub(super) fn take(&mut self, at_ns: u64, segment: &Segment) -> Taken {
        let mut pair = [segment.source, segment.destination];
        pair.sort_unstable();
        let known = self
            .latest
            .get(&pair)
            .copied()
            .filter(|place| !self.all[*place].is_over_for(segment));
        let place = if let Some(place) = known {
            place
        } else {
            if self.all.len() >= MOST_CONNECTIONS {
                return Taken::NoPlace;
            }
            self.all.push(Connection::new(at_ns, segment));
            self.latest.insert(pair, self.all.len() - 1);
            self.all.len() - 1
        };
        let keep = self.packets < MOST_PACKETS;
        self.all[place].take(at_ns, segment, keep);
        if keep {
            self.packets += 1;
            Taken::Kept
        } else {
            Taken::NotKept
        }
    }

    /// The connections with most payload, at most `most`, in the order in which they began.
    pub(super) fn largest(self, most: usize) -> Vec<Conversation> {
        let bytes =
            |one: &Conversation| -> u64 { one.ends.iter().map(|end| end.payload_bytes).sum() };
        let mut held: Vec<Conversation> = self
            .all
            .into_iter()
            .map(|one| one.held)
            .filter(|one| bytes(one) > 0)
            .collect();
        held.sort_by_key(|one| std::cmp::Reverse(bytes(one)));
        held.truncate(most);
        held.sort_by_key(|one| one.begins_ns);
        held
    }
}

/// A connection while it is read.
struct Connection {
    addresses: [SocketAddr; 2],
    numbers: [Numbers; 2],
    held: Conversation,
}

impl Connection {
    fn new(at_ns: u64, segment: &Segment) -> Self {
        // The SYN-ACK's receiver opened the connection.
        let answers = segment.flags.has(TcpFlags::SYN) && segment.flags.has(TcpFlags::ACK);
        let addresses = if answers {
            [segment.destination, segment.source]
        } else {
            [segment.source, segment.destination]
        };
        let end = |address: SocketAddr| CapturedEnd {
            address: address.to_string().into(),
            syn: None,
            packets: 0,
            payload_bytes: 0,
            largest_bytes: 0,
            marked: 0,
            first_byte: None,
        };
        Self {
            addresses,
            numbers: [Numbers::default(), Numbers::default()],
            held: Conversation {
                ends: addresses.map(end),
                begins_ns: at_ns,
                ends_ns: at_ns,
                not_kept: 0,
                packets: Vec::new(),
                sack_blocks: Vec::new(),
            },
        }
    }

    /// Whether a segment opens another connection between the same ports: a SYN with another number.
    fn is_over_for(&self, segment: &Segment) -> bool {
        let from = usize::from(segment.source != self.addresses[0]);
        let opens = segment.flags.has(TcpFlags::SYN) && !segment.flags.has(TcpFlags::ACK);
        opens
            && self.numbers[from]
                .first
                .is_some_and(|first| first != segment.seq)
    }

    fn take(&mut self, at_ns: u64, segment: &Segment, keep: bool) {
        let from = usize::from(segment.source != self.addresses[0]);
        let syn = segment.flags.has(TcpFlags::SYN);
        let seq = self.numbers[from].unwrap(segment.seq, syn);
        // Payload of a SYN (RFC 7413) begins behind it.
        let seq = seq + u64::from(syn && segment.payload > 0);
        let acks = segment.flags.has(TcpFlags::ACK);
        let ack = if acks {
            self.numbers[1 - from].unwrap(segment.ack, false)
        } else {
            0
        };
        self.count(from, segment, seq);
        self.held.ends_ns = self.held.ends_ns.max(at_ns);
        let room = u32::try_from(self.held.sack_blocks.len());
        let (true, Ok(sack_from)) = (keep, room) else {
            self.held.not_kept += 1;
            return;
        };
        for block in &segment.sacks {
            let block = block.map(|number| self.numbers[1 - from].near(number));
            self.held.sack_blocks.push(block);
        }
        self.held.packets.push(Packet {
            at_ns,
            seq,
            ack,
            payload: segment.payload,
            sack_from,
            window: segment.window,
            flags: segment.flags,
            from: u8::from(from == 1),
            sack_count: u8::try_from(segment.sacks.len()).unwrap_or(u8::MAX),
        });
    }

    fn count(&mut self, from: usize, segment: &Segment, seq: u64) {
        let end = &mut self.held.ends[from];
        if segment.flags.has(TcpFlags::SYN) {
            let offered: SynOptions = segment.options;
            end.syn.get_or_insert(offered);
        }
        end.packets += 1;
        end.marked += u64::from(segment.marked);
        end.payload_bytes += u64::from(segment.payload);
        end.largest_bytes = end.largest_bytes.max(segment.payload);
        if segment.payload > 0 {
            let first = end.first_byte.map_or(seq, |first| first.min(seq));
            end.first_byte = Some(first);
        }
    }
}

/// The sequence numbers of one end.
#[derive(Debug, Default)]
struct Numbers {
    /// The first one seen, as it stood in the packet.
    first: Option<u32>,
    /// The highest one so far, unwrapped and as it stood in the packet.
    highest: (u64, u32),
}

impl Numbers {
    /// Unwraps a number and remembers it.
    fn unwrap(&mut self, number: u32, syn: bool) -> u64 {
        if self.first.is_none() {
            self.first = Some(number);
            self.highest = (if syn { 0 } else { UNKNOWN_ORIGIN }, number);
        }
        let near = self.near(number);
        if near > self.highest.0 {
            self.highest = (near, number);
        }
        near
    }

    /// The unwrapped number that is nearest to the highest one; one from before the origin counts as it.
    fn near(&self, number: u32) -> u64 {
        let (highest, shown) = self.highest;
        let ahead = number.wrapping_sub(shown).cast_signed();
        highest.saturating_add_signed(i64::from(ahead))
    }
}
