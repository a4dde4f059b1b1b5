//! The matrix as a table whose cells have a colour and a number, and the source ports in the same form.

use std::fmt::Write as _;

use linerate_model::plain_text::PlainText;
use maud::{Markup, html};

use super::cell::{Cell, Level};
use super::grid::Grid;
use super::html::Page;
use super::order::Order;
use super::text;
use super::view::{Margin, MeshView, bit_rate, counted};
use crate::words;

/// With more hosts than this the page has the folded matrix, or none.
const MOST_HOSTS: usize = 160;
/// Of so many pairs the source ports are shown.
const MOST_PORTS: usize = 20;

/// The heat map in its orders, with the key of its colours.
pub(super) fn section(page: &Page<'_>) -> Markup {
    let view = page.view;
    html! {
        section class="matrix" {
            h2 { "Matrix" }
            @if view.expected_bps.is_none() && view.failures.is_empty() {
                p { "No test was measured." }
            } @else if view.hosts.len() <= MOST_HOSTS {
                (key(view))
                (orders(page))
            } @else if let Some(folded) = &view.folded {
                p class="about" { (counted(view.hosts.len(), "host")) ": those that send and receive alike share a row, which shows medians." }
                (key(view))
                div class="wide" {
                    (table(page, &Grid { view, folded: Some(folded) }, &all(folded.classes.len())))
                }
            } @else {
                p { (counted(view.hosts.len(), "host")) " do not fit on a page; the CSV has all pairs." }
            }
        }
    }
}

/// An order of classes: as they are.
fn all(count: usize) -> Order {
    Order {
        hosts: (0..count).collect(),
        breaks: Vec::new(),
    }
}

fn orders(page: &Page<'_>) -> Markup {
    let view = page.view;
    let grid = Grid { view, folded: None };
    html! {
        @if let Some(similar) = &view.by_similarity {
            fieldset class="orders" {
                legend { "Order of the hosts" }
                input type="radio" name="order" id="mesh-by-name" checked="checked";
                label for="mesh-by-name" { " by name" }
                input type="radio" name="order" id="mesh-by-similarity";
                label for="mesh-by-similarity" { " by group and similarity" }
                div class="wide by-name" { (table(page, &grid, &view.by_name)) }
                div class="wide by-similarity" { (table(page, &grid, similar)) }
            }
        } @else {
            div class="wide" { (table(page, &grid, &view.by_name)) }
        }
    }
}

fn table(page: &Page<'_>, grid: &Grid<'_>, order: &Order) -> Markup {
    let size = match order.hosts.len() {
        ..=20 => "few",
        21..=40 => "some",
        41..=70 => "many",
        _ => "most",
    };
    let apart = |at: usize| order.breaks.contains(&at).then_some("apart");
    html! {
        table class={ "heat " (size) } {
            caption { span { "Rows send, columns receive; " (grid.view.scale()) "." } }
            thead {
                tr {
                    th class="corner" scope="col" { "from ↓ to →" }
                    @for (at, to) in order.hosts.iter().enumerate() {
                        th scope="col" class=[apart(at)] title=(grid.name(*to)) { span { (grid.name(*to)) } }
                    }
                    th scope="col" class="margin" { "sends" }
                }
            }
            @for group in groups(order) {
                tbody {
                    @for from in group { (row(page, grid, order, *from)) }
                }
            }
            tfoot {
                tr {
                    th scope="row" { "receives" }
                    @for to in &order.hosts {
                        @let [_, inbound] = grid.margins(*to);
                        td { (share(&inbound)) }
                    }
                    td class="margin" {}
                }
            }
        }
    }
}

/// The hosts of an order, group by group.
fn groups(order: &Order) -> Vec<&[usize]> {
    let mut groups = Vec::new();
    let mut rest = order.hosts.as_slice();
    for at in order.breaks.iter().rev() {
        let (before, group) = rest.split_at(*at);
        groups.push(group);
        rest = before;
    }
    groups.push(rest);
    groups.reverse();
    groups
}

fn row(page: &Page<'_>, grid: &Grid<'_>, order: &Order, from: usize) -> Markup {
    let [out, _] = grid.margins(from);
    html! {
        tr {
            th scope="row" title=(grid.name(from)) { (grid.name(from)) }
            @for (at, to) in order.hosts.iter().enumerate() {
                @let cell = grid.cell(from, *to);
                @let apart = if order.breaks.contains(&at) { " apart" } else { "" };
                td class={ (class(cell)) (apart) } title=[title(grid, from, *to)] { (linked(page, cell)) }
            }
            td class="margin" { (share(&out)) }
        }
    }
}

/// What a cell shows, as a link to its report where there is one.
fn linked(page: &Page<'_>, cell: &Cell) -> Markup {
    let report = cell.record().and_then(|record| (page.report)(record));
    let shown = content(cell);
    match report.and_then(|path| href(&path)) {
        Some(href) => html! { a href=(href) { (shown) } },
        None => shown,
    }
}

fn content(cell: &Cell) -> Markup {
    match cell {
        Cell::Own => html! { span class="spoken" { "itself" } },
        Cell::NotDue => html! { span class="spoken" { "not measured" } },
        Cell::NotRun(_) => {
            html! { span aria-hidden="true" { "○" } span class="spoken" { "did not begin" } }
        }
        Cell::Failed(_) => {
            html! { span aria-hidden="true" { "×" } span class="spoken" { "failed" } }
        }
        Cell::Measured(figures) => html! { (format!("{:.0}", figures.share * 100.0)) },
    }
}

