//! One direction of a path as a machine without clock, socket or random source.
//!
//! A packet passes, in this order: the largest size ([`Settings::max_packet`]), the policer, the queue
//! before the bottleneck (drop-tail or `CoDel`, with ECN marks), the bottleneck itself, which serialises
//! it, random loss and duplication on the wire, and the delay line with jitter and reordering.
//!
//! The caller hands packets in with [`Direction::handle_packet`], wakes the machine with
//! [`Direction::handle_timeout`] no later than [`Direction::poll_timeout`] says, and after either takes
//! all verdicts with [`Direction::poll`]. Time is [`Nanos`](linerate_model::units::Nanos) since an epoch
//! of the caller's choice. A machine woken late still computes every instant from when things were due,
//! so lateness does not add up; [`Verdict::due`] lets the caller see its own.

mod codel;
mod counters;
mod direction;
mod link;
mod loss;
mod packet;
mod policer;
pub(crate) mod random;
mod settings;
mod wire;

pub use counters::{ClassCounters, Counters, Drops, Tally};
pub use direction::Direction;
pub use packet::{Cause, Ecn, Fate, Packet, Verdict};
pub(crate) use random::at as random_at;
pub use settings::{
    Bottleneck, Change, Codel, DEFAULT_OVERHEAD, DirectionSpec, Discipline, Loss, MaxPacket,
    Policer, Probability, Reorder, Settings,
};
