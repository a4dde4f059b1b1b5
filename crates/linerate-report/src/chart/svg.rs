//! A chart as SVG: axes, level, lines. Colours come from the style sheet around it.

use std::fmt::Write as _;

use super::scale::{self, Scale};
use super::thin;
use super::{Band, Chart, Charts, Level, Line, Point, Shape, Stroke};
use linerate_analysis::time_budget::Class;
use maud::{Markup, PreEscaped, html};

use crate::markup::finished;

/// Where a chart stands in its picture, and which part of it is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// Left edge of the plot, px.
    pub(crate) left: f64,
    /// Its upper edge.
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// The instants at its edges, ns since the start.
    pub(crate) span_ns: [i64; 2],
    pub(crate) scale: Scale,
}

/// Pixels between two slices that lines are thinned to.
const SLICE: f64 = 3.0;

/// Slices of all lines of a chart together: a hundred streams are drawn coarser than one.
const MOST_SLICES: usize = 8000;
/// A line has at least this many.
const LEAST_SLICES: usize = 24;

impl Frame {
    fn x(&self, at_ns: i64) -> f64 {
        let [from, to] = self.span_ns.map(|at| at as f64);
        let share = (at_ns as f64 - from) / (to - from).max(1.0);
        self.left + share.clamp(-0.01, 1.01) * self.width
    }

    fn y(&self, value: f64) -> f64 {
        self.top + self.height * (1.0 - (value / self.scale.top).clamp(0.0, 1.0))
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    fn right(&self) -> f64 {
        self.left + self.width
    }
}

/// A whole picture, ink on white paper, with a newline at its end.
pub(crate) fn document(title: &str, style: &str, size: [f64; 2], body: &Markup) -> String {
    let [width, height] = size.map(|length| format!("{length:.0}"));
    finished(html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } role="img" {
            title { (title) }
            style { (PreEscaped(style)) }
            rect width=(width) height=(height) fill="#ffffff" {}
            (body)
        }
        "\n"
    })
}

/// A text at its place.
pub(crate) fn text(class: &str, [x, y]: [f64; 2], words: &str) -> Markup {
    html! { text class=(class) x=(px(x)) y=(px(y)) { (words) } }
}

/// Lines of text one below the other, `step` px apart, the first of them as far below `y`, which ends at the last.
pub(crate) fn text_lines(class: &str, x: f64, y: &mut f64, step: f64, lines: &[String]) -> Markup {
    let mut next = || {
        *y += step;
        *y
    };
    html! {
        @for line in lines { (text(class, [x, next()], line)) }
    }
}

/// Axes, level and lines of one of the charts, with the omitted part shaded and the test's end marked.
pub(crate) fn draw(chart: &Chart, frame: &Frame, charts: &Charts) -> Markup {
    let ended = charts.ended_ns.filter(|ended| *ended < frame.span_ns[1]);
    let each = MOST_SLICES / chart.lines.len().max(1);
    html! {
        @if let Some(until) = charts.omitted_to_ns {
            (shade(frame, "omitted", [frame.span_ns[0], until]))
        }
        (axes(frame))
        @if let Some(x) = ended.map(|ended| frame.x(ended)) {
            path class="ended" d=(format_args!("M{x:.1} {:.1}V{:.1}", frame.top, frame.bottom())) {}
        }
        @if let Some(level) = &chart.level { (plateau(frame, level)) }
        @for line in &chart.lines { (draw_line(frame, line, each.max(LEAST_SLICES))) }
    }
}

/// What a direction's time went to, as a ribbon above the plot.
pub(crate) fn ribbon(frame: &Frame, bands: &[Band]) -> Markup {
    let top = frame.top - 7.0;
    let part = |band: &Band| {
        let (left, right) = (frame.x(band.from_ns), frame.x(band.to_ns));
        format!("M{left:.1} {top:.1}H{right:.1}v5H{left:.1}z")
    };
    let parts = |class| -> String {
        let own = bands.iter().filter(|band| band.class == class);
        own.map(part).collect()
    };
    html! {
        @for (class, d) in Class::ALL.map(|class| (class, parts(class))) {
            @if !d.is_empty() { path class={ "part " (class_style(class)) } d=(d) {} }
        }
    }
}

/// The style of a class, the same in bars, steps and ribbons.
pub(crate) const fn class_style(class: Class) -> &'static str {
    match class {
        Class::Application => "k0",
        Class::SendBuffer => "k1",
        Class::ReceiveWindow => "k2",
        Class::CongestionWindow => "k3",
        Class::Recovery => "k4",
        Class::Timeout => "k5",
        Class::FillingPath => "k6",
    }
}

/// A span of time, shaded over the whole height.
fn shade(frame: &Frame, class: &str, [from, to]: [i64; 2]) -> Markup {
    let (left, right) = (
        frame.x(from).max(frame.left),
        frame.x(to).min(frame.right()),
    );
    html! {
        @if right > left {
            (rectangle(class, [left, frame.top, right, frame.bottom()]))
        }
    }
}

fn rectangle(class: &str, [left, top, right, bottom]: [f64; 4]) -> Markup {
    let (width, height) = (right - left, (bottom - top).max(1.0));
    html! { rect class=(class) x=(px(left)) y=(px(top)) width=(px(width)) height=(px(height)) {} }
}

