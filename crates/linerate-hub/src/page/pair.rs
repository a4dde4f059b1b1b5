//! A pair over time.

use linerate_model::units::{grouped, percent};
use linerate_model::watch::UnixMillis;
use maud::{Markup, PreEscaped, html};

use super::{Sheet, alerts, chart, document, encoded, host_address, pair_address, time};
use crate::moment;
use crate::view::alert::rate;
use crate::view::pair::{PairView, TIMES};
use crate::view::run::RunRow;

pub(crate) fn page(view: &PairView, may_test: bool, firing: usize) -> String {
    let title = format!("{} → {}", view.from, view.to);
    let content = html! {
        h1 {
            a href=(host_address(&view.from)) { (view.from) } " → " a href=(host_address(&view.to)) { (view.to) }
        }
        p class="about" { "Task " a href={ "/?task=" (encoded(&view.task)) } { (view.task) } ". The other direction: " a href=(pair_address(&view.task, &view.to, &view.from)) { (view.to) " → " (view.from) } "." }
        (now(view))
        @if may_test { (test_now(view)) }
        @for alert in &view.alerts { (alerts::of_pair(alert, &view.from, &view.to, view.now)) }
        section aria-labelledby="over-time" {
            h2 id="over-time" { "Goodput over time" }
            (times(view))
            @if view.runs.is_empty() { p { "No test was due in this time." } } @else {
                (chart::figure(view))
                script type="module" src="/static/plot.js" {}
                script type="application/json" id="series" { (PreEscaped(chart::data(view).to_string().replace('<', "\\u003c"))) }
            }
        }
        section aria-labelledby="changes" {
            h2 id="changes" { "What changed on the hosts" }
            (changes(view))
        }
        section aria-labelledby="runs" {
            h2 id="runs" { "Tests" }
            (runs(view))
        }
    };
    document(
        Sheet {
            title: &title,
            place: "",
            now: view.now,
            firing,
        },
        &content,
    )
}

/// Asks for a test.
fn test_now(view: &PairView) -> Markup {
    html! {
        form method="post" action="/test" {
            @for (name, value) in [("task", &view.task), ("from", &view.from), ("to", &view.to)] {
                input type="hidden" name=(name) value=(value);
            }
            p { button type="submit" { "Test now" } }
        }
    }
}

/// How it is now.
fn now(view: &PairView) -> Markup {
    let Some(cell) = &view.cell else {
        return Markup::default();
    };
    html! {
        ul class="tiles" {
            li class=(cell.state.word()) {
                span class="glyph" aria-hidden="true" { (cell.state.glyph()) }
                span class="value" { (cell.goodput_bps.map_or_else(|| cell.state.words().to_owned(), rate)) }
                span class="about" {
                    @if cell.goodput_bps.is_some() { (cell.state.words()) ", " }
                    (moment::ago(cell.ended, view.now))
                }
            }
            @if let Some(median) = view.median_bps { li { span class="value" { (rate(median)) } span class="about" { "median of " (view.days) " d" } } }
            @if let Some(rtt) = cell.rtt_ns { li { span class="value" { (millis(rtt)) } span class="about" { "round trip" } } }
            @if let Some(share) = cell.retransmitted { li { span class="value" { (percent(share)) } span class="about" { "retransmitted" } } }
            li { span class="value" { (grouped(view.counts[1] as u64)) } span class="about" { "failed in " (view.days) " d" } }
            li { span class="value" { (grouped(view.counts[2] as u64)) } span class="about" { "not run in " (view.days) " d" } }
        }
        @if let Some(why) = &cell.why {
            p class={ "verdict " (cell.state.word()) } {
                "The latest test, " (moment::ago(cell.ended, view.now)) ": " (why.trim_end_matches('.')) "."
                @if let Some(measured) = cell.measured { " The latest figure is " (moment::span(view.now.since(measured))) " old." }
            }
        }
    }
}

