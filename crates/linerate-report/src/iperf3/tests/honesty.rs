//! Where iperf3's figures mislead, these are right (docs/iperf3.md).

use linerate_model::column::Column;
use linerate_model::plan::{Direction, End, Plan};
use linerate_model::progress::{Event, Interval, StreamInterval};
use linerate_model::record::{Flow, Outcome, Role};
use linerate_model::units::Nanos;
use linerate_testing::fixture::{Traffic, against_stock};
use serde_json::Value;

use super::stage::{
    document, events, json_lines, plan, pointed, record, settings, text, udp_plan, with_omit,
};
use crate::iperf3::{IntervalRoom, Iperf3Settings, Json, Text};

fn close(value: &Value, expected: f64) -> bool {
    (value.as_f64().unwrap() / expected - 1.0).abs() < 1e-9
}

#[test]
fn sums_equal_the_intervals_and_rates_their_time() {
    for plan in [
        plan(),
        with_omit(plan()),
        Plan {
            streams: 3,
            ..pointed(with_omit(udp_plan()), Direction::Both)
        },
    ] {
        let ours = document(&record(&plan, Role::Client, Traffic::default()));
        let intervals = ours["intervals"].as_array().unwrap();
        let kept = intervals
            .iter()
            .filter(|interval| interval["sum"]["omitted"] == false);
        let bytes: u64 = kept
            .clone()
            .map(|interval| interval["sum"]["bytes"].as_u64().unwrap())
            .sum();
        assert_eq!(ours["end"]["sum_sent"]["bytes"], bytes);
        let seconds: f64 = kept
            .map(|interval| interval["sum"]["seconds"].as_f64().unwrap())
            .sum();
        assert!(close(&ours["end"]["sum_sent"]["seconds"], seconds));
        for interval in intervals {
            for object in interval["streams"]
                .as_array()
                .unwrap()
                .iter()
                .chain([&interval["sum"]])
            {
                let rate =
                    object["bytes"].as_f64().unwrap() * 8.0 / object["seconds"].as_f64().unwrap();
                assert!(close(&object["bits_per_second"], rate));
            }
        }
        let first = intervals
            .iter()
            .find(|interval| interval["sum"]["omitted"] == false)
            .unwrap();
        assert_eq!(first["sum"]["start"], 0);
    }
}

#[test]
fn loss_is_counted_to_the_last_datagram_sent() {
    // A path that dies: the receiver saw the first 100 of 180 datagrams and no gap among them.
    let mut dying = record(
        &udp_plan(),
        Role::Client,
        Traffic {
            rate_bps: 1_051_200.0,
            noise: 0.0,
            ramp_s: 0.0,
            ..Traffic::default()
        },
    );
    let sent = dying.client.as_ref().unwrap().streams[0]
        .udp
        .as_ref()
        .unwrap()
        .sent;
    let server = dying.server.as_mut().unwrap().streams[0]
        .udp
        .as_mut()
        .unwrap();
    (
        server.unique,
        server.received,
        server.highest,
        server.peer_sent,
    ) = (100, 100, 100, None);
    let stock = against_stock(dying.clone(), Role::Server);
    assert_eq!(stock.peer_results.as_ref().unwrap().streams[0].errors, 0);
    for record in [dying, stock] {
        let end = document(&record)["end"].clone();
        for object in [&end["sum"], &end["sum_received"], &end["streams"][0]["udp"]] {
            assert_eq!(
                (&object["lost_packets"], &object["packets"]),
                (&(sent - 100).into(), &sent.into())
            );
            assert!(close(
                &object["lost_percent"],
                100.0 * (sent - 100) as f64 / sent as f64
            ));
        }
        let lines = text(settings(&record), &record);
        assert!(
            lines
                .iter()
                .any(|line| line.contains(&format!("{}/{sent} (", sent - 100))
                    && line.ends_with("receiver"))
        );
    }
}

#[test]
fn late_and_repeated_datagrams_hide_no_loss_and_loss_is_never_negative() {
    let traffic = Traffic {
        path_lost: 7,
        duplicated: 50,
        reordered: 9,
        ..Traffic::default()
    };
    let end = document(&record(&udp_plan(), Role::Client, traffic))["end"].clone();
    assert_eq!(
        (
            &end["sum"]["lost_packets"],
            &end["streams"][0]["udp"]["out_of_order"]
        ),
        (&7.into(), &9.into())
    );

    let mut record = record(&udp_plan(), Role::Server, Traffic::default());
    let counts = record.server.as_mut().unwrap().streams[0]
        .udp
        .as_mut()
        .unwrap();
    counts.unique += 20;
    assert_eq!(document(&record)["end"]["sum"]["lost_packets"], 0);
}

