//! Plan and schedule: what runs, what is due, what did not run and why.

use linerate_model::units::grouped;
use linerate_model::watch::{RunClass, UnixMillis};
use maud::{Markup, html};

use super::{Sheet, counted, document, pair_address, time};
use crate::live::{DueTest, PlanSummary, RunningTest};
use crate::moment;
use crate::view::plan::PlanView;
use crate::view::run::RunRow;

pub(crate) fn page(view: &PlanView, firing: usize) -> String {
    let now = view.now;
    let content = html! {
        h1 { "Plan and schedule" }
        @if let Some(why) = &view.live.plan_trouble {
            p class="warning" role="alert" { "The plan's file has changed and is not in force: " (why) }
        }
        section aria-labelledby="running" {
            h2 id="running" { "Runs now (" (view.live.running.len()) ")" }
            @if view.live.running.is_empty() { p { "No test runs." } } @else { (running(&view.live.running, now)) }
        }
        section aria-labelledby="due" {
            h2 id="due" { "Due next" }
            @if view.live.next.is_empty() { p { "Nothing is due." } } @else { (due(&view.live.next, now)) }
        }
        section aria-labelledby="not-run" {
            h2 id="not-run" { "Did not run in the last 24 hours" }
            (not_run(view))
        }
        section aria-labelledby="tasks" {
            h2 id="tasks" { "Tasks" }
            (tasks(&view.live.plan))
        }
    };
    document(
        Sheet {
            title: "Plan and schedule",
            place: "/plan",
            now,
            firing,
        },
        &content,
    )
}

const fn class(class: RunClass) -> &'static str {
    match class {
        RunClass::OnDemand => "asked for",
        RunClass::Confirm => "confirming test",
        RunClass::Regular => "regular",
    }
}

fn table(label: &str, columns: &[&str], rows: &Markup) -> Markup {
    html! {
        div class="wide" tabindex="0" role="region" aria-label=(label) {
            table class="rows" { thead { tr { @for column in columns { th scope="col" { (column) } } } } tbody { (rows) } }
        }
    }
}

fn running(tests: &[RunningTest], now: UnixMillis) -> Markup {
    let rows = html! {
        @for test in tests {
            tr {
                th scope="row" { a href=(pair_address(&test.task, &test.from, &test.to)) { (test.from) " → " (test.to) } }
                td { (test.task) } td { (class(test.class)) }
                td class="keep" { (moment::span(now.since(test.started))) " of at most " (moment::span(test.until.since(test.started))) }
            }
        }
    };
    table("Tests that run now", &["Pair", "Task", "Why", "For"], &rows)
}

fn due(tests: &[DueTest], now: UnixMillis) -> Markup {
    let rows = html! {
        @for test in tests {
            tr {
                th scope="row" { a href=(pair_address(&test.task, &test.from, &test.to)) { (test.from) " → " (test.to) } }
                td { (test.task) } td { (class(test.class)) }
                td class="keep" { @if test.due > now { (moment::ago(test.due, now)) } @else { "now" } ", until " (moment::clock(test.deadline)) " UTC" }
                td { (test.waits_for.as_ref().map_or("not due yet", |waits| waits)) }
            }
        }
    };
    table(
        "Tests that are due next",
        &["Pair", "Task", "Why", "When", "Waits for"],
        &rows,
    )
}

fn reason(word: &str) -> &'static str {
    match word {
        "missed" => "other tests held its hosts or segments until its deadline",
        "agent-away" => "a host was not connected",
        "backing-off" => "the pair failed before and waits",
        "budget" => "its budget of bytes or seconds was used up",
        "hours" => "its schedule allows no test at these hours",
        "maintenance" => "a window of maintenance",
        "unreachable" => "neither host can connect to the other",
        "busy-link" => "other traffic used the link",
        "hub-away" => "the hub did not run",
        "refused" => "a host's own rules forbid it",
        "dropped" => "the plan was changed and no longer has it",
        _ => "",
    }
}

fn not_run(view: &PlanView) -> Markup {
    html! {
        @if view.not_run.is_empty() { p { "Every test that was due ran." } } @else {
            ul class="reasons" {
                @for (word, count) in &view.not_run {
                    li { strong { (grouped(*count as u64)) } " " code { (word) } ": " (reason(word)) }
                }
            }
            @if view.more { p class="about" { "More than these were not counted." } }
            (table("Tests that did not run", &["Pair", "Task", "Due", "Why"], &examples(&view.examples, view.now)))
        }
    }
}

fn examples(runs: &[RunRow], now: UnixMillis) -> Markup {
    html! {
        @for run in runs {
            tr {
                th scope="row" { a href={ "/run/" (run.id) } { (run.from) " → " (run.to) } }
                td { (run.task) } td { (time(run.due, now, false)) } td class="why" { (run.why.as_ref().map_or("", |why| why)) }
            }
        }
    }
}

fn tasks(plan: &PlanSummary) -> Markup {
    let rows = html! {
        @for task in &plan.tasks {
            tr {
                th scope="row" { a href={ "/?task=" (super::encoded(&task.name)) } { (task.name) } }
                td class="number" { (grouped(task.pairs as u64)) }
                td class="keep" { "every " (moment::span(task.period_millis)) ", " (task.sampling) }
                td { code { (task.options) } }
            }
        }
    };
    html! {
        p { (counted(plan.pairs, "pair")) ", " (grouped(linerate_model::units::whole(plan.tests_a_day))) " tests a day." }
        @if !plan.tasks.is_empty() { (table("Table of tasks", &["Task", "Pairs", "When", "Options of linerate test"], &rows)) }
        @if !plan.ignored.is_empty() {
            p class="warning" { "The plan's file also says, and this program does not read: " @for (place, name) in plan.ignored.iter().enumerate() { @if place > 0 { ", " } code { (name) } } "." }
        }
    }
}
