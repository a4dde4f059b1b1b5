//! Every key of iperf3's documents is in ours, with the same type, and no other.

use std::collections::BTreeSet;

use linerate_model::plan::{Direction, End, Plan};
use linerate_model::record::{PeerResults, Role};
use linerate_model::units::{BitRate, Bytes};
use linerate_testing::fixture::Traffic;
use serde_json::Value;

use super::stage::{
    document, events, json_lines, plan, pointed, record, settings, udp_plan, with_omit,
};
use crate::iperf3::{Iperf3Settings, Json};

macro_rules! captured {
    ($name:literal) => {
        include_str!(concat!("../../../tests/captured/", $name, ".json"))
    };
}

/// The paths of a document with the type at each; an array's elements share one path.
fn tree(path: &str, value: &Value, into: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(elements) => {
            for element in elements {
                tree(&format!("{path}[]"), element, into);
            }
            "array"
        }
        Value::Object(object) => {
            for (key, value) in object {
                tree(&format!("{path}.{key}"), value, into);
            }
            "object"
        }
    };
    into.insert(format!("{path}: {kind}"));
}

fn compare(name: &str, theirs: &str, ours: &Value) {
    let (mut expected, mut found) = (BTreeSet::new(), BTreeSet::new());
    tree("", &serde_json::from_str(theirs).unwrap(), &mut expected);
    tree("", ours, &mut found);
    let missing: Vec<_> = expected.difference(&found).collect();
    let added: Vec<_> = found.difference(&expected).collect();
    assert!(
        missing.is_empty() && added.is_empty(),
        "{name}: missing {missing:#?}, added {added:#?}"
    );
}

fn two(plan: Plan) -> Plan {
    Plan { streams: 2, ..plan }
}

#[test]
fn a_clients_documents_have_iperf3s_keys_and_types() {
    let both = Direction::Both;
    let back = Direction::Receive;
    let cases = [
        ("tcp", captured!("tcp.client"), plan()),
        (
            "tcp -R",
            captured!("tcp_reverse.client"),
            pointed(plan(), back),
        ),
        (
            "tcp --bidir",
            captured!("tcp_bidir.client"),
            pointed(plan(), both),
        ),
        ("tcp -P 2", captured!("tcp_p2.client"), two(plan())),
        (
            "tcp -P 2 --bidir",
            captured!("tcp_p2_bidir.client"),
            two(pointed(plan(), both)),
        ),
        ("tcp -O 1", captured!("tcp_omit.client"), with_omit(plan())),
        (
            "tcp -n 5M",
            captured!("tcp_bytes.client"),
            Plan {
                end: End::Bytes(Bytes(5 << 20)),
                ..plan()
            },
        ),
        ("udp", captured!("udp.client"), udp_plan()),
        (
            "udp -R",
            captured!("udp_reverse.client"),
            pointed(udp_plan(), back),
        ),
        (
            "udp --bidir",
            captured!("udp_bidir.client"),
            pointed(udp_plan(), both),
        ),
        ("udp -P 2", captured!("udp_p2.client"), two(udp_plan())),
        (
            "udp -O 1",
            captured!("udp_omit.client"),
            with_omit(udp_plan()),
        ),
    ];
    for (name, theirs, plan) in cases {
        compare(
            name,
            theirs,
            &document(&record(&plan, Role::Client, Traffic::default())),
        );
        let stock = linerate_testing::fixture::against_stock(
            record(&plan, Role::Client, Traffic::default()),
            Role::Server,
        );
        compare(
            &format!("{name} with a stock server"),
            theirs,
            &document(&stock),
        );
    }
}

#[test]
fn options_that_show_have_iperf3s_keys_and_types() {
    let asked = Plan {
        mss_bytes: Some(1000),
        rate_bps: Some(BitRate(10_000_000)),
        window_bytes: Some(Bytes(256 << 10)),
        kernel_pacing_bps: Some(BitRate(20_000_000)),
        ..plan()
    };
    let asked = document(&record(&asked, Role::Client, Traffic::default()));
    compare("rate", captured!("tcp_rate.client"), &asked);
    let titled = Plan {
        title: Some("hello".into()),
        extra_data: Some("more".into()),
        ..plan()
    };
    let titled = document(&record(&titled, Role::Client, Traffic::default()));
    compare("title", captured!("tcp_title.client"), &titled);

    let mut told = record(&plan(), Role::Client, Traffic::default());
    told.peer_results = Some(PeerResults {
        output_text: Some("text".into()),
        ..PeerResults::default()
    });
    let settings = Iperf3Settings {
        get_server_output: true,
        ..settings(&told)
    };
    let ours = serde_json::from_str(&json_lines(settings, &told)[0]).unwrap();
    compare(
        "server output",
        captured!("tcp_server_output.client"),
        &ours,
    );
}

