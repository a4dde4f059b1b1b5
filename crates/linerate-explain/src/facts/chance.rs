//! Whether single segments are lost by chance, or bursts overrun something, by how many losses took several segments.
//!
//! Where each segment is lost with the same odds, a loss is followed by another within the few round trips that count as
//! one loss with odds that its window tells. What overruns a queue takes several segments at a time much more often. The
//! likelihoods of both are compared, loss by loss and for each stream with its own window.

use linerate_analysis::losses::{Episode, Losses};

/// Share of the losses at a shallow queue that take several segments (measured at queues of 4 to 100 packets: the middle of
/// 0.36 to 1).
const SEVERAL_AT_A_QUEUE: f64 = 0.65;
/// The window is a little smaller while a loss is repaired.
const WHILE_REPAIRED: f64 = 0.7;
/// No odds are nearer to 0 or 1.
const SURE: f64 = 0.02;
/// Natural logarithm of the ratio of the likelihoods from which on it is chance: 1 is 2.7 to 1 (measured: 1.1 to 89 under
/// random loss of 0.02 to 2 %, four of five above 2; -153 to -0.6 at shallow queues, but for one).
const ENOUGH: f64 = 1.0;
/// 8 is 3000 to 1.
const BEYOND_DOUBT: f64 = 8.0;
/// Of all segments this share at least was sent while no loss was repaired.
const LEAST_OPEN: f64 = 0.5;

/// How much more likely the later losses are by chance than at a shallow queue, as a natural logarithm.
fn likelihood(streams: &[Losses], data_segments: u64) -> f64 {
    let all = || {
        streams
            .iter()
            .flat_map(|one| one.episodes.iter().map(move |episode| (one, episode)))
    };
    // While a loss is repaired the next one counts with it.
    let repaired: f64 = all().map(|(one, episode)| reach(one, episode)).sum();
    let segments = data_segments.max(1) as f64;
    let odds = all().count() as f64 / (segments - repaired).max(LEAST_OPEN * segments);
    streams
        .iter()
        .flat_map(|one| one.later().iter().map(move |episode| (one, episode)))
        .map(|(one, episode)| of_episode(reach(one, episode), episode, odds))
        .sum()
}

/// Segments that are sent while a loss is repaired.
fn reach(losses: &Losses, episode: &Episode) -> f64 {
    let round_trips = 1.0 + losses.apart_ns as f64 / (losses.min_rtt_us * 1e3).max(1.0);
    WHILE_REPAIRED * round_trips * episode.window_packets as f64
}

fn of_episode(reach: f64, episode: &Episode, odds: f64) -> f64 {
    let another = (1.0 - (-odds * reach).exp()).clamp(SURE, 1.0 - SURE);
    let (chance, queue) = if episode.segments > 1 {
        (another, SEVERAL_AT_A_QUEUE)
    } else {
        (1.0 - another, 1.0 - SEVERAL_AT_A_QUEUE)
    };
    (chance / queue).ln()
}

/// How sure it is that single segments were lost by chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Singles {
    /// A shallow queue may have dropped them.
    Unknown,
    /// Chance is several times as likely.
    Likely,
    /// Chance is thousands of times as likely.
    Sure,
}

/// Whether so many losses took single segments that chance is more likely.
pub(crate) fn singles(streams: &[Losses], data_segments: u64) -> Singles {
    match likelihood(streams, data_segments) {
        more if more >= BEYOND_DOUBT => Singles::Sure,
        more if more >= ENOUGH => Singles::Likely,
        _ => Singles::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream at 20 ms whose losses take so many segments each, at a window of 30.
    fn stream(segments: &[u64]) -> Losses {
        let episode = |segments: &u64| Episode {
            from_ns: 0,
            to_ns: 0,
            segments: *segments,
            rtt_us: 20_000.0,
            window_packets: 30,
            rate_bps: 0.0,
            delivered_from: 0.0,
            delivered_to: 0.0,
        };
        Losses {
            episodes: segments.iter().map(episode).collect(),
            apart_ns: 80_000_000,
            min_rtt_us: 20_000.0,
            peak_bps: 0.0,
            burst_bps: 0.0,
            half_bps: 0.0,
            after_bps: 0.0,
            level_bps: 0.0,
            sustained_bps: 0.0,
            window_height: None,
        }
    }

    #[test]
    fn single_segments_are_chance_and_several_are_not() {
        let of = |segments: &[u64]| singles(&[stream(segments)], 6000);
        assert_eq!(of(&[1, 1, 1, 2, 1, 1]), Singles::Likely);
        assert_eq!(of(&[1; 16]), Singles::Sure);
        assert_eq!(of(&[1, 2, 3, 2, 1, 4]), Singles::Unknown);
        assert_eq!(of(&[1]), Singles::Unknown);
        // Many streams of few losses each count together.
        let few = [stream(&[1, 1]), stream(&[1, 1]), stream(&[1, 1])];
        assert_eq!(singles(&few, 6000), Singles::Likely);
    }
}
