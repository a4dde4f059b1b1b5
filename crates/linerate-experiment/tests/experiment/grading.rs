//! Runs held against what was expected.

use linerate_experiment::grade::{self, Observed, Remark, Report, Rounds, Standing};
use linerate_lab::scenario::{self, Checked, Claim, Scenario, Way};

fn scenario(name: &str, expect: &str) -> Scenario {
    let text = format!("name = \"{name}\"\nseed = 5\n[expect]\n{expect}");
    Scenario::parse("x.toml", &text).expect("the text is right")
}

fn found(findings: &[&str]) -> Observed {
    Observed {
        findings: findings.iter().map(|id| (*id).to_owned()).collect(),
        goodput_bps: Some(100e6),
        engine: "NFQUEUE".to_owned(),
        mode: "packet".to_owned(),
        attempt: 1,
        ..Observed::default()
    }
}

/// One run of a scenario that expects this.
fn judged(expect: &str, observed: Observed) -> (Standing, Vec<String>) {
    let run = grade::Run::of(&scenario("one", expect), 5, Ok(observed));
    (
        run.standing,
        run.remarks.iter().map(ToString::to_string).collect(),
    )
}

#[test]
fn what_is_expected_passes_and_all_else_is_said() {
    let cases: [(&str, &[&str], Standing, &[&str]); 12] = [
        ("top = \"path-full\"", &["path-full"], Standing::Passed, &[]),
        (
            "top = [\"stall\", \"path-full\"]",
            &["path-full", "stall"],
            Standing::Passed,
            &[],
        ),
        (
            "top = \"path-full\"",
            &["stall"],
            Standing::Missed,
            &["first is stall instead of path-full"],
        ),
        (
            "top = \"path-full\"",
            &[],
            Standing::Missed,
            &["first is nothing instead of path-full"],
        ),
        (
            "top = \"path-full\"",
            &["path-full", "unstable"],
            Standing::Missed,
            &["unstable was not expected"],
        ),
        (
            "top = \"path-full\"\nalso = [\"unstable\"]",
            &["path-full", "unstable"],
            Standing::Passed,
            &[],
        ),
        (
            "top = \"path-full\"\nwith = [\"slow-start\"]",
            &["path-full"],
            Standing::Missed,
            &["slow-start is absent"],
        ),
        (
            "top = \"path-full\"\nwith = [\"slow-start\"]",
            &["path-full", "slow-start"],
            Standing::Passed,
            &[],
        ),
        (
            "never = [\"stall\"]",
            &["path-full", "stall"],
            Standing::Missed,
            &["stall must not appear"],
        ),
        // Nobody can find a limit of virtualisation yet, so neither its absence nor what stands in its place is judged.
        (
            "top = \"counter-wrap\"",
            &["network-loss", "unstable"],
            Standing::NoRule,
            &["no rule yet for counter-wrap"],
        ),
        (
            "top = \"counter-wrap\"\nnever = [\"path-full\"]",
            &["path-full"],
            Standing::Missed,
            &["path-full must not appear", "no rule yet for counter-wrap"],
        ),
        (
            "top = \"path-full\"\nwith = [\"counter-wrap\"]",
            &["path-full"],
            Standing::NoRule,
            &["no rule yet for counter-wrap"],
        ),
    ];
    for (expect, findings, standing, remarks) in cases {
        let remarks: Vec<String> = remarks.iter().map(|remark| (*remark).to_owned()).collect();
        assert_eq!(
            judged(expect, found(findings)),
            (standing, remarks),
            "{expect} {findings:?}"
        );
    }
}

#[test]
fn goodput_is_held_against_its_range() {
    let range = |goodput_bps| {
        let observed = Observed {
            goodput_bps,
            ..found(&["path-full"])
        };
        judged("top = \"path-full\"\ngoodput = \"90M..95M\"", observed)
    };
    assert_eq!(range(Some(94.1e6)), (Standing::Passed, vec![]));
    let (standing, remarks) = range(Some(60e6));
    assert_eq!(standing, Standing::Missed);
    assert_eq!(
        remarks,
        ["goodput of 60.0 Mbit/s is not within 90.0 Mbit/s to 95.0 Mbit/s"]
    );
    assert_eq!(
        range(None).1,
        ["no goodput, where 90.0 Mbit/s to 95.0 Mbit/s were expected"]
    );
    let nothing = Observed {
        goodput_bps: None,
        ..found(&["stall"])
    };
    assert_eq!(
        judged("top = \"stall\"\ngoodput = \"0..95M\"", nothing).0,
        Standing::Passed
    );
}

