//! The grid: what is broken, then every pair.

use std::collections::HashMap;

use linerate_model::plain_text::PlainText;
use linerate_model::units::{BitRate, whole};
use linerate_model::watch::UnixMillis;
use maud::{Markup, html};

use super::{Sheet, alerts, counted, document, host_address, pair_address};
use crate::live::ChannelState;
use crate::moment;
use crate::view::alert::rate;
use crate::view::cell::{Cell, CellState};
use crate::view::grid::{GridView, TaskGrid};

/// Alerts that stand above the grid; the others are on their own page.
const MOST_ALERTS: usize = 4;
/// Hosts that are named.
const MOST_AWAY: usize = 6;

pub(crate) fn page(view: &GridView, channels: &[ChannelState]) -> String {
    let pairs: usize = view.counts.iter().map(|(_, count)| count).sum();
    let firing = alerts::firing(&view.alerts);
    let content = html! {
        (answer(view, channels, firing, pairs))
        @if view.tasks.len() > 1 { (choice(view)) }
        @if pairs == 0 {
            @match &view.only {
                Some(task) => p { "No test of the task " strong { (task) } " has been due yet." },
                None => p { "No test has been due yet. " a href="/plan" { "What is due next" } },
            }
        } @else {
            (key(view))
            @for grid in &view.grids { (task(grid, view.now)) }
        }
    };
    let title = match firing {
        0 => "Grid".to_owned(),
        _ => format!("{} – grid", counted(firing, "alert")),
    };
    document(
        Sheet {
            title: &title,
            place: "/",
            now: view.now,
            firing,
        },
        &content,
    )
}

/// What is broken, since when, why, what to do.
fn answer(view: &GridView, channels: &[ChannelState], firing: usize, pairs: usize) -> Markup {
    let bad = view.alerts.iter().filter(|view| view.silenced.is_none());
    let is_bad =
        |(state, _): &&(CellState, usize)| !matches!(state, CellState::Good | CellState::NotRun);
    let bad_pairs = view.counts.iter().filter(is_bad).count();
    html! {
        section class="answer" aria-labelledby="broken" {
            h1 id="broken" {
                @if firing > 0 { (counted(firing, "alert")) " firing" }
                @else if bad_pairs == 0 && view.away.is_empty() { "Nothing is broken" }
                @else { "No alert fires" }
            }
            ul class="tiles" {
                @for (state, count) in &view.counts {
                    li class=(state.word()) {
                        span class="glyph" aria-hidden="true" { (state.glyph()) }
                        span class="value" { (linerate_model::units::grouped(*count as u64)) }
                        span class="about" { (state.words()) }
                    }
                }
                @if pairs > 0 { li class="all" { span class="value" { (linerate_model::units::grouped(pairs as u64)) } span class="about" { @if pairs == 1 { "pair" } @else { "pairs" } } } }
            }
            (alerts::broken_channels(channels, view.now))
            (away(view))
            div class="several" { @for alert in bad.take(MOST_ALERTS) { (alerts::short(alert, view.now)) } }
            @if view.alerts.len() > MOST_ALERTS {
                p { a href="/alerts" { "All " (view.alerts.len()) " open alerts" } }
            }
        }
    }
}

/// Hosts that do not answer: no alert may have fired for them yet.
fn away(view: &GridView) -> Markup {
    html! {
        @if !view.away.is_empty() {
            p class="warning" {
                strong { @if view.away.len() == 1 { "A host is not connected" } @else { (view.away.len()) " hosts are not connected" } }
                @if view.away.len() == 1 { ", and its tests do not run: " } @else { ", and their tests do not run: " }
                @for (place, (host, pairs)) in view.away.iter().take(MOST_AWAY).enumerate() {
                    @if place > 0 { ", " }
                    a href=(host_address(&host.host)) { (host.host) }
                    @if let Some(seen) = host.last_seen { " since " (super::time(seen, view.now, true)) }
                    " (" (counted(*pairs, "pair")) ")"
                }
                @if view.away.len() > MOST_AWAY { " and " (view.away.len() - MOST_AWAY) " more" }
                ". "
                a href="/hosts" { "All hosts" }
            }
        }
    }
}

fn choice(view: &GridView) -> Markup {
    html! {
        form class="choice" method="get" action="/" {
            label for="task" { "Task" }
            select id="task" name="task" {
                option value="" { "All tasks" }
                @for task in &view.tasks {
                    option value=(task) selected[view.only.as_ref() == Some(task)] { (task) }
                }
            }
            button type="submit" { "Show" }
        }
    }
}

