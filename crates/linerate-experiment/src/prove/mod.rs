//! Whether a change helped: runs before and after in pairs, and what their ratios say.
//!
//! The two runs of a pair stand next to each other, so that a path or a machine that drifts changes both. Which of
//! them comes first is drawn from a seed, and the next pair goes the other way round (A B B A, or B A A B): a drift
//! that is even over four runs falls out. The effect is the mean of the pairs' ratios on a logarithmic scale, its
//! interval a bootstrap over the pairs ([`crate::interval`]).
//!
//! [`Proving`] says which run is to be made next, takes what it gave, and ends by itself: after so many pairs, or as
//! soon as the question is decided. A run that was disturbed or failed is made again, at most twice; all are kept.

mod judge;
mod text;

use serde::{Deserialize, Serialize};

use crate::interval::{self, Interval};
use crate::measured::Measured;
use crate::random::Random;

pub use judge::{Effect, Verdict, percent, spelled};

/// A run is made at most so often.
pub const ATTEMPTS: u32 = 3;
/// An answer that was looked for after each pair comes too easily: its interval is this many times as wide. With it
/// about 95 of 100 such series hold the truth (a test of this room makes three hundred).
const LOOKED_AT: f64 = 1.4;

/// How many pairs are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairs {
    /// So many.
    Exactly(u32),
    /// Until the question is decided, from the sixth pair on, and at most so many.
    UntilDecided(u32),
}

impl Pairs {
    /// At most so many.
    pub const fn most(self) -> u32 {
        match self {
            Self::Exactly(pairs) | Self::UntilDecided(pairs) => pairs,
        }
    }
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// How many pairs.
    pub pairs: Pairs,
    /// The smallest effect of interest, a share: 0.02 is 2 %.
    pub least: f64,
    /// Decides the order within pairs and the resamples.
    pub seed: u64,
}

/// One of the two that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// As it was.
    Before,
    /// With the change.
    After,
}

impl Side {
    /// `before` or `after`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Before => Self::After,
            Self::After => Self::Before,
        }
    }
}

/// A run to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Its pair, from 1 on.
    pub pair: u32,
    /// Which of the two.
    pub side: Side,
    /// Whether it is made again: 1 is the first time.
    pub attempt: u32,
}

/// A run that was made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// Which one.
    #[serde(flatten)]
    pub turn: Turn,
    /// What it gave.
    #[serde(flatten)]
    pub measured: Measured,
}

/// The runs, one after the other.
#[derive(Debug, Clone)]
pub struct Proving {
    question: Question,
    runs: Vec<Run>,
    next: Option<Turn>,
    stopped: Option<String>,
}

impl Proving {
    /// Nothing has been run.
    pub fn new(question: Question) -> Self {
        let first = Turn {
            pair: 1,
            side: first_of(question.seed, 1),
            attempt: 1,
        };
        Self {
            question,
            runs: Vec::new(),
            next: Some(first),
            stopped: None,
        }
    }

    /// The run to be made; `None` once all were.
    pub fn upcoming(&self) -> Option<Turn> {
        self.next
    }

    /// Takes what the upcoming run gave.
    pub fn took(&mut self, measured: Measured) {
        let Some(turn) = self.next else {
            return;
        };
        let again = measured.is_doubtful() && turn.attempt < ATTEMPTS;
        let failed = measured.failed.clone();
        self.runs.push(Run { turn, measured });
        if again {
            self.next = Some(Turn {
                attempt: turn.attempt + 1,
                ..turn
            });
            return;
        }
        if let Some(why) = failed {
            // Three times in a row: the fourth would fail as well.
            self.next = None;
            self.stopped = Some(format!(
                "the run {} failed {ATTEMPTS} times: {why}",
                turn.side.word()
            ));
            return;
        }
        self.next = self.after(turn);
    }

    /// The user wants no more.
    pub fn stop(&mut self, why: impl Into<String>) {
        self.next = None;
        self.stopped.get_or_insert(why.into());
    }

