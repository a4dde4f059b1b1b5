//! The delay of datagrams in words.

use linerate_analysis::delay::{Delays, NotCompared, Spread};
use linerate_model::units::{Nanos, three_digits};

use crate::words;

/// Delays with how well they are known, or how much they vary.
pub(crate) fn delay(delays: &Delays) -> String {
    let Some(one_way) = &delays.one_way else {
        return format!(
            "varies: {} above the fastest datagram, clock drift included; the delay itself is unknown: {}",
            quantiles(&delays.variation),
            unknown(delays)
        );
    };
    let drift = one_way.drift_ppm.map(f64::abs);
    let drift = words::with(drift, |ppm| {
        format!("; the clocks drift by {} ppm, corrected", three_digits(ppm))
    });
    let exact = if one_way.raised_ns == 0 {
        "exact if both directions take equally long".to_owned()
    } else {
        let raised = Nanos(one_way.raised_ns);
        format!(
            "the directions do not take equally long: all were raised by {raised}, so that none is negative"
        )
    };
    format!(
        "{} one way ({}; {exact}){drift}",
        quantiles(&one_way.delay),
        within(one_way.uncertainty_ns)
    )
}

/// `±5.05 ms`.
pub(crate) fn within(uncertainty_ns: u64) -> String {
    format!("±{}", Nanos(uncertainty_ns))
}

fn quantiles(spread: &Spread) -> String {
    let [median, p99, p999, most] = [
        spread.median_ns,
        spread.p99_ns,
        spread.p999_ns,
        spread.most_ns,
    ]
    .map(Nanos);
    format!("median {median}, 99 % {p99}, 99.9 % {p999}, maximum {most}")
}

fn unknown(delays: &Delays) -> &'static str {
    match delays.not_compared {
        Some(NotCompared::Contradiction) => "by the pings, datagrams arrived before they were sent",
        Some(NotCompared::NoPings) | None => "this end did not compare the clocks",
    }
}
