//! What pairs of runs say.

use serde::Serialize;

use super::{LOOKED_AT, Pairs, Proof, Question, Run, Side, first_of};
use crate::interval::{self, Interval};
use crate::random::Random;

/// Resamples of the two sides are drawn apart from those of the effect.
const OF_BEFORE: u64 = 11;
const OF_AFTER: u64 = 12;

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// The whole interval lies above zero, and it is not all smaller than what is of interest.
    Better,
    /// The whole interval lies below zero.
    Worse,
    /// The whole interval lies within the smallest effect of interest, to either side.
    NoEffect,
    /// Neither.
    Undecided {
        /// So many more pairs would decide, if they are as these are; `None` where that cannot be told.
        more: Option<u32>,
    },
}

impl Verdict {
    /// Whether there is an answer.
    pub const fn is_decided(self) -> bool {
        !matches!(self, Self::Undecided { .. })
    }
}

/// How much more, or less.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Effect {
    /// The change as a share of what was before, with its 95 % interval: 0.38 is +38 %.
    pub share: Interval,
    /// Pairs that it rests on.
    pub pairs: usize,
    /// Whether the pairs were looked at on the way, for which the interval is wider.
    pub looked_at: bool,
}

impl Effect {
    /// The effect that ratios amount to; `None` of too few.
    pub fn of(ratios: &[f64], seed: u64, looked_at: bool) -> Option<Self> {
        let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let interval = Interval::of_mean(&logs, seed)?;
        let interval = if looked_at {
            interval.widened(LOOKED_AT)
        } else {
            interval
        };
        Some(Self {
            share: interval.map(f64::exp_m1),
            pairs: ratios.len(),
            looked_at,
        })
    }

    /// What it means where `least` is the smallest effect of interest.
    pub fn verdict(&self, least: f64) -> Verdict {
        let Interval { mean, low, high } = self.share;
        if -least <= low && high <= least {
            return Verdict::NoEffect;
        }
        if self.pairs < interval::ENOUGH {
            let enough = interval::ENOUGH - self.pairs;
            return Verdict::Undecided {
                more: u32::try_from(enough).ok(),
            };
        }
        if low > 0.0 {
            return Verdict::Better;
        }
        if high < 0.0 {
            return Verdict::Worse;
        }
        // The interval shrinks with the root of the number of pairs, and either answer will do.
        let wanted = mean.abs().max(least - mean.abs());
        let times = (self.share.half() / wanted).powi(2);
        let pairs = (self.pairs as f64 * times).ceil();
        let more = (pairs - self.pairs as f64).max(1.0);
        #[expect(clippy::cast_possible_truncation, reason = "below a thousand")]
        Verdict::Undecided {
            more: (more < 1000.0).then_some(more as u32),
        }
    }
}

pub(super) fn proof(question: &Question, runs: &[Run], stopped: Option<String>) -> Proof {
    let pairs: Vec<[f64; 2]> = (1..=question.pairs.most())
        .filter_map(|pair| {
            let of = |side| counting(runs, pair, side)?.measured.goodput_bps;
            Some([of(Side::Before)?, of(Side::After)?])
        })
        .collect();
    let ratios: Vec<f64> = pairs.iter().map(|[before, after]| after / before).collect();
    let side = |at: usize, purpose| {
        let rates: Vec<f64> = pairs.iter().map(|pair| pair[at]).collect();
        Interval::of_mean(&rates, Random::new(question.seed, purpose).bits())
    };
    let looked_at = matches!(question.pairs, Pairs::UntilDecided(_));
    let effect = Effect::of(&ratios, question.seed, looked_at);
    let verdict = effect.map_or(Verdict::Undecided { more: None }, |effect| {
        effect.verdict(question.least)
    });
    let made = runs.iter().map(|run| run.turn.pair).max().unwrap_or(0);
    Proof {
        question: *question,
        verdict,
        sentence: sentence(question, verdict, effect, pairs.len(), stopped.as_deref()),
        effect,
        before: side(0, OF_BEFORE),
        after: side(1, OF_AFTER),
        ratios,
        order: order(question.seed, made),
        stopped,
        runs: runs.to_vec(),
    }
}

