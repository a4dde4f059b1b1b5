//! The requests of a pattern: which comes next, and by whom they are made.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

use linerate_analysis::precision::Looks;
use linerate_analysis::probe::samples;
use linerate_analysis::statistics;
use linerate_kernel::clock;
use linerate_model::probe::{Engine, Pattern, ProbeEnd, TICK, TICKS_PER_SECOND};
use linerate_model::units::{Bytes, Nanos};

use super::meter::Meter;
use super::noise::Noise;
use super::{ring_load, thread_load};

/// Requests that are under way at the end may take so long.
pub(super) const PATIENCE: Nanos = Nanos::from_millis(10_000);

/// What is to be done.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) pattern: Pattern,
    /// Whether the file is open for direct I/O.
    pub(super) direct: bool,
    /// Multiple at which buffers begin, bytes.
    pub(super) alignment: usize,
    /// The part of the file that it stays within, whole blocks.
    pub(super) range: Bytes,
    /// Whether it ends when that part was written once.
    pub(super) once: bool,
    pub(super) ramp: Nanos,
    /// The longest measured time.
    pub(super) most: Nanos,
    pub(super) precision: Option<f64>,
    /// What may still be written today.
    pub(super) allowance: Bytes,
    pub(super) seed: u64,
}

/// What became of it.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) engine: Engine,
    pub(super) meter: Meter,
    pub(super) measured: Nanos,
    /// Bytes of requests that ended, ramp included.
    pub(super) bytes: Bytes,
    pub(super) sync: Option<Nanos>,
    pub(super) ended: Option<ProbeEnd>,
}

/// Where the next request goes.
#[derive(Debug)]
pub(super) struct Course {
    pattern: Pattern,
    blocks: u64,
    next: u64,
    once: bool,
    allowance: u64,
}

/// Why there is no next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// All was written once.
    Whole,
    /// Nothing more may be written today.
    Budget,
}

impl Course {
    pub(super) fn new(task: &Task) -> Self {
        Self {
            pattern: task.pattern,
            blocks: task.range.0 / task.pattern.block(),
            next: 0,
            once: task.once,
            allowance: task.allowance.0,
        }
    }

    /// The offset of the next request.
    pub(super) fn next(&mut self, noise: &mut Noise) -> Result<u64, Over> {
        if self.once && self.next >= self.blocks {
            return Err(Over::Whole);
        }
        let block = self.pattern.block();
        if self.pattern.writes() {
            self.allowance = self.allowance.checked_sub(block).ok_or(Over::Budget)?;
        }
        let place = if self.pattern.random() {
            noise.below(self.blocks)
        } else {
            let place = self.next.checked_rem(self.blocks).unwrap_or(0);
            self.next += 1;
            place
        };
        Ok(place * block)
    }
}

/// Looks at the clock and at the rate, each tick, and says when a pattern is over.
pub(super) struct Watch<'a> {
    until: Nanos,
    from: Nanos,
    looks: Option<Looks>,
    tell: &'a mut dyn FnMut(Pattern, f64),
    pattern: Pattern,
}

impl<'a> Watch<'a> {
    pub(super) fn new(task: &Task, began: Nanos, tell: &'a mut dyn FnMut(Pattern, f64)) -> Self {
        let from = began.plus(task.ramp);
        Self {
            until: from.plus(task.most),
            from,
            looks: task.precision.map(Looks::new),
            tell,
            pattern: task.pattern,
        }
    }

    /// Whether it is over: by time, or because the rate is known well enough.
    pub(super) fn over(&mut self, now: Nanos, meter: impl FnOnce() -> Meter) -> bool {
        if now >= self.until {
            return true;
        }
        let meter = meter();
        // Of the last whole second, or what there is.
        let recent = meter.ticks.iter().rev().skip(1).take(TICKS_PER_SECOND);
        let (ticks, sum) = recent.fold((0.0, 0), |(ticks, sum), tick| (ticks + 1.0, sum + tick));
        if ticks > 0.0 {
            let span = TICK.as_secs_f64() * ticks;
            (self.tell)(self.pattern, sum as f64 / span);
        }
        let Some(looks) = &mut self.looks else {
            return false;
        };
        now.since(self.from) >= looks.next()
            && looks.look(&[statistics::plateau(&samples(&meter.rates(now)))])
    }
}

/// Has the pattern made: by a ring where there is one and it is of use, else by threads.
///
/// # Errors
/// Where no thread can be started or the kernel takes no requests at all.
pub(super) fn run(
    file: &File,
    task: &Task,
    stop: BorrowedFd<'_>,
    tell: &mut dyn FnMut(Pattern, f64),
) -> io::Result<Done> {
    if !task.pattern.direct() {
        return thread_load::run(file, task, Engine::OneThread, stop, tell);
    }
    match ring_load::ring(file, task, stop) {
        Ok(ring) => ring_load::run(ring, task, tell),
        Err(because) => thread_load::run(file, task, Engine::Threads { because }, stop, tell),
    }
}

/// The number of an error for a document; EIO where it is not the kernel's.
pub(super) fn failed(error: &io::Error) -> ProbeEnd {
    /// `EIO`, on all architectures.
    const EIO: i32 = 5;
    let errno = error.raw_os_error().unwrap_or(EIO);
    ProbeEnd::Failed { errno }
}

/// Fewer bytes than were asked for: of a file that has room and size only by an error that the next request will say.
pub(super) fn short() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

impl Done {
    /// From a meter and the instants of its end.
    pub(super) fn new(engine: Engine, meter: Meter, end: Nanos, bytes: u64) -> Self {
        let measured = end.since(meter.measured_from());
        Self {
            engine,
            meter,
            measured,
            bytes: Bytes(bytes),
            sync: None,
            ended: None,
        }
    }
}

