//! The ledger: places and what passed them, and the equations between them.

use linerate_analysis::ledger::Check;

use crate::markup::Markup;
use crate::text::book::{self, Streams, Table};
use crate::text::{layout, way};
use crate::view::RunView;
use crate::words::count;

/// More streams than this have no column of their own.
const MOST_STREAMS: usize = 16;

pub(super) fn write(body: &mut Markup, view: &RunView) {
    let Some(totals) = book::table(view, Streams::Broken) else {
        return;
    };
    body.open("section", &[("class", "ledger")]);
    body.element("h2", &[], "Ledger");
    let class = if view.ledger.balanced == Some(false) {
        "balance fault"
    } else {
        "balance"
    };
    body.element("p", &[("class", class)], &book::balance(view));
    table(body, &totals);
    let streams = view
        .ledger
        .directions
        .iter()
        .map(|direction| direction.streams.len())
        .max()
        .unwrap_or(0);
    if (2..=MOST_STREAMS).contains(&streams)
        && let Some(all) = book::table(view, Streams::All)
    {
        body.open("details", &[]);
        body.element("summary", &[], "Each stream");
        table(body, &all);
        body.close("details");
    }
    equations(body, view);
    for reason in book::not_known(view) {
        body.element("p", &[("class", "absent")], &format!("Not known: {reason}"));
    }
    body.close("section");
}

fn table(body: &mut Markup, table: &Table) {
    body.open("div", &[("class", "wide")]);
    body.open("table", &[]);
    body.open("thead", &[]);
    body.open("tr", &[]);
    body.element("th", &[("scope", "col")], &table.head);
    for column in &table.columns {
        body.element("th", &[("scope", "col"), ("class", "number")], column);
    }
    body.close("tr");
    body.close("thead");
    body.open("tbody", &[]);
    for (name, values) in &table.rows {
        body.open("tr", &[]);
        let class = if name.starts_with(' ') {
            "part"
        } else {
            "whole"
        };
        body.element(
            "th",
            &[("scope", "row"), ("class", class)],
            name.trim_start(),
        );
        for value in values {
            let text = value.map_or_else(|| "not known".to_owned(), count);
            body.element("td", &[("class", "number")], &text);
        }
        body.close("tr");
    }
    body.close("tbody");
    body.close("table");
    body.close("div");
}

/// Every equation; those that do not hold stand open, with the figure to trust.
fn equations(body: &mut Markup, view: &RunView) {
    let all: Vec<(String, &Check)> = view
        .ledger
        .directions
        .iter()
        .flat_map(|direction| {
            let way = layout::capital(way(direction.flow));
            direction.checks.iter().map(move |check| {
                let stream = check
                    .stream
                    .map_or_else(String::new, |id| format!(", stream {id}"));
                (format!("{way}{stream}"), check)
            })
        })
        .collect();
    if all.is_empty() {
        return;
    }
    let open: &[(&'static str, &str)] = if view.ledger.balanced == Some(false) {
        &[("open", "")]
    } else {
        &[]
    };
    body.open("details", open);
    body.element(
        "summary",
        &[],
        &format!(
            "Equations between the places ({} of {} hold)",
            view.ledger.hold, view.ledger.equations
        ),
    );
    body.open("div", &[("class", "wide")]);
    body.open("table", &[]);
    body.own("<thead><tr><th scope=\"col\">Where</th><th scope=\"col\">Equation</th><th scope=\"col\" class=\"number\">Left</th><th scope=\"col\" class=\"number\">Right</th><th scope=\"col\">Holds</th></tr></thead>");
    for (place, check) in all {
        body.open("tr", &[]);
        body.element("td", &[], &place);
        body.element("td", &[], &check.equation);
        body.element("td", &[("class", "number")], &count(check.left));
        body.element("td", &[("class", "number")], &count(check.right));
        let (class, text) = if check.holds {
            ("", "yes".to_owned())
        } else {
            (
                "fault",
                format!(
                    "no, {} apart; trust {}",
                    count(check.difference()),
                    check.trust.as_deref().unwrap_or("neither")
                ),
            )
        };
        body.element("td", &[("class", class)], &text);
        body.close("tr");
    }
    body.close("table");
    body.close("div");
    body.close("details");
}
