//! Giving up on a server that no longer reads or sends.

use linerate_model::plan::{End, Plan};
use linerate_model::units::{Bytes, Nanos};

use crate::stream::StreamHandle;

/// A test that moves fewer bytes in its idle timeout moves nothing: a server could keep it alive byte by byte.
const MATTERS: u64 = 1 << 10;
/// Blocks that iperf3 sends at once where a rate is asked for.
const BURST: u64 = 10;

/// What a client waits for, and for how long.
pub(super) struct Idle {
    /// Any byte, where only bytes end the test.
    any: Option<Progress>,
    /// Bytes that arrive.
    received: Option<Progress>,
}

/// Bytes that must come within a time.
struct Progress {
    within: Nanos,
    matters: u64,
    at: Nanos,
    bytes: u64,
}

impl Progress {
    fn look(&mut self, now: Nanos, bytes: u64) -> bool {
        if bytes >= self.bytes.saturating_add(self.matters) {
            (self.at, self.bytes) = (now, bytes);
        }
        now.since(self.at) >= self.within
    }
}

impl Idle {
    pub(super) fn new(plan: &Plan, start: Nanos) -> Self {
        let ends_by_bytes = !matches!(plan.end, End::TimeNs(_));
        let progress = |within, matters| Progress {
            within,
            matters,
            at: start,
            bytes: 0,
        };
        // iperf3 sends ten whole blocks at once, and then nothing until its rate has paid for them.
        let burst = plan.rate_bps.map_or(Nanos::ZERO, |rate| {
            rate.time_for(Bytes(plan.block_bytes.count().saturating_mul(2 * BURST)))
        });
        let within = plan.idle_timeout_ns.max(burst);
        // A slower rate than that was asked for.
        let asked = plan.rate_bps.map_or(u64::MAX, |rate| {
            let bits = u128::from(rate.0) * u128::from(plan.idle_timeout_ns.0) / 1_000_000_000;
            u64::try_from(bits / 16).unwrap_or(u64::MAX)
        });
        Self {
            any: ends_by_bytes.then(|| progress(within, MATTERS.min(asked).max(1))),
            received: plan.receive_timeout_ns.map(|within| progress(within, 1)),
        }
    }

    /// Why the test is given up, if it is; `stored` bytes of a transfer are on the server's disk.
    pub(super) fn look(
        &mut self,
        now: Nanos,
        streams: &[StreamHandle],
        stored: u64,
    ) -> Option<String> {
        let sum = |received_only: bool| -> u64 {
            let counted = streams.iter().filter(|one| !(received_only && one.sends));
            counted.map(|one| one.live.latest().bytes).sum()
        };
        let receives = streams.iter().any(|one| !one.sends && !one.is_finished());
        if let Some(received) = self.received.as_mut().filter(|_| receives)
            && received.look(now, sum(true))
        {
            return Some("idle timeout for receiving data".to_owned());
        }
        let any = self.any.as_mut()?;
        any.look(now, sum(false).saturating_add(stored)).then(|| {
            format!(
                "less than {} B moved in {} (--idle-timeout): the server may have stopped, or the path is broken",
                any.matters, any.within
            )
        })
    }

    /// When to look again at the latest.
    pub(super) fn wake(&self) -> Nanos {
        let at = |progress: &Option<Progress>| progress.as_ref().map(|one| one.at.plus(one.within));
        at(&self.any)
            .into_iter()
            .chain(at(&self.received))
            .min()
            .unwrap_or(Nanos(u64::MAX / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_now_and_then_is_no_progress() {
        let mut progress = Progress {
            within: Nanos(100),
            matters: 10,
            at: Nanos(0),
            bytes: 0,
        };
        assert!(!progress.look(Nanos(99), 9));
        assert!(progress.look(Nanos(100), 9));
        assert!(!progress.look(Nanos(101), 10));
        assert!(progress.look(Nanos(201), 19));
    }

    #[test]
    fn only_tests_that_bytes_end_wait_for_them() {
        let mut plan = Plan::new("h");
        assert_eq!(Idle::new(&plan, Nanos(0)).wake(), Nanos(u64::MAX / 2));
        plan.end = End::Blocks(1);
        plan.idle_timeout_ns = Nanos(5);
        assert_eq!(Idle::new(&plan, Nanos(10)).wake(), Nanos(15));
        plan.receive_timeout_ns = Some(Nanos(3));
        assert_eq!(Idle::new(&plan, Nanos(10)).wake(), Nanos(13));
    }
}
