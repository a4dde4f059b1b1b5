//! The report as one JSON document.
//!
//! Each member of the document stands on a line of its own. What is not known is `null` or absent,
//! never 0; no number is infinite. Amounts are bytes, rates bit/s, times ns unless a key says otherwise.
//! For a bidirectional test the figures at the top of `summary` are sums over its `directions`.

use linerate_model::finding::Finding;
use linerate_model::record::{EndRecord, RunRecord};
use serde_json::{Map, Value, json};

use crate::view::{DirectionView, RunView};

/// The whole document, without a newline at its end.
pub fn document(view: &RunView, record: &RunRecord) -> String {
    lines(&members(view, record))
}

/// A document of another kind than a run: its `kind` first, then the fields, without a newline at its end.
pub fn of_kind(kind: &str, fields: &impl serde::Serialize) -> String {
    let mut document = object([("kind", kind.into())]);
    if let Value::Object(fields) = value(fields) {
        document.extend(fields);
    }
    pretty(&document)
}

/// A document over many lines, without a newline at its end. (Keys are strings throughout and no number is infinite:
/// nothing can fail.)
pub fn pretty(of: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(of).unwrap_or_default()
}

/// An object with each member on a line of its own, without a newline at its end.
pub(crate) fn lines(members: &Map<String, Value>) -> String {
    let mut text = String::from("{");
    for (number, (key, value)) in members.iter().enumerate() {
        text.push_str(if number == 0 { "\n  " } else { ",\n  " });
        text.push_str(&Value::from(key.as_str()).to_string());
        text.push_str(": ");
        text.push_str(&value.to_string());
    }
    text.push_str("\n}");
    text
}

/// The document's members, in order.
pub(crate) fn members(view: &RunView, record: &RunRecord) -> Map<String, Value> {
    let mut summary = value(&view.summary);
    if let Value::Object(summary) = &mut summary {
        summary.insert("directions".to_owned(), value(&view.directions));
    }
    let mut members = object([
        ("schema_version", value(&view.schema_version)),
        ("kind", value(&view.kind)),
        ("software", value(&view.software)),
        ("written_by", value(&view.written_by)),
        ("started_at_unix_ms", value(&view.started_at_unix_ms)),
        ("cookie", value(&record.cookie)),
        ("plan", value(&view.plan)),
        ("outcome", value(&view.outcome)),
        ("control", value(&view.control)),
        ("client", value(&view.client)),
        ("server", value(&view.server)),
        ("summary", summary),
        ("time_budget", view.directions.iter().map(budget).collect()),
        ("expect", value(&view.expect)),
        ("precision", value(&view.precision)),
        ("transfer", value(&view.transfer)),
        ("findings", value(&view.findings)),
        ("counter_tests", counter_tests(view)),
        ("counter_runs", value(&record.counter_runs)),
        ("diagnosis", value(&view.diagnosis)),
        ("ledger", value(&view.ledger)),
        ("streams", value(&view.streams)),
        ("intervals", value(&view.intervals)),
        ("clock", value(&view.clock)),
        ("notes", value(&view.notes)),
        ("peer_results", value(&record.peer_results)),
        (
            "samples",
            json!({ "client": record.client.as_ref().map(samples), "server": record.server.as_ref().map(samples) }),
        ),
    ]);
    // Only where it was asked for.
    members.extend(
        view.latency
            .as_ref()
            .map(|latency| ("latency".to_owned(), value(latency))),
    );
    members
}

/// An object of these members, in their order.
pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

/// A value as JSON; what cannot be told is null. (Keys are strings throughout, so nothing is lost.)
pub(crate) fn value(of: &impl serde::Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

/// `{"found": {…}}` as `{"event": "found", …}`, and `"ended"` as `{"event": "ended"}`.
pub(crate) fn event(of: &impl serde::Serialize) -> Map<String, Value> {
    let mut members = Map::new();
    let one = match value(of) {
        Value::String(name) => object([(&name, Value::Null)]),
        Value::Object(one) => one,
        _ => return members,
    };
    for (name, inner) in one {
        members.insert("event".to_owned(), Value::String(name));
        if let Value::Object(inner) = inner {
            members.extend(inner);
        }
    }
    members
}

/// The last line of a stream: a whole document as an event named `end`.
pub(crate) fn end_line(document: Map<String, Value>) -> String {
    let mut members = object([("event", Value::from("end"))]);
    members.extend(document);
    Value::Object(members).to_string()
}

/// What counter-tests say, each with its finding.
fn counter_tests(view: &RunView) -> Value {
    let of_finding = |finding: &Finding| -> Vec<Value> {
        let tests = finding.tested.iter().flat_map(|tested| &tested.tests);
        tests
            .map(|test| {
                let mut test = value(test);
                test["finding"] = value(&finding.id);
                test
            })
            .collect()
    };
    view.findings.iter().flat_map(of_finding).collect()
}

fn budget(direction: &DirectionView) -> Value {
    match (&direction.time_budget, &direction.time_budget_unknown) {
        (Some(budget), _) => {
            let mut budget = value(budget);
            budget["flow"] = value(&direction.flow);
            budget
        }
        (None, reason) => json!({ "flow": direction.flow, "unknown": reason }),
    }
}

/// An end's series, as the record has them.
fn samples(end: &EndRecord) -> Value {
    let streams: Vec<Value> = end
        .streams
        .iter()
        .map(|stream| json!({ "id": stream.id, "flow": stream.flow, "sends": stream.sends, "thinned": stream.thinned, "series": stream.samples }))
        .collect();
    json!({ "start_ns": end.start_ns, "end_ns": end.end_ns, "streams": streams, "counters": end.counters })
}
