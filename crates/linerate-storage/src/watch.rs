//! Watching block devices: the kernel's counters, read at a cadence, into a [`DiskWatch`].
//!
//! One thread reads; nothing is written and no disk is touched. Memory is bounded: [`MOST_ROWS`] over all devices, beyond
//! which every second one is dropped.

mod users;

use std::collections::HashMap;
use std::os::fd::BorrowedFd;

use linerate_kernel::inventory::{Root, blocks};
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::{clock, host};
use linerate_model::block::{BlockDevice, BlockKind, DiskCounters};
use linerate_model::disk_watch::{
    DiskPlace, DiskPlaceKind, DiskPlan, DiskReading, DiskSampling, DiskTotals, DiskWatch,
    WatchedDevice,
};
use linerate_model::observation::Ended;
use linerate_model::plain_text::PlainText;
use linerate_model::record::{Kind, Note, SCHEMA_VERSION, Software};
use linerate_model::series::{Series, every_second};
use linerate_model::units::Nanos;

use crate::StorageError;
use crate::stack::Stack;
use users::Users;

/// Samples of all devices together, about 80 MB.
pub const MOST_ROWS: usize = 1 << 19;
/// A device cannot have been busy for longer than time passed; the kernel's ticks are no longer than this, ms.
const BUSY_SLACK_MS: u64 = 1000;
/// Readings that may fail in a row.
const MOST_FAILURES: u32 = 10;

/// Watches until `stop` becomes readable or the time is over.
///
/// # Errors
/// A path that is not there or on no disk of this host, a kernel that does not count. Once watching has begun, what was
/// seen is kept whatever happens.
pub fn run(
    plan: &DiskPlan,
    stop: BorrowedFd<'_>,
    tell: &mut dyn FnMut(&[BlockDevice], &DiskReading),
) -> Result<DiskWatch, StorageError> {
    run_on(Root::of_this_machine(), plan, stop, tell)
}

fn run_on(
    root: Root,
    plan: &DiskPlan,
    stop: BorrowedFd<'_>,
    tell: &mut dyn FnMut(&[BlockDevice], &DiskReading),
) -> Result<DiskWatch, StorageError> {
    let stack = Stack::read(&root)?;
    let places = plan
        .paths
        .iter()
        .map(|path| stack.place(path))
        .collect::<Result<Vec<_>, _>>()?;
    let devices = wanted(&stack, &places)?;
    let watched = |device: &&BlockDevice| {
        let above = stack.above(&device.name);
        let strange = above.filter(|above| !devices.iter().any(|one| one.name == above.name));
        Watched::new(device, strange.map(|above| above.name.clone()).collect())
    };
    let watched = devices.iter().map(watched).collect();
    let mut watcher = Watcher::begin(plan, root, places, watched)?;
    let ended = watcher.watch(stop, tell);
    Ok(watcher.finish(ended))
}

fn wanted<'a>(
    stack: &'a Stack,
    places: &[DiskPlace],
) -> Result<Vec<&'a BlockDevice>, StorageError> {
    if places.is_empty() {
        return Ok(stack.in_use());
    }
    let mut names = Vec::new();
    for place in places {
        match &place.on {
            DiskPlaceKind::Device { name } => names.push(name.clone()),
            DiskPlaceKind::FileSystem {
                kind,
                source,
                devices,
                ..
            } if devices.is_empty() => {
                return Err(StorageError::Nothing {
                    reason: format!(
                        "{} is on {kind} ({source}), which no block device of this host holds. {}",
                        place.path,
                        without_disk(kind)
                    ),
                });
            }
            DiskPlaceKind::FileSystem { devices, .. } => names.extend(devices.iter().cloned()),
        }
    }
    Ok(stack.below(&names))
}

/// What to do where files are on no disk of this host.
fn without_disk(kind: &str) -> &'static str {
    match kind {
        "tmpfs" | "ramfs" | "devtmpfs" => "Its files are in memory",
        "overlay" => {
            "Name the folder below it that is written to (`upperdir` in /proc/self/mountinfo)"
        }
        "zfs" => "`zpool iostat -v` shows its disks",
        kind if kind.starts_with("fuse") => {
            "Name the folder that its program keeps the files in, or run this on the host that does"
        }
        "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "lustre" | "9p" | "afs" => {
            "Run this on the server that has the disks"
        }
        _ => "Name a device: `lsblk` lists them",
    }
}

/// A device and what it did.
struct Watched {
    device: BlockDevice,
    also_carries: Vec<PlainText>,
    /// The kernel's counters at the last reading that had them.
    counters: Option<DiskCounters>,
    /// Since when it is gone.
    gone: Option<Nanos>,
    totals: DiskTotals,
    /// One for each of the rows that are kept.
    rows: Vec<DiskTotals>,
    replaced: u32,
}

