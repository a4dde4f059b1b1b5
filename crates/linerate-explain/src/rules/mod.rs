//! One file a rule. A rule looks at one direction and says at most one thing about it.

mod cannot_tell;
mod ledger_imbalance;
mod network_loss;
mod path_full;
mod rate_capped;
mod receive_window;
mod receiver_application;
mod receiver_cpu;
mod send_buffer;
mod sender_application;
mod sender_cpu;
mod slow_start;
mod stall;
mod udp_path_loss;
mod udp_receiver_drop;
mod udp_sender_short;
mod unstable;

use linerate_model::finding::{Finding, Severity};
use linerate_model::record::EndRecord;

use crate::case::{Case, Draft};
use crate::limit::{self, Limit};

/// A rule.
pub(crate) type Rule = fn(&Case<'_>) -> Option<Finding>;

/// All rules, each with the id of its findings. Their order decides between findings of equal rank.
pub(crate) const RULES: [(&str, Rule); 17] = [
    ("ledger-imbalance", ledger_imbalance::judge),
    ("stall", stall::judge),
    ("udp-sender-short", udp_sender_short::judge),
    ("udp-receiver-drop", udp_receiver_drop::judge),
    ("udp-path-loss", udp_path_loss::judge),
    ("sender-cpu", sender_cpu::judge),
    ("receiver-cpu", receiver_cpu::judge),
    ("receiver-application", receiver_application::judge),
    ("receive-window", receive_window::judge),
    ("send-buffer", send_buffer::judge),
    ("sender-application", sender_application::judge),
    ("network-loss", network_loss::judge),
    ("unstable", unstable::judge),
    ("rate-capped", rate_capped::judge),
    ("path-full", path_full::judge),
    ("cannot-tell", cannot_tell::judge),
    ("slow-start", slow_start::judge),
];

/// A cause that is not the first one is worth a note from this share of the time on.
const WORTH_A_NOTE: f64 = 0.20;

/// How much a cause matters: a limit where it is the first one, a note where it took a fifth of the
/// time beside another cause; nothing behind a full path, where it only bounds the queue.
fn weight(case: &Case<'_>, cause: Limit, share: f64) -> Option<Severity> {
    match case.limit {
        Some(limit) if limit == cause => Some(Severity::Limit),
        Some(Limit::ReceiveWindow | Limit::SendBuffer | Limit::Application)
            if share >= WORTH_A_NOTE && !case.one_host() =>
        {
            Some(Severity::Note)
        }
        Some(Limit::Network)
            if share >= WORTH_A_NOTE
                && !case.one_host()
                && limit::standing_queue_us(case).is_none() =>
        {
            Some(Severity::Note)
        }
        _ => None,
    }
}

/// Whether a path without a queue repeated so much that loss explains its rate.
///
/// From 1 segment in 10,000 on (propose): below, CUBIC at 10 ms still reaches gigabits.
fn loss_explains(case: &Case<'_>) -> bool {
    case.limit == Some(Limit::Network)
        && !case.udp()
        && !case.one_host()
        && limit::standing_queue_us(case).is_none()
        && case.repeated_share().is_some_and(|share| share >= 1e-4)
}

/// Whether `path-full` speaks.
fn path_is_full(case: &Case<'_>) -> bool {
    path_full::judge(case).is_some()
}

/// One more stream is one more thread, where the host has a core for it.
fn another_thread(case: &Case<'_>, draft: Draft, end: Option<&EndRecord>) -> Draft {
    let cores = end.and_then(|end| end.host.cpus).unwrap_or(0);
    let more = case.plan().streams.saturating_mul(2).min(128);
    if cores >= u32::from(more) {
        draft.next(case.again(|plan| plan.streams = more))
    } else {
        draft
    }
}

/// The three values of `tcp_rmem` or `tcp_wmem` that leave room for `bytes` of payload; half of a buffer is
/// reckoned as overhead.
fn three_values(now: Option<[u64; 3]>, bytes: u64) -> String {
    let most = bytes.saturating_mul(2);
    match now {
        Some([least, initial, _]) => format!("{least} {initial} {most}"),
        None => format!("(the first two as they are) {most}"),
    }
}

/// Whether a stall shows; asked before the limit is known, on which a stall does not depend.
pub(crate) fn stalled(case: &Case<'_>) -> bool {
    stall::judge(case).is_some()
}
