//! Where the time went, as a bar; where the rate went, as steps from the line's rate down to goodput.

use linerate_analysis::time_budget::Class;
use linerate_analysis::waterfall::StepKind;

use crate::chart::svg::{class_style, px};
use crate::markup::Markup;
use crate::text::{layout, limits, way};
use crate::view::{BudgetView, DirectionView, RunView, StepView, WaterfallView};
use crate::words::{rate, time_share};

/// Width of the time bar's picture.
const BAR: f64 = 1000.0;
/// Width of a step's picture.
const STEP: f64 = 320.0;
/// A part of the bar below this share has no room for its figure.
const ROOM: f64 = 0.06;

pub(super) fn write(body: &mut Markup, view: &RunView) {
    let known = |direction: &DirectionView| {
        direction.time_budget.is_some()
            || direction.waterfall.is_some()
            || direction.time_budget_unknown.is_some()
    };
    if !view.directions.iter().any(known) {
        return;
    }
    body.open("section", &[("class", "limits")]);
    body.element("h2", &[], "Where the time and the rate went");
    for direction in &view.directions {
        if view.directions.len() > 1 {
            body.element("h3", &[], &layout::capital(way(direction.flow)));
        }
        match (&direction.time_budget, &direction.time_budget_unknown) {
            (Some(budget), _) => time(body, budget),
            (None, Some(reason)) => unknown(body, "Where the time went", reason),
            (None, None) => {}
        }
        match (&direction.waterfall, &direction.waterfall_unknown) {
            (Some(waterfall), _) => steps(body, waterfall),
            (None, Some(reason)) => unknown(body, "Where the rate went", reason),
            (None, None) => {}
        }
    }
    body.close("section");
}

fn unknown(body: &mut Markup, what: &str, reason: &str) {
    let text = format!("{what} is not known: {reason}");
    body.element("p", &[("class", "absent")], &text);
}

/// The parts of the sending streams' time.
fn time(body: &mut Markup, budget: &BudgetView) {
    let shares: Vec<(Class, f64)> = Class::ALL
        .into_iter()
        .map(|class| (class, budget.share(class)))
        .filter(|(_, share)| *share > 0.0)
        .collect();
    let said: Vec<String> = shares
        .iter()
        .map(|(class, share)| format!("{} {}", class.words(), time_share(*share)))
        .collect();
    let label = format!("Time of the sending streams: {}", said.join(", "));
    body.element("h4", &[], "Where the time went");
    body.open(
        "svg",
        &[
            ("class", "bar-of-time"),
            ("viewBox", "0 0 1000 34"),
            ("role", "img"),
            ("aria-label", &label),
        ],
    );
    let mut x = 0.0;
    for (class, share) in &shares {
        let width = share * BAR;
        let kind = format!("part {}", class_style(*class));
        body.leaf(
            "rect",
            &[
                ("class", &kind),
                ("x", &px(x)),
                ("y", "0"),
                ("width", &px(width)),
                ("height", "34"),
            ],
        );
        if *share >= ROOM {
            let at = px(x + width / 2.0);
            let attributes = [("class", "inside middle"), ("x", at.as_str()), ("y", "22")];
            body.element("text", &attributes, &time_share(*share));
        }
        x += width;
    }
    body.close("svg");
    body.open("ul", &[("class", "legend")]);
    for (class, share) in &shares {
        entry(
            body,
            *class,
            &format!("{} {}", class.words(), time_share(*share)),
        );
    }
    body.close("ul");
    let [from, to] = budget.span_ns.map(|ns| ns as f64 / 1e9);
    let clocks = budget.kernel_clocks.map_or_else(
        || "Its kernel's own clocks do not tell.".to_owned(),
        |clocks| {
            format!(
                "Its kernel's clocks alone say: application {}, send buffer {}, receive window {}, network {}.",
                time_share(clocks.application),
                time_share(clocks.send_buffer),
                time_share(clocks.receive_window),
                time_share(clocks.network)
            )
        },
    );
    let text = format!(
        "Of the sending streams' time from {from:.2} s to {to:.2} s, each sample classified. {clocks}"
    );
    body.element("p", &[("class", "about")], &text);
}

