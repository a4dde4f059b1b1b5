//! What may limit a rate, and what each cause makes of the runs that tell causes apart.
//!
//! The shares are judgements of how often a cause gives that answer: measured where labs of known truth were, and never 0
//! or 1, so that one run that a busy machine disturbed does not decide against three.

use linerate_analysis::time_budget::TimeBudget;
use linerate_model::finding::Finding;

use crate::counter_test::Known;

/// One of the causes that are weighed, and what the further runs give where it is right.
#[derive(Debug, PartialEq)]
pub(super) struct Cause {
    /// The findings that it would be, the most usual first.
    pub(super) findings: &'static [&'static str],
    /// Where it is.
    pub(super) place: Place,
    /// How often it is this where segments were lost and one run names another cause, or none, in relation to the others.
    pub(super) behind_loss: f64,
    /// How often datagrams at twice the rate pass, are dropped without a queue, are dropped behind a queue by a path that TCP
    /// fills, or by one that it does not fill, where the queue is short or long.
    pub(super) faster: [f64; 5],
    /// The same at six times the rate, where twice the rate passed.
    pub(super) much_faster: [f64; 5],
    /// How often datagrams just below the rate are lost as TCP's segments are, arrive, or wait behind those of others.
    pub(super) below: [f64; 3],
    /// How often four times as many streams carry more.
    pub(super) streams: f64,
    /// How often the rate follows the window.
    pub(super) window: f64,
    /// How often CUBIC carries more than another congestion control.
    pub(super) cubic: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Network,
    Hosts,
}

/// All of them.
pub(super) const CAUSES: [Cause; 12] = [
    Cause {
        findings: &["path-full", "bufferbloat", "ecn"],
        place: Place::Network,
        behind_loss: 1.0,
        faster: [0.02, 0.003, 0.927, 0.015, 0.035],
        // Six times what a full path carries cannot pass: as unlikely as behind a policer.
        much_faster: [0.04, 0.01, 0.47, 0.16, 0.32],
        below: [0.05, 0.93, 0.02],
        streams: 0.03,
        window: 0.03,
        cubic: 0.05,
    },
    Cause {
        findings: &["policer"],
        place: Place::Network,
        behind_loss: 4.0,
        faster: [0.05, 0.89, 0.03, 0.0225, 0.0075],
        much_faster: [0.04, 0.89, 0.02, 0.04, 0.01],
        below: [0.05, 0.93, 0.02],
        streams: 0.10,
        window: 0.03,
        cubic: 0.05,
    },
    // A queue that bursts overrun.
    Cause {
        findings: &["network-loss"],
        place: Place::Network,
        behind_loss: 5.0,
        faster: [0.1, 0.015, 0.17, 0.665, 0.05],
        much_faster: [0.25, 0.02, 0.03, 0.651, 0.049],
        below: [0.05, 0.93, 0.02],
        streams: 0.40,
        window: 0.03,
        cubic: 0.30,
    },
    // One by one, or in bursts: whatever the rate.
    Cause {
        findings: &["random-loss", "small-mss"],
        place: Place::Network,
        behind_loss: 6.0,
        faster: [0.74, 0.02, 0.08, 0.04, 0.12],
        much_faster: [0.45, 0.02, 0.03, 0.125, 0.375],
        below: [0.96, 0.03, 0.01],
        streams: 0.90,
        window: 0.05,
        cubic: 0.35,
    },
    Cause {
        findings: &["congested"],
        place: Place::Network,
        behind_loss: 1.0,
        faster: [0.05, 0.02, 0.4, 0.106, 0.424],
        much_faster: [0.25, 0.03, 0.2, 0.104, 0.416],
        below: [0.1, 0.1, 0.8],
        streams: 0.80,
        window: 0.05,
        cubic: 0.05,
    },
    Cause {
        findings: &["shaper", "path-change", "bimodal", "stall", "unstable"],
        place: Place::Network,
        behind_loss: 0.5,
        faster: [0.15, 0.03, 0.5, 0.0704, 0.2496],
        much_faster: [0.3, 0.05, 0.2, 0.099, 0.351],
        below: [0.15, 0.75, 0.1],
        streams: 0.20,
        window: 0.05,
        cubic: 0.05,
    },
    Cause {
        findings: &[
            "congestion-control",
            "slow-start",
            "early-slow-start-exit",
            "reordering",
        ],
        place: Place::Network,
        behind_loss: 1.0,
        faster: [0.4, 0.01, 0.19, 0.072, 0.328],
        much_faster: [0.4, 0.01, 0.03, 0.1008, 0.4592],
        below: [0.05, 0.93, 0.02],
        streams: 0.85,
        window: 0.05,
        cubic: 0.85,
    },
    Cause {
        findings: &["receive-window"],
        place: Place::Hosts,
        behind_loss: 0.1,
        faster: [0.75, 0.01, 0.06, 0.045, 0.135],
        much_faster: [0.45, 0.02, 0.03, 0.125, 0.375],
        below: [0.05, 0.93, 0.02],
        streams: 0.93,
        window: 0.93,
        cubic: 0.05,
    },
    Cause {
        findings: &["send-buffer"],
        place: Place::Hosts,
        behind_loss: 0.1,
        faster: [0.75, 0.01, 0.06, 0.045, 0.135],
        much_faster: [0.45, 0.02, 0.03, 0.125, 0.375],
        below: [0.05, 0.93, 0.02],
        streams: 0.93,
        window: 0.80,
        cubic: 0.05,
    },
    Cause {
        findings: &["receiver-application"],
        place: Place::Hosts,
        behind_loss: 0.1,
        faster: [0.75, 0.01, 0.06, 0.045, 0.135],
        much_faster: [0.45, 0.02, 0.03, 0.125, 0.375],
        below: [0.05, 0.93, 0.02],
        streams: 0.06,
        window: 0.05,
        cubic: 0.05,
    },
    Cause {
        findings: &[
            "sender-cpu",
            "receiver-cpu",
            "virtualisation-limit",
            "sender-application",
        ],
        place: Place::Hosts,
        behind_loss: 0.2,
        faster: [0.4, 0.05, 0.35, 0.06, 0.14],
        much_faster: [0.45, 0.02, 0.03, 0.15, 0.35],
        below: [0.1, 0.88, 0.02],
        streams: 0.40,
        window: 0.05,
        cubic: 0.05,
    },
    Cause {
        findings: &["rate-capped"],
        place: Place::Hosts,
        behind_loss: 0.1,
        faster: [0.8, 0.02, 0.06, 0.03, 0.09],
        much_faster: [0.45, 0.02, 0.03, 0.125, 0.375],
        below: [0.05, 0.93, 0.02],
        streams: 0.90,
        window: 0.03,
        cubic: 0.05,
    },
];

