//! The engine by packet queues: a thread for each direction in the router's namespace that hears of each
//! packet, asks the path what becomes of it, and says so to the kernel when its time has come.
//!
//! A thread stays on one CPU. What it lets go is received by the far host within its own turn, on that CPU,
//! and so is what that host sends at once in answer; from two CPUs in turn, packets would overtake each
//! other. So the two directions share the work of both hosts' kernels between two CPUs. A turn takes in and
//! lets go a bounded number, so that neither waits for long.

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

use super::engine::FORWARD_THREAD;
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
/// A thread that has slept for long wakes late, by as much as its CPU needs to come back from idling. After
/// a wait of at least this, it wakes before the time and stays awake; on a busy path it does not.
const LONG_WAIT: Nanos = Nanos::from_millis(1);
const EARLY: Nanos = Nanos(80_000);
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
    /// Times that the kernel could not tell of a packet, because the engine did not listen fast enough: such
    /// packets are lost without the path's having decided so.
    pub overruns: u64,
    /// Verdicts that came too late for their packet.
    pub refused: u64,
    /// CPU time of the direction's thread: with the far host's receiving, which happens within it.
    pub cpu: Nanos,
    /// When this was so, on the monotonic clock.
    pub at: Nanos,
}

/// Both directions.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Progress {
    /// Sender to receiver.
    pub forward: Passed,
    /// Receiver to sender.
    pub back: Passed,
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

/// Commands to the engine.
#[derive(Debug)]
pub(super) struct QueueSettings<'a> {
    pub(super) forward: &'a DirectionSpec,
    pub(super) back: &'a DirectionSpec,
    pub(super) seed: u64,
    pub(super) mode: Mode,
    /// Interfaces of competing traffic, by their index.
    pub(super) cross: Vec<u32>,
    /// Largest packet that the test's hosts send each other, and those of competing traffic, bytes: a
    /// connection's segments are no longer than either end's link takes (RFC 6691), whatever its sender's does.
    pub(super) mtu: [u32; 2],
    /// The CPUs of the threads, forward and back; absent: any.
    pub(super) cpus: [Option<usize>; 2],
}

/// The queues of the two directions.
pub(super) const QUEUES: [u16; 2] = [0, 1];

/// The running threads.
#[derive(Debug)]
pub(super) struct Queues {
    threads: Vec<Thread>,
}

#[derive(Debug)]
struct Thread {
    shared: Arc<Shared>,
    handle: Option<JoinHandle<io::Result<()>>>,
}

/// Messages to and from a thread.
#[derive(Debug)]
struct Shared {
    begin: AtomicBool,
    stop: AtomicBool,
    wake: EventFd,
    passed: Mutex<Passed>,
}

impl Shared {
    fn passed(&self) -> MutexGuard<'_, Passed> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queues {
    /// Binds the queues and starts. The calling thread is in the router's namespace.
    pub(super) fn start(settings: &QueueSettings<'_>) -> Result<Self, KernelError> {
        let threads = [Way::Forward, Way::Back].into_iter();
        threads
            .map(|way| Thread::start(settings, way))
            .collect::<Result<_, _>>()
            .map(|threads| Self { threads })
    }

    /// The test begins: the times of changes count from now.
    pub(super) fn begin(&self) {
        for thread in &self.threads {
            thread.shared.begin.store(true, Ordering::Release);
            drop(thread.shared.wake.raise());
        }
    }

    /// What it did, a tenth of a second ago at most.
    pub(super) fn progress(&self) -> Progress {
        let passed = |at: usize| self.threads.get(at).map(|thread| *thread.shared.passed());
        Progress {
            forward: passed(0).unwrap_or_default(),
            back: passed(1).unwrap_or_default(),
        }
    }

    /// Whether it goes on; it ends by itself only by an error.
    pub(super) fn is_running(&self) -> bool {
        let mut handles = self.threads.iter().map(|thread| thread.handle.as_ref());
        handles.all(|handle| handle.is_some_and(|handle| !handle.is_finished()))
    }

