//! The matrix as text: percent where hosts fold into few classes, else a character for each pair.

use std::fmt::Write as _;

use super::cell::{Cell, Level};
use super::grid::Grid;
use super::view::{Margin, MeshView, counted, grouped};
use crate::text::Style;
use crate::text::layout::Page;
use crate::words;

/// Columns of a cell in percent.
const CELL: usize = 5;
/// The longest name in front of a row of percent.
const LONGEST: usize = 40;
/// The longest name in front of a row of characters.
const SHORT: usize = 22;
/// Columns of the margin behind a row.
const MARGIN: usize = 7;
/// Where no matrix fits, so many hosts are listed.
const MOST_HOSTS: usize = 20;

/// The matrix with its legend.
pub(super) fn write(page: &mut Page, view: &MeshView, style: Style) {
    if view.expected_bps.is_none() {
        page.entry("Matrix", "none: no test was measured");
        return;
    }
    page.wrapped(
        "",
        &format!("Matrix: {}. Rows send, columns receive.", view.scale()),
    );
    let folded = view.folded.as_ref();
    let grid = Grid { view, folded };
    let columns = style.text_columns();
    let names = (0..grid.len()).map(|at| grid.name(at).chars().count());
    let names = names.max().unwrap_or(0);
    let percent = names.min(LONGEST) + 6 + MARGIN + CELL * grid.len();
    let characters = |each: usize| names.min(SHORT) + 6 + MARGIN + each * grid.len();
    if percent <= columns && grid.len() <= 26 {
        in_percent(page, &grid, style);
    } else if characters(2) <= columns {
        in_characters(page, &grid, style, 2);
    } else if characters(1) <= columns {
        in_characters(page, &grid, style, 1);
    } else {
        margins_alone(page, view);
        return;
    }
    legend(page, &grid, style, percent <= columns && grid.len() <= 26);
}

/// The name of a column: A to Z.
fn letter(at: usize) -> char {
    u8::try_from(at).map_or('?', |at| char::from(b'A'.saturating_add(at)))
}

fn in_percent(page: &mut Page, grid: &Grid<'_>, style: Style) {
    let names: Vec<String> = (0..grid.len())
        .map(|at| words::shortened(&grid.name(at), LONGEST))
        .collect();
    let longest = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0)
        .max(8);
    let mut head = format!("{:<width$}", "", width = longest + 4);
    for at in 0..grid.len() {
        let _ = write!(head, "{:>CELL$}", letter(at));
    }
    page.line(&format!("{head}  sends"));
    for (from, name) in names.iter().enumerate() {
        let mut line = format!("  {} {name:<longest$}", letter(from));
        for to in 0..grid.len() {
            line.push_str(&padded(style, grid.cell(from, to)));
        }
        let [out, _] = grid.margins(from);
        page.line(&format!("{line}{:>MARGIN$}", share(&out)));
    }
    let mut line = format!("  {:<width$}", "receives", width = longest + 2);
    for to in 0..grid.len() {
        let [_, inbound] = grid.margins(to);
        let _ = write!(line, "{:>CELL$}", share(&inbound));
    }
    page.line(&line);
}

/// The share of a margin; a dash where nothing was measured.
fn share(margin: &Margin) -> String {
    margin
        .share
        .map_or_else(|| "-".to_owned(), |share| format!("{:.0}", share * 100.0))
}

/// A cell in percent, as wide as its column.
fn padded(style: Style, cell: &Cell) -> String {
    let (text, colour) = match cell {
        Cell::Measured(figures) => {
            let failed = words::when(figures.failed > 0, "!");
            let text = format!("{:.0}{failed}", figures.share * 100.0);
            (text, colour(figures.share))
        }
        other => (glyph(style, other).to_owned(), None),
    };
    let text = format!("{text:>CELL$}");
    match colour {
        Some(code) => style.coloured(code, &text),
        None => text,
    }
}

fn in_characters(page: &mut Page, grid: &Grid<'_>, style: Style, each: usize) {
    let count = grid.len();
    let names: Vec<String> = (0..count)
        .map(|at| words::shortened(&grid.name(at), SHORT))
        .collect();
    let longest = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0);
    let places = count.to_string().len();
    let front = places + 1 + longest + 2;
    for place in (0..places).rev() {
        let mut line = " ".repeat(front);
        for at in 1..=count {
            let number = format!("{at:>places$}");
            let digit = number.chars().rev().nth(place).unwrap_or(' ');
            let _ = write!(line, "{digit:<each$}");
        }
        let sends = words::when(place == 0, " sends");
        page.line(&format!("{line}{sends}"));
    }
    for (from, name) in names.iter().enumerate() {
        let mut line = format!("{:>places$} {name:<longest$}  ", from + 1);
        for to in 0..count {
            let cell = grid.cell(from, to);
            let shown = match cell {
                Cell::Measured(figures) if figures.failed > 0 => "!".to_owned(),
                Cell::Measured(figures) => tenths(style, Some(figures.share)),
                other => glyph(style, other).to_owned(),
            };
            line.push_str(&shown);
            line.push_str(&" ".repeat(each - 1));
        }
        let [out, _] = grid.margins(from);
        page.line(&format!("{line}{:>6}", share(&out)));
    }
    receives(page, grid, front, each);
}

