//! Runs side by side: what was changed, what came of it, and the same charts on the same axes.

use linerate_model::record::{Flow, Role};
use serde_json::Value;

use super::data::{self, Drawn};
use super::{Sheet, charts, document, facts};
use crate::chart::{Chart, Charts};
use crate::json::value;
use crate::markup::Markup;
use crate::text::{book, figures, header, layout, limits, way};
use crate::view::{DirectionView, Figures, RunView};
use crate::words::{self, plain, rate, rates};

/// Settings that differ between any two runs without meaning anything.
const OF_THE_MOMENT: [&str; 5] = ["title", "boot id", "network namespace", "index", "port"];

/// A run with the name that it bears in a comparison: `before`, `after`, a file's name.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// The name.
    pub label: &'a str,
    /// The run.
    pub sheet: Sheet<'a>,
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
    let mut body = Markup::default();
    head(&mut body, title, changed, sides);
    body.open("main", &[]);
    table(&mut body, sides);
    differences(&mut body, sides);
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
            Some(plain(&finding.sentence))
        });
        let mut said = vec![what];
        said.extend(header::cut_off(view).map(|(label, how)| format!("{label} {how}")));
        said.extend(verdicts);
        body.element("dd", &[], &said.join(". "));
    }
    body.close("dl");
    body.close("header");
}

/// The directions that all of them have.
fn flows(sides: &[Side<'_>]) -> Vec<Flow> {
    let of = |side: &Side<'_>| -> Vec<Flow> {
        let directions = side.sheet.view.directions.iter();
        directions.map(|direction| direction.flow).collect()
    };
    let mut flows = sides.first().map(of).unwrap_or_default();
    flows.retain(|flow| sides.iter().all(|side| of(side).contains(flow)));
    flows
}

fn direction<'a>(side: &Side<'a>, flow: Flow) -> Option<&'a DirectionView> {
    let mut directions = side.sheet.view.directions.iter();
    directions.find(|direction| direction.flow == flow)
}

