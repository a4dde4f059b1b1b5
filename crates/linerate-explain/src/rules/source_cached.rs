//! `source-cached`: much of what a transfer read was in the page cache, so that its rate is no disk's.

use linerate_model::finding::{Finding, Severity};
use linerate_model::units::Bytes;

use crate::draft::limit_if;
use crate::facts::case::{Case, capital};
use crate::facts::transfer;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let found = transfer::of(case)?;
    let (bytes, most) = transfer::cached(&found)?;
    if bytes == 0 {
        return None;
    }
    let sentence = format!(
        "{} read {} of {} from the page cache: the rate says little about the disk of {}",
        capital(&case.sending_host()),
        Bytes(bytes),
        found.source.bytes,
        transfer::place(&found.source),
    );
    let severity = if most {
        Severity::Fault
    } else {
        limit_if(false)
    };
    case.finding("source-cached", severity, sentence)
        .sender("bytes of the source in the page cache", bytes)
        .done()
}
