//! A transfer of files: which of its stages held it up.

use linerate_analysis::transfer::{Stage, Transfer};
use linerate_model::plain_text::PlainText;
use linerate_model::record::Outcome;
use linerate_model::transfer::{Cell, Medium};

use super::case::Case;
use crate::words;

/// Where disks were the slowest stage so much of the time, the one that was for longer is the limit.
const HELD_UP: f64 = 0.5;
/// A copy is serial where the disk began when the network had ended: each took this share of the time, or more.
const EACH_ALONE: f64 = 0.2;
/// Shorter files are not written past the page cache, bytes.
const WRITTEN_DIRECTLY: u64 = 1 << 20;
/// Of a source that is in the page cache by this share the disk has not been measured.
const CACHED: f64 = 0.5;

/// What held a transfer up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// Reading the source.
    Read,
    /// Writing the target.
    Write,
    /// The target's disk began to work only when everything had been handed over.
    Serial,
}

/// The transfer that the test was.
pub(crate) fn of(case: &Case<'_>) -> Option<Transfer> {
    Transfer::of(case.record())
}

/// The stage that held a transfer up; absent where it was the network, and where a stage failed.
pub(crate) fn held(transfer: &Transfer) -> Option<Held> {
    if transfer.source.error.is_some() || transfer.target.error.is_some() {
        return None;
    }
    let time = &transfer.time;
    let [source, network, target, fsync] = [
        time.source_ns,
        time.network_ns,
        time.target_ns,
        time.fsync_ns,
    ]
    .map(|part| time.share(part));
    let written = is_disk(&transfer.target);
    let read = is_disk(&transfer.source);
    if by_cache(&transfer.target) && fsync >= EACH_ALONE && source + network >= EACH_ALONE {
        Some(Held::Serial)
    } else if source + target < HELD_UP {
        None
    } else if target >= source {
        written.then_some(Held::Write)
    } else {
        read.then_some(Held::Read)
    }
}

/// Why a stage ended the transfer; absent where the user did.
pub(crate) fn failure<'a>(case: &Case<'_>, stage: &'a Stage) -> Option<&'a PlainText> {
    let failed = matches!(case.record().outcome, Outcome::Failed { .. });
    stage.error.as_ref().filter(|_| failed)
}

/// Whether a stage and not the connections explain the rate.
pub(crate) fn is_the_answer(case: &Case<'_>) -> bool {
    of(case).is_some_and(|transfer| {
        let stages = [&transfer.source, &transfer.target];
        held(&transfer).is_some() || stages.iter().any(|stage| failure(case, stage).is_some())
    })
}

const fn is_disk(stage: &Stage) -> bool {
    matches!(stage.medium, Medium::Disk(_))
}

/// Whether a disk's bytes went through the page cache, and could have gone past it.
fn by_cache(stage: &Stage) -> bool {
    let small = stage.bytes.0 < stage.files.saturating_mul(WRITTEN_DIRECTLY);
    matches!(&stage.medium, Medium::Disk(place) if !place.direct && !small)
}

/// A stage's place, as sentences name it: `/data on sdb (xfs)`.
pub(crate) fn place(stage: &Stage) -> String {
    let Medium::Disk(place) = &stage.medium else {
        return "memory".to_owned();
    };
    let on = match (&place.device, &place.file_system) {
        (Some(device), Some(kind)) => format!(" on {device} ({kind})"),
        (Some(device), None) => format!(" on {device}"),
        (None, Some(kind)) => format!(" on {kind}"),
        (None, None) => String::new(),
    };
    format!("{}{on}", place.path)
}

/// What the stages do alone, as far as it was tried: `; alone, the source is read at 3.2 Gbit/s, …`.
pub(crate) fn alone(transfer: &Transfer) -> String {
    let told = [
        (Cell::Read, "the source is read at"),
        (Cell::MemoryToMemory, "the network carries"),
        (Cell::MemoryToDisk, "the target takes"),
    ];
    let rates = told.into_iter().filter_map(|(cell, what)| {
        let rate = transfer.cell(cell)?;
        Some(format!("{what} {}", words::rate(rate)))
    });
    let rates: Vec<String> = rates.collect();
    if rates.is_empty() {
        String::new()
    } else {
        format!("; alone, {}", rates.join(", "))
    }
}

/// What files cost beside their bytes, where that is a good part of the work.
pub(crate) fn each_file(stage: &Stage) -> String {
    match (stage.opening_share, stage.opening_ns_per_file) {
        (Some(share), Some(each)) if share >= 0.2 && stage.files > 1 => format!(
            "; {} of its work was opening and closing {} files, {each} each",
            words::percent(share),
            words::count(stage.files)
        ),
        _ => String::new(),
    }
}

/// Bytes of the source that were read from the page cache, and whether that is most of it.
pub(crate) fn cached(transfer: &Transfer) -> Option<(u64, bool)> {
    let Medium::Disk(place) = &transfer.source.medium else {
        return None;
    };
    if place.direct {
        return None;
    }
    let cached = place.still_cached.or(place.cached)?.0;
    let share = cached as f64 / (transfer.source.bytes.0 as f64).max(1.0);
    Some((cached, share >= CACHED))
}