#[test]
fn a_path_that_did_something_else_misses() {
    let claim = |standing| {
        let observed = Observed {
            claims: vec![Checked {
                way: Way::Forward,
                claim: Claim::Loses,
                standing,
                evidence: "0 of 9 segments".to_owned(),
            }],
            ..found(&["path-full"])
        };
        judged("top = \"path-full\"", observed)
    };
    assert_eq!(claim(scenario::Standing::Shown), (Standing::Passed, vec![]));
    let (standing, remarks) = claim(scenario::Standing::Refuted);
    assert_eq!(standing, Standing::Missed);
    assert_eq!(
        remarks,
        ["the path did not do as it should: Forward Loses: 0 of 9 segments"]
    );
    assert_eq!(claim(scenario::Standing::TooFew).0, Standing::Passed);
}

/// Three scenarios, three runs each, of which one fails and one goes wrong.
fn rounds(runs: u32, seeds_from: u64) -> Rounds {
    Rounds {
        runs,
        seeds_from,
        attempts: grade::ATTEMPTS,
    }
}

fn report() -> (Report, Vec<String>) {
    let scenarios = [
        scenario("healthy", "top = \"path-full\"\ngoodput = \"90M..110M\""),
        scenario("window", "top = \"receive-window\""),
        scenario("policed", "top = \"counter-wrap\""),
    ];
    let mut order = Vec::new();
    let run = |scenario: &Scenario, seed, _| match (scenario.name.as_str(), seed) {
        ("healthy", 6) => Err("no such path".to_owned()),
        ("window", 7) => Ok(Observed {
            seed,
            ..found(&["path-full"])
        }),
        ("window", _) => Ok(Observed {
            seed,
            ..found(&["receive-window"])
        }),
        ("policed", _) => Ok(Observed {
            seed,
            ..found(&["network-loss"])
        }),
        _ => Ok(Observed {
            seed,
            ..found(&["path-full"])
        }),
    };
    let report = grade::run(&scenarios, rounds(3, 0), run, |step| {
        order.push(format!(
            "{}/{} {} {}",
            step.done, step.of, step.name, step.seed
        ));
    });
    (report, order)
}

#[test]
fn scenarios_take_turns_with_a_new_seed_each_round() {
    let (report, order) = report();
    assert_eq!(
        order[..4],
        [
            "0/9 healthy 5",
            "1/9 window 5",
            "2/9 policed 5",
            "3/9 healthy 6"
        ]
    );
    assert_eq!(order.len(), 9);
    assert!(!report.passed());
    let seeds: Vec<u64> = report.rows[0]
        .runs
        .iter()
        .map(|run| run.observed.seed)
        .collect();
    assert_eq!(seeds, [5, 6, 7]);
    assert!(matches!(
        report.rows[0].runs[1].remarks[..],
        [Remark::Failed { .. }]
    ));
}

#[test]
fn other_seeds_can_be_asked_for() {
    let scenarios = [scenario("healthy", "top = \"path-full\"")];
    let mut seeds = Vec::new();
    let run = |_: &Scenario, seed, _| {
        seeds.push(seed);
        Ok(found(&["path-full"]))
    };
    grade::run(&scenarios, rounds(2, 100), run, |_| ());
    assert_eq!(seeds, [105, 106]);
}

#[test]
fn the_table_has_a_row_each_and_the_confusion() {
    assert_eq!(
        report().0.text(),
        "\
scenario  runs  first finding              goodput
healthy   ✓✗✓   path-full, (nothing)       100 Mbit/s
    1 of 3: the run failed: no such path
window    ✓✓✗   receive-window, path-full  100 Mbit/s
    1 of 3: first is path-full instead of receive-window
policed   ···   network-loss               100 Mbit/s
    no rule yet for counter-wrap

expected \\ found  path-full  receive-window
path-full         2          .
receive-window    1          2

9 runs of 3 scenarios: 4 as expected (✓), 3 as far as there are rules (·), 2 missed (✗); 0 made more than once, 0 disturbed to the last (?)
First finding right in 4 of 9 runs.
Healthy paths: 3 runs, 0 with another first finding, 0 with an additional finding.
"
    );
    assert!(Report::default().text().contains("0 runs of 0 scenarios"));
}

#[test]
fn the_document_is_a_list_of_names_and_runs() {
    let document = serde_json::to_value(report().0).expect("it can be written");
    let row = &document[1];
    assert_eq!(row["name"], "window");
    let run = &row["runs"][2];
    assert_eq!(run["seed"], 7);
    assert_eq!(run["findings"], serde_json::json!(["path-full"]));
    assert_eq!(run["goodput_bps"], 100e6);
    assert_eq!(run["engine"], "NFQUEUE");
    assert_eq!(run["mode"], "packet");
    assert_eq!(run["standing"], "missed");
    assert_eq!(run["remarks"][0]["kind"], "wrong_first");
}

