//! Parts of sentences that several rules use.

use linerate_model::record::Role;

use crate::facts::case::{Case, Threads};
use crate::words;

/// How the threads of an end spent the time: `computes 99 % of the time`.
pub(crate) fn computes(case: &Case<'_>, role: Role) -> Option<String> {
    Some(match case.threads(role).filter(Threads::waited) {
        Some(threads) => format!(
            "computes {} of the time and waited for a CPU {} of the time",
            words::percent(threads.computes),
            words::percent(threads.waits)
        ),
        None => format!(
            "computes {} of the time",
            words::percent(case.cpu_share(role)?)
        ),
    })
}

/// The run delay of an end's threads.
pub(crate) fn run_delay(case: &Case<'_>, role: Role) -> Option<f64> {
    case.threads(role).map(|threads| threads.waits)
}

/// How many of the repeats the receiver got twice, as a part of a sentence; empty where it got none.
pub(crate) fn received_twice(case: &Case<'_>) -> String {
    match case.needless() {
        0 => String::new(),
        needless => format!(", {} of them received twice", words::count(needless)),
    }
}

/// The round trips, mean and least, with `least` as the word for the latter; `None` where they are not known.
pub(crate) fn round_trips(case: &Case<'_>, least: &str) -> Option<String> {
    let (mean, shortest) = case.round_trips()?;
    Some(format!(
        "RTT {}, {least} {}",
        words::micros(mean),
        words::micros(shortest)
    ))
}
