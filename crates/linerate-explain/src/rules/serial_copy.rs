//! `serial-copy`: the network and the target's disk worked one after the other, so that their times add up.
//!
//! A fifth of the time or more went by in the fsync after the last byte, and a fifth or more in reading and sending before it:
//! the page cache took everything at the network's rate, and the disk began when that was over. A target that was written past the
//! page cache has an fsync as well, and that is the disk's own time.

use linerate_model::finding::{Finding, Severity};

use crate::facts::case::{Case, capital};
use crate::facts::transfer::{self, Held};
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let found = transfer::of(case)?;
    if transfer::held(&found) != Some(Held::Serial) {
        return None;
    }
    let whole = found.on_disk_ns?;
    let fsync = found.time.fsync_ns;
    let sentence = format!(
        "The copy was serial: {} handed everything to {}'s page cache in {}, and its disk wrote for {} more before fsync \
         returned; written directly, both work at once and it takes little longer than the slower of the two{}",
        capital(&case.sending_host()),
        case.receiving_host(),
        words::seconds(found.handed_over_ns.0),
        words::seconds(fsync.0),
        transfer::alone(&found),
    );
    let handed_over = found.time.share(found.handed_over_ns);
    let slower = fsync.max(found.handed_over_ns);
    let then = found.bytes.0 as f64 * 8e9 / slower.0.max(1) as f64;
    case.finding("serial-copy", Severity::Limit, sentence)
        .receiver("time until everything was handed over, share", handed_over)
        .receiver(
            "time of the fsync at the end, share",
            found.time.share(fsync),
        )
        .receiver(
            "rate until everything was on disk, bit/s",
            found.bytes.0 as f64 * 8e9 / whole.0.max(1) as f64,
        )
        .receiver("rate of the slower of the two, bit/s", then)
        .share(found.time.share(fsync))
        .done()
}