    /// Ends it, and says all that it did. Packets that wait are dropped with their queue.
    pub(super) fn stop(&mut self) -> io::Result<Progress> {
        for thread in &self.threads {
            thread.shared.stop.store(true, Ordering::Release);
            drop(thread.shared.wake.raise());
        }
        let mut ended = Ok(());
        for handle in self
            .threads
            .iter_mut()
            .filter_map(|thread| thread.handle.take())
        {
            match handle.join() {
                Ok(result) => ended = ended.and(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        ended.map(|()| self.progress())
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        // Its error was for the caller.
        drop(self.stop());
    }
}

impl Thread {
    fn start(settings: &QueueSettings<'_>, way: Way) -> Result<Self, KernelError> {
        let (at, name, spec) = match way {
            Way::Forward => (0, FORWARD_THREAD, settings.forward),
            Way::Back => (1, "path back", settings.back),
        };
        let failed = |source| KernelError {
            operation: "start",
            object: "the lab's engine".to_owned(),
            source,
        };
        let copied = copied(settings);
        let options = QueueOptions {
            copied,
            whole: settings.mode == Mode::Bulk,
            longest: LONGEST,
            receive_buffer: BUFFER,
        };
        let kept = if copied > FIRST_BYTES || answers(settings) {
            copied as usize
        } else {
            0
        };
        let shared = Arc::new(Shared {
            begin: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            wake: EventFd::new().map_err(failed)?,
            passed: Mutex::default(),
        });
        // Each direction its own dice.
        let seed = settings.seed.wrapping_mul(2).wrapping_add(at as u64);
        let mut work = Work {
            queue: PacketQueue::open(&[QUEUES[at]], options)?,
            raw: RawSender::open()?,
            lane: Lane::new(QUEUES[at], Direction::new(spec, seed), settings.mtu, kept),
            cross: settings.cross.clone(),
            shared: Arc::clone(&shared),
            awake: false,
        };
        let cpu = settings.cpus[at];
        let handle = std::thread::Builder::new()
            .name(name.to_owned())
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
            handle: Some(handle),
        })
    }
}

/// Settings of both directions, at any time.
fn all_settings<'a>(settings: &'a QueueSettings<'a>) -> impl Iterator<Item = &'a Settings> {
    let both = [settings.forward, settings.back].into_iter();
    both.flat_map(DirectionSpec::all_settings)
}

/// Bytes of each packet that the engine needs: all where it changes or repeats packets.
fn copied(settings: &QueueSettings<'_>) -> u32 {
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

fn answers(settings: &QueueSettings<'_>) -> bool {
    all_settings(settings).any(|settings| settings.max_packet.is_some_and(|limit| limit.icmp))
}

/// What a thread has.
struct Work {
    queue: PacketQueue,
    raw: RawSender,
    lane: Lane,
    cross: Vec<u32>,
    shared: Arc<Shared>,
    /// It woke early, and what it woke for is not due yet.
    awake: bool,
}

impl Work {
    fn run(&mut self) -> io::Result<()> {
        let mut begun = false;
        let mut told = Nanos::ZERO;
        while !self.shared.stop.load(Ordering::Acquire) {
            if !begun && self.shared.begin.load(Ordering::Acquire) {
                begun = true;
                drop(self.shared.wake.clear());
                self.lane.direction.begin(clock::monotonic());
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
        let came = self.take_in()?;
        let now = clock::monotonic();
        let due = self.lane.decide(now, BURST, &mut self.queue, &self.raw)?;
        self.lane.hand_over(&mut self.queue)?;
        self.lane.book(clock::monotonic());
        Ok(came || due)
    }

    fn take_in(&mut self) -> io::Result<bool> {
        for _ in 0..BATCHES {
            let mut now = None;
            let (lane, cross) = (&mut self.lane, &self.cross);
            let came = self.queue.receive(|packet| {
                let now = *now.get_or_insert_with(clock::monotonic);
                lane.arrive(now, &packet, cross.contains(&packet.interface));
            })?;
            if came == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits for a packet, for the next that is due, or for a word from outside.
    fn wait(&mut self, now: Nanos) -> io::Result<()> {
        let due = self.lane.direction.poll_timeout();
        let span = due.map_or(REFRESH, |due| due.since(now).min(REFRESH));
        if span == Nanos::ZERO || (self.awake && span <= EARLY) {
            return Ok(());
        }
        self.awake = span >= LONG_WAIT;
        let span = if self.awake { span.since(EARLY) } else { span };
        let mut entries = [
            PollEntry::new(self.queue.as_fd(), Interest::READ),
            PollEntry::new(self.shared.wake.as_fd(), Interest::READ),
        ];
        poll::wait(&mut entries, Some(span)).map(drop)
    }

    fn tell(&self) {
        *self.shared.passed() = Passed {
            counters: *self.lane.direction.counters(),
            lateness: self.lane.lateness.summary(),
            injected: self.lane.injected.sent,
            not_injected: self.lane.injected.failed,
            overruns: self.queue.overruns(),
            refused: self.queue.refused(),
            cpu: clock::thread_cpu(),
            at: clock::monotonic(),
        };
    }
}
