//! The matrix as one figure, for a paper or a ticket: SVG without a script, dark ink on white.

use maud::{Markup, html};

use super::cell::{Cell, Level};
use super::grid::Grid;
use super::heat_map::{cell_words, level as class};
use super::view::MeshView;
use crate::chart::svg;
use crate::date;
use crate::text::layout;
use crate::words;

/// With more rows than this the figure has hosts folded, or none of the matrix.
const MOST_ROWS: usize = 160;
/// The longest name, in characters.
const LONGEST: usize = 28;
/// About the width of a character of a name, px.
const CHARACTER: f64 = 7.0;
/// The narrowest figure, px: its text needs so much.
const LEAST_WIDTH: f64 = 730.0;

const STYLE: &str = "text{font:12px 'DejaVu Sans','Noto Sans',Helvetica,Arial,sans-serif;fill:#1b1f24}\
text.head{font-size:15px;font-weight:bold}text.soft{fill:#4a5057}.end{text-anchor:end}.middle{text-anchor:middle}\
.h9{fill:#d3e8f5}.h7{fill:#fdebb3}.h5{fill:#fdc06f}.h3{fill:#f2894a}.h1{fill:#c43d2f}.h0{fill:#7d0f2c}\
.lost{fill:#1b1f24}.own{fill:#d0d7de}.open{fill:#fff;stroke:#d0d7de}.unrun{fill:#fff;stroke:#1b1f24;stroke-dasharray:2 2}\
text.in{text-anchor:middle}text.light{fill:#fff}.apart{stroke:#4a5057;stroke-width:2}";

/// Where the matrix stands.
struct Frame<'a> {
    grid: Grid<'a>,
    /// Classes or hosts, in their order.
    order: Vec<usize>,
    breaks: &'a [usize],
    left: f64,
    top: f64,
    cell: f64,
}

impl Frame<'_> {
    fn x(&self, at: usize) -> f64 {
        self.left + self.cell * at as f64
    }

    fn y(&self, at: usize) -> f64 {
        self.top + self.cell * at as f64
    }

    /// Size of the numbers in its cells, px; none fit where they would be too small.
    fn letters(&self) -> Option<f64> {
        (self.cell >= 15.0).then_some((self.cell * 0.46).min(12.0))
    }
}

/// The figure, with a newline at its end.
pub fn figure(view: &MeshView) -> String {
    let folded = view
        .folded
        .as_ref()
        .filter(|_| view.hosts.len() > MOST_ROWS);
    let grid = Grid { view, folded };
    let rows = grid.len();
    let fits = rows <= MOST_ROWS;
    let (order, breaks): (Vec<usize>, &[usize]) = if !fits {
        (Vec::new(), &[])
    } else if folded.is_some() {
        ((0..rows).collect(), &[])
    } else {
        (view.by_name.hosts.clone(), &view.by_name.breaks)
    };
    let longest = order
        .iter()
        .map(|at| words::shortened(&grid.name(*at), LONGEST).chars().count());
    let names = longest.max().unwrap_or(0).max(8) as f64 * CHARACTER + 12.0;
    let cell = match order.len() {
        ..=20 => 34.0,
        21..=40 => 24.0,
        41..=70 => 18.0,
        _ => 11.0,
    };
    let width = (names + cell * order.len() as f64 + 60.0).max(LEAST_WIDTH);
    let mut y = 8.0;
    let head = head(view, width, &mut y);
    let frame = Frame {
        left: names + 12.0,
        top: y + names + 10.0,
        grid,
        order,
        breaks,
        cell,
    };
    let bottom = frame.y(frame.order.len()) + 24.0;
    let title = format!("linerate mesh of {}", view.names);
    let body = html! {
        (head)
        (matrix(&frame))
        (key(view, bottom + 16.0))
        @if !fits {
            (svg::text("soft", [12.0, frame.top], "The matrix has too many rows for a figure; the CSV has all pairs."))
        }
    };
    svg::document(&title, STYLE, [width, bottom + 74.0], &body)
}

/// The verdict, and what 100 % is.
fn head(view: &MeshView, width: f64, y: &mut f64) -> Markup {
    let characters = |each: f64| usize::try_from(words::whole((width - 24.0) / each)).unwrap_or(80);
    let verdict = layout::lines(&view.verdict.sentence, characters(8.6));
    let about = format!(
        "{}, {}. Rows send, columns receive; {}.",
        view.names,
        date::rfc1123(view.started_unix_s),
        view.scale()
    );
    let about = layout::lines(&about, characters(6.9));
    html! {
        (svg::text_lines("head", 12.0, y, 19.0, &verdict))
        (svg::text_lines("soft", 12.0, y, 17.0, &about))
    }
}

