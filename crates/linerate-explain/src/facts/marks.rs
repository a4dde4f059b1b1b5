//! Whether marks of congestion (ECN) hold the congestion window.

use crate::facts::case::Case;
use crate::facts::limit::Limit;
use crate::facts::repeats;

/// From this share of the segments on marks hold a window as losses do (as for repeats).
const MATTERS: f64 = 1e-4;

/// Marks that explain a rate.
pub(crate) struct Marks {
    /// Segments that the receiver reported as marked.
    pub(crate) marked: u64,
    /// Segments that were sent.
    pub(crate) sent: u64,
}

/// `None` where they do not explain it.
pub(crate) fn of(case: &Case<'_>) -> Option<Marks> {
    if case.limit != Some(Limit::Network)
        || case.udp()
        || repeats::explain(case)
        || case.full().is_some()
    {
        return None;
    }
    let (marked, sent) = (case.marked()?, case.path().data_segments?);
    (marked as f64 >= MATTERS * sent.max(1) as f64).then_some(Marks { marked, sent })
}
