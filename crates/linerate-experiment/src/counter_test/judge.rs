//! What pairs of runs say of a prediction.

use linerate_analysis::counter_run::counter_run;
use linerate_analysis::evidence::Evidence;
use linerate_explain::command_of;
use linerate_model::counter_test::{CounterRun, CounterTest, Measure, Tested, Variation, Verdict};
use linerate_model::finding::Finding;
use linerate_model::record::RunRecord;

use super::plan::{self, Trial};

/// Half-width of a 95 % interval, in standard errors.
const Z: f64 = 1.96;
/// A loss counted, or not: the least that is added to counts before their logarithm is taken.
const HALF: f64 = 0.5;

/// Says of each finding what the runs after the test make of it, and puts those that were refuted last.
///
/// The first finding that is left is the answer. `findings` are those of the evidence, the first one first; runs
/// that were not made leave them as they are.
pub fn judge(findings: &mut [Finding], evidence: &Evidence<'_>) {
    let record = evidence.record;
    if record.counter_runs.is_empty() {
        return;
    }
    for finding in findings.iter_mut() {
        let tests: Vec<CounterTest> = plan::of_finding(finding, evidence)
            .into_iter()
            .filter(|trial| was_made(&record.counter_runs, &trial.variation))
            .map(|trial| decide(&trial, record, finding))
            .collect();
        finding.tested = tested(tests);
    }
    let refuted = |finding: &Finding| matches!(&finding.tested, Some(tested) if tested.verdict == Verdict::Refuted);
    findings.sort_by_key(refuted);
}

fn was_made(runs: &[CounterRun], variation: &Variation) -> bool {
    runs.iter()
        .any(|run| run.variation.as_ref() == Some(variation))
}

/// All tests of a finding together: one that speaks against it weighs as much as one that speaks for it.
fn tested(tests: Vec<CounterTest>) -> Option<Tested> {
    let with = |verdict: Verdict| tests.iter().filter(move |test| test.verdict == verdict);
    let said = |verdict: Verdict| -> Vec<&str> {
        with(verdict).map(|test| test.sentence.as_str()).collect()
    };
    let (for_it, against) = (said(Verdict::Confirmed), said(Verdict::Refuted));
    let (verdict, sentence) = match (for_it.as_slice(), against.as_slice()) {
        ([], []) if tests.is_empty() => return None,
        ([], []) => (
            Verdict::Undecided,
            format!("not decided: {}", said(Verdict::Undecided).join("; ")),
        ),
        (_, []) => (
            Verdict::Confirmed,
            format!("confirmed: {}", for_it.join("; ")),
        ),
        ([], _) => (Verdict::Refuted, format!("refuted: {}", against.join("; "))),
        (_, _) => (
            Verdict::Undecided,
            format!(
                "not decided, the counter-tests disagree: {}; but {}",
                for_it.join("; "),
                against.join("; ")
            ),
        ),
    };
    Some(Tested {
        verdict,
        sentence,
        tests,
    })
}

/// A ratio of changed runs to those around them, with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ratio {
    mean: f64,
    low: f64,
    high: f64,
    pairs: usize,
}

fn decide(trial: &Trial, record: &RunRecord, finding: &Finding) -> CounterTest {
    let ratio = compare(trial, record, finding);
    let verdict = ratio.map_or(Verdict::Undecided, |ratio| {
        let (surely_more, surely_less) =
            (ratio.low > trial.threshold, ratio.high < trial.threshold);
        match (surely_more, surely_less) {
            (true, _) if trial.predicts_more => Verdict::Confirmed,
            (_, true) if !trial.predicts_more => Verdict::Confirmed,
            (false, false) => Verdict::Undecided,
            _ if trial.refutes => Verdict::Refuted,
            _ => Verdict::Undecided,
        }
    });
    CounterTest {
        variation: trial.variation.clone(),
        command: command_of(&trial.variation.applied(&record.plan)),
        measure: trial.measure,
        pairs: ratio.map_or(0, |ratio| ratio.pairs),
        ratio: ratio.map(|ratio| ratio.mean),
        low: ratio.map(|ratio| ratio.low),
        high: ratio.map(|ratio| ratio.high),
        threshold: trial.threshold,
        predicts_more: trial.predicts_more,
        verdict,
        sentence: sentence(trial, &record.counter_runs, ratio, verdict),
    }
}

fn sentence(trial: &Trial, runs: &[CounterRun], ratio: Option<Ratio>, verdict: Verdict) -> String {
    let what = match trial.measure {
        Measure::Goodput => "goodput",
        Measure::Loss => "the lost share",
        Measure::RoundTrip => "the round trip",
        Measure::Unread => "what lies unread",
    };
    let Some(ratio) = ratio else {
        return format!("with {} {what} could not be compared", trial.variation);
    };
    let times = match lost_shares(trial, runs) {
        Some([with, without]) => format!(
            "with {} {} is lost instead of {}",
            trial.variation,
            percent(with),
            percent(without)
        ),
        None => format!(
            "with {} {what} is {} times what it was ({} to {})",
            trial.variation,
            digits(ratio.mean),
            digits(ratio.low),
            digits(ratio.high)
        ),
    };
    match verdict {
        Verdict::Confirmed => format!("{times}: {}", trial.means[0]),
        Verdict::Undecided if (ratio.low..=ratio.high).contains(&trial.threshold) => format!(
            "{times}, which lies on both sides of {}",
            digits(trial.threshold)
        ),
        Verdict::Refuted | Verdict::Undecided => format!("{times}: {}", trial.means[1]),
    }
}

