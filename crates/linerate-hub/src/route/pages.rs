//! Pages.

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::Uri;
use axum::response::Response;
use linerate_model::watch::UnixMillis;

use super::answer::{Refusal, page};
use super::query::{OfAlertsPage, OfHost, OfPair, OfTask, run_id};
use super::{Hub, answer};
use crate::access::Caller;
use crate::access::users::Role;
use crate::moment::DAY;
use crate::page as pages;
use crate::shared::Shared;
use crate::view::alert::AlertView;
use crate::view::grid::GridView;
use crate::view::host::HostView;
use crate::view::pair::PairView;
use crate::view::plan::PlanView;
use crate::view::run::RunRow;

type Asked<T> = Result<Query<T>, QueryRejection>;

pub(super) fn asked<T>(query: Asked<T>) -> Result<T, Refusal> {
    query
        .map(|Query(asked)| asked)
        .map_err(|error| Refusal::Query(error.body_text()))
}

/// How many alerts fire: every page says so.
fn firing(shared: &Shared) -> Result<usize, Refusal> {
    let now = shared.now();
    let (alerts, silences) = (shared.store().alerts(now)?, shared.store().silences(now)?);
    Ok(pages::alerts::firing(&AlertView::open(
        &alerts, &silences, now,
    )))
}

pub(super) async fn grid(State(hub): State<Hub>, query: Asked<OfTask>) -> Response {
    page(hub, |shared| {
        let view = GridView::of(shared, asked(query)?.only())?;
        Ok(pages::grid::page(&view, &shared.live().snapshot().channels))
    })
    .await
}

pub(super) async fn pair(
    State(hub): State<Hub>,
    Extension(caller): Extension<Caller>,
    query: Asked<OfPair>,
) -> Response {
    page(hub, move |shared| {
        let wanted = asked(query)?.wanted()?;
        let absent = || {
            let (task, from, to) = (&wanted.task, &wanted.from, &wanted.to);
            Refusal::Absent(format!(
                "No test of the task {task} from {from} to {to} has been due yet."
            ))
        };
        let view = PairView::of(shared, &wanted)?.ok_or_else(absent)?;
        let may_test = caller.role >= Role::Operator;
        Ok(pages::pair::page(&view, may_test, firing(shared)?))
    })
    .await
}

pub(super) async fn run(State(hub): State<Hub>, Path(id): Path<String>) -> Response {
    page(hub, move |shared| {
        let id = run_id(&id)?;
        let absent = || Refusal::Absent(format!("The archive has no test {id}."));
        let row = RunRow::from(shared.store().run(id)?.ok_or_else(absent)?);
        let record = shared.store().record(id)?;
        match record.map(|record| pages::run::report(&row, &record)) {
            Some(Ok(report)) => Ok(report),
            Some(Err(why)) => Ok(pages::run::page(
                &row,
                Some(&why),
                shared.now(),
                firing(shared)?,
            )),
            None => Ok(pages::run::page(&row, None, shared.now(), firing(shared)?)),
        }
    })
    .await
}

pub(super) async fn alerts(
    State(hub): State<Hub>,
    Extension(caller): Extension<Caller>,
    query: Asked<OfAlertsPage>,
) -> Response {
    page(hub, move |shared| {
        let now = shared.now();
        let silences = shared.store().silences(now)?;
        let silences = pages::silences::section(&silences, &caller, &asked(query)?.silence, now);
        let views = AlertView::all(shared, UnixMillis(now.0.saturating_sub(7 * DAY)))?;
        Ok(pages::alerts::page(
            &views,
            &shared.live().snapshot().channels,
            &silences,
            &caller,
            now,
        ))
    })
    .await
}

pub(super) async fn hosts(State(hub): State<Hub>) -> Response {
    page(hub, |shared| {
        let hosts = HostView::all(shared, None)?;
        Ok(pages::hosts::page(&hosts, shared.now(), firing(shared)?))
    })
    .await
}

pub(super) async fn host(State(hub): State<Hub>, query: Asked<OfHost>) -> Response {
    page(hub, |shared| {
        let name = asked(query)?.name.unwrap_or_default();
        let hosts = HostView::all(shared, Some(&name))?;
        let host = hosts.first().ok_or_else(|| {
            let name = linerate_model::plain_text::PlainText::from(name.as_str());
            Refusal::Absent(format!(
                "Neither the plan nor the archive has a host '{name}'."
            ))
        })?;
        Ok(pages::hosts::host(host, shared.now(), firing(shared)?))
    })
    .await
}

pub(super) async fn plan(State(hub): State<Hub>) -> Response {
    page(hub, |shared| {
        Ok(pages::plan::page(&PlanView::of(shared)?, firing(shared)?))
    })
    .await
}

/// Of every other address.
pub(super) async fn nothing(State(hub): State<Hub>, address: Uri) -> Response {
    let path = linerate_model::plain_text::PlainText::from(address.path());
    let refusal = Refusal::Absent(format!("The hub has no page {path}."));
    if path.starts_with("/api/") {
        return answer::data(hub, answer::JSON, |_| Err(refusal)).await;
    }
    page(hub, |_| Err(refusal)).await
}
