//! Alerts as other programs take them.

use linerate_model::alert::{Alert, AlertState};
use linerate_model::watch::UnixMillis;
use serde_json::{Map, Value, json};

use super::ENDS_AFTER;
use super::text::{self, rfc3339};

/// The body of `POST /api/v2/alerts` of an Alertmanager. `page` makes the address of an alert's page; the labels of an alert
/// stay the same for its whole life.
pub fn alertmanager(alerts: &[Alert], now: UnixMillis, page: impl Fn(&Alert) -> String) -> Value {
    let one = |alert: &Alert| {
        let ends = match alert.until {
            Some(until) if alert.state == AlertState::Resolved => until,
            _ => now.plus_millis(ENDS_AFTER),
        };
        json!({
            "labels": labels(alert),
            "annotations": {
                "summary": text::subject(alert),
                "description": text::body(alert),
                "kind": alert.kind.word(),
                "cause": &*alert.cause.name,
                "finding": alert.finding.as_ref().map_or("", |finding| &finding.id),
            },
            "startsAt": rfc3339(alert.fired.unwrap_or(alert.since)),
            "endsAt": rfc3339(ends),
            "generatorURL": page(alert),
        })
    };
    Value::Array(alerts.iter().map(one).collect())
}

/// An Alertmanager takes another label for another alert, so nothing is here that may change.
fn labels(alert: &Alert) -> Value {
    let mut labels = Map::new();
    let mut put = |name: &str, value: &str| labels.insert(name.to_owned(), Value::from(value));
    put("alertname", "linerate");
    put("alert", &alert.id.to_string());
    put("task", &alert.task);
    Value::Object(labels)
}

/// The body for a webhook: what happened, a text, and the alert as it is.
pub fn webhook(alert: &Alert, page: &str) -> Value {
    let event = match alert.state {
        AlertState::Resolved if alert.merged_into.is_some() => "merged",
        state => state.word(),
    };
    json!({
        "schema_version": 1,
        "event": event,
        "subject": text::subject(alert),
        "text": text::body(alert),
        "page": page,
        "alert": alert,
    })
}