fn axes(frame: &Frame) -> Markup {
    let (left, bottom, right) = (frame.left, frame.bottom(), frame.right());
    let [from, to] = frame.span_ns.map(|at| at as f64 / 1e9);
    #[expect(clippy::cast_possible_truncation, reason = "a picture's width")]
    let many = (frame.width / 80.0) as usize;
    let values: Vec<(f64, String)> = frame
        .scale
        .ticks()
        .into_iter()
        .map(|(value, label)| (frame.y(value), label))
        .collect();
    let instants: Vec<(f64, String)> = scale::seconds([from, to], many)
        .into_iter()
        .map(|(at, label)| {
            (
                left + (at - from) / (to - from).max(1e-9) * frame.width,
                label,
            )
        })
        .collect();
    let mut grid = String::new();
    for (y, _) in &values {
        let _ = write!(grid, "M{left:.1} {y:.1}H{right:.1}");
    }
    for (x, _) in &instants {
        let _ = write!(grid, "M{x:.1} {bottom:.1}V{:.1}", bottom + 4.0);
    }
    html! {
        @for (y, label) in &values { (text("tick end", [left - 6.0, y + 4.0], label)) }
        @for (x, label) in &instants {
            // The unit stands at the axis' end.
            @if *x < right - 14.0 { (text("tick middle", [*x, bottom + 16.0], label)) }
        }
        path class="grid" d=(grid) {}
        (text("tick end", [right, bottom + 16.0], "s"))
        (text("unit end", [left - 6.0, frame.top - 8.0], frame.scale.unit))
    }
}

fn plateau(frame: &Frame, level: &Level) -> Markup {
    let (left, right) = (frame.x(level.from_ns), frame.x(level.to_ns));
    let y = frame.y(level.mean as f64);
    html! {
        @if let Some([low, high]) = level.interval {
            (rectangle("interval", [left, frame.y(high as f64), right, frame.y(low as f64)]))
        }
        path class="mean" d=(format_args!("M{left:.1} {y:.1}H{right:.1}")) {}
    }
}

fn draw_line(frame: &Frame, line: &Line, most: usize) -> Markup {
    #[expect(clippy::cast_possible_truncation, reason = "a picture's width")]
    let slices = (frame.width / SLICE) as usize;
    let points = thin::thinned(&line.points, slices.min(most));
    let d = path(frame, &points, line.shape, line.stroke == Stroke::Filled);
    html! { path class=(classes(line)) d=(d) {} }
}

/// The classes of a line: its stroke and its colour.
pub(crate) fn classes(line: &Line) -> String {
    format!("line {} c{}", stroke(line.stroke), line.colour)
}

/// The class of a stroke.
const fn stroke(stroke: Stroke) -> &'static str {
    match stroke {
        Stroke::Strong => "strong",
        Stroke::Plain => "plain",
        Stroke::Faint => "faint",
        Stroke::Dashed => "dashed",
        Stroke::Dotted => "dotted",
        Stroke::Filled => "filled",
    }
}

/// A path through the points, broken where there is no value.
fn path(frame: &Frame, points: &[Point], shape: Shape, filled: bool) -> String {
    let mut d = String::with_capacity(points.len() * 12);
    let mut drawing = false;
    let mut last = 0.0;
    for point in points {
        let x = frame.x(point.at_ns);
        let Some(value) = point.value else {
            if drawing && shape == Shape::Step {
                let _ = write!(d, "H{x:.1}");
            }
            if drawing && filled {
                let _ = write!(d, "V{:.1}", frame.bottom());
            }
            drawing = false;
            continue;
        };
        let y = frame.y(value as f64);
        match (drawing, shape) {
            (false, _) if filled => {
                let _ = write!(d, "M{x:.1} {:.1}V{y:.1}", frame.bottom());
            }
            (false, _) => {
                let _ = write!(d, "M{x:.1} {y:.1}");
            }
            (true, Shape::Curve) => {
                let _ = write!(d, "L{x:.1} {y:.1}");
            }
            (true, Shape::Step) => {
                let _ = write!(d, "H{x:.1}");
                if (y - last).abs() >= 0.05 {
                    let _ = write!(d, "V{y:.1}");
                }
            }
        }
        (drawing, last) = (true, y);
    }
    if drawing && filled {
        let _ = write!(d, "V{:.1}", frame.bottom());
    }
    d
}

/// A length with a decimal.
pub(crate) fn px(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::super::Unit;
    use super::*;

    fn frame() -> Frame {
        Frame {
            left: 0.0,
            top: 0.0,
            width: 100.0,
            height: 50.0,
            span_ns: [0, 100],
            scale: Scale {
                unit: "B",
                top: 50.0,
                step: 10.0,
                size: 1.0,
            },
        }
    }

    fn points(values: &[(i64, Option<u64>)]) -> Vec<Point> {
        values
            .iter()
            .map(|(at_ns, value)| Point {
                at_ns: *at_ns,
                value: *value,
            })
            .collect()
    }

    #[test]
    fn a_break_is_a_gap_and_no_zero() {
        let line = points(&[(0, Some(10)), (10, Some(20)), (20, None), (30, Some(50))]);
        assert_eq!(
            path(&frame(), &line, Shape::Curve, false),
            "M0.0 40.0L10.0 30.0M30.0 0.0"
        );
        assert_eq!(
            path(&frame(), &line, Shape::Step, false),
            "M0.0 40.0H10.0V30.0H20.0M30.0 0.0"
        );
    }

    #[test]
    fn a_filled_line_stands_on_the_axis() {
        let line = points(&[(0, Some(10)), (10, Some(10))]);
        assert_eq!(
            path(&frame(), &line, Shape::Step, true),
            "M0.0 50.0V40.0H10.0V50.0"
        );
    }

    #[test]
    fn the_highest_value_reaches_the_top_of_its_scale() {
        let frame = Frame {
            scale: Scale::of(Unit::Bytes, 40),
            ..frame()
        };
        assert!((frame.y(40.0) - frame.top).abs() < 10.0 && frame.y(40.0) >= frame.top);
    }
}