#[test]
fn a_servers_documents_have_iperf3s_keys_and_types() {
    let cases = [
        ("tcp", captured!("tcp.server"), plan()),
        (
            "tcp -R",
            captured!("tcp_reverse.server"),
            pointed(plan(), Direction::Receive),
        ),
        (
            "tcp --bidir",
            captured!("tcp_bidir.server"),
            pointed(plan(), Direction::Both),
        ),
        ("udp", captured!("udp.server"), udp_plan()),
        (
            "udp -R",
            captured!("udp_reverse.server"),
            pointed(udp_plan(), Direction::Receive),
        ),
    ];
    for (name, theirs, plan) in cases {
        compare(
            name,
            theirs,
            &document(&record(&plan, Role::Server, Traffic::default())),
        );
    }
}

#[test]
fn keys_come_in_iperf3s_order() {
    let theirs: Value = serde_json::from_str(captured!("tcp.client")).unwrap();
    let ours = document(&record(&plan(), Role::Client, Traffic::default()));
    for pointer in [
        "",
        "/start",
        "/start/test_start",
        "/intervals/0/streams/0",
        "/intervals/0/sum",
        "/end",
        "/end/streams/0/sender",
    ] {
        let keys = |document: &Value| -> Vec<String> {
            document
                .pointer(pointer)
                .and_then(Value::as_object)
                .unwrap()
                .keys()
                .cloned()
                .collect()
        };
        assert_eq!(keys(&ours), keys(&theirs), "{pointer}");
    }
}

#[test]
fn a_servers_keys_come_in_iperf3s_order() {
    let theirs: Value = serde_json::from_str(captured!("tcp.server")).unwrap();
    let ours = document(&record(&plan(), Role::Server, Traffic::default()));
    let keys = |document: &Value| -> Vec<String> {
        document["start"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(keys(&ours), keys(&theirs));
}

/// Scripts that cut lines out of a document find them where iperf3 has them.
#[test]
fn a_document_is_laid_out_as_iperf3s() {
    let record = record(&plan(), Role::Client, Traffic::default());
    let ours = json_lines(settings(&record), &record).join("\n");
    let heads = |text: &str| -> Vec<String> {
        let mut heads: Vec<String> = text
            .lines()
            .map(|line| {
                line.split_inclusive(":\t")
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect();
        heads.sort();
        heads.dedup();
        heads
    };
    assert_eq!(heads(&ours), heads(captured!("tcp.client").trim_end()));
    let failed = Json::new(Iperf3Settings::new(Role::Client), None).failed(Some("x"));
    assert!(failed[0].contains("\"intervals\":\t[],\n\t\"end\":\t{\n\t},\n"));
}

#[test]
fn a_failure_is_iperf3s_document_of_a_failure() {
    let record = record(&plan(), Role::Client, Traffic::default());
    let mut json = Json::new(settings(&record), Some(plan()));
    let text = "unable to connect to server: \"refused\"\n";
    let lines = json.failed(Some(text));
    let ours: Value = serde_json::from_str(&lines[0]).unwrap();
    compare("refused", captured!("refused.client"), &ours);
    assert_eq!(ours["error"], text);

    let streaming = Iperf3Settings {
        json_stream: true,
        ..settings(&record)
    };
    let lines = Json::new(streaming, None).failed(Some("no"));
    assert_eq!(
        lines,
        [
            r#"{"event":"error","data":"no"}"#,
            r#"{"event":"end","data":{}}"#
        ]
    );
}

#[test]
fn a_stream_of_lines_has_the_documents_parts() {
    let record = record(&plan(), Role::Client, Traffic::default());
    let whole = document(&record);
    let streaming = Iperf3Settings {
        json_stream: true,
        ..settings(&record)
    };
    let lines = json_lines(streaming.clone(), &record);
    let parsed: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<_> = parsed
        .iter()
        .map(|line| line["event"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["start", "interval", "interval", "end"]);
    assert_eq!(parsed[0]["data"], whole["start"]);
    assert_eq!(parsed[1]["data"], whole["intervals"][0]);
    assert_eq!(parsed[3]["data"], whole["end"]);

    let full = json_lines(
        Iperf3Settings {
            json_stream_full: true,
            ..streaming
        },
        &record,
    );
    assert_eq!(full.len(), 5);
    assert_eq!(serde_json::from_str::<Value>(&full[4]).unwrap(), whole);
}

#[test]
fn a_server_without_a_plan_still_has_a_document() {
    let record = record(
        &pointed(udp_plan(), Direction::Both),
        Role::Server,
        Traffic::default(),
    );
    let mut json = Json::new(
        Iperf3Settings {
            json_stream: true,
            ..settings(&record)
        },
        None,
    );
    let lines: Vec<_> = events(&record)
        .iter()
        .flat_map(|event| json.event(event))
        .collect();
    let start: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(start["data"]["test_start"]["protocol"], "UDP");
    assert_eq!(start["data"]["test_start"]["bidir"], 1);
    // What it cannot know it does not say.
    assert!(start["data"]["test_start"].get("duration").is_none());
    assert!(start["data"].get("target_bitrate").is_none());
    assert_eq!(start["data"]["accepted_connection"]["port"], 5201);
}
