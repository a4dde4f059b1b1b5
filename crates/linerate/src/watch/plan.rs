//! `linerate watch plan`: what a plan costs, as a table or as JSON.

use std::fmt::Write as _;

use linerate_model::units::{grouped, percent, three_digits, whole};
use linerate_model::watch::UnixMillis;
use linerate_watch::plan::cost::{Cost, Load, RAW_DAYS, amount, cost};
use linerate_watch::simulation::{Conditions, Figures, simulate};
use linerate_watch::watched::Watched;
use serde_json::{Map, Value, json};

use super::{PlanArguments, file};
use crate::action::Failure;
use crate::printer::Printer;

/// Tasks that the table has; JSON has all.
const TASKS: usize = 60;
/// Hosts and segments that the table has, the busiest first.
const BUSIEST: usize = 8;
const YEAR_DAYS: f64 = 365.0;
const DAY_MILLIS: u64 = 86_400_000;

pub(super) fn run(given: &PlanArguments, printer: &mut Printer) -> Result<(), Failure> {
    let watched = file::read(&given.file, &given.groups)?;
    let cost = cost(&watched);
    let figures = given.simulate.map(|days| (days, simulated(&watched, days)));
    if given.json {
        let mut document = document(&watched, &cost);
        if let Some((days, figures)) = &figures {
            document["simulated"] = simulation(*days, figures);
        }
        printer.json(&format!("{document:#}"))?;
    } else {
        let mut table = table(&watched, &cost);
        if let Some((days, figures)) = &figures {
            course(&mut table, *days, figures);
        }
        printer.print(&table)?;
    }
    match cost.refused.len() {
        0 => Ok(()),
        _ => Err(Failure::Missed(format!(
            "{} cannot be carried out: {}",
            given.file.display(),
            cost.refused
                .first()
                .map(ToString::to_string)
                .unwrap_or_default()
        ))),
    }
}

/// What becomes of the tests of some days where nothing fails. The days are the first ones of 1970: their moments are as
/// random as those of any others.
fn simulated(watched: &Watched, days: u64) -> Figures {
    let until = UnixMillis(days * DAY_MILLIS);
    simulate(watched, &Conditions::default(), UnixMillis(0), until).figures
}

fn simulation(days: u64, figures: &Figures) -> Value {
    let not_run = figures.not_run.iter();
    let not_run: Map<String, Value> = not_run
        .map(|(reason, tests)| (reason.word().to_owned(), json!(tests)))
        .collect();
    json!({
        "days": days,
        "due": figures.due,
        "measured": figures.measured,
        "not_run": not_run,
        "wait_p50_s": number(seconds(figures.wait_p50_millis)),
        "wait_p99_s": number(seconds(figures.wait_p99_millis)),
        "busiest": figures.busiest.as_ref().map(|(name, share)| json!({"name": name, "busy": share})),
        "overlaps": figures.overlaps,
    })
}

/// What a simulation came to, as lines of the table.
fn course(out: &mut String, days: u64, figures: &Figures) {
    let many = |tests: usize| grouped(tests as u64);
    let reasons = figures.not_run.iter();
    let reasons: Vec<String> = reasons
        .map(|(reason, tests)| format!("{} {}", many(*tests), reason.word()))
        .collect();
    let not_run: usize = figures.not_run.values().sum();
    let _ = write!(
        out,
        "\nsimulated {}: {} tests due, {} measured, {} not run ({})",
        span(days as f64 * 86_400.0),
        many(figures.due),
        many(figures.measured),
        many(not_run),
        percent(figures.not_run_share())
    );
    if reasons.is_empty() {
        out.push('\n');
    } else {
        let _ = writeln!(out, ": {}", reasons.join(", "));
    }
    let _ = writeln!(
        out,
        "          wait: median {}, 99th percentile {}; {} used the same host or segment at once",
        span(seconds(figures.wait_p50_millis)),
        span(seconds(figures.wait_p99_millis)),
        match figures.overlaps {
            0 => "no two tests".to_owned(),
            some => format!("{} pairs of tests", many(some)),
        }
    );
}

fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