/// A row of the table: its name, and a run's figure in words.
type Row = (&'static str, fn(&DirectionView, &RunView) -> String);

const ROWS: [Row; 7] = [
    ("95 % interval", |direction, _| {
        let of = &direction.figures;
        known(
            of.goodput_low_bps
                .zip(of.goodput_high_bps)
                .map(|(low, high)| rates(low, high)),
        )
    }),
    ("Whole run", |direction, _| {
        known(figures::whole_run(&direction.figures))
    }),
    ("Retransmits", |direction, _| {
        let of = &direction.figures;
        let share = of
            .retransmit_share
            .map_or_else(String::new, |share| format!(" ({})", words::percent(share)));
        known(
            of.retransmits
                .map(|again| format!("{}{share}", words::count(again))),
        )
    }),
    ("Lost (UDP)", |direction, _| {
        known(direction.loss_share.map(words::percent))
    }),
    ("RTT mean, least", |direction, _| {
        let of = &direction.figures;
        let least = of
            .min_rtt_us
            .map_or_else(String::new, |least| format!(", {}", words::micros(least)));
        known(
            of.rtt_us
                .map(|rtt| format!("{}{least}", words::micros(rtt))),
        )
    }),
    ("Time", |direction, _| limits::time_words(direction)),
    ("Ledger", |_, view| book::balance(view)),
];

fn known(value: Option<String>) -> String {
    value.unwrap_or_else(|| "not known".to_owned())
}

fn table(body: &mut Markup, sides: &[Side<'_>]) {
    body.open("section", &[("class", "answer")]);
    for flow in flows(sides) {
        body.element("h2", &[], &layout::capital(way(flow)));
        for after in sides.iter().skip(1) {
            if let (Some(first), Some(then)) = (
                sides.first().and_then(|first| direction(first, flow)),
                direction(after, flow),
            ) {
                body.element(
                    "p",
                    &[("class", "verdict")],
                    &difference(sides[0].label, &first.figures, after.label, &then.figures),
                );
            }
        }
        body.open("div", &[("class", "wide")]);
        body.open("table", &[]);
        body.open("thead", &[]);
        body.open("tr", &[]);
        body.element("th", &[("scope", "col")], "Figure");
        for side in sides {
            body.element("th", &[("scope", "col")], side.label);
        }
        body.close("tr");
        body.close("thead");
        body.open("tbody", &[]);
        row(
            body,
            "Goodput",
            sides.iter().map(|side| {
                let goodput =
                    direction(side, flow).and_then(|direction| direction.figures.goodput_bps);
                known(goodput.map(rate))
            }),
        );
        for (name, of) in ROWS {
            let cells: Vec<String> = sides
                .iter()
                .map(|side| {
                    direction(side, flow)
                        .map_or_else(String::new, |direction| of(direction, side.sheet.view))
                })
                .collect();
            if cells.iter().any(|cell| cell != "not known") {
                row(body, name, cells.into_iter());
            }
        }
        body.close("tbody");
        body.close("table");
        body.close("div");
    }
    body.element(
        "p",
        &[("class", "about")],
        "The intervals cover how the rate varied within each run. They do not cover how it varies from one run to the next: \
         only several runs of each kind, in turn, tell that.",
    );
    body.close("section");
}

fn row(body: &mut Markup, name: &str, cells: impl Iterator<Item = String>) {
    body.open("tr", &[]);
    body.element("th", &[("scope", "row")], name);
    for cell in cells {
        body.element("td", &[], &cell);
    }
    body.close("tr");
}

/// By how much a run's goodput differs from another's, with the interval of the difference: the half widths of
/// independent means add as squares.
fn difference(first: &str, before: &Figures, second: &str, after: &Figures) -> String {
    let (Some(from), Some(to)) = (before.goodput_bps, after.goodput_bps) else {
        return format!(
            "{first} and {second} cannot be compared: the goodput of one is not known."
        );
    };
    let moved = to as f64 - from as f64;
    let word = if moved < 0.0 { "lower" } else { "higher" };
    let by = rate(linerate_model::units::whole(moved.abs()));
    let ratio = if from > 0 {
        format!(", {:.2} times", to as f64 / from as f64)
    } else {
        String::new()
    };
    let half =
        |of: &Figures| Some((of.goodput_high_bps? as f64 - of.goodput_low_bps? as f64) / 2.0);
    let Some((one, other)) = half(before).zip(half(after)) else {
        return format!(
            "{second} is {word} than {first} by {by}{ratio}; without an interval of confidence for both nobody can say whether that is more than chance."
        );
    };
    let half = one.hypot(other);
    let ends = [moved.abs() - half, moved.abs() + half];
    if ends[0] <= 0.0 {
        let half = rate(linerate_model::units::whole(half));
        return format!(
            "{second} and {first} cannot be told apart: they differ by {by}, known to within ± {half}."
        );
    }
    let interval = rates(
        linerate_model::units::whole(ends[0]),
        linerate_model::units::whole(ends[1]),
    );
    format!("{second} is {word} than {first} by {by} (95 % interval {interval}){ratio}.")
}

/// What differs in plans and hosts.
fn differences(body: &mut Markup, sides: &[Side<'_>]) {
    let facts: Vec<Vec<(String, String)>> = sides.iter().map(settings).collect();
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in facts.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let of = |all: &[(String, String)], name: &str| {
        all.iter()
            .find(|(other, _)| other == name)
            .map_or_else(|| "–".to_owned(), |(_, text)| text.clone())
    };
    let rows: Vec<(&String, Vec<String>)> = names
        .into_iter()
        .map(|name| {
            (
                name,
                facts
                    .iter()
                    .map(|all| of(all, name))
                    .collect::<Vec<String>>(),
            )
        })
        .filter(|(_, cells)| cells.iter().any(|cell| *cell != cells[0]))
        .collect();
    body.open("section", &[("class", "differences")]);
    body.element("h2", &[], "Settings that differ");
    if rows.is_empty() {
        body.element("p", &[], "None of those that the records hold.");
    } else {
        body.open("div", &[("class", "wide")]);
        body.open("table", &[]);
        body.open("tr", &[]);
        body.element("th", &[("scope", "col")], "Setting");
        for side in sides {
            body.element("th", &[("scope", "col")], side.label);
        }
        body.close("tr");
        for (name, cells) in rows {
            row(body, name, cells.into_iter());
        }
        body.close("table");
        body.close("div");
    }
    body.close("section");
}

fn settings(side: &Side<'_>) -> Vec<(String, String)> {
    let view = side.sheet.view;
    let mut all = named("plan", &value(&view.plan));
    for role in [Role::Client, Role::Server] {
        let end = view.end(role);
        let name = layout::role(role).trim_end();
        all.extend(named(name, &value(&end.host)));
        all.extend(
            end.interface
                .iter()
                .flat_map(|interface| named(&format!("{name}'s interface"), &value(interface))),
        );
    }
    all
}

fn named(before: &str, of: &Value) -> Vec<(String, String)> {
    facts::facts("", of)
        .into_iter()
        .filter(|(name, _)| !OF_THE_MOMENT.contains(&name.as_str()))
        .map(|(name, text)| (format!("{before}: {name}"), text))
        .collect()
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

    fn of(mean: u64, half: u64) -> Figures {
        Figures {
            goodput_bps: Some(mean),
            goodput_low_bps: Some(mean - half),
            goodput_high_bps: Some(mean + half),
            ..Figures::default()
        }
    }

    #[test]
    fn a_difference_within_its_interval_is_none() {
        let text = difference(
            "before",
            &of(100_000_000, 3_000_000),
            "after",
            &of(104_000_000, 4_000_000),
        );
        assert_eq!(
            text,
            "after and before cannot be told apart: they differ by 4.00 Mbit/s, known to within ± 5.00 Mbit/s."
        );
    }

    #[test]
    fn a_difference_has_an_interval() {
        let text = difference(
            "before",
            &of(100_000_000, 3_000_000),
            "after",
            &of(50_000_000, 4_000_000),
        );
        assert_eq!(
            text,
            "after is lower than before by 50.0 Mbit/s (95 % interval 45.0 to 55.0 Mbit/s), 0.50 times."
        );
        let unknown = difference("a", &Figures::default(), "b", &of(1, 0));
        assert!(unknown.contains("not known"), "{unknown}");
    }
}
