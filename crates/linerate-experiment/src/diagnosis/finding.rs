//! The finding of a cause that the first run alone did not show.

use linerate_explain::{command_of, round_rate};
use linerate_model::counter_test::{CounterRun, Passage, Variation};
use linerate_model::finding::{Figure, Finding, Quantity, Severity};
use linerate_model::record::Role;
use linerate_model::remedy::{Fix, Remedy};
use linerate_model::units::{BitRate, Bytes, Nanos, whole};

use super::causes::Cause;
use crate::counter_test::Known;

/// Paced at this share of a policer's rate, its bucket does not run empty.
const PACED: f64 = 0.95;

/// Says what the further runs showed.
pub(super) fn of(cause: &Cause, known: &Known<'_>, runs: &[CounterRun]) -> Finding {
    let fastest = runs.iter().filter_map(|run| run.passage.as_ref());
    let fastest = fastest.max_by(|one, other| one.offered_bps.total_cmp(&other.offered_bps));
    let id = cause.id();
    let severity = if id == "path-full" {
        Severity::Healthy
    } else {
        Severity::Limit
    };
    let sentence = match (id, fastest) {
        ("policer", Some(passed)) => format!(
            "Consistent with a policer at about {}: {}, and none of them waited in a queue",
            rate(passed.delivered_bps),
            passing(passed)
        ),
        ("path-full", Some(passed)) => format!(
            "The path is full at {}: {}, behind a queue of {}",
            rate(known.rate_bps),
            passing(passed),
            wait(passed)
        ),
        ("network-loss", Some(passed)) => format!(
            "Bursts overran a short queue: {}, behind a queue of {} ({}), and TCP got {} of it",
            passing(passed),
            Bytes(whole(passed.waited_us / 8e6 * passed.delivered_bps)),
            wait(passed),
            rate(known.rate_bps)
        ),
        ("random-loss", _) => lost(known, runs),
        _ => told(known, runs),
    };
    let flow = known.direction.flow;
    let mut finding = Finding::new(id, severity, sentence);
    finding.flow = Some(flow);
    let place = match flow.receiver() {
        Role::Client => "client application",
        Role::Server => "server application",
    };
    let figures = fastest.into_iter().flat_map(|passed| {
        [
            Figure::new("datagrams sent, bit/s", passed.offered_bps, place),
            Figure::new("of them arrived, bit/s", passed.delivered_bps, place),
            Figure::new("wait in a queue, µs", passed.waited_us, place),
        ]
    });
    finding.figures = figures.collect();
    let fix = match (id, fastest) {
        ("policer", Some(passed)) => {
            let figure = Figure::new(Quantity::TokenRate, passed.delivered_bps, place);
            finding.figures.push(figure);
            let streams = f64::from(known.plan.streams.max(1));
            Some(Fix::Pacing(round_rate(
                PACED * passed.delivered_bps / streams,
            )))
        }
        ("random-loss", _) => known.plan.streams.checked_mul(4).map(Fix::Streams),
        _ => None,
    };
    finding.remedy = fix.map(|fix| {
        let mut plan = known.plan.clone();
        match &fix {
            Fix::Pacing(bps) => plan.kernel_pacing_bps = Some(*bps),
            Fix::Streams(streams) => plan.streams = *streams,
            _ => {}
        }
        finding.next = Some(command_of(&plan));
        Remedy {
            host: flow.sender(),
            fix,
        }
    });
    finding
}

/// `of datagrams sent evenly at 100 Mbit/s, 50.0 Mbit/s arrived`
fn passing(passed: &Passage) -> String {
    format!(
        "of datagrams sent evenly at {}, {} arrived",
        rate(passed.offered_bps),
        rate(passed.delivered_bps)
    )
}

fn wait(passed: &Passage) -> Nanos {
    Nanos(whole(passed.waited_us * 1e3))
}

/// What is lost of datagrams below the rate.
fn lost(known: &Known<'_>, runs: &[CounterRun]) -> String {
    let below = runs.iter().find_map(|run| match run.variation {
        Some(Variation::Datagrams { bps }) if (bps.0 as f64) < known.rate_bps => {
            Some((bps, run.lost?, run.sent.filter(|sent| *sent > 0)?))
        }
        _ => None,
    });
    below.map_or_else(
        || told(known, runs),
        |(bps, lost, sent)| {
            format!(
                "Loss that does not depend on the rate: of datagrams sent evenly at {bps}, {:.3} % were lost, where TCP reached \
                 {}",
                100.0 * lost as f64 / sent as f64,
                rate(known.rate_bps)
            )
        },
    )
}

/// What each run reached.
fn told(known: &Known<'_>, runs: &[CounterRun]) -> String {
    let reached: Vec<String> = runs
        .iter()
        .filter_map(|run| {
            Some(format!(
                "{} with {}",
                rate(run.goodput_bps?),
                run.variation.as_ref()?
            ))
        })
        .collect();
    format!(
        "The runs that followed fit this best: {} as it was, {}",
        rate(known.rate_bps),
        reached.join(", ")
    )
}

fn rate(bps: f64) -> BitRate {
    BitRate(whole(bps))
}