/// The busiest host or segment, and what it is.
fn busiest(cost: &Cost) -> Vec<(String, &Load)> {
    let hosts = cost.hosts.iter().map(|load| ("host", load));
    let segments = cost.segments.iter().map(|load| ("segment", load));
    let mut all: Vec<_> = hosts
        .chain(segments)
        .map(|(kind, load)| (format!("{kind} {}", load.name), load))
        .collect();
    all.sort_by(|(_, a), (_, b)| b.busy.total_cmp(&a.busy));
    all
}

/// Bytes on the disk after a year: with raw records of 60 days, and with all.
fn year(cost: &Cost) -> (f64, f64) {
    let rows = cost.rows_a_day * YEAR_DAYS;
    (
        rows + cost.raw_a_day * RAW_DAYS,
        rows + cost.raw_a_day * YEAR_DAYS,
    )
}

/// A number of JSON: whole where it is.
fn number(value: f64) -> Value {
    let rounded = (value * 100.0).round() / 100.0;
    if rounded.fract() == 0.0 && rounded < 9e15 {
        json!(whole(rounded))
    } else {
        json!(rounded)
    }
}

fn document(watched: &Watched, cost: &Cost) -> Value {
    let load = |load: &Load| {
        json!({
            "name": load.name,
            "busy": load.busy,
            "tests_per_day": number(load.tests_a_day),
            "bytes_per_day": whole(load.bytes_a_day),
        })
    };
    let tasks = cost.tasks.iter().map(|task| {
        json!({
            "name": task.name,
            "pairs": task.pairs,
            "tests_per_day": number(task.tests_a_day),
            "every_s": number(task.period_seconds),
            "booked_s": number(task.booked_seconds),
        })
    });
    let busiest = busiest(cost);
    let bound = busiest.first().map(|(resource, load)| {
        json!({
            "resource": resource,
            "share": load.busy,
            "cycle_s": number(cost.cycle_seconds),
            "busy_s": number(load.busy * cost.cycle_seconds),
        })
    });
    let (kept, all) = year(cost);
    let unreachable = cost.unreachable.iter().map(|one| {
        json!({
            "task": one.task,
            "pairs": one.pairs,
            "from": one.first.0,
            "to": one.first.1,
            "why": one.why,
        })
    });
    json!({
        "pairs": cost.pairs,
        "tests_per_day": number(cost.tests_a_day),
        "tasks": tasks.collect::<Vec<_>>(),
        "hosts": cost.hosts.iter().map(load).collect::<Vec<_>>(),
        "segments": cost.segments.iter().map(load).collect::<Vec<_>>(),
        "bytes_per_day": whole(cost.bytes_a_day),
        "tests_per_day_at_assumed_rate": number(cost.assumed_a_day),
        "disk": {
            "records_per_day": whole(cost.raw_a_day),
            "rows_per_day": whole(cost.rows_a_day),
            "year": whole(kept),
            "year_with_all_records": whole(all),
        },
        "bound": bound,
        "ignored": watched.ignored,
        "cannot_run": unreachable.collect::<Vec<_>>(),
        "cannot_fit": cost.refused.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn table(watched: &Watched, cost: &Cost) -> String {
    let tests = cost.tests_a_day;
    let mut out = format!(
        "{} in {}, {} tests a day\n",
        counted(cost.pairs, "pair"),
        counted(cost.tasks.len(), "task"),
        count(tests)
    );
    tasks(&mut out, cost);
    busy(&mut out, cost);
    let _ = writeln!(out, "\nload     {} a day", amount(cost.bytes_a_day));
    if cost.assumed_a_day > 0.0 {
        let _ = writeln!(
            out,
            "         {} tests a day have no known rate: 10 Gbit/s was assumed; give `link` or -b",
            count(cost.assumed_a_day)
        );
    }
    let (kept, all) = year(cost);
    let _ = writeln!(
        out,
        "disk     {} of records and {} of rows a day; after a year {} with the records of {RAW_DAYS:.0} days, {} with all",
        amount(cost.raw_a_day),
        amount(cost.rows_a_day),
        amount(kept),
        amount(all)
    );
    if let Some((resource, load)) = busiest(cost).first() {
        let _ = writeln!(
            out,
            "bound    {resource} needs {} of every {}",
            span(load.busy * cost.cycle_seconds),
            span(cost.cycle_seconds)
        );
    }
    list(&mut out, "Not read:", &watched.ignored);
    let unreachable = cost.unreachable.iter().map(|one| {
        let (from, to) = &one.first;
        format!(
            "{} pairs of task {}, such as {from} > {to}: {}",
            grouped(one.pairs as u64),
            one.task,
            one.why
        )
    });
    list(&mut out, "Cannot run:", &unreachable.collect::<Vec<_>>());
    list(&mut out, "Cannot fit:", &cost.refused);
    out
}

fn tasks(out: &mut String, cost: &Cost) {
    let shown = &cost.tasks[..cost.tasks.len().min(TASKS)];
    let names = shown.iter().map(|task| task.name.chars().count());
    let width = names.max().unwrap_or(0).clamp(4, 80);
    let _ = writeln!(
        out,
        "\n{:width$}  {:>8}  {:>8}  {:>11}  {:>8}",
        "task", "pairs", "every", "tests a day", "a test"
    );
    for task in shown {
        let _ = writeln!(
            out,
            "{:width$}  {:>8}  {:>8}  {:>11}  {:>8}",
            task.name.as_str(),
            grouped(task.pairs as u64),
            span(task.period_seconds),
            count(task.tests_a_day),
            span(task.booked_seconds)
        );
    }
    if cost.tasks.len() > TASKS {
        let _ = writeln!(out, "… {} more: --json has all", cost.tasks.len() - TASKS);
    }
}

fn busy(out: &mut String, cost: &Cost) {
    let all = busiest(cost);
    let shown = &all[..all.len().min(BUSIEST)];
    let names = shown.iter().map(|(name, _)| name.chars().count());
    let width = names.max().unwrap_or(0).clamp(7, 60);
    let _ = writeln!(
        out,
        "\n{:width$}  {:>8}  {:>11}  {:>11}",
        "busiest", "busy", "tests a day", "bytes a day"
    );
    for (name, load) in shown {
        let _ = writeln!(
            out,
            "{name:width$}  {:>8}  {:>11}  {:>11}",
            percent(load.busy),
            count(load.tests_a_day),
            amount(load.bytes_a_day)
        );
    }
}

fn list<T: std::fmt::Display>(out: &mut String, head: &str, lines: &[T]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{head}");
    for line in lines {
        let _ = writeln!(out, "  {line}");
    }
}

/// `1 task`, `5,040 pairs`.
fn counted(many: usize, noun: &str) -> String {
    let plural = if many == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(many as u64))
}

/// A number of tests.
fn count(tests: f64) -> String {
    if tests >= 9.95 || tests.fract() == 0.0 {
        grouped(whole(tests))
    } else {
        three_digits(tests)
    }
}

/// Seconds in the largest unit that leaves at least two of it, or one whole.
fn span(seconds: f64) -> String {
    let units = [(86_400.0, "d"), (3600.0, "h"), (60.0, "min")];
    let fits = |(each, _): &&(f64, &str)| {
        let many = seconds / each;
        many >= 2.0 || (many >= 1.0 && many.fract() == 0.0)
    };
    let (each, unit) = units.iter().find(fits).unwrap_or(&(1.0, "s"));
    let many = seconds / each;
    if (many - many.round()).abs() < 1e-9 {
        format!("{many:.0} {unit}")
    } else {
        format!("{many:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_in_a_unit_that_people_read() {
        for (seconds, text) in [
            (16.5, "16.5 s"),
            (90.0, "90 s"),
            (3600.0, "1 h"),
            (5400.0, "90 min"),
            (21_600.0, "6 h"),
            (86_400.0, "1 d"),
            (10_584.0, "2.9 h"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }

    #[test]
    fn numbers_of_json_are_whole_where_they_are() {
        assert_eq!(number(20_192.0).to_string(), "20192");
        assert_eq!(number(0.1 + 0.2).to_string(), "0.3");
    }
}
