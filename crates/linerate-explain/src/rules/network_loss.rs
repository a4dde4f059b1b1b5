//! `network-loss`: repeats held the congestion window down, and no queue stood that would explain them.
//!
//! Network-limited between two hosts, no standing queue, and so many segments sent again that had not arrived already
//! (else `reordering`) that the congestion control's response function gives about this rate. Where the samples decide, `policer` or `random-loss` speaks instead; this one
//! says that they do not.

use linerate_model::finding::{Finding, Severity};

use crate::facts::case::Case;
use crate::facts::loss::{self, Cause};
use crate::facts::repeats;
use crate::phrases;
use crate::words;
use crate::would_pass::{self, WouldPass};

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if !repeats::loss_explains(case) || decided(case) {
        return None;
    }
    let share = case.network_share()?;
    let path = case.path();
    let (again, all) = path.retransmits.zip(path.data_segments)?;
    let rtt = phrases::round_trips(case).unwrap_or_else(|| "RTT unknown".to_owned());
    let needless = phrases::received_twice(case);
    let may_be = match loss::several_at_a_time(case) {
        Some((several, losses)) => format!(
            "; {several} of {losses} losses after the first took several segments: a shallow queue, a policer, or \
             random loss in bursts"
        ),
        None => ": random loss, a shallow queue or a policer".to_owned(),
    };
    let sentence = format!(
        "Loss without a queue limited the rate {} of the time: {} of {} segments were retransmitted{needless} ({}; {rtt}){may_be}",
        words::percent(share),
        words::count(again),
        words::count(all),
        words::percent(case.repeated_share()?)
    );
    case.finding("network-loss", Severity::Limit, sentence)
        .share(share)
        .sender("network share of the plateau", share)
        .sender("segments retransmitted", again)
        .sender(words::RECEIVED_TWICE, case.path().received_twice)
        .sender("segments sent", all)
        .round_trips()
        .rate()
        .would_pass(would_pass::loss(case).map(|passes| WouldPass {
            sentence: format!("if the loss is random, {}", passes.sentence),
            ..passes
        }))
        .with_more_streams()
        .done()
}

/// Whether the samples tell what lost the segments.
fn decided(case: &Case<'_>) -> bool {
    matches!(loss::cause(case), Some(Cause::Policer | Cause::Chance))
}
