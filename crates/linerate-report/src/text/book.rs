//! The ledger: places as rows, directions (and streams whose books are broken) as columns.

use std::fmt::Write as _;

use linerate_analysis::ledger::{Check, DatagramEntry, DirectionLedger, Entry};
use linerate_model::plan::Protocol;

use super::layout::{self, Page};
use super::way;
use crate::view::{LedgerView, RunView};
use crate::words;

/// Width of the places' names.
const NAMES: usize = 40;
/// Width of a column of figures.
const COLUMN: usize = 20;
/// As many columns fit.
const MOST_COLUMNS: usize = 3;
/// As many broken equations are listed.
const MOST_BROKEN: usize = 4;

/// A column: its head, its page of the book and its entry.
struct Column<'a> {
    head: String,
    page: Option<&'a DirectionLedger>,
    entry: &'a Entry,
}

/// A place that bytes pass.
#[derive(Clone, Copy)]
struct Place {
    name: &'static str,
    of: fn(&Column<'_>) -> Option<u64>,
    /// Whether it is within the place before it.
    part: bool,
    /// Whether a row of zeros is worth its line.
    always: bool,
}

const fn place(name: &'static str, of: fn(&Column<'_>) -> Option<u64>) -> Place {
    Place {
        name,
        of,
        part: false,
        always: true,
    }
}

const fn part(name: &'static str, of: fn(&Column<'_>) -> Option<u64>) -> Place {
    Place {
        part: true,
        ..place(name, of)
    }
}

impl Place {
    /// The same, without a row of zeros.
    const fn where_any(self) -> Self {
        Self {
            always: false,
            ..self
        }
    }
}

const TCP: [Place; 13] = [
    place("sending application wrote", |of| of.entry.written),
    part("the stream's cookie", |of| Some(of.entry.cookie)).where_any(),
    place("sending kernel sent", |of| of.entry.bytes_sent),
    part("of it retransmitted", |of| of.entry.bytes_retrans),
    part("of it refused by its own host", |of| of.entry.refused).where_any(),
    part("not yet sent", |of| of.entry.notsent).where_any(),
    part("acknowledged, with SYN and FIN", |of| of.entry.bytes_acked),
    place("interface out, with headers", |of| {
        of.page?.interface_out_bytes
    }),
    place("in flight when the test was cut off", |of| {
        of.entry.in_flight
    })
    .where_any(),
    place("interface in, with headers", |of| {
        of.page?.interface_in_bytes
    }),
    place("receiving kernel received, with FIN", |of| {
        of.entry.bytes_received
    }),
    part("unread at the end", |of| of.entry.unread).where_any(),
    place("receiving application read", |of| of.entry.read),
];

const UDP: [Place; 10] = [
    place("sent", |of| datagrams(of)?.sent),
    part("lost on the path", |of| datagrams(of)?.path_lost),
    part("dropped in the receiver's socket", |of| {
        datagrams(of)?.socket_dropped
    }),
    part("lost, place not known", unplaced).where_any(),
    part("too late to distinguish from duplicates", |of| {
        datagrams(of)?.too_old
    })
    .where_any(),
    place("delivered, each counted once", |of| {
        datagrams(of)?.delivered
    }),
    part("duplicated", |of| datagrams(of)?.duplicated),
    part("reordered", |of| datagrams(of)?.reordered),
    place("sending application wrote, bytes", |of| of.entry.written),
    place("receiving application read, bytes", |of| of.entry.read),
];

fn datagrams<'a>(column: &'a Column<'_>) -> Option<&'a DatagramEntry> {
    column.entry.datagrams.as_ref()
}

/// Lost, where the receiver does not tell what its socket dropped.
fn unplaced(column: &Column<'_>) -> Option<u64> {
    let counts = datagrams(column)?;
    counts.lost.filter(|_| counts.path_lost.is_none())
}

/// The book as a table.
pub(crate) struct Table {
    /// What it books.
    pub(crate) head: String,
    /// Directions, then streams.
    pub(crate) columns: Vec<String>,
    /// Places, with what passed them.
    pub(crate) rows: Vec<Row>,
}

/// A place in the table.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Whether it is within the place before it.
    pub(crate) part: bool,
    /// What passed it in each column.
    pub(crate) values: Vec<Option<u64>>,
}

pub(super) fn write(page: &mut Page, view: &RunView) {
    let Some(table) = table(view, Streams::Broken) else {
        return;
    };
    page.line(&line(&table.head, &table.columns));
    for row in &table.rows {
        let indent = if row.part { "    " } else { "  " };
        let cells = row.values.iter();
        let cells = cells.map(|value| words::known(*value, words::count));
        let cells: Vec<String> = cells.collect();
        page.line(&line(&format!("{indent}{}", row.name), &cells));
    }
    outcome(page, view);
    unknown(page, &view.ledger);
}

/// Which streams have a column beside their direction's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streams {
    /// Those whose books are broken, as many as fit into a line.
    Broken,
    /// Every stream.
    All,
}

