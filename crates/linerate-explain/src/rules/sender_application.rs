//! `sender-application`: the sending kernel had nothing to send.
//!
//! First cause: the time outside of `busy_time` is the largest share, or at least 20 % between two hosts
//! without a standing queue, and the sending threads did not
//! compute or wait for a CPU all the time (else `sender-cpu`). With a rate asked for: less was written than
//! that rate, and no stall explains it. Never on one machine. A note: at least 20 % beside another cause.

use linerate_model::finding::Finding;
use linerate_model::plan::DEFAULT_TCP_BLOCK;

use crate::facts::case::{Case, Threads, capital};
use crate::facts::limit::{self, Limit};
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let share = case.budget()?.application;
    let severity = limit::weight(case, Limit::Application, share)?;
    let share = case.application_share()?;
    let cpu = case.cpu_share(case.direction.flow.sender());
    let waited = case
        .threads(case.direction.flow.sender())
        .filter(Threads::waited)
        .map_or_else(String::new, |threads| {
            format!(
                " and waited for a CPU {} of the time",
                words::percent(threads.waits)
            )
        });
    let spent = cpu.map_or_else(String::new, |cpu| {
        format!(
            "; its threads were on the CPU only {} of the time{waited}, so something else delayed them",
            words::percent(cpu)
        )
    });
    let sentence = format!(
        "{}'s application had written nothing to send {} of the time{spent}",
        capital(&case.sending_host()),
        words::percent(share)
    );
    let small = case.plan().block_bytes.count() < 131_072;
    let next = case.again(|plan| {
        if case.record().is_observation() {
            // A test has an application of its own: the plain one tells whether the path has room.
        } else if small {
            plan.block_bytes = DEFAULT_TCP_BLOCK;
        } else {
            plan.streams = plan.streams.saturating_mul(2).min(128);
        }
    });
    case.finding("sender-application", severity, sentence)
        .share(share)
        .sender("time without data outstanding, share of the plateau", share)
        .sender("CPU share of the sending threads", cpu)
        .rate()
        .next(next)
        .done()
}
