//! The engine by packet queues: a thread in the router's namespace that hears of each packet, asks the
//! path what becomes of it, and says so to the kernel when its time has come.
//!
//! The thread stays on one CPU. What it lets go is received by the far host within its own turn, on that
//! CPU; from two CPUs in turn, packets would overtake each other. A turn takes in and lets go a bounded
//! number, so that neither waits for long.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use linerate_kernel::event::EventFd;
use linerate_kernel::packet_queue::{PacketQueue, QueueOptions, RawSender};
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::{KernelError, clock, thread};
use linerate_model::units::Nanos;
use serde::Serialize;

use super::lane::Lane;
use super::lateness::Lateness;
use crate::path::{Counters, Direction, DirectionSpec, Discipline, Settings};
use crate::scenario::{Mode, Way};

/// Batches of up to 64 packets that are taken in in one turn.
const BATCHES: usize = 4;
/// Verdicts of one direction in one turn. The kernel's own queue between two interfaces of a CPU holds 1000
/// (`net.core.netdev_max_backlog`).
const BURST: usize = 64;
/// Packets that may wait in a direction: 200 ms of 1500 bytes at 40 Gbit/s.
const LONGEST: u32 = 700_000;
/// Bytes of the receive buffer that is asked for.
const BUFFER: usize = 32 << 20;
/// First bytes of a packet that are enough to decide on it, and to answer that it is too big.
const FIRST_BYTES: u32 = 128;
/// The longest packet that can be copied.
const ALL_BYTES: u32 = 65_000;
/// Between two looks at a lab that nobody asks.
const REFRESH: Nanos = Nanos::from_millis(100);
/// A turn on the CPU, so that the thread is let in soon after it wakes.
const TURN: Nanos = Nanos(100_000);

/// What the path did, and how well.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Passed {
    /// What the path decided.
    pub counters: Counters,
    /// How late the packets left.
    pub lateness: Lateness,
    /// Copies of packets and answers to them that were sent.
    pub injected: u64,
    /// Copies and answers that the kernel refused to send.
    pub not_injected: u64,
}

/// Both directions.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Progress {
    /// When this was so, on the monotonic clock.
    pub at: Nanos,
    /// Sender to receiver.
    pub forward: Passed,
    /// Receiver to sender.
    pub back: Passed,
    /// Times that the kernel could not tell of a packet, because the engine did not listen fast enough: such
    /// packets are lost without the path's having decided so.
    pub overruns: u64,
    /// Verdicts that came too late for their packet.
    pub refused: u64,
    /// CPU time of the engine's thread: with the far hosts' receiving, which happens within it.
    pub cpu: Nanos,
}

impl Progress {
    /// One direction.
    pub const fn way(&self, way: Way) -> &Passed {
        match way {
            Way::Forward => &self.forward,
            Way::Back => &self.back,
        }
    }
}

/// What the engine is told.
#[derive(Debug)]
pub(super) struct EngineSettings<'a> {
    pub(super) forward: &'a DirectionSpec,
    pub(super) back: &'a DirectionSpec,
    pub(super) seed: u64,
    pub(super) mode: Mode,
    /// Interfaces of competing traffic, by their index.
    pub(super) cross: Vec<u32>,
    /// MTU of the links of sender and receiver, bytes.
    pub(super) mtu: [u32; 2],
    pub(super) cpu: Option<usize>,
}

/// The queues of the two directions.
pub(super) const QUEUES: [u16; 2] = [0, 1];

