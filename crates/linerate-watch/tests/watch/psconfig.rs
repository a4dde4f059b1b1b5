//! pSConfig's own code, version 5.2.4, expanded 200 templates that were drawn at random; we find the same tests.
#![expect(
    clippy::disallowed_methods,
    reason = "tests read the repository's files"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use linerate_model::plain_text::PlainText;
use linerate_testing::{Need, skipped};
use linerate_watch::psconfig::{self, PsconfigTest};
use linerate_watch::watched::{Reach, Watched};
use serde_json::{Value, json};

/// A template and what pSConfig's agents schedule of it, a JSON object a line. See the file's neighbour README.md.
fn fixtures() -> Vec<Value> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/watch/psconfig");
    let text = std::fs::read_to_string(folder.join("random.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A test as the fixtures write it: source, destination, who schedules it, and other fields with variables.
fn row(test: &PsconfigTest) -> Option<String> {
    let field = |key: &str| match test.spec.get(key) {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let scheduled_by = test.scheduled_by.clone()?;
    let fields = [
        field("source"),
        field("dest"),
        scheduled_by,
        field("source-node"),
        field("reverse"),
        field("local-address"),
    ];
    Some(fields.join("|"))
}

#[test]
fn the_tests_of_200_templates_are_those_that_psconfig_finds() {
    let fixtures = fixtures();
    assert_eq!(fixtures.len(), 200);
    let mut compared = 0;
    for (at, fixture) in fixtures.iter().enumerate() {
        let text = fixture["template"].to_string();
        let found: BTreeMap<String, Vec<String>> =
            serde_json::from_value(fixture["found"].clone()).unwrap();
        let ours = psconfig::tests("template.json", &text).unwrap();
        let ours: BTreeMap<String, Vec<String>> = ours
            .into_iter()
            .map(|(name, tests)| (name, tests.iter().filter_map(row).collect()))
            .collect();
        assert_eq!(ours, found, "template {at}: {text}");
        compared += found.values().map(Vec::len).sum::<usize>();
        // Every pair of two hosts is in the plan, or is named as left out.
        let plan = psconfig::read("template.json", &text, &Reach::Agent).unwrap();
        assert_eq!(plan.tasks.len(), found.len(), "template {at}");
    }
    assert!(compared > 1_500, "{compared}");
}

/// The template of `ESnet`, where `LINERATE_ESNET_TEMPLATE` says where it is: it is not ours to keep here.
#[test]
fn esnets_template_has_as_many_pairs_as_psconfigs_code_finds() {
    let Ok(path) = std::env::var("LINERATE_ESNET_TEMPLATE") else {
        let why = "LINERATE_ESNET_TEMPLATE names no file";
        return skipped(Need::EsnetTemplate, "5,040 pairs of ESnet's template", why);
    };
    let text = std::fs::read_to_string(&path).unwrap();
    let plan = psconfig::read(&path, &text, &Reach::Agent).unwrap();
    let pairs: usize = plan.tasks.iter().map(|task| task.pairs.len()).sum();
    assert_eq!(
        (pairs, plan.tasks.len()),
        (5_040, 53),
        "{:#?}",
        plan.ignored
    );
}

/// A template of two hosts with an agent each, one without, and one task; some of its parts are replaced.
fn plan(changes: &[(&str, Value)]) -> Watched {
    let mut template = json!({
        "addresses": {
            "a": {"address": "192.0.2.1", "host": "ha", "labels": {"v6": {"address": "2001:db8::1"}}},
            "b": {"address": "192.0.2.2", "host": "hb", "tags": ["site"]},
            "c": {"address": "192.0.2.3", "no-agent": true},
        },
        "hosts": {"ha": {"tags": ["core"]}, "hb": {}},
        "address-classes": {},
        "groups": {"g": {"type": "disjoint", "unidirectional": true, "a-addresses": [{"name": "a"}], "b-addresses": [{"name": "b"}]}},
        "tests": {"t": {"type": "throughput", "spec": {"source": "{% address[0] %}", "dest": "{% address[1] %}"}}},
        "schedules": {"s": {"repeat": "PT4H", "sliprand": true, "slip": "PT4H"}},
        "tasks": {"task": {"group": "g", "test": "t", "schedule": "s"}},
    });
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        template.pointer_mut(parent).unwrap()[key] = value.clone();
    }
    psconfig::read("t.json", &template.to_string(), &Reach::Iperf3(5201)).unwrap()
}

/// The pairs of the first task by the hosts' names.
fn pairs(plan: &Watched) -> Vec<(&str, &str)> {
    let name = |place: usize| plan.hosts[place].name.as_str();
    let pairs = plan.tasks[0].pairs.iter();
    pairs.map(|pair| (name(pair.from), name(pair.to))).collect()
}

fn ignored(plan: &Watched) -> String {
    let lines: Vec<&str> = plan.ignored.iter().map(PlainText::as_str).collect();
    lines.join("\n")
}

#[test]
fn hosts_addresses_and_schedules_are_those_of_the_template() {
    let one = plan(&[]);
    assert_eq!(pairs(&one), [("ha", "hb")]);
    assert_eq!(one.hosts[0].address, "192.0.2.1");
    assert_eq!(
        (&one.hosts[0].groups[..], &one.hosts[1].groups[..]),
        (&["core".into()][..], &["site".into()][..])
    );
    let schedule = &one.tasks[0].schedule;
    assert_eq!(
        (schedule.period_millis, schedule.slip_millis),
        (14_400_000, None)
    );
    assert_eq!(ignored(&one), "");
    let labelled = json!([{"name": "a", "label": "v6"}, {"name": "a"}]);
    let both = plan(&[("/groups/g/a-addresses", labelled)]);
    assert_eq!(pairs(&both), [("ha", "hb"), ("ha", "hb")]);
    assert_eq!(both.hosts[0].address, "2001:db8::1");
    let second = both.tasks[0].pairs[1].from_address.as_ref().unwrap();
    assert_eq!(*second, "192.0.2.1");
    let slips = plan(&[("/schedules/s", json!({"repeat": "P1D", "slip": "PT1H"}))]);
    assert_eq!(slips.tasks[0].schedule.slip_millis, Some(3_600_000));
    for schedule in [
        json!({}),
        json!({"repeat": "soon"}),
        json!({"repeat": "PT0S"}),
    ] {
        let once = plan(&[("/schedules/s", schedule)]);
        assert_eq!(once.tasks[0].schedule.period_millis, 86_400_000);
        assert!(
            ignored(&once).contains("'task' is tested once a day here"),
            "{}",
            ignored(&once)
        );
    }
}

#[test]
fn who_sends_is_what_the_specification_says() {
    let reversed = plan(&[("/tests/t/spec/reverse", json!(true))]);
    assert_eq!(pairs(&reversed), [("hb", "ha")]);
    let swapped = json!({"source": "{% address[1] %}", "dest": "{% address[0] %}"});
    assert_eq!(pairs(&plan(&[("/tests/t/spec", swapped)])), [("hb", "ha")]);
    let without_source = json!({"dest": "{% address[1] %}"});
    assert_eq!(
        pairs(&plan(&[("/tests/t/spec", without_source)])),
        [("ha", "hb")]
    );
    let outside = json!({"source": "{% address[0] %}", "dest": "far.example.net", "single-ended": true, "single-ended-port": 5210});
    let outside = plan(&[("/tests/t/spec", outside)]);
    assert_eq!(pairs(&outside), [("ha", "far.example.net")]);
    assert_eq!(outside.hosts[1].reach, Reach::Iperf3(5210));
    let foreign = plan(&[("/groups/g/b-addresses", json!([{"name": "c"}]))]);
    assert_eq!(
        (pairs(&foreign), &foreign.hosts[1].reach),
        (vec![("ha", "c")], &Reach::Iperf3(5201))
    );
    // The first end has no agent: the second one's agent schedules the test, and the flip turns the direction.
    let flipped = plan(&[
        ("/groups/g/a-addresses", json!([{"name": "c"}])),
        ("/tests/t/spec/reverse", json!("{% flip %}")),
    ]);
    assert_eq!(pairs(&flipped), [("hb", "c")]);
}

#[test]
fn what_is_not_read_is_named() {
    let jq = json!({"data-source": {"type": "current-config"}, "match-filter": {"type": "jq", "jq": {"script": "."}}});
    let endless = json!({"data-source": {"type": "current-config"}, "match-filter": {"type": "address-class", "class": "k"}});
    let names = json!({"data-source": {"type": "current-config"}, "match-filter": {"type": "ip-version", "ip-version": 4}});
    let elsewhere = json!({"data-source": {"type": "requesting-agent"}});
    let class = ("/groups/g/b-addresses", json!([{"class": "k"}]));
    let with = |value: &Value| plan(&[("/address-classes/k", value.clone()), class.clone()]);
    for (value, why) in [
        (&jq, "type 'jq' are not read"),
        (&endless, "more than 16 deep"),
        (&elsewhere, "'requesting-agent'"),
    ] {
        let plan = with(value);
        assert_eq!(plan.tasks[0].pairs, []);
        let said = "address-classes: 'k' selects nothing: ";
        assert!(
            ignored(&plan).contains(said) && ignored(&plan).contains(why),
            "{}",
            ignored(&plan)
        );
    }
    assert_eq!(with(&names).tasks[0].pairs.len(), 2);
    let named = plan(&[
        ("/address-classes/k", names),
        class.clone(),
        ("/addresses/b/address", json!("b.example.net")),
    ]);
    assert!(
        ignored(&named).contains("names are not resolved here"),
        "{}",
        ignored(&named)
    );
    for (change, value, why) in [
        (
            "/groups/g/b-addresses",
            json!([{"name": "z"}]),
            "groups: 'g' names the address 'z', which is not there",
        ),
        (
            "/groups/g/b-addresses",
            json!([{"class": "z"}]),
            "address-classes: 'z' selects nothing: there is no such class",
        ),
        (
            "/tasks/task/group",
            json!("z"),
            "tasks: 'task' names the group 'z'",
        ),
        (
            "/tasks/task/test",
            json!("z"),
            "tasks: 'task' names the test 'z'",
        ),
        (
            "/tasks/task/scheduled-by",
            json!(2),
            "tasks: 'task' has scheduled-by = 2, and its tests have 2 ends",
        ),
        (
            "/tasks/task/disabled",
            json!(true),
            "tasks: 1 that are disabled",
        ),
        (
            "/tasks/task/tools",
            json!(["iperf3"]),
            "tasks: the key 'tools', in 1 entries",
        ),
        (
            "/tests/t/spec/dest",
            json!("{% jq . %}"),
            "variables with jq are not read",
        ),
        (
            "/tests/t/spec/dest",
            json!("{% address[2] %}"),
            "'address[2]' is of an end that is not there",
        ),
        (
            "/tests/t/spec/dest",
            json!("{% address[0] %}"),
            "1 tests of a host with itself",
        ),
        (
            "/tests/t/spec/parallel",
            json!(500),
            "its test 't' cannot be run: -P: 500 streams",
        ),
        (
            "/tests/t/spec/burst-size",
            json!(9),
            "tests: 'burst-size' of 't': linerate paces by its own rule",
        ),
        ("/includes", json!(["http://192.0.2.9/"]), "includes"),
    ] {
        let plan = plan(&[(change, value)]);
        assert!(ignored(&plan).contains(why), "{change}: {}", ignored(&plan));
    }
}

#[test]
fn a_template_that_cannot_be_read_is_refused_with_its_line() {
    for (text, said) in [
        ("{", "t.json:1: cannot read the pSConfig template: EOF"),
        (
            "{\"addresses\": {},\n\"groups\": {}}",
            "t.json:2: cannot read the pSConfig template: missing field `tests`",
        ),
        (
            "{\"addresses\": {\n\"a\": {\"address\": 1}}}",
            "t.json:2: cannot read the pSConfig template: invalid type: integer `1`",
        ),
    ] {
        let error = psconfig::read("t.json", text, &Reach::Agent).unwrap_err();
        assert!(error.to_string().starts_with(said), "{error}");
    }
    let mut addresses = serde_json::Map::new();
    for at in 0..2_100 {
        addresses.insert(format!("a{at}"), json!({"address": format!("a{at}")}));
    }
    let all: Vec<Value> = addresses.keys().map(|name| json!({"name": name})).collect();
    let template = json!({
        "addresses": addresses,
        "groups": {"g": {"type": "mesh", "addresses": all}},
        "tests": {"t": {"type": "throughput", "spec": {"dest": "{% address[1] %}"}}},
        "tasks": {"task": {"group": "g", "test": "t"}},
    });
    let error = psconfig::read("t.json", &template.to_string(), &Reach::Agent).unwrap_err();
    assert_eq!(error, psconfig::TemplateError::TooLarge);
}

#[test]
fn names_that_are_shown_alike_are_one_task() {
    let task = json!({"group": "g", "test": "t", "schedule": "s"});
    let plan = plan(&[("/tasks/x\u{7f}", task.clone()), ("/tasks/x\\u{7f}", task)]);
    assert_eq!(plan.tasks.len(), 2);
    assert!(
        ignored(&plan).contains("another task has this name"),
        "{}",
        ignored(&plan)
    );
}