/// What the signs mean: of those states that occur.
fn key(view: &GridView) -> Markup {
    html! {
        ul class="key" aria-label="Key" {
            @for state in CellState::ALL.into_iter().filter(|state| view.counts.iter().any(|(known, _)| known == state)) {
                li {
                    span class={ "sample " (state.word()) } aria-hidden="true" { (state.glyph()) }
                    span { strong { (state.words()) } ": " (state.meaning()) }
                }
            }
        }
    }
}

fn task(grid: &TaskGrid, now: UnixMillis) -> Markup {
    let bad = |cell: &&Cell| !matches!(cell.state, CellState::Good | CellState::NotRun);
    let bad = grid.cells.iter().filter(bad).count();
    let class = grid.worst().map_or("", CellState::word);
    html! {
        section class="task" {
            h2 {
                span class={ "dot " (class) } aria-hidden="true" {}
                (grid.task)
                small {
                    (counted(grid.cells.len(), "pair"))
                    @if bad > 0 { ", " (bad) " not good" }
                }
            }
            div class="wide" tabindex="0" role="region" aria-label={ "Pairs of " (grid.task) } {
                @if grid.is_sparse() { (list(grid, now)) } @else { (matrix(grid, now)) }
            }
        }
    }
}

fn matrix(grid: &TaskGrid, now: UnixMillis) -> Markup {
    let cells: HashMap<(&PlainText, &PlainText), &Cell> = grid
        .cells
        .iter()
        .map(|cell| ((&cell.from, &cell.to), cell))
        .collect();
    html! {
        table class={ "grid" (if grid.to.len() > 24 { " many" } else { "" }) } {
            caption { span { "Rows send, columns receive. Goodput in bit/s, then the age of the test." } }
            thead {
                tr {
                    th scope="col" class="corner" { "from ↓ to →" }
                    @for to in &grid.to { th scope="col" { a href=(host_address(to)) { (to) } } }
                }
            }
            tbody {
                @for from in &grid.from {
                    tr {
                        th scope="row" { a href=(host_address(from)) { (from) } }
                        @for to in &grid.to {
                            @match cells.get(&(from, to)) {
                                Some(found) => (cell(found, now)),
                                None => td class="none" {},
                            }
                        }
                    }
                }
            }
        }
    }
}

fn cell(cell: &Cell, now: UnixMillis) -> Markup {
    let state = cell.state;
    html! {
        td class=(state.word()) {
            a href=(pair_address(&cell.task, &cell.from, &cell.to)) {
                span class="glyph" aria-hidden="true" { (state.glyph()) }
                @match cell.goodput_bps {
                    Some(bps) => { b { (short_rate(bps)) } @if state != CellState::Good { span class="spoken" { " " (state.words()) } } },
                    None => b class="word" { (state.words()) },
                }
                small { (moment::span(now.since(cell.ended))) }
            }
        }
    }
}

/// Few pairs of many hosts: a row each, the worst first.
fn list(grid: &TaskGrid, now: UnixMillis) -> Markup {
    let mut cells: Vec<&Cell> = grid.cells.iter().collect();
    cells.sort_by_key(|cell| cell.state);
    html! {
        table class="rows" {
            caption { span { "The worst first. Goodput of the latest test." } }
            thead { tr { th scope="col" { "From" } th scope="col" { "To" } th scope="col" { "State" } th scope="col" class="number" { "Goodput" } th scope="col" { "Age" } } }
            tbody {
                @for cell in cells {
                    tr {
                        td { a href=(host_address(&cell.from)) { (cell.from) } }
                        td { a href=(host_address(&cell.to)) { (cell.to) } }
                        td { a href=(pair_address(&cell.task, &cell.from, &cell.to)) { (sign(cell.state)) } }
                        td class="number" { (cell.goodput_bps.map_or_else(|| "–".to_owned(), rate)) }
                        td { (moment::span(now.since(cell.ended))) }
                    }
                }
            }
        }
    }
}

/// A state's sign and its words.
pub(crate) fn sign(state: CellState) -> Markup {
    html! {
        span class={ "sign " (state.word()) } { span class="glyph" aria-hidden="true" { (state.glyph()) } " " (state.words()) }
    }
}

/// `9.41G`, `941M`: three digits and the prefix.
fn short_rate(bps: f64) -> String {
    let (digits, unit) = BitRate(whole(bps)).in_unit();
    let prefix = unit.strip_suffix("bit/s").unwrap_or(unit);
    format!("{digits}{}", if prefix == "k" { "k" } else { prefix })
}