/// The first finding is right so much more often than any other cause.
const FIRST: f64 = 40.0;
/// So is one that stands behind it.
const ALSO: f64 = 2.0;
/// Where nearly all of the time passed waiting for the network, or hardly any, the other half is so unlikely.
const ELSEWHERE: f64 = 0.1;
const MOST: f64 = 0.8;
const LITTLE: f64 = 0.3;
/// A congestion control other than these two is so much more often at fault than they are.
const OTHER_CONTROL: f64 = 20.0;
const USUAL_CONTROLS: [&str; 2] = ["cubic", "bbr"];
/// So much was lost that it may be what limits: one in so many segments.
const LOST: f64 = 1e-5;
/// Findings that say that something is not known.
const OPEN: [&str; 3] = ["network-loss", "unstable", "cannot-tell"];

impl Cause {
    /// What it is called.
    pub(super) fn id(&self) -> &'static str {
        self.findings.first().copied().unwrap_or_default()
    }

    pub(super) fn is(&self, finding: &Finding) -> bool {
        self.findings.contains(&finding.id.as_str())
    }
}

/// Whether it says no more than that something is not known.
pub(super) fn is_open(finding: &Finding) -> bool {
    OPEN.contains(&finding.id.as_str())
}

/// Whether runs of this kind can tell what is behind a first finding.
pub(super) fn in_scope(first: &Finding) -> bool {
    is_open(first) || CAUSES.iter().any(|cause| cause.is(first))
}

/// How likely each cause is by the first run, in relation to the others.
pub(super) fn before(findings: &[Finding], known: &Known<'_>) -> [f64; CAUSES.len()] {
    let first = findings.first().map_or("", |first| first.id.as_str());
    let lost = known.lost_share().is_some_and(|share| share > LOST);
    let budget = known.direction.budget.as_ref().ok();
    let network = budget.map(TimeBudget::network);
    let control = known.control();
    let unusual = control.is_some_and(|control| {
        !USUAL_CONTROLS
            .iter()
            .any(|usual| control.starts_with(usual))
    });
    CAUSES.each_ref().map(|cause| {
        let named = if cause.findings.contains(&first) && !OPEN.contains(&first) {
            FIRST
        } else if lost {
            cause.behind_loss
        } else {
            1.0
        };
        let also = findings.iter().skip(1).any(|finding| cause.is(finding));
        let elsewhere = network.is_some_and(|share| match cause.place {
            Place::Network => share < LITTLE,
            Place::Hosts => share > MOST,
        });
        let at_fault = cause.id() == "congestion-control" && unusual;
        let times = |holds: bool, times: f64| if holds { times } else { 1.0 };
        named * times(also, ALSO) * times(elsewhere, ELSEWHERE) * times(at_fault, OTHER_CONTROL)
    })
}
