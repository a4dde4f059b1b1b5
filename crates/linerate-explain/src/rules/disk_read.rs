//! `disk-read`: in a transfer of files, the source was the slowest stage, or it could not be read.
//!
//! First cause: half of the time or more disks were the slowest stage, and the source longer than the target.

use linerate_model::finding::{Finding, Severity};
use linerate_model::units::Nanos;

use crate::facts::case::{Case, capital};
use crate::facts::transfer::{self, Held};
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let found = transfer::of(case)?;
    let host = case.sending_host();
    let place = transfer::place(&found.source);
    if let Some(error) = transfer::failure(case, &found.source) {
        let sentence = format!(
            "{} could not go on reading {place} after {}: {error}",
            capital(&host),
            found.source.bytes
        );
        return case.finding("disk-read", Severity::Limit, sentence).done();
    }
    if transfer::held(&found) != Some(Held::Read) {
        return None;
    }
    let share = found.time.share(found.time.source_ns);
    let sentence = format!(
        "Reading limited the transfer {} of the time: {host}'s {place} gave {}{}{}",
        words::percent(share),
        words::rate(found.handed_over_bps),
        transfer::each_file(&found.source),
        transfer::alone(&found),
    );
    let each: Option<Nanos> = found.source.opening_ns_per_file;
    case.finding("disk-read", Severity::Limit, sentence)
        .sender("time that reading was the slowest stage, share", share)
        .sender(
            "time beside reading, each file, ns",
            each.map(|each| each.0),
        )
        .share(share)
        .done()
}
