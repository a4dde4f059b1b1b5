//! A comparison for people.

use std::fmt::Write as _;

use linerate_model::record::Flow;

use super::{Comparison, Coverage, Difference, DirectionComparison, SideFigures, SideView};
use crate::text::layout::{self, Page};
use crate::text::{Style, limits, way};
use crate::words;

/// A value of each side in a table: of as many sides it fits.
const MOST_COLUMNS: usize = 4;
/// Width of such a column.
const COLUMN: usize = 17;
/// Width of the names before them.
const NAMES: usize = 30;
/// Of the findings that are no verdict, so many are listed for each side.
const MOST_FOUND: usize = 4;

/// The comparison as text.
pub fn report(comparison: &Comparison, style: Style) -> String {
    let mut page = Page::of_width(style.text_columns());
    let count = comparison.sides.len();
    page.line(&format!("{count} sides; each is compared with the first"));
    for side in &comparison.sides {
        let runs = if side.runs == 1 {
            "one run".to_owned()
        } else {
            format!("{} runs", side.runs)
        };
        page.wrapped(
            &format!("  {:<3} ", side.letter),
            &format!("{}, {runs}", words::plain(&side.name)),
        );
    }
    for direction in &comparison.directions {
        page.gap();
        goodputs(&mut page, comparison, direction);
        page.gap();
        table(&mut page, "Figures", comparison, &figures(direction));
        page.gap();
        times(&mut page, style, comparison, direction);
    }
    page.gap();
    settings(&mut page, comparison);
    page.gap();
    page.line("Found");
    for side in &comparison.sides {
        found(&mut page, side);
    }
    page.gap();
    for remark in &comparison.remarks {
        page.entry("Note", remark);
    }
    style.settle(page.finish())
}

fn goodputs(page: &mut Page, comparison: &Comparison, direction: &DirectionComparison) {
    page.line(&format!("Goodput, {}", way(direction.flow)));
    for (side, figures) in comparison.sides.iter().zip(&direction.sides) {
        page.wrapped(&format!("  {:<3} ", side.letter), &goodput(figures));
        if let Some(against) = &figures.against_first {
            page.wrapped(
                "        ",
                &difference(against, &comparison.sides[0].letter),
            );
        }
    }
}

/// `94.1 Mbit/s (95 % interval 94.0 to 94.2 Mbit/s, within the run)`.
pub(crate) fn goodput(figures: &SideFigures) -> String {
    let covers = match figures.interval {
        Some(Coverage::WithinOneRun) => ", within the run",
        Some(Coverage::BetweenRuns) => ", between runs",
        None => "",
    };
    let interval = figures.goodput_low_bps.zip(figures.goodput_high_bps);
    let interval = words::with(interval, |(low, high)| {
        format!(" (95 % interval {}{covers})", words::rates(low, high))
    });
    words::known(figures.goodput_bps, |bps| {
        format!("{}{interval}", words::rate(bps))
    })
}

/// `+125 Mbit/s (+133 %) compared with A, 95 % interval +105 to +144 Mbit/s: the difference is significant`.
pub(crate) fn difference(against: &Difference, first: &str) -> String {
    let share = words::with(against.share, |share| format!(" ({:+.1} %)", share * 100.0));
    let head = format!("{}{share} compared with {first}", signed(against.bps));
    match (against.low_bps.zip(against.high_bps), against.differs) {
        (Some((low, high)), Some(true)) => {
            format!(
                "{head}, 95 % interval {}: the difference is significant",
                words::signed_rates(low, high)
            )
        }
        (Some((low, high)), _) => format!(
            "{head}, 95 % interval {}: it includes zero, so these figures do not show a difference",
            words::signed_rates(low, high)
        ),
        (None, _) => {
            format!("{head}; without an interval of each, it is not known whether they differ")
        }
    }
}

fn signed(bps: i64) -> String {
    let sign = if bps < 0 { "−" } else { "+" };
    format!("{sign}{}", words::rate(bps.unsigned_abs()))
}

/// A row of a table: its name, and the value of each side.
type NamedValues<'a> = (&'a str, Vec<Option<String>>);

