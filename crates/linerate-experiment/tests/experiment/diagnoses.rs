//! Diagnoses: paths of known truth answer the questions, and the cause that stands is that truth.

use linerate_analysis::evidence::Evidence;
use linerate_experiment::counter_test;
use linerate_experiment::diagnosis::{self, Next, STANDS};
use linerate_explain::explain;
use linerate_model::counter_test::{
    CounterRun, Diagnosis, Ended, Passage, Tested, Variation, Verdict,
};
use linerate_model::finding::{Finding, Quantity, Severity};
use linerate_model::plan::{Direction, Plan, Protocol};
use linerate_model::record::{Outcome, RunRecord};
use linerate_model::remedy::Fix;
use linerate_testing::fixture::{self, Loss, Traffic};

const MBIT: f64 = 1e6;

/// What a path makes of the further runs.
#[derive(Debug, Clone, Copy)]
struct Path {
    /// What it carries of datagrams, bit/s.
    carries_bps: f64,
    /// How long they wait in its queue once they are too many, µs.
    queue_us: f64,
    /// Share that is lost whatever the rate.
    loses: f64,
    /// What four streams reach, of one's rate.
    streams: f64,
    /// What a wider window reaches.
    window: f64,
}

impl Path {
    /// Nothing is in the way of datagrams, and nothing helps TCP.
    const OPEN: Self = Self {
        carries_bps: 1e9,
        queue_us: 10_000.0,
        loses: 0.0,
        streams: 1.0,
        window: 1.0,
    };

    fn answer(&self, variation: &Variation, rate_bps: f64) -> CounterRun {
        let none = || CounterRun::without_figures(Some(variation.clone()), Outcome::Completed);
        match variation {
            Variation::Datagrams { bps } => {
                let offered = bps.0 as f64;
                let carried = (offered * (1.0 - self.loses)).min(self.carries_bps);
                let sent = offered * 4.0 / 8.0 / 1460.0;
                CounterRun {
                    lost: Some(linerate_model::units::whole(
                        sent * (1.0 - carried / offered),
                    )),
                    sent: Some(linerate_model::units::whole(sent)),
                    goodput_bps: Some(carried),
                    passage: Some(Passage {
                        offered_bps: offered,
                        delivered_bps: carried,
                        lost_share: 1.0 - carried / offered,
                        beyond_bytes: 0.0,
                        waited_us: if offered > self.carries_bps {
                            self.queue_us
                        } else {
                            5.0
                        },
                        datagram_bytes: 1460.0,
                    }),
                    ..none()
                }
            }
            Variation::Streams { .. } => CounterRun {
                goodput_bps: Some(self.streams * rate_bps),
                ..none()
            },
            _ => CounterRun {
                goodput_bps: Some(self.window * rate_bps),
                ..none()
            },
        }
    }
}

/// One slow start that overran something, then half of the rate: `network-loss`, as one run sees it.
fn lossy() -> RunRecord {
    let losses =
        [(0.8, 40, 700), (3.0, 8, 400), (6.0, 6, 300)].map(|(at_s, segments, window_packets)| {
            Loss {
                at_s,
                segments,
                window_packets,
                rtt_us: 40_200,
            }
        });
    let traffic = Traffic {
        rate_bps: 90.0 * MBIT,
        levels: vec![(0.0, 1.2), (1.0, 1.0)],
        rtt_us: 40_300,
        min_rtt_us: 40_000,
        receive_window_bytes: 20_000_000,
        congestion_window_bytes: 310 * 1448,
        in_flight_bytes: 300 * 1448,
        send_buffer_bytes: 40_000_000,
        losses: losses.to_vec(),
        ..Traffic::default()
    };
    let record = fixture::run(&Plan::new("server"), &traffic);
    assert_eq!(explain(&Evidence::of(&record))[0].id, "network-loss");
    record
}

/// Goes on as the program does: the record with the further runs, and why there are no more.
fn asked(mut record: RunRecord, path: Path) -> (RunRecord, Ended) {
    let rate = Evidence::of(&record).directions[0]
        .plateau
        .expect("a plateau")
        .estimate
        .mean;
    loop {
        let evidence = Evidence::of(&record);
        let alone = explain(&evidence);
        match diagnosis::next(&alone, &evidence) {
            Next::Run(variation) => {
                let run = path.answer(&variation, rate);
                record.counter_runs.push(run);
                assert!(
                    record.counter_runs.len() <= 4,
                    "each question is asked once"
                );
            }
            Next::End(ended) => return (record, ended),
            Next::OutOfScope => panic!("it is in scope: {alone:?}"),
        }
    }
}

/// What is found in the end, and how many runs it took.
fn diagnosed(record: RunRecord, path: Path) -> (Vec<Finding>, Diagnosis, usize) {
    let (record, ended) = asked(record, path);
    let evidence = Evidence::of(&record);
    let alone = explain(&evidence);
    let mut findings = alone.clone();
    counter_test::judge(&mut findings, &evidence);
    diagnosis::lead(&alone, &mut findings, &evidence);
    let diagnosis = diagnosis::of(&alone, &evidence).expect("there were runs");
    assert_eq!(diagnosis.ended, ended);
    (findings, diagnosis, record.counter_runs.len())
}

