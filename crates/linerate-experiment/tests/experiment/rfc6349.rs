//! The steps of RFC 6349 with runs that are made up.

use linerate_experiment::rfc6349::{Report, Step, Survey};
use linerate_model::plan::{End, Plan, Protocol};
use linerate_model::record::{Outcome, RunRecord};
use linerate_model::units::{BitRate, Bytes, Nanos};
use linerate_testing::fixture::{self, Traffic};

/// A path of this rate and 20 ms; the rate follows the window.
fn answer(step: &Step, plan: &Plan) -> RunRecord {
    let rate = match step {
        Step::Quiet | Step::Probe { .. } => 1e6,
        Step::Bottleneck | Step::Autotuned => 94.1e6,
        Step::Window { share, .. } => (share * 94.1e6).min(94.1e6),
    };
    let loaded = if rate > 94e6 { 30_000 } else { 20_000 };
    let mut record = fixture::run(
        plan,
        &Traffic {
            rate_bps: rate,
            rtt_us: loaded,
            min_rtt_us: 20_000,
            in_flight_bytes: plan.window_bytes.map_or(250_000, |window| window.0),
            ..Traffic::default()
        },
    );
    for end in [&mut record.client, &mut record.server] {
        let host = &mut end.as_mut().expect("both ends").host;
        (host.rmem_max, host.wmem_max) = (Some(4 << 20), Some(4 << 20));
    }
    record
}

fn surveyed(
    plan: &Plan,
    mut gives: impl FnMut(&Step, &Plan) -> Result<RunRecord, String>,
) -> (Vec<Step>, Report) {
    let mut survey = Survey::new(plan);
    let mut steps = Vec::new();
    while let Some((step, plan)) = survey.upcoming() {
        assert!(steps.len() < 40, "it goes on: {steps:?}");
        let gave = gives(&step, &plan);
        steps.push(step);
        survey.took(gave);
    }
    (steps, survey.report())
}

#[test]
fn a_clean_path_gives_the_figures_of_the_rfc() {
    let (steps, report) = surveyed(&Plan::new("server"), |step, plan| Ok(answer(step, plan)));
    let sizes: Vec<&Step> = steps
        .iter()
        .filter(|step| matches!(step, Step::Probe { .. }))
        .collect();
    assert_eq!(sizes, [&Step::Probe { mtu: 1500 }]);
    assert_eq!(
        report.path_mtu.as_ref().map(|found| found.value),
        Some(1500)
    );
    let base = report.base_rtt.as_ref().map(|found| found.value);
    assert_eq!(base, Some(Nanos::from_millis(20)));
    // 94.1 Mbit/s of payload in segments of 1448 bytes are 100 Mbit/s of frames.
    let bandwidth = report.bottleneck.as_ref().expect("found").value;
    assert!(
        bandwidth > BitRate(98_000_000) && bandwidth < BitRate(101_000_000),
        "{bandwidth}"
    );
    let bdp = report.bdp.expect("reckoned");
    assert!(bdp > Bytes(240_000) && bdp < Bytes(253_000), "{bdp}");
    let runs: Vec<(Option<f64>, u16)> = report
        .runs
        .iter()
        .map(|run| (run.share_of_bdp, run.connections))
        .collect();
    let sweep = [0.25, 0.5, 0.75, 1.0, 1.25].map(|share| (Some(share), 1));
    assert_eq!(runs[..5], sweep);
    assert_eq!(runs[5], (Some(1.0), 4));
    let full = &report.runs[3];
    let ratio = full.metrics.transfer_time_ratio.expect("a ratio");
    assert!((1.0..1.15).contains(&ratio), "{ratio}");
    let delay = full.metrics.buffer_delay_percent.expect("a delay");
    assert!((delay - 50.0).abs() < 5.0, "{delay}");
    assert!(report.text().contains("Path MTU              1500 bytes"));
}

fn sizes(steps: &[Step]) -> Vec<u32> {
    let probe = |step: &Step| match step {
        Step::Probe { mtu } => Some(*mtu),
        _ => None,
    };
    steps.iter().filter_map(probe).collect()
}

