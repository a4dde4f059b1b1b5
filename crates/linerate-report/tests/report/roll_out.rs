//! The table at the end of a roll-out.

use linerate_model::mesh::{MeshFigures, MeshOutcome};
use linerate_model::roll_out::{
    RollOut, RollOutHost, RollOutOutcome, RollOutState, RollOutTest, RollOutVerdict, SCHEMA_VERSION,
};
use linerate_report::roll_out;
use linerate_report::text::Style;

use crate::meshes::fold;

fn measured(goodput_bps: f64) -> MeshOutcome {
    MeshOutcome::Measured(MeshFigures {
        goodput_bps,
        interval_bps: None,
        retransmitted: None,
        rtt: None,
        finding: None,
        streams: Vec::new(),
    })
}

fn made() -> RollOut {
    let host = |number: usize| RollOutHost {
        name: format!("node{number:02}").into(),
        batch: None,
        canary: number == 1,
        set: None,
        outcome: match number {
            5 => RollOutOutcome::Unchanged {
                why: "its kernel has no bbr".into(),
            },
            6 => RollOutOutcome::RolledBack {
                why: "no new connection after the change".into(),
            },
            7 => RollOutOutcome::Unreachable {
                why: "No route to host".into(),
            },
            8 => RollOutOutcome::Unknown {
                why: "it stopped answering while 3 of 7 settings were applied\u{1b}[2J".into(),
            },
            _ => RollOutOutcome::Changed { settings: 7 },
        },
    };
    let test = |host, from, to, before, after, verdict| RollOutTest {
        host,
        from,
        to,
        before: Some(before),
        after,
        verdict,
    };
    let refused = MeshOutcome::Failed {
        stage: "connecting".into(),
        why: "refused".into(),
    };
    RollOut {
        schema_version: SCHEMA_VERSION,
        started_unix_s: 1_795_564_800,
        profile: "throughput".into(),
        state: RollOutState::Stopped {
            why: "2 failures, --max-failures 2".into(),
        },
        hosts: (1..=8).map(host).collect(),
        tests: vec![
            test(
                0,
                0,
                4,
                measured(1.2e9),
                Some(measured(9.4e9)),
                Some(RollOutVerdict::Better),
            ),
            test(
                1,
                4,
                1,
                measured(9.4e9),
                Some(measured(9.38e9)),
                Some(RollOutVerdict::Same),
            ),
            test(
                2,
                2,
                3,
                measured(9.4e9),
                Some(measured(4.1e9)),
                Some(RollOutVerdict::Worse),
            ),
            test(5, 5, 0, measured(1.2e9), Some(refused), None),
            test(7, 0, 3, measured(1.2e9), None, None),
        ],
    }
}

#[test]
fn each_outcome_has_its_hosts_and_each_test_its_two_rates() {
    let text = roll_out::report(&made(), &fold, Style::plain());
    let expected = "\
linerate tune apply throughput, Wed, 25 Nov 2026 00:00:00 GMT
Result      Stopped (2 failures, --max-failures 2); 8 hosts: 4 changed, 1 unchanged, 1 rolled back,
            1 unreachable, 1 unknown

Changed     node[01-04]: 7 settings
Unchanged   node05: its kernel has no bbr
Rolled back node06: no new connection after the change
Unreachable node07: No route to host
Unknown     node08: it stopped answering while 3 of 7 settings were applied\\u{1b}[2J

Test                                before         after
node01 → node05                1.20 Gbit/s   9.40 Gbit/s   +683.3 %, better
node05 → node02                9.40 Gbit/s   9.38 Gbit/s     −0.2 %, no difference
node03 → node04                9.40 Gbit/s   4.10 Gbit/s    −56.4 %, worse
node06 → node01                1.20 Gbit/s        failed
    connecting: refused
node01 → node04 (for node08)   1.20 Gbit/s             -
";
    assert_eq!(text, expected);
    assert!(!text.contains(" 0 bit/s"));
}

#[test]
fn many_tests_keep_the_worst() {
    let mut all = made();
    for number in 0..100 {
        all.tests.insert(0, all.tests[0].clone());
        all.tests[0].from = number % 8;
    }
    let text = roll_out::report(&all, &fold, Style::plain());
    assert!(text.lines().count() < 60, "{text}");
    assert!(text.contains("worse\n") && text.contains("connecting: refused"));
    assert!(text.contains("and 65 more, none of them worse"), "{text}");
}

#[test]
fn the_document_has_all_of_it() {
    let document = roll_out::document(&made());
    let value: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(value["kind"], "roll_out");
    assert_eq!(value["hosts"][5]["outcome"], "rolled_back");
    assert!(value["tests"][3]["after"].get("goodput_bps").is_none());
    assert_eq!(serde_json::from_str::<RollOut>(&document).unwrap(), made());
}
