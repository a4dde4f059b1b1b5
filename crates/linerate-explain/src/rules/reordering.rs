//! `reordering`: segments overtook one another, and the sender took that for loss.
//!
//! Network-limited, no standing queue, at least 1 segment in 10,000 sent again (propose), and at least half
//! of those were reported as received twice (DSACK, RFC 2883; the kernel's `dsack_dups`, since 4.19): they
//! had not been lost; so many that the congestion control's response function gives about this rate. The
//! kernel must have seen it too (`reord_seen`), and no more may have come twice than were sent again: a path
//! that duplicates spoils the count. Where the kernel does not count them the rules of loss speak.

use linerate_model::finding::{Finding, Severity};
use linerate_model::plan::{DEFAULT_UDP_BLOCK, Protocol};
use linerate_model::units::BitRate;

use crate::case::Case;
use crate::command;
use crate::rules;
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if !rules::reordering_explains(case) {
        return None;
    }
    let share = case.budget()?.network;
    let path = case.path();
    let (again, all) = path.retransmits.zip(path.data_segments)?;
    let needless = case.needless();
    let place = if case.one_host() {
        "; on one machine they may wait in the queues of several CPUs"
    } else {
        "; packets of one stream take several ways, for example by a balancer by packet, bonded links or several \
         queues"
    };
    let sentence = format!(
        "Segments overtook one another and the sender took that for loss, {} of the time: {} of {} \
         segments were sent again ({}), and the receiver got {} of those twice{place}",
        words::percent(share),
        words::count(again),
        words::count(all),
        words::percent(case.repeated_share()?),
        words::count(needless),
    );
    let bits = command::round_rate(case.rate()? / f64::from(case.plan().streams.max(1)));
    case.finding("reordering", Severity::Limit, sentence)
        .share(share)
        .figures([
            case.sender_figure("network share of the plateau", Some(share)),
            case.sender_figure("segments sent again", Some(again as f64)),
            case.sender_figure(words::RECEIVED_TWICE, Some(needless as f64)),
            case.sender_figure("segments sent", Some(all as f64)),
            case.rate_figure(),
        ])
        .next(case.again(|plan| {
            // Datagrams at the same rate show each packet that overtook another.
            plan.protocol = Protocol::Udp;
            plan.congestion = None;
            plan.block_bytes = DEFAULT_UDP_BLOCK;
            plan.rate_bps = Some(BitRate(bits));
            plan.rate_is_default = false;
        }))
        .done()
}
