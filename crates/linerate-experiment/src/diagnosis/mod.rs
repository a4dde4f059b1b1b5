//! A diagnosis: one run after the other, each the one that separates the causes best, until one stands.
//!
//! [`next`] says which run that is, [`of`] how likely each cause is by all of them together: by Bayes' theorem from what
//! the first run's findings are worth ([`causes`]), and from how well each further run's outcome fits each cause
//! ([`answers`]). [`lead`] puts the likeliest cause first among the findings. The runs are kept in the record as those of
//! counter-tests are, so that a diagnosis can be read again, and counter-tests that refute a finding lead on to another.

mod answers;
mod causes;
mod finding;

use linerate_analysis::evidence::Evidence;
use linerate_model::counter_test::{CounterRun, Diagnosis, Ended, Likely, Variation, Verdict};
use linerate_model::finding::Finding;

use crate::counter_test::Known;
use answers::{Fit, Question};
use causes::{CAUSES, Cause};

/// A cause that is so likely stands.
pub const STANDS: f64 = 0.95;
/// A cause that is so likely becomes the verdict, although others may not be ruled out.
const LEADS: f64 = 0.6;
/// A cause that is less likely is not told.
const TOLD: f64 = 0.005;
/// A run of which less than this is to be learned, in bits, does not separate the causes.
const LEAST_BITS: f64 = 0.05;

/// What is to be done next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// This run separates the causes best.
    Run(Variation),
    /// No further run is needed, or none helps.
    End(Ended),
    /// No run of this kind can decide the first finding.
    OutOfScope,
}

/// What is to be done after the test, and the runs that its record has.
pub fn next(findings: &[Finding], evidence: &Evidence<'_>) -> Next {
    Weighed::of(findings, evidence).map_or(Next::OutOfScope, |weighed| weighed.next())
}

/// What all runs together say; `None` where there was one only, or where runs of this kind do not decide.
pub fn of(findings: &[Finding], evidence: &Evidence<'_>) -> Option<Diagnosis> {
    (!evidence.record.counter_runs.is_empty()).then_some(())?;
    Weighed::of(findings, evidence).map(|weighed| weighed.diagnosis())
}

/// Puts the likeliest cause first where it is likelier than all others together, or the first finding was refuted; unless a
/// counter-test refuted that cause as well.
///
/// `findings` are those of the evidence, the first one first, and `judged` the same after
/// [`judge`](crate::counter_test::judge).
pub fn lead(findings: &[Finding], judged: &mut Vec<Finding>, evidence: &Evidence<'_>) {
    let runs = &evidence.record.counter_runs;
    let weighed = Weighed::of(findings, evidence).filter(|weighed| weighed.answered);
    let refuted = |finding: &Finding| {
        finding
            .tested
            .as_ref()
            .is_some_and(|tested| tested.verdict == Verdict::Refuted)
    };
    // Where the first finding is withdrawn, the likeliest takes its place, however sure.
    let first = findings.first().map(|first| first.id.as_str());
    let withdrawn = judged
        .iter()
        .any(|one| Some(one.id.as_str()) == first && refuted(one));
    let least = if withdrawn { 0.0 } else { LEADS };
    let Some(cause) = weighed.and_then(|weighed| weighed.at_least(least)) else {
        return;
    };
    if judged
        .first()
        .is_some_and(|first| cause.is(first) && !refuted(first))
    {
        return;
    }
    match judged.iter().position(|finding| cause.is(finding)) {
        Some(at) if refuted(&judged[at]) => return,
        Some(at) => judged[..=at].rotate_right(1),
        None => {
            let first = findings.first();
            let Some(known) = first.and_then(|first| Known::of(first, evidence)) else {
                return;
            };
            judged.insert(0, finding::of(cause, &known, runs));
        }
    }
    // It answers a first finding that said no more than that something is not known.
    judged.retain(|one| Some(one.id.as_str()) != first || !causes::is_open(one) || cause.is(one));
}

/// The causes, each with how likely it is.
struct Weighed {
    likely: Fit,
    /// Questions that no run has answered yet.
    open: Vec<Question>,
    /// Whether any run told something.
    answered: bool,
}

