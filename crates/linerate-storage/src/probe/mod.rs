//! How fast a directory's disk is: patterns of requests on a new file that nobody else can see and that is gone with this
//! process, however that ends.

mod error;
pub mod fio;
mod load;
mod meter;
pub(crate) mod noise;
mod place;
mod ring_load;
mod scratch;
mod thread_load;
mod wear;

use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;

use linerate_kernel::inventory::{Root, blocks};
use linerate_kernel::process_io::{self, ProcessIo};
use linerate_kernel::{clock, file_system, host};
use linerate_model::block::{DiskCounters, SECTOR};
use linerate_model::probe::{
    BusyProcess, DeviceWork, Direct, Layout, Pattern, PatternRun, Probe, ProbeEnd, SCHEMA_VERSION,
    Spindles, TICK, Wear,
};
use linerate_model::units::{Bytes, Nanos};

pub use error::ProbeError;
use fio::{Cut, FioOutput};
use load::{Done, Task};
use place::Place;
use scratch::Scratch;
use wear::Account;

/// Writing the file for the first time takes at most so long: what is written then is what the patterns stay within.
const LAYOUT_MOST: Nanos = Nanos::from_millis(20_000);
/// What is written by the page cache at most, in time that writing the file took: its fsync has to end.
const BUFFERED_MOST: Nanos = Nanos::from_millis(30_000);
/// Processes that are named for a pattern.
const MOST_NAMED: usize = 3;
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
    /// Whether files on other hosts may be probed, and those that share the room of a thin pool or a snapshot.
    pub network: bool,
    /// What all probes of a day may write; `None`: a tenth of the disk.
    pub budget: Option<Bytes>,
    /// The folder in which what was written is kept.
    pub state: PathBuf,
    /// What the user says the disk is made of.
    pub spindles: Option<Spindles>,
    /// A job for fio, run in the same file behind the patterns, and the longest time that it may take.
    pub fio: Option<(fio::Job, Nanos)>,
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
    /// fio runs.
    Fio,
}

/// Probes a directory. It ends early, with what was measured, when `stop` becomes readable, when the disk reports an error
/// or no room, and when the day's budget is used up. No pattern takes longer than 2 s, its time, and what the disk takes for
/// what it holds, at most 10 s (an fsync at most 10 minutes). What fio printed is given back as it is, or why it did not run.
///
/// # Errors
/// Where the directory is not to be probed, and where the file cannot be made.
pub fn run(
    request: &Request,
    stop: BorrowedFd<'_>,
    tell: &mut dyn FnMut(Progress),
) -> Result<(Probe, Option<Result<FioOutput, ProbeError>>), ProbeError> {
    let place = place::look(&request.folder, request.network)?;
    let size = place::file_size(&request.folder, &place.facts, request.size)?;
    if let Some((job, _)) = &request.fio {
        job.fits(size)?;
    }
    let account = account(request, &place)?;
    let scratch = Scratch::make(&request.folder, &place.directory, size)?;
    let mut probing = Probing {
        request,
        stop,
        probe: begun(request, place, &scratch, &account),
        account,
        scratch,
    };
    probing.lay_out(tell);
    let asked = |pattern: &&Pattern| request.patterns.contains(pattern);
    for pattern in Pattern::ALL.iter().filter(asked) {
        if probing.probe.ended.is_none() {
            probing.measure(*pattern, tell);
        }
    }
    let fio = match &request.fio {
        Some((job, most)) if probing.probe.ended.is_none() => {
            tell(Progress::Fio);
            Some(probing.fio(job, *most))
        }
        _ => None,
    };
    Ok((probing.probe, fio))
}

fn account(request: &Request, place: &Place) -> Result<Account, ProbeError> {
    let facts = &place.facts;
    let disk = facts.disk.as_ref().or(facts.device.as_ref());
    // A file system without a block device goes by its mount point.
    let name = disk.map_or_else(
        || facts.mounted_at.as_deref().unwrap_or("unknown").to_owned(),
        |disk| disk.name.to_string(),
    );
    let size = disk.and_then(|disk| disk.size).unwrap_or(facts.size);
    let budget = request.budget.unwrap_or_else(|| wear::usual_budget(size));
    Account::open(&request.state, &name, budget)
}

