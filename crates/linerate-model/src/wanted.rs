//! A rate that a test shall show, and whether its interval of confidence shows it.
//!
//! PASS only where the whole interval satisfies what is wanted, FAIL only where none of it does, else
//! INCONCLUSIVE. What is compared is the goodput of the plateau, payload in bit/s, of each direction by itself.
//! A run that was cut off, that failed, or whose ledger does not balance passes nothing and fails nothing. Of a
//! run that was not steady the interval says too little, so every tenth of it must agree as well.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::evidence::{DirectionEvidence, Evidence, Place};
use crate::plain_text::PlainText;
use crate::record::{Flow, Outcome};
use crate::statistics::{self, Unsteady};
use crate::units::BitRate;

/// Parts of a run that was not steady.
const PARTS: usize = 10;

/// A rate, or a share of the rate that was bought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// bit/s of payload.
    Rate(BitRate),
    /// Percent of `--provisioned`.
    PercentOfProvisioned(f64),
}

/// What is wanted of a rate, as it was typed: `>= 9G`, `< 900M`, `9G..10G`, `>= 90%`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Wanted {
    /// `>= 9G`
    AtLeast(Amount),
    /// `> 9G`
    MoreThan(Amount),
    /// `<= 9G`
    AtMost(Amount),
    /// `< 9G`
    LessThan(Amount),
    /// `9G..10G`, both ends included.
    Within(Amount, Amount),
}

/// A text that wants nothing that can be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is nothing that a rate can be held against: {reason}")]
pub struct WantedError {
    text: PlainText,
    reason: String,
}

impl Wanted {
    /// Whether a rate that was bought must be known for it.
    pub fn needs_provisioned(&self) -> bool {
        let percent = |amount: &Amount| matches!(amount, Amount::PercentOfProvisioned(_));
        match self {
            Self::AtLeast(one) | Self::MoreThan(one) | Self::AtMost(one) | Self::LessThan(one) => {
                percent(one)
            }
            Self::Within(low, high) => percent(low) || percent(high),
        }
    }

    /// The wanted rates, bit/s: least and most; a missing one is no bound.
    fn bounds(&self, provisioned: Option<BitRate>) -> Option<[Option<f64>; 2]> {
        let of = |amount: &Amount| match amount {
            Amount::Rate(rate) => Some(rate.0 as f64),
            Amount::PercentOfProvisioned(percent) => Some(percent / 100.0 * provisioned?.0 as f64),
        };
        Some(match self {
            Self::AtLeast(low) | Self::MoreThan(low) => [Some(of(low)?), None],
            Self::AtMost(high) | Self::LessThan(high) => [None, Some(of(high)?)],
            Self::Within(low, high) => [Some(of(low)?), Some(of(high)?)],
        })
    }

    /// What an interval of rates shows.
    fn judge(&self, provisioned: Option<BitRate>, [low, high]: [f64; 2]) -> Verdict {
        let Some([least, most]) = self.bounds(provisioned) else {
            return Verdict::Inconclusive;
        };
        let strict = matches!(self, Self::MoreThan(_) | Self::LessThan(_));
        let satisfies = |rate: f64| {
            let enough =
                least.is_none_or(|least| if strict { rate > least } else { rate >= least });
            enough && most.is_none_or(|most| if strict { rate < most } else { rate <= most })
        };
        // Both ends may miss a range that lies between them.
        let outside = least.is_some_and(|least| high < least || (strict && high <= least))
            || most.is_some_and(|most| low > most || (strict && low >= most));
        if satisfies(low) && satisfies(high) {
            Verdict::Pass
        } else if outside {
            Verdict::Fail
        } else {
            Verdict::Inconclusive
        }
    }
}

impl FromStr for Wanted {
    type Err = WantedError;

    fn from_str(text: &str) -> Result<Self, WantedError> {
        let fail = |reason: &str| WantedError {
            text: text.chars().take(40).collect(),
            reason: reason.to_owned(),
        };
        let trimmed = text.trim();
        let one = |rest: &str| amount(rest).map_err(|reason| fail(&reason));
        if let Some(rest) = trimmed.strip_prefix(">=") {
            return one(rest).map(Self::AtLeast);
        }
        if let Some(rest) = trimmed.strip_prefix("<=") {
            return one(rest).map(Self::AtMost);
        }
        if let Some(rest) = trimmed.strip_prefix('>') {
            return one(rest).map(Self::MoreThan);
        }
        if let Some(rest) = trimmed.strip_prefix('<') {
            return one(rest).map(Self::LessThan);
        }
        let Some((low, high)) = trimmed.split_once("..") else {
            return Err(fail(
                "say at least what: '>= 9G', '> 900M', '<= 1G', '9G..10G' or '>= 90%' of --provisioned",
            ));
        };
        match (one(low)?, one(high)?) {
            (Amount::Rate(low), Amount::Rate(high)) if low > high => {
                Err(fail("its first rate is above its second one"))
            }
            (Amount::PercentOfProvisioned(low), Amount::PercentOfProvisioned(high))
                if low > high =>
            {
                Err(fail("its first share is above its second one"))
            }
            (low, high) => Ok(Self::Within(low, high)),
        }
    }
}

