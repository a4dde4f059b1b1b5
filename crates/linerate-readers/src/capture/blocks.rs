//! pcapng: blocks of a type, a length, a body and the length again; sections with a byte order of their own.

use super::{Facts, Held, MOST_RECORD, Order, Step};

const SECTION: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
/// Obsolete, and still written by some.
const PACKET: u32 = 2;
const SIMPLE: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED: u32 = 6;
/// Type, length and the length again, bytes.
const AROUND: usize = 12;
/// Interfaces of a section that are told apart.
const MOST_INTERFACES: usize = 1024;

const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;

pub(super) fn known(head: [u8; 4]) -> bool {
    u32::from_be_bytes(head) == SECTION
}

/// An interface of a section.
struct Interface {
    link: u16,
    snapshot_bytes: u32,
    /// Units of a time stamp in a second.
    per_second: u64,
    /// Added to each time, s.
    offset_s: i64,
    /// Drops of its last statistics: they are totals.
    dropped: Option<u64>,
}

/// A section: everything up to the next section header.
#[derive(Default)]
pub(super) struct Section {
    order: Option<Order>,
    interfaces: Vec<Interface>,
}

impl Section {
    pub(super) fn step(&mut self, bytes: &[u8], facts: &mut Facts) -> Step {
        let Some(head) = bytes.get(..12) else {
            return Step::More;
        };
        if Order::Big.word(head, 0) == Some(SECTION) {
            let Some(order) = [Order::Big, Order::Little]
                .into_iter()
                .find(|order| order.word(head, 8) == Some(BYTE_ORDER))
            else {
                return Step::Damaged;
            };
            *self = Self {
                order: Some(order),
                interfaces: Vec::new(),
            };
        }
        let Some(order) = self.order else {
            return Step::Damaged;
        };
        let (Some(kind), Some(length)) = (order.word(head, 0), order.word(head, 4)) else {
            return Step::More;
        };
        let length = length as usize;
        if !(AROUND..=MOST_RECORD).contains(&length) || !length.is_multiple_of(4) {
            return Step::Damaged;
        }
        let Some(block) = bytes.get(..length) else {
            return Step::More;
        };
        if order.word(block, length - 4) != u32::try_from(length).ok() {
            return Step::Damaged;
        }
        self.block(order, kind, &block[8..length - 4], facts);
        Step::Took(length)
    }

    /// A block that is too short for what it should hold is passed over, as are those of other types.
    fn block(&mut self, order: Order, kind: u32, body: &[u8], facts: &mut Facts) {
        let done = match kind {
            INTERFACE => self.interface(order, body, facts),
            ENHANCED => self.enhanced(order, body, facts),
            PACKET => self.obsolete(order, body, facts),
            SIMPLE => self.simple(order, body, facts),
            STATISTICS => self.statistics(order, body, facts),
            _ => Some(()),
        };
        if done.is_none() && matches!(kind, ENHANCED | PACKET | SIMPLE) {
            facts.packets += 1;
            facts.passed_over.headers += 1;
        }
    }

    fn interface(&mut self, order: Order, body: &[u8], facts: &mut Facts) -> Option<()> {
        let mut interface = Interface {
            link: order.short(body, 0)?,
            snapshot_bytes: order.word(body, 4)?,
            per_second: 1_000_000,
            offset_s: 0,
            dropped: None,
        };
        for (code, value) in options(order, body.get(8..)?) {
            match (code, value) {
                (IF_TSRESOL, [resolution, ..]) => interface.per_second = per_second(*resolution),
                (IF_TSOFFSET, value) => {
                    interface.offset_s = order.long(value, 0).map_or(0, u64::cast_signed);
                }
                _ => {}
            }
        }
        facts.limit(interface.snapshot_bytes);
        facts.link(interface.link);
        if self.interfaces.len() < MOST_INTERFACES {
            self.interfaces.push(interface);
        }
        Some(())
    }

    fn enhanced(&self, order: Order, body: &[u8], facts: &mut Facts) -> Option<()> {
        let interface = self.interfaces.get(order.word(body, 0)? as usize)?;
        let stamp = [order.word(body, 4)?, order.word(body, 8)?];
        held(order, interface, stamp, body.get(12..)?, facts)
    }

    fn obsolete(&self, order: Order, body: &[u8], facts: &mut Facts) -> Option<()> {
        let interface = self.interfaces.get(usize::from(order.short(body, 0)?))?;
        let stamp = [order.word(body, 4)?, order.word(body, 8)?];
        held(order, interface, stamp, body.get(12..)?, facts)
    }

    fn simple(&self, order: Order, body: &[u8], facts: &mut Facts) -> Option<()> {
        let interface = self.interfaces.first()?;
        let original = order.word(body, 0)?;
        let bytes = body.get(4..)?;
        let most = match interface.snapshot_bytes {
            0 => original,
            most => original.min(most),
        } as usize;
        facts.packet(&Held {
            link: interface.link,
            at_ns: None,
            bytes: bytes.get(..most).unwrap_or(bytes),
            original,
        });
        Some(())
    }

    fn statistics(&mut self, order: Order, body: &[u8], facts: &mut Facts) -> Option<()> {
        let interface = self.interfaces.get_mut(order.word(body, 0)? as usize)?;
        let lost: Vec<u64> = options(order, body.get(12..)?)
            .filter(|(code, _)| matches!(*code, ISB_IFDROP | ISB_OSDROP))
            .filter_map(|(_, value)| order.long(value, 0))
            .collect();
        if !lost.is_empty() {
            let total = lost.iter().fold(0_u64, |sum, one| sum.saturating_add(*one));
            facts.dropped(total.saturating_sub(interface.dropped.unwrap_or(0)));
            interface.dropped = Some(total);
        }
        Some(())
    }
}

/// A packet: captured length, original length, bytes.
fn held(
    order: Order,
    interface: &Interface,
    [high, low]: [u32; 2],
    rest: &[u8],
    facts: &mut Facts,
) -> Option<()> {
    let captured = order.word(rest, 0)? as usize;
    let stamp = u64::from(high) << 32 | u64::from(low);
    let ns = u128::from(stamp) * 1_000_000_000 / u128::from(interface.per_second);
    let ns = i128::try_from(ns).ok()? + i128::from(interface.offset_s) * 1_000_000_000;
    facts.packet(&Held {
        link: interface.link,
        at_ns: Some(u64::try_from(ns).unwrap_or(0)),
        bytes: rest.get(8..8_usize.checked_add(captured)?)?,
        original: order.word(rest, 4)?,
    });
    Some(())
}

/// `if_tsresol`: a power of 10, or of 2 where the highest bit is set. Finer than 64 bits hold counts as that.
fn per_second(resolution: u8) -> u64 {
    let power = u32::from(resolution & 0x7f);
    if resolution & 0x80 == 0 {
        10_u64.checked_pow(power).unwrap_or(u64::MAX)
    } else {
        1_u64.checked_shl(power).unwrap_or(u64::MAX)
    }
}

/// Options: code, length, value, padded to 4 bytes; ends with code 0 or with the bytes.
fn options(order: Order, mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let code = order.short(rest, 0).filter(|code| *code != 0)?;
        let length = usize::from(order.short(rest, 2)?);
        let value = rest.get(4..4 + length)?;
        rest = rest
            .get(4 + length.next_multiple_of(4)..)
            .unwrap_or_default();
        Some((code, value))
    })
}
