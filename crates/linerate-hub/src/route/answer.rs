//! Answers: made on a thread that may block, at most a few at a time.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Serialize;
use serde_json::json;

use super::Hub;
use crate::page;
use crate::shared::Shared;
use crate::store::StoreError;

pub(super) const HTML: &str = "text/html; charset=utf-8";
pub(super) const JSON: &str = "application/json";
pub(super) const CSV: &str = "text/csv; charset=utf-8; header=present";

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The archive did not answer.
    Store(StoreError),
    /// There is no such thing.
    Absent(String),
    /// The query does not say what is wanted.
    Query(String),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Refusal {
    fn words(self) -> (StatusCode, &'static str, String) {
        match self {
            Self::Store(error) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "The archive does not answer",
                error.to_string(),
            ),
            Self::Absent(what) => (StatusCode::NOT_FOUND, "Not found", what),
            Self::Query(why) => (
                StatusCode::BAD_REQUEST,
                "The request cannot be answered",
                why,
            ),
        }
    }
}

/// Runs what blocks when it is its turn.
async fn made<T: Send + 'static>(
    hub: Hub,
    make: impl FnOnce(&Shared) -> T + Send + 'static,
) -> Option<T> {
    let turn = hub.turns.clone().acquire_owned().await.ok()?;
    let made = tokio::task::spawn_blocking(move || {
        let made = make(&hub.shared);
        drop(turn);
        made
    });
    made.await.ok()
}

/// The hub stops, or a page panicked.
fn broken() -> Response {
    let text = "The hub could not make this answer; its log says why.\n";
    (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
}

fn with(status: StatusCode, kind: &'static str, body: impl Into<axum::body::Body>) -> Response {
    (status, [(header::CONTENT_TYPE, kind)], body.into()).into_response()
}

/// What a form changes: where it worked the page that the change names, else one that says why it did not.
pub(super) async fn form(
    hub: Hub,
    change: impl FnOnce(&Shared) -> Result<String, Refusal> + Send + 'static,
) -> Response {
    let answer = made(hub, |shared| {
        change(shared).map_err(|refusal| failure(refusal, shared))
    });
    match answer.await {
        Some(Ok(address)) => Redirect::to(&address).into_response(),
        Some(Err((status, page))) => with(status, HTML, page),
        None => broken(),
    }
}

/// A page that says why there is no answer.
fn failure(refusal: Refusal, shared: &Shared) -> (StatusCode, String) {
    let (status, title, sentence) = refusal.words();
    (status, page::failure(title, &sentence, shared.now()))
}

/// A page.
pub(super) async fn page(
    hub: Hub,
    make: impl FnOnce(&Shared) -> Result<String, Refusal> + Send + 'static,
) -> Response {
    let answer = made(hub, |shared| match make(shared) {
        Ok(page) => (StatusCode::OK, page),
        Err(refusal) => failure(refusal, shared),
    });
    match answer.await {
        Some((status, page)) => with(status, HTML, page),
        None => broken(),
    }
}

/// What programs read, of the kind that the answer has.
pub(super) async fn data(
    hub: Hub,
    kind: &'static str,
    make: impl FnOnce(&Shared) -> Result<Vec<u8>, Refusal> + Send + 'static,
) -> Response {
    match made(hub, make).await {
        Some(Ok(body)) => with(StatusCode::OK, kind, body),
        Some(Err(refusal)) => {
            let (status, title, sentence) = refusal.words();
            let body = json!({ "error": title, "detail": sentence }).to_string();
            with(status, JSON, body)
        }
        None => broken(),
    }
}

/// JSON of a view.
pub(super) fn json_of(view: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    let mut bytes = serde_json::to_vec(view).map_err(|error| {
        Refusal::Store(StoreError {
            what: "this view",
            why: error.to_string(),
        })
    })?;
    bytes.push(b'\n');
    Ok(bytes)
}
