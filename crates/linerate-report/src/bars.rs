//! Bars with intervals as one figure, for a paper or a ticket: SVG without a script, dark ink on white.
//!
//! All panels share one axis, so that rows and columns can be compared by eye. Bars differ by how dark
//! they are and by their hatching, so that the figure can be read in grey and by the colour-blind. A bar that could
//! not be measured is no bar of zero: there is a cross and a remark.
//!
//! ```
//! use linerate_model::bars::{Bar, BarFigure, Group, Panel};
//!
//! let bar = Bar { bps: Some(9e8), interval: Some([8.8e8, 9.2e8]), remark: None };
//! let group = Group { label: "1500".to_owned(), carries_bps: Some(9.41e8), bars: vec![bar] };
//! let panel = Panel { title: "LAN".to_owned(), limit: None, groups: vec![group] };
//! let figure = BarFigure { title: "MTU".to_owned(), rows: vec![vec![panel]], ..BarFigure::default() };
//! assert!(linerate_report::bars::svg(&figure).starts_with("<svg"));
//! ```

use linerate_model::bars::{Bar, BarFigure, Group, Panel};
use linerate_model::units::{BitRate, three_digits, whole};
use maud::{Markup, PreEscaped, html};

use crate::chart::Unit;
use crate::chart::scale::Scale;
use crate::chart::svg::{document, px, text, text_lines};
use crate::text::layout;

/// Left of the first column, for the axis; between columns; right of the last.
const AXIS: f64 = 64.0;
const BETWEEN: f64 = 20.0;
const RIGHT: f64 = 16.0;
/// A panel's plot.
const PLOT: f64 = 190.0;
const NARROWEST: f64 = 230.0;
/// Above a plot (title) and below it (groups, their name).
const ABOVE: f64 = 46.0;
const BELOW: f64 = 42.0;
/// The widest bar, and what a bar with its figure needs at least.
const WIDEST_BAR: f64 = 44.0;
const BAR_SPACE: f64 = 40.0;
/// Fills of bars, dark and light in turn; more bars begin again.
const FILLS: usize = 6;
/// Pixels of a character of the usual text, about.
const USUAL: f64 = 6.9;

const STYLE: &str = "text{font:12px 'DejaVu Sans','Noto Sans',Helvetica,Arial,sans-serif;fill:#1b1f24}\
text.head{font-size:16px;font-weight:bold}text.title{font-size:13px;font-weight:bold}text.soft{fill:#4a5057}\
text.small{font-size:10.5px}.end{text-anchor:end}.middle{text-anchor:middle}\
.grid{stroke:#d0d7de;fill:none}.axis{stroke:#4a5057;fill:none}.bar{stroke:#1b1f24;stroke-width:.8}\
.whisker{stroke:#1b1f24;stroke-width:1.5;fill:none}.carries{stroke:#1b1f24;stroke-width:2;fill:none}\
.limit{stroke:#a3123a;stroke-width:1.5;stroke-dasharray:6 4;fill:none}text.limited{fill:#a3123a;font-size:10.5px}";

/// Hatchings: dark blue, light orange with lines, green with dots, white with a grid, grey, pale blue with lines.
const PATTERNS: &str = "<defs>\
<pattern id=\"f0\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><rect width=\"8\" height=\"8\" fill=\"#0067b1\"/></pattern>\
<pattern id=\"f1\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"7\" height=\"7\" fill=\"#f7c48b\"/><path d=\"M0 0V7\" stroke=\"#8a4b00\" stroke-width=\"2.2\"/></pattern>\
<pattern id=\"f2\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><rect width=\"6\" height=\"6\" fill=\"#00805e\"/><circle cx=\"3\" cy=\"3\" r=\"1.2\" fill=\"#fff\"/></pattern>\
<pattern id=\"f3\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\"><rect width=\"7\" height=\"7\" fill=\"#fff\"/><path d=\"M0 0H7M0 0V7\" stroke=\"#a5498a\" stroke-width=\"1.6\"/></pattern>\
<pattern id=\"f4\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><rect width=\"8\" height=\"8\" fill=\"#4d4d4d\"/></pattern>\
<pattern id=\"f5\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(-45)\"><rect width=\"7\" height=\"7\" fill=\"#cfe6f7\"/><path d=\"M0 0V7\" stroke=\"#2f93d1\" stroke-width=\"1.6\"/></pattern>\
</defs>";

