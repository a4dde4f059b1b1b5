//! What programs read: JSON and CSV of the views that pages show, and metrics.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use linerate_model::watch::{RunId, UnixMillis};
use serde::Serialize;

use super::Hub;
use super::answer::{CSV, JSON, Refusal, data, json_of};
use super::pages::asked;
use super::query::{OfAlerts, OfHost, OfPair, OfRuns, OfTask, run_id};
use crate::moment::DAY;
use crate::shared::Shared;
use crate::view::alert::AlertView;
use crate::view::cell::Cell;
use crate::view::grid;
use crate::view::host::HostView;
use crate::view::pair::PairView;
use crate::view::plan::PlanView;
use crate::view::run::RunRow;
use crate::{csv, metrics as exposition};

/// The description of all of these, by `OpenAPI` 3.1.
pub(crate) const OPENAPI: &str = include_str!("../openapi.json");

type Asked<T> = Result<Query<T>, QueryRejection>;

#[derive(Serialize)]
struct Pairs {
    now: UnixMillis,
    pairs: Vec<Cell>,
}

#[derive(Serialize)]
struct Runs {
    runs: Vec<RunRow>,
    /// Where the next page begins: `before` of its query; null = there is none.
    next: Option<RunId>,
}

#[derive(Serialize)]
struct Alerts {
    now: UnixMillis,
    alerts: Vec<AlertView>,
}

#[derive(Serialize)]
struct Hosts {
    now: UnixMillis,
    hosts: Vec<HostView>,
}

fn cells(shared: &Shared, asked: &OfTask) -> Result<Vec<Cell>, Refusal> {
    let (mut cells, _) = grid::cells(shared, shared.now())?;
    if let Some(only) = asked.only() {
        cells.retain(|cell| cell.task == *only);
    }
    Ok(cells)
}

pub(super) async fn pairs(State(hub): State<Hub>, query: Asked<OfTask>) -> Response {
    data(hub, JSON, |shared| {
        let pairs = cells(shared, &asked(query)?)?;
        json_of(&Pairs {
            now: shared.now(),
            pairs,
        })
    })
    .await
}

pub(super) async fn pairs_csv(State(hub): State<Hub>, query: Asked<OfTask>) -> Response {
    data(hub, CSV, |shared| {
        Ok(csv::pairs(&cells(shared, &asked(query)?)?).into_bytes())
    })
    .await
}

pub(super) async fn pair(State(hub): State<Hub>, query: Asked<OfPair>) -> Response {
    data(hub, JSON, |shared| {
        let view = PairView::of(shared, &asked(query)?.wanted()?)?;
        json_of(
            &view.ok_or_else(|| {
                Refusal::Absent("No test of this pair has been due yet.".to_owned())
            })?,
        )
    })
    .await
}

pub(super) async fn runs(State(hub): State<Hub>, query: Asked<OfRuns>) -> Response {
    data(hub, JSON, |shared| {
        let filter = asked(query)?.page()?;
        let runs = shared.store().runs(&filter)?;
        let full = runs.len() == filter.limit;
        let next = runs.last().filter(|_| full).map(|run| run.id);
        json_of(&Runs {
            runs: runs.into_iter().map(RunRow::from).collect(),
            next,
        })
    })
    .await
}

pub(super) async fn runs_csv(State(hub): State<Hub>, query: Asked<OfRuns>) -> Response {
    data(hub, CSV, |shared| {
        let mut table = Vec::new();
        let filter = asked(query)?.table()?;
        shared.store().runs_csv(&filter, &mut table)?;
        Ok(table)
    })
    .await
}

pub(super) async fn run(State(hub): State<Hub>, Path(id): Path<String>) -> Response {
    data(hub, JSON, move |shared| {
        let id = run_id(&id)?;
        let run = shared.store().run(id)?;
        json_of(&RunRow::from(run.ok_or_else(|| {
            Refusal::Absent(format!("The archive has no test {id}."))
        })?))
    })
    .await
}

pub(super) async fn record(State(hub): State<Hub>, Path(id): Path<String>) -> Response {
    data(hub, JSON, move |shared| {
        let id = run_id(&id)?;
        let record = shared.store().record(id)?;
        record.ok_or_else(|| {
            Refusal::Absent(format!("The archive keeps no record of the test {id}."))
        })
    })
    .await
}

pub(super) async fn alerts(State(hub): State<Hub>, query: Asked<OfAlerts>) -> Response {
    data(hub, JSON, |shared| {
        let (now, days) = (shared.now(), asked(query)?.days.unwrap_or(7));
        let since = UnixMillis(now.0.saturating_sub(days.saturating_mul(DAY)));
        json_of(&Alerts {
            now,
            alerts: AlertView::all(shared, since)?,
        })
    })
    .await
}

pub(super) async fn hosts(State(hub): State<Hub>, query: Asked<OfHost>) -> Response {
    data(hub, JSON, |shared| {
        let wanted = asked(query)?.name;
        let hosts = HostView::all(shared, wanted.as_deref())?;
        json_of(&Hosts {
            now: shared.now(),
            hosts,
        })
    })
    .await
}

pub(super) async fn plan(State(hub): State<Hub>) -> Response {
    data(hub, JSON, |shared| json_of(&PlanView::of(shared)?)).await
}

pub(super) async fn openapi(State(hub): State<Hub>) -> Response {
    data(hub, JSON, |_| Ok(OPENAPI.as_bytes().to_vec())).await
}

pub(super) async fn metrics(State(hub): State<Hub>) -> Response {
    data(hub, exposition::CONTENT_TYPE, |shared| {
        Ok(exposition::text(shared)?.into_bytes())
    })
    .await
}
