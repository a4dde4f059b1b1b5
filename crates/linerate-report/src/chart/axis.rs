//! Both ends' instants on one axis.

use linerate_model::clock::ClockPair;
use linerate_model::record::{Role, RunRecord};

#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    /// When the client let its streams go, its clock.
    client: Option<u64>,
    /// When the server did, its clock.
    server: Option<u64>,
    clock: Option<ClockPair>,
}

impl Axis {
    pub(super) fn of(record: &RunRecord) -> Self {
        let start = |role| record.end(role).map(|end| end.start_ns.0);
        Self {
            client: start(Role::Client),
            server: start(Role::Server),
            clock: record.clock,
        }
    }

    /// An instant of an end's clock, ns since the start.
    pub(super) fn at(&self, role: Role, instant: u64) -> i64 {
        let (instant, zero) = match (role, self.client, self.server, self.clock) {
            (Role::Server, Some(client), _, Some(clock)) => (clock.to_ours(instant), client),
            // Without a clock for both: both ends were let go at the same time, but for half a round trip.
            (Role::Server, _, server, _) => (instant, server.unwrap_or(0)),
            (Role::Client, client, _, _) => (instant, client.unwrap_or(0)),
        };
        let since = i128::from(instant) - i128::from(zero);
        i64::try_from(since).unwrap_or(if since > 0 { i64::MAX } else { i64::MIN })
    }

    /// ns since an end's own start, on the axis.
    pub(super) fn since_start(&self, role: Role, since: u64) -> i64 {
        let start = match role {
            Role::Client => self.client,
            Role::Server => self.server,
        };
        self.at(role, start.unwrap_or(0).saturating_add(since))
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::plan::Plan;
    use linerate_testing::fixture::{self, CLIENT_START_NS, CLOCK_OFFSET_NS, Traffic};

    use super::*;

    #[test]
    fn the_other_end_s_clock_is_moved() {
        let mut record = fixture::run(&Plan::new("server"), &Traffic::default());
        let axis = Axis::of(&record);
        let server = (CLIENT_START_NS + 5).saturating_add_signed(CLOCK_OFFSET_NS);
        assert_eq!(axis.at(Role::Client, CLIENT_START_NS + 5), 5);
        assert_eq!(axis.at(Role::Server, server), 5);
        assert_eq!(axis.at(Role::Client, CLIENT_START_NS - 7), -7);
        record.client = None;
        let start = record.server.as_ref().unwrap().start_ns.0;
        assert_eq!(Axis::of(&record).at(Role::Server, start + 9), 9);
    }
}
