//! The lines of all charts for the page's script, as JSON.
//!
//! Instants are µs since the start and values whole numbers, both as differences from the one before; `null` is
//! a break. A run of many samples is thinned, extremes kept, to what a browser draws without delay; the record
//! itself never is.

use std::fmt::Write as _;

use linerate_analysis::time_budget::Class;
use linerate_model::units::grouped;
use serde_json::{Value, json};

use crate::chart::svg::classes;
use crate::chart::{Band, Chart, Charts, Line, Point, Shape, Stroke, flow_name, thin};
use crate::view::RunView;
use crate::words;

/// The most points in a page, over all its lines.
const MOST_POINTS: usize = 500_000;
/// A line keeps at least this many, however many lines there are.
const LEAST_POINTS: usize = 400;

/// A run in a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drawn<'a> {
    /// Its number in the page.
    pub(super) run: usize,
    pub(super) view: &'a RunView,
    pub(super) charts: &'a Charts,
    /// The instants at the edges of its charts, ns since its start.
    pub(super) span_ns: [i64; 2],
}

impl Drawn<'_> {
    /// The key of a chart in the page.
    pub(super) fn chart(&self, chart: &Chart) -> String {
        format!("{}-{}", self.run, chart.id)
    }

    /// The key of a finding in the page.
    pub(super) fn finding(&self, number: usize) -> String {
        format!("{}-{number}", self.run)
    }
}

pub(super) fn of(runs: &[Drawn<'_>]) -> String {
    let lines = || {
        runs.iter()
            .flat_map(|run| run.charts.charts.iter().flat_map(|chart| &chart.lines))
    };
    let lengths: Vec<usize> = lines().map(|line| line.points.len()).collect();
    let points: usize = lengths.iter().sum();
    let each = each_line(lengths);
    let mut kept = 0;
    let mut charts = String::new();
    for run in runs {
        for chart in &run.charts.charts {
            if !charts.is_empty() {
                charts.push_str(",\n");
            }
            kept += write_chart(&mut charts, run, chart, each);
        }
    }
    let bands: serde_json::Map<String, Value> = runs.iter().flat_map(bands).collect();
    let classes = Class::ALL.map(Class::words);
    let evidence: serde_json::Map<String, Value> = runs.iter().flat_map(evidence).collect();
    let micros = |ns: i64| ns.div_euclid(1000);
    let from = runs.iter().map(|run| run.span_ns[0]).min().unwrap_or(0);
    let to = runs.iter().map(|run| run.span_ns[1]).max().unwrap_or(1);
    let instants = |of: fn(&Charts) -> Option<i64>| -> Vec<Option<i64>> {
        runs.iter().map(|run| of(run.charts).map(micros)).collect()
    };
    let omitted = instants(|charts| charts.omitted_to_ns);
    let ended = instants(|charts| charts.ended_ns);
    let thinned = (kept < points).then(|| {
        format!(
            "Zoomed charts show {} of {} points, extremes kept.",
            grouped(kept as u64),
            grouped(points as u64)
        )
    });
    let head = json!({ "from": micros(from), "to": micros(to).max(1), "omitted": omitted, "ended": ended, "classes": classes, "bands": bands, "evidence": evidence, "thinned": thinned });
    let head = head.to_string();
    format!(
        "{},\"charts\":{{\n{charts}\n}}}}",
        head.strip_suffix('}').unwrap_or(&head)
    )
}

/// The most points of a line, so that all together have [`MOST_POINTS`]: what short lines leave, long ones get.
fn each_line(mut lengths: Vec<usize>) -> usize {
    lengths.sort_unstable();
    let (count, mut left) = (lengths.len(), MOST_POINTS);
    for (place, length) in lengths.into_iter().enumerate() {
        let share = left / (count - place);
        if length > share {
            return share.max(LEAST_POINTS);
        }
        left -= length;
    }
    usize::MAX
}

/// The ribbons of a run's directions: class, begin, end.
fn bands<'a>(run: &Drawn<'a>) -> impl Iterator<Item = (String, Value)> + use<'a> {
    let run = *run;
    run.charts.bands.iter().map(move |(flow, bands)| {
        let one = |band: &Band| {
            let [from, to] = [band.from_ns, band.to_ns].map(|ns| ns.div_euclid(1000));
            json!([band.class as usize, from, to])
        };
        let key = format!("{}-{}", run.run, flow_name(*flow));
        (key, bands.iter().map(one).collect())
    })
}

