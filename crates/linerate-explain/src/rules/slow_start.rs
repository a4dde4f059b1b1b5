//! `slow-start`: the ramp took so much of the run that the average hides the plateau.
//!
//! The ramp is more than 15 % of the run and the whole run's rate at least 10 % below the plateau's; a
//! cut that changes nothing is no ramp. A limit where the run was over before it was steady: slow start alone took
//! more than 15 % of it, and the rate afterwards is at least 1.1 times the average; a note where a loss on a full path
//! ended it. Where slow start alone took 35 % of the run and the average is below 0.75 of the rate afterwards, it is
//! the answer, whatever ended it and however steady the rest was: `path-full` is not said of the little that is left.

use linerate_analysis::statistics;
use linerate_model::finding::Finding;
use linerate_model::remedy::Fix;
use linerate_model::units::Nanos;

use crate::draft::limit_if;
use crate::facts::case::Case;
use crate::facts::limit::Limit;
use crate::facts::slow_start;
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let direction = case.direction;
    if let Some(ramp) = slow_start::most_of_the_run(case) {
        return unfinished(case, ramp);
    }
    let ramp = direction.ramp_ns()?;
    let share = ramp as f64 / direction.span_ns.max(1) as f64;
    let plateau = direction.plateau?.estimate.mean;
    let whole = direction.whole_run_bps()?;
    if case.udp()
        || case.limit == Some(Limit::Asked)
        || share <= slow_start::LONG
        || whole >= slow_start::HIDES * plateau
    {
        return None;
    }
    let sentence = format!(
        "The ramp took {}, {} of the run: the average of the whole run ({}) hides the plateau ({})",
        words::seconds(ramp),
        words::percent(share),
        words::rate(whole),
        words::rate(plateau)
    );
    let severity = limit_if(slow_start::is_the_answer(case));
    case.finding("slow-start", severity, sentence)
        .share(share)
        .sender("ramp, ns", ramp)
        .sender("whole run, bit/s", whole)
        .rate()
        .remedy(
            direction.flow.sender(),
            Fix::Duration(Nanos::from_millis(seconds(ramp) * 1000)),
        )
        .expected(
            average_of_longer(case, plateau, whole, ramp),
            0.10,
            "the plateau, with less ramp",
        )
        .for_seconds(seconds(ramp))
        .done()
}

fn unfinished(case: &Case<'_>, ramp: u64) -> Option<Finding> {
    let share = ramp as f64 / case.direction.span_ns.max(1) as f64;
    let whole = case.direction.whole_run_bps()?;
    let after = slow_start::rates_after(case, ramp).map(statistics::mean);
    let sentence = format!(
        "Slow start took {}, {} of the run, and the run ended before the rate was steady: its average ({}) does not \
         measure the path",
        words::seconds(ramp),
        words::percent(share),
        words::rate(whole)
    );
    let by_itself = case
        .sender()?
        .streams_of(case.direction.flow)
        .any(|stream| slow_start::ended_ns(stream).is_some());
    // What a loss ended filled the path: it carries no more, only the average hides it.
    let severity = limit_if(by_itself || slow_start::is_the_answer(case));
    case.finding("slow-start", severity, sentence)
        .share(share)
        .sender("slow start, ns", ramp)
        .sender("whole run, bit/s", whole)
        .sender("after slow start, bit/s", after)
        .sender_remedy(Fix::Duration(Nanos::from_millis(seconds(ramp) * 1000)))
        .expected(
            average_of_longer(case, after.unwrap_or(0.0), whole, ramp),
            0.25,
            "the path's rate after slow start",
        )
        .for_seconds(seconds(ramp))
        .done()
}

/// Seconds of a run that is long enough for a ramp of `ramp` ns.
fn seconds(ramp: u64) -> u64 {
    (ramp / 1_000_000_000 + 1).saturating_mul(10).clamp(30, 600)
}

/// The average of that run, bit/s: what the ramp cost this run it costs once, and the rest is at `level`.
fn average_of_longer(case: &Case<'_>, level: f64, whole: f64, ramp: u64) -> f64 {
    let lost = (level - whole).max(0.0) * case.direction.span_ns as f64 / 1e9;
    level - lost / seconds(ramp) as f64
}
