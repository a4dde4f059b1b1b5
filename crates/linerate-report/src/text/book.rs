//! The ledger: places as rows, directions (and streams whose books are broken) as columns.

use std::fmt::Write as _;

use linerate_analysis::ledger::{DatagramEntry, DirectionLedger, Entry};
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
struct Place {
    name: &'static str,
    of: fn(&Column<'_>) -> Option<u64>,
    /// Whether a row of zeros is worth its line.
    always: bool,
}

const TCP: [Place; 13] = [
    Place {
        name: "sending application wrote",
        of: |column| column.entry.written,
        always: true,
    },
    Place {
        name: "  the stream's cookie",
        of: |column| Some(column.entry.cookie),
        always: false,
    },
    Place {
        name: "sending kernel sent",
        of: |column| column.entry.bytes_sent,
        always: true,
    },
    Place {
        name: "  of it retransmitted",
        of: |column| column.entry.bytes_retrans,
        always: true,
    },
    Place {
        name: "  of it refused by its own host",
        of: |column| column.entry.refused,
        always: false,
    },
    Place {
        name: "  not yet sent",
        of: |column| column.entry.notsent,
        always: false,
    },
    Place {
        name: "  acknowledged, with SYN and FIN",
        of: |column| column.entry.bytes_acked,
        always: true,
    },
    Place {
        name: "interface out, with headers",
        of: |column| column.page?.interface_out_bytes,
        always: true,
    },
    Place {
        name: "in flight when the test was cut off",
        of: |column| column.entry.in_flight,
        always: false,
    },
    Place {
        name: "interface in, with headers",
        of: |column| column.page?.interface_in_bytes,
        always: true,
    },
    Place {
        name: "receiving kernel received, with FIN",
        of: |column| column.entry.bytes_received,
        always: true,
    },
    Place {
        name: "  unread at the end",
        of: |column| column.entry.unread,
        always: false,
    },
    Place {
        name: "receiving application read",
        of: |column| column.entry.read,
        always: true,
    },
];

const UDP: [Place; 10] = [
    Place {
        name: "sent",
        of: |column| datagrams(column)?.sent,
        always: true,
    },
    Place {
        name: "  lost on the path",
        of: |column| datagrams(column)?.path_lost,
        always: true,
    },
    Place {
        name: "  dropped in the receiver's socket",
        of: |column| datagrams(column)?.socket_dropped,
        always: true,
    },
    Place {
        name: "  lost, place not known",
        of: unplaced,
        always: false,
    },
    Place {
        name: "  too late to tell from duplicates",
        of: |column| datagrams(column)?.too_old,
        always: false,
    },
    Place {
        name: "delivered, each counted once",
        of: |column| datagrams(column)?.delivered,
        always: true,
    },
    Place {
        name: "  duplicated",
        of: |column| datagrams(column)?.duplicated,
        always: true,
    },
    Place {
        name: "  reordered",
        of: |column| datagrams(column)?.reordered,
        always: true,
    },
    Place {
        name: "sending application wrote, bytes",
        of: |column| column.entry.written,
        always: true,
    },
    Place {
        name: "receiving application read, bytes",
        of: |column| column.entry.read,
        always: true,
    },
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
    /// Places, those within another one indented, with what passed them in each column.
    pub(crate) rows: Vec<(&'static str, Vec<Option<u64>>)>,
}

pub(super) fn write(page: &mut Page, view: &RunView) {
    let Some(table) = table(view, Streams::Broken) else {
        return;
    };
    page.line(&row(&table.head, &table.columns));
    for (name, values) in &table.rows {
        let cells: Vec<String> = values
            .iter()
            .map(|value| words::known(*value, words::count))
            .collect();
        page.line(&row(&format!("  {name}"), &cells));
    }
    outcome(page, view);
    unknown(page, &view.ledger);
}

/// Which streams have a column beside their direction's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streams {
    /// Those whose books are broken, as many as fit into a line.
    Broken,
    /// All.
    All,
}

/// The book's places and what passed them. `None` where nothing was booked.
pub(crate) fn table(view: &RunView, streams: Streams) -> Option<Table> {
    let columns = columns(view, streams);
    if columns.is_empty() {
        return None;
    }
    let (what, places): (&str, &[Place]) = match view.plan.protocol {
        Protocol::Tcp => ("Ledger, bytes", &TCP),
        Protocol::Udp => ("Ledger, datagrams", &UDP),
    };
    let omitted = if view.plan.omit_ns.0 > 0 {
        ", omitted part too"
    } else {
        ""
    };
    let row = |place: &Place| -> Option<(&'static str, Vec<Option<u64>>)> {
        let values: Vec<Option<u64>> = columns.iter().map(place.of).collect();
        let some = values
            .iter()
            .any(|value| value.is_some_and(|value| value > 0));
        (place.always || some).then_some((place.name, values))
    };
    Some(Table {
        head: format!("{what}{omitted}"),
        columns: columns.iter().map(|column| column.head.clone()).collect(),
        rows: places.iter().filter_map(row).collect(),
    })
}

fn row(name: &str, cells: &[String]) -> String {
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
            let broken = direction
                .checks
                .iter()
                .any(|check| !check.holds && check.stream == entry.id);
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

/// How the book came out, in a sentence.
pub(crate) fn balance(view: &RunView) -> String {
    let ledger = &view.ledger;
    match ledger.balanced {
        Some(true) if ledger.equations == 1 => {
            "Balanced: the one equation that could be tested holds.".to_owned()
        }
        Some(true) => format!(
            "Balanced: all {} equations between these places hold.",
            ledger.equations
        ),
        Some(false) => format!(
            "NOT balanced: {} of {} equations hold.",
            ledger.hold, ledger.equations
        ),
        None => "Not balanced against anything: no equation could be tested.".to_owned(),
    }
}

fn outcome(page: &mut Page, view: &RunView) {
    let ledger = &view.ledger;
    page.line(&balance(view));
    let broken = ledger.directions.iter().flat_map(|direction| {
        direction
            .checks
            .iter()
            .filter(|check| !check.holds)
            .map(move |check| (direction.flow, check))
    });
    for (number, (flow, check)) in broken.enumerate() {
        if number == MOST_BROKEN {
            page.line("  … and more; the JSON document lists all.");
            break;
        }
        let stream = check
            .stream
            .map_or_else(String::new, |id| format!(", stream {id}"));
        let trust = check.trust.as_deref().unwrap_or("neither");
        page.wrapped(
            "  ",
            &format!(
                "{}{stream}: {}: {} against {}, {} apart; trust {trust}",
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
    for reason in ledger
        .directions
        .iter()
        .flat_map(|direction| &direction.unknown)
    {
        if !said.contains(&reason) {
            said.push(reason);
        }
    }
    said
}
