//! The hub's time.

use linerate_kernel::clock;
use linerate_model::units::Nanos;
use linerate_model::watch::UnixMillis;

/// One reading of the wall clock when the hub started, plus the monotonic clock: a step of the wall clock moves no test.
#[derive(Debug, Clone, Copy)]
pub(super) struct HubClock {
    started: UnixMillis,
    at: Nanos,
}

impl HubClock {
    pub(super) fn start() -> Self {
        Self {
            started: UnixMillis(clock::wall().0 / 1_000_000),
            at: clock::monotonic(),
        }
    }

    pub(super) fn now(&self) -> UnixMillis {
        let passed = clock::monotonic().since(self.at);
        self.started.plus_millis(passed.0 / 1_000_000)
    }
}
