//! The JSON document: a member a line, devices with their samples.

use serde_json::{Map, Value};

use super::{DeviceView, DiskWatchView};
use crate::json::{object, value};

pub(super) fn members(view: &DiskWatchView<'_>) -> Map<String, Value> {
    let record = view.record;
    object([
        ("schema_version", value(&record.schema_version)),
        ("kind", value(&record.kind)),
        ("software", value(&record.software)),
        ("started_at_unix_ms", value(&record.started_at_unix_ms)),
        ("asked", value(&record.asked)),
        ("ended", value(&record.ended)),
        ("host", value(&record.host)),
        ("start_ns", value(&record.start_ns)),
        ("end_ns", value(&record.end_ns)),
        ("places", value(&record.places)),
        ("findings", value(&view.findings)),
        ("accounts", view.accounts.iter().map(value).collect()),
        ("devices", view.devices.iter().map(device).collect()),
        ("replication", value(&record.replication)),
        ("users", value(&record.users)),
        ("unreadable_users", value(&record.unreadable_users)),
        ("sampling", value(&record.sampling)),
        ("notes", value(&record.notes)),
    ])
}

/// The record's own words, what was derived from them, and the samples last.
fn device(one: &DeviceView<'_>) -> Value {
    let mut members = match value(one.watched) {
        Value::Object(members) => members,
        other => return other,
    };
    let samples = members.shift_remove("samples");
    members.insert(
        "title".to_owned(),
        super::title::title(&one.watched.device).into(),
    );
    members.insert("rates".to_owned(), value(&one.rates));
    members.insert("samples".to_owned(), samples.unwrap_or(Value::Null));
    Value::Object(members)
}
