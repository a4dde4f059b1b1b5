//! Whether a path did what its scenario says, by its own counters.

use linerate_lab::path::{Counters, Direction};
use linerate_lab::scenario::{Claim, Scenario, Standing, Way};
use linerate_model::units::Nanos;

use crate::course::{Course, packet};

fn read(text: &str) -> Scenario {
    Scenario::parse("x.toml", &format!("name = \"x\"\n{text}")).expect("the text is right")
}

/// What the scenario's forward direction counts under `packets` packets at `rate`.
fn counted(scenario: &Scenario, rate: &str, seconds: u64) -> Counters {
    let mut course = Course::of(Direction::new(&scenario.path.forward, 3));
    course.direction.begin(Nanos::ZERO);
    course.load(
        packet(0, 1462),
        rate,
        Nanos::ZERO,
        Nanos::from_millis(seconds * 1000),
    );
    course.finish();
    *course.direction.counters()
}

fn standing(scenario: &Scenario, claim: Claim, forward: &Counters) -> Standing {
    let checked = scenario.check_claims(forward, &Counters::default());
    let found = checked
        .iter()
        .find(|checked| (checked.way, checked.claim) == (Way::Forward, claim));
    found
        .unwrap_or_else(|| panic!("no claim {claim:?} in {checked:?}"))
        .standing
}

#[test]
fn what_a_path_does_is_shown_and_what_it_does_not_is_refuted() {
    for (text, claim) in [
        ("[path]\nrtt = \"20ms\"", Claim::Delays),
        ("[path]\nrtt = \"4ms\"\njitter = \"10ms\"", Claim::Wavers),
        (
            "[path]\nrate = \"10M\"\n[expect]\ntop = \"path-full\"",
            Claim::Fills,
        ),
        ("[path]\nloss = 1e-2", Claim::Loses),
        ("[path]\nloss = { every = 100 }", Claim::Loses),
        (
            "[path]\nloss = { model = \"gilbert\", p = 0.01, r = 0.3 }",
            Claim::Loses,
        ),
        (
            "[path]\npolicer = { rate = \"5M\", burst = \"20kB\" }",
            Claim::Polices,
        ),
        (
            "[path]\nreorder = { fraction = 0.05, delay = \"5ms\" }",
            Claim::Reorders,
        ),
        ("[path]\nduplicate = 0.05", Claim::Duplicates),
        ("[path]\nrate = \"10M\"\ncodel = true", Claim::Manages),
        ("[path]\nmax_packet = { bytes = 1400 }", Claim::Stops),
        (
            "[[path.change]]\nat = \"1s\"\nrtt = \"1ms\"",
            Claim::Changes,
        ),
        ("[expect]\ntop = \"receive-window\"", Claim::LosesNothing),
    ] {
        let scenario = read(text);
        let counters = counted(&scenario, "12M", 5);
        assert_eq!(
            standing(&scenario, claim, &counters),
            Standing::Shown,
            "{text}\n{counters:?}"
        );
        // A path that does nothing of it is refuted, or has seen too little to tell.
        let mut other = counted(&read(""), "12M", 5);
        other.loss_trials = if claim == Claim::Loses { 5000 } else { 0 };
        if claim == Claim::LosesNothing {
            other.ours.dropped.queue = other.ours.delivered;
        }
        assert_eq!(
            standing(&scenario, claim, &other),
            Standing::Refuted,
            "{text}"
        );
    }
}

#[test]
fn too_few_packets_refute_no_odds() {
    let scenario = read("[path]\nloss = 1e-4");
    assert_eq!(
        standing(&scenario, Claim::Loses, &counted(&scenario, "1M", 1)),
        Standing::TooFew
    );
    let mut wrong = counted(&scenario, "12M", 1);
    wrong.loss_hits = 100;
    assert_eq!(standing(&scenario, Claim::Loses, &wrong), Standing::Refuted);
}

#[test]
fn claims_are_made_where_the_test_shows_them() {
    let text = "[path]\nrtt = \"20ms\"\npolicer = { rate = \"5M\", burst = \"20kB\" }\nloss = 0.1";
    let claims = |args: &str| read(&format!("{text}\n[test]\nargs = \"{args}\"")).claims();
    assert_eq!(
        claims(""),
        [
            (Way::Forward, Claim::Delays),
            (Way::Forward, Claim::Loses),
            (Way::Forward, Claim::Polices),
            (Way::Back, Claim::Delays),
            (Way::Back, Claim::Loses),
        ]
    );
    assert!(claims("-R").contains(&(Way::Back, Claim::Polices)));
    assert!(!claims("-R").contains(&(Way::Forward, Claim::Polices)));
}

#[test]
fn a_path_that_may_be_full_may_drop() {
    let claims =
        |top: &str| read(&format!("[path]\nrate = \"1G\"\n[expect]\ntop = {top}")).claims();
    let clean = (Way::Forward, Claim::LosesNothing);
    assert!(claims("[\"sender-cpu\", \"receiver-cpu\"]").contains(&clean));
    assert!(!claims("[\"path-full\", \"sender-cpu\"]").contains(&clean));
    assert!(!claims("[]").contains(&clean));
}

#[test]
fn a_path_is_as_full_as_its_scenario_says() {
    // 10 Mbit/s for one second, offered 5, which arrive late by the round trip.
    let text = |range: &str| {
        format!(
            "[path]\nrate = \"10M\"\n[test]\nargs = \"-t 1\"\n[expect]\nutilisation = \"{range}\""
        )
    };
    let half = counted(&read(&text("0..1")), "5M", 1);
    for (range, is) in [
        ("0.4..0.6", Standing::Shown),
        ("0.8..1.05", Standing::Refuted),
        ("0..0.3", Standing::Refuted),
    ] {
        let scenario = read(&text(range));
        assert_eq!(standing(&scenario, Claim::Carries, &half), is, "{range}");
    }
    let wrong = Scenario::parse(
        "x.toml",
        "name = \"x\"\n[expect]\nutilisation = \"0.9..0.1\"\n",
    );
    assert!(
        wrong
            .unwrap_err()
            .to_string()
            .contains("begins above its end")
    );
    let wrong = Scenario::parse("x.toml", "name = \"x\"\n[expect]\nutilisation = \"full\"\n");
    assert!(wrong.unwrap_err().to_string().contains("0.85..1"));
}
