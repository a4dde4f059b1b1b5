//! What a host is, what is wrong with it, and how two differ: text for people, and documents.

mod audit;
mod changes;
mod difference;
mod facts;
mod majority;
mod plan;
mod storage;

use std::collections::BTreeMap;

use linerate_model::change_set::{self, Probe, SetView};
use linerate_model::fingerprint::Fingerprint;
use linerate_model::host::{HostFacts, HostFactsError, SCHEMA_VERSION};
use serde::Serialize;
use serde_json::{Value, json};

use crate::json::of_kind;

pub use audit::report as audit_report;
pub use changes::{persist_report, set_report, sets_report, verification_report};
pub use difference::report as difference_report;
pub use facts::report as facts_report;
pub use majority::report as majority_report;
pub use plan::report as plan_report;

/// What an apply, a revert or a rollback came to, as a document.
pub fn set_document(set: &SetView, probes: &[Probe]) -> String {
    let sets =
        json!({ "schema_version": change_set::SCHEMA_VERSION, "set": set, "probes": probes });
    of_kind("tune_set", &sets)
}

/// All sets of changes as a document, the oldest first.
pub fn sets_document(sets: &[SetView]) -> String {
    let sets = json!({ "schema_version": change_set::SCHEMA_VERSION, "sets": sets });
    of_kind("tune_status", &sets)
}

/// Files that keep settings over a boot, as a document.
pub fn persist_document(
    written: bool,
    files: &[(String, String)],
    left_out: &[(String, String)],
    warnings: &[String],
) -> String {
    let file = |(path, text): &(String, String)| json!({ "path": path, "text": text });
    let left = |(object, why): &(String, String)| json!({ "object": object, "why": why });
    let kept = json!({
        "schema_version": change_set::SCHEMA_VERSION,
        "written": written,
        "files": files.iter().map(file).collect::<Vec<_>>(),
        "left_out": left_out.iter().map(left).collect::<Vec<_>>(),
        "warnings": warnings,
    });
    of_kind("tune_persist", &kept)
}

/// Files that were removed, or would be, as a document; `warnings` say what remains to be done.
pub fn removed_document(done: bool, files: &[String], warnings: &[&str]) -> String {
    let key = if done { "removed" } else { "would_remove" };
    let removed = json!({
        "schema_version": change_set::SCHEMA_VERSION,
        key: files,
        "warnings": warnings,
    });
    of_kind("tune_persist", &removed)
}

/// The facts of a host and their fingerprints, one for each interface with a device.
#[derive(Debug, Serialize)]
pub struct Described<'a> {
    #[serde(flatten)]
    facts: &'a HostFacts,
    fingerprints: BTreeMap<String, Fingerprint>,
}

impl<'a> Described<'a> {
    /// As `linerate host --json` writes it; [`from_json`] reads the facts.
    pub fn of(facts: &'a HostFacts) -> Self {
        Self {
            facts,
            fingerprints: facts.fingerprints(),
        }
    }
}

/// Reads the facts of a host. A newer schema is refused by name; fields that this build does not know are
/// ignored, and those that are not there are unknown.
///
/// # Errors
/// What is no facts of a host says why.
pub fn from_json(bytes: &[u8]) -> Result<HostFacts, HostFactsError> {
    let not_facts = |reason: String| HostFactsError::NotFacts { reason };
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| not_facts(error.to_string()))?;
    let kind = value.get("kind").and_then(Value::as_str);
    if kind != Some("host") {
        return Err(not_facts(match kind {
            Some(kind) => format!("they are of kind '{kind}'"),
            None => "they have no kind".to_owned(),
        }));
    }
    match value.get("schema_version").and_then(Value::as_u64) {
        None => return Err(not_facts("they have no schema_version".to_owned())),
        Some(found) if found > u64::from(SCHEMA_VERSION) => {
            return Err(HostFactsError::Newer { found });
        }
        Some(_) => {}
    }
    serde_json::from_value(value).map_err(|error| not_facts(error.to_string()))
}

#[cfg(test)]
mod tests {
    use linerate_model::host::Fact;

    use super::*;

    #[test]
    fn facts_are_written_and_read_again() {
        let mut facts = HostFacts {
            schema_version: SCHEMA_VERSION,
            ..HostFacts::default()
        };
        facts
            .sysctls
            .insert("net.ipv4.tcp_sack".to_owned(), Fact::Known("1".to_owned()));
        let text = of_kind("host", &facts);
        assert_eq!(from_json(text.as_bytes()).unwrap(), facts);
    }

    #[test]
    fn what_is_no_facts_says_why() {
        for (text, part) in [
            ("", "not the facts"),
            ("{}", "no kind"),
            (r#"{"kind":"test"}"#, "of kind 'test'"),
            (r#"{"kind":"host"}"#, "no schema_version"),
            (r#"{"kind":"host","schema_version":99}"#, "version 99"),
            (
                r#"{"kind":"host","schema_version":1,"sysctls":7}"#,
                "invalid type",
            ),
        ] {
            let error = from_json(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        let sparse = from_json(br#"{"kind":"host","schema_version":1}"#).unwrap();
        assert_eq!(sparse.interfaces.why(), "these facts do not contain it");
    }
}
