//! The charts, drawn: what the script redraws, and what stays where there is none.

use std::fmt::Write as _;

use linerate_analysis::time_budget::Class;
use linerate_model::record::Flow;
use maud::{Markup, html};

use super::data::Drawn;
use super::limits;
use crate::chart::scale::Scale;
use crate::chart::svg::{self, Frame};
use crate::chart::{Band, Chart, Stroke};
use crate::text::{layout, way};
use crate::view::RunView;

/// The picture's width and height, px.
const SIZE: [f64; 2] = [760.0, 190.0];
/// A legend of more lines is folded.
const MOST_SHOWN: usize = 20;

pub(super) fn section(drawn: &Drawn<'_>) -> Markup {
    let charts = drawn.charts;
    html! {
        section class="charts" id="charts" {
            h2 { "Charts" }
            (bar())
            p class="about" { (told(drawn)) }
            @if charts.charts.is_empty() { p { "Nothing was sampled: there is nothing to draw." } }
            @for direction in &drawn.view.directions {
                @if drawn.view.directions.len() > 1 { h3 { (layout::capital(way(direction.flow))) } }
                (missing(drawn.view, direction.flow))
                (ribbon_legend(charts.bands_of(Some(direction.flow))))
                @for chart in charts.about(Some(direction.flow)) { (figure(drawn, chart, chart.most())) }
            }
            @if charts.about(None).next().is_some() {
                h3 { "Hosts" }
                @for chart in charts.about(None) { (figure(drawn, chart, chart.most())) }
            }
        }
    }
}

/// What the marks on all charts mean.
fn told(drawn: &Drawn<'_>) -> String {
    let charts = drawn.charts;
    let mut said = vec!["Time in seconds since the client let its streams go.".to_owned()];
    if charts.omitted_to_ns.is_some() {
        said.push("Grey: the omitted part, which no figure counts.".to_owned());
    }
    if let Some(ended) = charts.ended_ns.filter(|ended| *ended < charts.to_ns) {
        let at = ended as f64 / 1e9;
        said.push(format!("Broken vertical line: the test's end at {at:.2} s; data in flight then arrives after it."));
    }
    said.join(" ")
}

/// What the ribbon's colours mean.
fn ribbon_legend(bands: &[Band]) -> Markup {
    let shown = |class: &Class| bands.iter().any(|band| band.class == *class);
    html! {
        @if !bands.is_empty() {
            p class="about" { "The ribbon above each chart: what most of the sending streams' time went to." }
            ul class="legend" {
                @for class in Class::ALL.into_iter().filter(shown) { (limits::entry(class, class.words())) }
            }
        }
    }
}

/// Where a cursor's instant is shown, by the script.
pub(super) fn bar() -> Markup {
    html! {
        div class="bar" hidden="" {
            output class="at" {}
            span class="help" {
                "Drag to zoom, double-click for all. Keys on a chart: ← → move, + − zoom, Shift+← → pan, Esc all."
            }
            button type="button" class="all" { "Show all" }
        }
    }
}

/// Says which end is silent, so that nobody looks for its lines.
fn missing(view: &RunView, flow: Flow) -> Markup {
    const SENT: &str = "congestion window, round-trip time, retransmits over time";
    const READ: &str = "what its application read over time";
    html! {
        @for (role, what) in [(flow.sender(), SENT), (flow.receiver(), READ)] {
            @if !view.end(role).known {
                p class="absent" {
                    "The " (layout::role(role)) ", " (view.end(role).software) ", reported no samples: " (what) " are not known."
                }
            }
        }
    }
}

/// A chart with its title, legend and drawing; its axis reaches `most`.
pub(super) fn figure(drawn: &Drawn<'_>, chart: &Chart, most: u64) -> Markup {
    let [width, height] = SIZE;
    let frame = Frame {
        left: 58.0,
        top: 20.0,
        width: width - 58.0 - 12.0,
        height: height - 20.0 - 24.0,
        span_ns: drawn.span_ns,
        scale: Scale::of(chart.unit, most),
    };
    let bands = drawn.charts.bands_of(chart.flow);
    html! {
        figure class="chart" data-chart=(drawn.chart(chart)) {
            figcaption {
                strong { (chart.title) } " "
                span class="about" { (chart.about) }
                // The script tells here what limited at the instant that is pointed at.
                @if !bands.is_empty() { " " span class="limit-now" {} }
            }
            @if chart.lines.len() > MOST_SHOWN {
                details class="fold" {
                    summary { (chart.lines.len()) " lines" }
                    (legend(chart, most))
                }
            } @else {
                (legend(chart, most))
            }
            div class="plot" {
                svg viewBox={ "0 0 " (width) " " (height) } role="img" aria-label=(described(chart)) {
                    (svg::draw(chart, &frame, drawn.charts))
                    (svg::ribbon(&frame, bands))
                }
            }
        }
    }
}

fn legend(chart: &Chart, most: u64) -> Markup {
    let key = |stroke| match stroke {
        Stroke::Filled => "M1 9V2H21V9",
        _ => "M0 5H22",
    };
    html! {
        div class="legend" {
            @for (number, line) in chart.lines.iter().enumerate() {
                div class="entry" data-line=(number) {
                    svg class="key" viewBox="0 0 22 10" aria-hidden="true" {
                        path class=(svg::classes(line)) d=(key(line.stroke)) {}
                    }
                    span class="name" { (line.named(chart.unit, most)) }
                    span class="now" {}
                }
            }
            @if let Some(level) = &chart.level {
                div class="entry level" {
                    svg class="key" viewBox="0 0 22 10" aria-hidden="true" {
                        rect class="interval" x="0" y="2" width="22" height="6" {}
                        path class="mean" d="M0 5H22" {}
                    }
                    span class="name" {
                        "plateau " (chart.unit.spelled(level.mean))
                        @if let Some([low, high]) = level.interval { " (95 %: " (crate::words::rates(low, high)) ")" }
                    }
                }
            }
        }
    }
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
