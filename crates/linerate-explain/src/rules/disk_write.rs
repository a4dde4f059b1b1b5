//! `disk-write`: in a transfer of files, the target was the slowest stage, or it could not be written.
//!
//! First cause: half of the time or more disks were the slowest stage, and the target, with the end of writing and fsync after the
//! last byte, longer than the source.

use linerate_model::finding::{Finding, Severity};

use crate::facts::case::{Case, capital};
use crate::facts::transfer::{self, Held};
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let found = transfer::of(case)?;
    let host = case.receiving_host();
    let place = transfer::place(&found.target);
    if let Some(error) = transfer::failure(case, &found.target) {
        let sentence = format!(
            "{} could not go on writing {place}: {error}; {} were written, {} whole",
            capital(&host),
            found.bytes,
            match found.files {
                1 => "1 file is".to_owned(),
                some => format!("{} files are", words::count(some)),
            }
        );
        return case.finding("disk-write", Severity::Limit, sentence).done();
    }
    if transfer::held(&found) != Some(Held::Write) {
        return None;
    }
    let (share, fsync) = (
        found.time.share(found.time.target_ns),
        found.time.share(found.time.fsync_ns),
    );
    let synced = if fsync >= 0.05 {
        format!(", {} of it for the fsync at the end", words::percent(fsync))
    } else {
        String::new()
    };
    let sentence = format!(
        "Writing limited the transfer {} of the time{synced}: {host}'s {place} took {}{}{}",
        words::percent(share),
        words::rate(found.on_disk_bps.unwrap_or(found.handed_over_bps)),
        transfer::each_file(&found.target),
        transfer::alone(&found),
    );
    case.finding("disk-write", Severity::Limit, sentence)
        .receiver("time that writing was the slowest stage, share", share)
        .receiver("time of the fsync at the end, share", fsync)
        .receiver(
            "time beside writing, each file, ns",
            found.target.opening_ns_per_file.map(|each| each.0),
        )
        .share(share)
        .done()
}
