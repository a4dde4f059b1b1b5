//! Whether tests used the same at the same time, by nothing but their rows.

use std::collections::{BTreeMap, HashMap};

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{RunId, UnixMillis, WatchRun};

use crate::watched::{Duplex, Task, Watched, WatchedHost};

/// Tests that used the same at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// What they used: a host, a direction of one, a segment.
    pub of: PlainText,
    /// The one that began earlier; of a segment, one of those that ran.
    pub earlier: RunId,
    /// The one that should not have begun.
    pub later: RunId,
}

/// A test that used something, when, and how much.
type Use = (UnixMillis, UnixMillis, RunId, u64);

/// Overlaps of the recorded times of tests: on a host, on a direction of one, beyond what a segment carries.
pub fn overlaps(watched: &Watched, rows: &[WatchRun]) -> Vec<Overlap> {
    let hosts: HashMap<&str, &WatchedHost> = by_name(&watched.hosts, |host| &host.name);
    let tasks: HashMap<&str, &Task> = by_name(&watched.tasks, |task| &task.name);
    let mut uses: BTreeMap<(String, u64), Vec<Use>> = BTreeMap::new();
    for row in rows {
        let ends = (hosts.get(row.from.as_str()), hosts.get(row.to.as_str()));
        let (Some(began), (Some(from), Some(to)), Some(task)) =
            (row.started, ends, tasks.get(row.task.as_str()))
        else {
            continue;
        };
        for (of, capacity, amount) in uses_of(watched, task, from, to) {
            let used = (began, row.ended, row.id, amount);
            uses.entry((of, capacity)).or_default().push(used);
        }
    }
    let found = |((of, capacity), uses): ((String, u64), Vec<Use>)| beyond(&of, capacity, uses);
    uses.into_iter().flat_map(found).collect()
}

fn by_name<T>(items: &[T], name: impl Fn(&T) -> &PlainText) -> HashMap<&str, &T> {
    items
        .iter()
        .map(|item| (name(item).as_str(), item))
        .collect()
}

/// What a test uses, how much there is of it, and how much the test needs.
fn uses_of(
    watched: &Watched,
    task: &Task,
    from: &WatchedHost,
    to: &WatchedHost,
) -> Vec<(String, u64, u64)> {
    let link = match (from.link, to.link) {
        (Some(from), Some(to)) => Some(from.0.min(to.0)),
        (one, other) => one.or(other).map(|link| link.0),
    };
    let paced = task.rate.map(|rate| rate.0);
    let light = match (paced, from.link, to.link) {
        (Some(rate), Some(from), Some(to)) => rate <= from.0.min(to.0) / 100,
        _ => false,
    };
    if light {
        return Vec::new();
    }
    let part = |host: &WatchedHost, does: &str| match host.duplex {
        Duplex::Exclusive => host.name.to_string(),
        Duplex::Independent => format!("{} {does}", host.name),
    };
    let mut uses = vec![(part(from, "sends"), 1, 1), (part(to, "receives"), 1, 1)];
    let rate = paced.into_iter().chain(link).min();
    for (place, segment) in watched.segments.iter().enumerate() {
        if from.segments.contains(&place) != to.segments.contains(&place) {
            let capacity = segment.capacity.map_or(1, |capacity| capacity.0).max(1);
            let amount = rate.unwrap_or(capacity).min(capacity);
            uses.push((format!("segment {}", segment.name), capacity, amount));
        }
    }
    uses
}

/// Those that began when there was not enough left.
fn beyond(of: &str, capacity: u64, mut uses: Vec<Use>) -> Vec<Overlap> {
    uses.sort_unstable();
    let mut running: Vec<Use> = Vec::new();
    let mut found = Vec::new();
    for next in uses {
        running.retain(|(_, ended, ..)| *ended > next.0);
        let used: u64 = running.iter().map(|(.., amount)| amount).sum();
        if let Some(earlier) = running.first()
            && used + next.3 > capacity
        {
            found.push(Overlap {
                of: of.into(),
                earlier: earlier.2,
                later: next.2,
            });
        }
        running.push(next);
    }
    found
}
