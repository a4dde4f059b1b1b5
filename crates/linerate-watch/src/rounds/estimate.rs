//! What a schedule costs, before it runs.

use linerate_model::units::{BitRate, Bytes, Nanos};

use super::Schedule;

/// What one test costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// How long data flows in a test, what is discarded at its beginning included.
    pub test: Nanos,
    /// What a round takes beyond that: both ends start, connect and report.
    pub overhead: Nanos,
    /// The rate that is expected of each test.
    pub rate: BitRate,
}

/// What a schedule costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// How many tests there are.
    pub tests: usize,
    /// How long all rounds take.
    pub time: Nanos,
    /// Payload of all tests.
    pub bytes: Bytes,
    /// Payload that the busiest host sends and receives.
    pub busiest: Bytes,
}

impl Schedule {
    /// What the schedule costs; figures that do not fit are held at the largest value.
    pub fn estimate(&self, costs: &Costs) -> Estimate {
        let rounds = self.rounds.len() as u64;
        let round = costs.test.plus(costs.overhead);
        let bits = u128::from(costs.rate.0) * u128::from(costs.test.0) / 1_000_000_000;
        let bytes = |tests: usize| {
            let bytes = bits * tests as u128 / 8;
            Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
        };
        Estimate {
            tests: self.tests(),
            time: Nanos(round.0.saturating_mul(rounds)),
            bytes: bytes(self.tests()),
            busiest: bytes(self.busiest()),
        }
    }

    /// The tests of the host that takes part in the most.
    fn busiest(&self) -> usize {
        let mut tests: Vec<usize> = Vec::new();
        for pair in self.rounds.iter().flatten() {
            let ends = [pair.from, pair.to];
            let hosts = tests.len().max(pair.from.max(pair.to) + 1);
            tests.resize(hosts, 0);
            for host in ends {
                tests[host] += 1;
            }
        }
        tests.into_iter().max().unwrap_or(0)
    }
}