/// Shares that were lost with the change, and without.
fn lost_shares(trial: &Trial, runs: &[CounterRun]) -> Option<[f64; 2]> {
    let share = |changed: bool| {
        let like = |run: &&CounterRun| {
            if changed {
                run.variation.as_ref() == Some(&trial.variation)
            } else {
                run.variation.is_none()
            }
        };
        let counts = runs
            .iter()
            .filter(like)
            .filter_map(|run| run.lost.zip(run.sent));
        let (lost, sent) = counts.fold((0, 0), |sum: (u64, u64), one| {
            (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1))
        });
        (sent > 0).then(|| lost as f64 / sent as f64)
    };
    let both = [share(true)?, share(false)?];
    (trial.measure == Measure::Loss).then_some(both)
}

fn percent(share: f64) -> String {
    if share == 0.0 {
        "nothing".to_owned()
    } else {
        format!("{:.2} %", 100.0 * share)
    }
}

fn digits(value: f64) -> String {
    if value < 0.1 {
        format!("{value:.3}")
    } else {
        format!("{value:.2}")
    }
}

/// Pairs each changed run with the last one as it was before it and the first after it, and takes the mean of the ratios on a
/// logarithmic scale. The interval holds what the runs' own intervals allow and how much the pairs differ.
fn compare(trial: &Trial, record: &RunRecord, finding: &Finding) -> Option<Ratio> {
    let flow = finding.flow.unwrap_or(record.plan.flow_of(0));
    let mut runs = vec![counter_run(record, None, flow)];
    runs.extend(record.counter_runs.iter().cloned());
    let figures: Vec<Option<Figure>> = runs
        .iter()
        .map(|run| Figure::of(run, trial.measure))
        .collect();
    let unchanged = |place: usize| {
        let there = runs.get(place).filter(|run| run.variation.is_none());
        there.and(figures[place])
    };
    let pairs: Vec<Figure> = runs
        .iter()
        .enumerate()
        .filter(|(_, run)| run.variation.as_ref() == Some(&trial.variation))
        .filter_map(|(place, _)| {
            let around: Vec<Figure> = [
                (0..place).rev().find_map(unchanged),
                (place + 1..runs.len()).find_map(unchanged),
            ]
            .into_iter()
            .flatten()
            .collect();
            Some(figures[place]?.over(Figure::mean(&around)?))
        })
        .collect();
    let mean = Figure::mean(&pairs)?;
    let apart = pairs
        .iter()
        .map(|pair| (pair.log - mean.log).abs())
        .fold(0.0, f64::max);
    let half = (Z * mean.error).hypot(apart);
    Some(Ratio {
        mean: mean.log.exp(),
        low: (mean.log - half).exp(),
        high: (mean.log + half).exp(),
        pairs: pairs.len(),
    })
}

/// A figure of a run: its logarithm, and the standard error of that.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figure {
    log: f64,
    error: f64,
}

impl Figure {
    fn of(run: &CounterRun, measure: Measure) -> Option<Self> {
        match measure {
            Measure::Goodput => {
                // A rate of nothing has no logarithm; a bit a second is as good as nothing.
                let rate = run.goodput_bps?.max(1.0);
                let high = run.high_bps.unwrap_or(rate);
                Some(Self {
                    log: rate.ln(),
                    error: (high.max(rate) / rate).ln() / Z,
                })
            }
            Measure::Loss => {
                let (lost, sent) = (run.lost?, run.sent.filter(|sent| *sent > 0)?);
                let lost = lost as f64 + HALF;
                Some(Self {
                    log: (lost / sent as f64).ln(),
                    error: 1.0 / lost.sqrt(),
                })
            }
            Measure::RoundTrip => Self::sure(run.rtt_us?),
            // Less than a segment is nothing.
            Measure::Unread => Self::sure(run.unread_bytes?.max(1448.0)),
        }
    }

    fn sure(value: f64) -> Option<Self> {
        (value > 0.0).then(|| Self {
            log: value.ln(),
            error: 0.0,
        })
    }

    fn over(self, other: Self) -> Self {
        Self {
            log: self.log - other.log,
            error: self.error.hypot(other.error),
        }
    }

    fn mean(figures: &[Self]) -> Option<Self> {
        let count = figures.len() as f64;
        (!figures.is_empty()).then(|| Self {
            log: figures.iter().map(|figure| figure.log).sum::<f64>() / count,
            error: figures
                .iter()
                .map(|figure| figure.error.powi(2))
                .sum::<f64>()
                .sqrt()
                / count,
        })
    }
}
