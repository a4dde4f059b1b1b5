//! Remedies: read, applied, and held against what was promised.

use linerate_experiment::grade::{self, Observed, Rounds};
use linerate_experiment::remedy::{self, Change, Outcome, Promise};
use linerate_lab::scenario::Scenario;
use linerate_model::finding::{Expected, Remedy};
use linerate_model::record::Role;

fn remedy(host: Role, setting: &str, value: &str) -> Remedy {
    Remedy {
        host,
        setting: setting.to_owned(),
        value: value.to_owned(),
    }
}

fn scenario(args: &str) -> Scenario {
    let text = format!("name = \"one\"\nseed = 5\n[test]\nargs = \"{args}\"");
    Scenario::parse("x.toml", &text).expect("the text is right")
}

#[test]
fn each_kind_of_remedy_changes_its_part_of_the_scenario() {
    let before = scenario("-t 5 -P 2 -w 64K");
    let after = |host, setting, value| {
        Change::of(&remedy(host, setting, value))
            .expect(setting)
            .applied(&before)
    };
    let args = |setting, value| after(Role::Client, setting, value).test.args.join(" ");
    let server = after(Role::Server, "net.ipv4.tcp_rmem", "4096 131072 4194304");
    assert_eq!(server.receiver.tcp_rmem, Some([4096, 131_072, 4_194_304]));
    assert_eq!(server.sender.tcp_rmem, None);
    let client = after(Role::Client, "net.ipv4.tcp_wmem", "4096 16384 2097152");
    assert_eq!(client.sender.tcp_wmem, Some([4096, 16_384, 2_097_152]));
    assert_eq!(after(Role::Client, "mtu", "9000").sender.mtu, 9000);
    let probing = after(Role::Client, "net.ipv4.tcp_mtu_probing", "1");
    assert_eq!(probing.sender.sysctl["net.ipv4.tcp_mtu_probing"], "1");
    let cubic = after(Role::Client, "-C", "cubic");
    assert_eq!(cubic.sender.congestion, "cubic");
    assert_eq!(args("-w", "1M"), "-t 5 -P 2 -w 1048576");
    assert_eq!(args("-w", "none: autotuning goes further"), "-t 5 -P 2");
    assert_eq!(args("-P", "8"), "-t 5 -w 64K -P 8");
    assert_eq!(args("-t", "30"), "-P 2 -w 64K -t 30");
    assert_eq!(
        args("--fq-rate", "84000000"),
        "-t 5 -P 2 -w 64K --fq-rate 84000000"
    );
}

#[test]
fn what_a_lab_cannot_do_is_said() {
    let error = |setting, value| {
        let remedy = remedy(Role::Client, setting, value);
        Change::of(&remedy).expect_err(setting).to_string()
    };
    assert!(
        error("/sys/module/tcp_cubic/parameters/hystart", "0")
            .contains("/sys/module/tcp_cubic/parameters/hystart")
    );
    assert!(error("net.core.rmem_max", "67108864").contains("net.core.rmem_max"));
    for (setting, value) in [
        ("net.ipv4.tcp_rmem", "(the first two as they are) 4194304"),
        ("net.ipv4.tcp_wmem", "4096 16384"),
        ("-P", "0"),
        ("-P", "many"),
        ("-t", "-3"),
        ("mtu", "68"),
        ("--fq-rate", "fast"),
    ] {
        let said = error(setting, value);
        assert!(said.contains(setting) && said.contains(value), "{said}");
    }
}

fn promise(rate_bps: Option<f64>) -> Promise {
    Promise {
        finding: "receive-window".to_owned(),
        remedy: remedy(Role::Client, "-P", "4"),
        expected: rate_bps.map(|rate_bps| Expected {
            rate_bps,
            low_bps: rate_bps,
            high_bps: rate_bps,
            then: "the path".to_owned(),
        }),
    }
}

/// One graded run whose findings promise this, and the remedy's run gives that.
fn tried(promises: &[Promise], with: &[(f64, bool)]) -> remedy::Report {
    let scenarios = [scenario("-t 5")];
    let observed = |goodput, disturbed| Observed {
        seed: 5,
        goodput_bps: Some(goodput),
        bottleneck: if disturbed {
            vec!["late".to_owned()]
        } else {
            Vec::new()
        },
        ..Observed::default()
    };
    let graded = grade::run(
        &scenarios,
        Rounds {
            runs: 1,
            seeds_from: 0,
            attempts: 1,
        },
        |_, _, _| {
            Ok(Observed {
                promises: promises.to_vec(),
                ..observed(100e6, false)
            })
        },
        |_| (),
    );
    let mut runs = with.iter();
    remedy::run(
        &scenarios,
        &graded,
        |changed, seed| {
            assert_eq!(changed.test.option("-P"), Some("4"));
            // Other dice than those of the run that promised.
            assert_eq!(seed, 5 + remedy::AFTERWARDS);
            let (goodput, disturbed) = runs.next().expect("no more runs than these");
            Ok(observed(*goodput, *disturbed))
        },
        |_| (),
    )
}

#[test]
fn a_promise_is_kept_within_fifteen_percent() {
    for (measured, kept) in [(400e6, 1), (345e6, 1), (455e6, 1), (335e6, 0), (465e6, 0)] {
        let report = tried(&[promise(Some(400e6))], &[(measured, false)]);
        assert_eq!(report.kept(), (kept, 1), "{measured}");
        assert_eq!(report.passed(), kept == 1);
    }
}

#[test]
fn a_disturbed_run_is_made_again_and_never_counts_against() {
    let report = tried(&[promise(Some(400e6))], &[(100e6, true), (390e6, false)]);
    assert_eq!(report.kept(), (1, 1));
    let report = tried(&[promise(Some(400e6))], &[(100e6, true); 3]);
    assert_eq!(report.kept(), (0, 0));
    assert!(!report.passed());
    assert!(
        report
            .text()
            .contains("the lab itself may have been the bottleneck: late")
    );
}

#[test]
fn the_same_remedy_is_tried_once_and_one_without_a_rate_not_at_all() {
    let twice = [promise(Some(400e6)), promise(Some(300e6))];
    let report = tried(&twice, &[(400e6, false)]);
    assert_eq!(report.trials.len(), 1);
    let report = tried(&[promise(None)], &[]);
    assert!(matches!(report.trials[0].outcome, Outcome::NoRate));
    assert!(!report.passed());
    assert!(report.text().contains("no rate was promised"));
}
