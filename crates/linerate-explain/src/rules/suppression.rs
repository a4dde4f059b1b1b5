//! What is not said beside what: the only place where findings know of one another.

use linerate_model::finding::Finding;

use crate::facts::case::Case;
use crate::facts::{overtaking, repeats, slow_start, transfer, working_latency};

/// What keeps a finding from being said.
enum Beside {
    /// A rule that found something in the same direction, said or not.
    Rule(&'static str),
    /// What is known of the direction.
    Fact(fn(&Case<'_>) -> bool),
}

use Beside::{Fact, Rule};

/// While a disk holds a transfer up, connections show what follows from it.
const BY_A_DISK: Beside = Fact(transfer::is_the_answer);

/// Findings, each with what explains the same better.
const UNSAID: [(&str, &[Beside]); 17] = [
    ("stall", &[BY_A_DISK]),
    ("virtualisation-limit", &[BY_A_DISK]),
    ("sender-cpu", &[BY_A_DISK]),
    ("receiver-cpu", &[BY_A_DISK]),
    ("receiver-application", &[BY_A_DISK]),
    ("receive-window", &[BY_A_DISK]),
    ("send-buffer", &[BY_A_DISK]),
    ("sender-application", &[BY_A_DISK]),
    ("bimodal", &[BY_A_DISK]),
    ("rate-capped", &[BY_A_DISK]),
    ("slow-start", &[BY_A_DISK]),
    // A round trip that stepped with the path is no queue.
    ("shaper", &[Rule("policer"), Rule("path-change")]),
    (
        "congested",
        &[Rule("policer"), Rule("path-change"), Rule("shaper")],
    ),
    // Full at two levels, with other traffic, or filled late: that is the answer.
    (
        "path-full",
        &[
            Rule("shaper"),
            Rule("congested"),
            Rule("bimodal"),
            Rule("path-change"),
            Rule("congestion-control"),
            Fact(slow_start::filled_late),
            Fact(slow_start::is_the_answer),
            BY_A_DISK,
        ],
    ),
    // Probes beside the load tell what waits, and where; behind a fair queue nothing else does.
    (
        "bufferbloat",
        &[Rule("working-latency"), Fact(working_latency::others_pass)],
    ),
    // Each of these makes a rate waver.
    (
        "unstable",
        &[
            Rule("stall"),
            Rule("shaper"),
            Rule("congested"),
            Rule("bimodal"),
            Rule("path-change"),
            Rule("congestion-control"),
            Rule("early-slow-start-exit"),
            Rule("ecn"),
            Fact(repeats::explain),
            Fact(|case| overtaking::seen_often(case).is_some()),
            Fact(slow_start::filled_late),
            Fact(|case| slow_start::most_of_the_run(case).is_some()),
            BY_A_DISK,
        ],
    ),
    // There is a reason.
    (
        "cannot-tell",
        &[
            Rule("mtu-black-hole"),
            Rule("early-slow-start-exit"),
            Rule("ecn"),
            Fact(|case| overtaking::seen_often(case).is_some()),
            Fact(|case| slow_start::most_of_the_run(case).is_some()),
            BY_A_DISK,
        ],
    ),
];

/// Whether a finding stays unsaid beside all that the rules `found` in this direction.
pub(crate) fn unsaid(case: &Case<'_>, finding: &Finding, found: &[Finding]) -> bool {
    let beside = UNSAID.iter().filter(|(id, _)| finding.id == *id);
    beside
        .flat_map(|(_, beside)| *beside)
        .any(|beside| match beside {
            Rule(id) => found.iter().any(|other| other.id == *id),
            Fact(holds) => holds(case),
        })
}

#[cfg(test)]
mod tests {
    use super::{Rule, UNSAID};
    use crate::rules::RULES;

    #[test]
    fn the_table_names_rules_and_goes_round_in_no_circle() {
        let place = |id: &str| UNSAID.iter().position(|(unsaid, _)| *unsaid == id);
        for (at, (id, beside)) in UNSAID.iter().enumerate() {
            assert_eq!(place(id), Some(at), "{id} has two lines");
            let rules = beside.iter().filter_map(|beside| match beside {
                Rule(id) => Some(*id),
                super::Fact(_) => None,
            });
            for rule in rules.chain([*id]) {
                assert!(RULES.iter().any(|(known, _)| *known == rule), "{rule}");
                // What keeps another from being said stands above it.
                assert!(
                    rule == *id || place(rule).is_none_or(|above| above < at),
                    "{rule}"
                );
            }
        }
    }
}
