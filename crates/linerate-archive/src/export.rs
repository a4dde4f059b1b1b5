//! Runs as CSV (RFC 4180), one a row.

use std::io::Write;

use linerate_model::watch::{UnixMillis, WatchFigures, WatchOutcome};

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::row;
use crate::runs::{RunFilter, Stored};

/// The columns, in order. Times are milliseconds since 1970-01-01 UTC, rates bit/s, durations nanoseconds. A cell is empty
/// where its value is not known, and for every figure of a test that did not measure.
pub const CSV_COLUMNS: [&str; 27] = [
    "id",
    "task",
    "from",
    "to",
    "class",
    "due_ms",
    "deadline_ms",
    "started_ms",
    "ended_ms",
    "outcome",
    "stage",
    "reason",
    "why",
    "goodput_bps",
    "goodput_low_bps",
    "goodput_high_bps",
    "whole_bps",
    "ramp_ns",
    "retransmitted_ratio",
    "lost_ratio",
    "rtt_ns",
    "sender_cpu",
    "receiver_cpu",
    "with_traffic",
    "findings",
    "computed_by",
    "record_sha256",
];

impl Archive {
    /// Writes runs as CSV, the oldest first; how many.
    ///
    /// # Errors
    /// The database's; where `out` cannot be written.
    pub fn export_csv(&self, filter: &RunFilter, out: &mut dyn Write) -> Result<u64, ArchiveError> {
        let mut line = |text: &str| {
            out.write_all(text.as_bytes()).map_err(ArchiveError::file(
                "write the export to",
                "the output".as_ref(),
            ))
        };
        line(&(CSV_COLUMNS.join(",") + "\r\n"))?;
        let mut rows = 0;
        self.each_run(filter, true, |stored| {
            rows += 1;
            line(&(cells(&stored).map(|cell| quoted(&cell)).join(",") + "\r\n"))
        })?;
        Ok(rows)
    }
}

/// The cells of a run, as [`CSV_COLUMNS`] names them.
fn cells(stored: &Stored) -> [String; 27] {
    let run = &stored.run;
    let figures = match &run.outcome {
        WatchOutcome::Measured(figures) => Some(figures),
        _ => None,
    };
    let (stage, reason, why) = match &run.outcome {
        WatchOutcome::Measured(_) => ("", "", ""),
        WatchOutcome::Failed { stage, why } => (&**stage, "", &**why),
        WatchOutcome::NotRun { reason, why, .. } => ("", reason.word(), &**why),
        WatchOutcome::Invalid { why } => ("", "", &**why),
    };
    let real = |value: fn(&WatchFigures) -> Option<f64>| shown(figures.and_then(value));
    [
        run.id.to_string(),
        run.task.to_string(),
        run.from.to_string(),
        run.to.to_string(),
        row::class_word(run.class).to_owned(),
        run.due.0.to_string(),
        run.deadline.0.to_string(),
        shown(run.started.map(|UnixMillis(at)| at)),
        run.ended.0.to_string(),
        row::word(&run.outcome).to_owned(),
        stage.to_owned(),
        reason.to_owned(),
        why.to_owned(),
        real(|figures| Some(figures.goodput_bps)),
        real(|figures| figures.interval_bps.map(|(low, _)| low)),
        real(|figures| figures.interval_bps.map(|(_, high)| high)),
        real(|figures| figures.whole_bps),
        shown(figures.and_then(|figures| Some(figures.ramp?.0))),
        real(|figures| figures.retransmitted),
        real(|figures| figures.lost),
        shown(figures.and_then(|figures| Some(figures.rtt?.0))),
        real(|figures| figures.sender_cpu),
        real(|figures| figures.receiver_cpu),
        shown(figures.map(|figures| figures.with_traffic)),
        figures.map_or_else(String::new, |figures| figures.findings.join(" ")),
        shown(figures.map(|_| stored.computed_by)),
        shown(stored.record),
    ]
}

fn shown(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A field, in quotation marks where it needs them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
