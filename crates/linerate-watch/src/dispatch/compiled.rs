//! A plan as the dispatcher needs it: for each pair what its tests hold and cost.

use std::collections::HashMap;
use std::sync::Arc;

use linerate_model::plain_text::PlainText;
use linerate_model::watch::UnixMillis;

use super::budget::{Bucket, Cost};
use super::identity::Hash;
use super::lease::End;
use super::moments::Moments;
use super::resource::Resource;
use crate::watched::{Duplex, Task, Watched, WatchedHost};

/// What a test books of its hosts beyond its load, ms: both ends prepare, connect, drain and report.
///
/// An assumption, not a measurement: the figure with which the schedule was simulated when it was designed.
pub const OVERHEAD_MILLIS: u64 = 1_500;

/// How long both ends look at their link before a test that needs a quiet one, ms.
pub const LOOK_MILLIS: u64 = 5_000;

/// What a test of a task books of its hosts beyond its load, ms.
pub(crate) const fn overhead_millis(quiet: Option<f64>) -> u64 {
    match quiet {
        Some(_) => OVERHEAD_MILLIS + LOOK_MILLIS,
        None => OVERHEAD_MILLIS,
    }
}

/// So many light tests run at a time on a host.
const LIGHT_SLOTS: u64 = 4;

/// What a host has: all of it, one direction of its interface, or slots of light tests.
const PARTS: usize = 4;
const WHOLE: usize = 0;
const SENDS: usize = 1;
const RECEIVES: usize = 2;
const LIGHT: usize = 3;

/// The names of a pair in all parts of the program: task, sender, receiver, and which of several with the same names.
pub(super) type PairKey = (PlainText, PlainText, PlainText, u64);

/// What is known of a pair before it is tested.
#[derive(Debug, Clone)]
pub(super) struct PairPlan {
    pub(super) task: usize,
    /// Its place in [`Task::pairs`].
    pub(super) place: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) key: PairKey,
    /// `TASK FROM > TO`.
    pub(super) label: Arc<str>,
    /// Hash of the names, for ids.
    pub(super) hash: Hash,
    /// Hash of the names and the seed, for moments.
    seeded: u64,
    pub(super) load: u64,
    /// What a test books beyond its load, ms.
    pub(super) overhead: u64,
    /// Bytes and seconds that a test is expected to use.
    pub(super) cost: Cost,
    /// The expected rate where a test's own bytes may not decide it.
    pub(super) rate: Option<u64>,
    /// Resources and how much of each.
    pub(super) needs: Vec<(usize, u64)>,
    /// The limited budgets that it takes from.
    pub(super) buckets: Vec<usize>,
    /// The end that dials; absent = neither can.
    pub(super) client: Option<End>,
    /// How busy its busier host is by the plan, in millionths.
    pub(super) degree: u64,
}

impl PairPlan {
    pub(super) const fn host(&self, end: End) -> usize {
        match end {
            End::From => self.from,
            End::To => self.to,
        }
    }

    pub(super) const fn booked(&self) -> u64 {
        self.load + self.overhead
    }

    pub(super) fn moments<'a>(&self, watched: &'a Watched) -> Moments<'a> {
        Moments {
            schedule: &watched.tasks[self.task].schedule,
            key: self.seeded,
            booked: self.booked(),
        }
    }
}

/// A plan, its pairs in a row.
#[derive(Debug, Clone)]
pub(super) struct Compiled {
    pub(super) pairs: Vec<PairPlan>,
    pub(super) places: HashMap<PairKey, usize>,
    /// A test waits no longer than this, ms.
    pub(super) window: u64,
}

impl Compiled {
    /// Pairs that name a host which the plan does not have, and a host with itself, are left out.
    pub(super) fn new(watched: &Watched, seed: u64) -> Self {
        let mut counted: HashMap<(PlainText, PlainText, PlainText), u64> = HashMap::new();
        let mut pairs = Vec::new();
        for (task, asked) in watched.tasks.iter().enumerate() {
            for place in 0..asked.pairs.len() {
                let mut occurrence = |names| {
                    let count = counted.entry(names).or_insert(0);
                    *count += 1;
                    *count - 1
                };
                pairs.extend(pair_plan(watched, seed, task, place, &mut occurrence));
            }
        }
        count_degrees(watched, &mut pairs);
        let places = pairs.iter().enumerate();
        let places = places.map(|(place, pair)| (pair.key.clone(), place));
        Self {
            places: places.collect(),
            pairs,
            window: window(watched),
        }
    }
}