fn times(view: &PairView) -> Markup {
    html! {
        nav class="times" aria-label="Time" {
            @for days in TIMES {
                a href={ (pair_address(&view.task, &view.from, &view.to)) "&days=" (days) } aria-current=[(days == view.days).then_some("true")] {
                    (words(days))
                }
            }
        }
    }
}

const fn words(days: u64) -> &'static str {
    match days {
        1 => "a day",
        7 => "a week",
        30 => "30 days",
        90 => "90 days",
        _ => "a year",
    }
}

fn changes(view: &PairView) -> Markup {
    html! {
        @if view.host_changes.is_empty() { p { "Nothing that is known." } } @else {
            ol class="changes" reversed { @for one in &view.host_changes { li { (time(one.first_after, view.now, true)) " " (crate::view::alert::change(one)) } } }
        }
    }
}

fn runs(view: &PairView) -> Markup {
    let rows = view.rows();
    html! {
        div class="wide" tabindex="0" role="region" aria-label="Table of tests" {
            table class="rows" {
                thead {
                    tr {
                        th scope="col" { "When" } th scope="col" { "Outcome" } th scope="col" class="number" { "Goodput" } th scope="col" class="number" { "95 % interval" }
                        th scope="col" class="number" { "Retransmitted" } th scope="col" class="number" { "Round trip" } th scope="col" { "Finding or reason" }
                    }
                }
                tbody { @for run in rows { (row(run, view.now)) } }
            }
        }
        p {
            @if let Some(before) = view.next() { a href={ (pair_address(&view.task, &view.from, &view.to)) "&days=" (view.days) "&before=" (before) "#runs" } { "Earlier tests" } " " }
            a href={ "/api/v1/runs.csv?task=" (encoded(&view.task)) "&from=" (encoded(&view.from)) "&to=" (encoded(&view.to)) "&since=" (view.since.0) } { "CSV of this time" } " "
            a href={ "/api/v1/pair?task=" (encoded(&view.task)) "&from=" (encoded(&view.from)) "&to=" (encoded(&view.to)) "&days=" (view.days) } { "JSON" }
        }
        @if rows.is_empty() { p { a href={ "/plan" } { "What is due next" } } }
    }
}

fn row(run: &RunRow, now: UnixMillis) -> Markup {
    let outcome = run.outcome;
    html! {
        tr {
            td { a href={ "/run/" (run.id) } { (time(run.started.unwrap_or(run.due), now, false)) } }
            td { span class={ "sign " (super::run::class(outcome)) } { span class="glyph" aria-hidden="true" { (glyph(run)) } " " (super::run::outcome_words(outcome)) } }
            td class="number" { (run.goodput_bps.map_or_else(|| "–".to_owned(), rate)) }
            td class="number" { @match (run.low_bps, run.high_bps) { (Some(low), Some(high)) => { (rate(low)) " to " (rate(high)) }, _ => "–" } }
            td class="number" { (run.retransmitted.map_or_else(|| "–".to_owned(), percent)) }
            td class="number" { (run.rtt_ns.map_or_else(|| "–".to_owned(), millis)) }
            td class="why" { (run.reason_words().unwrap_or_else(|| run.findings.join(", "))) @if run.with_traffic { " (other traffic used the link)" } }
        }
    }
}

const fn glyph(run: &RunRow) -> &'static str {
    use crate::store::OutcomeKind;
    use crate::view::cell::CellState;
    match run.outcome {
        OutcomeKind::Measured => CellState::Good.glyph(),
        OutcomeKind::Failed => CellState::Failing.glyph(),
        OutcomeKind::NotRun => CellState::NotRun.glyph(),
        OutcomeKind::Invalid => CellState::Invalid.glyph(),
    }
}

/// `0.31 ms`, `41 ms`.
fn millis(ns: u64) -> String {
    format!(
        "{} ms",
        linerate_model::units::three_digits(ns as f64 / 1e6)
    )
}
