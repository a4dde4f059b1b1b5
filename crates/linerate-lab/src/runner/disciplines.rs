//! The engine by netem and tbf: the router's interfaces delay, lose and shape what leaves by them, in the kernel. A
//! thread makes the changes when their times have come.
//!
//! Where a direction needs both, netem stands first: what it loses never reaches the bottleneck, and a packet waits in
//! tbf's queue after its way and not before it, which a test's ends cannot tell apart. Where it needs neither, its
//! interface has no discipline, and nothing counts its packets.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use linerate_kernel::counters::{self, QdiscCounters};
use linerate_kernel::event::EventFd;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::setting::emulation::{Place, set_netem, set_token_bucket};
use linerate_kernel::{KernelError, clock, route};
use linerate_model::units::{Bytes, Nanos};
use serde::Serialize;

use super::engine::FORWARD_THREAD;
use super::orders::{Orders, link, needs_netem, netem};
use crate::path::{ClassCounters, Counters, DirectionSpec, Drops, Settings, Tally, random_at};
use crate::scenario::Way;

/// What one direction's disciplines counted. Frames that find neighbours (ARP, neighbour discovery) count as well.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Shaped {
    /// The disciplines that packets meet, the first first; empty where the scenario asks nothing of the direction, and
    /// then nothing is counted.
    pub disciplines: Vec<&'static str>,
    /// Bytes that tbf lets pass at once after a rest, or a change of its rate or queue, counted like the rate; `None`
    /// without one.
    pub burst: Option<Bytes>,
    /// Packets that left, copies among them.
    pub delivered_packets: Option<u64>,
    /// Their IP bytes; `None` also where `overhead` changes on the way.
    pub delivered_bytes: Option<u64>,
    /// Packets that netem lost; `None` without one.
    pub lost: Option<u64>,
    /// Packets that found tbf's queue full; `None` without one.
    pub queue_dropped: Option<u64>,
    /// Packets on the way or in the queue now.
    pub held_packets: Option<u64>,
    /// Changes of the settings that took effect.
    pub changes: u32,
    /// When this was so, on the monotonic clock.
    pub at: Nanos,
}

/// Both directions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Shaping {
    /// Sender to receiver.
    pub forward: Shaped,
    /// Receiver to sender.
    pub back: Shaped,
}

impl Shaping {
    /// One direction.
    pub const fn way(&self, way: Way) -> &Shaped {
        match way {
            Way::Forward => &self.forward,
            Way::Back => &self.back,
        }
    }
}

impl Shaped {
    /// What is known of it in the path's own counters; all that is not is 0 there, so only what the disciplines count
    /// may be read.
    pub(super) fn counted(&self) -> Counters {
        let tally = |packets: Option<u64>| Tally {
            packets: packets.unwrap_or(0),
            segments: packets.unwrap_or(0),
            bytes: 0,
        };
        let known = [
            self.delivered_packets,
            self.held_packets,
            self.lost,
            self.queue_dropped,
        ];
        let offered = known.into_iter().flatten().sum();
        Counters {
            ours: ClassCounters {
                offered: tally(Some(offered)),
                delivered: tally(self.delivered_packets),
                held: tally(self.held_packets),
                dropped: Drops {
                    queue: tally(self.queue_dropped),
                    loss: tally(self.lost),
                    ..Drops::default()
                },
                ..ClassCounters::default()
            },
            loss_hits: self.lost.unwrap_or(0),
            loss_trials: offered,
            changes: self.changes,
            ..Counters::default()
        }
    }
}

/// Commands to the engine.
#[derive(Debug)]
pub(super) struct DisciplineSettings<'a> {
    pub(super) forward: &'a DirectionSpec,
    pub(super) back: &'a DirectionSpec,
    pub(super) seed: u64,
    /// The router's interfaces by which packets leave, forward and back.
    pub(super) ports: [&'a str; 2],
    /// The largest packet, IP bytes.
    pub(super) mtu: u32,
}

/// The running engine.
#[derive(Debug)]
pub(super) struct Disciplines {
    ways: Arc<[Direction; 2]>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), KernelError>>>,
}

/// Messages to and from the thread.
#[derive(Debug)]
struct Shared {
    /// When the test began.
    begun: Mutex<Option<Nanos>>,
    stop: AtomicBool,
    wake: EventFd,
    /// Changes made, forward and back.
    changes: [AtomicU32; 2],
}