impl Watched {
    fn new(device: &BlockDevice, also_carries: Vec<PlainText>) -> Self {
        Self {
            device: device.clone(),
            also_carries,
            counters: None,
            gone: None,
            totals: DiskTotals::default(),
            rows: Vec::new(),
            replaced: 0,
        }
    }

    /// `now`: absent where the device is gone. `span_ms`: since the reading before.
    fn read(&mut self, now: Option<&DiskCounters>, at: Nanos, span_ms: u64) {
        let Some(now) = now.filter(|_| !self.device.is_uncounted()) else {
            if self.counters.is_some() {
                self.gone.get_or_insert(at);
            }
            return;
        };
        self.gone = None;
        let Some(before) = self.counters.replace(*now) else {
            self.totals.in_flight = u64::try_from(now.in_flight).unwrap_or(0);
            return;
        };
        // Another device of the same name may have done more than the one before, in less time.
        let busy_ms = u64::from(now.busy_ms.wrapping_sub(before.busy_ms));
        let is_possible = busy_ms <= span_ms.saturating_mul(2).saturating_add(BUSY_SLACK_MS);
        match self.totals.plus(&before, now).filter(|_| is_possible) {
            Some(totals) => self.totals = totals,
            None => self.replaced += 1,
        }
    }
}

struct Watcher<'a> {
    plan: &'a DiskPlan,
    root: Root,
    places: Vec<DiskPlace>,
    devices: Vec<Watched>,
    start: Nanos,
    started_at_unix_ms: u64,
    read_at: Nanos,
    /// Since the start.
    at_ns: Vec<u64>,
    /// Every so many readings are kept.
    thinned: u32,
    users: Users,
    sampling: DiskSampling,
    cpu: Nanos,
    notes: Vec<Note>,
}

impl<'a> Watcher<'a> {
    fn begin(
        plan: &'a DiskPlan,
        root: Root,
        places: Vec<DiskPlace>,
        devices: Vec<Watched>,
    ) -> Result<Self, StorageError> {
        if devices.is_empty() {
            return Err(StorageError::Nothing {
                reason: "this host has no block device that could be watched".to_owned(),
            });
        }
        let mut watcher = Self {
            plan,
            root,
            places,
            devices,
            start: clock::monotonic(),
            started_at_unix_ms: clock::wall().0 / 1_000_000,
            read_at: Nanos::ZERO,
            at_ns: Vec::new(),
            thinned: 1,
            users: Users::default(),
            sampling: DiskSampling::default(),
            cpu: clock::thread_cpu(),
            notes: Vec::new(),
        };
        watcher.users.look(watcher.start);
        let refused = |reason| StorageError::Unreadable { reason };
        watcher.read().map_err(refused)?;
        // What was read until now belongs to the time before.
        watcher.start = watcher.read_at;
        watcher.at_ns = vec![0];
        watcher.note_uncounted();
        Ok(watcher)
    }

    fn note_uncounted(&mut self) {
        let silent = self.devices.iter().filter(|one| one.counters.is_none());
        let names: Vec<&str> = silent.map(|one| one.device.name.as_str()).collect();
        if !names.is_empty() {
            let text = format!(
                "the kernel counts nothing of what these do (not in /proc/diskstats, or queue/iostats is 0): {}",
                names.join(", ")
            );
            self.note("not-counted", text);
        }
    }

    fn note(&mut self, id: &str, text: String) {
        self.notes.push(Note {
            id: id.into(),
            text: text.into(),
        });
    }

    /// What became different while devices were watched: some are gone, some are new, an array copies.
    fn note_changes(&mut self) {
        let gone = self.devices.iter().filter_map(|one| {
            let since = one.gone?.as_secs_f64();
            Some(format!("{} after {since:.0} s", one.device.name))
        });
        let gone: Vec<String> = gone.collect();
        if !gone.is_empty() {
            self.note(
                "gone",
                format!("removed while it was watched: {}", gone.join(", ")),
            );
        }
        let Ok(stack) = Stack::read(&self.root) else {
            return;
        };
        for one in &mut self.devices {
            let now = stack
                .devices()
                .iter()
                .find(|now| now.name == one.device.name);
            if let Some(now) = now.filter(|now| is_copying(&now.kind)) {
                one.device.kind = now.kind.clone();
            }
        }
        let known = |name: &PlainText| self.devices.iter().any(|one| one.device.name == *name);
        let new = stack.in_use().into_iter().filter(|now| !known(&now.name));
        let new: Vec<String> = new.map(|now| now.name.to_string()).collect();
        if self.places.is_empty() && !new.is_empty() {
            self.note("new", format!("new, and not watched: {}", new.join(", ")));
        }
    }

