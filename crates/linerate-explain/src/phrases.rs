//! Parts of sentences that several rules use.

use linerate_model::record::Role;

use crate::facts::case::{Case, Threads};
use crate::words;

/// How the threads of an end spent the time: `is on the CPU 99 % of the time`.
pub(crate) fn computes(case: &Case<'_>, role: Role) -> Option<String> {
    Some(match case.threads(role).filter(Threads::waited) {
        Some(threads) => format!(
            "is on the CPU {} of the time and waits for a CPU {} of the time",
            words::percent(threads.computes),
            words::percent(threads.waits)
        ),
        None => format!(
            "is on the CPU {} of the time",
            words::percent(case.cpu_share(role)?)
        ),
    })
}

/// The run delay of an end's threads.
pub(crate) fn run_delay(case: &Case<'_>, role: Role) -> Option<f64> {
    case.threads(role).map(|threads| threads.waits)
}

/// How many of the retransmits were duplicates, as a part of a sentence; empty where none was.
pub(crate) fn received_twice(case: &Case<'_>) -> String {
    match case.needless() {
        0 => String::new(),
        needless => format!(", {} of them duplicates (DSACK)", words::count(needless)),
    }
}

/// The round trips, mean and minimum; `None` where they are not known.
pub(crate) fn round_trips(case: &Case<'_>) -> Option<String> {
    let (mean, shortest) = case.round_trips()?;
    Some(format!(
        "RTT {}, minimum {}",
        words::micros(mean),
        words::micros(shortest)
    ))
}
