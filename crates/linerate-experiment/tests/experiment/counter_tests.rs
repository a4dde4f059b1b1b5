//! Counter-tests: which runs, in which order, and what they decide.

use linerate_analysis::evidence::Evidence;
use linerate_experiment::counter_test::{self, Schedule};
use linerate_explain::explain;
use linerate_model::counter_test::{CounterRun, Variation, Verdict};
use linerate_model::finding::Finding;
use linerate_model::plan::{End, Plan};
use linerate_model::record::{Outcome, RunRecord};
use linerate_model::units::{BitRate, Nanos};
use linerate_testing::fixture::{self, Traffic};

fn window_limited() -> RunRecord {
    let traffic = Traffic::window_limited();
    let mut record = fixture::run(&Plan::new("server"), &traffic);
    for end in [&mut record.client, &mut record.server] {
        let host = &mut end.as_mut().expect("both ends").host;
        (host.rmem_max, host.wmem_max) = (Some(4 << 20), Some(4 << 20));
    }
    record
}

fn run(variation: Option<Variation>, goodput: f64) -> CounterRun {
    CounterRun {
        goodput_bps: Some(goodput),
        low_bps: Some(goodput * 0.98),
        high_bps: Some(goodput * 1.02),
        rtt_us: Some(12_000.0),
        lost: Some(0),
        sent: Some(10_000),
        ..CounterRun::failed(variation, String::new())
    }
}

/// The findings after counter-runs in which each change gives this many times the rate.
fn judged(mut record: RunRecord, times: impl Fn(&Variation) -> f64) -> Vec<Finding> {
    let evidence = Evidence::of(&record);
    let mut findings = explain(&evidence);
    let trials = counter_test::trials(&findings, &evidence);
    let schedule = Schedule::of(&record.plan, &trials, None);
    let rate = 143e6;
    record.counter_runs = schedule.make(
        |_, variation| {
            let goodput = rate * variation.map_or(1.0, &times);
            Ok(Some(run(variation.cloned(), goodput)))
        },
        |_, _| (),
    );
    counter_test::judge(&mut findings, &Evidence::of(&record));
    findings
}

#[test]
fn a_window_that_the_rate_follows_is_confirmed() {
    let findings = judged(window_limited(), |variation| match variation {
        Variation::Window { .. } => 2.8,
        _ => 3.9,
    });
    assert_eq!(findings[0].id, "receive-window");
    let tested = findings[0].tested.as_ref().expect("it was tested");
    assert_eq!(tested.verdict, Verdict::Confirmed);
    assert!(
        tested
            .sentence
            .starts_with("confirmed: with sockets of 1.00 MiB (-w) goodput is 2.8"),
        "{}",
        tested.sentence
    );
    let window = &tested.tests[0];
    let (low, high) = window.low.zip(window.high).expect("an interval");
    assert!(
        window.pairs == 2 && low < 2.8 && high > 2.8 && low > 2.6,
        "{window:?}"
    );
    assert_eq!(window.command, "linerate test server -w 1M");
}

#[test]
fn a_window_that_changes_nothing_withdraws_the_finding() {
    let findings = judged(window_limited(), |_| 1.0);
    let last = findings.last().expect("at least one");
    assert_eq!(last.id, "receive-window");
    let tested = last.tested.as_ref().expect("it was tested");
    assert_eq!(tested.verdict, Verdict::Refuted);
    assert!(
        tested
            .sentence
            .contains("the window does not limit the rate")
    );
}

#[test]
fn tests_that_disagree_or_straddle_decide_nothing() {
    let disagree = judged(window_limited(), |variation| match variation {
        Variation::Window { .. } => 2.8,
        _ => 1.0,
    });
    let tested = disagree[0].tested.as_ref().expect("it was tested");
    assert_eq!(tested.verdict, Verdict::Undecided);
    assert!(tested.sentence.contains("disagree"), "{}", tested.sentence);
    let straddle = judged(window_limited(), |_| 1.5);
    let tested = straddle[0].tested.as_ref().expect("it was tested");
    assert_eq!(tested.verdict, Verdict::Undecided);
}

