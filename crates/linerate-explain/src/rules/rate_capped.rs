//! `rate-capped`: the rate that was asked for was reached, so it is no measure of the path.
//!
//! At least 97 % of the rate asked for, by the sender for UDP, by what arrived for TCP.

use linerate_model::finding::{Finding, Quantity, Severity};
use linerate_model::plan::Protocol;

use crate::facts::case::Case;
use crate::facts::limit::Limit;
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if case.limit != Some(Limit::Asked) {
        return None;
    }
    let asked = case.asked()?;
    let plan = case.plan();
    let lost_any = case.datagrams_lost().is_some_and(|lost| lost > 0);
    let streams = if plan.streams > 1 {
        format!(" ({} streams together)", plan.streams)
    } else {
        String::new()
    };
    let sentence = if case.record().is_observation() {
        format!(
            "The connection is paced to {} (by the application with SO_MAX_PACING_RATE, or by the route) and reached it; \
             whether the path carries more is not known",
            words::rate(asked)
        )
    } else if plan.rate_is_default {
        format!(
            "The test reached UDP's default rate of 1 Mbit/s per stream{streams}, which says nothing about the path; \
             use -b RATE, or -b 0 for unlimited"
        )
    } else if plan.protocol == Protocol::Udp && lost_any {
        format!(
            "The sender reached the requested {}{streams}, but not all of it was received; how much the path can carry is not known",
            words::rate(asked)
        )
    } else {
        format!(
            "The test reached the requested {}{streams}; whether the path carries more was not tested",
            words::rate(asked)
        )
    };
    // After a loss the next step is not more of the same.
    let next = (!lost_any || plan.protocol != Protocol::Udp).then(|| {
        case.again(|plan| {
            plan.rate_bps = None;
            plan.rate_is_default = false;
            plan.kernel_pacing_bps = None;
        })
    });
    case.finding("rate-capped", Severity::Healthy, sentence)
        .sender(Quantity::RateAsked, asked)
        .sender(Quantity::RateSent, case.sent_bps())
        .rate()
        .next(next)
        .done()
}