#[test]
fn a_policer_is_found_behind_losses_that_one_run_cannot_tell() {
    let policer = Path {
        carries_bps: 95.0 * MBIT,
        queue_us: 15.0,
        ..Path::OPEN
    };
    let (findings, diagnosis, runs) = diagnosed(lossy(), policer);
    assert_eq!(findings[0].id, "policer", "{diagnosis:?}");
    assert!(runs <= 2, "{runs}");
    assert_eq!(diagnosis.ended, Ended::OneStands);
    assert!(diagnosis.causes[0].probability >= STANDS);
    assert!(
        findings[0].sentence.starts_with(
            "Consistent with a policer at about 95.0 Mbit/s: of datagrams sent evenly at 180 Mbit/s, 95.0 Mbit/s arrived"
        ),
        "{}",
        findings[0].sentence
    );
    // Which loss it was is answered.
    assert!(findings.iter().all(|finding| finding.id != "network-loss"));
    assert_eq!(findings[0].figure(Quantity::TokenRate), Some(95.0 * MBIT));
    let remedy = findings[0].remedy.as_ref().expect("it is paced");
    assert!(
        matches!(remedy.fix, Fix::Pacing(bps) if bps.0 == 90_000_000),
        "{remedy:?}"
    );
    assert_eq!(
        findings[0].next.as_deref(),
        Some("linerate test server --fq-rate 90M")
    );
}

#[test]
fn a_cause_that_was_refuted_does_not_answer_the_first_finding() {
    let policer = Path {
        carries_bps: 95.0 * MBIT,
        queue_us: 15.0,
        ..Path::OPEN
    };
    let (record, _) = asked(lossy(), policer);
    let evidence = Evidence::of(&record);
    let alone = explain(&evidence);
    let mut led = alone.clone();
    diagnosis::lead(&alone, &mut led, &evidence);
    assert_eq!(led[0].id, "policer");
    assert!(led.iter().all(|finding| finding.id != "network-loss"));

    led[0].tested = Some(Tested {
        verdict: Verdict::Refuted,
        sentence: String::new(),
        tests: Vec::new(),
    });
    let refuted = [alone.clone(), vec![led.swap_remove(0)]].concat();
    let mut judged = refuted.clone();
    diagnosis::lead(&alone, &mut judged, &evidence);
    assert_eq!(
        judged, refuted,
        "neither led by it nor without its question"
    );
}

#[test]
fn a_short_queue_is_told_from_a_policer_by_the_wait_and_from_chance_by_what_arrives() {
    let shallow = Path {
        carries_bps: 150.0 * MBIT,
        queue_us: 2_000.0,
        streams: 1.5,
        ..Path::OPEN
    };
    let (findings, diagnosis, _) = diagnosed(lossy(), shallow);
    assert_eq!(findings[0].id, "network-loss", "{diagnosis:?}");
    let chance = Path {
        loses: 0.0009,
        streams: 3.9,
        ..Path::OPEN
    };
    let (findings, diagnosis, runs) = diagnosed(lossy(), chance);
    assert_eq!(
        (findings[0].id.as_str(), runs),
        ("random-loss", 2),
        "{diagnosis:?}"
    );
    assert!(
        findings[0].sentence.starts_with("Loss that does not depend on the rate: of datagrams sent evenly at 81.0 Mbit/s, 0.090 % were lost"),
        "{}",
        findings[0].sentence
    );
}

#[test]
fn a_path_that_tcp_fills_stands_as_full() {
    let full = Path {
        carries_bps: 96.0 * MBIT,
        queue_us: 30_000.0,
        ..Path::OPEN
    };
    let record = fixture::run(&Plan::new("server"), &Traffic::default());
    let (findings, diagnosis, runs) = diagnosed(record, full);
    assert_eq!(findings[0].id, "path-full", "{diagnosis:?}");
    assert!(
        runs <= 2 && diagnosis.ended == Ended::OneStands,
        "{runs}: {diagnosis:?}"
    );
    assert_eq!(findings[0].severity, Severity::Healthy);
}

#[test]
fn what_twice_the_rate_does_not_show_six_times_does() {
    // TCP reached 90 of 250 Mbit/s: a bucket of a few segments, or a queue of as many.
    let [policed, queued] = [15.0, 1_500.0].map(|queue_us| {
        let path = Path {
            carries_bps: 250.0 * MBIT,
            queue_us,
            streams: 1.4,
            ..Path::OPEN
        };
        let (findings, diagnosis, _) = diagnosed(lossy(), path);
        assert_eq!(findings[0].id, diagnosis.causes[0].id, "{diagnosis:?}");
        diagnosis.causes[0].clone()
    });
    assert_eq!(policed.id, "policer", "{policed:?}");
    assert!(policed.probability > 0.8, "{policed:?}");
    assert_eq!(queued.id, "network-loss");
}

