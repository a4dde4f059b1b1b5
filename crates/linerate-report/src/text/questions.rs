//! What the test was to answer: a rate that was wanted, a precision.

use linerate_analysis::judgement::{DirectionJudgement, Judgement};
use linerate_analysis::working_latency::{Responsiveness, Times, WorkingLatency};
use linerate_model::counter_test::{Diagnosis, Ended};
use linerate_model::units::Nanos;

use super::layout::{self, Page};
use super::way;
use crate::view::{DirectionPrecision, PrecisionView, RunView};
use crate::words;

/// Of a diagnosis, so many causes are told.
const MOST_CAUSES: usize = 3;

pub(super) fn write(page: &mut Page, view: &RunView) {
    for (question, answer) in answers(view) {
        page.entry(question, &answer);
    }
}

/// The questions that were asked, with their answers.
pub(crate) fn answers(view: &RunView) -> Vec<(&'static str, String)> {
    let judgement = view.expect.as_ref();
    let precision = view.precision.as_ref();
    let diagnosis = view.diagnosis.as_ref();
    let latency = view.latency.as_ref();
    let all = [
        judgement.map(|judgement| ("Expected", expected(judgement, view))),
        precision.map(|precision| ("Precision", precise(precision))),
        latency.map(|latency| ("Latency", worked(latency))),
        latency
            .filter(|latency| latency.is_measured())
            .map(|latency| ("Responsive", responsive(latency))),
        diagnosis.map(|diagnosis| ("Diagnosis", likely(diagnosis))),
    ];
    all.into_iter().flatten().collect()
}

/// `idle 1.2 ms, under load 104 ms, after it 1.4 ms (medians of …)`.
fn worked(latency: &WorkingLatency) -> String {
    let missing = latency.missing.as_ref();
    if latency.idle.message.count == 0 {
        let reason = missing.map_or("no message was answered", |reason| reason.as_str());
        return format!("not measured: {reason}");
    }
    let of = |times: &Times, time: fn(&Times) -> Option<Nanos>| {
        time(times).map_or("not known".to_owned(), |time| time.to_string())
    };
    let all = [&latency.idle, &latency.loaded, &latency.after].map(|phase| &phase.message);
    let [idle, loaded, after] = all.map(|times| of(times, |times| times.median_ns));
    let rare = all.map(|times| of(times, |times| times.p99_ns)).join(", ");
    let lost = Some(latency.loaded.unanswered).filter(|lost| *lost > 0);
    let unanswered = words::with(lost, |lost| {
        format!("; {} under load had no answer", words::count(lost))
    });
    let skipped = Some(latency.loaded.left_out).filter(|skipped| *skipped > 0);
    let left_out = words::with(skipped, |skipped| {
        format!(
            "; {} under load were due while eight waited, and are in no figure: it is worse than they say",
            words::count(skipped)
        )
    });
    let broken = words::with(missing, |reason| format!("; incomplete: {reason}"));
    format!(
        "idle {idle}, under load {loaded}, after it {after} (median round trip of small messages on a connection of their \
         own; 99 %: {rare}){unanswered}{left_out}{broken}"
    )
}

/// `551 round trips a minute under load, 4,800 idle (…)`.
fn responsive(latency: &WorkingLatency) -> String {
    let rate = |rate: Option<f64>| {
        rate.map_or("not known".to_owned(), |rate| {
            words::count(words::whole(rate))
        })
    };
    let Responsiveness {
        per_minute,
        separate_per_minute,
        loaded_connection_per_minute,
        without,
    } = &latency.responsiveness;
    let parts = words::with(*loaded_connection_per_minute, |loaded| {
        format!(
            " ({} on other connections, {} on the loaded one)",
            rate(*separate_per_minute),
            rate(Some(loaded))
        )
    });
    let without: Vec<String> = without
        .iter()
        .map(|part| format!("; without {part}"))
        .collect();
    format!(
        "{} round trips a minute under load{parts}, {} idle{}",
        rate(*per_minute),
        rate(latency.idle_responsiveness.per_minute),
        without.concat()
    )
}

/// `policer 97 %, network-loss 2 %: one cause has 95 % or more`.
fn likely(diagnosis: &Diagnosis) -> String {
    let causes: Vec<String> = diagnosis
        .causes
        .iter()
        .take(MOST_CAUSES)
        .map(|cause| format!("{} {}", cause.id, words::percent(cause.probability)))
        .collect();
    let ended = match diagnosis.ended {
        Ended::OneStands => "one cause has 95 % or more",
        Ended::NothingSeparates => "no further run would separate them",
        Ended::Stopped => "not all runs that could separate them were made",
    };
    format!("{}: {ended}", causes.join(", "))
}

/// `PASS: 941 to 942 Mbit/s (95 % interval) are >= 900M`.
fn expected(judgement: &Judgement, view: &RunView) -> String {
    let several = judgement.directions.len() > 1;
    let each: Vec<String> = judgement
        .directions
        .iter()
        .map(|direction| {
            let name = if several {
                format!("{} {}, ", way(direction.flow), direction.verdict.word())
            } else {
                String::new()
            };
            format!("{name}{}", one(direction))
        })
        .collect();
    let bought = words::with(
        view.plan
            .provisioned_bps
            .filter(|_| judgement.wanted.needs_provisioned()),
        |bought| format!(" of {bought}"),
    );
    let reason = words::with(judgement.reason.as_ref(), |reason| format!("; {reason}"));
    format!(
        "{}: {} wanted{bought}, {}{reason}",
        judgement.verdict.word(),
        judgement.wanted,
        if each.is_empty() {
            "nothing measured".to_owned()
        } else {
            each.join("; ")
        }
    )
}

fn one(direction: &DirectionJudgement) -> String {
    let interval = direction.interval_bps.map(|[low, high]| {
        format!(
            "{} measured (95 % interval)",
            words::rates(words::whole(low), words::whole(high))
        )
    });
    match (interval, &direction.reason) {
        (Some(interval), None) => interval,
        (Some(interval), Some(reason)) => format!("{interval}, but {reason}"),
        (None, Some(reason)) => format!("not decided: {reason}"),
        (None, None) => "not decided".to_owned(),
    }
}

/// `±1.3 % after 7.52 s, ±2.0 % asked for: reached`.
fn precise(precision: &PrecisionView) -> String {
    let several = precision.directions.len() > 1;
    let each: Vec<String> = precision
        .directions
        .iter()
        .map(|direction| {
            let name = if several {
                format!("{} ", layout::capital(way(direction.flow)))
            } else {
                String::new()
            };
            format!("{name}{}", half(direction))
        })
        .collect();
    format!(
        "{}: {} after {}, ±{} requested",
        if precision.reached {
            "reached"
        } else {
            "not reached"
        },
        each.join(", "),
        words::seconds(precision.after_ns),
        words::percent(precision.asked)
    )
}

fn half(direction: &DirectionPrecision) -> String {
    let width = direction.half_width.map_or_else(
        || "no interval".to_owned(),
        |half| format!("±{}", words::percent(half)),
    );
    let reason = words::with(direction.reason.as_ref(), |reason| format!(" ({reason})"));
    let needs = words::with(direction.needs_ns, |needs| {
        format!(" (about {} would be needed)", Nanos(needs))
    });
    format!("{width}{reason}{needs}")
}
