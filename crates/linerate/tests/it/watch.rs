//! `linerate watch plan`: what it prints of `watch.toml` and of a template of pSConfig, and how it ends.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::harness::{LINERATE, beside};

const PLAN: &str = r#"
[[segment]]
name = "uplink"
capacity = "20G"
[[host]]
names = "node[01-04]"
link = "10G"
groups = ["left"]
segments = ["uplink"]
[[host]]
names = "far"
reach = "iperf3"
[[task]]
name = "mesh"
test = "-t 10 -P 4"
mesh = "@left"
[[task]]
name = "uplink"
from = "@left!node04"
to = "far"
every = "1h"
"#;

/// A file of this text, in a folder of its own.
fn file(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn plan(path: &std::path::Path, options: &[&str]) -> Output {
    let _beside = beside();
    let mut command = Command::new(LINERATE);
    // Groups of this machine are none of the test's.
    command
        .env("HOME", "/nonexistent")
        .env_remove("XDG_CONFIG_HOME");
    command.args(["watch", "plan"]).arg(path).args(options);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_plan_is_printed_for_people_and_for_programs() {
    let (_folder, path) = file("watch.toml", PLAN);
    let output = plan(&path, &["--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["pairs"], 18);
    assert_eq!(document["tests_per_day"], 12 * 4 + 6 * 24);
    assert_eq!(document["ignored"], json!([]));
    let tasks = document["tasks"].as_array().unwrap();
    let short: Vec<_> = tasks
        .iter()
        .map(|task| (task["name"].as_str().unwrap(), &task["pairs"]))
        .collect();
    assert_eq!(short, [("mesh", &json!(12)), ("uplink", &json!(6))]);
    assert_eq!(document["segments"][0]["tests_per_day"], 144);
    let busy = document["hosts"][4]["busy"].as_f64().unwrap();
    assert!((busy - 144.0 * 11.5 / 86_400.0).abs() < 1e-9, "{busy}");
    assert_eq!(document["bound"]["resource"], "host far");
    let output = plan(&path, &[]);
    assert!(output.status.success());
    let printed = text(&output.stdout);
    assert!(
        printed.starts_with("18 pairs in 2 tasks, 192 tests a day\n"),
        "{printed}"
    );
    for line in [
        "mesh          12       6 h           48    11.5 s",
        "host far",
        "segment uplink",
        "disk ",
        "bound    host far needs ",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    assert!(!printed.contains("Cannot"), "{printed}");
}

#[test]
fn a_template_of_psconfig_is_told_by_what_it_holds() {
    let template = json!({
        "addresses": {
            "a": {"address": "192.0.2.1", "host": "ha"},
            "b": {"address": "192.0.2.2", "host": "hb", "no-agent": true},
            "c": {"address": "192.0.2.3", "no-agent": true},
        },
        "hosts": {"ha": {}, "hb": {}},
        "groups": {"g": {"type": "mesh", "addresses": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}},
        "tests": {
            "t": {"type": "throughput", "spec": {"source": "{% address[0] %}", "dest": "{% address[1] %}", "duration": "PT20S", "link-rtt": "PT1S"}},
            "r": {"type": "rtt", "spec": {"dest": "{% address[1] %}"}},
        },
        "schedules": {"s": {"repeat": "PT6H", "sliprand": true, "slip": "PT6H", "until": "P1D"}},
        "tasks": {"first": {"group": "g", "test": "t", "schedule": "s"}, "second": {"group": "g", "test": "r"}},
        "archives": {"x": {"archiver": "http", "data": {}}},
    });
    let (_folder, path) = file("template.txt", &template.to_string());
    let output = plan(&path, &["--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&document["pairs"], &document["tests_per_day"]),
        (&json!(6), &json!(24))
    );
    assert_eq!(document["cannot_run"][0]["pairs"], 2);
    let ignored = document["ignored"].to_string();
    for named in [
        "archives",
        "'until'",
        "type 'rtt'",
        "'link-rtt' of 't'",
        "2 pairs of which neither end has an agent",
    ] {
        assert!(ignored.contains(named), "{named}: {ignored}");
    }
    let printed = text(&plan(&path, &[]).stdout);
    assert!(printed.contains("\nNot read:\n  archives\n"), "{printed}");
    assert!(
        printed.contains(
            "\nCannot run:\n  2 pairs of task first, such as hb > c: neither host can run an agent"
        ),
        "{printed}"
    );
}

#[test]
fn what_is_wrong_with_a_plan_is_said_and_has_its_exit_code() {
    let too_often = PLAN.replace("every = \"1h\"", "every = \"30s\"");
    let (_folder, path) = file("watch.toml", &too_often);
    let output = plan(&path, &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains(
            "cannot be carried out: host far: its tests need 198720 s a day, 230 % of the day"
        ),
        "{said}"
    );
    assert!(text(&output.stdout).contains("\nCannot fit:\n  host far: "));
    let (_folder, path) = file("watch.toml", "[[host]]\nnames = \"a[1-\"\n");
    let output = plan(&path, &[]);
    assert_eq!(output.status.code(), Some(5));
    let said = text(&output.stderr);
    assert!(said.contains("watch.toml:2: names = \"a[1-\": "), "{said}");
    let (_folder, path) = file("template.json", "{\n\"addresses\": {},\n\"groups\": 1}");
    let output = plan(&path, &[]);
    assert_eq!(output.status.code(), Some(5));
    let said = text(&output.stderr);
    assert!(
        said.contains(
            "template.json:3: cannot read the pSConfig template: invalid type: integer `1`"
        ),
        "{said}"
    );
    assert_eq!(
        plan(&PathBuf::from("/nonexistent/watch.toml"), &[])
            .status
            .code(),
        Some(5)
    );
    // What a file says stays text on a terminal.
    let hostile = PLAN.replace("name = \"mesh\"", "name = \"me\\u001b[31msh\"");
    let (_folder, path) = file("watch.toml", &hostile);
    let output = plan(&path, &[]);
    assert!(output.status.success());
    assert!(!output.stdout.contains(&0x1b), "{}", text(&output.stdout));
}

#[test]
fn a_simulated_day_has_every_test_and_no_two_at_once() {
    let (_folder, path) = file("watch.toml", PLAN);
    let output = plan(&path, &["--json", "--simulate", "2"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let simulated = &document["simulated"];
    let due = simulated["due"].as_u64().unwrap();
    // Two days; each pair has one test in every period, the first one of which may have begun before.
    let a_day = document["tests_per_day"].as_u64().unwrap();
    assert!(due.abs_diff(2 * a_day) <= 15, "{simulated}");
    assert_eq!(simulated["measured"], due, "{simulated}");
    assert_eq!(
        (&simulated["overlaps"], &simulated["not_run"]),
        (&json!(0), &json!({}))
    );
    let printed = text(&plan(&path, &["--simulate", "1"]).stdout);
    assert!(
        printed.contains("no two tests used the same host or segment at once"),
        "{printed}"
    );
}