impl Disciplines {
    /// Puts the disciplines there, and starts the thread that changes them. The calling thread is in the router's
    /// namespace.
    pub(super) fn start(settings: &DisciplineSettings<'_>) -> Result<Self, KernelError> {
        let failed = |source| KernelError {
            operation: "start",
            object: "the lab's engine".to_owned(),
            source,
        };
        // Each direction its own dice, thrown from far apart: the kernel's first numbers of small seeds are small.
        let seed = |way: u64| random_at(settings.seed, way);
        let [forward, back] = settings.ports;
        let ways = Arc::new([
            Direction::new(forward, settings.forward, seed(0), settings.mtu),
            Direction::new(back, settings.back, seed(1), settings.mtu),
        ]);
        for way in ways.iter() {
            way.put()?;
        }
        let shared = Arc::new(Shared {
            begun: Mutex::new(None),
            stop: AtomicBool::new(false),
            wake: EventFd::new().map_err(failed)?,
            changes: Default::default(),
        });
        let work = Work {
            ways: Arc::clone(&ways),
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::Builder::new()
            .name(FORWARD_THREAD.to_owned())
            .spawn(move || work.run())
            .map_err(failed)?;
        Ok(Self {
            ways,
            shared,
            thread: Some(thread),
        })
    }

    pub(super) fn begin(&self) {
        let mut begun = self
            .shared
            .begun
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        begun.get_or_insert_with(clock::monotonic);
        drop(begun);
        drop(self.shared.wake.raise());
    }

    pub(super) fn progress(&self) -> Shaping {
        let told = |at: usize| {
            let changes = self.shared.changes[at].load(Ordering::Acquire);
            self.ways[at].told(changes)
        };
        Shaping {
            forward: told(0),
            back: told(1),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
    }

    pub(super) fn stop(&mut self) -> io::Result<Shaping> {
        self.shared.stop.store(true, Ordering::Release);
        drop(self.shared.wake.raise());
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(ended)) => ended?,
            None => {}
        }
        Ok(self.progress())
    }
}

impl Drop for Disciplines {
    fn drop(&mut self) {
        // Its error was for the caller.
        drop(self.stop());
    }
}

/// Makes the changes.
struct Work {
    ways: Arc<[Direction; 2]>,
    shared: Arc<Shared>,
}

impl Work {
    fn run(&self) -> Result<(), KernelError> {
        let failed = |source| KernelError {
            operation: "wait for",
            object: "the next change of the path".to_owned(),
            source,
        };
        // It ends on command: each turn makes what is due and waits for what is next.
        while !self.shared.stop.load(Ordering::Acquire) {
            let begun = *self
                .shared
                .begun
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let next = match begun {
                Some(begun) => self.make_due(begun)?,
                None => None,
            };
            let span = next.map(|next| next.since(clock::monotonic()));
            let mut entries = [PollEntry::new(self.shared.wake.as_fd(), Interest::READ)];
            if poll::wait(&mut entries, span).map_err(failed)? > 0 {
                drop(self.shared.wake.clear());
            }
        }
        Ok(())
    }

    /// Makes the changes whose time has come; when the next one comes.
    fn make_due(&self, begun: Nanos) -> Result<Option<Nanos>, KernelError> {
        let mut next: Option<Nanos> = None;
        for (way, made) in self.ways.iter().zip(&self.shared.changes) {
            let before = made.load(Ordering::Acquire) as usize;
            for (number, change) in way.spec.changes.iter().enumerate().skip(before) {
                let due = begun.plus(change.at);
                if due > clock::monotonic() {
                    next = Some(next.map_or(due, |next| next.min(due)));
                    break;
                }
                way.change(number)?;
                made.fetch_add(1, Ordering::AcqRel);
            }
        }
        Ok(next)
    }
}

/// One direction's interface and what it is to do.
#[derive(Debug)]
struct Direction {
    port: String,
    spec: DirectionSpec,
    seed: u64,
    mtu: u32,
    /// Whether it needs a netem, and a tbf, at any time.
    netem: bool,
    bucket: bool,
}

impl Direction {
    fn new(port: &str, spec: &DirectionSpec, seed: u64, mtu: u32) -> Self {
        let all = || spec.all_settings();
        Self {
            port: port.to_owned(),
            seed,
            mtu,
            netem: all().any(needs_netem),
            bucket: all().any(|settings| settings.bottleneck.is_some()),
            spec: spec.clone(),
        }
    }

