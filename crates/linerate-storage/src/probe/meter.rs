//! Counting the requests of a pattern while it runs.

use linerate_model::latency::Latencies;
use linerate_model::probe::TICK;
use linerate_model::units::Nanos;

/// Requests by tick, and latencies behind the ramp.
#[derive(Debug, Clone)]
pub(super) struct Meter {
    began: Nanos,
    ramp: Nanos,
    pub(super) ticks: Vec<u64>,
    pub(super) requests: u64,
    pub(super) latency: Latencies,
}

impl Meter {
    pub(super) fn new(began: Nanos, ramp: Nanos) -> Self {
        Self {
            began,
            ramp,
            ticks: Vec::new(),
            requests: 0,
            latency: Latencies::default(),
        }
    }

    /// When the measured time begins.
    pub(super) fn measured_from(&self) -> Nanos {
        self.began.plus(self.ramp)
    }

    /// A request that was sent then has ended now.
    pub(super) fn ended(&mut self, sent: Nanos, now: Nanos) {
        let tick = usize::try_from(now.since(self.began).0 / TICK.0).unwrap_or(usize::MAX);
        // A pattern lasts an hour at most.
        while self.ticks.len() <= tick {
            self.ticks.push(0);
        }
        self.ticks[tick] += 1;
        if now >= self.measured_from() {
            self.requests += 1;
            self.latency.add(now.since(sent));
        }
    }

    /// What another meter of the same pattern has counted.
    pub(super) fn add(&mut self, other: &Self) {
        while self.ticks.len() < other.ticks.len() {
            self.ticks.push(0);
        }
        for (mine, theirs) in self.ticks.iter_mut().zip(&other.ticks) {
            *mine += theirs;
        }
        self.requests += other.requests;
        self.latency.add_all(&other.latency);
    }

    /// Requests a second in each whole tick of the measured time until now.
    pub(super) fn rates(&self, now: Nanos) -> Vec<f64> {
        let from = usize::try_from(self.ramp.0 / TICK.0).unwrap_or(usize::MAX);
        let until = usize::try_from(now.since(self.began).0 / TICK.0).unwrap_or(usize::MAX);
        let count = |tick: usize| self.ticks.get(tick).copied().unwrap_or(0) as f64;
        (from..until)
            .map(|tick| count(tick) / TICK.as_secs_f64())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ramp_is_in_the_ticks_alone() {
        let at = Nanos::from_millis;
        let mut meter = Meter::new(at(1000), at(200));
        meter.ended(at(1001), at(1010));
        meter.ended(at(1010), at(1199));
        meter.ended(at(1190), at(1200));
        meter.ended(at(1200), at(1450));
        assert_eq!(meter.ticks, [1, 0, 0, 1, 1, 0, 0, 0, 0, 1]);
        assert_eq!((meter.requests, meter.latency.max()), (2, at(250)));
        assert_eq!(meter.rates(at(1350)), [20.0, 0.0, 0.0]);
        assert_eq!(meter.rates(at(1550)), [20.0, 0.0, 0.0, 0.0, 0.0, 20.0, 0.0]);
        let mut sum = Meter::new(at(1000), at(200));
        sum.add(&meter);
        sum.add(&meter);
        assert_eq!((sum.ticks[9], sum.requests), (2, 4));
    }
}
