//! Every test of a mesh as CSV (RFC 4180), one a row.
//!
//! Columns: `from`, `to`, `round` (from 1), `outcome` (`measured`, `failed`, `not_run`), `goodput_bps`, `low_bps` and
//! `high_bps` (its 95 % interval), `retransmitted` (share, 0 to 1), `rtt_ns`, `finding` (id), `source_port`, `alone` (1: no
//! other test ran), `why`, `record`. What is not known is empty, never 0. A test whose streams have source ports of
//! their own has a further row for each of them, whose outcome is `port`.

use std::fmt::Write as _;

use linerate_model::csv;
use linerate_model::mesh::{Mesh, MeshFigures, MeshOutcome, MeshTest};

use crate::words;

/// The table.
pub fn table(mesh: &Mesh) -> String {
    let mut text =
        "from,to,round,outcome,goodput_bps,low_bps,high_bps,retransmitted,rtt_ns,finding,\
                    source_port,alone,why,record\r\n"
            .to_owned();
    for test in &mesh.tests {
        row(&mut text, mesh, test);
    }
    text
}

fn row(text: &mut String, mesh: &Mesh, test: &MeshTest) {
    let name = |host: usize| words::with(mesh.hosts.get(host), |host| field(&host.name));
    let ends = format!(
        "{},{},{}",
        name(test.from),
        name(test.to),
        u64::from(test.round) + 1
    );
    let port = words::with(test.source_port, |port| port.to_string());
    let alone = words::when(test.alone, "1");
    let record = words::with(test.record.as_deref(), field);
    let (outcome, figures, why) = match &test.outcome {
        MeshOutcome::Measured(figures) => ("measured", self::figures(figures), String::new()),
        MeshOutcome::Failed { stage, why } => {
            ("failed", NONE.to_owned(), format!("{stage}: {why}"))
        }
        MeshOutcome::NotRun { why } => ("not_run", NONE.to_owned(), why.to_string()),
    };
    let why = field(&why);
    let _ = write!(
        text,
        "{ends},{outcome},{figures},{port},{alone},{why},{record}\r\n"
    );
    if let MeshOutcome::Measured(figures) = &test.outcome {
        for stream in &figures.streams {
            let again = words::with(stream.retransmitted, |again| again.to_string());
            let rate = words::whole(stream.goodput_bps);
            let port = stream.source_port;
            let _ = write!(text, "{ends},port,{rate},,,{again},,,{port},{alone},,\r\n");
        }
    }
}

/// No figures: six empty fields.
const NONE: &str = ",,,,,";

fn figures(figures: &MeshFigures) -> String {
    let rate = |bps: f64| words::whole(bps).to_string();
    let (low, high) = figures.interval_bps.unzip();
    [
        rate(figures.goodput_bps),
        words::with(low, rate),
        words::with(high, rate),
        words::with(figures.retransmitted, |share| share.to_string()),
        words::with(figures.rtt, |rtt| rtt.0.to_string()),
        words::with(figures.finding.as_deref(), |id| field(&words::plain(id))),
    ]
    .join(",")
}

/// A stranger's text as a field: a spreadsheet must not take it for a formula.
fn field(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@']) {
        csv::field(&format!("'{text}"))
    } else {
        csv::field(text)
    }
}
