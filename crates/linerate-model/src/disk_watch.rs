//! What a kernel counted of block devices while they were watched.
//!
//! Counters of a device are sums since watching began: they do not wrap as the kernel's own 32-bit times do, and a
//! device that was replaced goes on where the one before it ended.

use serde::{Deserialize, Serialize};

use crate::block::{BlockDevice, DiskCounters, RequestCounters, SECTOR};
use crate::column::Column;
use crate::observation::Ended;
use crate::plain_text::PlainText;
use crate::record::{HostFacts, Kind, Note, Software};
use crate::series::Series;
use crate::storage::Replication;
use crate::units::Nanos;

/// A whole record, as it is kept in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskWatch {
    /// [`SCHEMA_VERSION`](crate::record::SCHEMA_VERSION) of the writer.
    pub schema_version: u32,
    /// [`Kind::DiskWatch`].
    pub kind: Kind,
    /// The writer.
    pub software: Software,
    /// Wall-clock label of the start, ms since 1970-01-01 UTC. Nothing is computed from it.
    pub started_at_unix_ms: u64,
    /// What was asked for.
    pub asked: DiskPlan,
    /// How it ended.
    pub ended: Ended,
    /// The host.
    pub host: HostFacts,
    /// When watching began, this host's monotonic clock.
    pub start_ns: Nanos,
    /// When it ended.
    pub end_ns: Nanos,
    /// Where the paths that were asked for are.
    #[serde(default)]
    pub places: Vec<DiskPlace>,
    /// The devices, in the order of their numbers, with all that is below them.
    pub devices: Vec<WatchedDevice>,
    /// What DRBD said meanwhile; absent = no device of it was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<Replication>,
    /// Processes that read or wrote, most first.
    #[serde(default)]
    pub users: Vec<DiskUser>,
    /// Processes whose counters only root or their user may read.
    #[serde(default)]
    pub unreadable_users: u64,
    /// What sampling was like.
    pub sampling: DiskSampling,
    /// Remarks on how it went.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

impl DiskWatch {
    /// Names of what stands below a device at any depth, each once; also of devices that were not watched.
    pub fn below<'a>(&'a self, device: &'a BlockDevice) -> Vec<&'a PlainText> {
        let mut open: Vec<&PlainText> = device.below.iter().collect();
        let mut names: Vec<&PlainText> = Vec::new();
        while let Some(name) = open.pop() {
            if !names.contains(&name) {
                names.push(name);
                let below = self.device(name);
                open.extend(below.into_iter().flat_map(|one| &one.device.below));
            }
        }
        names
    }

    /// The watched device of this name.
    pub fn device(&self, name: &str) -> Option<&WatchedDevice> {
        let mut all = self.devices.iter();
        all.find(|one| one.device.name == *name)
    }
}

/// What to watch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskPlan {
    /// Files, folders and devices, as asked for; empty = all devices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PlainText>,
    /// How long; absent = until stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<Nanos>,
    /// Between two samples.
    pub interval_ns: Nanos,
}

/// Where a path is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskPlace {
    /// As asked for.
    pub path: PlainText,
    /// On what.
    pub on: DiskPlaceKind,
}

/// What a path is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum DiskPlaceKind {
    /// It is a block device.
    Device {
        /// The kernel's name.
        name: PlainText,
    },
    /// On a file system.
    FileSystem {
        /// `ext4`, `xfs`, `nfs4` …
        kind: PlainText,
        /// Where that is mounted.
        mounted_on: PlainText,
        /// What was mounted: a device, `server:/export`, a name.
        source: PlainText,
        /// Kernel names of the block devices that hold it; empty = none of this host does: NFS, FUSE, tmpfs, overlay, ZFS.
        devices: Vec<PlainText>,
    },
}

/// A device and what it did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchedDevice {
    /// The device.
    pub device: BlockDevice,
    /// [`DiskTotals`] over time, at [`Column`]s that begin with `disk`. Rows are instants since watching began.
    pub samples: Series,
    /// Devices that stand on this one and are not watched: what they do is among its counters.
    #[serde(default)]
    pub also_carries: Vec<PlainText>,
    /// Times that its counters went back: it was replaced by another one of the same name.
    #[serde(default)]
    pub replaced: u32,
    /// 1 = every sample was kept; n = memory was bounded by keeping every n-th.
    pub thinned: u32,
}

