//! Which address is answered by what.

mod accept;
mod answer;
pub(crate) mod api;
mod events;
mod files;
mod login;
mod pages;
mod query;
mod silences;
mod test_now;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{delete, get, post};
use tokio::sync::Semaphore;

use crate::access::Access;
use crate::guard::MOST_BODY;
use crate::shared::Shared;

/// Pages and answers that are made at the same time; others wait for their turn.
const AT_ONCE: usize = 4;
/// Open event streams; one more is refused.
pub(crate) const MOST_STREAMS: usize = 128;

/// What every route has.
#[derive(Debug, Clone)]
pub(crate) struct Hub {
    pub(crate) shared: Arc<Shared>,
    pub(crate) access: Arc<Access>,
    /// Of [`AT_ONCE`].
    pub(crate) turns: Arc<Semaphore>,
    /// Of [`MOST_STREAMS`].
    pub(crate) streams: Arc<Semaphore>,
    /// Closes when the hub stops.
    pub(crate) stop: tokio::sync::watch::Receiver<bool>,
}

impl Hub {
    pub(crate) fn new(
        shared: Arc<Shared>,
        access: Arc<Access>,
        stop: tokio::sync::watch::Receiver<bool>,
    ) -> Self {
        Self {
            shared,
            access,
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            streams: Arc::new(Semaphore::new(MOST_STREAMS)),
            stop,
        }
    }
}

pub(crate) fn router(hub: Hub) -> Router {
    Router::new()
        .route("/", get(pages::grid))
        .route("/pair", get(pages::pair))
        .route("/run/{id}", get(pages::run))
        .route("/alerts", get(pages::alerts))
        .route("/alerts/{id}/accept", post(accept::accept_by_form))
        .route("/hosts", get(pages::hosts))
        .route("/host", get(pages::host))
        .route("/plan", get(pages::plan))
        .route("/login", get(login::page).post(login::prove))
        .route("/logout", post(login::leave))
        .route("/account", get(login::account))
        .route("/silences", post(silences::make_by_form))
        .route("/silences/{id}/end", post(silences::end_by_form))
        .route("/test", post(test_now::ask_by_form))
        .route("/static/{name}", get(files::file))
        .route("/api/v1/pairs", get(api::pairs))
        .route("/api/v1/pairs.csv", get(api::pairs_csv))
        .route("/api/v1/pair", get(api::pair))
        .route("/api/v1/runs", get(api::runs))
        .route("/api/v1/runs.csv", get(api::runs_csv))
        .route("/api/v1/runs/{id}", get(api::run))
        .route("/api/v1/runs/{id}/record", get(api::record))
        .route("/api/v1/alerts", get(api::alerts))
        .route("/api/v1/alerts/{id}/accept", post(accept::accept))
        .route("/api/v1/silences", get(silences::list).post(silences::make))
        .route("/api/v1/silences/{id}", delete(silences::end))
        .route("/api/v1/tests", post(test_now::ask))
        .route("/api/v1/hosts", get(api::hosts))
        .route("/api/v1/plan", get(api::plan))
        .route("/api/v1/openapi.json", get(api::openapi))
        .route("/metrics", get(api::metrics))
        .route("/events", get(events::stream))
        .fallback(pages::nothing)
        .layer(DefaultBodyLimit::max(MOST_BODY))
        .with_state(hub)
}

#[cfg(test)]
mod described {
    use super::*;

    /// Addresses in this file's router.
    fn routed() -> Vec<&'static str> {
        let source = include_str!("route.rs")
            .split("#[cfg(test)]\nmod described")
            .next()
            .unwrap();
        source
            .split(".route(\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap())
            .collect()
    }

    #[test]
    fn openapi_has_every_address_that_programs_read_and_no_other() {
        let document: serde_json::Value = serde_json::from_str(api::OPENAPI).unwrap();
        let mut described: Vec<&str> = document["paths"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        described.sort_unstable();
        let is_page = |path: &&str| {
            [
                "/",
                "/pair",
                "/run/{id}",
                "/alerts",
                "/alerts/{id}/accept",
                "/hosts",
                "/host",
                "/plan",
                "/login",
                "/logout",
                "/account",
                "/silences",
                "/silences/{id}/end",
                "/test",
                "/static/{name}",
            ]
            .contains(path)
        };
        let mut routed = routed();
        assert!(routed.len() > 15);
        routed.retain(|path| !is_page(path));
        routed.sort_unstable();
        assert_eq!(described, routed);
    }
}
