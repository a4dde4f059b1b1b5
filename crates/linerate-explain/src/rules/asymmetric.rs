//! `asymmetric`: of two directions measured at once one carries at least twice what the other does.
//!
//! Both limited by the network: a limit in a host is a finding of its own. Said of the slower one.

use linerate_model::finding::{Finding, Severity};
use linerate_model::record::Role;

use crate::draft::RATE;
use crate::facts::case::Case;
use crate::facts::limit::Limit;
use crate::words;

const TIMES: f64 = 2.0;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let other = case
        .evidence
        .directions
        .iter()
        .find(|other| other.flow != case.direction.flow)?;
    let other = Case::new(case.evidence, other);
    let (slow, fast) = (case.rate()?, other.rate()?);
    let network = [case, &other]
        .iter()
        .all(|case| case.limit == Some(Limit::Network) && !case.next_door());
    if !network || slow <= 0.0 || fast < TIMES * slow {
        return None;
    }
    let says = |case: &Case<'_>| {
        let way = |role: Role| case.place(role);
        format!(
            "{} to {}",
            way(case.direction.flow.sender()),
            way(case.direction.flow.receiver())
        )
    };
    let sentence = format!(
        "The directions differ: {} from {}, {} from {}",
        words::rate(slow),
        says(case),
        words::rate(fast),
        says(&other)
    );
    case.finding("asymmetric", Severity::Note, sentence)
        .rate()
        .figure(RATE, other.rate(), other.rate_place())
        .done()
}
