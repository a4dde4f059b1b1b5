//! `virtualisation-limit`: the end that computes all the time is a guest whose hypervisor gave its CPU to others.
//!
//! An end's CPU is the limit, and of one of its CPUs at least 10 % of the run's time was stolen (`steal` in
//! /proc/stat). What else a hypervisor does, a guest does not see: a limit on its interface looks like a policer or a
//! shaper.

use linerate_model::column::CpuTime;
use linerate_model::finding::{Finding, Severity};
use linerate_model::record::{EndRecord, Role};
use linerate_model::series::grown;

use crate::facts::case::{Case, capital};
use crate::facts::limit::Limit;
use crate::words;

/// Stolen from one CPU: less than this costs less than the run's own noise (propose).
const STOLEN: f64 = 0.10;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let flow = case.direction.flow;
    let role: Role = match case.limit? {
        Limit::SenderCpu => flow.sender(),
        Limit::ReceiverCpu => flow.receiver(),
        _ => return None,
    };
    let end = case.record().end(role)?;
    let (cpu, share) = stolen(end)?;
    if share < STOLEN {
        return None;
    }
    let host = case.host(role);
    let kind = end
        .host
        .virtualisation
        .as_deref()
        .map_or(String::new(), |kind| format!(" ({kind})"));
    let sentence = format!(
        "{}'s hypervisor{kind} gave {} of {cpu} to other tasks, and {host} ran out of CPU time: the guest is the \
         limit, not the path",
        capital(&host),
        words::percent(share),
    );
    case.finding("virtualisation-limit", Severity::Limit, sentence)
        .figure(format!("stolen share of {cpu}"), share, case.kernel(role))
        .rate()
        .again(|_| {})
        .done()
}

/// The CPU of which most was stolen, and the share of the time.
fn stolen(end: &EndRecord) -> Option<(String, f64)> {
    let at = end.counters.at_ns();
    let elapsed_ms = at.last()?.saturating_sub(*at.first()?) as f64 / 1e6;
    let cpus = end.host.cpus?;
    end.counters
        .cpus(CpuTime::Steal)
        .into_iter()
        .filter(|(cpu, _)| *cpu < cpus)
        .filter_map(|(cpu, values)| {
            let stolen = grown(values)?;
            Some((format!("CPU {cpu}"), stolen as f64 / elapsed_ms))
        })
        .filter(|_| elapsed_ms > 0.0)
        .max_by(|a, b| a.1.total_cmp(&b.1))
}