/// The figure, with a newline at its end.
pub fn svg(figure: &BarFigure) -> String {
    let columns = figure.rows.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let frame = Frame::of(figure, columns);
    let width = frame.whole(columns);
    let mut remarks: Vec<String> = Vec::new();
    let mut y = 6.0;
    let mut parts = vec![head(figure, width, &mut y)];
    for row in &figure.rows {
        for (column, panel) in row.iter().enumerate() {
            let place = Place {
                left: AXIS + column as f64 * (frame.width + BETWEEN),
                top: y + ABOVE,
                first: column == 0,
            };
            parts.push(frame.panel(figure, panel, place, &mut remarks));
        }
        y += ABOVE + PLOT + BELOW;
    }
    let numbered = (1..).zip(&remarks);
    let numbered = numbered.map(|(number, remark)| format!("[{number}] {remark}"));
    for remark in frame.of_all.iter().cloned().chain(numbered) {
        let lines = wrapped(&remark, width - 24.0, USUAL);
        parts.push(text_lines("soft", 12.0, &mut y, 15.0, &lines));
    }
    let body = html! { @for part in parts { (part) } };
    document(
        &figure.title,
        STYLE,
        [width, y + 14.0],
        &html! { (PreEscaped(PATTERNS)) (body) },
    )
}

/// Title, what was measured, and which bar is which; `y` ends where the panels may begin.
fn head(figure: &BarFigure, width: f64, y: &mut f64) -> Markup {
    let head = html! {
        (text_lines("head", 12.0, y, 20.0, &wrapped(&figure.title, width - 24.0, 9.4)))
        @for about in &figure.about {
            (text_lines("soft", 12.0, y, 16.0, &wrapped(about, width - 24.0, USUAL)))
        }
        @if figure.bars.len() > 1 { (legend(figure, *y + 24.0)) }
    };
    *y += if figure.bars.len() > 1 { 28.0 } else { 4.0 };
    head
}

/// Which bar is which.
fn legend(figure: &BarFigure, y: f64) -> Markup {
    let mut x = AXIS + figure.bar_name.chars().count() as f64 * 8.2 + 14.0;
    let mut bars = Vec::new();
    for name in &figure.bars {
        bars.push((x, name));
        x += 28.0 + name.chars().count() as f64 * 7.6 + 20.0;
    }
    html! {
        (text("title", [AXIS, y], &figure.bar_name))
        @for (at, (x, name)) in bars.into_iter().enumerate() {
            (rectangle(at, [x, y - 11.0, 22.0, 13.0]))
            (text("", [x + 28.0, y], name))
        }
        (whisker([x + 6.0, y - 12.0, y + 2.0]))
        (text("soft", [x + 18.0, y], "95 % interval"))
    }
}

/// What all panels share.
struct Frame {
    width: f64,
    scale: Scale,
    /// A remark that all bars have, for which none is marked.
    of_all: Option<String>,
}

#[derive(Clone, Copy)]
struct Place {
    left: f64,
    top: f64,
    /// Whether it has the axis' figures.
    first: bool,
}

impl Frame {
    fn of(figure: &BarFigure, columns: usize) -> Self {
        let panels = || figure.rows.iter().flatten();
        let groups = || panels().flat_map(|panel| &panel.groups);
        let heights = groups().flat_map(|group| {
            let bars = group
                .bars
                .iter()
                .flat_map(|bar| [bar.bps, bar.interval.map(|interval| interval[1])]);
            bars.chain([group.carries_bps]).flatten()
        });
        // What of an interval is far above all bars must not press them to the axis.
        let bars = groups()
            .flat_map(|group| &group.bars)
            .filter_map(|bar| bar.bps);
        let highest_bar = bars.fold(0.0, f64::max);
        let most = heights.fold(0.0, f64::max).min(1.6 * highest_bar.max(1.0));
        let slots = panels()
            .map(|panel| {
                let bars = panel.groups.iter().map(|group| group.bars.len().max(1));
                bars.sum::<usize>() + panel.groups.len()
            })
            .max()
            .unwrap_or(1);
        let wanted = (slots as f64 * BAR_SPACE).max(NARROWEST);
        let wanted = if columns == 1 {
            wanted.max(420.0)
        } else {
            wanted
        };
        Self {
            width: wanted,
            // Room for the figures above the bars.
            scale: Scale::of(Unit::Rate, whole(most * 1.1)),
            of_all: remark_of_all(figure),
        }
    }

