//! What one direction of a path does, as types that cannot be wrong.

use linerate_model::units::{BitRate, Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// What a packet costs on Ethernet beside its IP bytes: header 14, check sequence 4, preamble 8, gap 12.
pub const DEFAULT_OVERHEAD: u32 = 38;

/// Bytes of an IPv4 header without options.
const IPV4_HEADER: u64 = 20;

/// A share between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const NEVER: Self = Self(0.0);
    /// Always.
    pub const ALWAYS: Self = Self(1.0);

    /// `None` where `share` is not between 0 and 1.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..=1.0).contains(&share).then_some(Self(share))
    }

    /// The share, 0 to 1.
    pub const fn share(self) -> f64 {
        self.0
    }
}

/// One direction: what it does at first, and what changes later.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct DirectionSpec {
    /// From the start.
    pub settings: Settings,
    /// Later settings, in order of time.
    pub changes: Vec<Change>,
}

impl DirectionSpec {
    /// The settings at the start and after each change.
    pub fn all_settings(&self) -> impl Iterator<Item = &Settings> {
        let later = self.changes.iter().map(|change| &change.settings);
        std::iter::once(&self.settings).chain(later)
    }
}

/// New settings from an instant on. Queue, tokens and packets on the wire are kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// After [`Direction::begin`](super::Direction::begin).
    pub at: Nanos,
    /// All settings, not only those that differ.
    pub settings: Settings,
}

/// What a direction does to packets. The default passes everything at once.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Settings {
    /// Time on the wire, one way.
    pub delay: Nanos,
    /// The delay wanders between nothing and this much more; it never reorders.
    pub jitter: Nanos,
    /// The slowest link; `None` = unlimited, without a queue.
    pub bottleneck: Option<Bottleneck>,
    /// A token bucket before the queue.
    pub policer: Option<Policer>,
    /// Loss on the wire.
    pub loss: Loss,
    /// Packets that are overtaken.
    pub reorder: Option<Reorder>,
    /// Share of packets that arrive twice.
    pub duplicate: Probability,
    /// The largest packet that passes.
    pub max_packet: Option<MaxPacket>,
    /// What each packet costs beside its IP bytes wherever a rate counts, bytes; see [`DEFAULT_OVERHEAD`].
    pub overhead: u32,
}

/// A link that serialises packets, and the queue before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bottleneck {
    /// Bits per second of IP bytes and overhead; at least 1.
    pub rate: BitRate,
    /// What may wait beside the packet that is being sent, counted like the rate. A packet that finds
    /// nothing waiting is always taken.
    pub queue: Bytes,
    /// How the queue is managed.
    pub discipline: Discipline,
    /// ECN-capable packets that find more than this waiting are marked.
    pub ecn_threshold: Option<Bytes>,
}

/// How a queue is managed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// What does not fit is dropped.
    #[default]
    DropTail,
    /// What waits too long for too long is dropped at the head (RFC 8289); what does not fit as well.
    Codel(Codel),
}

/// The parameters of `CoDel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Codel {
    /// Acceptable standing delay.
    pub target: Nanos,
    /// About a worst-case round trip.
    pub interval: Nanos,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Codel {
    /// 5 ms and 100 ms (RFC 8289, section 4), dropping.
    fn default() -> Self {
        Self {
            target: Nanos::from_millis(5),
            interval: Nanos::from_millis(100),
            ecn: false,
        }
    }
}

/// A token bucket that drops what does not conform (RFC 2475, section 2.3.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Policer {
    /// Tokens come in at this rate, counted like the bottleneck's.
    pub rate: BitRate,
    /// Tokens that an idle bucket holds.
    pub burst: Bytes,
}

/// Which segments the wire loses.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each with the same odds, whatever happened to the others.
    Independent(Probability),
    /// Every nth.
    Every(std::num::NonZeroU64),
    /// In bursts: two states, with odds of their own (Gilbert 1960, Elliott 1963).
    Gilbert {
        /// Odds of each segment in the good state to turn it bad.
        p: Probability,
        /// Odds of each segment in the bad state to turn it good; mean burst = 1/r segments.
        r: Probability,
        /// Odds of loss in the bad state.
        bad: Probability,
        /// Odds of loss in the good state.
        good: Probability,
    },
}

/// A share of the packets takes longer than the rest and is overtaken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reorder {
    /// Share of the packets.
    pub fraction: Probability,
    /// How much longer they take.
    pub delay: Nanos,
}

/// The largest packet that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MaxPacket {
    /// IP bytes.
    pub bytes: u32,
    /// Whether the sender is informed.
    pub icmp: bool,
}

impl MaxPacket {
    /// What an IPv4 packet of `bytes` is behind a router that cuts it: packets, and their IP bytes together. Each
    /// but the last holds a multiple of 8 bytes, and repeats the header (RFC 791, section 3.2); options, which few
    /// packets have, are not counted.
    pub fn cut(self, bytes: u64) -> (u32, u64) {
        if bytes <= u64::from(self.bytes) {
            return (1, bytes);
        }
        let most = (u64::from(self.bytes).saturating_sub(IPV4_HEADER) / 8 * 8).max(8);
        let pieces = bytes.saturating_sub(IPV4_HEADER).div_ceil(most).max(1);
        let headers = (pieces - 1) * IPV4_HEADER;
        (
            u32::try_from(pieces).unwrap_or(u32::MAX),
            bytes.saturating_add(headers),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_repeat_their_header_and_hold_multiples_of_eight() {
        let limit = |bytes| MaxPacket { bytes, icmp: true };
        assert_eq!(limit(1500).cut(1500), (1, 1500));
        // 1480 bytes in 1376 (172 × 8) and 104.
        assert_eq!(limit(1400).cut(1500), (2, 1520));
        // 530 bytes in 11 of 48 and one of 2.
        assert_eq!(limit(68).cut(550), (12, 550 + 11 * 20));
        assert_eq!(limit(1400).cut(u64::MAX).1, u64::MAX);
    }
}
