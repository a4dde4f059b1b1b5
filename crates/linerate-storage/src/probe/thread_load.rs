//! A pattern by threads that each make one request at a time.
//!
//! They are not joined: a thread that waits for a disk in the kernel cannot be called back. What it uses, it holds itself.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_kernel::aligned::Aligned;
use linerate_kernel::event::EventFd;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_model::probe::{Engine, Pattern, ProbeEnd, TICK};
use linerate_model::units::Nanos;

use super::load::{Course, Done, Over, PATIENCE, Task, Watch, failed, now, short};
use super::meter::Meter;
use super::noise::Noise;

/// An fsync may take so long: a slow disk that others use as well has as much to write as the page cache held for it.
const SYNC_PATIENCE: Nanos = Nanos::from_millis(600_000);

/// What the threads and the one that watches them share.
struct Shared {
    file: File,
    pattern: Pattern,
    alignment: usize,
    course: Mutex<Course>,
    /// Nothing more is sent.
    over: AtomicBool,
    /// Threads that have not ended; the last one raises `idle`.
    running: AtomicUsize,
    idle: EventFd,
    bytes: AtomicU64,
    ended: Mutex<Option<ProbeEnd>>,
    /// How long the fsync at the end took, and when it had ended.
    synced: Mutex<Option<(Nanos, Nanos)>>,
}

impl Shared {
    fn new(file: &File, task: &Task) -> io::Result<Self> {
        Ok(Self {
            file: file.try_clone()?,
            pattern: task.pattern,
            alignment: task.alignment,
            course: Mutex::new(Course::new(task)),
            over: AtomicBool::new(false),
            running: AtomicUsize::new(task.pattern.depth()),
            idle: EventFd::new()?,
            bytes: AtomicU64::new(0),
            ended: Mutex::new(None),
            synced: Mutex::new(None),
        })
    }

    /// Sends nothing more; the first reason stays, but for the user's.
    fn end(&self, why: ProbeEnd) {
        self.over.store(true, Ordering::Release);
        let mut ended = held(&self.ended);
        if ended.is_none() || why == ProbeEnd::Stopped {
            *ended = Some(why);
        }
    }
}

/// A thread that panicked has left its counts as they were.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn run(
    file: &File,
    task: &Task,
    engine: Engine,
    stop: BorrowedFd<'_>,
    tell: &mut dyn FnMut(Pattern, f64),
) -> io::Result<Done> {
    let shared = Arc::new(Shared::new(file, task)?);
    let began = now();
    let mut meters = Vec::with_capacity(task.pattern.depth());
    for number in 0..task.pattern.depth() {
        let meter = Arc::new(Mutex::new(Meter::new(began, task.ramp)));
        meters.push(Arc::clone(&meter));
        let thread_shared = Arc::clone(&shared);
        let noise = Noise::new(task.seed.wrapping_add(number as u64));
        let made = std::thread::Builder::new().spawn(move || work(&thread_shared, &meter, noise));
        if let Err(error) = made {
            shared.over.store(true, Ordering::Release);
            return Err(error);
        }
    }
    let mut watch = Watch::new(task, began, tell);
    let sum = || {
        let mut sum = Meter::new(began, task.ramp);
        for meter in &meters {
            sum.add(&held(meter));
        }
        sum
    };
    let (meter, mut end) = until_over(&shared, stop, &mut watch, &sum)?;
    let synced = *held(&shared.synced);
    let is_buffered = task.pattern == Pattern::Buffered;
    // Of a file that is written once, all writes count, and the fsync is inside the clock.
    let meter = if is_buffered { sum() } else { meter };
    if let Some((_, at)) = synced {
        end = at;
    }
    let mut done = Done::new(engine, meter, end, shared.bytes.load(Ordering::Acquire));
    done.sync = synced.map(|(took, _)| took);
    done.ended = *held(&shared.ended);
    Ok(done)
}