fn begun(request: &Request, place: Place, scratch: &Scratch, account: &Account) -> Probe {
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
        wear: Wear {
            written: Bytes(0),
            before: account.before,
            budget: account.budget,
        },
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
    fn lay_out(&mut self, tell: &mut dyn FnMut(Progress)) {
        // The last of all patterns: nothing is left for others.
        let mut task = self.task(Pattern::SequentialWrite, self.scratch.size());
        task.once = true;
        task.ramp = Nanos::ZERO;
        task.most = LAYOUT_MOST;
        task.precision = None;
        tell(Progress::Layout);
        let began = clock::monotonic();
        let Some(done) = self.made(&task, &mut |_, _| tell(Progress::Layout)) else {
            return;
        };
        if self.probe.ended != Some(ProbeEnd::Stopped) {
            let ended = self.scratch.sync(self.stop);
            self.probe.ended = self.probe.ended.or(ended);
        }
        self.probe.layout = Some(Layout {
            bytes: done.bytes,
            time_ns: clock::monotonic().since(began),
        });
        self.probe.file = done.bytes;
        if done.bytes < place::LEAST {
            let why = done.ended.unwrap_or(ProbeEnd::NoAnswer);
            self.probe.ended.get_or_insert(why);
        }
        self.scratch.look_for_pages(done.bytes);
        self.probe.direct = self.scratch.direct();
    }

    fn measure(&mut self, pattern: Pattern, tell: &mut dyn FnMut(Progress)) {
        let range = match pattern {
            Pattern::Buffered => buffered_range(self.probe.layout, self.probe.file),
            _ => self.probe.file,
        };
        let task = self.task(pattern, range);
        // Of an earlier pattern by the page cache, too: direct writes would have to drop its pages one by one.
        self.probe.ended = self.scratch.evict(self.stop);
        if self.probe.ended.is_some() {
            return;
        }
        let before = self.counters();
        let (busy_before, _) = process_io::all();
        let Some(done) = self.made(&task, &mut |pattern, rate| {
            tell(Progress::Pattern { pattern, rate });
        }) else {
            return;
        };
        let device = before
            .zip(self.counters())
            .map(|(before, after)| work_between(&before, &after));
        let cached = file_system::cached(self.scratch.file(), self.probe.file).ok();
        self.probe.runs.push(PatternRun {
            pattern,
            direct: task.direct,
            engine: done.engine,
            ticks: done.meter.ticks,
            ramp_ticks: usize::try_from(task.ramp.0 / TICK.0).unwrap_or(0),
            measured_ns: done.measured,
            requests: done.meter.requests,
            latency: done.meter.latency,
            bytes: done.bytes,
            sync_ns: done.sync,
            device,
            busy: busy_since(&busy_before),
            cached,
            ended: done.ended,
        });
    }

    fn fio(&mut self, job: &fio::Job, most: Nanos) -> Result<FioOutput, ProbeError> {
        let written = self.probe.wear.written.0;
        let left = Bytes(self.account.left().0.saturating_sub(written));
        let file = self.scratch.file().as_fd();
        let (output, ended) = fio::run(job, file, self.scratch.size(), most, left, self.stop)?;
        self.probe.ended = match ended.cut {
            Some(Cut::Stopped) => Some(ProbeEnd::Stopped),
            Some(Cut::Budget) => Some(ProbeEnd::Budget),
            Some(Cut::NoEnd) => Some(ProbeEnd::NoAnswer),
            Some(Cut::Time) | None => None,
        };
        self.probe.wear.written.0 += ended.written.0;
        if self.account.add(ended.written).is_err() {
            self.probe.ended.get_or_insert(ProbeEnd::NoAccount);
        }
        output
    }

    fn task(&self, pattern: Pattern, range: Bytes) -> Task {
        let direct = pattern.direct() && matches!(self.scratch.direct(), Direct::Yes { .. });
        let is_buffered = pattern == Pattern::Buffered;
        let written = self.probe.wear.written.0;
        let left = self.account.left().0.saturating_sub(written);
        Task {
            pattern,
            direct,
            alignment: self.scratch.alignment(),
            range,
            once: is_buffered,
            ramp: if is_buffered { Nanos::ZERO } else { RAMP },
            most: self.request.time,
            precision: self.request.precision.filter(|_| !is_buffered),
            allowance: Bytes(left / self.writers_from(pattern)),
            // The instant differs from pattern to pattern and from probe to probe.
            seed: clock::wall().0 ^ clock::monotonic().0.rotate_left(32),
        }
    }

    /// How many patterns that write are still to come, this one included: each has the same share of what may be
    /// written, and leaves what it does not need to those behind it.
    fn writers_from(&self, pattern: Pattern) -> u64 {
        let still = Pattern::ALL.iter().skip_while(|one| **one != pattern);
        let writes = |one: &&Pattern| one.writes() && self.request.patterns.contains(one);
        still.filter(writes).count().max(1) as u64
    }

    /// Has a task made, and keeps what it wrote. `None` where the kernel took no request, which ends the probe.
    fn made(&mut self, task: &Task, tell: &mut dyn FnMut(Pattern, f64)) -> Option<Done> {
        let done = self
            .scratch
            .set_direct(task.direct)
            .and_then(|()| load::run(self.scratch.file(), task, self.stop, tell));
        let done = match done {
            Ok(done) => done,
            Err(error) => {
                self.probe.ended = Some(load::failed(&error));
                return None;
            }
        };
        // A pattern whose share of the budget is used up leaves the others theirs.
        self.probe.ended = done.ended.filter(|why| *why != ProbeEnd::Budget);
        if task.pattern.writes() {
            self.probe.wear.written.0 += done.bytes.0;
            if self.account.add(done.bytes).is_err() {
                self.probe.ended.get_or_insert(ProbeEnd::NoAccount);
            }
        }
        Some(done)
    }

    /// What the kernel counts of the device of the file, and of nothing else.
    fn counters(&self) -> Option<DiskCounters> {
        let place = &self.probe.place;
        let device = place.disk.as_ref().or(place.device.as_ref())?;
        if device.is_uncounted() {
            return None;
        }
        let all = blocks::counters(&Root::of_this_machine()).ok()?;
        let found = all.into_iter().find(|(name, _)| *name == device.name);
        found.map(|(_, counters)| counters)
    }
}

