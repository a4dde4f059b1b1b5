//! The charts, drawn: what the script redraws, and what stays where there is none.

use std::fmt::Write as _;

use linerate_analysis::time_budget::Class;
use linerate_model::record::{Flow, Role};

use super::data::Drawn;
use super::limits;
use crate::chart::scale::Scale;
use crate::chart::svg::{self, Frame};
use crate::chart::{Band, Chart, Line, Stroke};
use crate::markup::Markup;
use crate::text::{layout, way};
use crate::view::RunView;

/// The picture's width and height, px.
const SIZE: [f64; 2] = [760.0, 190.0];
/// A legend of more lines is folded.
const MOST_SHOWN: usize = 20;

pub(super) fn write(body: &mut Markup, drawn: &Drawn<'_>) {
    body.open("section", &[("class", "charts"), ("id", "charts")]);
    body.element("h2", &[], "Charts");
    bar(body);
    told(body, drawn);
    if drawn.charts.charts.is_empty() {
        body.element("p", &[], "Nothing was sampled: there is nothing to draw.");
    }
    for direction in &drawn.view.directions {
        let charts: Vec<&Chart> = drawn.charts.about(Some(direction.flow)).collect();
        if drawn.view.directions.len() > 1 {
            body.element("h3", &[], &layout::capital(way(direction.flow)));
        }
        missing(body, drawn.view, direction.flow);
        ribbon_legend(body, drawn.charts.bands_of(Some(direction.flow)));
        for chart in charts {
            figure(body, drawn, chart, chart.most());
        }
    }
    let hosts: Vec<&Chart> = drawn.charts.about(None).collect();
    if !hosts.is_empty() {
        body.element("h3", &[], "Hosts");
        for chart in hosts {
            figure(body, drawn, chart, chart.most());
        }
    }
    body.close("section");
}

/// What the marks on all charts mean.
fn told(body: &mut Markup, drawn: &Drawn<'_>) {
    let charts = drawn.charts;
    let mut said = vec!["Time in seconds since the client let its streams go.".to_owned()];
    if charts.omitted_to_ns.is_some() {
        said.push("Grey: the omitted part, which no figure counts.".to_owned());
    }
    if let Some(ended) = charts.ended_ns.filter(|ended| *ended < charts.to_ns) {
        let at = ended as f64 / 1e9;
        said.push(format!("Broken upright line: the test's end at {at:.2} s; what was under way then arrives after it."));
    }
    body.element("p", &[("class", "about")], &said.join(" "));
}

/// What the ribbon's colours mean.
pub(super) fn ribbon_legend(body: &mut Markup, bands: &[Band]) {
    if bands.is_empty() {
        return;
    }
    body.element(
        "p",
        &[("class", "about")],
        "The ribbon above each chart: what most of the sending streams' time went to.",
    );
    body.open("ul", &[("class", "legend")]);
    for class in Class::ALL {
        if bands.iter().any(|band| band.class == class) {
            limits::entry(body, class, class.words());
        }
    }
    body.close("ul");
}

/// Where a cursor's instant is told; the script shows it.
pub(super) fn bar(body: &mut Markup) {
    body.open("div", &[("class", "bar"), ("hidden", "")]);
    body.element("output", &[("class", "at")], "");
    body.element("span", &[("class", "help")], "Drag to zoom, double-click for all. Keys on a chart: ← → move, + − zoom, Shift+← → pan, Esc all.");
    body.element(
        "button",
        &[("type", "button"), ("class", "all")],
        "Show all",
    );
    body.close("div");
}

/// Says which end is silent, so that nobody looks for its lines.
fn missing(body: &mut Markup, view: &RunView, flow: Flow) {
    for (role, what) in [
        (
            flow.sender(),
            "congestion window, round-trip time, retransmits over time",
        ),
        (flow.receiver(), "what its application read over time"),
    ] {
        let end = view.end(role);
        if !end.known {
            let name = match role {
                Role::Client => "client",
                Role::Server => "server",
            };
            body.element(
                "p",
                &[("class", "absent")],
                &format!(
                    "The {name}, {}, told no samples: {what} are not known.",
                    end.software
                ),
            );
        }
    }
}

