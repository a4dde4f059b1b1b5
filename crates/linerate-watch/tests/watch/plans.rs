//! Plans for tests of the dispatcher.

use linerate_model::units::BitRate;
use linerate_watch::watched::{
    Budget, Duplex, Pair, Reach, Sampling, Schedule, Task, Watched, WatchedHost,
};

pub(crate) const SECOND: u64 = 1_000;
pub(crate) const MINUTE: u64 = 60 * SECOND;
pub(crate) const HOUR: u64 = 60 * MINUTE;
pub(crate) const DAY: u64 = 24 * HOUR;
pub(crate) const GIGABIT: u64 = 1_000_000_000;

pub(crate) fn host(name: &str) -> WatchedHost {
    WatchedHost {
        ports: None,
        name: name.into(),
        address: name.into(),
        reach: Reach::Agent,
        listens: true,
        link: None,
        duplex: Duplex::Exclusive,
        segments: Vec::new(),
        groups: Vec::new(),
        budget: Budget::default(),
    }
}

pub(crate) fn hosts(count: usize) -> Vec<WatchedHost> {
    (0..count).map(|place| host(&format!("h{place}"))).collect()
}

pub(crate) fn pair(from: usize, to: usize) -> Pair {
    Pair {
        from,
        to,
        from_address: None,
        to_address: None,
    }
}

pub(crate) fn every(period_millis: u64) -> Schedule {
    Schedule {
        period_millis,
        slip_millis: None,
        sampling: Sampling::Stratified,
        hours: Vec::new(),
    }
}

pub(crate) fn task(name: &str, pairs: &[(usize, usize)], period_millis: u64) -> Task {
    Task {
        name: name.into(),
        options: Vec::new(),
        load_millis: 10 * SECOND,
        rate: None,
        pairs: pairs.iter().map(|&(from, to)| pair(from, to)).collect(),
        schedule: every(period_millis),
        expected: None,
        quiet: None,
    }
}

pub(crate) fn plan(hosts: Vec<WatchedHost>, tasks: Vec<Task>) -> Watched {
    Watched {
        hosts,
        tasks,
        ..Watched::default()
    }
}

pub(crate) fn mesh(hosts: usize) -> Vec<(usize, usize)> {
    let from = |from| (0..hosts).map(move |to| (from, to));
    let all = (0..hosts).flat_map(from);
    all.filter(|(from, to)| from != to).collect()
}

/// Like the template of `ESnet`: 5,040 pairs in 53 tasks, 10 s after 5 s that are omitted, each pair every six hours; two hosts are
/// in many more pairs than the others.
pub(crate) fn like_esnet() -> Watched {
    let mut hosts = hosts(40);
    for host in &mut hosts {
        host.link = Some(BitRate(10 * GIGABIT));
    }
    let sized = |name: String, pairs: &[(usize, usize)], paced: bool| Task {
        load_millis: 15 * SECOND,
        rate: paced.then_some(BitRate(8 * GIGABIT)),
        schedule: Schedule {
            slip_millis: Some(6 * HOUR),
            ..every(6 * HOUR)
        },
        ..task(&name, pairs, 6 * HOUR)
    };
    let meshes = (0..8).map(|k| sized(format!("mesh{k}"), &mesh(24), k % 2 == 0));
    let stars = (0..45).map(|k| {
        let (centre, pairs) = (k % 2, if k < 39 { 14 } else { 13 });
        let leaf = |n: usize| 2 + (k * 7 + n / 2) % 38;
        let both = |n: usize| match n % 2 {
            0 => (centre, leaf(n)),
            _ => (leaf(n), centre),
        };
        let pairs: Vec<(usize, usize)> = (0..pairs).map(both).collect();
        sized(format!("star{k}"), &pairs, k % 3 == 0)
    });
    let tasks: Vec<Task> = meshes.chain(stars).collect();
    plan(hosts, tasks)
}
