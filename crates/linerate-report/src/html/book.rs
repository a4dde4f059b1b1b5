//! The ledger: places and what passed them, and the equations between them.

use linerate_analysis::ledger::Check;
use linerate_model::record::Flow;
use maud::{Markup, html};

use crate::markup;
use crate::text::book::{self, Streams, Table};
use crate::text::{layout, way};
use crate::view::RunView;
use crate::words::{count, known};

/// More streams than this have no column of their own.
const MOST_STREAMS: usize = 16;

pub(super) fn section(view: &RunView) -> Markup {
    let Some(totals) = book::table(view, Streams::Broken) else {
        return Markup::default();
    };
    let directions = view.ledger.directions.iter();
    let streams = directions.map(|direction| direction.streams.len()).max();
    let each = streams
        .filter(|streams| (2..=MOST_STREAMS).contains(streams))
        .and_then(|_| book::table(view, Streams::All));
    let class = if view.ledger.balanced == Some(false) {
        "balance fault"
    } else {
        "balance"
    };
    html! {
        section class="ledger" {
            h2 { "Ledger" }
            p class=(class) { (book::balance(view)) }
            (table(&totals))
            @if let Some(each) = &each {
                details {
                    summary { "Each stream" }
                    (table(each))
                }
            }
            (equations(view))
            @for reason in book::not_known(&view.ledger) {
                p class="absent" { "Not known: " (reason) }
            }
        }
    }
}

fn table(table: &Table) -> Markup {
    let mut columns = vec![&table.head];
    columns.extend(&table.columns);
    let rows = html! {
        @for row in &table.rows {
            tr {
                th scope="row" class=(if row.part { "part" } else { "whole" }) { (row.name) }
                @for value in &row.values { td class="number" { (known(*value, count)) } }
            }
        }
    };
    markup::table(&columns, 1..columns.len(), &rows)
}

/// Every equation; those that do not hold stand open, with the figure to trust.
fn equations(view: &RunView) -> Markup {
    let directions = view.ledger.directions.iter();
    let all: Vec<(Flow, &Check)> = directions
        .flat_map(|of| of.checks.iter().map(|check| (of.flow, check)))
        .collect();
    let open = (view.ledger.balanced == Some(false)).then_some("");
    let rows = html! {
        @for (flow, check) in &all {
            tr {
                td {
                    (layout::capital(way(*flow)))
                    @if let Some(id) = check.stream { ", stream " (id) }
                }
                td { (check.equation) }
                td class="number" { (count(check.left)) }
                td class="number" { (count(check.right)) }
                @if check.holds {
                    td { "yes" }
                } @else {
                    td class="fault" {
                        "no, " (count(check.difference())) " apart; trust " (check.trust.as_deref().unwrap_or("neither"))
                    }
                }
            }
        }
    };
    html! {
        @if !all.is_empty() {
            details open=[open] {
                summary {
                    "Equations between the places (" (view.ledger.hold) " of " (view.ledger.equations) " hold)"
                }
                (markup::table(&["Where", "Equation", "Left", "Right", "Holds"], 2..4, &rows))
            }
        }
    }
}
