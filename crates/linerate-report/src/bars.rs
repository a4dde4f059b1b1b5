//! Bars with intervals as one figure, for a paper or a ticket: SVG without a script, dark ink on white.
//!
//! All panels share one axis, so that rows and columns can be compared by eye. Bars are told apart by how dark
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

use std::fmt::Write as _;

use linerate_model::bars::{Bar, BarFigure, Group, Panel};
use linerate_model::units::{BitRate, three_digits, whole};

use crate::chart::Unit;
use crate::chart::scale::Scale;
use crate::chart::svg::px;
use crate::markup::Markup;

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
    let mut body = Markup::default();
    let mut remarks: Vec<String> = Vec::new();
    let of_all = frame.of_all.clone();
    let mut y = head(&mut body, figure, frame.whole(columns));
    for row in &figure.rows {
        for (column, panel) in row.iter().enumerate() {
            let left = AXIS + column as f64 * (frame.width + BETWEEN);
            let place = Place {
                left,
                top: y + ABOVE,
                first: column == 0,
            };
            frame.panel(&mut body, figure, panel, place, &mut remarks);
        }
        y += ABOVE + PLOT + BELOW;
    }
    if let Some(remark) = &of_all {
        for line in wrapped(remark, frame.whole(columns) - 24.0, USUAL) {
            y += 15.0;
            text(&mut body, "soft", [12.0, y], &line);
        }
    }
    for (number, remark) in (1..).zip(&remarks) {
        for line in wrapped(
            &format!("[{number}] {remark}"),
            frame.whole(columns) - 24.0,
            USUAL,
        ) {
            y += 15.0;
            text(&mut body, "soft", [12.0, y], &line);
        }
    }
    document(figure, &body, [frame.whole(columns), y + 14.0])
}

fn document(figure: &BarFigure, body: &Markup, size: [f64; 2]) -> String {
    let [width, height] = size.map(|length| format!("{length:.0}"));
    let mut all = Markup::default();
    all.open(
        "svg",
        &[
            ("xmlns", "http://www.w3.org/2000/svg"),
            ("width", &width),
            ("height", &height),
            ("viewBox", &format!("0 0 {width} {height}")),
            ("role", "img"),
        ],
    );
    all.element("title", &[], &figure.title);
    all.own("<style>");
    all.own(STYLE);
    all.own("</style>");
    all.own(PATTERNS);
    let paper = [
        ("width", &*width),
        ("height", &*height),
        ("fill", "#ffffff"),
    ];
    all.leaf("rect", &paper);
    all.append(body);
    all.close("svg");
    all.own("\n");
    all.finish()
}

/// Title, what was measured, and which bar is which; says where the panels may begin.
fn head(body: &mut Markup, figure: &BarFigure, width: f64) -> f64 {
    let mut y = 6.0;
    for line in wrapped(&figure.title, width - 24.0, 9.4) {
        y += 20.0;
        text(body, "head", [12.0, y], &line);
    }
    for about in &figure.about {
        for line in wrapped(about, width - 24.0, USUAL) {
            y += 16.0;
            text(body, "soft", [12.0, y], &line);
        }
    }
    if figure.bars.len() > 1 {
        y += 24.0;
        let mut x = AXIS;
        text(body, "title", [x, y], &figure.bar_name);
        x += figure.bar_name.chars().count() as f64 * 8.2 + 14.0;
        for (at, name) in figure.bars.iter().enumerate() {
            rectangle(body, at, [x, y - 11.0, 22.0, 13.0]);
            text(body, "", [x + 28.0, y], name);
            x += 28.0 + name.chars().count() as f64 * 7.6 + 20.0;
        }
        whisker(body, [x + 6.0, y - 12.0, y + 2.0]);
        text(body, "soft", [x + 18.0, y], "95 % interval");
    }
    y + 4.0
}

/// What all panels share.
struct Frame {
    width: f64,
    scale: Scale,
    /// A remark that all bars have, for which none is marked.
    of_all: Option<String>,
}

