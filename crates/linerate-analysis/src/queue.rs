//! Whether a queue stands in the path, by how much longer than the least a round trip is.
//!
//! A queue on average is longer than one that is looked at just before it overflows: a round trip at an instant says so
//! from a smaller ratio on, and has a larger floor, since scheduling makes single round trips waver by more.

use crate::ends::Ends;

/// A queue stands where the mean round trip is this many times the least …
pub const STANDS: f64 = 1.25;
/// … and one at an instant, such as that of a sample or just before a loss, this many times.
pub const SHOWS: f64 = 1.15;
/// Behind a queue that makes the mean round trip this many times the least, a window or a buffer bounds only the queue.
pub const BLOATED: f64 = 1.5;
/// A window of fewer segments can meet a delayed acknowledgement, which looks like a queue.
pub const FEW_SEGMENTS: f64 = 16.0;
/// Between two hosts a queue makes the mean round trip longer by this much at least, µs …
const MEAN_US: f64 = 100.0;
/// … and one at an instant by this much; scheduling makes less on a quiet machine.
const INSTANT_US: f64 = 500.0;
/// On one machine scheduling makes round trips waver by up to this, µs.
pub const ON_ONE_HOST_US: f64 = 1000.0;

/// How much longer than the least a mean round trip must be for a queue, µs.
pub fn mean_floor_us(ends: Ends) -> f64 {
    if ends.one_host() {
        ON_ONE_HOST_US
    } else {
        MEAN_US
    }
}

/// How much longer than the least a round trip at an instant must be for a queue, µs.
pub fn instant_floor_us(ends: Ends) -> f64 {
    if ends.one_host() {
        ON_ONE_HOST_US
    } else {
        INSTANT_US
    }
}

/// How much longer than the least a mean round trip is, where that is a queue, µs.
pub fn of_mean(mean_us: f64, least_us: f64, ends: Ends) -> Option<f64> {
    let queue = mean_us - least_us;
    (mean_us >= STANDS * least_us && queue >= mean_floor_us(ends)).then_some(queue)
}

/// How much longer than the least a round trip at an instant is, where that is a queue, µs.
pub fn at_instant(rtt_us: f64, least_us: f64, ends: Ends) -> Option<f64> {
    let queue = rtt_us - least_us;
    (rtt_us >= SHOWS * least_us && queue >= instant_floor_us(ends)).then_some(queue)
}

/// Whether a round trip is that of a queue deeper than what a window of so many segments would need without it.
pub fn is_bloated(rtt_us: f64, least_us: f64, segments: Option<f64>) -> bool {
    rtt_us - least_us >= ON_ONE_HOST_US
        && rtt_us >= BLOATED * least_us
        && segments.is_none_or(|segments| segments >= FEW_SEGMENTS)
}