#[test]
fn the_udp_sum_pairs_the_senders_bytes_with_the_senders_time() {
    let end = document(&record(&udp_plan(), Role::Client, Traffic::default()))["end"].clone();
    for key in ["bytes", "seconds", "bits_per_second"] {
        assert_eq!(end["sum"][key], end["sum_sent"][key]);
    }
}

#[test]
fn round_trip_times_leave_the_omitted_part_out() {
    let mut record = record(&with_omit(plan()), Role::Client, Traffic::default());
    let stream = &mut record.client.as_mut().unwrap().streams[0];
    let begin = stream.omit_until_ns.unwrap().0;
    let rtt = stream
        .samples
        .at_ns()
        .iter()
        .map(|at| if *at < begin { 900_000 } else { 40_000 })
        .collect();
    stream.samples.insert(Column::rtt_us, rtt).unwrap();
    let sender = document(&record)["end"]["streams"][0]["sender"].clone();
    assert_eq!(
        (&sender["max_rtt"], &sender["mean_rtt"]),
        (&40_000.into(), &40_000.into())
    );
    assert_eq!(sender["max_snd_cwnd"], 492_000 / 1448 * 1448);
}

#[test]
fn what_is_not_known_is_not_a_zero() {
    let mut record = record(&plan(), Role::Client, Traffic::default());
    (record.server, record.outcome) = (None, Outcome::Interrupted);
    let ours = document(&record);
    assert!(
        ours["end"].get("sum_received").is_none()
            && ours["end"]["streams"][0].get("receiver").is_none()
    );
    assert!(ours["end"]["sum_sent"]["bytes"].as_u64().unwrap() > 0);
    assert_eq!(ours["error"], "interrupt - the client has terminated");
    let lines = text(settings(&record), &record);
    assert!(
        lines.contains(&"[  5] (receiver statistics not available)".to_owned()),
        "{lines:#?}"
    );
    assert!(!lines.contains(&"iperf Done.".to_owned()));
    let mut json = Json::new(settings(&record), Some(plan()));
    json.set_error("interrupt - the client has terminated by signal Hangup(1)".to_owned());
    let ours: Value = serde_json::from_str(&json.end(&record)[0]).unwrap();
    assert_eq!(
        ours["error"],
        "interrupt - the client has terminated by signal Hangup(1)"
    );

    record.outcome = Outcome::Failed {
        error: "unable to receive results: timed out".into(),
    };
    assert_eq!(
        document(&record)["error"],
        "unable to receive results: timed out"
    );
    record.client = None;
    let lines = Json::new(settings(&record), Some(plan())).end(&record);
    let ours: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(
        (&ours["end"], &ours["intervals"]),
        (&serde_json::json!({}), &serde_json::json!([]))
    );
    assert!(Text::new(settings(&record), None).end(&record).is_empty());
}

#[test]
fn a_server_knows_its_clients_side() {
    let record = against_stock(
        record(&plan(), Role::Server, Traffic::default()),
        Role::Client,
    );
    let end = document(&record)["end"].clone();
    assert!(end["sum_sent"]["bytes"].as_u64().unwrap() > 0);
    assert!(
        end["cpu_utilization_percent"]["remote_total"]
            .as_f64()
            .unwrap()
            > 0.0
    );
}

#[test]
fn a_stock_peer_before_3_14_does_not_say_what_it_lost_in_the_omitted_part() {
    let lossy = Traffic {
        path_lost: 3,
        ..Traffic::default()
    };
    let record = against_stock(
        record(&with_omit(udp_plan()), Role::Client, lossy),
        Role::Server,
    );
    let lines = text(settings(&record), &record);
    assert!(
        lines
            .iter()
            .any(|line| line.contains("Unknown/") && line.ends_with("receiver")),
        "{lines:#?}"
    );
}

#[test]
fn an_interval_in_which_nothing_happened_is_passed_over() {
    let record = record(&plan(), Role::Server, Traffic::default());
    let mut text = Text::new(settings(&record), Some(plan()));
    let mut json = Json::new(settings(&record), Some(plan()));
    let empty = Event::Interval(Interval {
        to_ns: Nanos(1_000_000),
        ..Interval::default()
    });
    assert!(text.event(&empty).is_empty() && json.event(&empty).is_empty());
    let lines = json.end(&record);
    assert_eq!(
        serde_json::from_str::<Value>(&lines[0]).unwrap()["intervals"],
        serde_json::json!([])
    );
}

