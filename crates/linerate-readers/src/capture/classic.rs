//! pcap: a header of 24 bytes, then records of 16 bytes and what was captured.

use linerate_model::capture::CaptureFormat;

use super::{Facts, Held, MOST_RECORD, Order, Step};

/// Length of the file's header, bytes.
pub(super) const HEADER: usize = 24;
/// Length of a record's header, bytes.
const RECORD: usize = 16;
const MICROS: u32 = 0xa1b2_c3d4;
const NANOS: u32 = 0xa1b2_3c4d;

/// The header is none of this format.
pub(super) struct NotOne;

/// What the file's header says.
pub(super) struct Header {
    order: Order,
    /// Fractions of a second in ns rather than µs.
    nanos: bool,
    pub(super) snapshot_bytes: u32,
    pub(super) link: u16,
}

fn magic(head: [u8; 4]) -> Option<(Order, bool)> {
    [Order::Big, Order::Little].into_iter().find_map(|order| {
        let word = order.word(&head, 0)?;
        (word == MICROS || word == NANOS).then_some((order, word == NANOS))
    })
}

pub(super) fn known(head: [u8; 4]) -> bool {
    magic(head).is_some()
}

impl Header {
    /// `None` where it is not whole yet.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>, NotOne> {
        let head = bytes.get(..4).and_then(|head| head.try_into().ok());
        let Some((order, nanos)) = magic(head.ok_or(NotOne)?) else {
            return Err(NotOne);
        };
        if bytes.len() < HEADER {
            return Ok(None);
        }
        // The upper bits hold the length of a frame check sequence, which the IP length leaves out anyway.
        let link = order.word(bytes, 20).ok_or(NotOne)? & 0xffff;
        Ok(Some(Self {
            order,
            nanos,
            snapshot_bytes: order.word(bytes, 16).ok_or(NotOne)?,
            link: u16::try_from(link).map_err(|_| NotOne)?,
        }))
    }

    pub(super) const fn format(&self) -> CaptureFormat {
        if self.nanos {
            CaptureFormat::PcapNanos
        } else {
            CaptureFormat::PcapMicros
        }
    }

    pub(super) fn step(&self, bytes: &[u8], facts: &mut Facts) -> Step {
        let word = |at| self.order.word(bytes, at);
        let (Some(seconds), Some(fraction), Some(captured), Some(original)) =
            (word(0), word(4), word(8), word(12))
        else {
            return Step::More;
        };
        let per_second = if self.nanos { 1_000_000_000 } else { 1_000_000 };
        let captured = captured as usize;
        if captured > MOST_RECORD || fraction >= per_second {
            return Step::Damaged;
        }
        let Some(held) = bytes.get(RECORD..RECORD + captured) else {
            return Step::More;
        };
        let to_ns = 1_000_000_000 / u64::from(per_second);
        facts.packet(&Held {
            link: self.link,
            at_ns: Some(u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * to_ns),
            bytes: held,
            original,
        });
        Step::Took(RECORD + captured)
    }
}
