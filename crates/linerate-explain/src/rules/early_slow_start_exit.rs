//! `early-slow-start-exit`: slow start ended without a loss, far below what the path carries.
//!
//! Network-limited, neither a queue nor loss explains the rate, and the sender's slow-start threshold was set
//! while nothing had been sent again and nothing marked by ECN (`HyStart` took a rising delay for a queue); the
//! congestion window has at least doubled since, so the path still had room. A path that was filled, and lost segments
//! by its queue, only after more than half of the run in congestion avoidance, and carried far more then than the mean,
//! does not speak against it.

use linerate_model::finding::{Finding, Severity};
use linerate_model::remedy::Fix;

use crate::facts::case::{Case, capital};
use crate::facts::slow_start;
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let sender = case.sender()?;
    let exit = slow_start::early(case)?;
    let since = exit.at_ns.saturating_sub(sender.start_ns.0);
    let late = case
        .first_loss_ns()
        .filter(|_| slow_start::filled_late(case));
    let until = late.map_or_else(
        || "the rest of the run".to_owned(),
        |lost| {
            let grew = words::seconds(lost.saturating_sub(exit.at_ns));
            format!("{grew}, to the first loss,")
        },
    );
    let sentence = format!(
        "{} left slow start after {} at {} segments ({} at this RTT) without a loss, because it mistook a rising \
         delay for a queue; congestion avoidance needed {until} to reach {} segments",
        capital(&case.sending_host()),
        words::seconds(since),
        words::count(exit.threshold),
        words::rate(exit.rate_bps),
        words::count(exit.largest),
    );
    let share = case.network_share()?;
    case.finding("early-slow-start-exit", Severity::Limit, sentence)
        .share(share)
        .sender("end of slow start, ns", since)
        .sender("slow-start threshold, segments", exit.threshold)
        .sender("rate at that window, bit/s", exit.rate_bps)
        .sender("largest window afterwards, segments", exit.largest)
        .sender("rtt minimum, µs", case.path().min_rtt_us)
        .rate()
        .sender_remedy(Fix::HystartOff)
        .three_times_as_long()
        .done()
}
