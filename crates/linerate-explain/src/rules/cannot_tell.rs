//! `cannot-tell`: the record does not say why, with the reason and what would decide it.

use linerate_analysis::statistics::Unsteady;
use linerate_model::finding::{Finding, Quantity, Severity};
use linerate_model::plan::Protocol;
use linerate_model::record::{EndRecord, Outcome};

use crate::facts::case::Case;
use crate::facts::limit::Limit;
use crate::facts::{loss, repeats};
use crate::phrases;
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if case.direction.bytes == 0 {
        let why = match &case.record().outcome {
            Outcome::Failed { error } => format!(": {error}"),
            _ => String::new(),
        };
        let (severity, sentence) = match delivered(case) {
            0 => (Severity::Fault, format!("Nothing was measured{why}")),
            bytes => (
                Severity::Note,
                format!(
                    "Only {} arrived in the measured time, too little to compute a rate{why}",
                    words::size(bytes as f64)
                ),
            ),
        };
        return case.finding("cannot-tell", severity, sentence).done();
    }
    match case.limit {
        None if case.udp() => too_few(case),
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
    let mut reason = match &case.direction.clocks {
        Err(reason) => reason.clone(),
        Ok(_) => return paced(case),
    };
    let linerate = case.record().control.peer_software.is_some();
    if too_short && case.sender().is_some() {
        Unsteady::TooShort.reason().clone_into(&mut reason);
    }
    let draft = case.finding(
        "cannot-tell",
        Severity::Note,
        format!("Limit unknown: {reason}"),
    );
    if case.record().is_observation() {
        // What to do stands in the reason: the connection cannot be run again.
        return draft.done();
    }
    let is_iperf2 = case.record().control.iperf2.is_some();
    let host = |host: &str| {
        if is_iperf2 {
            // The client, most often.
            format!("linerate test # on {host}, instead of iperf")
        } else {
            format!("linerate serve # on {host}, instead of iperf3")
        }
    };
    match case.sender() {
        None if linerate => draft.again(|_| {}).done(),
        None => draft.next(host(&case.sending_host())).done(),
        Some(_) if too_short => draft.for_seconds(10).done(),
        Some(_) => draft.done(),
    }
}

/// What arrived, by any of the places that count it, bytes. The kernels' counts hold cookie, SYN and FIN too.
fn delivered(case: &Case<'_>) -> u64 {
    let total = &case.direction.ledger.total;
    let around = total
        .cookie
        .saturating_add(2 * u64::from(case.plan().streams));
    let kernel = total.bytes_received.max(total.bytes_acked).unwrap_or(0);
    let flow = case.direction.flow;
    let told = |end: &EndRecord| {
        let results = case.record().peer_results.as_ref()?;
        let ids = end.streams_of(flow).map(|stream| stream.id);
        let bytes = ids.filter_map(|id| results.streams.iter().find(|told| told.id == id));
        Some(bytes.map(|told| told.bytes).sum())
    };
    let peer = match (case.sender(), case.receiver()) {
        (Some(end), None) => told(end).unwrap_or(0),
        _ => 0,
    };
    let datagrams = total
        .datagrams
        .as_ref()
        .and_then(|counts| counts.delivered)
        .unwrap_or(0)
        .saturating_mul(case.plan().block_bytes.count());
    kernel
        .saturating_sub(around)
        .max(total.read.unwrap_or(0))
        .max(peer)
        .max(datagrams)
}

/// A rate that was asked for, was written, and did not all arrive in time.
fn paced(case: &Case<'_>) -> Option<Finding> {
    let (asked, rate) = case.asked().zip(case.rate())?;
    if case.stall().is_some() {
        return None;
    }
    let sent = case.sent_bps().map_or_else(String::new, |sent| {
        format!(" {} wrote {}, and", case.sending_host(), words::rate(sent))
    });
    let sentence = format!(
        "Of the requested {},{sent} {} arrived; the difference may be due to pacing",
        words::rate(asked),
        words::rate(rate)
    );
    case.finding("cannot-tell", Severity::Note, sentence)
        .sender(Quantity::RateAsked, asked)
        .sender(Quantity::RateSent, case.sent_bps())
        .rate()
        .done()
}

/// So few datagrams that neither a reached rate nor a missed one shows.
fn too_few(case: &Case<'_>) -> Option<Finding> {
    let sent = case.direction.ledger.total.datagrams.as_ref()?.sent?;
    if !case.few_datagrams() {
        // `udp-sender-short` tells.
        return None;
    }
    let sentence = format!(
        "{} datagrams are too few to tell whether the test reached the requested rate",
        words::count(sent)
    );
    case.finding("cannot-tell", Severity::Note, sentence).done()
}

/// Network-limited, and neither a queue nor loss nor a CPU shows.
fn unexplained(case: &Case<'_>) -> Option<Finding> {
    if repeats::explain(case) || case.full().is_some() {
        return None;
    }
    if case.plan().protocol == Protocol::Udp {
        // What was lost is said by its own rule.
        return None;
    }
    let share = case.network_share()?;
    let rtt = phrases::round_trips(case).unwrap_or_else(|| "RTT unknown".to_owned());
    let sentence = format!(
        "The congestion window limited the rate {} of the time at {}, but neither a queue ({rtt}) nor loss explains it",
        words::percent(share),
        words::rate(case.rate()?)
    );
    case.finding("cannot-tell", Severity::Note, sentence)
        .share(share)
        .sender("network share of the plateau", share)
        .round_trips()
        .sender("queue, µs", loss::standing_queue_us(case))
        .with_more_streams()
        .done()
}