fn matrix(frame: &Frame<'_>) -> Markup {
    let end = frame.order.len();
    html! {
        @if end > 0 {
            (svg::text("soft end", [frame.x(end) + 46.0, frame.top - 6.0], "sends"))
            (svg::text("soft end", [frame.left - 6.0, frame.y(end) + 16.0], "receives"))
        }
        @for (at, host) in frame.order.iter().enumerate() {
            @let name = words::shortened(&frame.grid.name(*host), LONGEST);
            @let middle = frame.cell * 0.5 + 4.0;
            @let x = frame.x(at) + middle;
            @let y = frame.top - 6.0;
            (svg::text("end", [frame.left - 6.0, frame.y(at) + middle], &name))
            text x=(px(x)) y=(px(y)) transform=(format_args!("rotate(-90 {x:.1} {y:.1})")) { (name) }
            @let [out, inbound] = frame.grid.margins(*host);
            (svg::text("soft end", [frame.x(end) + 46.0, frame.y(at) + middle], &percent(out.share)))
            @if frame.cell >= 18.0 {
                (svg::text("soft in", [frame.x(at) + frame.cell * 0.5, frame.y(end) + 16.0], &percent(inbound.share)))
            }
        }
        @for (row, from) in frame.order.iter().enumerate() {
            @for (column, to) in frame.order.iter().enumerate() {
                (square(frame, [row, column], [*from, *to]))
            }
        }
        @for at in frame.breaks {
            path class="apart" d=(format_args!("M{:.1} {:.1}h{:.1}", frame.left, frame.y(*at), frame.cell * end as f64)) {}
            path class="apart" d=(format_args!("M{:.1} {:.1}v{:.1}", frame.x(*at), frame.top, frame.cell * end as f64)) {}
        }
    }
}

/// A cell: its colour, its number or sign, and all of it in words.
fn square(frame: &Frame<'_>, [row, column]: [usize; 2], [from, to]: [usize; 2]) -> Markup {
    let cell = frame.grid.cell(from, to);
    let (class, shown, light) = look(cell);
    let side = frame.cell - 1.0;
    let (x, y) = (frame.x(column) + 0.5, frame.y(row) + 0.5);
    let words = cell_words(cell);
    let sign = matches!(cell, Cell::Failed(_) | Cell::NotRun(_));
    let letters = frame.letters().or(sign.then_some(frame.cell * 0.8));
    html! {
        g {
            @if let Some(words) = words {
                title { (frame.grid.name(from)) " → " (frame.grid.name(to)) ": " (words) }
            }
            rect class=(class) x=(px(x)) y=(px(y)) width=(px(side)) height=(px(side)) {}
            @if let Some(size) = letters.filter(|_| !shown.is_empty()) {
                @let light = if light { "in light" } else { "in" };
                text class=(light) style=(format_args!("font-size:{size:.1}px")) x=(px(x + side * 0.5)) y=(px(y + side * 0.5 + size * 0.36)) { (shown) }
            }
        }
    }
}

/// Class, text, and whether the text is light.
fn look(cell: &Cell) -> (&'static str, String, bool) {
    match cell {
        Cell::Own => ("own", String::new(), false),
        Cell::NotDue => ("open", String::new(), false),
        Cell::NotRun(_) => ("unrun", "○".to_owned(), false),
        Cell::Failed(_) => ("lost", "×".to_owned(), true),
        Cell::Measured(figures) => {
            let level = Level::of(figures.share);
            let light = matches!(level, Level::Low | Level::Least);
            let failed = words::when(figures.failed > 0, "!");
            (
                class(level),
                format!("{:.0}{failed}", figures.share * 100.0),
                light,
            )
        }
    }
}

/// What the colours and signs mean, in two rows.
fn key(view: &MeshView, top: f64) -> Markup {
    let levels = Level::ALL
        .into_iter()
        .map(|level| (class(level), "", level.words()));
    let signs = [
        (view.counts.failed > 0, ("lost", "×", "failed")),
        (view.counts.not_run > 0, ("unrun", "○", "did not begin")),
        (
            view.counts.pairs < view.counts.possible,
            ("open", "", "not measured"),
        ),
    ];
    let signs = signs
        .into_iter()
        .filter(|(is, _)| *is)
        .map(|(_, sign)| sign);
    let rows = [levels.collect::<Vec<_>>(), signs.collect()];
    html! {
        @for (row, entries) in rows.iter().enumerate() {
            @for (at, (class, sign, words)) in entries.iter().enumerate() {
                @let (x, y) = (12.0 + 118.0 * at as f64, top + 24.0 * row as f64);
                rect class=(class) x=(px(x)) y=(px(y)) width="14" height="14" {}
                text class={ "in" (words::when(*class == "lost", " light")) } x=(px(x + 7.0)) y=(px(y + 11.0)) { (sign) }
                (svg::text("soft", [x + 19.0, y + 11.5], words))
            }
        }
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.0}", share * 100.0))
}

fn px(length: f64) -> String {
    format!("{length:.1}")
}
