//! `sender-cpu`: the sending threads compute all the time.
//!
//! At least 95 % of a core for each thread of the direction on average, what it waited for one included,
//! or 95 % of all the host's cores together, and no queue that stands between two hosts.

use linerate_model::finding::{Finding, Severity};

use crate::advice;
use crate::facts::case::{Case, capital};
use crate::facts::limit::Limit;
use crate::phrases;
use crate::words;

/// Threads that compute for less than this share of the time, and wait for a CPU for most of the rest, do not load the
/// machine: something keeps it from them.
const HELD_BACK: f64 = 0.5;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if case.limit != Some(Limit::SenderCpu) {
        return None;
    }
    let role = case.direction.flow.sender();
    let computes = phrases::computes(case, role)?;
    let (rate, host) = (words::rate(case.rate()?), case.sending_host());
    let computes = format!("{computes}, at {rate}");
    let (severity, sentence) = if case.without_network() {
        let text = format!(
            "Both ends are on one host, and its CPU is the limit: the sending thread {computes}; no network was measured"
        );
        (Severity::Healthy, text)
    } else if case.one_host() && case.cpu_share(role).is_some_and(|share| share < HELD_BACK) {
        let text = format!(
            "{}'s sending thread {computes}: a CPU quota or other programs limited it",
            capital(&host)
        );
        (Severity::Limit, text)
    } else if case.one_host() {
        let text = format!(
            "Both ends share one machine's CPUs, which are the limit: the sending thread {computes}"
        );
        (Severity::Healthy, text)
    } else {
        let text = format!(
            "{}'s CPU is the limit: its sending thread {computes}",
            capital(&host)
        );
        (Severity::Limit, text)
    };
    let draft = case.finding("sender-cpu", severity, sentence).figures([
        case.sender_figure("CPU share of the sending threads", case.cpu_share(role)),
        case.sender_figure(
            "share of the time that the sending threads waited for a CPU",
            phrases::run_delay(case, role),
        ),
        case.receiver_figure(
            "CPU share of the receiving threads",
            case.cpu_share(case.direction.flow.receiver()),
        ),
        case.rate_figure(),
    ]);
    advice::another_thread(case, draft, case.sender()).done()
}
