//! The HTML page and the SVG figure: what they hold is what the record holds, whatever its strings say.

use linerate_model::plan::{Direction, Plan};
use linerate_model::record::{Flow, Note, Outcome, Role, RunRecord};
use linerate_model::units::grouped as count;
use linerate_report::chart::{Charts, Line};
use linerate_report::html::{self, Sheet, Side};
use linerate_report::svg;
use linerate_report::view::RunView;
use linerate_testing::fixture::{self, Loss, Traffic};
use serde_json::Value;

use crate::runs;
use crate::tree::{self, Element};

fn page(record: &RunRecord) -> String {
    page_of(&runs::view(record), record)
}

fn page_of(view: &RunView, record: &RunRecord) -> String {
    html::page(&Sheet {
        view,
        charts: &runs::charts(view, record),
        kept: Some("run.json"),
    })
}

fn figure_of(view: &RunView, record: &RunRecord) -> String {
    svg::figure(view, &runs::charts(view, record))
}

/// The script's data.
#[expect(clippy::unwrap_used, reason = "a test may panic")]
fn data(page: &Element) -> Value {
    let scripts = page.with("script");
    let data = scripts
        .into_iter()
        .find(|script| script.attribute("id") == Some("data"));
    serde_json::from_str(&data.unwrap().text()).unwrap()
}

/// The values of a line in the data.
#[expect(clippy::unwrap_used, reason = "a test may panic")]
fn values(line: &Value) -> Vec<Option<i128>> {
    let mut before = 0;
    let steps = line["v"].as_array().unwrap().iter();
    steps
        .map(|step| {
            let step = match step {
                Value::Null => return None,
                step => i128::from(step.as_i64().unwrap()),
            };
            before += step;
            Some(before)
        })
        .collect()
}

fn extremes(values: &[Option<i128>]) -> (Option<i128>, Option<i128>) {
    let known = || values.iter().flatten().copied();
    (known().min(), known().max())
}

fn extremes_of(line: &Line) -> (Option<i128>, Option<i128>) {
    (line.least().map(i128::from), line.most().map(i128::from))
}

#[test]
fn every_run_has_a_page_whose_charts_hold_their_lines_extremes() {
    for (name, record) in runs::all() {
        let view = runs::view(&record);
        let charts = runs::charts(&view, &record);
        let page = tree::parse(&page_of(&view, &record));
        let data = data(&page);
        let figures = page.with("figure");
        assert_eq!(figures.len(), charts.charts.len(), "{name}");
        for chart in &charts.charts {
            let key = format!("0-{}", chart.id);
            let lines = data["charts"][&key]["lines"]
                .as_array()
                .unwrap_or_else(|| panic!("{name}: {key}"));
            assert_eq!(lines.len(), chart.lines.len(), "{name}: {key}");
            for (line, own) in lines.iter().zip(&chart.lines) {
                assert_eq!(
                    extremes(&values(line)),
                    extremes_of(own),
                    "{name}: {key}: {}",
                    own.name
                );
            }
            let figure = figures
                .iter()
                .find(|figure| figure.attribute("data-chart") == Some(&key))
                .unwrap_or_else(|| panic!("{name}: {key} is not drawn"));
            let paths = figure.of_class("plot")[0].of_class("line");
            assert_eq!(paths.len(), chart.lines.len(), "{name}: {key}");
            assert!(
                paths
                    .iter()
                    .all(|path| path.attribute("d").is_some_and(|d| d.starts_with('M'))),
                "{name}: {key}"
            );
        }
    }
}

/// The growth of a counter over all streams of a direction at an end.
#[expect(clippy::unwrap_used, reason = "a test may panic")]
fn growth(record: &RunRecord, role: Role, flow: Flow, column: &str) -> u64 {
    let streams = record.end(role).unwrap().streams_of(flow);
    streams
        .map(|stream| {
            let values = stream.samples.named(column).unwrap();
            values[values.len() - 1] - values[0]
        })
        .sum()
}

/// What the steps of a chart's lines add up to, each weighted with `weight` of its length in ns.
#[expect(clippy::unwrap_used, reason = "a test may panic")]
fn sum(charts: &Charts, id: &str, kind: &str, weight: impl Fn(i64) -> f64) -> f64 {
    let chart = charts.charts.iter().find(|chart| chart.id == id).unwrap();
    let lines = chart
        .lines
        .iter()
        .filter(|line| line.name.contains(kind) || chart.lines.len() == 1);
    lines
        .map(|line| {
            line.points
                .windows(2)
                .map(|pair| {
                    pair[0].value.unwrap_or(0) as f64 * weight(pair[1].at_ns - pair[0].at_ns)
                })
                .sum::<f64>()
        })
        .sum()
}

