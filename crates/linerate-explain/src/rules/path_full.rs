//! `path-full`: the path carried what it can; the rate is the answer.
//!
//! Network-limited, and one of: the rate is at least 90 % of what the slower interface carries; a queue
//! stands (mean round trip at least 1.25 times the least and 0.1 ms longer; 1 ms on one host), or had grown whenever a
//! segment was lost; BBR, which
//! keeps queues short, without repeats; both ends on one machine, without a delay between them. UDP as fast as it goes: nothing lost.
//! Behind a queue, standing or grown before losses, the mean is named as the path's rate only where the path was not seen to
//! carry far more in stretches.

use linerate_model::finding::{Finding, Severity};

use crate::facts::case::{Case, capital};
use crate::facts::full::Full;
use crate::facts::slow_start;
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if slow_start::is_the_answer(case) || slow_start::filled_late(case) {
        return None;
    }
    let full = case.full()?;
    let sentence = sentence(case, full, case.rate()?);
    let carried = case.full_in_stretches().map(|one| one.carried_bps);
    case.finding("path-full", Severity::Healthy, sentence)
        .rate()
        .round_trips()
        .sender("share of the segments retransmitted", case.repeated_share())
        .sender("network share of the plateau", case.network_share())
        .sender("slower interface, bit/s", case.link_bps())
        .sender(words::CARRIED, carried)
        .share(case.network_share())
        .done()
}

fn sentence(case: &Case<'_>, full: Full, rate: f64) -> String {
    let says = words::rate(rate);
    match full {
        Full::Link(bps) => format!(
            "The link is full: {says} of payload on an interface of {}",
            words::rate(bps)
        ),
        Full::NothingLost => format!(
            "{} sent {says} as fast as it could, and nothing was lost",
            capital(&case.sending_host())
        ),
        Full::Queue {
            queue_us,
            mean_us,
            least_us,
        } => {
            let queue = format!(
                "it has a standing queue of {} (RTT {}, minimum {})",
                words::micros(queue_us),
                words::micros(mean_us),
                words::micros(least_us)
            );
            if let Some(stretches) = case.full_in_stretches() {
                format!(
                    "The path is full only at times, or its rate varies: it carried {} at times, {says} on average; \
                     {queue} on average",
                    words::rate(stretches.carried_bps)
                )
            } else if unsteady(case) {
                // The mean of an unsteady run is no level that the path carries.
                format!("The path is full: {queue}")
            } else {
                format!("The path is full at {says}: {queue}")
            }
        }
        Full::QueueAtLosses {
            queue_us,
            rtt_us,
            least_us,
        } => {
            let queue = format!(
                "segments were lost only after a queue of {} had grown (RTT then {}, minimum {})",
                words::micros(queue_us),
                words::micros(rtt_us),
                words::micros(least_us)
            );
            // Between losses the path was not full: the mean is not what it carries.
            match case.full_in_stretches() {
                Some(stretches) => format!(
                    "The path is full only at times: it carried {} at times, {says} on average; {queue}",
                    words::rate(stretches.carried_bps)
                ),
                None => format!("The path is full: {queue}; {says} arrived"),
            }
        }
        Full::OneHost => {
            format!("Both ends are on one host and reached {says}; no network was measured")
        }
        Full::NextDoor => format!(
            "Both ends are on one machine, in two network namespaces, and share its CPUs: {says} between them, with \
             neither a queue nor loss to limit it"
        ),
        Full::Bbr => format!(
            "BBR on {} found the path full at {says}; BBR keeps the queue short, so no queue shows",
            case.sending_host()
        ),
    }
}

fn unsteady(case: &Case<'_>) -> bool {
    case.direction
        .plateau
        .is_some_and(|plateau| plateau.unsteady.is_some())
}