/// The sender's kernel refused the datagrams as too long.
fn too_long(step: &Step, plan: &Plan) -> RunRecord {
    let mut record = answer(step, plan);
    record.server = None;
    record.outcome = Outcome::Failed {
        error: "sending on stream 1: Message too long (os error 90)".into(),
    };
    let stream = &mut record.client.as_mut().expect("there").streams[0];
    (stream.app_bytes, stream.udp) = (0, None);
    stream.too_long = true;
    record
}

/// Completed, and nothing arrived.
fn vanished(step: &Step, plan: &Plan) -> RunRecord {
    let mut record = answer(step, plan);
    record.server = None;
    let client = record.client.as_mut().expect("there");
    client.streams.clear();
    record
}

#[test]
fn smaller_sizes_are_tried_until_one_arrives_and_then_those_between() {
    let (steps, report) = surveyed(&Plan::new("server"), |step, plan| match step {
        Step::Probe { mtu } if *mtu > 1421 => Ok(too_long(step, plan)),
        _ => Ok(answer(step, plan)),
    });
    assert_eq!(
        sizes(&steps),
        [
            1500, 1492, 1480, 1476, 1460, 1450, 1420, 1435, 1427, 1423, 1421, 1422
        ]
    );
    assert_eq!(report.path_mtu.expect("found").value, 1421);
}

#[test]
fn a_path_between_the_usual_sizes_is_found_to_the_byte() {
    for most in [576, 1279, 1280, 1499, 1501, 8900, 8999] {
        let (steps, report) = surveyed(&Plan::new("server"), |step, plan| {
            let mut record = match step {
                Step::Probe { mtu } if *mtu > most => vanished(step, plan),
                _ => answer(step, plan),
            };
            for end in [&mut record.client, &mut record.server]
                .into_iter()
                .flatten()
            {
                end.interface.as_mut().expect("there").mtu_bytes = Some(9000);
            }
            Ok(record)
        });
        assert_eq!(report.path_mtu.expect("found").value, most);
        assert!(sizes(&steps).len() <= 22, "{most}: {steps:?}");
    }
}

#[test]
fn a_size_that_could_not_be_tried_is_none_that_vanished() {
    for fails_at in [1500, 1480, 1435] {
        let (steps, report) = surveyed(&Plan::new("server"), |step, plan| match step {
            Step::Probe { mtu } if *mtu == fails_at => Err("the server is busy".to_owned()),
            Step::Probe { mtu } if *mtu > 1420 => Ok(too_long(step, plan)),
            _ => Ok(answer(step, plan)),
        });
        assert_eq!(sizes(&steps).last(), Some(&fails_at));
        let said = report.remarks.join("\n");
        assert!(
            said.contains("could not be tried: the server is busy"),
            "{said}"
        );
        let how = report.path_mtu.map(|found| found.how).unwrap_or_default();
        assert!(!how.contains("arrived"), "{how}");
    }
    let (steps, report) = surveyed(&Plan::new("server"), |step, plan| {
        let mut record = answer(step, plan);
        if let Step::Probe { .. } = step {
            record = vanished(step, plan);
            record.outcome = Outcome::Failed {
                error: "the connection broke".into(),
            };
        }
        Ok(record)
    });
    assert_eq!(sizes(&steps), [1500]);
    assert!(report.remarks.join("\n").contains("the connection broke"));
}

#[test]
fn probes_are_datagrams_that_may_not_be_cut() {
    let (_, report) = surveyed(&Plan::new("server"), |step, plan| {
        if let Step::Probe { mtu } = step {
            assert_eq!((plan.protocol, plan.dont_fragment), (Protocol::Udp, true));
            assert_eq!(plan.block_bytes, Bytes(u64::from(mtu - 28)));
            assert_eq!(plan.check(), Ok(()));
        }
        Ok(answer(step, plan))
    });
    assert!(report.path_mtu.is_some());
}