/// Now, for those that have nothing else of the clock.
pub(super) fn now() -> Nanos {
    clock::monotonic()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use linerate_kernel::event::EventFd;

    use super::*;

    fn task(pattern: Pattern, once: bool) -> Task {
        Task {
            pattern,
            direct: false,
            alignment: 4096,
            range: Bytes(4 << 20),
            once,
            ramp: Nanos::ZERO,
            most: Nanos::from_millis(1000),
            precision: None,
            allowance: Bytes(6 << 20),
            seed: 1,
        }
    }

    #[test]
    fn offsets_stay_within_the_file_and_the_budget() {
        let mut noise = Noise::new(1);
        let mut course = Course::new(&task(Pattern::SequentialWrite, false));
        let offsets: Vec<_> = (0..8).map(|_| course.next(&mut noise)).collect();
        let mib = |number: u64| Ok(number << 20);
        let expected = [0, 1, 2, 3, 0, 1].map(mib);
        assert_eq!(offsets[..6], expected);
        assert_eq!(offsets[6..], [Err(Over::Budget), Err(Over::Budget)]);
        let mut once = Course::new(&task(Pattern::Buffered, true));
        assert!((0..4).all(|_| once.next(&mut noise).is_ok()));
        assert_eq!(once.next(&mut noise), Err(Over::Whole));
        let mut random = Course::new(&task(Pattern::RandomReadDeep, false));
        for _ in 0..10_000 {
            let offset = random.next(&mut noise).unwrap();
            assert!(offset < 4 << 20 && offset.is_multiple_of(4096), "{offset}");
        }
    }

    /// When a pattern ends whose ticks have so many requests each, ms of measured time.
    fn ends_after(precision: Option<f64>, tick: impl Fn(u64) -> u64) -> u64 {
        let mut task = task(Pattern::RandomRead, false);
        task.ramp = Nanos::from_millis(2000);
        task.most = Nanos::from_millis(60_000);
        task.precision = precision;
        let mut tell = |_, _| {};
        let mut watch = Watch::new(&task, Nanos::ZERO, &mut tell);
        let mut meter = Meter::new(Nanos::ZERO, task.ramp);
        let ended = (1..10_000).find(|at| {
            meter.ticks.push(tick(*at));
            watch.over(Nanos(at * TICK.0), || meter.clone())
        });
        ended.unwrap() * TICK.0 / 1_000_000 - 2000
    }

    #[test]
    fn a_rate_that_is_known_well_enough_ends_its_pattern() {
        let steady = |at: u64| 1000 + at * 7 % 5;
        assert_eq!(ends_after(None, steady), 60_000);
        // Two looks in a row, the second one after 7.5 s.
        assert_eq!(ends_after(Some(0.02), steady), 7500);
        // One that doubles and halves each 5 s is not known.
        let restless = |at: u64| {
            if (at / 100).is_multiple_of(2) {
                1000
            } else {
                2000
            }
        };
        assert_eq!(ends_after(Some(0.02), restless), 60_000);
    }

    /// By the ring, where there is one, and by threads.
    fn both(file: &File, task: &Task, stop: &EventFd) -> [Done; 2] {
        let threads = Engine::OneThread;
        [
            run(file, task, stop.as_fd(), &mut |_, _| {}).unwrap(),
            thread_load::run(file, task, threads, stop.as_fd(), &mut |_, _| {}).unwrap(),
        ]
    }

    #[test]
    fn a_full_disk_ends_a_pattern_with_its_error() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let stop = EventFd::new().unwrap();
        for done in both(&full, &task(Pattern::SequentialWrite, false), &stop) {
            // ENOSPC.
            assert_eq!(done.ended, Some(ProbeEnd::Failed { errno: 28 }));
            assert_eq!((done.bytes, done.meter.requests), (Bytes(0), 0));
        }
        let nowhere = File::open("/dev/full").unwrap();
        let done = run(
            &nowhere,
            &task(Pattern::Buffered, true),
            stop.as_fd(),
            &mut |_, _| {},
        );
        let done = done.unwrap();
        // EBADF: it is open for reading.
        assert_eq!(done.ended, Some(ProbeEnd::Failed { errno: 9 }));
        assert_eq!(done.sync, None);
    }

    #[test]
    fn a_file_that_ends_too_early_is_an_error_and_no_rate() {
        let empty = tempfile::tempfile().unwrap();
        let stop = EventFd::new().unwrap();
        for done in both(&empty, &task(Pattern::RandomReadDeep, false), &stop) {
            assert_eq!(done.ended, Some(ProbeEnd::Failed { errno: 5 }));
            assert_eq!(done.meter.requests, 0);
        }
    }

    #[test]
    fn the_user_ends_a_pattern_and_the_budget_does() {
        let file = tempfile::tempfile().unwrap();
        let stop = EventFd::new().unwrap();
        for done in both(&file, &task(Pattern::SequentialWrite, false), &stop) {
            assert_eq!(done.ended, Some(ProbeEnd::Budget));
            assert_eq!(done.bytes, Bytes(6 << 20));
            assert_eq!(done.meter.ticks.iter().sum::<u64>(), 6);
        }
        for done in both(&file, &task(Pattern::Buffered, true), &stop) {
            assert_eq!((done.ended, done.bytes), (None, Bytes(4 << 20)));
        }
        stop.raise().unwrap();
        let mut endless = task(Pattern::RandomRead, false);
        endless.most = Nanos::from_millis(3_600_000);
        for done in both(&file, &endless, &stop) {
            assert_eq!(done.ended, Some(ProbeEnd::Stopped));
        }
        let over = thread_load::sync(&file, stop.as_fd()).unwrap();
        assert!(matches!(over, None | Some(ProbeEnd::Stopped)));
    }
}
