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
        format!(" by {} streams together", plan.streams)
    } else {
        String::new()
    };
    let sentence = if case.record().is_observation() {
        format!(
            "The connection is paced to {} (SO_MAX_PACING_RATE of its program, or a route's) and reached that; what the \
             path can carry beyond does not show",
            words::rate(asked)
        )
    } else if plan.rate_is_default {
        format!(
            "The test asked for no more than the default of 1 Mbit/s a stream and reached it{streams}; \
             that says nothing of what the path can carry: 1 Mbit/s is the default, -b 0 is unlimited"
        )
    } else if plan.protocol == Protocol::Udp && lost_any {
        format!(
            "The {} that were asked for were sent{streams}, and not all of it arrived; what the path can carry is less, or \
             was not tried",
            words::rate(asked)
        )
    } else {
        format!(
            "The {} that were asked for were reached{streams}; what the path can carry beyond was not tried",
            words::rate(asked)
        )
    };
    let udp = plan.protocol == Protocol::Udp;
    let next = case.again(|plan| {
        plan.rate_bps = None;
        plan.rate_is_default = false;
        plan.kernel_pacing_bps = None;
    });
    let draft = case
        .finding("rate-capped", Severity::Healthy, sentence)
        .figures([
            case.sender_figure(Quantity::RateAsked, Some(asked)),
            case.sender_figure(Quantity::RateSent, case.sent_bps()),
            case.rate_figure(),
        ]);
    // After a loss the next step is not more of the same.
    if udp && lost_any {
        draft.done()
    } else {
        draft.next(next).done()
    }
}
