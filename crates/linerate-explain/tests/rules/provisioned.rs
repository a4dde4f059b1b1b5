//! What was delivered against what was bought.

use linerate_model::finding::{Finding, Severity};
use linerate_model::plan::{Direction, Plan};
use linerate_model::units::BitRate;
use linerate_testing::fixture::{self, Traffic};

use super::{explain, tcp, udp};

fn bought(rate: u64) -> Plan {
    Plan {
        provisioned_bps: Some(BitRate(rate)),
        ..tcp()
    }
}

fn told(plan: &Plan, traffic: &Traffic) -> Vec<Finding> {
    let findings = explain(&fixture::run(plan, traffic));
    findings
        .into_iter()
        .filter(|finding| finding.id == "provisioned")
        .collect()
}

#[test]
fn nothing_is_said_where_nothing_was_bought() {
    assert!(told(&tcp(), &Traffic::default()).is_empty());
}

#[test]
fn a_healthy_path_is_as_bought_by_one_count_or_another() {
    // 95.4 Mbit/s of payload are 101 on the line.
    for rate in [101_000_000, 100_000_000, 95_400_000] {
        let findings = told(&bought(rate), &Traffic::default());
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0].sentence.starts_with("As contracted"),
            "{rate}: {}",
            findings[0].sentence
        );
        assert_eq!(findings[0].severity, Severity::Note);
    }
}

#[test]
fn less_and_more_are_told_with_how_much() {
    let less = told(&bought(200_000_000), &Traffic::default()).remove(0);
    assert!(
        less.sentence
            .starts_with("49 % below the contracted 200 Mbit/s: 95.4 Mbit/s of payload is "),
        "{}",
        less.sentence
    );
    let more = told(&bought(50_000_000), &Traffic::default()).remove(0);
    assert!(
        more.sentence
            .starts_with("91 % above the contracted 50.0 Mbit/s"),
        "{}",
        more.sentence
    );
    // After ten seconds a bucket may still be full.
    assert!(more.next.unwrap().contains("-t 60"));
}

#[test]
fn a_burst_before_the_plateau_is_told_apart() {
    let traffic = Traffic {
        levels: vec![(0.0, 4.0), (1.5, 1.0)],
        ..Traffic::default()
    };
    let finding = told(&bought(100_000_000), &traffic).remove(0);
    assert!(
        finding.sentence.starts_with("As contracted"),
        "{}",
        finding.sentence
    );
    assert!(
        finding.sentence.contains("token bucket"),
        "{}",
        finding.sentence
    );
}

#[test]
fn a_rate_that_was_asked_for_says_nothing_of_the_path() {
    let plan = Plan {
        provisioned_bps: Some(BitRate(1_000_000_000)),
        ..udp(100_000_000)
    };
    let traffic = Traffic {
        rate_bps: 100e6,
        ..Traffic::default()
    };
    let finding = told(&plan, &traffic).remove(0);
    assert!(
        finding
            .sentence
            .contains("the test requested only 100 Mbit/s"),
        "{}",
        finding.sentence
    );
}

#[test]
fn each_direction_is_held_against_it_and_a_wavering_rate_is_not() {
    let both = Plan {
        direction: Direction::Both,
        ..bought(100_000_000)
    };
    assert_eq!(told(&both, &Traffic::default()).len(), 2);
    let wavers = Traffic {
        levels: vec![(0.0, 1.0), (3.0, 0.3), (6.0, 1.0)],
        ..Traffic::default()
    };
    let finding = told(&bought(100_000_000), &wavers).remove(0);
    assert!(
        finding.sentence.contains("Cannot tell whether"),
        "{}",
        finding.sentence
    );
}
