//! A transfer from disk to disk: its two rates, and which share of its time each stage held it up.
//!
//! The time is that of the target: from the moment that the streams were let go until its last fsync had returned. It is divided
//! by who waited at the rings, from its end on backwards. Where a stream of the target waits for room, or the end for the last
//! fsync, the target has held the transfer up since its threads last waited for a piece. Where a stream of the source waits for a
//! piece, the source has since its threads last waited for room. The rest of the time is the network's, and the work of both
//! hosts for it.

mod waits;

use linerate_model::record::{Outcome, RunRecord};
use linerate_model::transfer::{Cell, CellRun, Medium, StageRecord, StageRole};
use linerate_model::units::{Bytes, Nanos};
use serde::Serialize;

use waits::Waits;

/// A transfer's figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Transfer {
    /// Where the files were read.
    pub source: Stage,
    /// Where they were written.
    pub target: Stage,
    /// Files that arrived whole.
    pub files: u64,
    /// Bytes of files that were written.
    pub bytes: Bytes,
    /// From the beginning until the last byte was handed to the target's kernel.
    pub handed_over_ns: Nanos,
    /// [`Transfer::bytes`] over that, bit/s.
    pub handed_over_bps: f64,
    /// From the beginning until the last fsync had returned; absent where none did, or none was needed.
    pub on_disk_ns: Option<Nanos>,
    /// [`Transfer::bytes`] over that, bit/s.
    pub on_disk_bps: Option<f64>,
    /// Both ends counted the same bytes and checksum; absent where one of them did not finish.
    pub checksums_agree: Option<bool>,
    /// Who held it up, and for how long.
    pub time: StageTimes,
    /// What the stages do alone.
    pub cells: Vec<CellFigures>,
}

/// One end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// Where its bytes are.
    pub medium: Medium,
    /// Files that were read, or written whole.
    pub files: u64,
    /// Entries that were left out: links, sockets, devices.
    pub left_out: u64,
    /// Files that changed while they were read.
    pub changed: u64,
    /// Bytes that were read or written.
    pub bytes: Bytes,
    /// The share of its threads' time at work that opening and closing files took, 0 to 1; absent where they did not work.
    pub opening_share: Option<f64>,
    /// What a file costs beside its bytes: the time of all threads in opening and closing, for each file.
    pub opening_ns_per_file: Option<Nanos>,
    /// Why it ended early.
    pub error: Option<linerate_model::plain_text::PlainText>,
}

/// A transfer's time, divided; the parts add up to [`StageTimes::whole_ns`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct StageTimes {
    /// All of it.
    pub whole_ns: Nanos,
    /// The source was the slowest.
    pub source_ns: Nanos,
    /// The streams were: both disks waited for them.
    pub network_ns: Nanos,
    /// The target was, or the end waited for it.
    pub target_ns: Nanos,
    /// Of [`StageTimes::target_ns`], after the last byte had been handed over: fsync.
    pub fsync_ns: Nanos,
}

/// A cell's rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CellFigures {
    /// Which.
    pub cell: Cell,
    /// Its rate, to the end of its last fsync where it has one, bit/s; absent where it failed.
    pub rate_bps: Option<f64>,
}

impl StageTimes {
    /// A part's share of the whole, 0 to 1.
    pub fn share(&self, part: Nanos) -> f64 {
        part.0 as f64 / (self.whole_ns.0 as f64).max(1.0)
    }
}

impl Transfer {
    /// The figures of a record that is a transfer's and has both ends.
    pub fn of(record: &RunRecord) -> Option<Self> {
        let ends = || [&record.client, &record.server].into_iter().flatten();
        let stage = |role| {
            let mut ends = ends().filter_map(|end| Some((end, end.stage.as_ref()?)));
            ends.find(|(_, stage)| stage.role == role)
        };
        let (_, source) = stage(StageRole::Source)?;
        let (end, target) = stage(StageRole::Target)?;
        let last_byte = end.streams.iter().filter_map(|one| one.last_byte_ns).max();
        let last_byte = last_byte.unwrap_or(end.start_ns);
        let time = times(source, target, end.start_ns, last_byte);
        let handed_over = target.handed_over.since(end.start_ns);
        let on_disk = target.on_disk.map(|at| at.since(end.start_ns));
        let rate = |time: Nanos| target.bytes.0 as f64 * 8e9 / (time.0 as f64).max(1.0);
        // What the user stopped has not sent all that it read.
        let ended = record.outcome == Outcome::Completed;
        let complete = ended && source.error.is_none() && target.error.is_none();
        Some(Self {
            source: Stage::of(source),
            target: Stage::of(target),
            files: target.files,
            bytes: target.bytes,
            handed_over_ns: handed_over,
            handed_over_bps: rate(handed_over),
            on_disk_ns: on_disk,
            on_disk_bps: on_disk.map(rate),
            checksums_agree: complete
                .then(|| source.bytes == target.bytes && source.checksum == target.checksum),
            time,
            cells: record.cells.iter().map(CellFigures::of).collect(),
        })
    }

    /// The rate of a cell, bit/s, where it was run and came to its end.
    pub fn cell(&self, which: Cell) -> Option<f64> {
        let found = self.cells.iter().find(|one| one.cell == which);
        found.and_then(|one| one.rate_bps)
    }
}

impl Stage {
    fn of(stage: &StageRecord) -> Self {
        let work = stage.moving.0.saturating_add(stage.opening.0);
        let is_disk = matches!(stage.medium, Medium::Disk(_));
        Self {
            medium: stage.medium.clone(),
            files: stage.files,
            left_out: stage.left_out,
            changed: stage.changed,
            bytes: stage.bytes,
            opening_share: (is_disk && work > 0).then(|| stage.opening.0 as f64 / work as f64),
            opening_ns_per_file: (is_disk && stage.files > 0)
                .then(|| Nanos(stage.opening.0 / stage.files)),
            error: stage.error.clone(),
        }
    }
}

