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
use crate::facts::limit::{self, Limit};
use crate::facts::loss::{self, Cause};
use crate::rules;
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if rules::wavers_for_a_reason(case) || rules::slow_start::is_the_answer(case) {
        return None;
    }
    holds(case)
}

/// Whether the path carried what it can, whatever made it carry no more.
pub(crate) fn holds(case: &Case<'_>) -> Option<Finding> {
    if case.limit != Some(Limit::Network) {
        return None;
    }
    let rate = case.rate()?;
    let path = case.path();
    let sentence = sentence(case, rate)?;
    let draft = case
        .finding("path-full", Severity::Healthy, sentence)
        .figures([
            case.rate_figure(),
            case.sender_figure("rtt mean, µs", path.rtt_us),
            case.sender_figure("rtt least, µs", path.min_rtt_us),
            case.sender_figure("share of the segments sent again", case.repeated_share()),
            case.sender_figure("network share of the plateau", case.network_share()),
            case.sender_figure("slower interface, bit/s", case.link_bps()),
            case.sender_figure(
                words::CARRIED,
                case.full_in_stretches()
                    .map(|stretches| stretches.carried_bps),
            ),
        ]);
    match case.network_share() {
        Some(share) => draft.share(share).done(),
        None => draft.done(),
    }
}

fn sentence(case: &Case<'_>, rate: f64) -> Option<String> {
    let says = words::rate(rate);
    if let Some(link) = case.link_bps().filter(|_| case.direction.link_full) {
        return Some(format!(
            "The link is full: {says} of payload on an interface of {}",
            words::rate(link)
        ));
    }
    if case.udp() {
        return (case.datagrams_lost() == Some(0)).then(|| {
            format!(
                "{} was sent as fast as {} could, and nothing was lost",
                says,
                case.sending_host()
            )
        });
    }
    if let (Some(queue), Some((mean, least))) = (limit::standing_queue_us(case), case.round_trips())
    {
        let queue = format!(
            "a queue of {} stands in it (RTT {}, minimum {})",
            words::micros(queue),
            words::micros(mean),
            words::micros(least)
        );
        return Some(if let Some(stretches) = case.full_in_stretches() {
            format!(
                "The path is full at times only, or not always at one rate: it carried {} in stretches, {says} on average; {queue} \
                 on average",
                words::rate(stretches.carried_bps)
            )
        } else if unsteady(case) {
            // The mean of an unsteady run is no level that the path carries.
            format!("The path is full: {queue}")
        } else {
            format!("The path is full at {says}: {queue}")
        });
    }
    if let (Some(Cause::Queue { rtt_ratio }), Some((_, least))) =
        (loss::cause(case), case.round_trips())
        && !case.next_door()
    {
        let queue = format!(
            "it lost segments only when a queue of {} had grown in it (RTT {} then, minimum {})",
            words::micros((rtt_ratio - 1.0) * least),
            words::micros(rtt_ratio * least),
            words::micros(least)
        );
        // Between losses the path was not full: the mean is not what it carries.
        return Some(match case.full_in_stretches() {
            Some(stretches) => format!(
                "The path is full at times only: it carried {} in stretches, {says} on average; {queue}",
                words::rate(stretches.carried_bps)
            ),
            None => format!("The path is full: {queue}; {says} arrived"),
        });
    }
    if case.without_network() {
        return Some(format!(
            "Both ends are on one host, which moved {says} between them; no network was measured"
        ));
    }
    if case.next_door() && !rules::repeats_held_it(case) {
        return Some(format!(
            "Both ends are on one machine, in two network namespaces, and share its CPUs: {says} went between \
             them, without a queue and without loss that would explain it"
        ));
    }
    let bbr = case
        .sender()?
        .streams_of(case.direction.flow)
        .all(|stream| {
            stream
                .congestion
                .as_deref()
                .is_some_and(|name| name.starts_with("bbr"))
        });
    (bbr && !rules::repeats_held_it(case)).then(|| {
        format!(
            "{}'s BBR took the path for full at {says}; it keeps the queue short, so none shows",
            capital(&case.sending_host())
        )
    })
}

fn unsteady(case: &Case<'_>) -> bool {
    case.direction
        .plateau
        .is_some_and(|plateau| plateau.unsteady.is_some())
}
