//! What a test was to answer: `--expect`, `--precision`; and the answer of `linerate expect`.

use linerate_explain::expect::{expect, question};
use linerate_model::expectation::HostSettings;
use linerate_model::plan::{Direction, Plan};
use linerate_model::record::Outcome;
use linerate_model::units::{BitRate, Nanos};
use linerate_report::text::Style;
use linerate_report::{expectation, json, text};
use linerate_testing::fixture::{self, Traffic};
use serde_json::Value;

use crate::runs;

#[expect(clippy::unwrap_used, reason = "a test may panic")]
fn document(plan: &Plan) -> Value {
    let record = fixture::run(plan, &Traffic::default());
    serde_json::from_str(&json::document(&runs::view(&record), &record)).unwrap()
}

fn report(plan: &Plan) -> String {
    text::report(
        &runs::view(&fixture::run(plan, &Traffic::default())),
        Style::plain(),
    )
}

fn wanted(text: &str) -> Plan {
    Plan {
        expect: text.parse().ok(),
        ..runs::tcp()
    }
}

#[test]
fn what_was_wanted_is_answered_in_text_and_in_json() {
    for (text, word, key) in [(">= 90M", "PASS", "pass"), (">= 9G", "FAIL", "fail")] {
        let told = report(&wanted(text));
        assert!(
            told.contains(&format!("\nExpected    {word}: {text} wanted, 95.")),
            "{told}"
        );
        assert_eq!(document(&wanted(text))["expect"]["verdict"], key);
    }
    assert_eq!(document(&runs::tcp())["expect"], Value::Null);
    assert!(!report(&runs::tcp()).contains("Expected"));
}

#[test]
fn both_directions_are_told_apart() {
    let plan = Plan {
        direction: Direction::Both,
        ..wanted(">= 90M")
    };
    let told = report(&plan);
    assert!(told.contains("client to server PASS, "), "{told}");
    assert_eq!(
        document(&plan)["expect"]["directions"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
}

#[test]
fn a_precision_is_reached_or_not_and_widens_the_interval() {
    let precise = |precision| Plan {
        precision: Some(precision),
        ..runs::tcp()
    };
    let told = report(&precise(0.02));
    assert!(told.contains("\nPrecision   reached: ±0."), "{told}");
    assert!(told.contains("at most 10 s"), "{told}");
    let width = |plan: &Plan| {
        let summary = &document(plan)["summary"];
        summary["goodput_high_bps"].as_f64().unwrap() - summary["goodput_low_bps"].as_f64().unwrap()
    };
    let ratio = width(&precise(0.02)) / width(&runs::tcp());
    assert!((ratio - 1.15).abs() < 0.01, "{ratio}");
    let missed = document(&precise(0.000_01));
    assert_eq!(missed["precision"]["reached"], false);
    assert!(
        missed["precision"]["directions"][0]["needs_ns"]
            .as_u64()
            .unwrap()
            > 10_000_000_000
    );
}

#[test]
fn a_run_that_was_stopped_has_not_reached_it() {
    let plan = Plan {
        precision: Some(0.02),
        ..runs::tcp()
    };
    let mut record = fixture::run(&plan, &Traffic::default());
    record.outcome = Outcome::Interrupted;
    assert!(!runs::view(&record).precision.unwrap().reached);
}

#[test]
fn an_expectation_fits_the_page_and_names_both_columns() {
    let asked = question(BitRate(10_000_000_000), Nanos::from_millis(60));
    let settings = HostSettings {
        tcp_rmem: Some([4096, 131_072, 6_291_456]),
        tcp_wmem: Some([4096, 16_384, 4_194_304]),
        timestamps: Some(true),
        ..HostSettings::default()
    };
    let answer = expect(&asked, &settings).unwrap();
    let told = expectation::report(&answer);
    assert!(
        told.lines().all(|line| line.chars().count() <= 100),
        "{told}"
    );
    for part in [
        "9.41 Gbit/s at most: 1,448 of every 1,538 bytes",
        "373 Mbit/s to 559 Mbit/s",
        "Limited by      the sender's buffer               the path\n",
        "net.ipv4.tcp_wmem = 4096 16384 ",
        "1 packet in 27,",
    ] {
        assert!(told.contains(part), "no '{part}' in:\n{told}");
    }
    let document: Value = serde_json::from_str(&linerate_report::json::pretty(&answer)).unwrap();
    assert_eq!(document["configured"]["bound"], "send_buffer");
    let unknown = expectation::report(&expect(&asked, &HostSettings::default()).unwrap());
    assert!(unknown.contains("not known"), "{unknown}");
}
