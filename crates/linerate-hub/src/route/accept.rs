//! Somebody says that what an alert's pairs show now is what they should show.

use axum::Extension;
use axum::extract::rejection::{FormRejection, JsonRejection};
use axum::extract::{Form, Json, Path, State};
use axum::response::Response;
use linerate_model::alert::{Alert, AlertId, AlertState};
use linerate_model::plain_text::PlainText;
use linerate_model::watch::RunIdError;
use serde::{Deserialize, Serialize};

use super::Hub;
use super::answer::{JSON, Refusal, data, form, json_of};
use super::silences::LONGEST_WORDS;
use crate::access::Caller;
use crate::shared::Shared;

/// Who says so.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Who {
    /// Without a login alone: with one it is the user.
    by: PlainText,
}

#[derive(Serialize)]
struct Answer {
    /// Of so many pairs the level was accepted.
    pairs: usize,
}

impl Who {
    fn accepts(
        self,
        hub: &Hub,
        shared: &Shared,
        caller: &Caller,
        id: &str,
    ) -> Result<usize, Refusal> {
        let by = caller.name.clone().unwrap_or(self.by);
        if by.trim().is_empty() || by.len() > LONGEST_WORDS {
            let why = "Say who accepts the level, in at most 1,000 bytes.";
            return Err(Refusal::Query(why.to_owned()));
        }
        let id: AlertId = id
            .parse()
            .map_err(|error: RunIdError| Refusal::Query(error.to_string()))?;
        let alerts = shared.store().alerts(shared.now())?;
        let is_it = |alert: &Alert| alert.id == id && alert.state != AlertState::Resolved;
        if !alerts.iter().any(is_it) {
            return Err(Refusal::Absent(format!("No alert {id} is open.")));
        }
        let accepted = shared.driver().accept(id, by.clone());
        let pairs = accepted.map_err(Refusal::Query)?;
        hub.access
            .note(caller, &format!("accepted the level of the alert {id}"));
        Ok(pairs)
    }
}

pub(super) async fn accept(
    State(hub): State<Hub>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    who: Result<Json<Who>, JsonRejection>,
) -> Response {
    let at = hub.clone();
    data(hub, JSON, move |shared| {
        let Json(who) = who.map_err(|error| Refusal::Query(error.body_text()))?;
        let pairs = who.accepts(&at, shared, &caller, &id)?;
        json_of(&Answer { pairs })
    })
    .await
}

pub(super) async fn accept_by_form(
    State(hub): State<Hub>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    who: Result<Form<Who>, FormRejection>,
) -> Response {
    let at = hub.clone();
    form(hub, move |shared| {
        let Form(who) = who.map_err(|error| Refusal::Query(error.body_text()))?;
        who.accepts(&at, shared, &caller, &id)?;
        Ok(format!("/alerts#a-{id}"))
    })
    .await
}
