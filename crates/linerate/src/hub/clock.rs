//! The hub's time.

use linerate_kernel::clock;
use linerate_model::units::Nanos;
use linerate_model::watch::UnixMillis;

/// One reading of the wall clock when the hub started, plus the time since then, that of a suspended machine included: a
/// step of the wall clock moves no test.
#[derive(Debug, Clone, Copy)]
pub(super) struct HubClock {
    started: UnixMillis,
    at: Nanos,
}

impl HubClock {
    pub(super) fn start() -> Self {
        Self {
            started: UnixMillis(clock::wall().0 / 1_000_000),
            at: clock::boot(),
        }
    }

    pub(super) fn now(&self) -> UnixMillis {
        let passed = clock::boot().since(self.at);
        self.started.plus_millis(passed.0 / 1_000_000)
    }

    /// How far the wall clock is from it by now, ms: it was set meanwhile.
    pub(super) fn set_since(&self) -> i64 {
        let wall = clock::wall().0 / 1_000_000;
        wall.cast_signed()
            .saturating_sub(self.now().0.cast_signed())
    }
}