/// What a process read and wrote while devices were watched (`/proc/PID/io`), on file systems of any kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUser {
    /// Its number.
    pub pid: u32,
    /// `comm` of the process, at most 15 bytes.
    pub name: PlainText,
    /// What it had fetched from storage, bytes.
    pub read_bytes: u64,
    /// What it caused to be sent to storage, bytes; counted when the page becomes dirty.
    pub written_bytes: u64,
    /// Of that, what was truncated away before it was sent, bytes.
    pub cancelled_bytes: u64,
}

/// What sampling was like and what it cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskSampling {
    /// Times that the counters were read.
    pub readings: u64,
    /// Samples that fell out because the one before took too long.
    pub missed: u64,
    /// CPU time of the thread that sampled, ns.
    pub cpu_ns: u64,
}

/// What a device did since watching began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskTotals {
    /// Reads.
    pub read: RequestTotals,
    /// Writes.
    pub write: RequestTotals,
    /// Discards; absent where the kernel does not count them.
    pub discard: Option<RequestTotals>,
    /// Flushes and their time, ms; absent where the kernel does not count them.
    pub flush: Option<(u64, u64)>,
    /// Requests under way at this instant.
    pub in_flight: u64,
    /// Time with at least one request under way, ms.
    pub busy_ms: u64,
    /// Time of all requests, summed, ms.
    pub weighted_ms: u64,
}

/// Requests of one kind since watching began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestTotals {
    /// Requests that ended.
    pub ios: u64,
    /// Requests that joined another one.
    pub merges: u64,
    /// What they moved, bytes.
    pub bytes: u64,
    /// Time that they took, summed, ms.
    pub ms: u64,
}

impl RequestTotals {
    /// `None` where a counter went back.
    fn plus(self, before: RequestCounters, now: RequestCounters) -> Option<Self> {
        let sectors = now.sectors.checked_sub(before.sectors)?;
        Some(Self {
            ios: self.ios.saturating_add(now.ios.checked_sub(before.ios)?),
            merges: self
                .merges
                .saturating_add(now.merges.checked_sub(before.merges)?),
            bytes: self.bytes.saturating_add(sectors.saturating_mul(SECTOR)),
            ms: self
                .ms
                .saturating_add(u64::from(now.ms.wrapping_sub(before.ms))),
        })
    }
}

impl DiskTotals {
    /// The sums after another reading; `None` where the counters went back, which they do where the device is another one.
    pub fn plus(self, before: &DiskCounters, now: &DiskCounters) -> Option<Self> {
        let wrapped = |total: u64, before: u32, now: u32| {
            total.saturating_add(u64::from(now.wrapping_sub(before)))
        };
        let discard = match (before.discard, now.discard) {
            (Some(before), Some(now)) => Some(self.discard.unwrap_or_default().plus(before, now)?),
            _ => None,
        };
        let flush = match (before.flush, now.flush) {
            (Some((before, before_ms)), Some((now, now_ms))) => {
                let (count, ms) = self.flush.unwrap_or_default();
                let count = count.saturating_add(now.checked_sub(before)?);
                Some((count, wrapped(ms, before_ms, now_ms)))
            }
            _ => None,
        };
        Some(Self {
            read: self.read.plus(before.read, now.read)?,
            write: self.write.plus(before.write, now.write)?,
            discard,
            flush,
            in_flight: u64::try_from(now.in_flight).unwrap_or(0),
            busy_ms: wrapped(self.busy_ms, before.busy_ms, now.busy_ms),
            weighted_ms: wrapped(self.weighted_ms, before.weighted_ms, now.weighted_ms),
        })
    }

