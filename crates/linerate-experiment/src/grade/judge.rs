//! One run against what was expected of it.

use std::fmt;

use linerate_lab::scenario::{self, Expect};
use linerate_model::units::BitRate;
use serde::Serialize;

use super::Observed;

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// All as expected.
    Passed,
    /// All that could be judged is as expected; for the first finding there is no rule yet.
    NoRule,
    /// Something is not as expected.
    Missed,
}

impl Standing {
    /// What follows from what was remarked.
    pub(super) fn of(remarks: &[Remark]) -> Self {
        let each = remarks.iter().map(Remark::standing);
        each.max().unwrap_or(Self::Passed)
    }
}

/// Something to be said about a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Remark {
    /// The run could not be made.
    Failed {
        /// The error of the run, with its object.
        why: String,
    },
    /// No rule can find what is expected.
    NoRule {
        /// The findings without a rule.
        ids: Vec<String>,
    },
    /// The first finding is another one.
    WrongFirst {
        /// What it is; `None` = nothing was found.
        found: Option<String>,
        /// What was acceptable.
        expected: Vec<String>,
    },
    /// A finding that must stand beside the first one does not.
    Absent {
        /// The finding.
        id: String,
    },
    /// A finding that must not appear did.
    Forbidden {
        /// The finding.
        id: String,
    },
    /// A finding that was not expected stands beside.
    Beside {
        /// The finding.
        id: String,
    },
    /// Goodput is out of its range.
    Goodput {
        /// What was measured, bits per second; `None` = nothing.
        bps: Option<f64>,
        /// Lower end of the range that the scenario expects, bit/s.
        least: BitRate,
        /// Upper end, bit/s.
        most: BitRate,
    },
    /// The path did not do what the scenario says.
    Path {
        /// The direction, the claim, and the figures against it.
        evidence: String,
    },
    /// Too little passed to show that the path did what the scenario says.
    PathUndecided {
        /// The direction, the claim, and the figures.
        evidence: String,
    },
    /// The lab itself may have been the bottleneck, so that the run shows less.
    Lab {
        /// What of the lab lagged, and by how much.
        why: String,
    },
}

impl Remark {
    fn standing(&self) -> Standing {
        match self {
            Self::PathUndecided { .. } | Self::Lab { .. } => Standing::Passed,
            Self::NoRule { .. } => Standing::NoRule,
            Self::Failed { .. }
            | Self::WrongFirst { .. }
            | Self::Absent { .. }
            | Self::Forbidden { .. }
            | Self::Beside { .. }
            | Self::Goodput { .. }
            | Self::Path { .. } => Standing::Missed,
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { why } => write!(f, "the run failed: {why}"),
            Self::NoRule { ids } => write!(f, "no rule yet for {}", ids.join(", ")),
            Self::WrongFirst { found, expected } => write!(
                f,
                "first is {} instead of {}",
                found.as_deref().unwrap_or("nothing"),
                expected.join(" or ")
            ),
            Self::Absent { id } => write!(f, "{id} is absent"),
            Self::Forbidden { id } => write!(f, "{id} must not appear"),
            Self::Beside { id } => write!(f, "{id} was not expected"),
            Self::Goodput { bps, least, most } => match bps {
                Some(bps) => {
                    let bps = BitRate(linerate_model::units::whole(*bps));
                    write!(f, "goodput of {bps} is not within {least} to {most}")
                }
                None => write!(f, "no goodput, where {least} to {most} were expected"),
            },
            Self::Path { evidence } => write!(f, "the path did not do as it should: {evidence}"),
            Self::PathUndecided { evidence } => {
                write!(f, "too little evidence about the path: {evidence}")
            }
            Self::Lab { why } => write!(f, "the lab itself may have been the bottleneck: {why}"),
        }
    }
}

/// All that is to be said.
pub(super) fn remarks(expect: &Expect, observed: &Observed) -> Vec<Remark> {
    let mut remarks = findings(expect, &observed.findings);
    if let Some(range) = expect.goodput {
        // Nothing arrived is a rate of 0 here: a range that begins there allows it.
        let bps = observed.goodput_bps.unwrap_or(0.0);
        if !range.holds(bps) {
            remarks.push(Remark::Goodput {
                bps: observed.goodput_bps,
                least: range.least,
                most: range.most,
            });
        }
    }
    for checked in &observed.claims {
        let evidence = format!(
            "{:?} {:?}: {}",
            checked.way, checked.claim, checked.evidence
        );
        match checked.standing {
            scenario::Standing::Shown => {}
            scenario::Standing::Refuted => remarks.push(Remark::Path { evidence }),
            scenario::Standing::TooFew => remarks.push(Remark::PathUndecided { evidence }),
        }
    }
    let lab = observed.bottleneck.iter();
    remarks.extend(lab.map(|why| Remark::Lab { why: why.clone() }));
    remarks
}

fn has_rule(id: &str) -> bool {
    linerate_explain::rule_ids().any(|rule| rule == id)
}

fn findings(expect: &Expect, found: &[String]) -> Vec<Remark> {
    if expect.top.is_empty() && expect.with.is_empty() && expect.never.is_empty() {
        return Vec::new();
    }
    let forbidden = found.iter().filter(|id| expect.never.contains(id));
    let mut remarks: Vec<Remark> = forbidden
        .cloned()
        .map(|id| Remark::Forbidden { id })
        .collect();
    let first_is_right = found
        .first()
        .is_some_and(|first| expect.top.contains(first));
    let unruled = |ids: &[String]| -> Vec<String> {
        ids.iter().filter(|id| !has_rule(id)).cloned().collect()
    };
    let missing = unruled(&expect.top);
    if !first_is_right && !missing.is_empty() {
        // Its place, and additional findings, cannot be judged either.
        remarks.push(Remark::NoRule { ids: missing });
        return remarks;
    }
    if !first_is_right && !expect.top.is_empty() {
        remarks.push(Remark::WrongFirst {
            found: found.first().cloned(),
            expected: expect.top.clone(),
        });
    }
    let absent = expect
        .with
        .iter()
        .filter(|id| !found.contains(id) && has_rule(id));
    remarks.extend(absent.cloned().map(|id| Remark::Absent { id }));
    let missing: Vec<String> = unruled(&expect.with)
        .into_iter()
        .filter(|id| !found.contains(id))
        .collect();
    if !missing.is_empty() {
        remarks.push(Remark::NoRule { ids: missing });
    }
    if !expect.top.is_empty() && !expect.any_beside {
        // The first one was judged already; a second one of the acceptable first ones may accompany it.
        let allowed = [&expect.top, &expect.with, &expect.also, &expect.never];
        let beside = found
            .iter()
            .skip(1)
            .filter(|id| !allowed.iter().any(|ids| ids.contains(id)));
        remarks.extend(beside.cloned().map(|id| Remark::Beside { id }));
    }
    remarks
}
