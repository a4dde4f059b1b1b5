//! `ledger-imbalance`: two places disagree on the bytes.
//!
//! Any equation that does not hold. A fault, but a note where only an interface's counter broke its
//! bound (another route, a driver that counts late) and where a stock peer's count is off by less than
//! 1 % (its threads are cancelled between the write and the count).

use linerate_analysis::ledger::{Check, Counted};
use linerate_model::finding::{Finding, Severity};

use crate::facts::case::Case;
use crate::words;

/// A stock peer's count may be off by this share.
const STOCK_MAY_BE_OFF: f64 = 0.01;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let broken: Vec<&Check> = case
        .direction
        .ledger
        .checks
        .iter()
        .filter(|check| !check.holds)
        .collect();
    let worst = broken
        .iter()
        .max_by_key(|check| (check.counted != Counted::InterfaceBytes, check.difference()))?;
    let one_sided = case.sender().is_none() || case.receiver().is_none();
    let off = worst.difference() as f64 / worst.left.max(worst.right).max(1) as f64;
    let excused = worst.counted == Counted::InterfaceBytes || (one_sided && off < STOCK_MAY_BE_OFF);
    let severity = if excused {
        Severity::Note
    } else {
        Severity::Fault
    };
    let unit = if worst.counted == Counted::Datagrams {
        "datagrams"
    } else {
        "bytes"
    };
    let stream = worst
        .stream
        .map_or_else(String::new, |id| format!(" on stream {id}"));
    let others = match broken.len() {
        1 => String::new(),
        more => format!("; {} more equations do not hold", more - 1),
    };
    let [left, right] = worst.sides;
    let sentence = format!(
        "The ledger does not balance{stream}: {left} {} {unit}, {right} {} (difference {}); trust {}{others}",
        words::count(worst.left),
        words::count(worst.right),
        words::count(worst.difference()),
        worst.trust.as_deref().unwrap_or("neither")
    );
    case.finding("ledger-imbalance", severity, sentence).done()
}
