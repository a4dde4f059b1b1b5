//! `cannot-tell`: the record does not say why, with the reason and what would decide it.

use linerate_model::finding::{Finding, Severity};
use linerate_model::plan::{End, Protocol};
use linerate_model::record::Outcome;
use linerate_model::statistics::Unsteady;
use linerate_model::units::Nanos;

use crate::case::Case;
use crate::limit::{self, Limit};
use crate::rules;
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if case.direction.bytes == 0 && case.direction.ledger.total.read.unwrap_or(0) == 0 {
        let why = match &case.record().outcome {
            Outcome::Failed { error } => format!(": {error}"),
            _ => String::new(),
        };
        return case
            .finding(
                "cannot-tell",
                Severity::Fault,
                format!("Nothing was measured{why}"),
            )
            .done();
    }
    match case.limit {
        None if case.udp() => None,
        None => without_budget(case),
        Some(Limit::Network) => unexplained(case),
        Some(_) => None,
    }
}

fn without_budget(case: &Case<'_>) -> Option<Finding> {
    let too_short = case
        .direction
        .plateau
        .is_none_or(|plateau| plateau.unsteady == Some(Unsteady::TooShort));
    let mut reason = match &case.direction.budget {
        Err(reason) => reason.clone(),
        Ok(_) => return None,
    };
    if too_short && case.sender().is_some() {
        Unsteady::TooShort.reason().clone_into(&mut reason);
    }
    let draft = case.finding(
        "cannot-tell",
        Severity::Note,
        format!("Why it is not faster cannot be told: {reason}"),
    );
    let host = |host: &str| format!("linerate serve # on {host}, instead of iperf3");
    match case.sender() {
        None => draft.next(host(&case.sending_host())).done(),
        Some(_) if too_short => draft
            .next(case.again(|plan| plan.end = End::TimeNs(Nanos::from_millis(10_000))))
            .done(),
        Some(_) => draft.done(),
    }
}

/// Network-limited, and neither a queue nor loss nor a CPU shows.
fn unexplained(case: &Case<'_>) -> Option<Finding> {
    if rules::loss_explains(case) || rules::path_is_full(case) {
        return None;
    }
    if case.plan().protocol == Protocol::Udp {
        // What was lost is said by its own rule.
        return None;
    }
    let share = case.budget()?.network;
    let rtt = case.round_trips().map_or_else(
        || "its round-trip times are not known".to_owned(),
        |(mean, least)| {
            format!(
                "RTT {}, least {}",
                words::micros(mean),
                words::micros(least)
            )
        },
    );
    let sentence = format!(
        "The congestion window held it {} of the time at {}, but neither a queue ({rtt}) nor loss explains it",
        words::percent(share),
        words::rate(case.rate()?)
    );
    let streams = case.plan().streams.saturating_mul(4).min(128);
    case.finding("cannot-tell", Severity::Note, sentence)
        .share(share)
        .figures([
            case.sender_figure("network share of the plateau", Some(share)),
            case.sender_figure("rtt mean, µs", case.path().rtt_us),
            case.sender_figure("rtt least, µs", case.path().min_rtt_us),
            case.sender_figure("queue, µs", limit::standing_queue_us(case)),
        ])
        .next(case.again(|plan| plan.streams = streams))
        .done()
}
