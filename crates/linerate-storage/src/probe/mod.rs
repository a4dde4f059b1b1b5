//! How fast a directory's disk is: patterns of requests on a new file that nobody else can see and that is gone with this
//! process, however that ends.

mod error;
mod load;
mod meter;
mod noise;
mod place;
mod ring_load;
mod scratch;
mod thread_load;
mod wear;

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use linerate_kernel::inventory::{Root, blocks};
use linerate_kernel::{clock, file_system, host};
use linerate_model::block::{DiskCounters, SECTOR};
use linerate_model::probe::{
    DeviceWork, Direct, Layout, Pattern, PatternRun, Probe, ProbeEnd, SCHEMA_VERSION, Spindles,
    Wear,
};
use linerate_model::units::{Bytes, Nanos};

pub use error::ProbeError;
use load::{Done, Task};
use place::Place;
use scratch::Scratch;
use wear::Account;

/// Writing the file for the first time takes at most so long: what is written then is what the patterns stay within.
const LAYOUT_MOST: Nanos = Nanos::from_millis(20_000);
/// Time at the begin of a pattern that is not measured.
const RAMP: Nanos = Nanos::from_millis(2000);

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The directory.
    pub folder: PathBuf,
    /// The patterns.
    pub patterns: Vec<Pattern>,
    /// The measured time of each, or with a precision the longest.
    pub time: Nanos,
    /// Ends a pattern once its rate is known within this share of it.
    pub precision: Option<f64>,
    /// Size of the file; `None`: 1 GiB, or less where that is too much.
    pub size: Option<Bytes>,
    /// Whether files on other hosts may be probed.
    pub network: bool,
    /// What all probes of a day may write; `None`: a tenth of the disk.
    pub budget: Option<Bytes>,
    /// The folder in which what was written is kept.
    pub state: PathBuf,
    /// What the user says the disk is made of.
    pub spindles: Option<Spindles>,
}

/// What happens while it happens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// The file is written for the first time.
    Layout,
    /// A pattern runs.
    Pattern {
        /// Which.
        pattern: Pattern,
        /// Requests a second in the last second.
        rate: f64,
    },
}

/// Probes a directory. It ends early, with what was measured, when `stop` becomes readable, when the disk reports an error
/// or no room, and when the day's budget is used up. No pattern takes longer than 2 s, its time, and what the disk takes for
/// what it holds, at most 10 s (an fsync at most 120 s).
///
/// # Errors
/// Where the directory is not to be probed, and where the file cannot be made.
pub fn run(
    request: &Request,
    stop: BorrowedFd<'_>,
    tell: &mut dyn FnMut(Progress),
) -> Result<Probe, ProbeError> {
    let place = place::look(&request.folder, request.network)?;
    let size = place::file_size(&request.folder, &place.facts, request.size)?;
    let account = account(request, &place)?;
    let scratch = Scratch::make(&request.folder, &place.directory, size)?;
    let mut probing = Probing {
        request,
        stop,
        account,
        probe: begun(request, place, &scratch),
        scratch,
    };
    probing.lay_out(tell)?;
    for pattern in Pattern::ALL {
        if probing.probe.ended.is_none() && request.patterns.contains(pattern) {
            probing.measure(*pattern, tell)?;
        }
    }
    Ok(probing.probe)
}

fn account(request: &Request, place: &Place) -> Result<Account, ProbeError> {
    let facts = &place.facts;
    let disk = facts.disk.as_ref().or(facts.device.as_ref());
    // What has no device is told by where it is mounted.
    let name = disk.map_or_else(
        || facts.mounted_at.as_deref().unwrap_or("unknown").to_owned(),
        |disk| disk.name.to_string(),
    );
    let size = disk.and_then(|disk| disk.size).unwrap_or(facts.size);
    let budget = request.budget.unwrap_or_else(|| wear::usual_budget(size));
    Account::open(&request.state, &name, budget)
}

fn begun(request: &Request, place: Place, scratch: &Scratch) -> Probe {
    Probe {
        schema_version: SCHEMA_VERSION,
        started_at_unix_ms: clock::wall().0 / 1_000_000,
        kernel: host::facts().kernel.map(String::from).map(Into::into),
        place: place.facts,
        direct: scratch.direct(),
        file: Bytes(0),
        layout: None,
        precision: request.precision,
        spindles: request.spindles,
        runs: Vec::new(),
        ended: None,
        fio: None,
        wear: Wear::default(),
    }
}

struct Probing<'a> {
    request: &'a Request,
    stop: BorrowedFd<'a>,
    account: Account,
    scratch: Scratch,
    probe: Probe,
}

