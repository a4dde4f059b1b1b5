//! A matrix of power cuts for people, and each as a line of JSON, which `linerate explain` reads.

use std::fmt::Write as _;

use linerate_model::storage::CrashRun;
use serde_json::{Map, Value};

use crate::text::layout::Page;
use crate::words::{self, plain};

/// One power cut as a JSON object without a line end: `{"fs": "ext4", "opts": "", "cut": "nolog", …, "new": "EMPTY"}`.
pub fn line(run: &CrashRun) -> String {
    let mut object = Map::new();
    let mut text = |key: &str, value: &str| {
        object.insert(key.to_owned(), Value::from(value));
    };
    text("fs", &run.file_system);
    text("opts", &run.options);
    text("cut", &run.cut);
    text("before", &run.before);
    if let Some(kernel) = &run.kernel {
        text("kernel", kernel);
    }
    if let Some(error) = &run.error {
        text("error", error);
    }
    for (name, result) in &run.results {
        text(name, result);
    }
    if let Some(took) = run.took_ns {
        object.insert("s".to_owned(), took.as_secs_f64().into());
    }
    Value::Object(object).to_string()
}

/// The matrix: a row for each way to write, a column for each file system with its options.
pub fn matrix(runs: &[CrashRun]) -> String {
    let mut page = Page::default();
    let kernel = runs.iter().find_map(|run| run.kernel.as_ref());
    let kernel = words::with(kernel, |kernel| format!(" of Linux {}", plain(kernel)));
    let done: Vec<&CrashRun> = runs.iter().filter(|run| run.error.is_none()).collect();
    page.entry(
        "Power cuts",
        &format!("{} of file systems on an image{kernel}", done.len()),
    );
    let mut columns: Vec<(&str, &str)> = Vec::new();
    for run in &done {
        let column = (run.file_system.as_str(), run.options.as_str());
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    if !columns.is_empty() {
        page.gap();
        table(&mut page, &columns, &done);
        page.gap();
        page.wrapped(
            "",
            "A cell is what a file had after the power cut, where another file was synced before. Behind a stroke: what it had \
             where power was cut as soon as the journal was written. That races with data on their way: a|b is now the one and \
             now the other. EMPTY and NUL are losses; create-only was never written to.",
        );
        waits(&mut page, &columns, &done);
    }
    let mut failed: Vec<String> = Vec::new();
    for run in runs {
        let Some(error) = &run.error else { continue };
        let text = format!("{}: {}", of(&run.file_system, &run.options), plain(error));
        if !failed.contains(&text) {
            failed.push(text);
        }
    }
    for text in failed {
        page.entry("Not cut", &text);
    }
    page.finish()
}

/// `ext4 data=journal`.
fn of(file_system: &str, options: &str) -> String {
    plain(format!("{file_system} {options}").trim_end())
}

fn table(page: &mut Page, columns: &[(&str, &str)], runs: &[&CrashRun]) {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in runs.iter().flat_map(|run| &run.results) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    // Ways with fsync come last: they are what protects.
    names.sort_by_key(|name| name.ends_with("-fsync"));
    let heads: Vec<String> = columns
        .iter()
        .map(|(file_system, options)| match *options {
            "" => plain(file_system),
            options => plain(options),
        })
        .collect();
    let rows: Vec<Vec<String>> = names
        .iter()
        .map(|name| {
            columns
                .iter()
                .map(|column| cell(name, *column, runs))
                .collect()
        })
        .collect();
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.chain([heads[at].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let first = names.iter().map(|name| name.len()).max().unwrap_or(0);
    let row = |head: &str, cells: &[String]| {
        let mut text = format!("{head:<first$}");
        for (cell, width) in cells.iter().zip(&widths) {
            // Writing to a String cannot fail.
            let _ = write!(text, "  {cell:<width$}");
        }
        text
    };
    page.line(&row("", &heads));
    for (name, cells) in names.iter().zip(&rows) {
        page.line(&row(name, cells));
    }
}

fn cell(name: &str, column: (&str, &str), runs: &[&CrashRun]) -> String {
    let find = |is_wanted: &dyn Fn(&CrashRun) -> bool| {
        let mut found: Vec<String> = Vec::new();
        let runs = runs.iter().filter(|run| {
            (run.file_system.as_str(), run.options.as_str()) == column && is_wanted(run)
        });
        for result in runs.filter_map(|run| run.result(name)) {
            // All files have one size.
            let result = plain(result.split('×').next().unwrap_or(result));
            if !found.contains(&result) {
                found.push(result);
            }
        }
        found.join("|")
    };
    let usual = find(&|run| run.before == "other-fsync" && run.cut != "log");
    let at_once = find(&|run| run.before == "none" && run.cut == "log");
    match (usual.is_empty(), at_once.is_empty()) {
        (true, true) => "-".to_owned(),
        (true, false) => at_once,
        (false, false) if usual != at_once => format!("{usual}/{at_once}"),
        _ => usual,
    }
}

/// What power cuts after a time left.
fn waits(page: &mut Page, columns: &[(&str, &str)], runs: &[&CrashRun]) {
    for (file_system, options) in columns {
        let mut late: Vec<(f64, &CrashRun)> = runs
            .iter()
            .filter(|run| {
                (run.file_system.as_str(), run.options.as_str()) == (file_system, options)
            })
            .filter_map(|run| Some((run.seconds()?, *run)))
            .collect();
        if late.is_empty() {
            continue;
        }
        late.sort_by(|a, b| a.0.total_cmp(&b.0));
        let each: Vec<String> = late
            .iter()
            .map(|(seconds, run)| format!("{seconds:.0} s {}", after(run)))
            .collect();
        page.gap();
        page.entry(
            &of(file_system, options),
            &format!("without any fsync, after {}", each.join(", after ")),
        );
    }
}

fn after(run: &CrashRun) -> String {
    let written = run.results.iter().filter(|(name, _)| name != "create-only");
    let results: Vec<&str> = written.map(|(_, result)| result.as_str()).collect();
    let all = results.len();
    let count = |is: fn(&str) -> bool| results.iter().filter(|result| is(result)).count();
    let lost = count(|result| result == "EMPTY" || result.starts_with("NUL"));
    let new = count(|result| result == "new" || result == "old+new");
    match (lost, new) {
        (0, new) if new == all => "all are new".to_owned(),
        (0, 0) => "all are old or absent".to_owned(),
        (0, new) => format!("{new} of {all} are new, the others old or absent"),
        (lost, _) => format!("{lost} of {all} are empty or NUL"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(options: &str, cut: &str, before: &str, results: &[(&str, &str)]) -> CrashRun {
        CrashRun {
            file_system: "ext4".into(),
            options: options.into(),
            cut: cut.into(),
            before: before.into(),
            results: results
                .iter()
                .map(|(name, result)| ((*name).into(), (*result).into()))
                .collect(),
            ..CrashRun::default()
        }
    }

    #[test]
    fn a_cell_has_both_kinds_of_cuts_where_they_differ() {
        let mut failed = run("", "nolog", "none", &[]);
        failed.file_system = "xfs".into();
        failed.error = Some("it is not installed".into());
        let runs = [
            run("", "nolog", "none", &[("new", "absent")]),
            run(
                "",
                "nolog",
                "other-fsync",
                &[("new", "EMPTY"), ("new-fsync", "new")],
            ),
            run("", "log", "none", &[("new", "NUL×65536")]),
            run("", "nolog", "6s", &[("new", "EMPTY"), ("append", "old")]),
            run("", "nolog", "41s", &[("new", "new"), ("append", "old+new")]),
            failed,
        ];
        let text = matrix(&runs);
        assert!(text.contains("\nnew        EMPTY/NUL\n"), "{text}");
        assert!(text.contains("\nnew-fsync  new\n"), "{text}");
        let waits = "after 6 s 1 of 2 are empty or NUL, after 41 s all are new";
        assert!(text.contains(waits), "{text}");
        assert!(
            text.contains("Not cut     xfs: it is not installed"),
            "{text}"
        );
    }

    #[test]
    fn a_line_names_what_was_done() {
        let text = line(&run("", "log", "none", &[("new", "EMPTY")]));
        assert_eq!(
            text,
            r#"{"fs":"ext4","opts":"","cut":"log","before":"none","new":"EMPTY"}"#
        );
    }
}