/// A figure of the table: its name and how it is printed.
type Row = (&'static str, fn(&SideFigures) -> Option<String>);

const ROWS: [Row; 9] = [
    ("whole run", |side| {
        side.whole_run_bps.map(|bps| words::rate(words::whole(bps)))
    }),
    ("ramp", |side| {
        side.ramp_ns.map(|ns| words::seconds(words::whole(ns)))
    }),
    ("segments retransmitted", |side| {
        side.retransmit_share.map(words::percent)
    }),
    ("RTT mean", |side| side.rtt_us.map(words::micros)),
    ("RTT minimum", |side| side.min_rtt_us.map(words::micros)),
    ("datagrams lost", |side| side.loss_share.map(words::percent)),
    ("jitter", |side| {
        side.jitter_ns.map(|ns| words::micros(ns / 1e3))
    }),
    ("CPU of the client, s/GB", |side| {
        side.client_seconds_per_gigabyte
            .map(linerate_model::units::three_digits)
    }),
    ("CPU of the server, s/GB", |side| {
        side.server_seconds_per_gigabyte
            .map(linerate_model::units::three_digits)
    }),
];

/// The rows of which a side has a figure, with each side's.
pub(crate) fn figures(direction: &DirectionComparison) -> Vec<NamedValues<'static>> {
    ROWS.into_iter()
        .map(|(name, of)| (name, direction.sides.iter().map(of).collect::<Vec<_>>()))
        .filter(|(_, values)| values.iter().any(Option::is_some))
        .collect()
}

/// Values side by side where they fit, else one under the other.
fn table(page: &mut Page, head: &str, comparison: &Comparison, rows: &[NamedValues<'_>]) {
    if rows.is_empty() {
        return;
    }
    let letters: Vec<&str> = comparison
        .sides
        .iter()
        .map(|side| side.letter.as_str())
        .collect();
    let narrow = rows.iter().all(|(name, values)| {
        name.chars().count() <= NAMES
            && values
                .iter()
                .flatten()
                .all(|value| value.chars().count() < COLUMN)
    });
    if !narrow || letters.len() > MOST_COLUMNS {
        page.line(head);
        for (name, values) in rows {
            page.line(&format!("  {name}"));
            for (letter, value) in letters.iter().zip(values) {
                page.wrapped(
                    &format!("    {letter:<3} "),
                    &words::plain(value.as_deref().unwrap_or("-")),
                );
            }
        }
        return;
    }
    let mut line = format!("{head:<width$}", width = NAMES + 2);
    for letter in &letters {
        let _ = write!(line, "{letter:>COLUMN$}");
    }
    page.line(&line);
    for (name, values) in rows {
        let mut line = format!("  {name:<NAMES$}");
        for value in values {
            let value = words::plain(value.as_deref().unwrap_or("-"));
            let _ = write!(line, "{value:>COLUMN$}");
        }
        page.line(&line);
    }
}

fn times(page: &mut Page, style: Style, comparison: &Comparison, direction: &DirectionComparison) {
    let known = direction
        .sides
        .iter()
        .any(|side| side.time_budget.is_some());
    if !known {
        return;
    }
    page.line(&format!(
        "Where the sender's time went, {}",
        way(direction.flow)
    ));
    for (side, figures) in comparison.sides.iter().zip(&direction.sides) {
        let head = format!("  {:<3} ", side.letter);
        match &figures.time_budget {
            Some(budget) => {
                page.line(&format!(
                    "{head}{}",
                    limits::bar(style, budget, head.chars().count())
                ));
                page.wrapped("      ", &limits::shares(budget));
            }
            None => page.wrapped(&head, "not known"),
        }
    }
}

fn settings(page: &mut Page, comparison: &Comparison) {
    if comparison.settings.is_empty() {
        page.line("Settings    the same in all, as far as they are known");
        return;
    }
    let rows: Vec<NamedValues<'_>> = comparison
        .settings
        .iter()
        .map(|setting| (setting.name.as_str(), setting.values.clone()))
        .collect();
    table(page, "Settings that differ", comparison, &rows);
}

fn found(page: &mut Page, side: &SideView) {
    let head = format!("  {:<3} ", side.letter);
    if side.findings.is_empty() {
        page.wrapped(&head, "nothing");
    }
    let mut others = 0;
    for (number, found) in side.findings.iter().enumerate() {
        others += usize::from(!found.verdict);
        if others > MOST_FOUND {
            page.wrapped(
                "      ",
                &format!("and {} more", side.findings.len() - number),
            );
            break;
        }
        let way = words::with(found.flow.filter(|_| several(side)), |flow: Flow| {
            format!("{}: ", layout::capital(way(flow)))
        });
        let times = if side.runs > 1 {
            format!(" (in {} of {} runs)", found.runs, side.runs)
        } else {
            String::new()
        };
        let head = if number == 0 { head.as_str() } else { "      " };
        page.wrapped(
            head,
            &format!(
                "{}{times}: {way}{}",
                words::plain(&found.id),
                words::plain(&found.sentence)
            ),
        );
    }
}

/// Whether its findings are about more than one direction.
fn several(side: &SideView) -> bool {
    let mut flows = side.findings.iter().filter_map(|found| found.flow);
    let first = flows.next();
    flows.any(|flow| Some(flow) != first)
}
