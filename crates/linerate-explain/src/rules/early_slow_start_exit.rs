//! `early-slow-start-exit`: slow start ended without a loss, far below what the path carries.
//!
//! Network-limited, neither a queue nor loss explains the rate, and the sender's slow-start threshold was set
//! while nothing had been sent again and nothing marked by ECN (`HyStart` took a rising delay for a queue); the
//! congestion window has at least doubled since, so the path still had room. A path that was filled, and lost segments
//! by its queue, only after more than half of the run in congestion avoidance, and carried far more then than the mean,
//! does not speak against it.

use linerate_model::finding::{Finding, Severity};
use linerate_model::plan::End;
use linerate_model::remedy::Fix;
use linerate_model::units::Nanos;

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
        "{} left slow start after {} at {} segments ({} at this RTT) without a loss, because it took a rising delay \
         for a queue; congestion avoidance needed {until} to reach {} segments",
        capital(&case.sending_host()),
        words::seconds(since),
        words::count(exit.threshold),
        words::rate(exit.rate_bps),
        words::count(exit.largest),
    );
    let longer = (case.direction.span_ns / 1_000_000_000)
        .saturating_mul(3)
        .clamp(30, 600);
    let share = case.network_share()?;
    case.finding("early-slow-start-exit", Severity::Limit, sentence)
        .share(share)
        .figures([
            case.sender_figure("end of slow start, ns", Some(since as f64)),
            case.sender_figure(
                "slow-start threshold, segments",
                Some(exit.threshold as f64),
            ),
            case.sender_figure("rate at that window, bit/s", Some(exit.rate_bps)),
            case.sender_figure(
                "largest window afterwards, segments",
                Some(exit.largest as f64),
            ),
            case.sender_figure("rtt minimum, µs", case.path().min_rtt_us),
            case.rate_figure(),
        ])
        .remedy(case.direction.flow.sender(), Fix::HystartOff)
        .next(case.again(|plan| plan.end = End::TimeNs(Nanos::from_millis(longer * 1000))))
        .done()
}