/// What each column receives, in percent, written downwards.
fn receives(page: &mut Page, grid: &Grid<'_>, front: usize, each: usize) {
    let shares: Vec<String> = (0..grid.len())
        .map(|to| share(&grid.margins(to)[1]))
        .collect();
    let places = shares.iter().map(String::len).max().unwrap_or(0);
    for place in 0..places {
        let label = words::when(place == 0, "receives");
        let mut line = format!("{label:<front$}");
        for text in &shares {
            let text = format!("{text:>places$}");
            let digit = text.chars().nth(place).unwrap_or(' ');
            let _ = write!(line, "{digit:<each$}");
        }
        page.line(&line);
    }
}

/// The share in tenths as a digit; a dot from 90 % on, a cross where there is none.
pub(super) fn tenths(style: Style, share: Option<f64>) -> String {
    let Some(share) = share else {
        return style.pick("×", "x").to_owned();
    };
    if share >= Level::Full.least() {
        return style.pick("·", ".").to_owned();
    }
    let digit = words::whole((share * 10.0).floor()).min(8).to_string();
    match colour(share) {
        Some(code) => style.coloured(code, &digit),
        None => digit,
    }
}

/// The colour of a share: red below 50 %, yellow below 90 %.
fn colour(share: f64) -> Option<&'static str> {
    if share < Level::Half.least() {
        Some("31")
    } else if share < Level::Full.least() {
        Some("33")
    } else {
        None
    }
}

/// A cell without a rate.
const fn glyph(style: Style, cell: &Cell) -> &'static str {
    match cell {
        Cell::Own => "\\",
        Cell::NotDue | Cell::Measured(_) => " ",
        Cell::NotRun(_) => style.pick("○", "o"),
        Cell::Failed(_) => style.pick("×", "x"),
    }
}

/// What the characters mean, as far as the matrix has them.
fn legend(page: &mut Page, grid: &Grid<'_>, style: Style, percent: bool) {
    let (mut failed, mut not_run, mut partly, mut open) = (false, false, false, false);
    for from in 0..grid.len() {
        for to in 0..grid.len() {
            match grid.cell(from, to) {
                Cell::Own => {}
                Cell::NotDue => open = true,
                Cell::NotRun(_) => not_run = true,
                Cell::Failed(_) => failed = true,
                Cell::Measured(figures) => partly |= figures.failed > 0,
            }
        }
    }
    let tenths = [
        style.pick("·", "."),
        " 90 % and more, 3 = 30 to 39 %, 0 = below 10 %",
    ];
    let counts = &grid.view.counts;
    let tested = format!(
        "{} of {} pairs were tested",
        grouped(counts.pairs),
        grouped(counts.possible)
    );
    let folded = grid.folded.is_some();
    let parts = [
        (!percent, tenths.concat()),
        (failed, style.pick("× failed", "x failed").to_owned()),
        (
            not_run,
            style.pick("○ did not begin", "o did not begin").to_owned(),
        ),
        (partly, "! some of its tests failed".to_owned()),
        (open, "blank: not measured".to_owned()),
        (
            folded,
            "hosts that send and receive alike share a row, which shows medians".to_owned(),
        ),
        (folded && counts.pairs < counts.possible, tested),
    ];
    let parts = parts
        .into_iter()
        .filter(|(is, _)| *is)
        .map(|(_, text)| text);
    page.wrapped("  ", &parts.collect::<Vec<_>>().join("; "));
}

/// The hosts that are slowest in either direction, where the matrix has no place.
fn margins_alone(page: &mut Page, view: &MeshView) {
    page.wrapped(
        "  ",
        &format!(
            "{} do not fit here (--html, --svg and --csv have all pairs); medians of the slowest:",
            counted(view.hosts.len(), "host")
        ),
    );
    let mut order: Vec<usize> = (0..view.hosts.len()).collect();
    let least = |at: &usize| {
        let host = &view.hosts[*at];
        let shares = [host.out.share, host.inbound.share];
        let shares = shares.map(|share| share.unwrap_or(0.0));
        shares[0].min(shares[1])
    };
    order.sort_by(|a, b| least(a).total_cmp(&least(b)));
    order.truncate(MOST_HOSTS);
    page.line(&format!(
        "  {:<LONGEST$} {:>7} {:>9} {:>7}",
        "", "sends", "receives", "failed"
    ));
    for at in order {
        let host = &view.hosts[at];
        page.line(&format!(
            "  {:<LONGEST$} {:>7} {:>9} {:>7}",
            words::shortened(&host.name, LONGEST),
            share(&host.out),
            share(&host.inbound),
            host.out.failed + host.inbound.failed
        ));
    }
}