/// The part of a file that a disk writes in [`BUFFERED_MOST`] at the rate at which the file was laid out; a block at least.
fn buffered_range(layout: Option<Layout>, file: Bytes) -> Bytes {
    let Some(layout) = layout.filter(|layout| layout.time_ns > Nanos::ZERO) else {
        return file;
    };
    let most = u128::from(layout.bytes.0) * u128::from(BUFFERED_MOST.0);
    let most = most / u128::from(layout.time_ns.0);
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    Bytes(most.max(Pattern::Buffered.block()).min(file.0))
}

/// Other processes that used a disk since then, at most [`MOST_NAMED`].
fn busy_since(before: &[ProcessIo]) -> Vec<BusyProcess> {
    let own = std::process::id();
    let (now, _) = process_io::all();
    let since = |now: &ProcessIo| {
        let is_it = |io: &&ProcessIo| (io.pid, io.began) == (now.pid, now.began);
        let before = before.iter().find(is_it);
        let [read, written] = before.map_or([0, 0], |io| [io.read_bytes, io.written_bytes]);
        let read = Bytes(now.read_bytes.saturating_sub(read));
        (
            now.pid,
            read,
            Bytes(now.written_bytes.saturating_sub(written)),
        )
    };
    let others = now.iter().filter(|io| io.pid != own).map(since);
    let mut busy: Vec<(u32, Bytes, Bytes)> = others
        .filter(|(_, read, written)| read.0 > 0 || written.0 > 0)
        .collect();
    busy.sort_unstable_by_key(|(pid, read, written)| {
        (std::cmp::Reverse(read.0.saturating_add(written.0)), *pid)
    });
    busy.truncate(MOST_NAMED);
    let named = |(pid, read, written): (u32, Bytes, Bytes)| {
        let program = process_io::name(pid);
        (!program.is_empty()).then(|| BusyProcess {
            pid,
            program: program.into(),
            read,
            written,
        })
    };
    busy.into_iter().filter_map(named).collect()
}

fn work_between(before: &DiskCounters, after: &DiskCounters) -> DeviceWork {
    let bytes = |before: u64, after: u64| Bytes(after.wrapping_sub(before).saturating_mul(SECTOR));
    DeviceWork {
        read: bytes(before.read.sectors, after.read.sectors),
        written: bytes(before.write.sectors, after.write.sectors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_disk_gets_no_more_by_the_page_cache_than_it_can_write() {
        let laid = |bytes: u64, seconds: u64| {
            Some(Layout {
                bytes: Bytes(bytes),
                time_ns: Nanos::from_millis(1000 * seconds),
            })
        };
        let file = Bytes(1 << 30);
        assert_eq!(buffered_range(None, file), file);
        assert_eq!(buffered_range(laid(1 << 30, 1), file), file);
        // Its data were there after 20 s, and on disk after 600.
        assert_eq!(
            buffered_range(laid(600 << 20, 600), Bytes(600 << 20)),
            Bytes(30 << 20)
        );
        assert_eq!(
            buffered_range(laid(16 << 20, 3600), Bytes(16 << 20)),
            Bytes(1 << 20)
        );
        assert_eq!(buffered_range(laid(16 << 20, 0), file), file);
    }
}