#[test]
fn rates_add_up_to_the_bytes_and_steps_to_the_retransmits() {
    let plan = Plan {
        streams: 3,
        direction: Direction::Both,
        ..Plan::new("server")
    };
    let loss = |at_s| Loss {
        at_s,
        segments: 7,
        rtt_us: 41_000,
        window_packets: 300,
    };
    let traffic = Traffic {
        losses: vec![loss(1.2), loss(3.4), loss(3.5)],
        ..Traffic::default()
    };
    let record = fixture::run(&plan, &traffic);
    let charts = runs::charts(&runs::view(&record), &record);
    for (flow, way) in [(Flow::ClientToServer, "c2s"), (Flow::ServerToClient, "s2c")] {
        let read = growth(&record, flow.receiver(), flow, "app_bytes") as f64;
        let drawn = sum(&charts, &format!("streams-read-{way}"), "", |ns| {
            ns as f64 / 8e9
        });
        assert!(
            (drawn - read).abs() < 1e-6 * read + 100.0,
            "{way}: {drawn} of {read} bytes"
        );
        // Equal steps are drawn as one: their number is their length over the window's.
        let again = growth(&record, flow.sender(), flow, "total_retrans_packets") as f64;
        let drawn = sum(&charts, &format!("retransmits-{way}"), "", |ns| {
            (ns as f64 / 1e8).round()
        });
        assert!(
            (drawn - again).abs() < 0.5,
            "{way}: {drawn} of {again} segments"
        );
    }
}

#[test]
fn the_ledger_on_the_page_is_the_record_s() {
    let record = fixture::run(&runs::tcp(), &Traffic::default());
    let written: u64 = record
        .client
        .iter()
        .flat_map(|end| &end.streams)
        .map(|stream| stream.app_bytes)
        .sum();
    let page = tree::parse(&page(&record));
    let row = page
        .with("tr")
        .into_iter()
        .find(|row| row.text().starts_with("receiving application read"));
    let cells = row.map(|row| row.with("td")[0].text());
    assert_eq!(cells, Some(count(written)));
}

/// A record whose every string is hostile.
fn hostile(text: &str) -> RunRecord {
    let both = Plan {
        direction: Direction::Both,
        title: Some(text.into()),
        extra_data: Some(text.into()),
        congestion: Some(text.into()),
        ..Plan::new(text)
    };
    let mut record = fixture::run(&both, &Traffic::default());
    record.software.name = text.into();
    record.software.version = text.into();
    record.cookie = text.into();
    record.outcome = Outcome::Failed { error: text.into() };
    record.control.local = text.into();
    record.control.remote = text.into();
    record.control.peer_software = Some(text.into());
    record.notes.push(Note {
        id: text.into(),
        text: text.into(),
    });
    for end in [&mut record.client, &mut record.server]
        .into_iter()
        .flatten()
    {
        end.software.name = text.into();
        end.software.version = text.into();
        for fact in [
            &mut end.host.hostname,
            &mut end.host.kernel,
            &mut end.host.architecture,
            &mut end.host.cpu_model,
            &mut end.host.virtualisation,
            &mut end.host.congestion,
            &mut end.host.default_qdisc,
        ] {
            *fact = Some(text.into());
        }
        if let Some(interface) = &mut end.interface {
            interface.name = text.into();
            interface.driver = Some(text.into());
            interface.qdisc = Some(text.into());
        }
        for stream in &mut end.streams {
            stream.local = text.into();
            stream.remote = text.into();
            stream.congestion = Some(text.into());
            stream.error = Some(text.into());
        }
    }
    record
}

