//! Whether a queue stands in the path.

use linerate_analysis::losses::{Episode, Losses};

use crate::facts::case::Case;

/// A queue stands where the mean round trip is this many times the least …
pub(crate) const STANDS: f64 = 1.25;
/// … and longer by this much between two hosts, µs …
const BETWEEN_HOSTS_US: f64 = 100.0;
/// … or by this much on one host, where scheduling alone makes the round trip waver, µs.
pub(crate) const ON_ONE_HOST_US: f64 = 1000.0;

/// How much longer than the least the round trips were over the plateau, where that is a queue, µs.
pub(crate) fn standing_queue_us(case: &Case<'_>) -> Option<f64> {
    let (mean, least) = case.round_trips()?;
    let floor = queue_floor_us(case);
    (mean >= STANDS * least && mean - least >= floor).then_some(mean - least)
}

/// How much longer than the least a round trip must be for a queue, µs.
pub(crate) fn queue_floor_us(case: &Case<'_>) -> f64 {
    if case.one_host() {
        ON_ONE_HOST_US
    } else {
        BETWEEN_HOSTS_US
    }
}

/// Whether one stood just before a loss.
pub(crate) fn behind_a_queue(losses: &Losses, episode: &Episode) -> bool {
    episode.rtt_us >= STANDS * losses.min_rtt_us
}
