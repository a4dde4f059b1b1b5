//! `checks/<check>.json`: its cases, each a host of `hosts/`, what is set on it, the task, and what the check must say.
//! Every check has a case in which it fires, one in which it does not, and one in which it cannot know.

use std::collections::BTreeMap;

use linerate_model::audit::{Outcome, Target, Verdict};
use linerate_model::host::HostFacts;
use linerate_model::remedy::{BufferSizes, Fix};
use linerate_model::units::Bytes;
use linerate_tune::checks::CHECKS;
use serde_json::{Map, Value, json};

use crate::hosts::{document, folder};

#[derive(serde::Deserialize)]
struct Case {
    host: String,
    target: Target,
    #[serde(default)]
    set: Map<String, Value>,
    earlier: Option<Map<String, Value>>,
    expect: Expect,
}

#[derive(serde::Deserialize)]
struct Expect {
    outcome: String,
    /// Parts of what it says.
    says: Vec<String>,
    /// Values of the settings that it recommends; the three of a buffer by their last.
    #[serde(default)]
    changes: BTreeMap<String, String>,
    severity: Option<u8>,
    /// Parts of why its first value is recommended.
    #[serde(default)]
    why: Vec<String>,
}

/// Sets a value by its path; elements of lists are found by name, kind or the like, and made where there is none.
fn set(document: &mut Value, path: &str, value: &Value) {
    let mut at = document;
    for part in path.split('/') {
        at = match at {
            Value::Array(list) => {
                let named = |one: &Value| {
                    ["name", "kind", "file_system"]
                        .iter()
                        .any(|key| one[*key] == part)
                };
                if let Some(found) = list.iter().position(named) {
                    &mut list[found]
                } else {
                    list.push(json!({ "name": part }));
                    list.last_mut().unwrap()
                }
            }
            other => &mut other[part],
        };
    }
    *at = value.clone();
}

fn facts(host: &str, changes: &Map<String, Value>) -> HostFacts {
    let mut document = document(host);
    for (path, value) in changes {
        set(&mut document, path, value);
    }
    serde_json::from_value(document).unwrap()
}

fn words(outcome: &Outcome) -> (&'static str, &str) {
    match outcome {
        Outcome::Fires { sentence, .. } => ("fires", sentence),
        Outcome::Holds { read } => ("holds", read),
        Outcome::CannotKnow { why } => ("cannot_know", why),
        Outcome::DoesNotApply { why } => ("does_not_apply", why),
    }
}

fn fault(case: &Case, verdicts: &[Verdict]) -> Option<String> {
    let said: Vec<_> = verdicts.iter().map(|one| words(&one.outcome)).collect();
    let fires = said.iter().any(|(outcome, _)| *outcome == "fires");
    if fires != (case.expect.outcome == "fires") {
        return Some(format!("{said:?}"));
    }
    let fits = |verdict: &&Verdict| {
        let (outcome, text) = words(&verdict.outcome);
        outcome == case.expect.outcome && case.expect.says.iter().all(|part| text.contains(part))
    };
    let Some(found) = verdicts.iter().find(fits) else {
        return Some(format!(
            "nothing is {} and says {:?}: {said:?}",
            case.expect.outcome, case.expect.says
        ));
    };
    let Outcome::Fires {
        changes, severity, ..
    } = &found.outcome
    else {
        return None;
    };
    if case
        .expect
        .severity
        .is_some_and(|wanted| wanted != *severity)
    {
        return Some(format!("severity {severity}"));
    }
    for (setting, value) in &case.expect.changes {
        let change = changes
            .iter()
            .find(|change| change.advised.setting() == *setting);
        if change.is_none_or(|change| change.advised.value() != *value) {
            return Some(format!("{setting} is not {value}: {changes:?}"));
        }
    }
    let why = changes.first().map_or("", |change| &change.why);
    let missing = case.expect.why.iter().find(|part| !why.contains(*part));
    missing.map(|part| format!("'{part}' is not why: {why}"))
}

#[test]
fn every_check_fires_holds_and_cannot_know_where_it_should() {
    let mut faults = Vec::new();
    for check in &CHECKS {
        let path = folder().join("checks").join(format!("{}.json", check.id));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|_| "{}".to_owned());
        let cases: BTreeMap<String, Case> = serde_json::from_str(&text).unwrap();
        for name in ["fires", "holds", "unknown"] {
            if !cases.contains_key(name) {
                faults.push(format!("{}: no case '{name}'", check.id));
            }
        }
        for (name, case) in cases {
            let now = facts(&case.host, &case.set);
            let earlier = case.earlier.as_ref().map(|set| facts(&case.host, set));
            let audit = linerate_tune::audit(&now, earlier.as_ref(), &case.target).unwrap();
            let verdicts: Vec<Verdict> = audit
                .verdicts
                .into_iter()
                .filter(|verdict| verdict.check == check.id)
                .collect();
            if let Some(fault) = fault(&case, &verdicts) {
                faults.push(format!("{}/{name}: {fault}", check.id));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn no_file_is_of_no_check() {
    for entry in std::fs::read_dir(folder().join("checks")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy();
        assert!(CHECKS.iter().any(|check| check.id == name), "{name}");
    }
}

#[test]
fn names_are_unique_and_in_order_of_their_families() {
    let names: Vec<&str> = CHECKS.iter().map(|check| check.id).collect();
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
    for check in &CHECKS {
        assert!((1..=4).contains(&check.severity), "{}", check.id);
        assert!(
            !check.source.is_empty() && !check.scope.is_empty(),
            "{}",
            check.id
        );
    }
}

#[test]
fn the_checks_that_remedies_name_are_there() {
    let sizes = BufferSizes {
        first: None,
        most: 1 << 20,
    };
    for (fix, reads) in [
        (Fix::ReceiveBuffer(sizes), "net.ipv4.tcp_rmem"),
        (Fix::SendBuffer(sizes), "net.ipv4.tcp_wmem"),
        (Fix::ReceiveBufferLimit(Bytes(1 << 20)), "net.core.rmem_max"),
        (Fix::Streams(4), "maximum window"),
        (Fix::MtuProbing, "net.ipv4.tcp_mtu_probing"),
    ] {
        let id = fix.check();
        let check = CHECKS.iter().find(|check| Some(check.id) == id);
        assert!(
            check.is_some_and(|check| check.reads.contains(reads)),
            "{id:?}"
        );
    }
    assert_eq!(Fix::Window(None).check(), None);
}
