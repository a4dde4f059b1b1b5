//! A run as one figure, for a paper or a ticket: SVG without a script, dark ink on white.
//!
//! For each direction: the rate with its plateau and the plateau's interval, then what explains it: congestion
//! window and round-trip time (TCP), or what was lost (UDP). What is not known has no panel, and a line says so.
//!
//! ```
//! use linerate_analysis::evidence::Evidence;
//! use linerate_model::plan::Plan;
//! use linerate_report::{chart::Charts, svg, view::RunView};
//! use linerate_testing::fixture;
//!
//! let record = fixture::run(&Plan::new("server"), &fixture::Traffic::default());
//! let evidence = Evidence::of(&record);
//! let view = RunView::of(&evidence, &[]);
//! assert!(svg::figure(&view, &Charts::of(&view, &evidence)).starts_with("<svg"));
//! ```

use linerate_model::record::Flow;
use maud::{Markup, html};

use crate::chart::scale::Scale;
use crate::chart::svg::{self, Frame};
use crate::chart::{Chart, Charts, Line, Panel, Stroke};
use crate::date;
use crate::text::{figures, header, layout, way};
use crate::view::{EndView, RunView};
use crate::words::{self, plain};

/// Width of the figure, px.
const WIDTH: f64 = 860.0;
/// Left and right of a panel's plot.
const SIDES: [f64; 2] = [66.0, 18.0];
/// Height of a panel's plot.
const PLOT: f64 = 150.0;
/// Above a plot (title, legend, unit) and below it (ticks).
const AROUND: [f64; 2] = [48.0, 26.0];
/// Characters in a line of the title.
const TITLE: usize = 84;
/// Characters in another line of the head.
const LINE: usize = 118;
/// Entries in a panel's legend.
const MOST_ENTRIES: usize = 4;
/// The panels of a direction.
const PANELS: [Panel; 5] = [
    Panel::Goodput,
    Panel::CongestionWindow,
    Panel::Rtt,
    Panel::Datagrams,
    Panel::Delay,
];

/// Ink on white paper, whatever reads it. The same palette as the page's, which tells colours apart for the
/// colour-blind.
const STYLE: &str = "text{font:13px 'DejaVu Sans','Noto Sans',Helvetica,Arial,sans-serif;fill:#1b1f24}\
text.head{font-size:16px;font-weight:bold}text.soft,text.tick,text.unit{fill:#4a5057;font-size:12px}\
.end{text-anchor:end}.middle{text-anchor:middle}.grid{stroke:#d0d7de;fill:none}\
.line{fill:none;stroke-width:1.4;stroke-linejoin:round}.strong{stroke-width:2.4}.faint{stroke-width:1;opacity:.42}\
.dashed{stroke-dasharray:6 3}.dotted{stroke-dasharray:1.5 3;stroke-width:1.6}.filled{stroke-width:1;fill-opacity:.35}\
.c0{stroke:#0067b1}.c1{stroke:#c44e00}.c2{stroke:#00805e}.c3{stroke:#a5498a}.c4{stroke:#8a6a00}.c5{stroke:#2f93d1}.c6{stroke:#4d4d4d}.c7{stroke:#7a3b12}\
.filled.c0{fill:#0067b1}.filled.c1{fill:#c44e00}.filled.c2{fill:#00805e}.filled.c3{fill:#a5498a}.filled.c4{fill:#8a6a00}.filled.c5{fill:#2f93d1}.filled.c6{fill:#4d4d4d}.filled.c7{fill:#7a3b12}\
.mean{stroke:#c44e00;stroke-width:1.6;stroke-dasharray:9 4;fill:none}.interval{fill:#c44e00;opacity:.25}.omitted{fill:#777;opacity:.16}.ended{stroke:#777;stroke-dasharray:2 4;fill:none}";

/// The figure, with a newline at its end.
pub fn figure(view: &RunView, charts: &Charts) -> String {
    let mut y = 6.0;
    let mut parts = vec![head(view, &mut y)];
    for direction in &view.directions {
        for chart in panels(charts, direction.flow) {
            parts.push(panel(charts, chart, view.directions.len() > 1, y));
            y += AROUND[0] + PLOT + AROUND[1];
        }
        for text in absent(view, charts, direction.flow) {
            parts.push(svg::text("soft", [SIDES[0], y + 8.0], &text));
            y += 22.0;
        }
    }
    let title = format!("linerate: {}", header::test(&view.plan));
    let body = html! { @for part in parts { (part) } };
    svg::document(&title, STYLE, [WIDTH, y + 8.0], &body)
}

fn panels(charts: &Charts, flow: Flow) -> impl Iterator<Item = &Chart> {
    PANELS
        .into_iter()
        .filter_map(move |panel| charts.about(Some(flow)).find(|chart| chart.panel == panel))
}