/// One run of a scenario whose attempts give this, one after the other; how many were made.
fn attempts(all: &[Observed]) -> (u32, Report) {
    let scenarios = [scenario("healthy", "top = \"path-full\"")];
    let mut made = 0;
    let report = grade::run(
        &scenarios,
        rounds(1, 0),
        |_, seed, attempt| {
            made += 1;
            assert_eq!(attempt, made);
            Ok(Observed {
                seed,
                attempt,
                ..all[made as usize - 1].clone()
            })
        },
        |_| (),
    );
    (made, report)
}

#[test]
fn an_engine_that_cannot_tell_of_lateness_is_named() {
    let by_netem = Observed {
        engine: "netem".to_owned(),
        ..found(&["path-full"])
    };
    let (_, report) = attempts(&[by_netem]);
    assert!(!report.rows[0].runs[0].disturbed);
    let words = "1 of them by netem, which does not report how late packets left";
    assert!(report.text().contains(words), "{}", report.text());
    let (_, report) = attempts(&[found(&["path-full"])]);
    assert!(!report.text().contains("netem"), "{}", report.text());
}

#[test]
fn a_disturbed_run_is_made_again_whether_it_passed_or_missed() {
    let late = |findings: &[&str]| Observed {
        bottleneck: vec!["8 ms late".to_owned()],
        ..found(findings)
    };
    let (right, wrong) = (&["path-full"][..], &["stall"][..]);
    // The first calm one counts, whatever those before it found.
    for first in [right, wrong] {
        for (calm, standing) in [(right, Standing::Passed), (wrong, Standing::Missed)] {
            let (made, report) = attempts(&[late(first), found(calm)]);
            let run = &report.rows[0].runs[0];
            assert_eq!(
                (made, run.standing, run.disturbed, run.observed.attempt),
                (2, standing, false, 2)
            );
        }
    }
    // None is calm: the last counts as it stands, and is marked.
    for (last, standing, sign) in [
        (right, Standing::Passed, "✓?"),
        (wrong, Standing::Missed, "✗?"),
    ] {
        let (made, report) = attempts(&[late(wrong), late(right), late(last)]);
        let run = &report.rows[0].runs[0];
        assert_eq!((made, run.standing, run.disturbed), (3, standing, true));
        assert_eq!(report.passed(), standing == Standing::Passed);
        let text = report.text();
        for words in [
            sign,
            "seed 5: attempt 3",
            "8 ms late",
            "1 made more than once, 1 disturbed to the last (?)",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
    // A run that is judged again is what it is.
    let mut read = 0;
    let again = Rounds {
        attempts: 1,
        ..rounds(1, 0)
    };
    let scenarios = [scenario("healthy", "top = \"path-full\"")];
    grade::run(
        &scenarios,
        again,
        |_, _, _| {
            read += 1;
            Ok(late(right))
        },
        |_| (),
    );
    assert_eq!(read, 1);
}

/// The grades of draws: name, what is found, and whether the path's counters confirm the draw.
fn drawn(draws: &[(&str, &str, &str, bool)]) -> Report {
    let mut scenarios = Vec::new();
    let mut given = Vec::new();
    for (name, expected, first, shown) in draws {
        let expect = format!("top = \"{expected}\"\nalso = \"any\"");
        scenarios.push(scenario(name, &expect));
        let standing = if *shown {
            scenario::Standing::Shown
        } else {
            scenario::Standing::Refuted
        };
        given.push(Observed {
            claims: vec![Checked {
                way: Way::Forward,
                claim: Claim::Carries,
                standing,
                evidence: "12 % carried".to_owned(),
            }],
            ..found(&[first, "stall"])
        });
    }
    let rounds = Rounds {
        runs: 1,
        seeds_from: 0,
        attempts: 1,
    };
    let mut given = given.into_iter();
    grade::run(
        &scenarios,
        rounds,
        |_, _, _| given.next().ok_or("no more".to_owned()),
        |_| {},
    )
}

#[test]
fn a_draw_counts_where_the_path_did_what_was_drawn() {
    let report = drawn(&[
        ("healthy-1", "path-full", "path-full", true),
        ("healthy-2", "path-full", "policer", true),
        ("healthy-3", "path-full", "slow-start", false),
        ("random-loss-4", "random-loss", "random-loss", true),
    ]);
    let text = report.drawn_text();
    assert!(
        text.contains("the first finding is right in 2 of 3 (66.7 %)"),
        "{text}"
    );
    assert!(
        text.contains("Healthy paths: 2, 1 with a false alarm."),
        "{text}"
    );
    assert!(
        text.contains("lab grade --drawn 1 --seeds-from 0  first is policer instead of path-full"),
        "{text}"
    );
    assert!(!report.drawn_passed());
    let right = drawn(&[("healthy-1", "path-full", "path-full", true)]);
    assert!(right.drawn_passed());
}
