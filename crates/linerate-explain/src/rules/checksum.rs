//! `checksum`: both ends of a transfer finished, and their counts or checksums differ.

use linerate_model::finding::{Finding, Severity};

use crate::facts::case::Case;
use crate::facts::transfer;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let found = transfer::of(case)?;
    if found.checksums_agree != Some(false) {
        return None;
    }
    let sentence = format!(
        "What was written is not what was read: {} read, {} written, and the checksums differ; do not use the files",
        found.source.bytes, found.target.bytes
    );
    case.finding("checksum", Severity::Fault, sentence).done()
}