    fn whole(&self, columns: usize) -> f64 {
        let columns = columns as f64;
        AXIS + columns * self.width + (columns - 1.0) * BETWEEN + RIGHT
    }

    fn y(&self, place: Place, bps: f64) -> f64 {
        place.top + PLOT * (1.0 - (bps / self.scale.top).clamp(0.0, 1.0))
    }

    fn panel(
        &self,
        figure: &BarFigure,
        panel: &Panel,
        place: Place,
        remarks: &mut Vec<String>,
    ) -> Markup {
        let wide = self.width / panel.groups.len().max(1) as f64;
        let name_at = [place.left + self.width / 2.0, place.top + PLOT + 34.0];
        html! {
            (text("title", [place.left, place.top - 22.0], &panel.title))
            (self.axis(place))
            @for (at, group) in panel.groups.iter().enumerate() {
                (self.group(group, place, [place.left + at as f64 * wide, wide], remarks))
            }
            @if !figure.group_name.is_empty() {
                (text("soft middle", name_at, &figure.group_name))
            }
            @if let Some(limit) = &panel.limit {
                (across("limit", place.left, self.y(place, limit.bps), self.width))
                (text("limited", [place.left, place.top - 7.0], &format!("dashed: {} {}", limit.name, BitRate(whole(limit.bps)))))
            }
        }
    }

    fn axis(&self, place: Place) -> Markup {
        let ticks = self.scale.ticks().into_iter();
        let ticks: Vec<(f64, String)> = ticks
            .map(|(value, label)| (self.y(place, value), label))
            .collect();
        let grid = |(y, _): &(f64, String)| format!("M{:.1} {y:.1}h{:.1}", place.left, self.width);
        let grid: String = ticks.iter().map(grid).collect();
        // Turned, so that it stands beside its axis.
        let (x, y) = (16.0, place.top + PLOT / 2.0);
        html! {
            @if place.first {
                @for (y, label) in &ticks { (text("soft end", [place.left - 6.0, y + 4.0], label)) }
            }
            path class="grid" d=(grid) {}
            (across("axis", place.left, place.top + PLOT, self.width))
            @if place.first {
                text class="soft middle" x=(px(x)) y=(px(y)) transform=(format_args!("rotate(-90 {x:.1} {y:.1})")) {
                    "goodput, " (self.scale.unit)
                }
            }
        }
    }

    fn group(
        &self,
        group: &Group,
        place: Place,
        [left, wide]: [f64; 2],
        remarks: &mut Vec<String>,
    ) -> Markup {
        let count = group.bars.len().max(1) as f64;
        let width = (0.84 * wide / count).min(WIDEST_BAR);
        let start = left + (wide - width * count) / 2.0;
        let carries = group.carries_bps.filter(|bps| *bps <= self.scale.top);
        html! {
            @for (at, bar) in group.bars.iter().enumerate() {
                (self.bar(bar, at, place, [start + at as f64 * width, width], remarks))
            }
            @if let Some(carries) = carries {
                (across("carries", start - 4.0, self.y(place, carries), width * count + 8.0))
            }
            (text("middle", [left + wide / 2.0, place.top + PLOT + 17.0], &group.label))
        }
    }

    fn bar(
        &self,
        bar: &Bar,
        series: usize,
        place: Place,
        [x, width]: [f64; 2],
        remarks: &mut Vec<String>,
    ) -> Markup {
        let (middle, base) = (x + width / 2.0, place.top + PLOT);
        let mark = self.mark(bar, remarks);
        let Some(bps) = bar.bps else {
            return html! {
                (text("middle", [middle, base - 18.0], "×"))
                (text("soft small middle", [middle, base - 5.0], &mark))
            };
        };
        let top = self.y(place, bps);
        let interval = bar.interval.map(|ends| ends.map(|end| self.y(place, end)));
        let above = interval.map_or(top, |[_, high]| top.min(high));
        html! {
            (rectangle(series, [x + 1.5, top, width - 3.0, base - top]))
            @if let Some([low, high]) = interval { (whisker([middle, high, low])) }
            (text("small middle", [middle, above - 7.0], &three_digits(bps / self.scale.size)))
            @if !mark.is_empty() { (text("soft small middle", [middle, base + 28.0], &mark)) }
        }
    }

