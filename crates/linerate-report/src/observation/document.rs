//! The JSON document: a member a line, connections with their samples.

use serde_json::{Map, Value, json};

use super::{ConnectionView, ObservationView};
use crate::json::{object, value};

pub(super) fn members(view: &ObservationView<'_>) -> Map<String, Value> {
    let seen = view.observation;
    let total = |way: usize| -> u64 {
        seen.connections
            .iter()
            .fold(0, |sum, one| sum.saturating_add(one.moved()[way]))
    };
    let summary = json!({
        "connections": seen.connections.len(),
        "explained": view.explained(),
        "bytes_acked_while_watched": total(0),
        "bytes_received_while_watched": total(1),
    });
    object([
        ("schema_version", value(&seen.schema_version)),
        ("kind", value(&seen.kind)),
        ("software", value(&seen.software)),
        ("started_at_unix_ms", value(&seen.started_at_unix_ms)),
        ("watch", value(&seen.watch)),
        ("ended", value(&seen.ended)),
        ("host", value(&seen.host)),
        ("start_ns", value(&seen.start_ns)),
        ("end_ns", value(&seen.end_ns)),
        ("interfaces", value(&seen.interfaces)),
        ("sampling", value(&seen.sampling)),
        ("summary", summary),
        (
            "connections",
            view.connections.iter().map(connection).collect(),
        ),
        ("counters", value(&seen.counters)),
        ("protocol_growth", value(&seen.protocol_growth)),
        ("notes", value(&seen.notes)),
    ])
}

/// The record's own words, what was derived from them, and the samples last.
fn connection(one: &ConnectionView<'_>) -> Value {
    let mut members = match value(one.connection) {
        Value::Object(members) => members,
        other => return other,
    };
    let samples = members.shift_remove("samples");
    let [out, inn] = one.connection.moved();
    members.insert("bytes_acked_while_watched".to_owned(), out.into());
    members.insert("bytes_received_while_watched".to_owned(), inn.into());
    if let Some(explained) = &one.explained {
        // In these, the end that opened the connection is called the client.
        let here = value(&one.connection.role());
        members.insert("this_host_is".to_owned(), here);
        members.insert("directions".to_owned(), value(&explained.directions));
        members.insert("findings".to_owned(), value(&explained.findings));
        members.insert("ledger".to_owned(), value(&explained.ledger));
        members.insert("intervals".to_owned(), value(&explained.intervals));
    }
    members.insert("samples".to_owned(), samples.unwrap_or(Value::Null));
    Value::Object(members)
}
