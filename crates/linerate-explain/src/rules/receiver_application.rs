//! `receiver-application`: the receive window was closed because the receiver did not read.
//!
//! First cause: the receive window's share is the largest and, over the plateau, at least 256 KiB
//! lay unread and at least as much as the window was open; or, whatever the shares, data lay unread for half of the time or
//! more in which its thread neither computed nor waited for a CPU. With a stock sender the receiver's own queue alone can show it.

use linerate_model::finding::{Finding, Severity};

use crate::facts::case::{Case, capital};
use crate::facts::limit::Limit;
use crate::facts::reader;
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if case.limit != Some(Limit::ReceiverApplication) {
        return None;
    }
    let unread = case.direction.unread_bytes?;
    let share = case.receive_window_share();
    let held = match (share, reader::leaves(case)) {
        (Some(share), Some(idle)) if idle > share => format!(
            ", and for at least {} of the time its thread was idle although there was data to read",
            words::percent(idle)
        ),
        (Some(share), _) => format!(
            ", so its receive window limited the sender {} of the time",
            words::percent(share)
        ),
        (None, _) => String::new(),
    };
    let sentence = format!(
        "{}'s application read too slowly: {} were unread in its socket (median){held}",
        capital(&case.receiving_host()),
        words::size(unread)
    );
    let draft = case
        .finding("receiver-application", Severity::Limit, sentence)
        .sender(
            "rwnd_limited share of the plateau",
            case.budget().map(|budget| budget.receive_window),
        )
        .receiver("unread median, bytes", unread)
        .sender("snd_wnd median, bytes", case.path().receive_window_bytes)
        .receiver(
            "CPU share of the receiving threads",
            case.cpu_share(case.direction.flow.receiver()),
        )
        .share(share);
    // Of a connection that was only watched it is the program that would have to be mended.
    if case.plan().skip_receive_copy || case.record().is_observation() {
        draft.done()
    } else {
        draft.again(|plan| plan.skip_receive_copy = true).done()
    }
}
