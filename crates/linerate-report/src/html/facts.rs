//! The plan in force, what both hosts are, the clocks, and remarks.

use linerate_model::record::Role;
use linerate_model::units::{BitRate, Bytes, Nanos, grouped};
use maud::{Markup, html};
use serde_json::Value;

use crate::json::value;
use crate::markup;
use crate::text::layout;
use crate::view::{EndView, RunView};

pub(super) fn sections(view: &RunView) -> Markup {
    html! {
        @if !view.notes.is_empty() {
            section class="notes" {
                h2 { "Remarks" }
                ul { @for note in &view.notes { li { (note.text) } } }
            }
        }
        section class="facts" {
            h2 { "Plan and hosts" }
            div class="columns" {
                (group("Plan", &facts("", &value(&view.plan))))
                @for role in [Role::Client, Role::Server] {
                    (group(&layout::capital(layout::role(role)), &end(view.end(role))))
                }
                (group("Run", &run(view)))
            }
        }
    }
}

fn end(end: &EndView) -> Vec<Fact> {
    let mut all = vec![
        ("software".to_owned(), end.software.to_string()),
        ("address".to_owned(), end.address.to_string()),
    ];
    if end.known {
        all.extend(facts("", &value(&end.host)));
    } else {
        all.push(("host".to_owned(), "tells nothing of itself".to_owned()));
    }
    if let Some(interface) = &end.interface {
        all.extend(facts("interface ", &value(interface)));
    }
    all
}

fn run(view: &RunView) -> Vec<(&'static str, String)> {
    let (role, software) = (layout::role(view.written_by), &view.software);
    let mut run = vec![
        ("record's schema version", view.schema_version.to_string()),
        (
            "written by",
            format!("{role}, {} {}", software.name, software.version),
        ),
    ];
    let took = view.control.connect_ns;
    run.extend(took.map(|took| ("control connection opened in", took.to_string())));
    let mss = view.control.mss_bytes;
    run.extend(mss.map(|mss| ("its maximum segment size", format!("{mss} B"))));
    run.extend(view.clock.map(|clock| {
        let known = Nanos(clock.before.uncertainty_ns);
        let known = format!("± {known} (half of the shortest round trip)");
        ("clocks compared to within", known)
    }));
    run
}

fn group(title: &str, facts: &[(impl AsRef<str>, String)]) -> Markup {
    html! {
        div class="group" {
            h3 { (title) }
            (markup::list(None, facts))
        }
    }
}

/// A fact's name, and what it is.
type Fact = (String, String);

/// The members of an object that say something, by name, with their unit spelled.
pub(super) fn facts(before: &str, of: &Value) -> Vec<Fact> {
    let Value::Object(members) = of else {
        return Vec::new();
    };
    members
        .iter()
        .filter_map(|(key, value)| {
            let (name, text) = fact(key, value)?;
            Some((format!("{before}{name}"), text))
        })
        .collect()
}

/// `block_bytes: 1048576` as `block: 1.00 MiB (1,048,576)`. What is absent, or a switch that is off, is none.
fn fact(key: &str, value: &Value) -> Option<Fact> {
    let text = match value {
        Value::Null | Value::Bool(false) => return None,
        Value::Bool(true) => "yes".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_u64() {
            Some(count) => amount(key, count),
            None => number.to_string(),
        },
        Value::Array(items) => items
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" "),
        Value::Object(members) => {
            let (inner, value) = members.iter().next()?;
            let (name, text) = fact(inner, value)?;
            return Some((format!("{}, {name}", spaced(key)), text));
        }
    };
    Some((spaced(key), text))
}

fn amount(key: &str, count: u64) -> String {
    let exact = |text: String| {
        if count < 1000 {
            text
        } else {
            format!("{text} ({})", grouped(count))
        }
    };
    if key.ends_with("_ns") {
        Nanos(count).to_string()
    } else if key.ends_with("_bps") {
        BitRate(count).to_string()
    } else if key.ends_with("bytes") || key.ends_with("mem_max") {
        exact(Bytes(count).to_string())
    } else if key.ends_with("_mbit_per_s") {
        BitRate(count.saturating_mul(1_000_000)).to_string()
    } else {
        count.to_string()
    }
}

/// A key as words, its unit left to its value. Names of sysctls stay as they are.
fn spaced(key: &str) -> String {
    if key.contains("mem") && !key.starts_with("memory") {
        return key.to_owned();
    }
    let name = ["_bytes", "_ns", "_bps", "_mbit_per_s"]
        .iter()
        .find_map(|unit| key.strip_suffix(unit))
        .unwrap_or(key);
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn facts_are_spelled_with_their_units_and_what_is_absent_is_left_out() {
        let of = json!({"block_bytes": 1_048_576, "end": {"time_ns": 10_000_000_000_u64}, "nodelay": false, "mptcp": true,
            "rate_bps": null, "tcp_rmem": [4096, 131_072, 6_291_456], "rmem_max": 212_992, "speed_mbit_per_s": 25_000});
        let expected = [
            ("block", "1.00 MiB (1,048,576)"),
            ("end, time", "10.0 s"),
            ("mptcp", "yes"),
            ("tcp_rmem", "4096 131072 6291456"),
            ("rmem_max", "208 KiB (212,992)"),
            ("speed", "25.0 Gbit/s"),
        ];
        let found = facts("", &of);
        assert_eq!(
            found,
            expected.map(|(name, text)| (name.to_owned(), text.to_owned()))
        );
    }
}