    /// The number of a bar's own remark, which is added to `remarks` where it is new.
    fn mark(&self, bar: &Bar, remarks: &mut Vec<String>) -> String {
        let own = bar.remark.as_ref();
        let Some(own) = own.filter(|own| self.of_all.as_ref() != Some(own)) else {
            return String::new();
        };
        let known = remarks.iter().position(|known| known == own);
        let at = known.unwrap_or_else(|| {
            remarks.push(own.clone());
            remarks.len() - 1
        });
        format!("[{}]", at + 1)
    }
}

/// The remark that every bar has.
fn remark_of_all(figure: &BarFigure) -> Option<String> {
    let panels = figure.rows.iter().flatten();
    let mut bars = panels
        .flat_map(|panel| &panel.groups)
        .flat_map(|group| &group.bars);
    let first = bars.next()?.remark.as_ref()?;
    bars.all(|bar| bar.remark.as_ref() == Some(first))
        .then(|| first.clone())
}

fn across(class: &str, left: f64, y: f64, width: f64) -> Markup {
    html! { path class=(class) d=(format_args!("M{left:.1} {y:.1}h{width:.1}")) {} }
}

fn rectangle(series: usize, [x, y, width, height]: [f64; 4]) -> Markup {
    let (width, height) = (width.max(1.0), height.max(0.5));
    html! {
        rect class="bar" x=(px(x)) y=(px(y)) width=(px(width)) height=(px(height)) fill={ "url(#f" (series % FILLS) ")" } {}
    }
}

fn whisker([x, high, low]: [f64; 3]) -> Markup {
    let left = x - 4.0;
    let d = format!("M{left:.1} {high:.1}h8M{x:.1} {high:.1}V{low:.1}M{left:.1} {low:.1}h8");
    html! {
        // A light edge lets it be seen on dark bars.
        path d=(d) stroke="#fff" stroke-width="3.6" fill="none" {}
        path class="whisker" d=(d) {}
    }
}

/// A text in lines of at most `width` pixels, where a character takes `each`.
fn wrapped(text: &str, width: f64, each: f64) -> Vec<String> {
    #[expect(clippy::cast_possible_truncation, reason = "a picture's width")]
    let most = (width / each) as usize;
    layout::lines(text, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::bars::Limit;

    fn figure() -> BarFigure {
        let bar = |bps: f64| Bar {
            bps: Some(bps),
            interval: Some([0.9 * bps, 1.1 * bps]),
            remark: None,
        };
        let none = Bar {
            remark: Some("impossible: <MTU> 9000".to_owned()),
            ..Bar::default()
        };
        let group = |label: &str, bars| Group {
            label: label.to_owned(),
            carries_bps: Some(376e6),
            bars,
        };
        let panel = |title: &str| Panel {
            title: title.to_owned(),
            limit: Some(Limit {
                name: "send buffer / RTT".to_owned(),
                bps: 233e6,
            }),
            groups: vec![
                group("1500", vec![bar(2e8), bar(2.1e8)]),
                group("9000", vec![bar(3e8), none.clone()]),
            ],
        };
        BarFigure {
            title: "MTU and queue".to_owned(),
            about: vec!["In a lab.".to_owned()],
            group_name: "MTU".to_owned(),
            bar_name: "txqueuelen".to_owned(),
            bars: vec!["1000".to_owned(), "10000".to_owned()],
            rows: vec![vec![panel("RTT 6ms"), panel("RTT 24ms")]],
        }
    }

    #[test]
    fn all_panels_share_an_axis_and_what_was_not_measured_is_no_bar() {
        let drawn = svg(&figure());
        // Three bars a panel, and two samples in the legend.
        assert_eq!(drawn.matches("class=\"bar\"").count(), 2 * 3 + 2);
        assert_eq!(drawn.matches(">×<").count(), 2);
        assert_eq!(drawn.matches("goodput, Mbit/s").count(), 1);
        assert_eq!(drawn.matches("send buffer / RTT 233 Mbit/s").count(), 2);
        assert!(drawn.contains("[1] impossible: &lt;MTU&gt; 9000"));
    }

    #[test]
    fn every_open_tag_is_closed() {
        let drawn = svg(&figure());
        let opened = drawn.matches('<').count() - drawn.matches("</").count();
        let closed = drawn.matches("</").count() + drawn.matches("/>").count();
        assert_eq!(opened, closed);
    }
}