    /// Puts its disciplines there.
    fn put(&self) -> Result<(), KernelError> {
        let orders = self.orders(&self.spec.settings, 0);
        self.give(orders, self.spec.settings.overhead)
    }

    /// Makes its change of this number, from 0. A discipline that stays as it was is not touched: an order throws
    /// netem's dice anew (`netem_change`) and fills tbf's bucket (`tbf_change`).
    fn change(&self, number: usize) -> Result<(), KernelError> {
        let Some(change) = self.spec.changes.get(number) else {
            return Ok(());
        };
        let orders = self.changed(number, &change.settings);
        self.give(orders, change.settings.overhead)
    }

    /// What the change of this number, from 0, orders.
    fn changed(&self, number: usize, settings: &Settings) -> Orders {
        let before = self.now(u32::try_from(number).unwrap_or(u32::MAX));
        // The same dice for both, so that only what the scenario changed is a difference.
        let was = self.orders(before, 0);
        let same = self.orders(settings, 0);
        let recounted = before.overhead != settings.overhead;
        let orders = self.orders(settings, number as u64 + 1);
        Orders {
            netem: orders
                .netem
                .filter(|_| recounted || same.netem != was.netem),
            bucket: orders
                .bucket
                .filter(|_| recounted || same.bucket != was.bucket),
        }
    }

    /// What its disciplines are told for these settings; `throw` tells one throw of netem's dice from the others.
    fn orders(&self, settings: &Settings, throw: u64) -> Orders {
        Orders {
            netem: self
                .netem
                .then(|| netem(settings, random_at(self.seed, throw))),
            bucket: self.bucket.then(|| link(settings, self.mtu)),
        }
    }

    fn give(&self, orders: Orders, overhead: u32) -> Result<(), KernelError> {
        if let Some(netem) = orders.netem {
            set_netem(&self.port, &netem, overhead)?;
        }
        if let Some(bucket) = orders.bucket {
            let place = if self.netem {
                Place::BelowNetem
            } else {
                Place::Alone
            };
            set_token_bucket(&self.port, &bucket, place, overhead)?;
        }
        Ok(())
    }

    /// What its disciplines counted; what cannot be read is absent.
    fn told(&self, changes: u32) -> Shaped {
        let counted = route::index_of(&self.port)
            .and_then(|index| counters::qdiscs(index).ok())
            .unwrap_or_default();
        let of = |kind: &str| counted.iter().find(|one| one.kind == kind);
        let netem = of("netem").filter(|_| self.netem);
        let bucket = of("tbf").filter(|_| self.bucket);
        let root = netem.or(bucket);
        let overhead = self.spec.settings.overhead;
        let steady = |packets: &QdiscCounters| {
            let mut all = self.spec.changes.iter();
            all.all(|change| change.settings.overhead == overhead)
                .then(|| {
                    let beside = packets.packets.saturating_mul(u64::from(overhead));
                    packets.bytes.saturating_sub(beside)
                })
        };
        let queue_dropped = bucket.map(|one| u64::from(one.drops));
        Shaped {
            disciplines: [("netem", netem), ("tbf", bucket)]
                .into_iter()
                .filter_map(|(name, there)| there.map(|_| name))
                .collect(),
            burst: bucket.map(|_| {
                let made = link(self.now(changes), self.mtu);
                Bytes(u64::from(made.burst))
            }),
            delivered_packets: root.map(|one| one.packets),
            delivered_bytes: root.and_then(steady),
            // A netem counts what the tbf below it did not take among its own drops.
            lost: netem.map(|one| u64::from(one.drops).saturating_sub(queue_dropped.unwrap_or(0))),
            queue_dropped,
            held_packets: root.map(|one| u64::from(one.qlen)),
            changes,
            at: clock::monotonic(),
        }
    }

    /// The settings after so many changes.
    fn now(&self, changes: u32) -> &Settings {
        let last = (changes as usize).checked_sub(1);
        let last = last.and_then(|at| self.spec.changes.get(at));
        last.map_or(&self.spec.settings, |change| &change.settings)
    }
}

#[cfg(test)]
mod tests {
    use super::super::orders::tests::settings;
    use super::*;
    use crate::path::{Change, Loss, Probability};

