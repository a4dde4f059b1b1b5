//! `udp-sender-short`: the sender did not send what was asked for, so the path was never asked.
//!
//! Less than 97 % of the rate asked for, by the sender's own count, of at least 20 datagrams.

use linerate_model::finding::{Finding, Quantity, Severity};
use linerate_model::units::BitRate;

use crate::facts::case::{Case, Threads, capital};
use crate::facts::limit::{CPU_FULL, REACHED};
use crate::phrases;
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if !case.udp() {
        return None;
    }
    let (asked, sent) = case.asked().zip(case.sent_bps())?;
    if sent <= 0.0 || sent >= REACHED * asked {
        return None;
    }
    if case.few_datagrams() {
        return None;
    }
    let cpu = case.cpu_share(case.direction.flow.sender());
    let sender = case.direction.flow.sender();
    let why = match cpu {
        _ if case.threads(sender).as_ref().is_some_and(Threads::waited) => format!(
            "its sending thread {}",
            phrases::computes(case, sender).unwrap_or_default()
        ),
        None => "whether its CPU limited it is not known".to_owned(),
        Some(cpu) if cpu >= CPU_FULL => format!(
            "its sending thread is on the CPU {} of the time",
            words::percent(cpu)
        ),
        Some(cpu) => format!(
            "its CPU was not the limit ({} of a core per thread): its socket, queue or interface accepted no more",
            words::percent(cpu)
        ),
    };
    let sentence = format!(
        "{} sent {} of the requested {} ({}); {why}; whether the path carries more was not tested",
        capital(&case.sending_host()),
        words::rate(sent),
        words::rate(asked),
        words::percent(sent / asked)
    );
    case.finding("udp-sender-short", Severity::Limit, sentence)
        .sender(Quantity::RateAsked, asked)
        .sender(Quantity::RateSent, sent)
        .sender("CPU share of the sending threads", cpu)
        .again(|plan| {
            let all = |rate: BitRate| rate.0 * u64::from(plan.streams);
            let all_bps = plan.rate_bps.map(all);
            plan.streams = plan.streams.saturating_mul(2).min(128);
            plan.rate_bps = all_bps.map(|all| BitRate(all / u64::from(plan.streams)));
        })
        .done()
}
