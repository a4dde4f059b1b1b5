//! The plan in force, what both hosts are, the clocks, and remarks.

use linerate_model::record::Role;
use linerate_model::units::{BitRate, Bytes, Nanos, grouped};
use serde_json::Value;

use crate::json::value;
use crate::markup::Markup;
use crate::text::layout;
use crate::view::RunView;

pub(super) fn write(body: &mut Markup, view: &RunView) {
    notes(body, view);
    body.open("section", &[("class", "facts")]);
    body.element("h2", &[], "Plan and hosts");
    body.open("div", &[("class", "columns")]);
    group(body, "Plan", &facts("", &value(&view.plan)));
    for role in [Role::Client, Role::Server] {
        let end = view.end(role);
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
        group(body, &layout::capital(layout::role(role)), &all);
    }
    let mut run = vec![
        (
            "record's schema version".to_owned(),
            view.schema_version.to_string(),
        ),
        (
            "written by".to_owned(),
            format!(
                "{}, {} {}",
                layout::role(view.written_by),
                view.software.name,
                view.software.version
            ),
        ),
    ];
    run.extend(
        view.control
            .connect_ns
            .map(|took| ("control connection opened in".to_owned(), took.to_string())),
    );
    run.extend(
        view.control
            .mss_bytes
            .map(|mss| ("its maximum segment size".to_owned(), format!("{mss} B"))),
    );
    run.extend(view.clock.map(|clock| {
        let known = Nanos(clock.before.uncertainty_ns);
        (
            "clocks compared to within".to_owned(),
            format!("± {known} (half of the shortest round trip)"),
        )
    }));
    group(body, "Run", &run);
    body.close("div");
    body.close("section");
}

fn notes(body: &mut Markup, view: &RunView) {
    if view.notes.is_empty() {
        return;
    }
    body.open("section", &[("class", "notes")]);
    body.element("h2", &[], "Remarks");
    body.open("ul", &[]);
    for note in &view.notes {
        body.element("li", &[], &note.text);
    }
    body.close("ul");
    body.close("section");
}

fn group(body: &mut Markup, title: &str, facts: &[(String, String)]) {
    body.open("div", &[("class", "group")]);
    body.element("h3", &[], title);
    body.open("dl", &[]);
    for (name, text) in facts {
        body.element("dt", &[], name);
        body.element("dd", &[], text);
    }
    body.close("dl");
    body.close("div");
}

/// The members of an object that say something, by name, with their unit spelled.
pub(super) fn facts(before: &str, of: &Value) -> Vec<(String, String)> {
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
fn fact(key: &str, value: &Value) -> Option<(String, String)> {
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
