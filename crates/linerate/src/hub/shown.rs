//! What pages show of the running hub.

use linerate_hub::live::{AgentState, DueTest, ReachedBy, RunningTest};
use linerate_model::watch::UnixMillis;
use linerate_watch::dispatch::{Coming, Dispatcher, Lease};
use linerate_watch::watched::{Reach, Watched, WatchedHost};

/// Tests that are shown as due next.
const MOST_NEXT: usize = 200;

pub(super) fn running(lease: &Lease) -> RunningTest {
    RunningTest {
        id: lease.run,
        task: lease.task.clone(),
        from: lease.from.clone(),
        to: lease.to.clone(),
        class: lease.class,
        started: lease.granted,
        until: lease.expiry,
    }
}

/// The tests that are due next, the first one first.
pub(super) fn next(dispatcher: &Dispatcher, now: UnixMillis) -> Vec<DueTest> {
    let due = |test: Coming| DueTest {
        task: test.task,
        from: test.from,
        to: test.to,
        class: test.class,
        due: test.due,
        deadline: test.deadline,
        waits_for: test.blocked.map(|(_, _, why)| why),
    };
    let coming = dispatcher.coming(now, MOST_NEXT).into_iter();
    coming.map(due).collect()
}

/// The hosts of the plan whose end the hub starts, as they were before where they are the same.
pub(super) fn agents(watched: &Watched, before: &[AgentState]) -> Vec<AgentState> {
    let agent = |host: &WatchedHost| {
        let reach = ReachedBy::from(&host.reach);
        let known = before.iter().find(|known| known.host == host.name);
        if let Some(known) = known.filter(|known| known.reach == reach) {
            return known.clone();
        }
        AgentState {
            host: host.name.clone(),
            reach,
            // Servers need no agent.
            connected: !host.reach.commands(),
            last_seen: None,
            software: None,
            why: match host.reach {
                Reach::Agent => Some("its agent has not connected to the hub yet".into()),
                Reach::Ssh => Some("the hub has not connected to it yet".into()),
                Reach::Linerate(_) | Reach::Iperf3(_) => None,
            },
        }
    };
    watched.hosts.iter().map(agent).collect()
}
