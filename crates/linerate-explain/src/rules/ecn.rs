//! `ecn`: marks of congestion, not loss, hold the congestion window.
//!
//! Network-limited without a standing queue and without loss that would explain the rate, and the receiver
//! reported at least 1 segment in 10,000 as marked (`delivered_ce`, since Linux 4.18): a router marks before its
//! queue grows, and CUBIC gives way as for a loss (RFC 3168).

use linerate_model::column::Column;
use linerate_model::finding::{Finding, Severity};

use crate::facts::case::Case;
use crate::facts::limit::Limit;
use crate::rules;
use crate::words;

/// From this share of the segments on marks hold a window as losses do (as for repeats).
const MATTERS: f64 = 1e-4;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if case.limit != Some(Limit::Network)
        || case.udp()
        || rules::repeats_held_it(case)
        || rules::path_is_full(case)
    {
        return None;
    }
    let (marked, sent) = (marked(case)?, case.path().data_segments?);
    let part = marked as f64 / sent.max(1) as f64;
    if part < MATTERS {
        return None;
    }
    let share = case.network_share()?;
    let sentence = format!(
        "Congestion marks (ECN) limited the rate {} of the time: {} of {} segments were reported as marked ({}), before a queue \
         grew; the router's marking threshold is low for this rate and round trip",
        words::percent(share),
        words::count(marked),
        words::count(sent),
        words::percent(part),
    );
    let streams = case.plan().streams.saturating_mul(4).min(128);
    case.finding("ecn", Severity::Limit, sentence)
        .share(share)
        .figures([
            case.sender_figure("segments reported as marked", Some(marked as f64)),
            case.sender_figure("segments sent", Some(sent as f64)),
            case.sender_figure("rtt mean, µs", case.path().rtt_us),
            case.sender_figure("rtt least, µs", case.path().min_rtt_us),
            case.rate_figure(),
        ])
        .next(case.again(|plan| plan.streams = streams))
        .done()
}

/// Segments that the receiver reported as marked, all streams of the direction.
fn marked(case: &Case<'_>) -> Option<u64> {
    case.sender()?
        .streams_of(case.direction.flow)
        .map(|stream| stream.samples.last(Column::delivered_ce_packets))
        .sum()
}