/// Where a panel stands.
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
        body: &mut Markup,
        figure: &BarFigure,
        panel: &Panel,
        place: Place,
        remarks: &mut Vec<String>,
    ) {
        text(body, "title", [place.left, place.top - 22.0], &panel.title);
        self.axis(body, place);
        let wide = self.width / panel.groups.len().max(1) as f64;
        for (at, group) in panel.groups.iter().enumerate() {
            let left = place.left + at as f64 * wide;
            self.group(body, group, place, [left, wide], remarks);
        }
        if !figure.group_name.is_empty() {
            let at = [place.left + self.width / 2.0, place.top + PLOT + 34.0];
            text(body, "soft middle", at, &figure.group_name);
        }
        if let Some(limit) = &panel.limit {
            let y = self.y(place, limit.bps);
            let d = format!("M{:.1} {y:.1}h{:.1}", place.left, self.width);
            body.leaf("path", &[("class", "limit"), ("d", &d)]);
            let words = format!("dashed: {} {}", limit.name, BitRate(whole(limit.bps)));
            text(body, "limited", [place.left, place.top - 7.0], &words);
        }
    }

    fn axis(&self, body: &mut Markup, place: Place) {
        let mut grid = String::new();
        for (value, label) in self.scale.ticks() {
            let y = self.y(place, value);
            let _ = write!(grid, "M{:.1} {y:.1}h{:.1}", place.left, self.width);
            if place.first {
                text(body, "soft end", [place.left - 6.0, y + 4.0], &label);
            }
        }
        body.leaf("path", &[("class", "grid"), ("d", &grid)]);
        let d = format!(
            "M{:.1} {:.1}h{:.1}",
            place.left,
            place.top + PLOT,
            self.width
        );
        body.leaf("path", &[("class", "axis"), ("d", &d)]);
        if place.first {
            // Turned, so that it stands beside its axis.
            let (x, y) = (16.0, place.top + PLOT / 2.0);
            let turn = format!("rotate(-90 {x:.1} {y:.1})");
            body.element(
                "text",
                &[
                    ("class", "soft middle"),
                    ("x", &px(x)),
                    ("y", &px(y)),
                    ("transform", &turn),
                ],
                &format!("goodput, {}", self.scale.unit),
            );
        }
    }

    fn group(
        &self,
        body: &mut Markup,
        group: &Group,
        place: Place,
        [left, wide]: [f64; 2],
        remarks: &mut Vec<String>,
    ) {
        let count = group.bars.len().max(1) as f64;
        let width = (0.84 * wide / count).min(WIDEST_BAR);
        let start = left + (wide - width * count) / 2.0;
        for (at, bar) in group.bars.iter().enumerate() {
            let x = start + at as f64 * width;
            self.bar(body, bar, at, place, [x, width], remarks);
        }
        if let Some(carries) = group.carries_bps.filter(|bps| *bps <= self.scale.top) {
            let y = self.y(place, carries);
            let d = format!("M{:.1} {y:.1}h{:.1}", start - 4.0, width * count + 8.0);
            body.leaf("path", &[("class", "carries"), ("d", &d)]);
        }
        let at = [left + wide / 2.0, place.top + PLOT + 17.0];
        text(body, "middle", at, &group.label);
    }

    fn bar(
        &self,
        body: &mut Markup,
        bar: &Bar,
        series: usize,
        place: Place,
        [x, width]: [f64; 2],
        remarks: &mut Vec<String>,
    ) {
        let middle = x + width / 2.0;
        let own = bar.remark.as_ref();
        let own = own.filter(|remark| self.of_all.as_ref() != Some(remark));
        let mark = own.map(|remark| {
            let known = remarks.iter().position(|known| known == remark);
            known.unwrap_or_else(|| {
                remarks.push(remark.clone());
                remarks.len() - 1
            }) + 1
        });
        let mark = mark.map_or_else(String::new, |mark| format!("[{mark}]"));
        let Some(bps) = bar.bps else {
            let base = place.top + PLOT;
            text(body, "middle", [middle, base - 18.0], "×");
            text(body, "soft small middle", [middle, base - 5.0], &mark);
            return;
        };
        let top = self.y(place, bps);
        rectangle(
            body,
            series,
            [x + 1.5, top, width - 3.0, place.top + PLOT - top],
        );
        let mut above = top;
        if let Some([low, high]) = bar.interval {
            let [low, high] = [low, high].map(|end| self.y(place, end));
            whisker(body, [middle, high, low]);
            above = above.min(high);
        }
        let value = three_digits(bps / self.scale.size);
        text(body, "small middle", [middle, above - 7.0], &value);
        if !mark.is_empty() {
            text(
                body,
                "soft small middle",
                [middle, place.top + PLOT + 4.0 + 24.0],
                &mark,
            );
        }
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

fn rectangle(body: &mut Markup, series: usize, [x, y, width, height]: [f64; 4]) {
    let fill = format!("url(#f{})", series % FILLS);
    body.leaf(
        "rect",
        &[
            ("class", "bar"),
            ("x", &px(x)),
            ("y", &px(y)),
            ("width", &px(width.max(1.0))),
            ("height", &px(height.max(0.5))),
            ("fill", &fill),
        ],
    );
}

fn whisker(body: &mut Markup, [x, high, low]: [f64; 3]) {
    // A light edge lets it be seen on dark bars.
    let d = format!(
        "M{:.1} {high:.1}h8M{x:.1} {high:.1}V{low:.1}M{:.1} {low:.1}h8",
        x - 4.0,
        x - 4.0
    );
    body.leaf(
        "path",
        &[
            ("d", &d),
            ("stroke", "#fff"),
            ("stroke-width", "3.6"),
            ("fill", "none"),
        ],
    );
    body.leaf("path", &[("class", "whisker"), ("d", &d)]);
}

fn text(body: &mut Markup, class: &str, [x, y]: [f64; 2], words: &str) {
    body.element(
        "text",
        &[("class", class), ("x", &px(x)), ("y", &px(y))],
        words,
    );
}

/// A text in lines of at most `width` pixels, where a character takes `each`.
fn wrapped(text: &str, width: f64, each: f64) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut();
        if let Some(line) = last {
            let length = line.chars().count() + 1 + word.chars().count();
            if line.is_empty() || length as f64 * each <= width {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
                continue;
            }
        }
        lines.push(word.to_owned());
    }
    lines
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
