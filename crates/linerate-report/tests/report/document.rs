//! The JSON document.

use linerate_model::plan::{Direction, Plan};
use linerate_model::record::{Role, RunRecord};
use linerate_model::units::Nanos;
use linerate_report::{json, stream};
use linerate_testing::fixture::{self, Traffic};
use serde_json::Value;

use crate::runs;

#[expect(clippy::unwrap_used, reason = "a test may panic")]
fn document(record: &RunRecord) -> Value {
    serde_json::from_str(&json::document(&runs::view(record), record)).unwrap()
}

#[test]
fn the_promised_keys_are_there() {
    for (name, record) in runs::all() {
        let document = document(&record);
        for key in [
            "schema_version",
            "plan",
            "outcome",
            "summary",
            "time_budget",
            "ledger",
            "findings",
            "streams",
            "samples",
            "clock",
            "notes",
            "intervals",
        ] {
            assert!(document.get(key).is_some(), "{name}: {key}");
        }
        for key in [
            "goodput_bps",
            "goodput_low_bps",
            "goodput_high_bps",
            "whole_run_bps",
            "bytes",
            "span_ns",
            "ramp_ns",
            "steady",
            "unsteady_reason",
            "measured_at",
            "retransmits",
            "cpu",
            "directions",
        ] {
            assert!(
                document["summary"].get(key).is_some(),
                "{name}: summary.{key}"
            );
        }
        let findings = document["findings"].as_array().unwrap();
        assert!(
            findings.iter().all(|finding| finding["id"].is_string()),
            "{name}"
        );
    }
}

#[test]
fn the_figures_are_those_of_the_plateau() {
    let (_, record) = runs::all().remove(0);
    let document = document(&record);
    let summary = &document["summary"];
    let goodput = summary["goodput_bps"].as_u64().unwrap();
    assert!((95_300_000..95_500_000).contains(&goodput), "{goodput}");
    assert!(summary["goodput_low_bps"].as_u64().unwrap() <= goodput);
    assert!(summary["goodput_high_bps"].as_u64().unwrap() >= goodput);
    assert!(summary["whole_run_bps"].as_u64().unwrap() < goodput);
    assert_eq!(summary["measured_at"], "receiving_application");
    assert_eq!(summary["steady"], true);
    let cpu = summary["cpu"]["client"]["core_share"].as_f64().unwrap();
    assert!((cpu - 0.03).abs() < 1e-9);
    assert_eq!(
        document["streams"][0]["receiver"]["app_bytes"],
        summary["bytes"]
    );
    assert_eq!(
        document["samples"]["server"]["streams"][0]["series"]["rows"],
        1001
    );
}

#[test]
fn what_is_not_known_is_null_and_never_zero() {
    let by_name = |name: &str| {
        runs::all()
            .into_iter()
            .find(|(of, _)| *of == name)
            .unwrap()
            .1
    };
    let refused = document(&by_name("tcp_refused"));
    for key in [
        "goodput_bps",
        "goodput_low_bps",
        "whole_run_bps",
        "bytes",
        "span_ns",
        "retransmits",
        "steady",
        "measured_at",
    ] {
        assert_eq!(refused["summary"][key], Value::Null, "{key}");
    }
    assert_eq!(refused["samples"]["client"], Value::Null);
    let told = document(&by_name("udp_to_stock"));
    assert_eq!(
        told["summary"]["measured_at"],
        "receiving_application_told_by_peer"
    );
    assert_eq!(told["summary"]["goodput_high_bps"], Value::Null);
    assert_eq!(
        told["time_budget"][0]["unknown"],
        "UDP has no windows: the kernel keeps no such timers for it"
    );
    let stock = document(&by_name("tcp_from_stock"));
    assert_eq!(stock["summary"]["measured_at"], "receiving_application");
    assert_eq!(stock["summary"]["rtt_us"], Value::Null);
    assert_eq!(stock["streams"][0]["sender"]["told_by_peer"], true);
}