#[test]
fn nobody_s_string_becomes_markup_or_script() {
    let tame = hostile("tame");
    let shape = |text: &str| -> Vec<(String, Vec<String>)> {
        let parsed = tree::parse(text);
        let all = parsed.all().into_iter();
        all.map(|element| {
            let names = element.attributes.iter().map(|(name, _)| name.clone());
            (element.tag.clone(), names.collect())
        })
        .collect()
    };
    let kinds = |text: &str| {
        let mut kinds = shape(text);
        kinds.sort();
        kinds.dedup();
        kinds
    };
    for text in [
        "</script><script>alert(1)</script>",
        "\"'><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "<!--",
        "]]></style></svg><script>alert(1)</script>",
        "\u{1b}[2J\u{0}\u{7}\r\u{202e}evil\u{2028}",
        "&lt;script&gt;&amp;",
        "${alert(1)} `x` \\u003c/script>",
    ] {
        let record = hostile(text);
        let view = runs::view(&record);
        let before = runs::view(&tame);
        let (drawn, figure) = (page_of(&view, &record), figure_of(&view, &record));
        assert_eq!(shape(&drawn), shape(&page_of(&before, &tame)), "{text:?}");
        // Longer text fills more lines of a figure.
        assert_eq!(
            kinds(&figure),
            kinds(&figure_of(&before, &tame)),
            "{text:?}"
        );
        for drawn in [&drawn, &figure] {
            let strange = drawn
                .chars()
                .find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
            assert_eq!(strange, None, "{text:?}");
        }
        // It is still there to be read.
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        let visible = words.max_by_key(|word| word.len()).unwrap_or_default();
        assert!(
            tree::parse(&page_of(&view, &record))
                .text()
                .contains(visible)
        );
    }
}

#[test]
fn a_page_loads_nothing_and_says_where_the_record_is() {
    for (name, record) in runs::all() {
        let text = page(&record);
        for word in ["http:", "https:", "src=", "@import", "url("] {
            let script = include_str!("../../src/html/page.js");
            let rest = text.replace(script, "");
            assert!(!rest.contains(word), "{name}: {word}");
        }
        let page = tree::parse(&text);
        let links: Vec<_> = page
            .with("link")
            .iter()
            .map(|link| link.attribute("href").map(str::to_owned))
            .collect();
        assert_eq!(links, [Some("data:,".to_owned())], "{name}");
        assert!(page.with("footer")[0].text().contains("run.json"), "{name}");
    }
}

#[test]
fn a_long_run_is_thinned_for_display_and_says_so() {
    let plan = Plan {
        streams: 4,
        ..Plan::new("server")
    };
    let traffic = Traffic {
        seconds: 1000.0,
        noise: 0.3,
        ..Traffic::default()
    };
    let record = fixture::run(&plan, &traffic);
    let view = runs::view(&record);
    let charts = runs::charts(&view, &record);
    let text = page_of(&view, &record);
    let page = tree::parse(&text);
    let data = data(&page);
    let (mut drawn, mut whole) = (0, 0);
    for chart in &charts.charts {
        let lines = data["charts"][format!("0-{}", chart.id)]["lines"].as_array();
        for (line, own) in lines.into_iter().flatten().zip(&chart.lines) {
            let values = values(line);
            assert_eq!(
                extremes(&values),
                extremes_of(own),
                "{}: {}",
                chart.id,
                own.name
            );
            drawn += values.len();
            whole += own.points.len();
        }
    }
    assert!(drawn <= 520_000, "{drawn} points in the page");
    assert_eq!(data["thinned"].is_string(), drawn < whole);
    assert!(text.len() < 12 << 20, "{} bytes", text.len());
}

#[test]
fn a_finding_s_evidence_can_be_shown_on_the_charts() {
    let record = fixture::run(&runs::tcp(), &Traffic::default());
    let view = runs::view(&record);
    assert!(
        view.findings
            .iter()
            .any(|finding| finding.span_ns.is_some())
    );
    let page = tree::parse(&page_of(&view, &record));
    let data = data(&page);
    for (number, finding) in view.findings.iter().enumerate() {
        let key = format!("0-{number}");
        let article = page
            .with("article")
            .into_iter()
            .find(|article| article.attribute("data-finding") == Some(&key));
        let article = article.map(Element::text).unwrap_or_default();
        assert!(article.contains(&finding.sentence), "{}", finding.id);
        let span = &data["evidence"][&key];
        assert_eq!(span.is_object(), finding.span_ns.is_some());
        if let Some([from, to]) = finding.span_ns {
            let length = span["to"]
                .as_i64()
                .zip(span["from"].as_i64())
                .map(|(to, from)| to - from);
            let expected = i64::try_from((to - from) / 1000).ok();
            assert!(
                length
                    .zip(expected)
                    .is_some_and(|(one, other)| (one - other).abs() <= 2),
                "{span}"
            );
        }
    }
}

