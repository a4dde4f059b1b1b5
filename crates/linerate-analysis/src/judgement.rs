//! Whether a run shows what was wanted of it.
//!
//! What is compared is the goodput of the plateau, payload in bit/s, of each direction by itself. A run that was cut
//! off, that failed, or whose ledger does not balance passes nothing and fails nothing. Of a run that was not steady
//! the interval says too little, so every tenth of it must agree as well.

use linerate_model::record::{Flow, Outcome};
use linerate_model::units::BitRate;
use linerate_model::wanted::{Verdict, Wanted};
use serde::Serialize;

use crate::evidence::{DirectionEvidence, Evidence, Place};
use crate::statistics::{self, Unsteady};

/// Parts of a run that was not steady.
const PARTS: usize = 10;

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
    /// PASS, FAIL or INCONCLUSIVE.
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
        Outcome::Failed { .. } => Some("the run failed before its end".to_owned()),
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
            "only the sender was measured, and sent data may not arrive: a linerate server reports the interval",
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
                "every tenth of it agrees"
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
    use linerate_model::plan::{Direction, Plan};
    use linerate_testing::fixture::{self, Traffic};

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
            protocol: linerate_model::plan::Protocol::Udp,
            block_bytes: linerate_model::plan::DEFAULT_UDP_BLOCK,
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
}