/// `9G`, or `90%`.
fn amount(text: &str) -> Result<Amount, String> {
    let text = text.trim();
    if let Some(digits) = text.strip_suffix('%') {
        return match digits.trim().parse::<f64>() {
            Ok(percent) if (0.0..=1000.0).contains(&percent) => {
                Ok(Amount::PercentOfProvisioned(percent))
            }
            _ => Err(format!("'{text}' is no percentage, such as 90%")),
        };
    }
    text.parse()
        .map(Amount::Rate)
        .map_err(|error: crate::units::UnitError| error.to_string())
}

impl TryFrom<String> for Wanted {
    type Error = WantedError;

    fn try_from(text: String) -> Result<Self, WantedError> {
        text.parse()
    }
}

impl From<Wanted> for String {
    fn from(wanted: Wanted) -> Self {
        wanted.to_string()
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PercentOfProvisioned(percent) => write!(f, "{percent}%"),
            Self::Rate(BitRate(rate)) => {
                let units = [
                    (1_000_000_000_000, "T"),
                    (1_000_000_000, "G"),
                    (1_000_000, "M"),
                    (1000, "K"),
                ];
                // With a letter it is read as a floating-point number, which holds this much.
                let exact = *rate > 0 && *rate < 1 << 53;
                match units
                    .into_iter()
                    .find(|(unit, _)| exact && rate.is_multiple_of(*unit))
                {
                    Some((unit, letter)) => write!(f, "{}{letter}", rate / unit),
                    None => write!(f, "{rate}"),
                }
            }
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(low) => write!(f, ">= {low}"),
            Self::MoreThan(low) => write!(f, "> {low}"),
            Self::AtMost(high) => write!(f, "<= {high}"),
            Self::LessThan(high) => write!(f, "< {high}"),
            Self::Within(low, high) => write!(f, "{low}..{high}"),
        }
    }
}

/// Whether a run shows what was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval satisfies it.
    Pass,
    /// None of the interval does.
    Fail,
    /// The interval does not decide.
    Inconclusive,
}

impl Verdict {
    /// PASS, FAIL, INCONCLUSIVE.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Inconclusive => "INCONCLUSIVE",
        }
    }
}

/// What a run shows of what was wanted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// What was wanted.
    pub wanted: Wanted,
    /// Of the whole run: PASS where every direction passes, FAIL where one fails.
    pub verdict: Verdict,
    /// Why nothing could be decided, where that is the whole run's fault.
    pub reason: Option<String>,
    /// Each direction.
    pub directions: Vec<DirectionJudgement>,
}

/// What one direction shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectionJudgement {
    /// Which.
    pub flow: Flow,
    /// Its verdict.
    pub verdict: Verdict,
    /// The interval that was judged, bit/s of payload: 95 % of the plateau's goodput.
    pub interval_bps: Option<[f64; 2]>,
    /// Why it could not be decided, or what beside the interval decided.
    pub reason: Option<String>,
}

impl Judgement {
    /// Judges a run; `None` where its plan wants nothing.
    pub fn of(evidence: &Evidence<'_>) -> Option<Self> {
        let plan = &evidence.record.plan;
        let wanted = plan.expect?;
        let reason = cut_off(&evidence.record.outcome).or_else(|| {
            let broken = evidence.ledger.broken().count() > 0;
            broken.then(|| "the ledger does not balance, so the rate cannot be trusted".to_owned())
        });
        let directions: Vec<DirectionJudgement> = evidence
            .directions
            .iter()
            .map(|direction| {
                let mut one = of_direction(&wanted, plan.provisioned_bps, direction);
                if reason.is_some() {
                    one.verdict = Verdict::Inconclusive;
                }
                one
            })
            .collect();
        let any = |verdict| directions.iter().any(|one| one.verdict == verdict);
        let verdict = if directions.is_empty() || reason.is_some() {
            Verdict::Inconclusive
        } else if any(Verdict::Fail) {
            Verdict::Fail
        } else if any(Verdict::Inconclusive) {
            Verdict::Inconclusive
        } else {
            Verdict::Pass
        };
        Some(Self {
            wanted,
            verdict,
            reason,
            directions,
        })
    }
}

