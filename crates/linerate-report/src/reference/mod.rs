//! The references of the record and of the report's JSON, docs/reference/{record,report}.md, made from tables.

mod end;
mod head;
mod report;

use linerate_model::record::SCHEMA_VERSION;
use linerate_model::tcp_info::FIELDS;

pub use report::report;

/// A field of the record.
pub(crate) struct Row {
    /// Its path; `[]` stands for every element, `*` for every name.
    pub(crate) path: &'static str,
    /// Its unit, `-` where it has none.
    pub(crate) unit: &'static str,
    /// Where it is measured.
    pub(crate) place: &'static str,
    /// What it is.
    pub(crate) meaning: &'static str,
}

const fn row(
    path: &'static str,
    unit: &'static str,
    place: &'static str,
    meaning: &'static str,
) -> Row {
    Row {
        path,
        unit,
        place,
        meaning,
    }
}

/// A series, wherever one stands.
const SERIES: [Row; 5] = [
    row("rows", "rows", "-", "Number of rows."),
    row(
        "at_ns.first",
        "ns",
        "this end's monotonic clock",
        "When the first row was taken.",
    ),
    row(
        "at_ns.steps",
        "ns",
        "this end's monotonic clock",
        "Differences from row to row; `[d, n]` stands for `n` equal differences `d`.",
    ),
    row(
        "columns.*.first",
        "by the column's name",
        "by the column's name",
        "The column's first value.",
    ),
    row(
        "columns.*.steps",
        "by the column's name",
        "by the column's name",
        "Differences from row to row modulo 2^64, in the same notation; absent where there is one row.",
    ),
];

/// The whole reference as Markdown.
pub fn record() -> String {
    let mut text = format!(
        "# The record\n\n\
         What `linerate test -o run.json` writes, schema version {SCHEMA_VERSION}. This file is made by `linerate_report::reference` and checked against\n\
         a record that has every field. A reader ignores fields it does not know and refuses a newer `schema_version`.\n\
         What is not known is absent; it is never 0. Derived figures (goodput, ledger, findings) are not in a record: they are\n\
         computed from it each time it is shown.\n\n\
         Every `_ns` instant stands on the monotonic clock of the end that took it; `clock` relates the two clocks. Sizes are bytes,\n\
         rates bit/s, unless a name says otherwise. *Own end* is the end that wrote the record.\n\n\
         ## The run\n\n"
    );
    table(&mut text, head::ROWS.iter());
    text.push_str(
        "\n## An end\n\nBelow `client` and below `server`, each with the same fields. An end is absent where it was a stock iperf3.\n\n",
    );
    table(&mut text, end::ROWS.iter());
    text.push_str(
        "\n## The kernel's account of a stream\n\nBelow `client.streams[].tcp` and `server.streams[].tcp`, read from `tcp_info` of this end's kernel when the stream ended. \
         The same names are columns of\n`streams[].samples`, beside `app_bytes` (payload written or read by the application, bytes) and, at the receiver, \
         `unread_bytes` (bytes in the receive queue).\n\n| field | unit | Linux | meaning |\n|---|---|---|---|\n",
    );
    for field in FIELDS {
        line(
            &mut text,
            &[
                &format!("`{}`", field.name),
                unit_of(field.name),
                field.since,
                field.meaning,
            ],
        );
    }
    text.push_str(
        "\n## A series\n\nBelow `samples` and `counters`: a table written as columns of differences, so that a minute of eight streams at 10 ms stays below\n10 MB.\n\n",
    );
    table(&mut text, SERIES.iter());
    text
}

/// Every path that is documented, from the root of the record.
#[cfg(test)]
fn documented() -> Vec<String> {
    let mut paths: Vec<String> = head::ROWS.iter().map(|row| row.path.to_owned()).collect();
    for role in ["client", "server"] {
        for row in end::ROWS {
            match row.path {
                "streams[].samples" | "counters" => {
                    paths.extend(
                        SERIES
                            .iter()
                            .map(|series| format!("{role}.{}.{}", row.path, series.path)),
                    );
                }
                "streams[].tcp" => paths.extend(
                    FIELDS
                        .iter()
                        .map(|field| format!("{role}.streams[].tcp.{}", field.name)),
                ),
                path => paths.push(format!("{role}.{path}")),
            }
        }
    }
    paths
}

fn table<'a>(text: &mut String, rows: impl Iterator<Item = &'a Row>) {
    text.push_str("| field | unit | measured at | meaning |\n|---|---|---|---|\n");
    for row in rows {
        line(
            text,
            &[&format!("`{}`", row.path), row.unit, row.place, row.meaning],
        );
    }
}

fn line(text: &mut String, cells: &[&str]) {
    for cell in cells {
        text.push_str("| ");
        text.push_str(cell);
        text.push(' ');
    }
    text.push_str("|\n");
}

/// A kernel field's unit, by its name.
fn unit_of(name: &str) -> &'static str {
    let units = [
        ("_bytes_per_s", "bytes/s"),
        ("_us", "µs"),
        ("_ms", "ms"),
        ("_bytes", "bytes"),
        ("_packets", "segments"),
    ];
    if let Some((_, unit)) = units.iter().find(|(suffix, _)| name.ends_with(suffix)) {
        return unit;
    }
    match name {
        _ if name.starts_with("bytes_") => "bytes",
        _ if name.contains("segs_") => "segments",
        "reord_seen"
        | "rehash"
        | "total_rto"
        | "total_rto_recoveries"
        | "retransmits"
        | "probes" => "count",
        _ => "-",
    }
}

#[cfg(test)]
mod tests;
