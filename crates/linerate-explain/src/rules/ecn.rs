//! `ecn`: marks of congestion, not loss, hold the congestion window.
//!
//! Network-limited without a standing queue and without loss that would explain the rate, and the receiver
//! reported at least 1 segment in 10,000 as marked (`delivered_ce`, since Linux 4.18): a router marks before its
//! queue grows, and CUBIC gives way as for a loss (RFC 3168).

use linerate_model::finding::{Finding, Severity};

use crate::facts::case::Case;
use crate::facts::marks::{self, Marks};
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let Marks { marked, sent } = marks::of(case)?;
    let part = marked as f64 / sent.max(1) as f64;
    let share = case.network_share()?;
    let sentence = format!(
        "ECN marks limited the rate {} of the time: {} of {} segments were marked ({}) before a queue grew; the \
         router's marking threshold is too low for this rate and RTT",
        words::percent(share),
        words::count(marked),
        words::count(sent),
        words::percent(part),
    );
    case.finding("ecn", Severity::Limit, sentence)
        .share(share)
        .sender("segments reported as marked", marked)
        .sender("segments sent", sent)
        .round_trips()
        .rate()
        .with_more_streams()
        .done()
}
