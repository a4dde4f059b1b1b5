//! What a link between two sets of hosts carries: disjoint pairs are added, 1, 2, 4 …, until the sum stops growing.
//!
//! A state machine: [`Ramp::poll_step`] says which tests to run at once, [`Ramp::handle_tests`] takes what became of them,
//! until `poll_step` has nothing more; [`Ramp::finish`] makes the document.

use linerate_model::mesh::{
    MeshFigures, MeshHost, MeshOutcome, MeshTest, SCHEMA_VERSION, TrunkEnd, TrunkRamp, TrunkStep,
};
use linerate_model::plain_text::PlainText;

use crate::rounds::Pair;

/// Growth below this share of what the added pairs should bring is no growth …
const NO_GROWTH: f64 = 0.2;
/// … where the intervals of the sums do not reach this share.
const NO_GROWTH_WITHIN: f64 = 0.5;
/// Steps whose sum is at least this share of the last one's are where it stopped growing.
const THERE: f64 = 0.9;
/// A test with less than this share of the median goodput loses.
const LOSES: f64 = 0.5;

/// Why there is nothing to ramp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrunkError {
    /// No pair of two different hosts can be made.
    #[error(
        "no pair of hosts can be made of the two sets: each needs a host that is not in the other"
    )]
    NoPair,
}

/// The ramp so far.
#[derive(Debug, Clone)]
pub struct Ramp {
    pairs: Vec<Pair>,
    steps: Vec<TrunkStep>,
    ended: Option<TrunkEnd>,
}

impl Ramp {
    /// Disjoint pairs from the first set to the second: no host is in two of them.
    ///
    /// # Errors
    /// When the sets make no pair.
    pub fn new(from: &[usize], to: &[usize]) -> Result<Self, TrunkError> {
        let mut pairs: Vec<Pair> = Vec::new();
        let used = |pairs: &[Pair], host: usize| {
            pairs
                .iter()
                .any(|pair| pair.from == host || pair.to == host)
        };
        // Hosts of one set alone first: those of both could take both ends.
        let mut senders = from.to_vec();
        senders.sort_by_key(|host| to.contains(host));
        let mut receivers = to.to_vec();
        receivers.sort_by_key(|host| from.contains(host));
        for sender in senders {
            let free = |receiver: &&usize| **receiver != sender && !used(&pairs, **receiver);
            let receiver = receivers.iter().find(free).copied();
            if let Some(receiver) = receiver.filter(|_| !used(&pairs, sender)) {
                pairs.push(Pair::new(sender, receiver));
            }
        }
        if pairs.is_empty() {
            return Err(TrunkError::NoPair);
        }
        Ok(Self {
            pairs,
            steps: Vec::new(),
            ended: None,
        })
    }

    /// The largest number of pairs at once.
    pub fn most(&self) -> usize {
        self.pairs.len()
    }

    /// The tests of the next step, all of them at once; none when the ramp has ended.
    pub fn poll_step(&self) -> Option<&[Pair]> {
        if self.ended.is_some() {
            return None;
        }
        let doubled = self.steps.last().map_or(1, |step| 2 * step.tests.len());
        self.pairs.get(..doubled.min(self.pairs.len()))
    }

    /// Takes what became of a step's tests.
    pub fn handle_tests(&mut self, tests: Vec<MeshTest>) {
        if self.ended.is_some() {
            return;
        }
        let step = step(tests);
        let failed = step.tests.len() - measured(&step).count();
        self.ended = if 2 * failed > step.tests.len() || step.tests.is_empty() {
            Some(TrunkEnd::Failed)
        } else if self
            .steps
            .last()
            .is_some_and(|before| stopped(before, &step))
        {
            Some(TrunkEnd::Saturated)
        } else if step.tests.len() >= self.pairs.len() {
            Some(TrunkEnd::NoMorePairs)
        } else {
            None
        };
        self.steps.push(step);
    }