#[test]
fn a_peers_broken_json_does_not_break_ours() {
    let mut record = against_stock(
        record(&plan(), Role::Client, Traffic::default()),
        Role::Server,
    );
    record.peer_results.as_mut().unwrap().output_json = Some("{\"start\": oops".into());
    let settings = Iperf3Settings {
        get_server_output: true,
        ..settings(&record)
    };
    let ours: Value = serde_json::from_str(&json_lines(settings, &record)[0]).unwrap();
    assert_eq!(ours["server_output_text"], "{\"start\": oops");
}

#[test]
fn a_sums_time_is_that_of_its_own_direction() {
    // The receiving stream was drained 70 ms past the end; the second sending one stopped at once.
    let moved = |id: u32, sends: bool, to_ms: u64| StreamInterval {
        id,
        flow: if sends {
            Flow::ClientToServer
        } else {
            Flow::ServerToClient
        },
        sends,
        from_ns: Nanos::ZERO,
        to_ns: Nanos::from_millis(to_ms),
        bytes: 1_000_000,
        tcp: None,
        udp: None,
    };
    let interval = Interval {
        to_ns: Nanos::from_millis(1070),
        streams: vec![
            moved(1, true, 1000),
            moved(3, true, 10),
            moved(4, false, 1070),
        ],
        ..Interval::default()
    };
    let both = Plan {
        streams: 2,
        ..pointed(plan(), Direction::Both)
    };
    let mut record = record(&both, Role::Client, Traffic::default());
    let mut json = Json::new(settings(&record), Some(both));
    json.event(&Event::Interval(interval));
    record.client = None;
    let ours: Value = serde_json::from_str(&json.end(&record)[0]).unwrap();
    let (sum, reverse) = (
        &ours["intervals"][0]["sum"],
        &ours["intervals"][0]["sum_bidir_reverse"],
    );
    assert_eq!(
        (&sum["end"], &sum["bits_per_second"]),
        (&1.into(), &16_000_000.into())
    );
    assert!(close(&reverse["seconds"], 1.07));
}

#[test]
fn the_time_of_a_test_is_that_of_what_ended_it() {
    let early = |end: End| {
        let mut record = record(&Plan { end, ..plan() }, Role::Client, Traffic::default());
        let stream = &record.client.as_ref().unwrap().streams[0];
        let last = StreamInterval {
            id: stream.id,
            flow: stream.flow,
            sends: true,
            from_ns: Nanos::ZERO,
            to_ns: Nanos::from_millis(1500),
            bytes: stream.app_bytes,
            tcp: None,
            udp: None,
        };
        let interval = Interval {
            streams: vec![last],
            ..Interval::default()
        };
        let mut json = Json::new(settings(&record), Some(record.plan.clone()));
        json.event(&Event::Interval(interval));
        record.server = None;
        let ours: Value = serde_json::from_str(&json.end(&record)[0]).unwrap();
        ours["end"]["sum_sent"]["seconds"].as_f64().unwrap()
    };
    assert!(close(
        &early(End::TimeNs(Nanos::from_millis(2000))).into(),
        2.0
    ));
    assert!(close(&early(End::Blocks(3)).into(), 1.5));
}

#[test]
fn intervals_without_room_are_left_out_and_counted() {
    let run = record(&plan(), Role::Server, Traffic::default());
    let whole = document(&run)["intervals"].as_array().unwrap().len();
    let room = IntervalRoom::new(whole + 1);
    let of = |json: &mut Json| -> Value {
        for event in events(&run) {
            json.event(&event);
        }
        serde_json::from_str(&json.end(&run).join("\n")).unwrap()
    };
    let kept = |document: &Value| document["intervals"].as_array().unwrap().len();
    let mut first = Json::new(settings(&run), Some(run.plan.clone())).within(&room);
    let document = of(&mut first);
    assert_eq!((kept(&document), document.get("warning")), (whole, None));
    let mut second = Json::new(settings(&run), Some(run.plan.clone())).within(&room);
    let document = of(&mut second);
    assert_eq!(kept(&document), 1);
    let warning = document["warning"].as_str().unwrap();
    assert!(
        warning.starts_with(&format!("{} intervals", whole - 1)),
        "{warning}"
    );
    drop((first, second));
    let mut third = Json::new(settings(&run), Some(run.plan.clone())).within(&room);
    assert_eq!(kept(&of(&mut third)), whole);
}