/// Why a run that did not end as planned decides nothing.
fn cut_off(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Completed => None,
        Outcome::Interrupted | Outcome::PeerInterrupted => {
            Some("the run was stopped before its end".to_owned())
        }
        Outcome::Failed { .. } => Some("the run failed on the way".to_owned()),
    }
}

fn of_direction(
    wanted: &Wanted,
    provisioned: Option<BitRate>,
    direction: &DirectionEvidence,
) -> DirectionJudgement {
    let undecided = |reason: &str| DirectionJudgement {
        flow: direction.flow,
        verdict: Verdict::Inconclusive,
        interval_bps: None,
        reason: Some(reason.to_owned()),
    };
    if direction.measured_at == Place::SendingApplication {
        return undecided(
            "only the sender was measured, and what is sent is not delivered: a linerate server tells the interval",
        );
    }
    let Some(plateau) = direction.plateau else {
        return undecided("nothing was measured");
    };
    let interval = [plateau.estimate.low, plateau.estimate.high];
    if !interval[1].is_finite() || plateau.unsteady == Some(Unsteady::TooShort) {
        return undecided(Unsteady::TooShort.reason());
    }
    let by_interval = wanted.judge(provisioned, interval);
    let (verdict, reason) = match plateau.unsteady {
        None => (by_interval, None),
        Some(unsteady) => {
            let agree = parts(&direction.rates_bps)
                .all(|rate| wanted.judge(provisioned, [rate, rate]) == by_interval);
            let tenths = if agree {
                "every tenth of it says the same"
            } else {
                "its tenths do not agree"
            };
            let verdict = if agree {
                by_interval
            } else {
                Verdict::Inconclusive
            };
            let reason = format!("{}, and {tenths}", unsteady.reason());
            (verdict, Some(reason))
        }
    };
    DirectionJudgement {
        flow: direction.flow,
        verdict,
        interval_bps: Some(interval),
        reason,
    }
}

