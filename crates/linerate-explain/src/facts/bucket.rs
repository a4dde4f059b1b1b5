//! Whether the sender spent the credit of a token bucket and then got its tokens only, losing what exceeded them.
//!
//! Each condition rules something else out: that far more passed before, a shallow queue in front of a line of the later
//! rate; that the rate is constant although losses go on, chance; that they take several segments, chance on many streams;
//! that no queue grew before them, a line that became slower, or that others share since.

use linerate_analysis::credit::Credit;

use crate::facts::case::Case;
use crate::facts::limit::Limit;

/// More passed before than this many times the later rate: CUBIC uses at least 0.85 of a link with a shallow queue …
const MORE: f64 = 1.2;
/// … Reno 0.75.
const MORE_RENO: f64 = 1.5;
/// Beyond that, so many round trips' worth of the later rate …
const ROUND_TRIPS: f64 = 0.2;
/// … and so many segments.
const SEGMENTS: f64 = 4.0;
/// What is delivered wanders no further (measured: 0.004 to 0.064 behind buckets, 0.09 to 0.5 by chance).
const WANDER: f64 = 0.075;
/// So many times as far is no constant rate.
const FAR: f64 = 2.0;
/// In so many of the samples with losses there are several (measured: 0.29 to 1 behind buckets, 0 to 0.04 by chance where
/// the rate happened to be constant).
const SEVERAL: f64 = 0.2;
/// A queue of no more than so many segments overflows at no loss, …
const QUEUED_SEGMENTS: f64 = 4.0;
/// … nor one that is shorter than this share of what stood before, …
const OF_THE_LONGEST: f64 = 0.5;
/// … nor a round trip within this ratio of the shortest.
const FLAT: f64 = 1.15;

/// For [`Credit::of`].
pub(crate) fn more(reno: bool) -> f64 {
    if reno { MORE_RENO } else { MORE }
}

pub(crate) fn spent<'a>(case: &'a Case<'_>) -> Option<&'a Credit> {
    if case.limit != Some(Limit::Network)
        || case.udp()
        || case.without_network()
        || case.direction.link_full
    {
        return None;
    }
    let mss = case.path().mss_bytes? as f64;
    case.credit().filter(|credit| {
        let round_trip = credit.rate_bps / 8e6 * credit.min_rtt_us;
        credit.wander <= WANDER
            && credit.several >= SEVERAL
            && credit.beyond_bytes >= (ROUND_TRIPS * round_trip).max(SEGMENTS * mss)
            && no_queue(credit, mss)
    })
}

/// Whether so many losses came that a bucket's tokens would show as a constant rate, and did not.
pub(crate) fn wavered(case: &Case<'_>) -> bool {
    case.credit()
        .is_some_and(|credit| credit.wander > FAR * WANDER)
}

fn no_queue(credit: &Credit, mss: f64) -> bool {
    let queue_us = credit.rtt_us - credit.min_rtt_us;
    let segments = queue_us * credit.rate_bps / 8e6 / mss;
    segments <= QUEUED_SEGMENTS
        || queue_us <= OF_THE_LONGEST * (credit.longest_rtt_us - credit.min_rtt_us)
        || credit.rtt_us <= FLAT * credit.min_rtt_us
}