#[test]
fn a_full_path_that_four_streams_do_not_fill_more_is_confirmed() {
    let full = || {
        let traffic = Traffic {
            rate_bps: 143e6,
            ..Traffic::default()
        };
        fixture::run(&Plan::new("server"), &traffic)
    };
    let verdict = |times: f64| {
        let findings = judged(full(), |variation| match variation {
            Variation::Streams { .. } => times,
            _ => 0.9,
        });
        let found = findings.iter().find(|finding| finding.id == "path-full");
        let tests = &found
            .expect("it is full")
            .tested
            .as_ref()
            .expect("tested")
            .tests;
        tests[0].verdict
    };
    assert_eq!(verdict(1.05), Verdict::Confirmed);
    assert_eq!(verdict(2.0), Verdict::Refuted);
}

#[test]
fn without_counter_runs_the_findings_stay_as_they_are() {
    let record = window_limited();
    let mut findings = explain(&Evidence::of(&record));
    let before = findings.clone();
    counter_test::judge(&mut findings, &Evidence::of(&record));
    assert_eq!(findings, before);
}

#[test]
fn changes_take_turns_with_the_test_as_it_was_and_the_time_is_bounded() {
    let record = window_limited();
    let evidence = Evidence::of(&record);
    let trials = counter_test::trials(&explain(&evidence), &evidence);
    let schedule = Schedule::of(&record.plan, &trials, Some(Nanos::from_millis(500)));
    let changed: Vec<bool> = schedule.runs.iter().map(Option::is_some).collect();
    assert_eq!(changed, [true, false, true, false, true, false, true]);
    assert_eq!(schedule.span(), Nanos::from_millis(4000));
    assert_eq!(schedule.total(), Nanos::from_millis(35_000));
    // A long ramp makes them longer, but never longer than the test.
    let long = Schedule::of(&record.plan, &trials, Some(Nanos::from_millis(60_000)));
    assert_eq!(long.span(), Nanos::from_millis(8000));
    let mut short = record.plan.clone();
    short.end = End::TimeNs(Nanos::from_millis(2000));
    assert_eq!(
        Schedule::of(&short, &trials, None).span(),
        Nanos::from_millis(2000)
    );
}

#[test]
fn a_stop_keeps_what_was_measured_and_a_failure_ends_nothing() {
    let record = window_limited();
    let evidence = Evidence::of(&record);
    let trials = counter_test::trials(&explain(&evidence), &evidence);
    let schedule = Schedule::of(&record.plan, &trials, None);
    let mut count = 0;
    let made = schedule.make(
        |_, variation| {
            count += 1;
            match count {
                1 => Err("the server is gone".to_owned()),
                4 => Ok(None),
                _ => Ok(Some(run(variation.cloned(), 1e6))),
            }
        },
        |_, _| (),
    );
    assert_eq!((made.len(), count), (3, 4));
    assert_eq!(
        made[0].outcome,
        Outcome::Failed {
            error: "the server is gone".into()
        }
    );
}

#[test]
fn a_variation_changes_one_thing_of_the_plan() {
    let mut plan = Plan::new("server");
    plan.congestion = Some("reno".into());
    let datagrams = Variation::Datagrams {
        bps: BitRate(50_000_000),
    };
    let changed = datagrams.applied(&plan);
    assert_eq!(changed.check(), Ok(()));
    assert_eq!(changed.rate_bps, Some(BitRate(50_000_000)));
    plan.streams = 4;
    let paced = Variation::Pacing {
        bps: BitRate(80_000_000),
    };
    assert_eq!(
        paced.applied(&plan).kernel_pacing_bps,
        Some(BitRate(20_000_000))
    );
}