/// The book's places and what passed them. `None` where nothing was booked.
pub(crate) fn table(view: &RunView, streams: Streams) -> Option<Table> {
    let columns = columns(view, streams);
    if columns.is_empty() {
        return None;
    }
    let (what, places): (&str, &[Place]) = match view.plan.protocol {
        Protocol::Tcp | Protocol::Sctp => ("Ledger, bytes", &TCP),
        Protocol::Udp => ("Ledger, datagrams", &UDP),
    };
    let sctp = view.plan.protocol == Protocol::Sctp;
    let omitted = words::when(view.plan.omit_ns.0 > 0, ", including the omitted part");
    let row = |place: &Place| -> Option<Row> {
        let values: Vec<Option<u64>> = columns.iter().map(place.of).collect();
        let some = values.iter().any(|value| *value > Some(0));
        // Of SCTP no count of the kernels is read: their places are left out.
        let counted = !sctp || values.iter().any(Option::is_some);
        (counted && (place.always || some)).then_some(Row {
            name: place.name,
            part: place.part,
            values,
        })
    };
    Some(Table {
        head: format!("{what}{omitted}"),
        columns: columns.iter().map(|column| column.head.clone()).collect(),
        rows: places.iter().filter_map(row).collect(),
    })
}

fn line(name: &str, cells: &[String]) -> String {
    let mut line = format!("{name:<NAMES$}");
    for cell in cells {
        let _ = write!(line, "{cell:>COLUMN$}");
    }
    line
}

fn columns(view: &RunView, streams: Streams) -> Vec<Column<'_>> {
    let mut columns: Vec<Column<'_>> = view
        .ledger
        .directions
        .iter()
        .filter(|direction| !direction.streams.is_empty())
        .map(|direction| Column {
            head: way(direction.flow).to_owned(),
            page: Some(direction),
            entry: &direction.total,
        })
        .collect();
    for direction in &view.ledger.directions {
        // The only stream is its direction's total.
        if direction.streams.len() < 2 {
            continue;
        }
        for entry in &direction.streams {
            let is_broken = |check: &Check| !check.holds && check.stream == entry.id;
            let broken = direction.checks.iter().any(is_broken);
            let shown = match streams {
                Streams::Broken => broken && columns.len() < MOST_COLUMNS,
                Streams::All => true,
            };
            if let (true, Some(id)) = (shown, entry.id) {
                columns.push(Column {
                    head: format!("stream {id}"),
                    page: None,
                    entry,
                });
            }
        }
    }
    columns
}

/// `both equations hold`.
pub(super) fn all_hold(equations: usize) -> String {
    match equations {
        1 => "the one equation that could be tested holds".to_owned(),
        2 => "both equations hold".to_owned(),
        more => format!("all {more} equations hold"),
    }
}

/// How the book came out, in a sentence.
pub(crate) fn balance(view: &RunView) -> String {
    let ledger = &view.ledger;
    match ledger.balanced {
        Some(true) => format!("Balanced: {}.", all_hold(ledger.equations)),
        Some(false) => match ledger.equations - ledger.hold {
            1 => format!(
                "NOT balanced: 1 of {} equations does not hold.",
                ledger.equations
            ),
            some => format!(
                "NOT balanced: {some} of {} equations do not hold.",
                ledger.equations
            ),
        },
        None => "Not balanced against anything: no equation could be tested.".to_owned(),
    }
}

fn outcome(page: &mut Page, view: &RunView) {
    let ledger = &view.ledger;
    page.line(&balance(view));
    let broken = ledger.directions.iter().flat_map(|direction| {
        let broken = direction.checks.iter().filter(|check| !check.holds);
        broken.map(move |check| (direction.flow, check))
    });
    for (number, (flow, check)) in broken.enumerate() {
        if number == MOST_BROKEN {
            page.line("  … and more; the JSON document lists all.");
            break;
        }
        let stream = words::with(check.stream, |id| format!(", stream {id}"));
        let trust = check.trust.as_deref().unwrap_or("neither");
        page.wrapped(
            "  ",
            &format!(
                "{}{stream}: {}: {} and {} differ by {}; trust {trust}",
                layout::capital(way(flow)),
                check.equation,
                words::count(check.left),
                words::count(check.right),
                words::count(check.left.abs_diff(check.right)),
            ),
        );
    }
}

/// A line for each reason why something is not known.
pub(crate) fn unknown(page: &mut Page, ledger: &LedgerView) {
    for reason in not_known(ledger) {
        page.entry("Not known", reason);
    }
}

/// Why something in the book is not known, each reason once.
pub(crate) fn not_known(ledger: &LedgerView) -> Vec<&String> {
    let mut said: Vec<&String> = Vec::new();
    let reasons = ledger.directions.iter();
    for reason in reasons.flat_map(|direction| &direction.unknown) {
        if !said.contains(&reason) {
            said.push(reason);
        }
    }
    said
}
