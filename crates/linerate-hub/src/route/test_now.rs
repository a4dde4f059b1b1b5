//! Somebody asks for a test now.

use axum::Extension;
use axum::extract::rejection::{FormRejection, JsonRejection};
use axum::extract::{Form, Json, State};
use axum::response::Response;
use linerate_model::plain_text::PlainText;
use linerate_model::watch::RunId;
use linerate_watch::alert::PairName;
use serde::{Deserialize, Serialize};

use super::Hub;
use super::answer::{JSON, Refusal, data, form, json_of};
use crate::access::Caller;
use crate::page::pair_address;
use crate::shared::Shared;

/// Of which pair.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pair {
    task: PlainText,
    from: PlainText,
    to: PlainText,
}

#[derive(Serialize)]
struct Answer {
    id: RunId,
}

impl Pair {
    fn ask(self, hub: &Hub, shared: &Shared, caller: &Caller) -> Result<RunId, Refusal> {
        let Self { task, from, to } = self;
        let asked = format!("asked for a test: {task} {from} > {to}");
        let id = shared.driver().test(PairName { task, from, to });
        let id = id.map_err(Refusal::Query)?;
        hub.access.note(caller, &asked);
        Ok(id)
    }
}

pub(super) async fn ask(
    State(hub): State<Hub>,
    Extension(caller): Extension<Caller>,
    pair: Result<Json<Pair>, JsonRejection>,
) -> Response {
    let at = hub.clone();
    data(hub, JSON, move |shared| {
        let Json(pair) = pair.map_err(|error| Refusal::Query(error.body_text()))?;
        let id = pair.ask(&at, shared, &caller)?;
        json_of(&Answer { id })
    })
    .await
}

pub(super) async fn ask_by_form(
    State(hub): State<Hub>,
    Extension(caller): Extension<Caller>,
    pair: Result<Form<Pair>, FormRejection>,
) -> Response {
    let at = hub.clone();
    form(hub, move |shared| {
        let Form(pair) = pair.map_err(|error| Refusal::Query(error.body_text()))?;
        let page = pair_address(&pair.task, &pair.from, &pair.to);
        pair.ask(&at, shared, &caller).map(|_| page)
    })
    .await
}