    #[test]
    fn a_direction_has_what_it_needs_at_any_time() {
        let later = |settings| DirectionSpec {
            settings: Settings::default(),
            changes: vec![Change {
                at: Nanos::from_millis(1000),
                settings,
            }],
        };
        let needs = |spec: &DirectionSpec| {
            let made = Direction::new("to-receiver", spec, 1, 1500);
            (made.netem, made.bucket)
        };
        assert_eq!(needs(&DirectionSpec::default()), (false, false));
        assert_eq!(needs(&later(settings(1_000_000, 1))), (false, true));
        let delayed = Settings {
            delay: Nanos::from_millis(1),
            ..Settings::default()
        };
        assert_eq!(needs(&later(delayed)), (true, false));
    }

    #[test]
    fn a_change_orders_only_what_it_changes_and_throws_other_dice() {
        let first = Settings {
            delay: Nanos::from_millis(20),
            loss: Loss::Independent(Probability::new(0.01).unwrap()),
            ..settings(10_000_000, 100_000)
        };
        let slower = Settings {
            bottleneck: settings(5_000_000, 100_000).bottleneck,
            ..first
        };
        let nearer = Settings {
            delay: Nanos::from_millis(5),
            ..slower
        };
        let longer = Settings {
            overhead: 58,
            ..nearer
        };
        let at = |settings| Change {
            at: Nanos::from_millis(1000),
            settings,
        };
        let spec = DirectionSpec {
            settings: first,
            changes: [slower, nearer, longer, longer].map(at).to_vec(),
        };
        let way = Direction::new("to-receiver", &spec, 1, 1500);
        let ordered = |number: usize| way.changed(number, &spec.changes[number].settings);
        let is = |orders: &Orders| (orders.netem.is_some(), orders.bucket.is_some());
        let made: Vec<Orders> = (0..4).map(ordered).collect();
        let which: Vec<_> = made.iter().map(is).collect();
        assert_eq!(
            which,
            [(false, true), (true, false), (true, true), (false, false)]
        );
        let seeds = [&way.orders(&first, 0).netem, &made[1].netem, &made[2].netem]
            .map(|netem| netem.as_ref().unwrap().seed);
        assert!(
            seeds[0] != seeds[1] && seeds[1] != seeds[2] && seeds[0] != seeds[2],
            "{seeds:?}"
        );
    }

    /// The kernel's second and fourth number of a seed, as shares of `u32::MAX` (`prandom_seed_state`,
    /// `prandom_u32_state`: `include/linux/prandom.h`, `lib/random32.c`); it throws none away before.
    fn second_and_fourth(seed: u64) -> [f64; 2] {
        let start = u32::try_from(((seed >> 32) ^ (seed << 10) ^ seed) & 0xffff_ffff).unwrap();
        let least = |most: u32| if start < most { start + most } else { start };
        let mut state = [2, 8, 16, 128].map(least);
        let turns = [
            (6, 13, !1_u32, 18),
            (2, 27, !7, 2),
            (13, 21, !15, 7),
            (3, 12, !127, 13),
        ];
        let numbers = [(); 4].map(|()| {
            for (part, (left, right, mask, up)) in state.iter_mut().zip(turns) {
                *part = ((*part & mask) << up) ^ (((*part << left) ^ *part) >> right);
            }
            let number = state.iter().fold(0, |all, part| all ^ part);
            f64::from(number) / f64::from(u32::MAX)
        });
        [numbers[1], numbers[3]]
    }

    #[test]
    fn small_seeds_do_not_decide_the_first_losses() {
        let lost = |seeds: std::ops::RangeInclusive<u64>, of: fn(u64) -> u64| {
            let numbers = seeds.flat_map(|seed| second_and_fourth(of(seed)));
            numbers.filter(|number| *number < 0.05).count()
        };
        // As they are, small seeds lose both packets at 5 %, whichever it is.
        assert_eq!(lost(1..=10, |seed| seed), 20);
        let spread = lost(1..=500, |seed| random_at(random_at(seed, 0), 0));
        assert!((25..=80).contains(&spread), "{spread} of 1000 at 5 %");
    }

    #[test]
    fn what_is_not_counted_is_no_trial_of_the_loss() {
        let shaped = Shaped {
            delivered_packets: Some(90),
            lost: Some(6),
            queue_dropped: Some(4),
            held_packets: Some(0),
            changes: 2,
            ..Shaped::default()
        };
        let counted = shaped.counted();
        assert_eq!((counted.loss_hits, counted.loss_trials), (6, 100));
        assert_eq!(counted.ours.dropped.total().packets, 10);
        assert_eq!(counted.changes, 2);
    }
}
