//! JSON and CSV.

use serde_json::Value;

use crate::sample::HOSTILE;
use crate::served::Served;

#[test]
fn failures_are_null_in_json_and_empty_in_csv() {
    let hub = Served::sample();
    let pairs = hub.json("/api/v1/pairs");
    let pairs = pairs["pairs"].as_array().unwrap();
    let of = |from: &str, to: &str| {
        pairs
            .iter()
            .find(|pair| pair["from"] == from && pair["to"] == to)
            .unwrap()
    };
    let failed = of("tok1", "syd1");
    assert_eq!(
        (&failed["outcome"], &failed["goodput_bps"]),
        (&Value::from("failed"), &Value::Null)
    );
    assert_eq!(failed["state"], "failing");
    assert!(failed["failures_in_a_row"].as_u64().unwrap() >= 3);
    assert!(of("ams1", "fra1")["goodput_bps"].as_f64().unwrap() > 1e9);
    let csv = hub.body("/api/v1/pairs.csv");
    let row = csv
        .lines()
        .find(|line| line.starts_with("backbone,tok1,syd1,"))
        .unwrap();
    assert!(
        row.contains(",failing,failed,2026-") && row.contains("Z,,,,,,"),
        "{row}"
    );
    for path in ["/api/v1/runs?limit=10000", "/api/v1/runs?outcome=failed"] {
        for run in hub.json(path)["runs"].as_array().unwrap() {
            let measured = run["outcome"] == "measured";
            for figure in [
                "goodput_bps",
                "low_bps",
                "high_bps",
                "rtt_ns",
                "retransmitted",
            ] {
                assert_eq!(run[figure].is_null(), !measured, "{figure} of {run}");
            }
        }
    }
    let csv = hub.body("/api/v1/runs.csv?outcome=not_run");
    assert!(csv.lines().count() > 20);
    for line in csv.lines().skip(1) {
        // No figure, neither who computed it nor a record.
        assert!(
            line.contains(",not_run,,") && line.trim_end().ends_with(",,,,,,,,,,,,,,"),
            "{line}"
        );
    }
}

#[test]
fn runs_come_in_pages_that_do_not_overlap() {
    let hub = Served::sample();
    let path = "/api/v1/runs?task=backbone&from=ams1&to=lon1&limit=100";
    let first = hub.json(path);
    let next = first["next"].as_str().unwrap();
    let second = hub.json(&format!("{path}&before={next}"));
    let ids = |page: &Value| -> Vec<String> {
        page["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let (first, second) = (ids(&first), ids(&second));
    assert_eq!((first.len(), second.len(), &*first[99]), (100, 100, next));
    assert!(first[99] > second[0]);
    let third = hub.json(&format!("{path}&before={}", second[99]));
    assert_eq!((ids(&third).len(), &third["next"]), (40, &Value::Null));
}

#[test]
fn alerts_hosts_and_the_plan_say_what_pages_say() {
    let hub = Served::sample();
    let alerts = hub.json("/api/v1/alerts");
    let slow = alerts["alerts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|alert| alert["title"] == "fra1 sends slowly: 8 pairs");
    let slow = slow.unwrap();
    assert_eq!(
        (&slow["state"], slow["pairs"].as_array().unwrap().len()),
        (&Value::from("firing"), 8)
    );
    assert!(hub.body("/alerts").contains("fra1 sends slowly: 8 pairs"));
    let hosts = hub.json("/api/v1/hosts?name=fra1");
    assert_eq!(hosts["hosts"].as_array().unwrap().len(), 1);
    assert_eq!(hosts["hosts"][0]["facts"][0][1], "6.1.0-28");
    assert_eq!(hub.json("/api/v1/plan")["plan"]["pairs"], 95);
}

#[test]
fn what_is_wrong_with_a_query_is_said() {
    let hub = Served::sample();
    for (path, status) in [
        ("/api/v1/runs?fom=node1", 400),
        ("/api/v1/runs?limit=x", 400),
        ("/api/v1/runs?outcome=good", 400),
        ("/api/v1/runs?before=1", 400),
        ("/api/v1/runs/1", 400),
        ("/api/v1/runs/01935c1a-0000-7000-8000-000000000000", 404),
        (
            "/api/v1/runs/01935c1a-0000-7000-8000-000000000000/record",
            404,
        ),
        ("/api/v1/pair?task=x", 400),
        ("/api/v1/pair?task=x&from=y&to=z", 404),
        ("/api/v1/x", 404),
    ] {
        let answer = hub.get(path);
        assert_eq!(answer.status, status, "{path}");
        assert!(
            answer.head.contains("content-type: application/json"),
            "{path}"
        );
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        assert!(!body["detail"].as_str().unwrap().is_empty(), "{path}");
    }
}

#[test]
fn a_hostile_name_is_a_string() {
    let hub = Served::sample();
    let pairs = hub.json("/api/v1/pairs");
    assert!(
        pairs["pairs"]
            .as_array()
            .unwrap()
            .iter()
            .any(|pair| pair["from"] == HOSTILE)
    );
    let csv = hub.body("/api/v1/pairs.csv");
    assert!(csv.contains("\"<script>alert(1)</script>\"\"'&\""), "{csv}");
}

/// The documented schemas are those of real answers: no property more, none less.
#[test]
fn openapi_describes_what_is_answered() {
    let hub = Served::sample();
    let document = hub.json("/api/v1/openapi.json");
    assert_eq!(document["openapi"], "3.1.0");
    let run = &hub.json("/api/v1/runs?limit=1")["runs"][0];
    let pair = &hub.json("/api/v1/pairs")["pairs"][0];
    let host = &hub.json("/api/v1/hosts")["hosts"][0];
    let plan = hub.json("/api/v1/plan");
    for (name, real) in [
        ("Run", run),
        ("Pair", pair),
        ("Host", host),
        ("Plan", &plan),
    ] {
        let described = document["components"]["schemas"][name]["properties"]
            .as_object()
            .unwrap();
        let mut described: Vec<&String> = described.keys().collect();
        let mut answered: Vec<&String> = real.as_object().unwrap().keys().collect();
        described.sort();
        answered.sort();
        assert_eq!(described, answered, "{name}");
    }
    let paths = document["paths"].as_object().unwrap();
    let run = hub.json("/api/v1/runs?from=fra1&to=ams1&limit=1")["runs"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let read = |path: &&String| *path != "/events" && !paths[*path]["get"].is_null();
    for path in paths.keys().filter(read) {
        let asked = path.replace("{id}", &run);
        let query = if path == "/api/v1/pair" {
            "?task=backbone&from=fra1&to=ams1"
        } else {
            ""
        };
        let answer = hub.get(&format!("{asked}{query}"));
        assert_eq!(answer.status, 200, "{path}");
        let kinds = paths[path]["get"]["responses"]["200"]["content"]
            .as_object()
            .unwrap();
        let kind = kinds.keys().next().unwrap();
        assert!(
            answer.head.contains(&format!("content-type: {kind}")),
            "{path}: {}",
            answer.head
        );
    }
}
