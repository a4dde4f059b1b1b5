//! Remedies: read, applied, and held against what was promised.

use linerate_experiment::grade::{self, Observed, Rounds};
use linerate_experiment::remedy::{self, Change, Outcome, Promise, Unmapped};
use linerate_lab::scenario::Scenario;
use linerate_model::finding::Expected;
use linerate_model::record::Role;
use linerate_model::remedy::{BufferSizes, Fix, Remedy};
use linerate_model::units::{BitRate, Bytes, Nanos};

fn remedy(host: Role, fix: Fix) -> Remedy {
    Remedy { host, fix }
}

fn scenario(args: &str) -> Scenario {
    let text = format!("name = \"one\"\nseed = 5\n[test]\nargs = \"{args}\"");
    Scenario::parse("x.toml", &text).expect("the text is right")
}

const fn sizes(first: Option<[u64; 2]>, most: u64) -> BufferSizes {
    BufferSizes { first, most }
}

#[test]
fn each_kind_of_remedy_changes_its_part_of_the_scenario() {
    let before = scenario("-t 5 -P 2 -w 64K");
    let after = |host, fix| {
        Change::of(&remedy(host, fix))
            .expect("a lab can do it")
            .applied(&before)
    };
    let args = |fix| after(Role::Client, fix).test.args.join(" ");
    let rmem = sizes(Some([4096, 131_072]), 4_194_304);
    let server = after(Role::Server, Fix::ReceiveBuffer(rmem));
    assert_eq!(server.receiver.tcp_rmem, Some([4096, 131_072, 4_194_304]));
    assert_eq!(server.sender.tcp_rmem, None);
    let wmem = sizes(Some([4096, 16_384]), 2_097_152);
    let client = after(Role::Client, Fix::SendBuffer(wmem));
    assert_eq!(client.sender.tcp_wmem, Some([4096, 16_384, 2_097_152]));
    assert_eq!(after(Role::Client, Fix::Mtu(9000)).sender.mtu, 9000);
    let probing = after(Role::Client, Fix::MtuProbing);
    assert_eq!(probing.sender.sysctl["net.ipv4.tcp_mtu_probing"], "1");
    let cubic = after(Role::Client, Fix::Congestion("cubic".to_owned()));
    assert_eq!(cubic.sender.congestion, "cubic");
    assert_eq!(
        args(Fix::Window(Some(Bytes(1 << 20)))),
        "-t 5 -P 2 -w 1048576"
    );
    assert_eq!(args(Fix::Window(None)), "-t 5 -P 2");
    assert_eq!(args(Fix::SegmentSize(None)), "-t 5 -P 2 -w 64K");
    assert_eq!(args(Fix::Streams(8)), "-t 5 -w 64K -P 8");
    assert_eq!(
        args(Fix::Duration(Nanos::from_millis(30_000))),
        "-P 2 -w 64K -t 30"
    );
    assert_eq!(
        args(Fix::Pacing(BitRate(84_000_000))),
        "-t 5 -P 2 -w 64K --fq-rate 84000000"
    );
}

#[test]
fn each_change_has_a_document() {
    let rmem = sizes(Some([4096, 131_072]), 4_194_304);
    for (fix, document) in [
        (
            Fix::ReceiveBuffer(rmem),
            r#"{"what":"receive_buffer","host":"client","bytes":[4096,131072,4194304]}"#,
        ),
        (Fix::Window(None), r#"{"what":"window","bytes":null}"#),
        (
            Fix::SegmentSize(Some(1400)),
            r#"{"what":"segment_size","bytes":1400}"#,
        ),
        (Fix::Streams(8), r#"{"what":"streams","streams":8}"#),
        (
            Fix::Duration(Nanos(1_000_000_000)),
            r#"{"what":"duration","span_ns":1000000000}"#,
        ),
        (
            Fix::Pacing(BitRate(86_000_000)),
            r#"{"what":"pacing","bps":86000000}"#,
        ),
    ] {
        let change = Change::of(&remedy(Role::Client, fix)).expect("a lab can do it");
        let found = serde_json::to_value(&change).expect("it has a document");
        assert_eq!(found.to_string(), document);
    }
}

#[test]
fn what_a_lab_cannot_do_is_said() {
    for fix in [
        Fix::HystartOff,
        Fix::ReceiveBufferLimit(Bytes(67_108_864)),
        // The lab sets all three, and knows no other two.
        Fix::ReceiveBuffer(sizes(None, 4_194_304)),
        Fix::SendBuffer(sizes(Some([4096, 16_384]), 1 << 31)),
        Fix::SendBuffer(sizes(Some([0, 16_384]), 1 << 20)),
        Fix::Streams(0),
        Fix::Streams(129),
        Fix::Duration(Nanos(0)),
        Fix::Mtu(68),
    ] {
        let (setting, value) = (fix.setting(), fix.value());
        let unmapped = Change::of(&remedy(Role::Client, fix)).expect_err(setting);
        let said = unmapped.to_string();
        assert!(said.contains(setting), "{said}");
        let with_value = matches!(unmapped, Unmapped::Value { .. });
        assert_eq!(said.contains(&format!("'{value}'")), with_value, "{said}");
    }
}

fn promise(rate_bps: Option<f64>) -> Promise {
    Promise {
        finding: "receive-window".to_owned(),
        remedy: remedy(Role::Client, Fix::Streams(4)),
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
            assert_eq!(changed.test.plan().expect("it reads").streams, 4);
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
    assert!(report.text().contains("no rate was predicted"));
}
