//! What is sent: alerts as Alertmanager takes them, and the document of a webhook.

use linerate_hub::words::AlertWords;
use linerate_model::alert::{Alert, AlertKind, AlertState};
use linerate_model::calendar::rfc3339;
use linerate_model::watch::UnixMillis;
use serde_json::{Value, json};

/// An alert that is not sent again by then is over for Alertmanager, ms: five times the time between two.
const LASTS_MILLIS: u64 = 300_000;

/// `POST /api/v2/alerts`: <https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml>.
///
/// An alert is known there by its labels. Where one of them became another (`before` is the kind that was sent last),
/// the alert with the old ones is ended as well.
pub(super) fn alertmanager(
    alerts: &[Alert],
    before: impl Fn(&Alert) -> Option<AlertKind>,
    now: UnixMillis,
) -> Vec<u8> {
    let mut all: Vec<Value> = Vec::new();
    for alert in alerts {
        let over = alert.state == AlertState::Resolved;
        let ends = if over {
            alert.until.unwrap_or(now)
        } else {
            now.plus_millis(LASTS_MILLIS)
        };
        if let Some(old) = before(alert).filter(|old| *old != alert.kind) {
            all.push(one(alert, old, now));
        }
        all.push(one(alert, alert.kind, ends));
    }
    Value::Array(all).to_string().into_bytes()
}

fn one(alert: &Alert, kind: AlertKind, ends: UnixMillis) -> Value {
    let words = AlertWords::of(alert);
    let name = match kind {
        AlertKind::Slow => "LinerateSlow",
        AlertKind::Failing => "LinerateFailing",
        AlertKind::Silent => "LinerateSilent",
        AlertKind::Changed => "LinerateChanged",
    };
    let finding = alert.finding.as_ref().map(|finding| finding.id.as_str());
    json!({
        "labels": {
            "alertname": name,
            "alert": alert.id.to_string(),
            "task": alert.task,
            "kind": kind.word(),
        },
        "annotations": {
            "summary": words.title,
            "description": words.why.join(" "),
            "remedy": words.what_to_do.join(" "),
            "finding": finding.unwrap_or_default(),
        },
        "startsAt": rfc3339(alert.fired.unwrap_or(alert.since)),
        "endsAt": rfc3339(ends),
    })
}

/// One alert, as it is now: its words and its data.
pub(super) fn webhook(alert: &Alert) -> Vec<u8> {
    let words = AlertWords::of(alert);
    let document = json!({
        "schema_version": 1,
        "event": alert.state.word(),
        "title": words.title,
        "why": words.why,
        "what_to_do": words.what_to_do,
        "alert": alert,
    });
    document.to_string().into_bytes()
}