/// A class in a legend.
pub(super) fn entry(body: &mut Markup, class: Class, text: &str) {
    body.open("li", &[]);
    let kind = format!("part {}", class_style(class));
    body.open(
        "svg",
        &[
            ("class", "key"),
            ("viewBox", "0 0 22 10"),
            ("aria-hidden", "true"),
        ],
    );
    body.leaf(
        "rect",
        &[("class", &kind), ("width", "22"), ("height", "10")],
    );
    body.close("svg");
    body.element("span", &[("class", "name")], text);
    body.close("li");
}

fn steps(body: &mut Markup, waterfall: &WaterfallView) {
    body.element("h4", &[], "Where the rate went");
    body.open("div", &[("class", "wide")]);
    body.open("table", &[("class", "waterfall")]);
    body.own("<thead><tr><th scope=\"col\">From the line to goodput</th><th scope=\"col\"></th><th scope=\"col\" class=\"number\">Taken</th><th scope=\"col\" class=\"number\">Left</th><th scope=\"col\">Rests on</th></tr></thead><tbody>");
    let note = limits::line_note(waterfall.line).unwrap_or_default();
    let line = waterfall.line_bps;
    whole(body, limits::line_name(waterfall.line), line, line, note);
    let mut before = line;
    for step in &waterfall.steps {
        one(body, waterfall, step, before);
        before = step.left_bps;
    }
    whole(
        body,
        "goodput of the whole run",
        waterfall.goodput_bps,
        line,
        "",
    );
    body.own("</tbody>");
    body.close("table");
    body.close("div");
}

/// A row that stands on zero.
fn whole(body: &mut Markup, name: &str, bps: u64, line: u64, says: &str) {
    body.open("tr", &[("class", "sum")]);
    body.element("th", &[("scope", "row")], name);
    picture(body, "part whole", 0, bps, line);
    body.element("td", &[("class", "number")], "");
    body.element("td", &[("class", "number")], &rate(bps));
    body.element("td", &[("class", "about")], says);
    body.close("tr");
}

/// A row that hangs between what was left before it and after it.
fn one(body: &mut Markup, waterfall: &WaterfallView, step: &StepView, before: u64) {
    let kind = match step.step {
        StepKind::Path => "part k6",
        StepKind::CongestionWindow => "part k3",
        StepKind::Recovery | StepKind::Loss => "part k4",
        StepKind::Timeout => "part k5",
        StepKind::ReceiveWindow | StepKind::ReceiverDrop => "part k2",
        StepKind::SendBuffer => "part k1",
        StepKind::Application => "part k0",
        StepKind::Framing | StepKind::NotKnown | StepKind::Ramp => "part other",
    };
    let sign = if step.bps < 0 { "+" } else { "−" };
    body.open("tr", &[]);
    body.element(
        "th",
        &[("scope", "row"), ("class", "part")],
        limits::name(step.step, waterfall),
    );
    picture(
        body,
        kind,
        before.min(step.left_bps),
        before.max(step.left_bps),
        waterfall.line_bps,
    );
    body.element(
        "td",
        &[("class", "number")],
        &format!("{sign}{}", rate(step.bps.unsigned_abs())),
    );
    body.element("td", &[("class", "number")], &rate(step.left_bps));
    body.element("td", &[("class", "about")], &step.source);
    body.close("tr");
}

fn picture(body: &mut Markup, kind: &str, from: u64, to: u64, line: u64) {
    let x = |bps: u64| (bps as f64 / line.max(1) as f64).min(1.0) * STEP;
    body.open("td", &[("class", "picture")]);
    body.open("svg", &[("viewBox", "0 0 320 14"), ("aria-hidden", "true")]);
    // A step too small to see still leaves a mark.
    let width = (x(to) - x(from)).max(1.0);
    body.leaf(
        "rect",
        &[
            ("class", kind),
            ("x", &px(x(from).min(STEP - width))),
            ("y", "1"),
            ("width", &px(width)),
            ("height", "12"),
        ],
    );
    body.close("svg");
    body.close("td");
}
