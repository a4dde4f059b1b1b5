//! `CoDel`'s decision at the head of the queue (RFC 8289, section 5).

use linerate_model::units::Nanos;

use super::settings::Codel;

/// A queue holding no more than one packet is never too long (RFC 8289, section 5.3: one MTU), bytes with
/// overhead. Which MTU that is shows in the packets; until a larger one came it is Ethernet's.
const ONE_PACKET: u64 = 1538;
/// Dropping that begins again this soon, in intervals, goes on near the rate at which it stopped
/// (RFC 8289, section 5.4).
const SOON: u64 = 16;

/// The state of the control law.
#[derive(Debug, Clone)]
pub(super) struct ControlLaw {
    /// The largest packet so far.
    one_packet: u64,
    /// When the delay will have been above the target for an interval.
    first_above: Option<Nanos>,
    dropping: bool,
    drop_next: Nanos,
    count: u32,
    last_count: u32,
}

impl Default for ControlLaw {
    fn default() -> Self {
        Self {
            one_packet: ONE_PACKET,
            first_above: None,
            dropping: false,
            drop_next: Nanos::ZERO,
            count: 0,
            last_count: 0,
        }
    }
}

impl ControlLaw {
    /// Whether the packet at the head, of `head` bytes, is to be dropped (or marked), which waited for `sojourn`
    /// while `waiting` bytes wait behind it. After a drop it is asked again about the next one.
    pub(super) fn drops(
        &mut self,
        codel: &Codel,
        now: Nanos,
        sojourn: Nanos,
        head: u64,
        waiting: u64,
    ) -> bool {
        self.one_packet = self.one_packet.max(head);
        let too_long = self.too_long(codel, now, sojourn, waiting);
        if self.dropping {
            if !too_long {
                self.dropping = false;
                return false;
            }
            if now < self.drop_next {
                return false;
            }
            self.count = self.count.saturating_add(1);
            self.drop_next = after(self.drop_next, codel.interval, self.count);
            return true;
        }
        if too_long {
            self.begin(codel, now);
        }
        too_long
    }

    fn too_long(&mut self, codel: &Codel, now: Nanos, sojourn: Nanos, waiting: u64) -> bool {
        if sojourn < codel.target || waiting <= self.one_packet {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now.plus(codel.interval));
                false
            }
            Some(from) => now >= from,
        }
    }

    fn begin(&mut self, codel: &Codel, now: Nanos) {
        self.dropping = true;
        let since = now.since(self.drop_next);
        let delta = self.count.saturating_sub(self.last_count);
        let recent = since < Nanos(codel.interval.0.saturating_mul(SOON));
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = after(now, codel.interval, self.count);
    }
}

/// The control law: the next drop comes an interval divided by the square root of their number later.
fn after(from: Nanos, interval: Nanos, count: u32) -> Nanos {
    from.plus(Nanos::from_secs_f64(
        interval.as_secs_f64() / f64::from(count.max(1)).sqrt(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Milliseconds at which a queue that always holds for 20 ms loses a packet.
    fn drops_at(packets_a_millisecond: u64, millis: u64) -> Vec<u64> {
        let mut law = ControlLaw::default();
        let codel = Codel::default();
        let mut drops = Vec::new();
        for tick in 0..millis * packets_a_millisecond {
            let now = Nanos(tick * 1_000_000 / packets_a_millisecond);
            if law.drops(&codel, now, Nanos::from_millis(20), 1538, 100_000) {
                drops.push(now.0 / 1_000_000);
            }
        }
        drops
    }

    #[test]
    fn drops_come_closer_by_the_square_root() {
        // First after an interval of 100 ms, then 100 ms, 100/√2, 100/√3 … later.
        assert_eq!(drops_at(10, 480), [100, 200, 270, 328, 378, 423, 464]);
    }

    #[test]
    fn a_short_queue_is_left_alone() {
        let mut law = ControlLaw::default();
        let codel = Codel::default();
        for millis in 0..1000 {
            let now = Nanos::from_millis(millis);
            assert!(!law.drops(&codel, now, Nanos::from_millis(4), 1538, 100_000));
            assert!(!law.drops(&codel, now, Nanos::from_millis(50), 1538, ONE_PACKET));
        }
    }

    #[test]
    fn a_jumbo_packet_alone_is_no_queue() {
        let codel = Codel::default();
        let dropped = |head| {
            let mut law = ControlLaw::default();
            let mut at = (0..1000).map(Nanos::from_millis);
            at.any(|now| law.drops(&codel, now, Nanos::from_millis(50), head, 9038))
        };
        assert!(!dropped(9038));
        // The same bytes of small packets are six of them.
        assert!(dropped(1538));
    }
}
