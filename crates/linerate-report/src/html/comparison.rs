//! Runs side by side: what was changed, what came of it, and the same charts on the same axes.

use linerate_model::record::Flow;
use linerate_model::units::whole;

use super::data::{self, Drawn};
use super::{Sheet, charts, document};
use crate::chart::{Chart, Charts};
use crate::compare::{self, Comparison, Difference, SideFigures};
use crate::markup::Markup;
use crate::text::{book, header, layout, way};
use crate::view::RunView;
use crate::words::{self, rate, rates};

/// A run with the name that it bears in a comparison: `before`, `after`, a file's name.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// The name.
    pub label: &'a str,
    /// The run that is drawn.
    pub sheet: Sheet<'a>,
    /// Further runs of the same kind: figures and intervals are those of all together.
    pub more: &'a [RunView],
}

/// One page of several runs, the first of which the others are held against. `changed` says what was done
/// between them, one sentence each; what differs in plans and hosts is listed anyway.
pub fn comparison(title: &str, changed: &[String], sides: &[Side<'_>]) -> String {
    let all: Vec<Charts> = sides
        .iter()
        .map(|side| Charts::of(side.sheet.view, side.sheet.record))
        .collect();
    let span_ns = [
        all.iter().map(|charts| charts.from_ns).min().unwrap_or(0),
        all.iter().map(|charts| charts.to_ns).max().unwrap_or(1),
    ];
    let drawn: Vec<Drawn<'_>> = sides
        .iter()
        .zip(&all)
        .enumerate()
        .map(|(run, (side, charts))| Drawn {
            run,
            view: side.sheet.view,
            charts,
            span_ns,
        })
        .collect();
    let kinds: Vec<compare::Side<'_>> = sides
        .iter()
        .map(|side| {
            let runs = std::iter::once(side.sheet.view).chain(side.more);
            compare::Side::of(side.label, runs.collect())
        })
        .collect();
    let compared = Comparison::of(&kinds);
    let mut body = Markup::default();
    head(&mut body, title, changed, sides);
    body.open("main", &[]);
    figures(&mut body, sides, &compared);
    settings(&mut body, sides, &compared);
    side_by_side(&mut body, sides, &drawn);
    body.close("main");
    foot(&mut body, sides);
    document(title, &body, &data::of(&drawn))
}

fn head(body: &mut Markup, title: &str, changed: &[String], sides: &[Side<'_>]) {
    body.open("header", &[]);
    body.element("h1", &[], title);
    if !changed.is_empty() {
        body.element("h2", &[], "What was changed");
        body.open("ul", &[]);
        for sentence in changed {
            body.element("li", &[], sentence);
        }
        body.close("ul");
    }
    body.open("dl", &[("class", "ends")]);
    for side in sides {
        body.element("dt", &[], side.label);
        let view = side.sheet.view;
        let what = header::test(&view.plan);
        let verdicts = view.directions.iter().filter_map(|direction| {
            let finding = view.findings.get(direction.verdict?)?;
            Some(finding.sentence.clone())
        });
        let mut said = vec![what];
        if !side.more.is_empty() {
            said.push(format!("One of {} runs", side.more.len() + 1));
        }
        said.extend(header::cut_off(view).map(|(label, how)| format!("{label} {how}")));
        said.extend(verdicts);
        body.element("dd", &[], &said.join(". "));
    }
    body.close("dl");
    body.close("header");
}

/// A row of the table: its name, and a side's figure in words.
type Row = (&'static str, fn(&SideFigures) -> Option<String>);

const ROWS: [Row; 10] = [
    ("Goodput", |of| of.goodput_bps.map(rate)),
    ("95 % interval", |of| {
        let (low, high) = of.goodput_low_bps.zip(of.goodput_high_bps)?;
        Some(rates(low, high))
    }),
    ("Whole run", |of| Some(rate(whole(of.whole_run_bps?)))),
    ("Ramp", |of| Some(words::seconds(whole(of.ramp_ns?)))),
    ("Retransmits, of all segments", |of| {
        of.retransmit_share.map(words::percent)
    }),
    ("RTT mean", |of| of.rtt_us.map(words::micros)),
    ("RTT least", |of| of.min_rtt_us.map(words::micros)),
    ("Datagrams lost", |of| of.loss_share.map(words::percent)),
    ("CPU of the client", |of| {
        of.client_seconds_per_gigabyte.map(seconds_per_gigabyte)
    }),
    ("CPU of the server", |of| {
        of.server_seconds_per_gigabyte.map(seconds_per_gigabyte)
    }),
];

fn seconds_per_gigabyte(each: f64) -> String {
    format!("{} s/GB", linerate_model::units::three_digits(each))
}

fn known(value: Option<String>) -> String {
    value.unwrap_or_else(|| "not known".to_owned())
}

/// What each direction gave, and by how much the others differ from the first.
fn figures(body: &mut Markup, sides: &[Side<'_>], compared: &Comparison) {
    body.open("section", &[("class", "answer")]);
    for direction in &compared.directions {
        let flow: Flow = direction.flow;
        body.element("h2", &[], &layout::capital(way(flow)));
        for (side, figures) in sides.iter().zip(&direction.sides).skip(1) {
            let text = match &figures.against_first {
                Some(against) => difference(sides[0].label, side.label, against),
                None => format!(
                    "{} and {} cannot be compared: the goodput of one is not known.",
                    sides[0].label, side.label
                ),
            };
            body.element("p", &[("class", "verdict")], &text);
        }
        table_head(body, "Figure", sides);
        for (name, of) in ROWS {
            let cells: Vec<Option<String>> = direction.sides.iter().map(of).collect();
            if cells.iter().any(Option::is_some) {
                row(body, name, cells.into_iter().map(known));
            }
        }
        row(
            body,
            "Ledger",
            sides.iter().map(|side| book::balance(side.sheet.view)),
        );
        table_foot(body);
    }
    for remark in &compared.remarks {
        body.element("p", &[("class", "about")], remark);
    }
    body.close("section");
}

fn table_head(body: &mut Markup, what: &str, sides: &[Side<'_>]) {
    body.open("div", &[("class", "wide")]);
    body.open("table", &[]);
    body.open("thead", &[]);
    body.open("tr", &[]);
    body.element("th", &[("scope", "col")], what);
    for side in sides {
        body.element("th", &[("scope", "col")], side.label);
    }
    body.close("tr");
    body.close("thead");
    body.open("tbody", &[]);
}

fn table_foot(body: &mut Markup) {
    body.close("tbody");
    body.close("table");
    body.close("div");
}

fn row(body: &mut Markup, name: &str, cells: impl Iterator<Item = String>) {
    body.open("tr", &[]);
    body.element("th", &[("scope", "row")], name);
    for cell in cells {
        body.element("td", &[], &cell);
    }
    body.close("tr");
}

/// By how much the second side's goodput differs from the first's, and whether that can be said at all.
fn difference(first: &str, second: &str, against: &Difference) -> String {
    let size = |bps: i64| rate(bps.unsigned_abs());
    let by = size(against.bps);
    let word = if against.bps < 0 { "lower" } else { "higher" };
    let share = against
        .share
        .map_or_else(String::new, |share| format!(", {:.2} times", 1.0 + share));
    match (against.differs, against.low_bps.zip(against.high_bps)) {
        (Some(true), Some((low, high))) => {
            let (near, far) = if against.bps < 0 {
                (high, low)
            } else {
                (low, high)
            };
            let interval = rates(near.unsigned_abs(), far.unsigned_abs());
            format!("{second} is {word} than {first} by {by} (95 % interval {interval}){share}.")
        }
        (Some(false), Some((_, high))) => {
            let half = size(high.saturating_sub(against.bps));
            format!(
                "{second} and {first} cannot be told apart: they differ by {by}, known to within ± {half}."
            )
        }
        _ => format!(
            "{second} is {word} than {first} by {by}{share}; without an interval of confidence for both nobody can \
             say whether that is more than chance."
        ),
    }
}

/// What differs in plans and hosts.
fn settings(body: &mut Markup, sides: &[Side<'_>], compared: &Comparison) {
    body.open("section", &[("class", "differences")]);
    body.element("h2", &[], "Settings that differ");
    if compared.settings.is_empty() {
        body.element("p", &[], "None of those that the records hold.");
    } else {
        table_head(body, "Setting", sides);
        for setting in &compared.settings {
            let values = setting.values.iter();
            row(
                body,
                &setting.name,
                values.map(|value| value.clone().unwrap_or_else(|| "–".to_owned())),
            );
        }
        table_foot(body);
    }
    body.close("section");
}

/// Each chart that any of them has, side by side.
fn side_by_side(body: &mut Markup, sides: &[Side<'_>], drawn: &[Drawn<'_>]) {
    body.open("section", &[("class", "charts"), ("id", "charts")]);
    body.element("h2", &[], "Charts, on the same axes");
    charts::bar(body);
    let mut ids: Vec<&str> = Vec::new();
    for chart in drawn.iter().flat_map(|run| &run.charts.charts) {
        if !ids.contains(&chart.id.as_str()) {
            ids.push(&chart.id);
        }
    }
    for id in ids {
        let found: Vec<Option<&Chart>> = drawn
            .iter()
            .map(|run| run.charts.charts.iter().find(|chart| chart.id == id))
            .collect();
        let most = found
            .iter()
            .flatten()
            .map(|chart| chart.most())
            .max()
            .unwrap_or(0);
        body.open("div", &[("class", "beside")]);
        for ((side, run), chart) in sides.iter().zip(drawn).zip(found) {
            body.open("div", &[]);
            body.element("p", &[("class", "side")], side.label);
            match chart {
                Some(chart) => charts::figure(body, run, chart, most),
                None => body.element("p", &[("class", "absent")], "This run has no such chart."),
            }
            body.close("div");
        }
        body.close("div");
    }
    body.close("section");
}

fn foot(body: &mut Markup, sides: &[Side<'_>]) {
    body.open("footer", &[]);
    for side in sides {
        let kept = side
            .sheet
            .kept
            .map_or_else(|| "was not kept".to_owned(), |kept| format!("is in {kept}"));
        body.element(
            "p",
            &[],
            &format!("The full record of {} {kept}.", side.label),
        );
    }
    body.close("footer");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bps: i64, half: Option<i64>) -> Difference {
        Difference {
            bps,
            low_bps: half.map(|half| bps - half),
            high_bps: half.map(|half| bps + half),
            share: Some(bps as f64 / 1e8),
            differs: half.map(|half| bps.abs() > half),
        }
    }

    #[test]
    fn a_difference_within_its_interval_is_none() {
        assert_eq!(
            difference("before", "after", &of(4_000_000, Some(5_000_000))),
            "after and before cannot be told apart: they differ by 4.00 Mbit/s, known to within ± 5.00 Mbit/s."
        );
    }

    #[test]
    fn a_difference_has_an_interval() {
        assert_eq!(
            difference("before", "after", &of(-50_000_000, Some(5_000_000))),
            "after is lower than before by 50.0 Mbit/s (95 % interval 45.0 to 55.0 Mbit/s), 0.50 times."
        );
        let bare = difference("before", "after", &of(1, None));
        assert!(bare.contains("chance"), "{bare}");
    }
}