fn class(cell: &Cell) -> String {
    match cell {
        Cell::Own => "own".to_owned(),
        Cell::NotDue => "open".to_owned(),
        Cell::NotRun(_) => "unrun".to_owned(),
        Cell::Failed(_) => "lost".to_owned(),
        Cell::Measured(figures) => {
            let part = words::when(figures.failed > 0, " part-failed");
            format!("{}{part}", level(Level::of(figures.share)))
        }
    }
}

/// The class of a level in the style sheets of page and figure.
pub(super) const fn level(level: Level) -> &'static str {
    match level {
        Level::Full => "h9",
        Level::Most => "h7",
        Level::Half => "h5",
        Level::Third => "h3",
        Level::Low => "h1",
        Level::Least => "h0",
    }
}

/// What a cell says when a pointer rests on it.
fn title(grid: &Grid<'_>, from: usize, to: usize) -> Option<String> {
    let said = cell_words(grid.cell(from, to))?;
    Some(format!("{} → {}: {said}", grid.name(from), grid.name(to)))
}

/// A cell in words; `None` where there is nothing to say.
pub(super) fn cell_words(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Own | Cell::NotDue => None,
        Cell::NotRun(failure) => Some(format!("did not begin: {}", failure.why)),
        Cell::Failed(failure) => {
            let stage = failure.stage.as_ref().map_or("failed", PlainText::as_str);
            Some(format!("failed, {stage}: {}", failure.why))
        }
        Cell::Measured(figures) => Some(text::words_of(figures)),
    }
}

fn share(margin: &Margin) -> String {
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    margin.share.map_or_else(|| "–".to_owned(), percent)
}

/// A relative path as a link: it can lead to no other place than below the page's folder.
fn href(path: &str) -> Option<String> {
    let mut link = ".".to_owned();
    for part in path.split('/') {
        if part.is_empty() || part == "." || part == ".." {
            return None;
        }
        link.push('/');
        for byte in part.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                link.push(char::from(byte));
            } else {
                // Writing to a string does not fail.
                let _ = write!(link, "%{byte:02X}");
            }
        }
    }
    Some(link)
}

/// What the colours and signs mean.
fn key(view: &MeshView) -> Markup {
    let signs = [
        (view.counts.failed > 0, "lost", "×", "failed"),
        (view.counts.not_run > 0, "unrun", "○", "did not begin"),
        (
            view.counts.pairs < view.counts.possible,
            "open",
            "",
            "not measured",
        ),
    ];
    let sample = |level: Level| format!("{:.0}", level.least() * 100.0);
    html! {
        ul class="key-of" aria-label="Key" {
            @for one in Level::ALL {
                li { span class={ "sample " (self::level(one)) } aria-hidden="true" { (sample(one)) } (one.words()) }
            }
            @for (_, class, sign, words) in signs.into_iter().filter(|sign| sign.0) {
                li { span class={ "sample " (class) } aria-hidden="true" { span { (sign) } " " } (words) }
            }
            @if !view.failures.is_empty() && partly(view) {
                li { span class="sample h9 part-failed" aria-hidden="true" { "97" } "some of its tests failed" }
            }
        }
    }
}

/// Whether a pair has tests of both kinds.
fn partly(view: &MeshView) -> bool {
    let count = view.hosts.len();
    let mut pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
    pairs.any(|(from, to)| {
        let figures = view.cell(from, to).figures();
        figures.is_some_and(|figures| figures.failed > 0)
    })
}

/// A strip for each pair whose source ports were spread.
pub(super) fn ports(view: &MeshView) -> Markup {
    let more = view.ports.len().saturating_sub(MOST_PORTS);
    html! {
        @if !view.ports.is_empty() {
            section class="ports" {
                h2 { "Goodput by source port" }
                p class="about" {
                    "In % of the rate that the fastest quarter of a pair's ports reaches. The pairs with the most ports below 70 % come first."
                }
                @for pair in view.ports.iter().take(MOST_PORTS) {
                    div class="wide" { (strip(pair)) }
                }
                @if more > 0 { p class="about" { (counted(more, "more pair")) ": the CSV has them." } }
            }
        }
    }
}

fn strip(pair: &super::PortsView) -> Markup {
    let size = if pair.ports.len() > 40 {
        "many"
    } else {
        "some"
    };
    html! {
        table class={ "heat strip " (size) } {
            caption {
                span { (pair.from) " → " (pair.to) ": " (pair.slow) " of " (pair.ports.len()) " ports below 70 % of " (bit_rate(pair.expected_bps)) }
            }
            thead {
                tr {
                    th class="corner" scope="col" { "port" }
                    @for port in &pair.ports { th scope="col" { span { (port.port) } } }
                }
            }
            tbody {
                tr {
                    th scope="row" { "goodput" }
                    @for port in &pair.ports {
                        @match port.share.zip(port.goodput_bps) {
                            Some((share, rate)) => {
                                td class=(level(Level::of(share))) title={ "port " (port.port) ": " (bit_rate(rate)) } { (format!("{:.0}", share * 100.0)) }
                            },
                            None => {
                                td class="lost" title={ "port " (port.port) ": failed" } { span aria-hidden="true" { "×" } span class="spoken" { "failed" } }
                            },
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_stays_below_the_page() {
        assert_eq!(
            href("records/a b.html").as_deref(),
            Some("./records/a%20b.html")
        );
        assert_eq!(
            href("javascript:alert(1)").as_deref(),
            Some("./javascript%3Aalert%281%29")
        );
        for outside in ["/etc/passwd", "../a", "a/../b", "", "a//b", "./a"] {
            assert_eq!(href(outside), None, "{outside}");
        }
    }
}
