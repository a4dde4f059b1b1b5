//! Logging in and out.

use axum::Extension;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{Form, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::Hub;
use crate::access::{self, Asked, Caller, Peer};

#[derive(Deserialize)]
pub(super) struct Next {
    #[serde(default)]
    next: String,
}

pub(super) async fn page(
    State(hub): State<Hub>,
    next: Result<Query<Next>, QueryRejection>,
) -> Response {
    let next = next.map_or_else(|_| String::new(), |Query(Next { next })| next);
    access::page(&hub.access, &next, hub.shared.now())
}

pub(super) async fn prove(
    State(hub): State<Hub>,
    Extension(Peer(from)): Extension<Peer>,
    asked: Result<Form<Asked>, FormRejection>,
) -> Response {
    match asked {
        Ok(Form(asked)) => access::prove(&hub.access, asked, from, hub.shared.now()).await,
        Err(error) => (StatusCode::BAD_REQUEST, error.body_text()).into_response(),
    }
}

pub(super) async fn leave(
    State(hub): State<Hub>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    access::leave(&hub.access, &headers, &caller)
}

pub(super) async fn account(
    State(hub): State<Hub>,
    Extension(caller): Extension<Caller>,
) -> Response {
    access::account(&caller, hub.shared.now())
}