    /// The document. A ramp that was broken off ends as one without more pairs.
    pub fn finish(
        self,
        started_unix_s: u64,
        hosts: Vec<MeshHost>,
        options: PlainText,
    ) -> TrunkRamp {
        let ended = self.ended.unwrap_or(TrunkEnd::NoMorePairs);
        let last = self.steps.last();
        let goodput: Vec<f64> = last
            .into_iter()
            .flat_map(measured)
            .map(|figures| figures.goodput_bps)
            .collect();
        TrunkRamp {
            schema_version: SCHEMA_VERSION,
            started_unix_s,
            hosts,
            options,
            ended,
            capacity_bps: (ended == TrunkEnd::Saturated)
                .then(|| capacity(&self.steps))
                .flatten(),
            fairness: fairness(&goodput),
            losers: last.map(|step| losers(step, &goodput)).unwrap_or_default(),
            steps: self.steps,
        }
    }
}

/// The figures of the tests that were measured.
fn measured(step: &TrunkStep) -> impl Iterator<Item = &MeshFigures> {
    step.tests.iter().filter_map(|test| match &test.outcome {
        MeshOutcome::Measured(figures) => Some(figures),
        _ => None,
    })
}

/// The step with its sum.
fn step(tests: Vec<MeshTest>) -> TrunkStep {
    let mut step = TrunkStep {
        tests,
        sum_bps: None,
        interval_bps: None,
    };
    let figures: Vec<&MeshFigures> = measured(&step).collect();
    let sum: f64 = figures.iter().map(|figures| figures.goodput_bps).sum();
    // The errors of the tests are independent: their squares add up.
    let squares = figures.iter().map(|figures| {
        let (low, high) = figures.interval_bps?;
        Some((
            (figures.goodput_bps - low).powi(2),
            (high - figures.goodput_bps).powi(2),
        ))
    });
    let squares: Option<Vec<(f64, f64)>> = squares.collect();
    let interval = squares.filter(|all| !all.is_empty()).map(|all| {
        let below: f64 = all.iter().map(|one| one.0).sum();
        let above: f64 = all.iter().map(|one| one.1).sum();
        ((sum - below.sqrt()).max(0.0), sum + above.sqrt())
    });
    step.sum_bps = (!figures.is_empty()).then_some(sum);
    step.interval_bps = interval;
    step
}

/// Whether the sum grew by nearly nothing of what the added pairs should have brought.
fn stopped(before: &TrunkStep, now: &TrunkStep) -> bool {
    let (Some(was), Some(is)) = (before.sum_bps, now.sum_bps) else {
        return false;
    };
    let pairs = measured(now).count() as f64 / (measured(before).count() as f64).max(1.0);
    let expected = was * (pairs - 1.0);
    if expected <= 0.0 {
        return false;
    }
    let half = |step: &TrunkStep| {
        step.interval_bps
            .map_or(0.0, |(low, high)| (high - low) / 2.0)
    };
    let uncertain = half(before).hypot(half(now));
    let growth = is - was;
    growth < NO_GROWTH * expected && growth + uncertain < NO_GROWTH_WITHIN * expected
}

/// The median of the sums where they stopped growing.
fn capacity(steps: &[TrunkStep]) -> Option<f64> {
    let last = steps.last()?.sum_bps?;
    let before = steps
        .iter()
        .rev()
        .nth(1)
        .and_then(|step| step.sum_bps)
        .unwrap_or(last);
    let there = steps
        .iter()
        .filter_map(|step| step.sum_bps)
        .filter(|sum| *sum >= THERE * last.max(before));
    let mut sums: Vec<f64> = there.collect();
    sums.sort_by(f64::total_cmp);
    let middle = sums.len() / 2;
    if sums.len() % 2 == 1 {
        return sums.get(middle).copied();
    }
    Some(f64::midpoint(
        *sums.get(middle.checked_sub(1)?)?,
        *sums.get(middle)?,
    ))
}

/// Jain's index: the square of the sum over n times the sum of squares.
fn fairness(goodput: &[f64]) -> Option<f64> {
    let sum: f64 = goodput.iter().sum();
    let squares: f64 = goodput.iter().map(|one| one * one).sum();
    (goodput.len() >= 2 && squares > 0.0).then(|| sum * sum / (goodput.len() as f64 * squares))
}

/// The tests with far less than the median, and those without any figure.
fn losers(step: &TrunkStep, goodput: &[f64]) -> Vec<usize> {
    let mut sorted = goodput.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    let loses = |test: &MeshTest| match &test.outcome {
        MeshOutcome::Measured(figures) => figures.goodput_bps < LOSES * median,
        _ => true,
    };
    let places = step.tests.iter().enumerate();
    places
        .filter(|(_, test)| loses(test))
        .map(|(place, _)| place)
        .collect()
}