impl Weighed {
    fn of(findings: &[Finding], evidence: &Evidence<'_>) -> Option<Self> {
        let first = findings.first().filter(|first| causes::in_scope(first))?;
        let known = Known::of(first, evidence)?;
        if !known.carried_by_tcp() {
            return None;
        }
        let runs = &evidence.record.counter_runs;
        let mut weighed = Self {
            likely: causes::before(findings, &known),
            open: Vec::new(),
            answered: false,
        };
        for question in Question::all(&known, runs) {
            let made: Vec<&CounterRun> = runs
                .iter()
                .filter(|run| run.variation.as_ref() == Some(&question.variation))
                .collect();
            let fits: Vec<Fit> = made
                .iter()
                .filter_map(|run| question.fit(run, &known))
                .collect();
            if !fits.is_empty() {
                // A run that was made twice is one answer, known better.
                let sum = |at: usize| fits.iter().map(|fit| fit[at]).sum::<f64>();
                weighed.likely = product(&weighed.likely, &std::array::from_fn(sum));
                weighed.answered = true;
            } else if made.is_empty() {
                weighed.open.push(question);
            }
        }
        weighed.likely = shares(weighed.likely);
        Some(weighed)
    }

    /// The finding ids, the likeliest first, each with the probability of all causes that it names.
    fn by_id(&self) -> Vec<Likely> {
        let mut all: Vec<Likely> = Vec::new();
        for (cause, probability) in CAUSES.iter().zip(self.likely) {
            match all.iter_mut().find(|one| one.id == cause.id()) {
                Some(one) => one.probability += probability,
                None => all.push(Likely {
                    id: cause.id().to_owned(),
                    probability,
                }),
            }
        }
        all.sort_by(|one, other| other.probability.total_cmp(&one.probability));
        all
    }

    /// The likeliest cause of the likeliest finding, if that is so likely.
    fn at_least(&self, probability: f64) -> Option<&'static Cause> {
        let by_id = self.by_id();
        let first = by_id
            .first()
            .filter(|first| first.probability >= probability)?;
        let named = CAUSES
            .iter()
            .zip(self.likely)
            .filter(|(cause, _)| cause.id() == first.id);
        let likeliest = named.max_by(|(_, one), (_, other)| one.total_cmp(other));
        likeliest.map(|(cause, _)| cause)
    }

    fn next(&self) -> Next {
        if self.answered && self.at_least(STANDS).is_some() {
            return Next::End(Ended::OneStands);
        }
        let best = self
            .open
            .iter()
            .map(|question| (learned(&self.likely, question), question))
            .max_by(|(one, _), (other, _)| one.total_cmp(other));
        match best {
            Some((bits, question)) if bits >= LEAST_BITS || !self.answered => {
                Next::Run(question.variation.clone())
            }
            _ => Next::End(Ended::NothingSeparates),
        }
    }

    fn diagnosis(&self) -> Diagnosis {
        let mut causes = self.by_id();
        causes.retain(|one| one.probability >= TOLD);
        let ended = match self.next() {
            Next::End(ended) => ended,
            Next::Run(_) | Next::OutOfScope => Ended::Stopped,
        };
        Diagnosis { causes, ended }
    }
}

/// How much is to be learned of which finding it is, bits: the mutual information of the causes' ids and a question's answers.
fn learned(likely: &Fit, question: &Question) -> f64 {
    let entropy_of = |fit: &Fit| {
        let mut ids: Vec<(&str, f64)> = Vec::new();
        for (cause, share) in CAUSES.iter().zip(fit) {
            match ids.iter_mut().find(|(id, _)| *id == cause.id()) {
                Some((_, sum)) => *sum += share,
                None => ids.push((cause.id(), *share)),
            }
        }
        let bits = |share: f64| {
            if share > 0.0 {
                -share * share.log2()
            } else {
                0.0
            }
        };
        ids.into_iter().map(|(_, share)| bits(share)).sum::<f64>()
    };
    let after: f64 = question
        .answers()
        .iter()
        .map(|answer| {
            let joint = product(likely, answer);
            let probability: f64 = joint.iter().sum();
            probability * entropy_of(&shares(joint))
        })
        .sum();
    entropy_of(likely) - after
}

fn product(one: &Fit, other: &Fit) -> Fit {
    std::array::from_fn(|at| one[at] * other[at])
}

/// Divided by their sum.
fn shares(all: Fit) -> Fit {
    let sum: f64 = all.iter().sum();
    all.map(|one| if sum > 0.0 { one / sum } else { 0.0 })
}
