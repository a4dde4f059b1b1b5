//! How often segments overtook one another.

use crate::facts::case::Case;
use crate::facts::limit::Limit;
use crate::facts::repeats;

/// From this share of the segments on, each of which overtook another, acknowledgements out of order keep the
/// congestion window from growing (propose; 10 % were seen to hold it to a third of the path's rate).
const OFTEN: f64 = 0.01;

/// How often the sender's kernel saw reordering (`reord_seen`, since Linux 4.19) in how many segments, where that alone
/// explains a rate that neither a queue nor repeats explain: it waits longer before it takes a late segment for lost, and
/// its window does not grow meanwhile.
pub(crate) fn seen_often(case: &Case<'_>) -> Option<(u64, u64)> {
    if case.limit != Some(Limit::Network)
        || case.udp()
        || case.next_door()
        || repeats::explain(case)
        || case.full().is_some()
    {
        return None;
    }
    seen_from(case, OFTEN)
}

/// How often it was seen and how many segments were sent, where it was seen so often at least for each of them.
pub(crate) fn seen_from(case: &Case<'_>, least: f64) -> Option<(u64, u64)> {
    let seen = case.path().overtaken?;
    let sent = case.path().data_segments.filter(|sent| *sent > 0)?;
    (seen as f64 >= least * sent as f64).then_some((seen, sent))
}
