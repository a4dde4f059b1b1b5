//! pSConfig's own code, version 5.2.4, expanded 200 templates that were drawn at random; we find the same tests.
#![expect(
    clippy::disallowed_methods,
    reason = "tests read the repository's files"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use linerate_testing::{Need, skipped};
use linerate_watch::psconfig::{self, PsconfigTest};
use linerate_watch::watched::Reach;
use serde_json::Value;

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