    /// Runs that are at most still to be made, without those that will be made again.
    pub fn left(&self) -> u32 {
        let done = self.next.map_or(u32::MAX, |turn| {
            let second = u32::from(turn.side != first_of(self.question.seed, turn.pair));
            2 * (turn.pair - 1) + second
        });
        (2 * self.question.pairs.most()).saturating_sub(done)
    }

    /// What there is to say until now.
    pub fn proof(&self) -> Proof {
        judge::proof(&self.question, &self.runs, self.stopped.clone())
    }

    fn after(&self, turn: Turn) -> Option<Turn> {
        let first = first_of(self.question.seed, turn.pair);
        if turn.side == first {
            return Some(Turn {
                side: first.other(),
                attempt: 1,
                ..turn
            });
        }
        let decided = matches!(self.question.pairs, Pairs::UntilDecided(_))
            && usize::try_from(turn.pair).is_ok_and(|pairs| pairs >= interval::ENOUGH)
            && self.proof().verdict.is_decided();
        let pair = turn.pair + 1;
        (pair <= self.question.pairs.most() && !decided).then(|| Turn {
            pair,
            side: first_of(self.question.seed, pair),
            attempt: 1,
        })
    }
}

/// What of a pair comes first: drawn for each two pairs, the second of which goes the other way round.
fn first_of(seed: u64, pair: u32) -> Side {
    let two = u64::from((pair - 1) / 2);
    let drawn = if Random::new(seed, two).bits() & 1 == 0 {
        Side::Before
    } else {
        Side::After
    };
    if pair % 2 == 1 { drawn } else { drawn.other() }
}

/// What the pairs say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proof {
    /// What was asked.
    pub question: Question,
    /// The answer.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The answer in a sentence.
    pub sentence: String,
    /// How much more after than before; `None` of too few pairs.
    pub effect: Option<Effect>,
    /// Goodput of the runs before, bit/s; `None` of too few.
    pub before: Option<Interval>,
    /// Goodput of the runs after.
    pub after: Option<Interval>,
    /// The pairs' ratios after / before, in their order.
    pub ratios: Vec<f64>,
    /// How the order came about, in words.
    pub order: String,
    /// Why it ended early; `None` where it did not.
    pub stopped: Option<String>,
    /// All runs in the order in which they were made, also those that were made again.
    pub runs: Vec<Run>,
}

