//! `sender-cpu`: the sending threads compute all the time.
//!
//! At least 95 % of a core for each thread of the direction on average, or 95 % of all the host's cores
//! together, and no queue that stands between two hosts.

use linerate_model::finding::{Finding, Severity};

use crate::case::{Case, capital};
use crate::limit::Limit;
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if case.limit != Some(Limit::SenderCpu) {
        return None;
    }
    let share = case.cpu_share(case.direction.flow.sender())?;
    let (rate, host) = (words::rate(case.rate()?), case.sending_host());
    let waited = case
        .cpu_wait_share(case.direction.flow.sender())
        .filter(|share| *share >= 0.05);
    let waited = waited.map_or_else(String::new, |share| {
        format!(" and waits for a CPU {}", words::percent(share))
    });
    let computes = format!("{} of the time{waited}, at {rate}", words::percent(share));
    let (severity, sentence) = if case.without_network() {
        let text = format!(
            "Both ends are on one host, and its CPU is the limit: the sending thread computes {computes}; no network was measured"
        );
        (Severity::Healthy, text)
    } else if case.one_host() {
        let text = format!(
            "Both ends share one machine's CPUs, and they are the limit: the sending thread computes {computes}"
        );
        (Severity::Healthy, text)
    } else {
        let text = format!(
            "{}'s CPU is the limit: its sending thread computes {computes}",
            capital(&host)
        );
        (Severity::Limit, text)
    };
    let draft = case.finding("sender-cpu", severity, sentence).figures([
        case.sender_figure("CPU share of the sending threads", Some(share)),
        case.receiver_figure(
            "CPU share of the receiving threads",
            case.cpu_share(case.direction.flow.receiver()),
        ),
        case.rate_figure(),
    ]);
    super::another_thread(case, draft, case.sender()).done()
}