/// The running thread.
#[derive(Debug)]
pub(super) struct Engine {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

#[derive(Debug)]
struct Shared {
    begin: AtomicBool,
    stop: AtomicBool,
    wake: EventFd,
    progress: Mutex<Progress>,
}

impl Shared {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Binds the queues and starts. The calling thread is in the router's namespace.
    pub(super) fn start(settings: &EngineSettings<'_>) -> Result<Self, KernelError> {
        let copied = copied(settings);
        let options = QueueOptions {
            copied,
            whole: settings.mode == Mode::Bulk,
            longest: LONGEST,
            receive_buffer: BUFFER,
        };
        let queue = PacketQueue::open(&QUEUES, options)?;
        let raw = RawSender::open()?;
        let kept = if copied > FIRST_BYTES || answers(settings) {
            copied as usize
        } else {
            0
        };
        let failed = |source| KernelError {
            operation: "start",
            object: "the lab's engine".to_owned(),
            source,
        };
        let shared = Arc::new(Shared {
            begin: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            wake: EventFd::new().map_err(failed)?,
            progress: Mutex::default(),
        });
        let lane = |at: usize, spec: &DirectionSpec| {
            // Each direction its own dice.
            let seed = settings.seed.wrapping_mul(2).wrapping_add(at as u64);
            Lane::new(
                QUEUES[at],
                Direction::new(spec, seed),
                settings.mtu[at],
                kept,
            )
        };
        let mut work = Work {
            queue,
            raw,
            lanes: [lane(0, settings.forward), lane(1, settings.back)],
            cross: settings.cross.clone(),
            shared: Arc::clone(&shared),
        };
        let cpu = settings.cpu;
        let thread = std::thread::Builder::new()
            .name("path".to_owned())
            .spawn(move || {
                if let Some(cpu) = cpu {
                    // Where a cpuset forbids it, lateness and overtaking will show.
                    drop(thread::set_affinity(&[cpu]));
                }
                drop(thread::set_timer_slack(Nanos(1)));
                drop(thread::set_turn(TURN));
                work.run()
            })
            .map_err(failed)?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// The test begins: the times of changes count from now.
    pub(super) fn begin(&self) {
        self.shared.begin.store(true, Ordering::Release);
        drop(self.shared.wake.raise());
    }

    /// What it did, a tenth of a second ago at most.
    pub(super) fn progress(&self) -> Progress {
        *self.shared.progress()
    }

    /// Whether it goes on; it ends by itself only by an error.
    pub(super) fn is_running(&self) -> bool {
        self.thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
    }

    /// Ends it, and says all that it did. Packets that wait are dropped with their queue.
    pub(super) fn stop(&mut self) -> io::Result<Progress> {
        self.shared.stop.store(true, Ordering::Release);
        drop(self.shared.wake.raise());
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Ok(result)) => result.map(|()| self.progress()),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(self.progress()),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Its error was for whoever asked.
        drop(self.stop());
    }
}

/// Settings of both directions, at any time.
fn all_settings<'a>(settings: &'a EngineSettings<'a>) -> impl Iterator<Item = &'a Settings> {
    [settings.forward, settings.back]
        .into_iter()
        .flat_map(|spec| {
            std::iter::once(&spec.settings)
                .chain(spec.changes.iter().map(|change| &change.settings))
        })
}

/// Bytes of each packet that the engine needs: all where it changes or repeats packets.
fn copied(settings: &EngineSettings<'_>) -> u32 {
    let whole = all_settings(settings).any(|settings| {
        let marks = settings.bottleneck.is_some_and(|bottleneck| {
            bottleneck.ecn_threshold.is_some()
                || matches!(bottleneck.discipline, Discipline::Codel(codel) if codel.ecn)
        });
        marks || settings.duplicate.share() > 0.0
    });
    let longest = settings.mtu.iter().max().copied().unwrap_or(ALL_BYTES);
    match (whole, settings.mode) {
        (false, _) => FIRST_BYTES,
        (true, Mode::Packet) => longest.clamp(FIRST_BYTES, ALL_BYTES),
        (true, Mode::Bulk) => ALL_BYTES,
    }
}

fn answers(settings: &EngineSettings<'_>) -> bool {
    all_settings(settings).any(|settings| settings.max_packet.is_some_and(|limit| limit.icmp))
}

/// What the thread has.
struct Work {
    queue: PacketQueue,
    raw: RawSender,
    lanes: [Lane; 2],
    cross: Vec<u32>,
    shared: Arc<Shared>,
}

impl Work {
    fn run(&mut self) -> io::Result<()> {
        let mut begun = false;
        let mut told = Nanos::ZERO;
        while !self.shared.stop.load(Ordering::Acquire) {
            if !begun && self.shared.begin.load(Ordering::Acquire) {
                begun = true;
                drop(self.shared.wake.clear());
                let now = clock::monotonic();
                for lane in &mut self.lanes {
                    lane.direction.begin(now);
                }
            }
            let more = self.turn()?;
            let now = clock::monotonic();
            if now.since(told) > REFRESH {
                told = now;
                self.tell();
            }
            if !more {
                self.wait(now)?;
            }
        }
        self.tell();
        Ok(())
    }

    /// Takes in and lets go; whether there may be more of either.
    fn turn(&mut self) -> io::Result<bool> {
        let mut more = self.take_in()?;
        for lane in &mut self.lanes {
            more |= lane.decide(clock::monotonic(), BURST, &mut self.queue, &self.raw)?;
            lane.hand_over(&mut self.queue)?;
            lane.book(clock::monotonic());
        }
        Ok(more)
    }

    fn take_in(&mut self) -> io::Result<bool> {
        for _ in 0..BATCHES {
            let mut now = None;
            let (lanes, cross) = (&mut self.lanes, &self.cross);
            let came = self.queue.receive(|packet| {
                let now = *now.get_or_insert_with(clock::monotonic);
                let is_cross = cross.contains(&packet.interface);
                if let Some(lane) = lanes.iter_mut().find(|lane| lane.queue == packet.queue) {
                    lane.arrive(now, &packet, is_cross);
                }
            })?;
            if came == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits for a packet, for the next that is due, or for a word from outside.
    fn wait(&self, now: Nanos) -> io::Result<()> {
        let due = self
            .lanes
            .iter()
            .filter_map(|lane| lane.direction.poll_timeout())
            .min();
        let span = due.map_or(REFRESH, |due| due.since(now).min(REFRESH));
        if span == Nanos::ZERO {
            return Ok(());
        }
        let mut entries = [
            PollEntry::new(self.queue.as_fd(), Interest::READ),
            PollEntry::new(self.shared.wake.as_fd(), Interest::READ),
        ];
        poll::wait(&mut entries, Some(span)).map(drop)
    }

    fn tell(&self) {
        let passed = |lane: &Lane| Passed {
            counters: *lane.direction.counters(),
            lateness: lane.lateness.summary(),
            injected: lane.injected.sent,
            not_injected: lane.injected.failed,
        };
        *self.shared.progress() = Progress {
            at: clock::monotonic(),
            forward: passed(&self.lanes[0]),
            back: passed(&self.lanes[1]),
            overruns: self.queue.overruns(),
            refused: self.queue.refused(),
            cpu: clock::thread_cpu(),
        };
    }
}