/// Mean rates of the tenths of a run.
fn parts(rates: &[f64]) -> impl Iterator<Item = f64> {
    rates
        .chunks(rates.len().div_ceil(PARTS).max(1))
        .map(statistics::mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, Traffic};
    use crate::plan::{Direction, Plan};
    use proptest::prelude::*;

    fn plan(wanted: &str) -> Plan {
        Plan {
            expect: Some(wanted.parse().unwrap()),
            ..Plan::new("server")
        }
    }

    /// The verdict on a healthy run of 95.4 Mbit/s.
    fn verdict(plan: &Plan) -> Verdict {
        let record = fixture::run(plan, &Traffic::default());
        Judgement::of(&Evidence::of(&record)).unwrap().verdict
    }

    #[test]
    fn a_rate_passes_fails_or_is_not_decided_by_its_whole_interval() {
        let rate = |low: f64, high: f64| [low * 1e6, high * 1e6];
        for (wanted, interval, verdict) in [
            (">= 900M", rate(900.0, 910.0), Verdict::Pass),
            ("> 900M", rate(900.0, 910.0), Verdict::Inconclusive),
            (">= 900M", rate(899.0, 910.0), Verdict::Inconclusive),
            (">= 900M", rate(880.0, 899.9), Verdict::Fail),
            ("> 900M", rate(880.0, 900.0), Verdict::Fail),
            ("<= 900M", rate(880.0, 900.0), Verdict::Pass),
            ("< 900M", rate(880.0, 900.0), Verdict::Inconclusive),
            ("< 900M", rate(900.0, 910.0), Verdict::Fail),
            ("800M..900M", rate(800.0, 900.0), Verdict::Pass),
            ("800M..900M", rate(799.0, 901.0), Verdict::Inconclusive),
            ("800M..900M", rate(901.0, 950.0), Verdict::Fail),
            ("800M..900M", rate(700.0, 799.0), Verdict::Fail),
        ] {
            let found = wanted.parse::<Wanted>().unwrap().judge(None, interval);
            assert_eq!(found, verdict, "{wanted} of {interval:?}");
        }
    }

    #[test]
    fn a_share_is_one_of_what_was_bought() {
        let bought = Plan {
            provisioned_bps: Some(BitRate(100_000_000)),
            ..plan(">= 90%")
        };
        assert_eq!(verdict(&bought), Verdict::Pass);
        let more = Plan {
            provisioned_bps: Some(BitRate(110_000_000)),
            ..plan(">= 90%")
        };
        assert_eq!(verdict(&more), Verdict::Fail);
        assert!(plan(">= 90%").check().is_err(), "a share of nothing");
    }

    #[test]
    fn a_run_that_was_cut_off_never_passes() {
        for outcome in [
            Outcome::Interrupted,
            Outcome::PeerInterrupted,
            Outcome::Failed {
                error: "gone".into(),
            },
        ] {
            let mut record = fixture::run(&plan(">= 1M"), &Traffic::default());
            record.outcome = outcome;
            let judgement = Judgement::of(&Evidence::of(&record)).unwrap();
            assert_eq!(judgement.verdict, Verdict::Inconclusive);
            assert!(judgement.reason.is_some());
        }
        assert_eq!(verdict(&plan(">= 1M")), Verdict::Pass);
    }

    #[test]
    fn each_direction_must_pass() {
        let both = Plan {
            direction: Direction::Both,
            ..plan(">= 90M")
        };
        assert_eq!(verdict(&both), Verdict::Pass);
        let mut record = fixture::run(&both, &Traffic::default());
        record.plan.expect = Some("<= 200M".parse().unwrap());
        assert_eq!(
            Judgement::of(&Evidence::of(&record))
                .unwrap()
                .directions
                .len(),
            2
        );
    }

    #[test]
    fn a_run_that_is_not_steady_is_looked_at_part_by_part() {
        let wavers = Traffic {
            levels: vec![(0.0, 1.0), (4.0, 0.3), (7.0, 1.0)],
            ..Traffic::default()
        };
        let of = |wanted: &str| {
            let record = fixture::run(&plan(wanted), &wavers);
            Judgement::of(&Evidence::of(&record)).unwrap()
        };
        // Far above anything that was seen, far below it, and between the levels.
        assert_eq!(of(">= 900M").verdict, Verdict::Fail);
        assert_eq!(of(">= 50M").verdict, Verdict::Inconclusive);
    }

    #[test]
    fn what_a_stock_receiver_does_not_tell_is_not_decided() {
        let plan = Plan {
            protocol: crate::plan::Protocol::Udp,
            block_bytes: crate::plan::DEFAULT_UDP_BLOCK,
            rate_bps: Some(BitRate(100_000_000)),
            ..plan(">= 1M")
        };
        let mut record = fixture::run(&plan, &Traffic::default());
        record.server = None;
        let judgement = Judgement::of(&Evidence::of(&record)).unwrap();
        assert_eq!(judgement.verdict, Verdict::Inconclusive);
        assert!(
            judgement.directions[0]
                .reason
                .as_ref()
                .unwrap()
                .contains("sender")
        );
    }

    #[test]
    fn what_cannot_be_wanted_is_refused_with_an_example() {
        for wrong in [
            "", "9G", "= 9G", ">= ", ">= 9X", "10G..9G", "9G..", "..", ">= -1", ">= 1001%", "> x%",
            "90%..80%", ">=> 1",
        ] {
            let error = wrong.parse::<Wanted>().unwrap_err().to_string();
            assert!(error.contains("held against"), "{wrong}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_wanted_reads_back_as_it_was_written(
            low in any::<u64>().prop_map(|rate| rate >> 2),
            more in 0_u64..1 << 60,
            kind in 0_u8..5,
            percent in proptest::option::of(0_u16..1000),
        ) {
            let amount = percent.map_or(Amount::Rate(BitRate(low)), |percent| {
                Amount::PercentOfProvisioned(f64::from(percent) / 10.0)
            });
            let wanted = match kind {
                0 => Wanted::AtLeast(amount),
                1 => Wanted::MoreThan(amount),
                2 => Wanted::AtMost(amount),
                3 => Wanted::LessThan(amount),
                _ => Wanted::Within(Amount::Rate(BitRate(low)), Amount::Rate(BitRate(low.saturating_add(more)))),
            };
            prop_assert_eq!(wanted.to_string().parse::<Wanted>().unwrap(), wanted);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}") {
            drop(text.parse::<Wanted>());
        }

        #[test]
        fn a_wider_interval_never_decides_more(
            low in 0.0..1e9_f64, width in 0.0..1e9_f64, more in 0.0..1e9_f64, bound in 1_u64..2_000_000_000,
        ) {
            let wanted = Wanted::AtLeast(Amount::Rate(BitRate(bound)));
            let narrow = wanted.judge(None, [low, low + width]);
            let wide = wanted.judge(None, [(low - more).max(0.0), low + width + more]);
            prop_assert!(wide == Verdict::Inconclusive || wide == narrow);
        }
    }
}