#[test]
fn a_sender_alone_knows_no_goodput_of_udp() {
    let mut record = fixture::against_stock(
        fixture::run(&runs::udp(100_000_000), &Traffic::default()),
        Role::Server,
    );
    record.peer_results = None;
    let document = document(&record);
    assert_eq!(document["summary"]["goodput_bps"], Value::Null);
    assert_eq!(document["summary"]["whole_run_bps"], Value::Null);
    assert!(document["summary"]["sent_bps"].as_u64().unwrap() > 90_000_000);
    assert_eq!(document["summary"]["measured_at"], "sending_application");
}

#[test]
fn intervals_add_up_to_the_totals_exactly() {
    for interval_ms in [10, 333, 1000, 60_000] {
        for direction in [Direction::Send, Direction::Receive, Direction::Both] {
            let plan = Plan {
                streams: 3,
                direction,
                interval_ns: Nanos::from_millis(interval_ms),
                omit_ns: Nanos::from_millis(700),
                ..runs::tcp()
            };
            let whole = fixture::run(
                &plan,
                &Traffic {
                    seconds: 5.0,
                    ..Traffic::default()
                },
            );
            for record in [whole.clone(), fixture::against_stock(whole, Role::Server)] {
                let view = runs::view(&record);
                for direction in &view.directions {
                    let of = || {
                        view.intervals
                            .iter()
                            .filter(|interval| interval.flow == direction.flow)
                    };
                    assert_eq!(
                        Some(of().map(|interval| interval.bytes).sum::<u64>()),
                        direction.figures.bytes
                    );
                    assert_eq!(
                        of().next_back().map(|interval| interval.to_ns),
                        direction.figures.span_ns
                    );
                    assert!(of().zip(of().skip(1)).all(|(a, b)| a.to_ns == b.from_ns));
                    for stream in view
                        .streams
                        .iter()
                        .filter(|stream| stream.flow == direction.flow)
                    {
                        let moved: u64 = of()
                            .flat_map(|interval| &interval.streams)
                            .filter(|part| part.id == stream.id)
                            .map(|part| part.bytes)
                            .sum();
                        assert_eq!(Some(moved), stream.bytes);
                    }
                }
            }
        }
    }
}

#[test]
fn both_directions_add_up() {
    let plan = Plan {
        direction: Direction::Both,
        ..runs::tcp()
    };
    let document = document(&fixture::run(&plan, &Traffic::default()));
    let parts = document["summary"]["directions"].as_array().unwrap();
    for key in ["goodput_bps", "whole_run_bps", "bytes", "retransmits"] {
        let sum: u64 = parts.iter().map(|part| part[key].as_u64().unwrap()).sum();
        assert_eq!(document["summary"][key], sum, "{key}");
    }
    let half = |part: &Value| {
        part["goodput_high_bps"].as_f64().unwrap() - part["goodput_bps"].as_f64().unwrap()
    };
    let together = half(&document["summary"]);
    assert!(together < parts.iter().map(half).sum::<f64>() && together > half(&parts[0]));
}

#[test]
fn a_run_of_a_millisecond_still_has_a_rate() {
    let mut record = fixture::run(&runs::tcp(), &Traffic::default());
    for end in [
        record.client.as_mut().unwrap(),
        record.server.as_mut().unwrap(),
    ] {
        let stream = &mut end.streams[0];
        stream.last_byte_ns = stream.first_byte_ns.map(|at| at.plus(Nanos(1_000_000)));
        end.end_ns = end.start_ns.plus(Nanos(1_000_000));
    }
    let document = document(&record);
    assert_eq!(
        document["summary"]["goodput_bps"],
        document["summary"]["whole_run_bps"]
    );
    assert_eq!(document["summary"]["steady"], false);
    assert_eq!(document["summary"]["goodput_low_bps"], Value::Null);
}

#[test]
fn the_last_line_of_a_stream_holds_the_document() {
    let (_, record) = runs::all().remove(0);
    let view = runs::view(&record);
    let line = stream::end_line(&view, &record);
    assert!(!line.contains('\n'));
    let mut parsed: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        parsed.as_object_mut().unwrap().remove("event"),
        Some(Value::from("end"))
    );
    assert_eq!(parsed, document(&record));
}
