//! `receiver-cpu`: the receiving threads compute all the time.
//!
//! At least 95 % of a core for each thread of the direction on average, what it waited for one included,
//! or 95 % of all the host's cores together, and no queue that stands between two hosts.

use linerate_model::finding::{Finding, Severity};

use crate::advice;
use crate::facts::case::{Case, capital};
use crate::facts::limit::Limit;
use crate::phrases;
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if case.limit != Some(Limit::ReceiverCpu) {
        return None;
    }
    let role = case.direction.flow.receiver();
    let computes = phrases::computes(case, role)?;
    let (rate, host) = (words::rate(case.rate()?), case.receiving_host());
    let computes = format!("{computes}, at {rate}");
    let (severity, sentence) = if case.without_network() {
        let text = format!(
            "Both ends are on one host, and its CPU is the limit: the receiving thread {computes}; no network was measured"
        );
        (Severity::Healthy, text)
    } else if case.one_host() {
        let text = format!(
            "Both ends share one machine's CPUs, which are the limit: the receiving thread {computes}"
        );
        (Severity::Healthy, text)
    } else {
        let text = format!(
            "{}'s CPU is the limit: its receiving thread {computes}",
            capital(&host)
        );
        (Severity::Limit, text)
    };
    let draft = case.finding("receiver-cpu", severity, sentence).figures([
        case.receiver_figure("CPU share of the receiving threads", case.cpu_share(role)),
        case.receiver_figure(
            "share of the time that the receiving threads waited for a CPU",
            phrases::run_delay(case, role),
        ),
        case.sender_figure(
            "CPU share of the sending threads",
            case.cpu_share(case.direction.flow.sender()),
        ),
        case.rate_figure(),
    ]);
    advice::another_thread(case, draft, case.receiver()).done()
}