/// How long a test may wait, ms: tests of a schedule until the next one is due, others for some minutes.
fn window(watched: &Watched) -> u64 {
    const OTHERS: u64 = 3_600_000;
    // The gaps of Poisson's schedule are up to three periods.
    let periods = watched.tasks.iter().map(|task| task.schedule.period_millis);
    let longest = periods.max().unwrap_or(0).saturating_mul(3);
    longest.max(OTHERS)
}

fn pair_plan(
    watched: &Watched,
    seed: u64,
    task: usize,
    place: usize,
    occurrence: &mut dyn FnMut((PlainText, PlainText, PlainText)) -> u64,
) -> Option<PairPlan> {
    let asked = &watched.tasks[task];
    let pair = &asked.pairs[place];
    let (from, to) = (watched.hosts.get(pair.from)?, watched.hosts.get(pair.to)?);
    if pair.from == pair.to {
        return None;
    }
    let names = (asked.name.clone(), from.name.clone(), to.name.clone());
    let nth = occurrence(names.clone());
    let hash = Hash::new().text(&names.0).text(&names.1).text(&names.2);
    let hash = if nth == 0 { hash } else { hash.number(nth) };
    let segments = segments(watched, from, to);
    let rate = asked.rate.map(|rate| rate.0);
    let link = from.link.map_or(u64::MAX, |link| link.0);
    let link = link.min(to.link.map_or(u64::MAX, |link| link.0));
    let known = from.link.is_some() && to.link.is_some();
    let light = known && rate.is_some_and(|rate| u128::from(rate) * 100 <= u128::from(link));
    let expected = rate.map_or(link, |rate| rate.min(link));
    let expected = (expected < u64::MAX).then_some(expected);
    Some(PairPlan {
        task,
        place,
        from: pair.from,
        to: pair.to,
        label: format!("{} {} > {}", names.0, names.1, names.2).into(),
        key: (names.0, names.1, names.2, nth),
        hash,
        seeded: hash.number(seed).narrow(),
        load: asked.load_millis,
        overhead: overhead_millis(asked.quiet),
        cost: Cost {
            bytes: expected.map_or(0.0, |rate| bytes(rate, asked.load_millis)),
            seconds: asked.load_millis as f64 / 1e3,
        },
        rate: expected,
        needs: needs(watched, pair.from, pair.to, light, expected, &segments),
        buckets: buckets(watched, pair.from, pair.to, &segments),
        client: client(from, to),
        degree: 0,
    })
}

/// How many bytes a rate in bit/s carries in so many ms.
pub(super) fn bytes(rate: u64, millis: u64) -> f64 {
    rate as f64 * millis as f64 / 8e3
}

/// The segments between two hosts: those that only one of them is behind.
fn segments(watched: &Watched, from: &WatchedHost, to: &WatchedHost) -> Vec<usize> {
    let passes = |segment: &usize| from.segments.contains(segment) != to.segments.contains(segment);
    (0..watched.segments.len()).filter(passes).collect()
}

fn needs(
    watched: &Watched,
    from: usize,
    to: usize,
    light: bool,
    rate: Option<u64>,
    segments: &[usize],
) -> Vec<(usize, u64)> {
    if light {
        return vec![(from * PARTS + LIGHT, 1), (to * PARTS + LIGHT, 1)];
    }
    let sends = part(watched, from, SENDS);
    let mut needs = vec![(sends, 1), (part(watched, to, RECEIVES), 1)];
    for &segment in segments {
        let of = watched.hosts.len() * PARTS + segment;
        needs.push((of, rate.unwrap_or(u64::MAX)));
    }
    needs
}