impl Proof {
    /// The report as plain text, whole lines.
    pub fn text(&self) -> String {
        text::text(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::tests::normal;

    fn question(pairs: Pairs) -> Question {
        Question {
            pairs,
            least: 0.02,
            seed: 3,
        }
    }

    fn gave(bps: f64) -> Measured {
        Measured {
            goodput_bps: Some(bps),
            ..Measured::default()
        }
    }

    /// A series with this effect, each run off by this share at random.
    fn series(question: Question, effect: f64, noise: f64, seed: u64) -> Proof {
        let mut noises = normal(seed);
        let mut proving = Proving::new(question);
        while let Some(turn) = proving.upcoming() {
            let off = 1.0 + noise * noises.next().unwrap();
            let side = match turn.side {
                Side::Before => 1.0,
                Side::After => 1.0 + effect,
            };
            proving.took(gave(1e9 * side * off));
        }
        proving.proof()
    }

    #[test]
    fn pairs_go_there_and_back_and_a_seed_decides_which_way() {
        let order = |seed| -> String {
            let mut proving = Proving::new(Question {
                seed,
                ..question(Pairs::Exactly(8))
            });
            let mut letters = String::new();
            while let Some(turn) = proving.upcoming() {
                letters.push(match turn.side {
                    Side::Before => 'A',
                    Side::After => 'B',
                });
                proving.took(gave(1.0));
            }
            letters
        };
        for seed in 0..20 {
            let all = order(seed);
            assert_eq!(all.len(), 16);
            for four in all.as_bytes().chunks(4) {
                assert!(
                    [b"ABBA", b"BAAB"].contains(&four.try_into().unwrap()),
                    "{all}"
                );
            }
        }
        assert_eq!(order(5), order(5));
        assert!((0..20).any(|seed| order(seed) != order(0)));
    }

    #[test]
    fn a_gain_a_loss_and_no_effect_are_told_apart() {
        let verdict = |effect, noise| series(question(Pairs::Exactly(8)), effect, noise, 1).verdict;
        assert_eq!(verdict(0.38, 0.02), Verdict::Better);
        assert_eq!(verdict(-0.2, 0.02), Verdict::Worse);
        assert_eq!(verdict(0.0, 0.005), Verdict::NoEffect);
        assert!(matches!(verdict(0.0, 0.2), Verdict::Undecided { .. }));
    }

    #[test]
    fn a_drift_over_the_runs_is_no_effect() {
        let mut proving = Proving::new(question(Pairs::Exactly(6)));
        let mut rate = 1e9;
        while proving.upcoming().is_some() {
            rate *= 0.99;
            proving.took(gave(rate));
        }
        let proof = proving.proof();
        assert_eq!(proof.verdict, Verdict::NoEffect, "{}", proof.sentence);
        assert!(proof.effect.unwrap().share.mean.abs() < 1e-9);
    }

    #[test]
    fn a_disturbed_run_is_made_again_twice_and_none_is_dropped() {
        let busy = Measured {
            disturbed: vec!["the machine was busy".to_owned()],
            ..gave(5e8)
        };
        let mut proving = Proving::new(question(Pairs::Exactly(6)));
        let mut made = 0;
        while let Some(turn) = proving.upcoming() {
            made += 1;
            // One run is disturbed once, another each time.
            let once = turn.pair == 2 && turn.side == Side::Before && turn.attempt == 1;
            let always = turn.pair == 4 && turn.side == Side::After;
            proving.took(if once || always {
                busy.clone()
            } else {
                gave(1e9)
            });
        }
        assert_eq!(made, 12 + 1 + 2);
        let proof = proving.proof();
        assert_eq!(proof.runs.len(), 15);
        // The one that came right counts as it came right; of the other the last attempt stands, marked.
        assert!((proof.ratios[1] - 1.0).abs() < 1e-9 && (proof.ratios[3] - 0.5).abs() < 1e-9);
        assert!(proof.text().contains("pair 4, after"), "{}", proof.text());
    }

    #[test]
    fn a_run_that_fails_three_times_ends_it_and_says_why() {
        let mut proving = Proving::new(question(Pairs::Exactly(6)));
        for _ in 0..ATTEMPTS {
            assert!(proving.upcoming().is_some());
            proving.took(Measured::failed("connection refused"));
        }
        assert_eq!(proving.upcoming(), None);
        let proof = proving.proof();
        assert!(
            proof.sentence.contains("connection refused"),
            "{}",
            proof.sentence
        );
        assert_eq!(proof.effect, None);
        assert!(!proof.verdict.is_decided());
    }

    #[test]
    fn until_decided_ends_early_and_holds_as_often_as_it_says() {
        let mut held = 0;
        let mut early = 0;
        let mut wrong = 0;
        for seed in 0..300 {
            let asked = Question {
                seed,
                ..question(Pairs::UntilDecided(15))
            };
            let proof = series(asked, 0.0, 0.02, seed + 1000);
            let share = proof.effect.unwrap().share;
            held += usize::from(share.low <= 0.0 && 0.0 <= share.high);
            early += usize::from(proof.ratios.len() < 15);
            wrong += usize::from(matches!(proof.verdict, Verdict::Better | Verdict::Worse));
        }
        assert!(held >= 279, "{held} of 300 hold");
        assert!(wrong <= 18, "{wrong} of 300 find what is not there");
        assert!(early > 30, "{early} of 300 ended early");
    }
}
