//! Runs side by side: what was changed, what came of it, and the same charts on the same axes.

use maud::{Markup, html};

use super::data::{self, Drawn};
use super::{Sheet, charts, document};
use crate::chart::Chart;
use crate::compare::{self, Comparison, DirectionComparison, SideFigures};
use crate::markup;
use crate::text::{book, header, layout, way};
use crate::view::RunView;
use crate::words::known;

/// A run with the name that it bears in a comparison: `before`, `after`, a file's name.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// The name.
    pub label: &'a str,
    /// The run that is drawn.
    pub sheet: Sheet<'a>,
    /// Further runs of the same kind: figures and intervals are those of all together.
    pub more: &'a [RunView],
}

/// One page of several runs, the first of which the others are held against. `changed` says what was done
/// between them, one sentence each; what differs in plans and hosts is listed anyway.
pub fn comparison(title: &str, changed: &[String], sides: &[Side<'_>]) -> String {
    let all = || sides.iter().map(|side| side.sheet.charts);
    let span_ns = [
        all().map(|charts| charts.from_ns).min().unwrap_or(0),
        all().map(|charts| charts.to_ns).max().unwrap_or(1),
    ];
    let drawn: Vec<Drawn<'_>> = sides
        .iter()
        .enumerate()
        .map(|(run, side)| Drawn {
            run,
            view: side.sheet.view,
            charts: side.sheet.charts,
            span_ns,
        })
        .collect();
    let kinds: Vec<compare::Side<'_>> = sides
        .iter()
        .map(|side| {
            let runs = std::iter::once(side.sheet.view).chain(side.more);
            compare::Side::of(side.label, runs.collect())
        })
        .collect();
    let compared = Comparison::of(&kinds);
    let body = html! {
        header {
            h1 { (title) }
            @if !changed.is_empty() {
                h2 { "What was changed" }
                ul { @for sentence in changed { li { (sentence) } } }
            }
            (markup::list(Some("ends"), &sides.iter().map(end).collect::<Vec<_>>()))
        }
        main {
            (figures(sides, &compared))
            (settings(sides, &compared))
            (side_by_side(sides, &drawn))
        }
        footer {
            @for side in sides {
                p {
                    "The full record of " (side.label)
                    @match side.sheet.kept {
                        Some(kept) => { " is in " (kept) },
                        None => " was not kept",
                    }
                    "."
                }
            }
        }
    };
    document(title, &body, &data::of(&drawn))
}

/// What was tested, and what came out.
fn end<'a>(side: &Side<'a>) -> (&'a str, String) {
    let view = side.sheet.view;
    let verdicts = view.directions.iter().filter_map(|direction| {
        let finding = view.findings.get(direction.verdict?)?;
        Some(finding.sentence.clone())
    });
    let mut said = vec![header::test(&view.plan)];
    if !side.more.is_empty() {
        said.push(format!("One of {} runs", side.more.len() + 1));
    }
    said.extend(header::cut_off(view).map(|(label, how)| format!("{label} {how}")));
    said.extend(verdicts);
    (side.label, said.join(". "))
}

/// What each direction gave, and by how much the others differ from the first.
fn figures(sides: &[Side<'_>], compared: &Comparison) -> Markup {
    html! {
        section class="answer" {
            @for direction in &compared.directions {
                h2 { (layout::capital(way(direction.flow))) }
                @for (side, figures) in sides.iter().zip(&direction.sides).skip(1) {
                    p class="verdict" { (against(sides[0].label, side.label, figures)) }
                }
                (table("Figure", sides, &rows(sides, direction)))
            }
            @for remark in &compared.remarks { p class="about" { (remark) } }
        }
    }
}

fn against(first: &str, second: &str, figures: &SideFigures) -> String {
    figures.against_first.as_ref().map_or_else(
        || format!("{first} and {second} cannot be compared: the goodput of one is not known."),
        |against| format!("{second}: {}.", compare::difference_words(against, first)),
    )
}

/// The figures that a side of the direction has, and the ledger.
fn rows(sides: &[Side<'_>], direction: &DirectionComparison) -> Markup {
    let known = |cell: Option<String>| known(cell, |cell| cell);
    html! {
        (row("Goodput", direction.sides.iter().map(compare::goodput_words)))
        @for (name, cells) in compare::figures(direction) {
            (row(&layout::capital(name), cells.into_iter().map(known)))
        }
        (row("Ledger", sides.iter().map(|side| book::balance(side.sheet.view))))
    }
}

fn table(what: &str, sides: &[Side<'_>], rows: &Markup) -> Markup {
    let mut columns = vec![what];
    columns.extend(sides.iter().map(|side| side.label));
    markup::table(&columns, 0..0, rows)
}

fn row(name: &str, cells: impl Iterator<Item = String>) -> Markup {
    html! {
        tr {
            th scope="row" { (name) }
            @for cell in cells { td { (cell) } }
        }
    }
}

/// What differs in plans and hosts.
fn settings(sides: &[Side<'_>], compared: &Comparison) -> Markup {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".to_owned());
    let rows = html! {
        @for setting in &compared.settings { (row(&setting.name, setting.values.iter().map(value))) }
    };
    html! {
        section class="differences" {
            h2 { "Settings that differ" }
            @if compared.settings.is_empty() {
                p { "None of those that the records hold." }
            } @else {
                (table("Setting", sides, &rows))
            }
        }
    }
}

/// Each chart that any of them has, side by side.
fn side_by_side(sides: &[Side<'_>], drawn: &[Drawn<'_>]) -> Markup {
    let mut ids: Vec<&str> = Vec::new();
    for chart in drawn.iter().flat_map(|run| &run.charts.charts) {
        if !ids.contains(&chart.id.as_str()) {
            ids.push(&chart.id);
        }
    }
    html! {
        section class="charts" id="charts" {
            h2 { "Charts, on the same axes" }
            (charts::bar())
            @for id in ids { (beside(sides, drawn, id)) }
        }
    }
}

fn beside(sides: &[Side<'_>], drawn: &[Drawn<'_>], id: &str) -> Markup {
    let all = drawn.iter().map(|run| run.charts.charts.iter());
    let found: Vec<Option<&Chart>> = all
        .map(|mut charts| charts.find(|chart| chart.id == id))
        .collect();
    let most = found.iter().flatten().map(|chart| chart.most()).max();
    html! {
        div class="beside" {
            @for ((side, run), chart) in sides.iter().zip(drawn).zip(found) {
                div {
                    p class="side" { (side.label) }
                    @match chart {
                        Some(chart) => (charts::figure(run, chart, most.unwrap_or(0))),
                        None => p class="absent" { "This run has no such chart." },
                    }
                }
            }
        }
    }
}
