//! What pages show of the running hub.

use linerate_hub::live::{AgentState, DueTest, ReachedBy, RunningTest};
use linerate_model::plain_text::PlainText;
use linerate_model::watch::UnixMillis;
use linerate_watch::dispatch::{Dispatcher, Lease};
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
    let mut next = Vec::new();
    let watched = dispatcher.watched();
    for task in &watched.tasks {
        for pair in &task.pairs {
            let name = |place: usize| watched.hosts.get(place).map(|host| host.name.clone());
            if let (Some(from), Some(to)) = (name(pair.from), name(pair.to)) {
                of_pair(dispatcher, now, [task.name.clone(), from, to], &mut next);
            }
        }
    }
    next.sort_by_key(|test| test.due);
    next.truncate(MOST_NEXT);
    next
}

fn of_pair(
    dispatcher: &Dispatcher,
    now: UnixMillis,
    [task, from, to]: [PlainText; 3],
    next: &mut Vec<DueTest>,
) {
    let Some(outlook) = dispatcher.outlook(now, &task, &from, &to) else {
        return;
    };
    for test in outlook.waiting {
        next.push(DueTest {
            task: task.clone(),
            from: from.clone(),
            to: to.clone(),
            class: test.class,
            due: test.due,
            deadline: test.deadline,
            waits_for: test.blocked.map(|(_, _, why)| why),
        });
    }
    if let Some(due) = outlook.next_due {
        next.push(DueTest {
            task,
            from,
            to,
            class: linerate_model::watch::RunClass::Regular,
            due,
            deadline: due,
            waits_for: None,
        });
    }
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
