//! One run: its report where it has a record, else what became of it.

use linerate_analysis::evidence::Evidence;
use linerate_model::watch::UnixMillis;
use linerate_report::chart::Charts;
use linerate_report::html::{self, Served};
use linerate_report::view::RunView;
use maud::html;

use super::{Sheet, document, host_address, pair_address, time};
use crate::moment;
use crate::store::OutcomeKind;
use crate::view::alert::rate;
use crate::view::run::RunRow;

/// The report of a record; the error says why the record is not readable.
pub(crate) fn report(row: &RunRow, record: &[u8]) -> Result<String, String> {
    let run = linerate_report::record::from_json(record).map_err(|error| error.to_string())?;
    let evidence = Evidence::of(&run);
    let findings = linerate_explain::explain(&evidence);
    let view = RunView::of(&evidence, &findings);
    let charts = Charts::of(&view, &evidence);
    let pair = format!("{} → {}", row.from, row.to);
    let address = pair_address(&row.task, &row.from, &row.to);
    let kept = format!("/api/v1/runs/{}/record", row.id);
    Ok(html::served(
        &html::Sheet {
            view: &view,
            charts: &charts,
            kept: Some(&kept),
        },
        &Served {
            style: "/static/report.css",
            script: "/static/report.js",
            links: &[
                ("Grid", "/"),
                ("Alerts", "/alerts"),
                (&pair, &address),
                ("Record (JSON)", &kept),
            ],
        },
    ))
}

/// A run without a record, or whose record is `unreadable`.
pub(crate) fn page(
    row: &RunRow,
    unreadable: Option<&str>,
    now: UnixMillis,
    firing: usize,
) -> String {
    let title = format!("{} → {}: {}", row.from, row.to, outcome_words(row.outcome));
    let pair = pair_address(&row.task, &row.from, &row.to);
    let content = html! {
        h1 { (title) }
        p class={ "verdict " (class(row.outcome)) } {
            @match (row.reason_words(), row.goodput_bps) {
                (Some(why), _) => (why),
                (None, Some(bps)) => { "Goodput " (rate(bps)) },
                (None, None) => "No figure is known.",
            }
        }
        @if let Some(why) = unreadable { p class="warning" { "Its record cannot be read: " (why) } }
        @else if row.outcome == OutcomeKind::Measured { p class="about" { "Its record is no longer kept; the figures are." } }
        dl {
            dt { "Pair" } dd { a href=(pair) { (row.from) " → " (row.to) } ", task " (row.task) }
            dt { "Hosts" } dd { a href=(host_address(&row.from)) { (row.from) } ", " a href=(host_address(&row.to)) { (row.to) } }
            dt { "Due" } dd { (time(row.due, now, true)) }
            @if let Some(started) = row.started { dt { "Ran" } dd { (time(started, now, false)) ", for " (moment::span(row.ended.since(started))) } }
            @else { dt { "Given up" } dd { (time(row.ended, now, false)) } }
            @if let Some(reason) = row.reason { dt { "Reason" } dd { code { (reason) } } }
        }
        @if !row.held.is_empty() {
            h2 { "What stood in its way" }
            table class="rows" {
                thead { tr { th scope="col" { "What it needed" } th scope="col" { "Who had it" } th scope="col" class="number" { "For" } } }
                tbody { @for held in &row.held { tr { th scope="row" { (held.resource) } td { (held.by) } td class="number" { (moment::span(held.millis)) } } } }
            }
        }
        p { a href={ "/api/v1/runs/" (row.id) } { "JSON" } }
    };
    document(
        Sheet {
            title: &title,
            place: "",
            now,
            firing,
        },
        &content,
    )
}

/// What a run came to.
pub(crate) const fn outcome_words(kind: OutcomeKind) -> &'static str {
    match kind {
        OutcomeKind::Measured => "measured",
        OutcomeKind::Failed => "failed",
        OutcomeKind::NotRun => "not run",
        OutcomeKind::Invalid => "does not count",
    }
}

/// Its class in style sheets.
pub(crate) const fn class(kind: OutcomeKind) -> &'static str {
    match kind {
        OutcomeKind::Measured => "good",
        OutcomeKind::Failed => "failing",
        OutcomeKind::NotRun => "not_run",
        OutcomeKind::Invalid => "invalid",
    }
}