#[test]
fn a_window_that_one_run_found_stands_when_the_rate_follows_it() {
    let record = fixture::run(&Plan::new("server"), &Traffic::window_limited());
    let window = Path {
        streams: 3.9,
        window: 2.8,
        ..Path::OPEN
    };
    let (findings, diagnosis, _) = diagnosed(record, window);
    assert_eq!(findings[0].id, "receive-window");
    assert_eq!(diagnosis.causes[0].id, "receive-window", "{diagnosis:?}");
}

#[test]
fn a_run_that_was_made_twice_weighs_no_more_than_once() {
    let causes = |times: usize| {
        let mut record = lossy();
        let evidence = Evidence::of(&record);
        let Next::Run(variation) = diagnosis::next(&explain(&evidence), &evidence) else {
            panic!("there is something to ask");
        };
        let rate = evidence.directions[0]
            .plateau
            .expect("a plateau")
            .estimate
            .mean;
        record.counter_runs = vec![Path::OPEN.answer(&variation, rate); times];
        let evidence = Evidence::of(&record);
        let diagnosis = diagnosis::of(&explain(&evidence), &evidence);
        diagnosis.expect("there were runs").causes
    };
    assert_eq!(causes(1), causes(2));
}

#[test]
fn runs_that_fail_say_nothing_and_end_it() {
    let mut record = lossy();
    for _ in 0..4 {
        let evidence = Evidence::of(&record);
        let next = diagnosis::next(&explain(&evidence), &evidence);
        let Next::Run(variation) = next else {
            panic!("there is more to ask: {next:?}");
        };
        let failed = CounterRun::failed(Some(variation), "the server is gone".to_owned());
        record.counter_runs.push(failed);
    }
    let evidence = Evidence::of(&record);
    let alone = explain(&evidence);
    assert_eq!(
        diagnosis::next(&alone, &evidence),
        Next::End(Ended::NothingSeparates)
    );
    let mut findings = alone.clone();
    diagnosis::lead(&alone, &mut findings, &evidence);
    assert_eq!(findings, alone);
}

#[test]
fn what_such_runs_cannot_decide_is_left_alone() {
    let mut plan = Plan::new("server");
    plan.protocol = Protocol::Udp;
    let mut both = Plan::new("server");
    both.direction = Direction::Both;
    for plan in [plan, both] {
        let record = fixture::run(&plan, &Traffic::default());
        let evidence = Evidence::of(&record);
        assert_eq!(
            diagnosis::next(&explain(&evidence), &evidence),
            Next::OutOfScope
        );
    }
    let record = lossy();
    let evidence = Evidence::of(&record);
    assert_eq!(diagnosis::next(&[], &evidence), Next::OutOfScope);
    assert_eq!(diagnosis::of(&explain(&evidence), &evidence), None);
}

/// How likely the congestion control of a lossy run of Reno is at fault after one run with CUBIC that was no faster.
fn control_after(seconds: u64) -> f64 {
    let mut record = lossy();
    for stream in &mut record.client.as_mut().expect("a client").streams {
        stream.congestion = Some("reno".into());
    }
    let variation = Variation::Congestion {
        name: "cubic".to_owned(),
    };
    let mut run = Path::OPEN.answer(&variation, 90.0 * MBIT);
    run.span_ns = linerate_model::units::Nanos::from_millis(seconds * 1000);
    record.counter_runs.push(run);
    let evidence = Evidence::of(&record);
    let diagnosis = diagnosis::of(&explain(&evidence), &evidence).expect("there was a run");
    let control = diagnosis
        .causes
        .iter()
        .find(|cause| cause.id == "congestion-control");
    control.map_or(0.0, |cause| cause.probability)
}

#[test]
fn a_short_run_of_cubic_is_a_weak_answer_and_a_long_one_is_not() {
    // 311 segments: CUBIC takes 6 s to fill the path again, and a run of 4 s may have seen its slow start alone.
    let (short, long) = (control_after(4), control_after(20));
    assert!(short > 2.0 * long, "{short} {long}");
}

#[test]
fn a_run_with_another_congestion_control_is_as_long_as_the_test() {
    let plan = Plan::new("server");
    let span = |variation: &Variation| counter_test::follow_up(&plan, None, variation).end;
    let cubic = Variation::Congestion {
        name: "cubic".to_owned(),
    };
    assert_eq!(span(&cubic), plan.end);
    assert_ne!(span(&Variation::Streams { streams: 4 }), plan.end);
}

#[test]
fn a_path_that_passes_six_times_the_rate_is_not_full_although_four_streams_carry_no_more() {
    let record = fixture::run(&Plan::new("server"), &Traffic::default());
    let alone = explain(&Evidence::of(&record));
    assert_eq!(alone[0].id, "path-full");
    let (record, _) = asked(record, Path::OPEN);
    let evidence = Evidence::of(&record);
    let diagnosis = diagnosis::of(&alone, &evidence).expect("there were runs");
    assert_ne!(diagnosis.causes[0].id, "path-full", "{diagnosis:?}");
}
