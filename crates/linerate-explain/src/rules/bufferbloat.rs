//! `bufferbloat`: the queue of a full path is so long that everything else on it waits.
//!
//! Beside `path-full`: the mean round trip over the plateau is at least 100 ms longer than the least one and at
//! least three times as long (propose). A queue of one bandwidth-delay product, with which CUBIC is usually
//! run, at most doubles the round trip.

use linerate_model::finding::{Finding, Severity};
use linerate_model::remedy::Fix;
use linerate_model::units::BitRate;

use crate::command;
use crate::facts::case::Case;
use crate::facts::loss;
use crate::words;

/// Speech suffers from this on (ITU-T G.114: 150 ms from mouth to ear), µs.
const LONG_US: f64 = 100_000.0;
/// Times the least round trip.
const MANY_TIMES: f64 = 3.0;
/// A sender paced at this share of the path's rate leaves its queue empty.
const PACED: f64 = 0.95;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if case.udp() || case.full().is_none() {
        return None;
    }
    let queue = loss::standing_queue_us(case).filter(|queue| *queue >= LONG_US)?;
    let (mean, least) = case.round_trips()?;
    if mean < MANY_TIMES * least {
        return None;
    }
    let per_minute = 60e6 / mean;
    let sentence = format!(
        "The queue at the bottleneck delays everything that passes it by {} (RTT {}, {:.0} times the minimum, {} \
         round trips per minute); use fq_codel or CAKE there to keep it short",
        words::micros(queue),
        words::micros(mean),
        mean / least,
        words::count(words::whole(per_minute)),
    );
    let each = case.rate()? / case.streams();
    let paced = command::round_rate(PACED * each);
    case.finding("bufferbloat", Severity::Note, sentence)
        .sender("queue, µs", queue)
        .sender("rtt mean, µs", mean)
        .sender("rtt minimum, µs", least)
        .sender("round trips per minute under load", per_minute)
        .rate()
        .sender_remedy(Fix::Pacing(BitRate(paced)))
        .expected(
            paced as f64 * case.streams(),
            0.05,
            "the pacing, with the queue empty",
        )
        .again(|plan| plan.kernel_pacing_bps = Some(BitRate(paced)))
        .done()
}