/// A chart with its title, legend and drawing; its axis reaches `most`.
pub(super) fn figure(body: &mut Markup, drawn: &Drawn<'_>, chart: &Chart, most: u64) {
    let key = drawn.chart(chart);
    body.open("figure", &[("class", "chart"), ("data-chart", &key)]);
    body.open("figcaption", &[]);
    body.element("strong", &[], chart.title);
    body.text(" ");
    body.element("span", &[("class", "about")], &chart.about);
    // The script tells here what limited at the instant that is pointed at.
    if !drawn.charts.bands_of(chart.flow).is_empty() {
        body.text(" ");
        body.element("span", &[("class", "limit-now")], "");
    }
    body.close("figcaption");
    legend(body, chart, most);
    let label = described(chart);
    body.open("div", &[("class", "plot")]);
    let view_box = format!("0 0 {} {}", SIZE[0], SIZE[1]);
    body.open(
        "svg",
        &[
            ("viewBox", &view_box),
            ("role", "img"),
            ("aria-label", &label),
        ],
    );
    let frame = Frame {
        left: 58.0,
        top: 20.0,
        width: SIZE[0] - 58.0 - 12.0,
        height: SIZE[1] - 20.0 - 24.0,
        span_ns: drawn.span_ns,
        scale: Scale::of(chart.unit, most),
    };
    svg::draw(body, chart, &frame, drawn.charts);
    svg::ribbon(body, &frame, drawn.charts.bands_of(chart.flow));
    body.close("svg");
    body.close("div");
    body.close("figure");
}

fn legend(body: &mut Markup, chart: &Chart, most: u64) {
    let folded = chart.lines.len() > MOST_SHOWN;
    if folded {
        body.open("details", &[("class", "fold")]);
        body.element("summary", &[], &format!("{} lines", chart.lines.len()));
    }
    body.open("ul", &[("class", "legend")]);
    for (number, line) in chart.lines.iter().enumerate() {
        let number = number.to_string();
        body.open("li", &[("data-line", &number)]);
        key(body, line);
        body.element("span", &[("class", "name")], &line.named(chart.unit, most));
        body.element("span", &[("class", "now")], "");
        body.close("li");
    }
    if let Some(level) = &chart.level {
        body.open("li", &[("class", "level")]);
        body.own("<svg class=\"key\" viewBox=\"0 0 22 10\" aria-hidden=\"true\"><rect class=\"interval\" x=\"0\" y=\"2\" width=\"22\" height=\"6\"/><path class=\"mean\" d=\"M0 5H22\"/></svg>");
        let interval = level.interval.map_or_else(String::new, |[low, high]| {
            format!(" (95 %: {})", crate::words::rates(low, high))
        });
        body.element(
            "span",
            &[("class", "name")],
            &format!("plateau {}{interval}", chart.unit.spelled(level.mean)),
        );
        body.close("li");
    }
    body.close("ul");
    if folded {
        body.close("details");
    }
}

/// A line's sample.
fn key(body: &mut Markup, line: &Line) {
    body.open(
        "svg",
        &[
            ("class", "key"),
            ("viewBox", "0 0 22 10"),
            ("aria-hidden", "true"),
        ],
    );
    let class = format!("line {} c{}", svg::stroke(line.stroke), line.colour);
    let d = if line.stroke == Stroke::Filled {
        "M1 9V2H21V9"
    } else {
        "M0 5H22"
    };
    body.leaf("path", &[("class", &class), ("d", d)]);
    body.close("svg");
}

/// A chart in words: the range of each of its lines.
fn described(chart: &Chart) -> String {
    let mut text = format!("{}:", chart.title);
    for line in chart.lines.iter().take(MOST_SHOWN) {
        if let (Some(least), Some(most)) = (line.least(), line.most()) {
            let _ = write!(
                text,
                " {} from {} to {};",
                line.name,
                chart.unit.spelled(least),
                chart.unit.spelled(most)
            );
        }
    }
    if chart.lines.len() > MOST_SHOWN {
        let _ = write!(text, " and {} more", chart.lines.len() - MOST_SHOWN);
    }
    text
}