/// What a test that still runs holds although the plan no longer has its pair: what is left of its hosts, and the segments
/// between them.
pub(super) fn needs_without_pair(watched: &Watched, from: &str, to: &str) -> Vec<(usize, u64)> {
    let place = |name: &str| watched.hosts.iter().position(|host| host.name == *name);
    match (place(from), place(to)) {
        (Some(from), Some(to)) => {
            let between = segments(watched, &watched.hosts[from], &watched.hosts[to]);
            needs(watched, from, to, false, None, &between)
        }
        (Some(from), None) => vec![(part(watched, from, SENDS), 1)],
        (None, Some(to)) => vec![(part(watched, to, RECEIVES), 1)],
        (None, None) => Vec::new(),
    }
}

/// What of a host a test in one direction holds.
fn part(watched: &Watched, host: usize, direction: usize) -> usize {
    match watched.hosts[host].duplex {
        Duplex::Exclusive => host * PARTS + WHOLE,
        Duplex::Independent => host * PARTS + direction,
    }
}

fn buckets(watched: &Watched, from: usize, to: usize, segments: &[usize]) -> Vec<usize> {
    let limited = |budget: &crate::watched::Budget| *budget != crate::watched::Budget::default();
    let hosts = [from, to].into_iter();
    let hosts = hosts.filter(|&host| limited(&watched.hosts[host].budget));
    let segments = segments.iter().copied();
    let segments = segments.filter(|&segment| limited(&watched.segments[segment].budget));
    let segments = segments.map(|segment| watched.hosts.len() + segment);
    hosts.chain(segments).collect()
}

/// Which end dials the other: one that runs commands, to one that listens; the sender if it can.
fn client(from: &WatchedHost, to: &WatchedHost) -> Option<End> {
    if from.reach.commands() && to.listens {
        Some(End::From)
    } else if to.reach.commands() && from.listens {
        Some(End::To)
    } else {
        None
    }
}

fn count_degrees(watched: &Watched, pairs: &mut [PairPlan]) {
    let mut busy = vec![0_u64; watched.hosts.len()];
    for pair in pairs.iter() {
        let period = watched.tasks[pair.task].schedule.period_millis.max(1_000);
        let share = pair.booked().saturating_mul(1_000_000) / period;
        for host in [pair.from, pair.to] {
            busy[host] = busy[host].saturating_add(share);
        }
    }
    for pair in pairs {
        pair.degree = busy[pair.from].max(busy[pair.to]);
    }
}

/// What tests hold, by the places in [`PairPlan::needs`].
pub(super) fn resources(watched: &Watched) -> Vec<Resource> {
    let host = |host: &WatchedHost| {
        let name = &host.name;
        [
            Resource::new(name.clone(), 1),
            Resource::new(format!("{name} sends").into(), 1),
            Resource::new(format!("{name} receives").into(), 1),
            Resource::new(format!("{name} light tests").into(), LIGHT_SLOTS),
        ]
    };
    let segment = |segment: &crate::watched::Segment| {
        let capacity = segment.capacity.map_or(1, |capacity| capacity.0);
        Resource::new(segment_name(&segment.name), capacity)
    };
    let hosts = watched.hosts.iter().flat_map(host);
    hosts.chain(watched.segments.iter().map(segment)).collect()
}

/// The budgets of hosts and segments, by the places in [`PairPlan::buckets`].
pub(super) fn all_buckets(watched: &Watched, now: UnixMillis) -> Vec<Bucket> {
    let hosts = watched.hosts.iter();
    let hosts = hosts.map(|host| Bucket::new(host.name.clone(), host.budget, now));
    let segments = watched.segments.iter();
    let segments =
        segments.map(|segment| Bucket::new(segment_name(&segment.name), segment.budget, now));
    hosts.chain(segments).collect()
}

fn segment_name(name: &PlainText) -> PlainText {
    format!("segment {name}").into()
}

/// How long a test of this task takes beside its load, ms: the longest of the plan is what a new hub waits for.
pub(super) fn longest(watched: &Watched) -> u64 {
    let load = |task: &Task| task.load_millis;
    watched.tasks.iter().map(load).max().unwrap_or(0) + OVERHEAD_MILLIS
}
