//! `summary-hides-ramp`: the printed average carries the beginning.

use linerate_analysis::statistics::mean;
use linerate_model::finding::{Finding, Severity};
use linerate_model::transcript::Given;
use linerate_model::units::{BitRate, Bytes, whole};

use super::digest::Digest;
use crate::draft::Draft;

/// An average this far below the plateau is worth saying.
const MATTERS: f64 = 0.05;

pub(super) fn judge(digest: &Digest<'_>, given: &Given) -> Option<Finding> {
    let plateau = digest.plateau();
    if digest.ramp == 0 {
        return None;
    }
    let (average, level) = (digest.average()?, mean(&plateau));
    let below = 1.0 - average / level;
    if below < MATTERS {
        return None;
    }
    let first: Vec<f64> = digest.rates[..digest.ramp]
        .iter()
        .map(|each| each.bps)
        .collect();
    let steps: Vec<String> = first.iter().map(|bps| digest.rate(*bps)).collect();
    let ramp = match digest.ramp {
        1 => format!("{} in the first interval", steps[0]),
        many => format!("{} in the first {many} intervals", steps.join(", then ")),
    };
    let flat = super::digest::variation(&plateau).is_some_and(|share| share < 0.02);
    let plateau_text = if flat {
        format!("a flat plateau of {}", digest.rates_between(&plateau))
    } else {
        format!("a mean of {} after it", digest.rate(level))
    };
    let mut sentence = format!(
        "The average of {} includes the ramp: {ramp}, compared with {plateau_text}; it is {:.0} % below the plateau",
        digest.rate(average),
        below * 100.0
    );
    sentence.push_str(&buffer(level, given));
    Draft::new("summary-hides-ramp", Severity::Note, sentence)
        .figure("average, bit/s", average, "sender")
        .figure("plateau, bit/s", level, "sender")
        .figure("average below the plateau, %", below * 100.0, "sender")
        .done()
}

/// What a buffer carries over a round-trip time, where both are given.
fn buffer(level: f64, given: &Given) -> String {
    let (Some(rtt), Some(size), Some(carries)) = (given.rtt, given.buffer, carried(given)) else {
        return given.rtt.map_or_else(String::new, |rtt| {
            let flying = level * rtt.as_secs_f64() / 8.0;
            format!(
                "; at {rtt} the plateau has {} in flight",
                Bytes(whole(flying))
            )
        });
    };
    let text = format!(
        "; a buffer of {size} over {rtt} carries {:.0} Mbit/s",
        carries / 1e6
    );
    if buffer_carries(level, given) {
        format!("{text}: it explains the plateau")
    } else {
        format!("{text}, not the plateau's {}", BitRate(whole(level)))
    }
}

/// What the buffer that is given carries over the round-trip time that is, bit/s.
fn carried(given: &Given) -> Option<f64> {
    let (rtt, size) = given.rtt.zip(given.buffer)?;
    Some(size.count() as f64 * 8.0 / rtt.as_secs_f64().max(1e-9))
}

/// Whether that is about this rate.
pub(super) fn buffer_carries(level: f64, given: &Given) -> bool {
    carried(given).is_some_and(|carries| (level / carries - 1.0).abs() < 0.03)
}
