//! Whether a queue stood in the path.

use linerate_analysis::losses::{Episode, Losses};
use linerate_analysis::queue;

use crate::facts::case::Case;

/// How much longer than the least the round trips were over the plateau, where that is a queue, µs.
pub(crate) fn standing_queue_us(case: &Case<'_>) -> Option<f64> {
    let (mean, least) = case.round_trips()?;
    queue::of_mean(mean, least, case.direction.ends)
}

/// Whether one stood just before a loss, beyond doubt.
pub(crate) fn behind_a_queue(losses: &Losses, episode: &Episode) -> bool {
    episode.rtt_us >= queue::STANDS * losses.min_rtt_us
}