fn evidence<'a>(run: &Drawn<'a>) -> impl Iterator<Item = (String, Value)> + use<'a> {
    let run = *run;
    run.charts
        .evidence
        .iter()
        .enumerate()
        .filter_map(move |(number, span)| {
            let [from, to] = (*span)?.map(|ns| ns.div_euclid(1000));
            let flow = run.view.findings.get(number)?.flow.map(flow_name);
            Some((
                run.finding(number),
                json!({ "run": run.run, "flow": flow, "from": from, "to": to }),
            ))
        })
}

/// Writes a chart, and says how many points it wrote.
fn write_chart(json: &mut String, run: &Drawn<'_>, chart: &Chart, each: usize) -> usize {
    let level = chart.level.map(|level| {
        let [low, high] = level.interval.unwrap_or([level.mean; 2]);
        json!([
            level.from_ns.div_euclid(1000),
            level.to_ns.div_euclid(1000),
            level.mean,
            low,
            high
        ])
    });
    let steps: Vec<Value> = chart
        .unit
        .steps()
        .iter()
        .map(|(name, size)| json!([name, size]))
        .collect();
    let _ = write!(
        json,
        "{}:{{\"run\":{},\"flow\":{},\"group\":{},\"unit\":{},\"steps\":{},\"level\":{},\"lines\":[",
        Value::from(run.chart(chart)),
        run.run,
        Value::from(chart.flow.map(flow_name)),
        Value::from(chart.id.as_str()),
        Value::from(chart.unit.name()),
        Value::from(steps),
        level.unwrap_or(Value::Null),
    );
    let mut kept = 0;
    for (number, line) in chart.lines.iter().enumerate() {
        let points = if line.points.len() > each {
            thin::thinned(&line.points, each / 4)
        } else {
            line.points.clone()
        };
        kept += points.len();
        if number > 0 {
            json.push(',');
        }
        write_line(json, line, &points);
    }
    json.push_str("]}");
    kept
}

fn write_line(json: &mut String, line: &Line, points: &[Point]) {
    let _ = write!(
        json,
        "{{\"class\":{},\"step\":{},\"fill\":{},\"bound\":{},\"t\":[",
        Value::from(classes(line)),
        line.shape == Shape::Step,
        line.stroke == Stroke::Filled,
        line.stroke == Stroke::Dotted
    );
    let mut before = 0;
    for (row, point) in points.iter().enumerate() {
        let at = point.at_ns.div_euclid(1000);
        let _ = write!(json, "{}{}", words::when(row > 0, ","), at - before);
        before = at;
    }
    json.push_str("],\"v\":[");
    let mut before = 0;
    for (row, point) in points.iter().enumerate() {
        if row > 0 {
            json.push(',');
        }
        match point.value {
            Some(value) => {
                let value = i128::from(value);
                let _ = write!(json, "{}", value - before);
                before = value;
            }
            None => json.push_str("null"),
        }
    }
    json.push_str("]}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_short_lines_leave_long_ones_get() {
        assert_eq!(each_line(vec![10; 50]), usize::MAX);
        assert_eq!(each_line(vec![100_000, 1_000_000, 1_000_000]), 200_000);
        assert_eq!(each_line(vec![1_000_000; 100_000]), LEAST_POINTS);
        assert_eq!(each_line(Vec::new()), usize::MAX);
    }
}