    /// Requests of all kinds that ended.
    pub fn done(&self) -> u64 {
        let discards = self.discard.map_or(0, |discard| discard.ios);
        let flushes = self.flush.map_or(0, |(count, _)| count);
        [self.read.ios, self.write.ios, discards, flushes]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// A value for each of [`DiskTotals::COLUMNS`]; absent where the kernel does not count it.
    pub fn cells(&self) -> [Option<u64>; Self::COLUMNS.len()] {
        let discard = |value: fn(RequestTotals) -> u64| self.discard.map(value);
        [
            Some(self.read.ios),
            Some(self.read.merges),
            Some(self.read.bytes),
            Some(self.read.ms),
            Some(self.write.ios),
            Some(self.write.merges),
            Some(self.write.bytes),
            Some(self.write.ms),
            discard(|one| one.ios),
            discard(|one| one.bytes),
            discard(|one| one.ms),
            self.flush.map(|(count, _)| count),
            self.flush.map(|(_, ms)| ms),
            Some(self.in_flight),
            Some(self.busy_ms),
            Some(self.weighted_ms),
        ]
    }

    /// Where [`DiskTotals::cells`] are kept.
    pub const COLUMNS: [Column; 16] = [
        Column::disk_reads,
        Column::disk_reads_merged,
        Column::disk_read_bytes,
        Column::disk_read_ms,
        Column::disk_writes,
        Column::disk_writes_merged,
        Column::disk_written_bytes,
        Column::disk_write_ms,
        Column::disk_discards,
        Column::disk_discarded_bytes,
        Column::disk_discard_ms,
        Column::disk_flushes,
        Column::disk_flush_ms,
        Column::disk_in_flight,
        Column::disk_busy_ms,
        Column::disk_weighted_ms,
    ];

    /// The rows of a device's samples; none where a column that every kernel counts is not there.
    pub fn rows(samples: &Series) -> Vec<Self> {
        let columns = Self::COLUMNS.map(|column| samples.column(column));
        let row = |row: usize| {
            let cells = columns.map(|column| column?.get(row).copied());
            Self::from_cells(cells)
        };
        (0..samples.len()).map_while(row).collect()
    }

    /// The opposite of [`DiskTotals::cells`], which leave out merged discards.
    fn from_cells(cells: [Option<u64>; Self::COLUMNS.len()]) -> Option<Self> {
        let [reads, read_merges, read, read_ms, ..] = cells;
        let [_, _, _, _, writes, write_merges, written, write_ms, ..] = cells;
        let [
            ..,
            discards,
            discarded,
            discard_ms,
            flushes,
            flush_ms,
            in_flight,
            busy,
            weighted,
        ] = cells;
        let requests = |ios, merges, bytes, ms| RequestTotals {
            ios,
            merges,
            bytes,
            ms,
        };
        let discard = discards.zip(discarded).zip(discard_ms);
        Some(Self {
            read: requests(reads?, read_merges?, read?, read_ms?),
            write: requests(writes?, write_merges?, written?, write_ms?),
            discard: discard.map(|((ios, bytes), ms)| requests(ios, 0, bytes, ms)),
            flush: flushes.zip(flush_ms),
            in_flight: in_flight?,
            busy_ms: busy?,
            weighted_ms: weighted?,
        })
    }
}

/// One reading, reported while devices are watched.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskReading {
    /// When the reading before was, since watching began.
    pub from_ns: Nanos,
    /// When this one was.
    pub to_ns: Nanos,
    /// How much is left; absent = until stopped.
    pub left_ns: Option<Nanos>,
    /// What each device had done then and now, in the order of [`DiskWatch::devices`]; absent where the kernel counts nothing.
    pub totals: Vec<Option<[DiskTotals; 2]>>,
    /// What processes did since the processes were looked at before; empty where they were not looked at now.
    pub users: Vec<DiskUser>,
    /// How long ago that was.
    pub users_ns: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(ios: u64, ms: u32) -> DiskCounters {
        let requests = RequestCounters {
            ios,
            merges: ios,
            sectors: ios * 8,
            ms,
        };
        DiskCounters {
            read: requests,
            write: requests,
            discard: Some(requests),
            flush: Some((ios, ms)),
            in_flight: -1,
            busy_ms: ms,
            weighted_ms: ms,
        }
    }

    #[test]
    fn times_go_on_where_the_kernel_begins_again_at_0() {
        let sums = DiskTotals::default()
            .plus(&counters(10, u32::MAX - 4), &counters(12, 5))
            .unwrap();
        assert_eq!((sums.read.ios, sums.read.bytes), (2, 8192));
        assert_eq!((sums.read.ms, sums.busy_ms), (10, 10));
        assert_eq!((sums.flush, sums.in_flight), (Some((2, 10)), 0));
    }

    #[test]
    fn counters_that_go_back_are_of_another_device() {
        let back = DiskTotals::default().plus(&counters(10, 5), &counters(9, 6));
        assert_eq!(back, None);
    }

    #[test]
    fn a_row_is_what_it_was() {
        let sums = DiskTotals::default()
            .plus(&counters(1, 1), &counters(7, 50))
            .unwrap();
        let mut series = Series::new(vec![0, 1]);
        let cells = DiskTotals::COLUMNS.iter().zip(sums.cells());
        for (column, cell) in cells {
            series.insert(*column, vec![0, cell.unwrap()]).unwrap();
        }
        let rows = DiskTotals::rows(&series);
        assert_eq!((rows.len(), rows[0].done()), (2, 0));
        let mut read = rows[1];
        if let Some(discard) = &mut read.discard {
            discard.merges = 6;
        }
        assert_eq!(read, sums);
        assert_eq!(DiskTotals::rows(&Series::new(vec![0])), []);
    }
}
