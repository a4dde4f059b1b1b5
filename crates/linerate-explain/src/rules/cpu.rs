//! `sender-cpu`, `receiver-cpu`: the threads of an end compute all the time.
//!
//! At least 95 % of a core for each thread of the direction on average, what it waited for one included,
//! or 95 % of all the host's cores together, and no queue that stands between two hosts.

use linerate_model::finding::{Finding, Severity};

use crate::facts::case::{Case, capital};
use crate::facts::limit::Limit;
use crate::phrases;
use crate::words;

/// Sending threads that compute for less than this share of the time, and wait for a CPU for most of the rest, do not
/// load the machine: something keeps it from them.
const HELD_BACK: f64 = 0.5;

pub(crate) fn sender(case: &Case<'_>) -> Option<Finding> {
    judge(case, Limit::SenderCpu)
}

pub(crate) fn receiver(case: &Case<'_>) -> Option<Finding> {
    judge(case, Limit::ReceiverCpu)
}

fn judge(case: &Case<'_>, cause: Limit) -> Option<Finding> {
    if case.limit != Some(cause) {
        return None;
    }
    let (sends, receives) = (case.direction.flow.sender(), case.direction.flow.receiver());
    let sending = cause == Limit::SenderCpu;
    let (role, id, kind) = if sending {
        (sends, "sender-cpu", "sending")
    } else {
        (receives, "receiver-cpu", "receiving")
    };
    let (share, other) = (case.cpu_share(sends), case.cpu_share(receives));
    let computes = phrases::computes(case, role)?;
    let computes = format!("{kind} thread {computes}, at {}", words::rate(case.rate()?));
    let host = capital(&case.host(role));
    let held_back = sending && share.is_some_and(|share| share < HELD_BACK);
    let (severity, sentence) = if case.without_network() {
        let text = format!(
            "Both ends are on one host, and its CPU is the limit: the {computes}; no network was measured"
        );
        (Severity::Healthy, text)
    } else if case.one_host() && held_back {
        let text = format!("{host}'s {computes}: a CPU quota or other programs limited it");
        (Severity::Limit, text)
    } else if case.one_host() {
        let text =
            format!("Both ends share one machine's CPUs, which are the limit: the {computes}");
        (Severity::Healthy, text)
    } else {
        let text = format!("{host}'s CPU is the limit: its {computes}");
        (Severity::Limit, text)
    };
    let waited = format!("share of the time that the {kind} threads waited for a CPU");
    let waited_share = phrases::run_delay(case, role);
    let draft = case.finding(id, severity, sentence);
    let draft = if sending {
        draft
            .sender(SENDING, share)
            .sender(waited, waited_share)
            .receiver(RECEIVING, other)
    } else {
        draft
            .receiver(RECEIVING, other)
            .receiver(waited, waited_share)
            .sender(SENDING, share)
    };
    // One more stream is one more thread, where the host has a core for it.
    let cores = case.record().end(role).and_then(|end| end.host.cpus);
    let more = case.plan().streams.saturating_mul(2).min(128);
    let next =
        (cores.unwrap_or(0) >= u32::from(more)).then(|| case.again(|plan| plan.streams = more));
    draft.rate().next(next).done()
}

/// Names of figures: what the threads of an end used of a core.
const SENDING: &str = "CPU share of the sending threads";
const RECEIVING: &str = "CPU share of the receiving threads";
