//! What `linerate archive` prints.

use std::fmt::Write as _;
use std::path::Path;

use linerate_archive::{Backup, Forecast, Recomputed, Retention, Verification};
use linerate_model::units::Bytes;
use linerate_model::watch::UnixMillis;

use super::DAY;

/// So many lines of one kind of damage are printed; `--json` has all.
const SHOWN: usize = 20;

pub(super) fn verification(found: &Verification) -> String {
    let mut text = format!(
        "Tests    {}, {} with a record\n",
        found.tests, found.records
    );
    let database = if found.database.is_empty() {
        "ok"
    } else {
        "damaged"
    };
    let _ = writeln!(text, "Database {database}");
    list(&mut text, found.database.iter().cloned());
    let broken = found.missing.len() + found.damaged.len();
    let records = match broken {
        0 => "ok".to_owned(),
        _ => format!(
            "{} missing, {} damaged",
            found.missing.len(),
            found.damaged.len()
        ),
    };
    let _ = writeln!(text, "Records  {records}");
    let missing = found.missing.iter().map(|id| format!("{id}: no file"));
    list(&mut text, missing);
    let damaged = found.damaged.iter().map(|(id, why)| format!("{id}: {why}"));
    list(&mut text, damaged);
    for (count, what) in [
        (found.gone, "records removed by the rules of retention"),
        (
            found.removed_from_full_disk,
            "records removed because the disk was full",
        ),
        (
            found.late_results,
            "results that came late and replaced a test that had failed or not run",
        ),
    ] {
        if count > 0 {
            let _ = writeln!(text, "         {count} {what}");
        }
    }
    if found.orphans > 0 {
        let (files, bytes) = (found.orphans, Bytes(found.orphan_bytes));
        let _ = writeln!(
            text,
            "         {files} files ({bytes}) that belong to no test; the hub removes them after a day"
        );
    }
    text
}

fn list(text: &mut String, lines: impl Iterator<Item = String>) {
    let mut more = 0;
    for (at, line) in lines.enumerate() {
        if at < SHOWN {
            let _ = writeln!(text, "         {line}");
        } else {
            more += 1;
        }
    }
    if more > 0 {
        let _ = writeln!(text, "         and {more} more; --json lists all");
    }
}

pub(super) fn forecast(forecast: &Forecast, now: UnixMillis, rules: &Retention) -> String {
    let mut text = format!(
        "Now    {} tests: database {}, records {}; {} free\n",
        forecast.tests,
        Bytes(forecast.database_bytes),
        Bytes(forecast.record_bytes),
        Bytes(forecast.free_bytes),
    );
    let Some(days) = forecast.over_days else {
        text += "Growth not known: the archive spans less than an hour\n";
        return text;
    };
    let _ = writeln!(
        text,
        "Growth {:.0} tests a day (mean of the last {days:.1} days): database {}, records {}, of which {} stay for ever",
        forecast.tests_a_day,
        bytes(forecast.database_a_day),
        bytes(forecast.records_a_day),
        bytes(forecast.kept_a_day),
    );
    let kept = rules.raw_millis / DAY;
    let _ = match forecast.full_at {
        Some(at) => writeln!(
            text,
            "Full   in {} days, with other records kept for {kept} days",
            at.since(now) / DAY
        ),
        None => writeln!(
            text,
            "Full   not within 20 years, with other records kept for {kept} days"
        ),
    };
    text
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "amounts of a day are far below 2^64; the cast saturates"
)]
fn bytes(amount: f64) -> Bytes {
    Bytes(amount.max(0.0) as u64)
}

pub(super) fn recomputed(done: &Recomputed, version: u32) -> String {
    let mut text = format!(
        "{} tests computed again by version {version} of the figures, {} changed; {} were of that version already\n",
        done.computed, done.changed, done.current
    );
    if done.without_record > 0 {
        let _ = writeln!(
            text,
            "{} have no record any more and keep their figures",
            done.without_record
        );
    }
    if !done.failed.is_empty() {
        let _ = writeln!(text, "{} could not be computed:", done.failed.len());
        let failed = done.failed.iter().map(|(id, why)| format!("{id}: {why}"));
        list(&mut text, failed);
    }
    text
}

pub(super) fn backup(made: &Backup, to: &Path) -> String {
    let mut text = format!(
        "{} tests copied to {}; records: {} hard links, {} copies\n",
        made.tests,
        to.display(),
        made.linked,
        made.copied
    );
    if made.gone > 0 {
        let _ = writeln!(
            text,
            "{} records were removed meanwhile and are not in the copy",
            made.gone
        );
    }
    text
}