/// Waits for the end of the pattern and then of its threads: the counts at the end of the measured time, and that.
fn until_over(
    shared: &Shared,
    stop: BorrowedFd<'_>,
    watch: &mut Watch<'_>,
    sum: &impl Fn() -> Meter,
) -> io::Result<(Meter, Nanos)> {
    let patience = match shared.pattern {
        Pattern::Buffered => SYNC_PATIENCE,
        _ => PATIENCE,
    };
    let mut at_end: Option<(Meter, Nanos)> = None;
    // The watch ends the pattern, and patience the wait for its threads.
    loop {
        let mut entries = [
            PollEntry::new(stop, Interest::READ),
            PollEntry::new(shared.idle.as_fd(), Interest::READ),
        ];
        poll::wait(&mut entries, Some(TICK))?;
        let [stopped, idle] = entries.map(|entry| entry.readiness().readable);
        let instant = now();
        if stopped {
            shared.end(ProbeEnd::Stopped);
        }
        if idle || stopped {
            return Ok(at_end.unwrap_or_else(|| (sum(), instant)));
        }
        match &at_end {
            None if watch.over(instant, sum) => {
                shared.over.store(true, Ordering::Release);
                at_end = Some((sum(), instant));
            }
            Some((_, end)) if instant.since(*end) >= patience => {
                shared.end(ProbeEnd::NoAnswer);
                return Ok((sum(), *end));
            }
            _ => {}
        }
    }
}

/// Waits until a file is on disk, the user stops that, or patience is over: `None` where it is on disk.
pub(super) fn sync(file: &File, stop: BorrowedFd<'_>) -> io::Result<Option<ProbeEnd>> {
    let file = file.try_clone()?;
    let (result, idle) = (Arc::new(Mutex::new(None)), Arc::new(EventFd::new()?));
    let (of_thread, raised) = (Arc::clone(&result), Arc::clone(&idle));
    std::thread::Builder::new().spawn(move || {
        let synced = file.sync_all();
        *held(&of_thread) = Some(synced);
        drop(raised.raise());
    })?;
    let until = now().plus(SYNC_PATIENCE);
    while now() < until {
        let mut entries = [
            PollEntry::new(stop, Interest::READ),
            PollEntry::new(idle.as_fd(), Interest::READ),
        ];
        poll::wait(&mut entries, Some(until.since(now())))?;
        if let Some(synced) = held(&result).take() {
            return synced.map(|()| None);
        }
        if entries[0].readiness().readable {
            return Ok(Some(ProbeEnd::Stopped));
        }
    }
    Ok(Some(ProbeEnd::NoAnswer))
}

fn work(shared: &Shared, meter: &Mutex<Meter>, noise: Noise) {
    if let Err(error) = requests(shared, meter, noise) {
        shared.end(failed(&error));
    }
    if shared.running.fetch_sub(1, Ordering::AcqRel) == 1 {
        // Without it the one that watches waits until its patience is over.
        drop(shared.idle.raise());
    }
}

fn requests(shared: &Shared, meter: &Mutex<Meter>, mut noise: Noise) -> io::Result<()> {
    let pattern = shared.pattern;
    let block = usize::try_from(pattern.block()).map_err(io::Error::other)?;
    let mut buffer = Aligned::new(block, shared.alignment);
    while !shared.over.load(Ordering::Acquire) {
        let offset = match held(&shared.course).next(&mut noise) {
            Ok(offset) => offset,
            Err(Over::Whole) => break,
            Err(Over::Budget) => {
                shared.end(ProbeEnd::Budget);
                break;
            }
        };
        let bytes = buffer.bytes();
        if pattern.writes() {
            noise.fill(bytes);
        }
        let sent = now();
        let moved = if pattern.writes() {
            shared.file.write_at(bytes, offset)?
        } else {
            shared.file.read_at(bytes, offset)?
        };
        if moved != block {
            return Err(short());
        }
        if pattern == Pattern::Sync {
            shared.file.sync_data()?;
        }
        shared.bytes.fetch_add(pattern.block(), Ordering::AcqRel);
        held(meter).ended(sent, now());
    }
    if pattern == Pattern::Buffered && *held(&shared.ended) != Some(ProbeEnd::Stopped) {
        let before = now();
        shared.file.sync_all()?;
        let after = now();
        *held(&shared.synced) = Some((after.since(before), after));
    }
    Ok(())
}
