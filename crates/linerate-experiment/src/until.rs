//! One remedy after the other, each measured, until a finding comes first that asks for none.
//!
//! The caller makes a run, hands in what was found, and does what [`Course::next`] says: a remedy that was applied
//! before is not applied again, and after [`ROUNDS`] runs it ends, whatever is found.

use linerate_model::finding::Finding;
use serde::Serialize;

use crate::remedy::Promise;

/// Runs at most.
pub const ROUNDS: usize = 5;
/// A remedy that gives less than this many times the rate before it has not helped.
const HELPED: f64 = 1.02;

/// A run, what was found first, and what is done about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Round {
    /// Goodput of the plateau, bit/s; `None` where nothing arrived.
    pub goodput_bps: Option<f64>,
    /// The first finding.
    pub finding: Option<String>,
    /// What it says.
    pub sentence: Option<String>,
    /// The remedy that is applied after this run; `None` after the last one.
    pub remedy: Option<Promise>,
}

/// What is to be done after a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Apply this and run again.
    Apply(Promise),
    /// It is over.
    End(End),
}

/// Why it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The finding that was asked for comes first.
    Reached,
    /// The findings name no remedy that was not applied already.
    NoRemedy,
    /// As many runs were made as are allowed.
    Rounds,
}

impl End {
    /// In words, behind "stopped after 3 runs: ".
    pub const fn words(self) -> &'static str {
        match self {
            Self::Reached => "the finding that was asked for comes first",
            Self::NoRemedy => "the findings name no remedy that was not applied already",
            Self::Rounds => "no more than five runs are made",
        }
    }
}

/// The rounds so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Course {
    /// The first finding that ends it.
    pub until: String,
    /// In their order.
    pub rounds: Vec<Round>,
}

impl Course {
    /// Nothing has been run.
    pub fn new(until: &str) -> Self {
        Self {
            until: until.to_owned(),
            rounds: Vec::new(),
        }
    }

    /// Takes a run, and says what follows from it.
    pub fn next(&mut self, findings: &[Finding], goodput_bps: Option<f64>) -> Next {
        let first = findings.first();
        let applied: Vec<_> = self
            .rounds
            .iter()
            .filter_map(|round| Some(&round.remedy.as_ref()?.remedy))
            .collect();
        let fresh = findings
            .iter()
            .filter_map(Promise::of)
            .find(|promise| !applied.contains(&&promise.remedy));
        let next = match fresh {
            _ if first.is_some_and(|first| first.id == self.until) => Next::End(End::Reached),
            _ if self.rounds.len() + 1 >= ROUNDS => Next::End(End::Rounds),
            Some(promise) => Next::Apply(promise),
            None => Next::End(End::NoRemedy),
        };
        self.rounds.push(Round {
            goodput_bps,
            finding: first.map(|first| first.id.clone()),
            sentence: first.map(|first| first.sentence.clone()),
            remedy: match &next {
                Next::Apply(promise) => Some(promise.clone()),
                Next::End(_) => None,
            },
        });
        next
    }

    /// The remedies that were applied and after which the rate did not rise: for the user to take back.
    pub fn useless(&self) -> impl Iterator<Item = &Promise> {
        self.rounds.windows(2).filter_map(|pair| {
            let (before, after) = pair[0].goodput_bps.zip(pair[1].goodput_bps)?;
            (after < HELPED * before).then_some(pair[0].remedy.as_ref()?)
        })
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::finding::Severity;
    use linerate_model::record::Role;
    use linerate_model::remedy::{BufferSizes, Fix, Remedy};

    use super::*;

    fn found(id: &str, most: Option<u64>) -> Vec<Finding> {
        let mut finding = Finding::new(id, Severity::Limit, format!("It is {id}"));
        finding.remedy = most.map(|most| Remedy {
            host: Role::Server,
            fix: Fix::ReceiveBuffer(BufferSizes { first: None, most }),
        });
        vec![finding]
    }

    #[test]
    fn remedies_follow_one_another_until_the_path_is_full() {
        let mut course = Course::new("path-full");
        let first = course.next(&found("receive-window", Some(4 << 20)), Some(106e6));
        assert!(matches!(first, Next::Apply(_)));
        let second = course.next(&found("receive-window", Some(16 << 20)), Some(424e6));
        assert!(matches!(second, Next::Apply(_)));
        let last = course.next(&found("path-full", None), Some(940e6));
        assert_eq!(last, Next::End(End::Reached));
        let rates: Vec<_> = course
            .rounds
            .iter()
            .map(|round| round.goodput_bps)
            .collect();
        assert_eq!(rates, [Some(106e6), Some(424e6), Some(940e6)]);
        assert_eq!(course.useless().count(), 0);
    }

    #[test]
    fn a_remedy_is_applied_once_and_five_runs_are_enough() {
        let mut course = Course::new("path-full");
        let same = found("receive-window", Some(4 << 20));
        assert!(matches!(course.next(&same, Some(1e6)), Next::Apply(_)));
        assert_eq!(course.next(&same, Some(1e6)), Next::End(End::NoRemedy));
        assert_eq!(course.useless().count(), 1);

        let mut course = Course::new("path-full");
        for round in 1..ROUNDS as u64 {
            let next = course.next(&found("receive-window", Some(round)), Some(1e6));
            assert!(matches!(next, Next::Apply(_)), "{round}");
        }
        let last = course.next(&found("receive-window", Some(99)), Some(1e6));
        assert_eq!(last, Next::End(End::Rounds));
    }
}