impl Probing<'_> {
    /// Writes the file once, so that reads have something to read and writes need no new room.
    fn lay_out(&mut self, tell: &mut dyn FnMut(Progress)) -> Result<(), ProbeError> {
        let mut task = self.task(Pattern::SequentialWrite, self.scratch.size())?;
        task.once = true;
        task.ramp = Nanos::ZERO;
        task.most = LAYOUT_MOST;
        task.precision = None;
        tell(Progress::Layout);
        let began = clock::monotonic();
        let done = self.made(&task, &mut |_, _| tell(Progress::Layout))?;
        let stopped = done.ended == Some(ProbeEnd::Stopped);
        if !stopped {
            self.scratch.sync()?;
        }
        let time_ns = clock::monotonic().since(began);
        self.probe.layout = Some(Layout {
            bytes: done.bytes,
            time_ns,
        });
        self.probe.file = done.bytes;
        self.probe.ended = done.ended;
        if done.bytes < place::LEAST && self.probe.ended.is_none() {
            self.probe.ended = Some(ProbeEnd::NoAnswer);
        }
        self.scratch.look_for_pages(done.bytes);
        self.probe.direct = self.scratch.direct();
        Ok(())
    }

    fn measure(
        &mut self,
        pattern: Pattern,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<(), ProbeError> {
        let task = self.task(pattern, self.probe.file)?;
        if !task.direct {
            self.scratch.evict()?;
        }
        let before = self.counters();
        let done = self.made(&task, &mut |pattern, rate| {
            tell(Progress::Pattern { pattern, rate });
        })?;
        let device = before
            .zip(self.counters())
            .map(|(before, after)| work_between(&before, &after));
        self.probe.ended = done.ended;
        let cached = file_system::cached(self.scratch.file(), self.probe.file).ok();
        self.probe.runs.push(PatternRun {
            pattern,
            direct: task.direct,
            engine: done.engine,
            ticks: done.meter.ticks,
            ramp_ticks: usize::try_from(task.ramp.0 / linerate_model::probe::TICK.0).unwrap_or(0),
            measured_ns: done.measured,
            requests: done.meter.requests,
            latency: done.meter.latency,
            bytes: done.bytes,
            sync_ns: done.sync,
            device,
            cached,
            ended: done.ended,
        });
        Ok(())
    }

    fn task(&self, pattern: Pattern, range: Bytes) -> Result<Task, ProbeError> {
        let direct = pattern.direct() && matches!(self.scratch.direct(), Direct::Yes { .. });
        let is_buffered = pattern == Pattern::Buffered;
        let mut seed = [0; 8];
        linerate_kernel::thread::random(&mut seed)
            .map_err(|error| self.scratch.failed("get random numbers for", error))?;
        Ok(Task {
            pattern,
            direct,
            alignment: self.scratch.alignment(),
            range,
            once: is_buffered,
            ramp: if is_buffered { Nanos::ZERO } else { RAMP },
            most: self.request.time,
            precision: self.request.precision.filter(|_| !is_buffered),
            allowance: Bytes(
                self.account
                    .left()
                    .0
                    .saturating_sub(self.probe.wear.written.0),
            ),
            seed: u64::from_ne_bytes(seed),
        })
    }

    /// Has a task made, and keeps what it wrote.
    fn made(
        &mut self,
        task: &Task,
        tell: &mut dyn FnMut(Pattern, f64),
    ) -> Result<Done, ProbeError> {
        self.scratch.set_direct(task.direct)?;
        let done = load::run(self.scratch.file(), task, self.stop, tell)
            .map_err(|error| self.scratch.failed("read or write", error))?;
        if task.pattern.writes() {
            self.probe.wear.written.0 += done.bytes.0;
            self.account.add(done.bytes)?;
        }
        self.probe.wear.before = self.account.before;
        self.probe.wear.budget = self.account.budget;
        Ok(done)
    }

    /// What the kernel counts of the device of the file, and of nothing else.
    fn counters(&self) -> Option<DiskCounters> {
        let place = &self.probe.place;
        let device = place.disk.as_ref().or(place.device.as_ref())?;
        if device.counted == Some(false) {
            return None;
        }
        let all = blocks::counters(&Root::of_this_machine()).ok()?;
        let found = all.into_iter().find(|(name, _)| *name == device.name);
        found.map(|(_, counters)| counters)
    }
}

fn work_between(before: &DiskCounters, after: &DiskCounters) -> DeviceWork {
    let bytes = |before: u64, after: u64| Bytes(after.wrapping_sub(before).saturating_mul(SECTOR));
    DeviceWork {
        read: bytes(before.read.sectors, after.read.sectors),
        written: bytes(before.write.sectors, after.write.sectors),
    }
}