impl CellFigures {
    fn of(run: &CellRun) -> Self {
        let ended = run.outcome == Outcome::Completed;
        Self {
            cell: run.cell,
            rate_bps: run.rate().filter(|_| ended),
        }
    }
}

/// A run of a cell, as a record keeps it.
pub fn cell_run(cell: Cell, record: &RunRecord) -> CellRun {
    let figures = Transfer::of(record);
    let figures = figures.as_ref();
    CellRun {
        cell,
        outcome: record.outcome.clone(),
        bytes: figures.map_or(Bytes(0), |figures| figures.bytes),
        time: figures.map_or(Nanos::ZERO, |figures| {
            figures.on_disk_ns.unwrap_or(figures.handed_over_ns)
        }),
    }
}

/// Divides the time between `start` and the end; all instants are of the target's clock.
fn times(source: &StageRecord, target: &StageRecord, start: Nanos, last_byte: Nanos) -> StageTimes {
    let end = target.on_disk.unwrap_or(target.handed_over).max(last_byte);
    let whole = end.since(start);
    // Each part takes of what the parts before it have left.
    let mut left = whole;
    let mut take = |part: Nanos| {
        let part = part.min(left);
        left = left.since(part);
        part
    };
    let tail = take(end.since(last_byte));
    let written = Waits::of(&target.ring, target.began.max(start), last_byte);
    // The end waits for the target, which has not waited for a piece since.
    let target_part = take(written.for_room.plus(written.open));
    let ring = &source.ring;
    let rings_time = ring.empty.plus(ring.full).plus(ring.between);
    let read = Waits::of(ring, source.began, source.began.plus(rings_time));
    let source_part = take(read.for_pieces);
    StageTimes {
        whole_ns: whole,
        source_ns: source_part,
        network_ns: left,
        target_ns: tail.plus(target_part),
        fsync_ns: end.since(target.handed_over).min(tail),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::transfer::{RingRecord, RingSample};
    use linerate_testing::fixture;

    use super::*;

    fn stage(role: StageRole, empty: u64, full: u64) -> StageRecord {
        StageRecord {
            on_disk: Some(Nanos(1100)),
            ring: RingRecord {
                empty: Nanos(empty),
                full: Nanos(full),
                ..RingRecord::default()
            },
            ..fixture::stage(role)
        }
    }

    fn divided(source: (u64, u64), target: (u64, u64), last_byte: u64) -> StageTimes {
        let source = stage(StageRole::Source, source.0, source.1);
        let target = stage(StageRole::Target, target.0, target.1);
        let times = times(&source, &target, Nanos(100), Nanos(last_byte));
        let parts = [times.source_ns, times.network_ns, times.target_ns];
        assert_eq!(
            parts.iter().map(|part| part.0).sum::<u64>(),
            times.whole_ns.0
        );
        times
    }

    #[test]
    fn the_stage_that_the_others_wait_for_has_the_time() {
        let times = divided((850, 10), (880, 0), 990);
        assert_eq!((times.source_ns, times.network_ns), (Nanos(850), Nanos(40)));
        assert_eq!((times.target_ns, times.fsync_ns), (Nanos(110), Nanos(100)));
        // What the ring holds has not to be full for the network to be slow.
        let times = divided((10, 0), (880, 0), 990);
        assert_eq!((times.source_ns, times.network_ns), (Nanos(10), Nanos(880)));
        // A full target holds the source's ring full as well.
        let times = divided((10, 860), (5, 830), 990);
        assert_eq!((times.target_ns, times.network_ns), (Nanos(995), Nanos(0)));
    }

    #[test]
    fn what_a_ring_takes_in_for_a_while_hides_no_stage() {
        let sample = |at, empty, full| RingSample {
            at: Nanos(at),
            empty: Nanos(empty),
            full: Nanos(full),
            ..RingSample::default()
        };
        // The target is the slower one from the second reading on; its ring is full for the last three tenths.
        let mut target = stage(StageRole::Target, 20, 300);
        target.ring.samples = vec![sample(200, 20, 0), sample(700, 20, 0)];
        let mut source = stage(StageRole::Source, 10, 0);
        source.ring.between = Nanos(880);
        source.ring.samples = vec![sample(200, 10, 0), sample(700, 10, 0)];
        let times = super::times(&source, &target, Nanos(100), Nanos(1000));
        assert_eq!(times.source_ns, Nanos(100));
        assert_eq!(times.target_ns, Nanos(900));
        // Pieces that take as long to send as half of the time that the next one takes to be read.
        let mut source = stage(StageRole::Source, 440, 0);
        source.ring.between = Nanos(450);
        source.ring.samples = (2..=9)
            .map(|tenth| sample(tenth * 100, tenth * 50 - 50, 0))
            .collect();
        let target = stage(StageRole::Target, 890, 0);
        let times = super::times(&source, &target, Nanos(100), Nanos(990));
        assert_eq!(times.source_ns, Nanos(890));
    }

    #[test]
    fn what_was_handed_over_at_once_waits_for_fsync() {
        let times = divided((0, 100), (90, 0), 200);
        assert_eq!(
            (times.target_ns, times.network_ns),
            (Nanos(900), Nanos(100))
        );
        assert_eq!(times.fsync_ns, Nanos(100));
    }

    #[test]
    fn no_part_is_longer_than_the_whole() {
        let times = divided((5000, 5000), (5000, 5000), 990);
        assert_eq!((times.source_ns, times.target_ns), (Nanos(445), Nanos(555)));
    }
}