    fn watch(
        &mut self,
        stop: BorrowedFd<'_>,
        tell: &mut dyn FnMut(&[BlockDevice], &DiskReading),
    ) -> Ended {
        let every = self.plan.interval_ns;
        let end = self.plan.time_ns.map(|time| self.start.plus(time));
        let devices: Vec<BlockDevice> = self
            .devices
            .iter()
            .map(|watched| watched.device.clone())
            .collect();
        let mut next = self.start.plus(every);
        let mut failures = 0;
        loop {
            let until = end.map_or(next, |end| end.min(next));
            let mut entries = [PollEntry::new(stop, Interest::READ)];
            let waited = poll::wait(&mut entries, Some(until.since(clock::monotonic())));
            let stopped = waited.is_ok() && entries[0].readiness().any();
            let now = clock::monotonic();
            if !stopped && now < until {
                continue;
            }
            match self.reading(end, stopped || end.is_some_and(|end| now >= end)) {
                Ok(reading) => {
                    failures = 0;
                    tell(&devices, &reading);
                }
                Err(_) => failures += 1,
            }
            if stopped {
                return Ended::Stopped;
            }
            if end.is_some_and(|end| now >= end) {
                return Ended::TimeIsOver;
            }
            if failures > MOST_FAILURES {
                return Ended::Unreadable;
            }
            let behind = clock::monotonic().since(next).0 / every.0.max(1);
            self.sampling.missed += behind;
            next = next.plus(Nanos(every.0.saturating_mul(behind + 1)));
        }
    }

    /// One reading, and what it tells.
    fn reading(&mut self, end: Option<Nanos>, last: bool) -> Result<DiskReading, String> {
        let from = self.read_at;
        let before: Vec<DiskTotals> = self.devices.iter().map(|one| one.totals).collect();
        self.read()?;
        self.keep(last);
        let now = self.devices.iter().map(|one| one.totals);
        let counted = self.devices.iter().map(|one| one.counters.is_some());
        let totals = before.into_iter().zip(now).zip(counted);
        let (users, users_ns) = if last || self.users.is_due(self.read_at) {
            let since = self.users.looked;
            (self.users.look(self.read_at), self.read_at.since(since))
        } else {
            (Vec::new(), Nanos::ZERO)
        };
        Ok(DiskReading {
            from_ns: from.since(self.start),
            to_ns: self.read_at.since(self.start),
            left_ns: end.map(|end| end.since(self.read_at)),
            totals: totals
                .map(|((before, now), counted)| counted.then_some([before, now]))
                .collect(),
            users,
            users_ns,
        })
    }

    fn read(&mut self) -> Result<(), String> {
        let counters = blocks::counters(&self.root)?;
        let now = clock::monotonic();
        let span_ms = now.since(self.read_at).0 / 1_000_000;
        self.read_at = now;
        self.sampling.readings += 1;
        let by_name: HashMap<PlainText, DiskCounters> = counters.into_iter().collect();
        let at = now.since(self.start);
        for one in &mut self.devices {
            one.read(by_name.get(&one.device.name), at, span_ms);
        }
        if self.at_ns.is_empty() {
            for one in &mut self.devices {
                one.rows.push(one.totals);
            }
        }
        Ok(())
    }

    /// Keeps a row, as far as there is room for all of them.
    fn keep(&mut self, last: bool) {
        let number = self.sampling.readings - 1;
        if !last && !number.is_multiple_of(u64::from(self.thinned)) {
            return;
        }
        if (self.at_ns.len() + 1).saturating_mul(self.devices.len()) > MOST_ROWS {
            self.thinned = self.thinned.saturating_mul(2);
            every_second(&mut self.at_ns);
            for one in &mut self.devices {
                every_second(&mut one.rows);
            }
            if !last && !number.is_multiple_of(u64::from(self.thinned)) {
                return;
            }
        }
        self.at_ns.push(self.read_at.since(self.start).0);
        for one in &mut self.devices {
            one.rows.push(one.totals);
        }
    }

    fn finish(mut self, ended: Ended) -> DiskWatch {
        self.sampling.cpu_ns = clock::thread_cpu().since(self.cpu).0;
        self.note_changes();
        let devices = self.devices.into_iter().map(|one| WatchedDevice {
            samples: series(&self.at_ns, &one.rows, one.counters.is_some()),
            device: one.device,
            also_carries: one.also_carries,
            replaced: one.replaced,
            thinned: self.thinned,
        });
        DiskWatch {
            schema_version: SCHEMA_VERSION,
            kind: Kind::DiskWatch,
            software: Software::this_program(),
            started_at_unix_ms: self.started_at_unix_ms,
            asked: self.plan.clone(),
            ended,
            host: host::facts(),
            start_ns: self.start,
            end_ns: self.read_at,
            places: self.places,
            devices: devices.collect(),
            replication: None,
            unreadable_users: self.users.unreadable,
            users: self.users.most(),
            sampling: self.sampling,
            notes: self.notes,
        }
    }
}

