//! Whether a queue stood in the path.

use linerate_analysis::losses::{Episode, Losses};
use linerate_analysis::{queue, statistics};

use crate::facts::case::Case;

/// Linux delays an acknowledgement by no less than this, µs (`TCP_DELACK_MIN`, include/net/tcp.h), and that of a lone segment
/// by little more.
const DELAYED_US: f64 = 40_000.0;
/// A queue that stands makes round trips longer as the window grows, so that both give one rate, the path's, whenever it loses:
/// rates that differ by this factor are not those of a full path. (Measured where 5 % are lost by chance: 1.5 to 3.8, in 38 of 40 tests.)
const SEVERAL_RATES: f64 = 1.5;

/// How much longer than the least the round trips were over the plateau, where that is a queue, µs.
pub(crate) fn standing_queue_us(case: &Case<'_>) -> Option<f64> {
    let (mean, least) = case.round_trips()?;
    queue::of_mean(mean, least, case.direction.ends)
        .filter(|queue_us| !delayed_acknowledgements(case, *queue_us))
}

/// Whether round trips that are longer by so much, µs, are those of windows of a few segments, whose last one is acknowledged
/// late, and no queue: where the losses came at small windows and at several rates.
pub(crate) fn delayed_acknowledgements(case: &Case<'_>, longer_us: f64) -> bool {
    let few = |losses: &Losses| {
        let windows = losses.later().iter().map(|one| one.window_packets as f64);
        statistics::median(&windows.collect::<Vec<_>>())
            .is_some_and(|window| window < queue::FEW_SEGMENTS)
    };
    longer_us < DELAYED_US
        && case.losses().is_some_and(|each| each.iter().all(few))
        && case.pooled_losses().is_some_and(at_several_rates)
}

fn at_several_rates(losses: &Losses) -> bool {
    let rates = || {
        let later = losses.later().iter();
        later.map(|episode| episode.window_packets as f64 / episode.rtt_us.max(1.0))
    };
    let (least, most) = rates().fold((f64::MAX, 0.0_f64), |(least, most), rate| {
        (least.min(rate), most.max(rate))
    });
    most >= SEVERAL_RATES * least
}

/// Whether one stood just before a loss, beyond doubt.
pub(crate) fn behind_a_queue(losses: &Losses, episode: &Episode) -> bool {
    episode.rtt_us >= queue::STANDS * losses.min_rtt_us
}
