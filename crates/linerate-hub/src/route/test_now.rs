//! Somebody asks for a test now.

use axum::Extension;
use axum::extract::rejection::{FormRejection, JsonRejection};
use axum::extract::{Form, Json, State};
use axum::response::{IntoResponse, Redirect, Response};
use linerate_model::plain_text::PlainText;
use linerate_model::watch::RunId;
use serde::{Deserialize, Serialize};

use super::Hub;
use super::answer::{self, JSON, Refusal, data, json_of};
use crate::access::Caller;
use crate::page::pair_address;
use crate::shared::{Shared, TestWanted};

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
    fn ask(&self, hub: &Hub, shared: &Shared, caller: &Caller) -> Result<RunId, Refusal> {
        let wanted = TestWanted {
            task: self.task.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
        };
        let id = shared.ask(wanted).map_err(Refusal::Query)?;
        let (task, from, to) = (&self.task, &self.from, &self.to);
        hub.access
            .note(caller, &format!("asked for a test: {task} {from} > {to}"));
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
    let back = pair
        .as_ref()
        .ok()
        .map(|Form(pair)| pair_address(&pair.task, &pair.from, &pair.to));
    let at = hub.clone();
    let answer = answer::page(hub, move |shared| {
        let Form(pair) = pair.map_err(|error| Refusal::Query(error.body_text()))?;
        pair.ask(&at, shared, &caller).map(|_| String::new())
    });
    let answer = answer.await;
    match back {
        Some(back) if answer.status().is_success() => Redirect::to(&back).into_response(),
        _ => answer,
    }
}
