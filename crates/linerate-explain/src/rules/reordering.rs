//! `reordering`: segments overtook one another, and the sender took that for loss.
//!
//! Network-limited, no standing queue, segments sent again, and at least half
//! of those were reported as received twice (DSACK, RFC 2883; the kernel's `dsack_dups`, since 4.19): they
//! had not been lost; so many that the congestion control's response function gives about this rate. The
//! kernel must have seen it too (`reord_seen`), and no more may have come twice than were sent again: a path
//! that duplicates spoils the count. Where the kernel does not count them the rules of loss speak.
//!
//! Or: nothing else explains the rate, and the kernel saw reordering at least once in 100 segments. A note, beside a path
//! that is full all the same, where it saw it once in 20.

use linerate_model::finding::{Finding, Severity};
use linerate_model::plan::{DEFAULT_UDP_BLOCK, Protocol};
use linerate_model::units::BitRate;

use crate::command;
use crate::facts::case::Case;
use crate::facts::{overtaking, repeats};
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if !repeats::reordering_explains(case) {
        return overtaken(case);
    }
    let share = case.network_share()?;
    let path = case.path();
    let (again, all) = path.retransmits.zip(path.data_segments)?;
    let needless = case.needless();
    let place = if case.one_host() {
        "; on one machine they may wait in the queues of several CPUs"
    } else {
        "; packets of one stream take several paths, for example through a per-packet load balancer, bonded links or \
         several queues"
    };
    let sentence = format!(
        "Reordering limited the rate {} of the time, because the sender took it for loss: {} of {} segments were \
         retransmitted ({}), and the receiver reported {} of those as duplicates (DSACK){place}",
        words::percent(share),
        words::count(again),
        words::count(all),
        words::percent(case.repeated_share()?),
        words::count(needless),
    );
    let bits = command::round_rate(case.rate()? / case.streams());
    case.finding("reordering", Severity::Limit, sentence)
        .share(share)
        .sender("network share of the plateau", share)
        .sender("segments retransmitted", again)
        .sender(words::RECEIVED_TWICE, needless)
        .sender("segments sent", all)
        .rate()
        .again(|plan| {
            // Datagrams at the same rate show each packet that overtook another.
            plan.protocol = Protocol::Udp;
            plan.congestion = None;
            plan.block_bytes = DEFAULT_UDP_BLOCK;
            plan.rate_bps = Some(BitRate(bits));
            plan.rate_is_default = false;
        })
        .done()
}

/// From this share on it is worth knowing on a path that is full all the same: another host may take it for loss.
const WORTH_KNOWING: f64 = 0.05;

/// Reordering that the sender coped with.
fn harmless(case: &Case<'_>) -> Option<Finding> {
    if case.udp() || case.next_door() || case.full().is_none() {
        return None;
    }
    let (seen, sent) = overtaking::seen_from(case, WORTH_KNOWING)?;
    let sentence = format!(
        "The kernel saw reordering {} times in {} segments; this sender tolerated it, others may take it for loss: \
         packets of one stream take several paths (a per-packet load balancer, bonded links, several queues)",
        words::count(seen),
        words::count(sent),
    );
    case.finding("reordering", Severity::Note, sentence)
        .sender("times that reordering was seen", seen)
        .sender("segments sent", sent)
        .rate()
        .done()
}

fn overtaken(case: &Case<'_>) -> Option<Finding> {
    let Some((seen, sent)) = overtaking::seen_often(case) else {
        return harmless(case);
    };
    let share = case.network_share()?;
    let sentence = format!(
        "The kernel saw reordering {} times in {} segments, which kept the congestion window small {} of the time, \
         with almost no retransmits: packets of one stream take several paths (a per-packet load balancer, bonded \
         links, several queues)",
        words::count(seen),
        words::count(sent),
        words::percent(share),
    );
    case.finding("reordering", Severity::Limit, sentence)
        .share(share)
        .sender("times that reordering was seen", seen)
        .sender("segments sent", sent)
        .sender("network share of the plateau", share)
        .rate()
        .done()
}