#[test]
fn the_time_and_the_rate_are_drawn_as_the_view_has_them() {
    for (name, record) in runs::all() {
        let view = runs::view(&record);
        let page = tree::parse(&page_of(&view, &record));
        let budgets = view.directions.iter();
        let budgets = budgets.filter(|direction| direction.time_budget.is_some());
        let bars = page.of_class("bar-of-time");
        assert_eq!(bars.len(), budgets.count(), "{name}");
        for bar in bars {
            let parts = bar.of_class("part").into_iter();
            let widths = parts.filter_map(|part| part.attribute("width")?.parse::<f64>().ok());
            let width: f64 = widths.sum();
            assert!((width - 1000.0).abs() < 0.5, "{name}: {width}");
        }
        let waterfalls: Vec<usize> = view
            .directions
            .iter()
            .filter_map(|direction| Some(direction.waterfall.as_ref()?.steps.len()))
            .collect();
        let tables = page.of_class("waterfall").into_iter();
        // Beside the steps: the head, the line, and the goodput.
        let rows: Vec<usize> = tables.map(|table| table.with("tr").len() - 3).collect();
        assert_eq!(rows, waterfalls, "{name}");
        for direction in &view.directions {
            let ribbons = page.with("figure").into_iter().filter(|figure| {
                !figure.of_class("plot").is_empty()
                    && figure
                        .attribute("data-chart")
                        .is_some_and(|key| key.contains("rtt"))
                    && !figure.of_class("part").is_empty()
            });
            let drawn = ribbons.count();
            assert!(direction.bands.is_empty() || drawn > 0, "{name}: no ribbon");
        }
    }
}

#[test]
fn the_figure_holds_its_panels_and_no_script() {
    for (name, record) in runs::all() {
        let text = figure_of(&runs::view(&record), &record);
        assert!(
            text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""),
            "{name}"
        );
        let figure = tree::parse(&text);
        assert!(figure.with("script").is_empty(), "{name}");
        let titles = figure.of_class("panel").len();
        let expected = match name {
            "tcp" | "tcp_small_window" | "tcp_to_stock" | "tcp_cut_off" | "tcp_broken_book" => 3,
            "tcp_bidir" => 6,
            "tcp_refused" => 0,
            // A made-up UDP run has no samples of what was lost, and a stock receiver keeps no delays.
            "udp" | "udp_default" => 2,
            _ => 1,
        };
        assert_eq!(titles, expected, "{name}");
        let height: f64 = figure.with("svg")[0]
            .attribute("height")
            .and_then(|height| height.parse().ok())
            .unwrap_or(0.0);
        for label in figure.with("text") {
            let y: f64 = label
                .attribute("y")
                .and_then(|y| y.parse().ok())
                .unwrap_or(-1.0);
            assert!(
                y > 0.0 && y < height,
                "{name}: {} at {y} of {height}",
                label.text()
            );
        }
    }
}

#[test]
fn runs_side_by_side_share_their_axes_and_say_what_differs() {
    let before = fixture::run(
        &runs::tcp(),
        &Traffic {
            rate_bps: 40e6,
            ..Traffic::default()
        },
    );
    let window = Plan {
        window_bytes: Some(linerate_model::units::Bytes(4 << 20)),
        ..runs::tcp()
    };
    let after = fixture::run(&window, &Traffic::default());
    let views = [runs::view(&before), runs::view(&after)];
    let charts = [
        runs::charts(&views[0], &before),
        runs::charts(&views[1], &after),
    ];
    let side = |label, at: usize| Side {
        label,
        sheet: Sheet {
            view: &views[at],
            charts: &charts[at],
            kept: None,
        },
        more: &[],
    };
    let changed = ["receiver: tcp_rmem = 4096 131072 <67108864>".to_owned()];
    let text = html::comparison(
        "A window <too> small",
        &changed,
        &[side("before", 0), side("after", 1)],
    );
    let page = tree::parse(&text);
    let said = page.text();
    for word in [
        "A window <too> small",
        "tcp_rmem = 4096 131072 <67108864>",
        "compared with before, 95 % interval",
        "plan.window_bytes",
    ] {
        assert!(said.contains(word), "{word}");
    }
    // The tick labels of a chart are the same in both.
    let ticks = |key: &str| -> Vec<String> {
        let figures = page.with("figure").into_iter();
        let mut figures = figures.filter(|figure| figure.attribute("data-chart") == Some(key));
        figures.next().map_or_else(Vec::new, |figure| {
            figure
                .of_class("tick")
                .iter()
                .map(|tick| tick.text())
                .collect()
        })
    };
    let first = ticks("0-goodput-c2s");
    assert!(first.len() > 4, "{first:?}");
    assert_eq!(first, ticks("1-goodput-c2s"));
    assert_eq!(
        data(&page)["charts"]["1-goodput-c2s"]["group"],
        "goodput-c2s"
    );
}
