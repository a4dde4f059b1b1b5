//! The head of each UDP datagram: its number and when it was sent.

use linerate_model::units::Nanos;

use super::words::{Words, halves, wide};

/// How the head of a datagram is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Up to 2.0.12: number, seconds, microseconds.
    Bytes12,
    /// Since 2.1 four bytes more, the number's high half.
    Bytes16,
    /// 2.0.13: the same 16 bytes, with numbers that are counted as those of 12 bytes are.
    Bytes16From0,
}

impl Layout {
    /// Bytes of the head.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bytes12 => 12,
            Self::Bytes16 | Self::Bytes16From0 => 16,
        }
    }

    /// Whether numbers begin with 1, and the datagram that ends a flow is payload like the others, with the number behind
    /// theirs. Before 2.1 numbers begin with 0, and the last datagram tells how many there were.
    pub const fn counts_last(self) -> bool {
        matches!(self, Self::Bytes16)
    }
}

/// The head of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Counts up, from 0 (2.0.x) or 1 (2.1 and newer); below 0 = the flow has ended.
    pub number: i64,
    /// When it was sent, the sender's clock, s.
    pub seconds: u32,
    /// And µs.
    pub microseconds: u32,
}

impl Head {
    /// A head that is stamped with an instant.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the wire has 32 bits for the seconds"
    )]
    pub const fn at(number: i64, now: Nanos) -> Self {
        Self {
            number,
            seconds: (now.0 / 1_000_000_000) as u32,
            microseconds: (now.0 % 1_000_000_000 / 1000) as u32,
        }
    }

    /// When it was sent, by the sender's clock.
    pub const fn sent(&self) -> Nanos {
        Nanos(self.seconds as u64 * 1_000_000_000 + self.microseconds as u64 * 1000)
    }

    /// The head of a datagram; `None` where it is shorter.
    pub fn decode(layout: Layout, datagram: &[u8]) -> Option<Self> {
        let mut words = Words(datagram);
        let [low, seconds, microseconds] = words.all()?;
        let number = match layout {
            Layout::Bytes12 => i64::from(low.cast_signed()),
            Layout::Bytes16 | Layout::Bytes16From0 => wide(words.u32()?, low).cast_signed(),
        };
        Some(Self {
            number,
            seconds,
            microseconds,
        })
    }

    /// Writes it over the beginning of a datagram; nothing where that is shorter.
    pub fn encode(&self, layout: Layout, datagram: &mut [u8]) -> Option<()> {
        let [high, low] = halves(self.number.cast_unsigned());
        let words = [low, self.seconds, self.microseconds, high];
        let target = datagram.get_mut(..layout.bytes())?;
        for (bytes, word) in target.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        Some(())
    }

    /// The number that ends a flow, without its sign; `None` of a datagram that is no end.
    ///
    /// `highest` is the highest number before it: some builds of 2.0.13 do not negate the number but set its highest bit.
    pub fn ends(&self, highest: u64) -> Option<u64> {
        if self.number >= 0 {
            return None;
        }
        let negated = self.number.unsigned_abs();
        let marked = u64::from(halves(self.number.cast_unsigned())[1] & 0x7FFF_FFFF);
        let distance = |number: u64| number.abs_diff(highest);
        Some(if distance(marked) < distance(negated) {
            marked
        } else {
            negated
        })
    }
}