/// What was tested, what came out, between whom and when; `y` ends where the panels may begin.
fn head(view: &RunView, y: &mut f64) -> Markup {
    let title = words::with(view.plan.title.as_deref(), |title| {
        format!("{}: ", plain(title))
    });
    let title = wrapped(&format!("{title}{}", header::test(&view.plan)), TITLE);
    let goodput = view.directions.iter().map(|direction| {
        let way = if view.directions.len() > 1 {
            format!("{}: ", layout::capital(way(direction.flow)))
        } else {
            "Goodput ".to_owned()
        };
        format!("{way}{}", figures::goodput(&direction.figures))
    });
    let name = |end: &EndView| {
        let name = end.name.as_deref().or(end.host.hostname.as_deref());
        name.map_or_else(|| plain(&end.address), plain)
    };
    let about = format!(
        "{} to {}, {}; {} {}",
        name(&view.client),
        name(&view.server),
        date::rfc1123(view.started_at_unix_ms / 1000),
        plain(&view.software.name),
        plain(&view.software.version),
    );
    let head = html! {
        (svg::text_lines("head", 12.0, y, 19.0, &title))
        @for text in goodput.chain([about]) {
            (svg::text_lines("soft", 12.0, y, 17.0, &wrapped(&text, LINE)))
        }
    };
    *y += 10.0;
    head
}

/// A text in lines of at most `width` characters, at most three of them.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    const MOST: usize = 3;
    let mut lines = layout::lines(text, width);
    if lines.len() > MOST {
        lines.truncate(MOST);
        lines[MOST - 1].push_str(" …");
    }
    lines
        .iter()
        .map(|line| shortened(line, width + 2))
        .collect()
}

/// A panel at `top`.
fn panel(charts: &Charts, chart: &Chart, several: bool, top: f64) -> Markup {
    let way = words::with(chart.flow.filter(|_| several), |flow| {
        format!(", {}", way(flow))
    });
    let title = format!("{}{way}", chart.title);
    let frame = Frame {
        left: SIDES[0],
        top: top + AROUND[0],
        width: WIDTH - SIDES[0] - SIDES[1],
        height: PLOT,
        span_ns: [charts.from_ns, charts.to_ns],
        scale: Scale::of(chart.unit, chart.most()),
    };
    html! {
        (svg::text("panel", [SIDES[0], top + 14.0], &title))
        (legend(chart, top + 33.0))
        (svg::draw(chart, &frame, charts))
    }
}

/// The lines' samples and names in a row.
fn legend(chart: &Chart, y: f64) -> Markup {
    let mut next = SIDES[0];
    let placed = entries(chart).into_iter().map(|(class, name)| {
        let x = next;
        next += 30.0 + name.chars().count() as f64 * 7.0 + 18.0;
        (x, class, name)
    });
    html! {
        @for (x, class, name) in placed {
            path class=(class) d=(format_args!("M{x:.1} {:.1}h24", y - 4.0)) {}
            (svg::text("soft", [x + 30.0, y], &name))
        }
    }
}

/// The classes and names of a legend's entries; lines of many streams are told by their kind.
fn entries(chart: &Chart) -> Vec<(String, String)> {
    let most = chart.most();
    let mut entries: Vec<(String, String)> = if chart.lines.len() <= MOST_ENTRIES {
        let named = |line: &Line| (svg::classes(line), line.named(chart.unit, most));
        chart.lines.iter().map(named).collect()
    } else {
        kinds(chart)
    };
    entries.extend(chart.level.map(|level| {
        let interval = level.interval.map_or("", |_| ", with its 95 % interval");
        let mean = chart.unit.spelled(level.mean);
        ("mean".to_owned(), format!("plateau {mean}{interval}"))
    }));
    entries
}

/// An entry for each stroke among the lines.
fn kinds(chart: &Chart) -> Vec<(String, String)> {
    let mut kinds: Vec<Stroke> = Vec::new();
    let mut entries = Vec::new();
    for line in &chart.lines {
        if kinds.contains(&line.stroke) {
            continue;
        }
        kinds.push(line.stroke);
        let alike = |other: &&Line| other.stroke == line.stroke;
        let alike = chart.lines.iter().filter(alike).count();
        let several = words::when(alike != 1, "s, a colour each");
        let kind = line.kind.as_ref();
        let what = words::with(kind, |kind| format!(", {kind}"));
        entries.push((svg::classes(line), format!("{alike} stream{several}{what}")));
    }
    entries
}

/// Panels that cannot be drawn, and why.
fn absent(view: &RunView, charts: &Charts, flow: Flow) -> Vec<String> {
    let sender = view.end(flow.sender());
    let mut all = Vec::new();
    if charts.about(Some(flow)).next().is_none() {
        all.push(format!(
            "{}: nothing was sampled.",
            layout::capital(way(flow))
        ));
    } else if !sender.known {
        all.push(format!(
            "The sender, {}, reported no samples: congestion window and round-trip time are not known.",
            plain(&sender.software)
        ));
    }
    all
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most - 1).collect();
    short.push('…');
    short
}