/// The run that counts: the first that nothing disturbed, else the last with a result.
pub(super) fn counting(runs: &[Run], pair: u32, side: Side) -> Option<&Run> {
    let of = || {
        runs.iter()
            .filter(move |run| run.turn.pair == pair && run.turn.side == side)
    };
    of().find(|run| !run.measured.is_doubtful())
        .or_else(|| of().rfind(|run| run.measured.failed.is_none()))
}

fn order(seed: u64, pairs: u32) -> String {
    let letters: Vec<&str> = (1..=pairs)
        .map(|pair| match first_of(seed, pair) {
            Side::Before => "AB",
            Side::After => "BA",
        })
        .collect();
    format!(
        "pairs in a random order, every second one reversed (seed {seed}): {}",
        letters.join(" ")
    )
}

fn sentence(
    question: &Question,
    verdict: Verdict,
    effect: Option<Effect>,
    pairs: usize,
    stopped: Option<&str>,
) -> String {
    let early = stopped.map_or_else(String::new, |why| format!("; it ended early: {why}"));
    let Some(effect) = effect else {
        return format!(
            "cannot tell: {pairs} pairs are too few for an interval, at least {} are needed, {} for 95 %{early}",
            interval::LEAST,
            interval::ENOUGH
        );
    };
    format!("{}{early}", spelled(effect, verdict, question.least))
}

/// An effect and what it means, in words.
pub fn spelled(effect: Effect, verdict: Verdict, least: f64) -> String {
    let Interval { mean, low, high } = effect.share;
    let digits = digits(effect.share.half());
    let [mean, low_text, high_text] = [mean, low, high].map(|share| percent(share, digits));
    let between = format!("between {low_text} and {high_text}");
    let interest = percent(least, 0).trim_start_matches('+').to_owned();
    match verdict {
        Verdict::NoEffect if low <= 0.0 && high >= 0.0 => {
            format!("no effect: {mean}, {between} (less than {interest} either way)")
        }
        Verdict::NoEffect => {
            format!("no effect that matters: {mean}, {between}, less than {interest}")
        }
        Verdict::Better | Verdict::Worse => {
            let half = 100.0 * effect.share.half();
            format!("{mean} ± {half:.digits$} ({between})")
        }
        Verdict::Undecided { more } => {
            let more = more.map_or("no sensible number of pairs".to_owned(), |more| {
                format!("{more} more pair{}", if more == 1 { "" } else { "s" })
            });
            format!("cannot tell: {mean}, {between}; {more} would decide")
        }
    }
}

/// A share as a percentage with its sign.
pub fn percent(share: f64, digits: usize) -> String {
    let text = format!("{:+.digits$} %", 100.0 * share).replace('-', "−");
    // There is no negative nothing.
    let nothing = text
        .chars()
        .filter(char::is_ascii_digit)
        .all(|digit| digit == '0');
    if nothing {
        text.trim_start_matches(['+', '−']).to_owned()
    } else {
        text
    }
}

/// As many decimals of a percentage as its interval supports.
pub(super) fn digits(half: f64) -> usize {
    match 100.0 * half {
        half if half >= 2.0 => 0,
        half if half >= 0.2 => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(mean: f64, low: f64, high: f64) -> Effect {
        Effect {
            share: Interval { mean, low, high },
            pairs: 8,
            looked_at: false,
        }
    }

    #[test]
    fn what_is_said_is_what_the_interval_says() {
        for ((mean, low, high), said) in [
            ((0.38, 0.34, 0.42), "+38 % ± 4 (between +34 % and +42 %)"),
            ((-0.21, -0.25, -0.17), "−21 % ± 4 (between −25 % and −17 %)"),
            (
                (-0.001, -0.006, 0.004),
                "no effect: −0.1 %, between −0.6 % and +0.4 % (less than 2 % either way)",
            ),
            (
                (0.008, 0.005, 0.011),
                "no effect that matters: +0.8 %, between +0.5 % and +1.1 %, less than 2 %",
            ),
            (
                (0.03, -0.03, 0.09),
                "cannot tell: +3 %, between −3 % and +9 %; 24 more pairs would decide",
            ),
        ] {
            let effect = effect(mean, low, high);
            assert_eq!(spelled(effect, effect.verdict(0.02), 0.02), said);
        }
    }

    #[test]
    fn of_too_few_pairs_nothing_is_called_better() {
        let few = Effect {
            pairs: 4,
            ..effect(0.38, 0.34, 0.42)
        };
        assert_eq!(few.verdict(0.02), Verdict::Undecided { more: Some(2) });
    }
}