#[test]
fn windows_that_the_hosts_refuse_are_left_to_autotuning() {
    let (steps, report) = surveyed(&Plan::new("server"), |step, plan| {
        let mut record = answer(step, plan);
        let host = &mut record.server.as_mut().expect("there").host;
        host.rmem_max = Some(100_000);
        Ok(record)
    });
    let windows = steps
        .iter()
        .filter(|step| matches!(step, Step::Window { connections: 1, .. }))
        .count();
    assert_eq!(windows, 1);
    assert!(steps.contains(&Step::Autotuned));
    let text = report.text();
    assert!(
        text.contains("windows of 50 %, 75 %, 100 %, 125 % of the product were not tested"),
        "{text}"
    );
    assert!(text.contains("autotuned"));
}

#[test]
fn what_fails_is_said_and_nothing_is_made_up() {
    let (steps, report) = surveyed(&Plan::new("server"), |step, _| match step {
        Step::Quiet => Err("cannot connect".to_owned()),
        _ => panic!("nothing can follow"),
    });
    assert_eq!(steps, [Step::Quiet]);
    assert_eq!((report.base_rtt.clone(), report.runs.len()), (None, 0));
    assert!(report.text().contains("failed: cannot connect"));
}

#[test]
fn a_stop_keeps_what_was_measured_and_short_runs_are_remarked() {
    let mut plan = Plan::new("server");
    plan.end = End::TimeNs(Nanos::from_millis(5000));
    let mut survey = Survey::new(&plan);
    for _ in 0..4 {
        let (step, plan) = survey.upcoming().expect("more to do");
        let gave = answer(&step, &plan);
        survey.took(Ok(gave));
    }
    survey.stopped();
    assert!(survey.upcoming().is_none());
    let report = survey.report();
    assert_eq!(report.runs.len(), 1);
    assert!(report.text().contains("advises at least 30 s"));
    assert!(report.text().contains("stopped by the user"));
}

#[test]
fn an_audit_asks_for_the_path_alone() {
    use linerate_experiment::to_peer::Sounding;

    for (most, packet) in [(9000, (1500, true)), (1450, (1450, false))] {
        let mut sounding = Sounding::new(&Plan::new("far"));
        let mut steps = Vec::new();
        while let Some((step, plan)) = sounding.upcoming() {
            let gave = match &step {
                Step::Probe { mtu } if *mtu > most => Ok(too_long(&step, &plan)),
                _ => Ok(answer(&step, &plan)),
            };
            steps.push(step);
            sounding.took(gave);
        }
        assert_eq!(steps.first(), Some(&Step::Quiet));
        assert_eq!(steps.last(), Some(&Step::Bottleneck));
        let found = sounding.found();
        assert_eq!(found.peer, "far");
        assert_eq!(found.rtt, Some(Nanos::from_millis(20)));
        let rate = found.rate_bps.expect("a rate");
        assert!(
            rate > BitRate(98_000_000) && rate < BitRate(101_000_000),
            "{rate}"
        );
        let largest = found.packet.expect("a size");
        assert_eq!((largest.bytes, largest.untried_above), packet);
        assert_eq!(found.remarks, Vec::<String>::new());
    }
}

#[test]
fn what_was_not_measured_is_not_known_and_said() {
    use linerate_experiment::to_peer::Sounding;

    let mut sounding = Sounding::new(&Plan::new("far"));
    while let Some((step, plan)) = sounding.upcoming() {
        let gave = match &step {
            Step::Quiet => Ok(answer(&step, &plan)),
            Step::Probe { .. } => Ok(vanished(&step, &plan)),
            _ => Err("the network is unreachable".to_owned()),
        };
        sounding.took(gave);
    }
    let found = sounding.found();
    assert_eq!((found.rate_bps, found.packet), (None, None));
    assert!(found.rtt.is_some());
    let said = found.remarks.join("\n");
    assert!(
        said.contains("no datagram") && said.contains("unreachable"),
        "{said}"
    );
}