fn is_copying(kind: &BlockKind) -> bool {
    matches!(kind, BlockKind::Md { doing: Some(_), .. })
}

/// Columns of which every row has a value; none where the kernel counted nothing.
fn series(at_ns: &[u64], rows: &[DiskTotals], counted: bool) -> Series {
    if !counted {
        return Series::default();
    }
    let mut series = Series::new(at_ns.to_vec());
    for (place, column) in DiskTotals::COLUMNS.iter().enumerate() {
        // The first row is before all counting: it is 0 where the last one has a value.
        let has = rows
            .last()
            .is_some_and(|last| last.cells()[place].is_some());
        let values = rows.iter().map(|row| row.cells()[place].unwrap_or(0));
        if has {
            // As many values as rows, by construction.
            drop(series.insert(*column, values.collect()));
        }
    }
    series
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::fs;
    use std::os::fd::AsFd as _;
    use std::path::Path;

    use super::*;
    use linerate_model::column::Column;

    /// A folder that stands for a machine with so many disks.
    fn machine(disks: usize) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for disk in 0..disks {
            let device = folder.path().join(format!("sys/class/block/sd{disk}"));
            fs::create_dir_all(device.join("queue")).unwrap();
            fs::create_dir_all(device.join("mq/0")).unwrap();
            fs::write(device.join("dev"), format!("8:{disk}")).unwrap();
            fs::write(device.join("size"), "2048").unwrap();
            fs::write(device.join("queue/nr_requests"), "64").unwrap();
        }
        fs::create_dir_all(folder.path().join("proc/self")).unwrap();
        fs::write(folder.path().join("proc/self/mountinfo"), "").unwrap();
        counters(folder.path(), disks, 1);
        folder
    }

    fn counters(folder: &Path, disks: usize, count: u64) {
        let mut text = String::new();
        for disk in 0..disks {
            let sectors = count * 8;
            writeln!(
                text,
                "   8 {disk} sd{disk} {count} 0 {sectors} 9 {count} 0 {sectors} 9 1 9 9 0 0 0 0 0 0"
            )
            .unwrap();
        }
        fs::write(folder.join("proc/diskstats"), text).unwrap();
    }

    fn plan(paths: &[&str], time_ms: u64) -> DiskPlan {
        DiskPlan {
            paths: paths.iter().map(|path| (*path).into()).collect(),
            time_ns: Some(Nanos::from_millis(time_ms)),
            interval_ns: Nanos::from_millis(20),
        }
    }

    #[test]
    fn what_is_counted_between_readings_is_told_and_kept() {
        let folder = machine(3);
        let (_reader, writer) = std::io::pipe().unwrap();
        let root = Root::at(folder.path()).unwrap();
        let mut count = 1;
        let mut told = 0;
        // A writing end is never readable: nobody stops it.
        let stop = writer.as_fd();
        let seen = run_on(root, &plan(&["sd1"], 200), stop, &mut |devices, reading| {
            assert_eq!(devices.len(), 1);
            let [before, now] = reading.totals[0].unwrap();
            told += now.write.ios - before.write.ios;
            count += 10;
            counters(folder.path(), 3, count);
        })
        .unwrap();
        let samples = &seen.devices[0].samples;
        let written = samples.growth(Column::disk_writes).unwrap();
        assert_eq!(
            (written, written * 4096),
            (told, samples.growth(Column::disk_written_bytes).unwrap())
        );
        assert!(written > 0 && seen.devices[0].device.queue_requests == Some(64));
        assert_eq!(seen.ended, Ended::TimeIsOver);
    }

    #[test]
    fn a_reading_of_five_hundred_devices_takes_under_a_hundredth_of_a_second() {
        let folder = machine(500);
        let root = Root::at(folder.path()).unwrap();
        let (_reader, writer) = std::io::pipe().unwrap();
        let seen = run_on(root, &plan(&[], 500), writer.as_fd(), &mut |_, _| {}).unwrap();
        assert_eq!(seen.devices.len(), 500);
        // CPU time, so that other programs do not count: at one reading a second, a hundredth of a core.
        let each = seen.sampling.cpu_ns / seen.sampling.readings;
        assert!(each < 10_000_000, "{each} ns");
    }
}
