//! The report that fits a screen: the answer first, then what it stands on.

use linerate_model::plan::Protocol;

use super::layout::{self, Page};
use super::style::Style;
use super::{chart, figures, header, limits, questions, transfer, way};
use crate::view::{DirectionView, RunView};
use crate::words;

/// As many lines fit a screen. A ledger that does not balance is shown whole behind them.
const LINES: usize = 40;
/// Findings behind the verdict, and notes, that are shown where there is room.
const MOST_OTHERS: usize = 4;

/// The report, with as many of the other findings as fit.
pub(super) fn report(view: &RunView, style: Style) -> String {
    let fits = |text: &String| text.lines().count() <= LINES;
    (1..=MOST_OTHERS)
        .rev()
        .map(|others| written(view, style, others))
        .find(fits)
        .unwrap_or_else(|| written(view, style, 0))
}

fn written(view: &RunView, style: Style, others: usize) -> String {
    let mut page = Page::of_width(style.text_columns());
    header::headline(&mut page, view);
    rates(&mut page, view);
    transfer::write(&mut page, view);
    questions::write(&mut page, view);
    page.gap();
    let left_out = super::verdict(&mut page, view, Some(others));
    if view.client.known || view.server.known {
        let height = if view.directions.len() > 1 {
            chart::LOW
        } else {
            chart::HEIGHT
        };
        for direction in &view.directions {
            page.gap();
            chart::write(&mut page, style, direction, height);
        }
        page.gap();
        details(&mut page, view, style);
    }
    let shown = view.notes.len().min(others);
    for note in &view.notes[..shown] {
        page.entry("Note", &note.text);
    }
    let left_out = left_out + view.notes.len() - shown;
    ledger(&mut page, view);
    let more = match left_out {
        0 => "the hosts".to_owned(),
        1 => "one more note, the hosts".to_owned(),
        some => format!("{some} more notes, the hosts"),
    };
    if is_measured(view) || left_out > 0 {
        page.line(&format!(
            "For {more}, where the rate went and the full ledger, add --full"
        ));
    }
    style.settle(page.finish())
}

/// What the directions carried.
fn rates(page: &mut Page, view: &RunView) {
    if !view.client.known && !view.server.known {
        return;
    }
    for direction in &view.directions {
        let mut text = figures::goodput(&direction.figures);
        if view.directions.len() > 1 {
            text = format!("{}: {text}", way(direction.flow));
        }
        if let Some(whole) = figures::whole_run(&direction.figures) {
            text = format!("{text}; whole run {whole}");
        }
        page.entry("Goodput", &text);
    }
}

/// Where the time went, and the figures of the path.
fn details(page: &mut Page, view: &RunView, style: Style) {
    for direction in &view.directions {
        if view.directions.len() > 1 {
            page.line(&layout::capital(way(direction.flow)));
        }
        if view.plan.protocol == Protocol::Tcp {
            limits::time(page, style, direction);
        }
        figures::delivery(page, view, direction);
    }
    figures::cpu_of_both(page, view);
}

/// Whether there is a figure in any direction.
fn is_measured(view: &RunView) -> bool {
    let moved = |direction: &DirectionView| direction.figures.bytes.is_some();
    view.directions.iter().any(moved)
}

/// One line, unless the ledger does not balance.
fn ledger(page: &mut Page, view: &RunView) {
    match view.ledger.balanced {
        Some(true) => page.line(&balanced(view)),
        Some(false) => {
            page.gap();
            super::book::write(page, view);
        }
        None => page.entry(
            "Ledger",
            if is_measured(view) {
                "not tested: only one end was measured"
            } else {
                "not tested: nothing was measured"
            },
        ),
    }
}

/// `Ledger balanced: 105,766,264 bytes written = read`.
fn balanced(view: &RunView) -> String {
    let moved = |direction: &DirectionView| direction.figures.bytes;
    let bytes: Option<u64> = view.directions.iter().map(moved).sum();
    match (view.plan.protocol, bytes) {
        (Protocol::Tcp | Protocol::Sctp, Some(bytes)) => {
            let stock = |direction: &DirectionView| !view.end(direction.flow.receiver()).known;
            let told = words::when(
                view.directions.iter().any(stock),
                ", as the stock receiver reports",
            );
            let bytes = words::count(bytes);
            format!("Ledger balanced: {bytes} bytes written = read{told}")
        }
        _ => format!(
            "Ledger balanced: {}",
            super::book::all_hold(view.ledger.equations)
        ),
    }
}
