//! What was found, on what evidence, what to do, and what to expect then.

use linerate_model::finding::{Finding, Severity};
use linerate_model::units::{Nanos, whole};
use maud::{Markup, html};

use super::data::Drawn;
use crate::text::{layout, way};
use crate::view::FindingView;
use crate::words;

pub(super) fn section(drawn: &Drawn<'_>) -> Markup {
    let view = drawn.view;
    let findings = FindingView::all(&view.findings, &view.directions);
    html! {
        @if !findings.is_empty() {
            section class="findings" {
                h2 { "Findings" }
                @for (number, finding) in findings.iter().enumerate() { (article(drawn, number, finding)) }
            }
        }
    }
}

fn article(drawn: &Drawn<'_>, number: usize, view: &FindingView<'_>) -> Markup {
    let finding = view.finding;
    let (class, label) = match finding.severity {
        _ if view.is_withdrawn() => ("note", "Withdrawn"),
        Severity::Fault => ("fault", "Fault"),
        Severity::Limit if view.is_verdict => ("limit", "Verdict: limit"),
        Severity::Limit => ("limit", "Also"),
        Severity::Healthy => ("healthy", "Healthy"),
        Severity::Note => ("note", "Note"),
    };
    let flow = finding.flow.filter(|_| drawn.view.directions.len() > 1);
    html! {
        article class={ "finding " (class) } data-finding=(drawn.finding(number)) {
            h3 {
                span class="severity" { (label) } " "
                span class="id" { (finding.id) }
                @if let Some(flow) = flow { ", " (way(flow)) }
            }
            p class="sentence" { (finding.sentence) }
            dl {
                @for (name, text) in entries(view) {
                    dt { (name) }
                    dd { (text) }
                }
                @if let Some(next) = &finding.next {
                    dt { "Next" }
                    dd { code { (next) } }
                }
                @if !finding.page.is_empty() {
                    dt { "More" }
                    dd { (finding.page) }
                }
            }
            (figures(finding))
            @if drawn.charts.evidence.get(number).is_some_and(Option::is_some) {
                // The script shows it: without one it would do nothing.
                button type="button" class="show" aria-pressed="false" hidden="" { "Show the evidence on the charts" }
            }
        }
    }
}

/// What it explains and rests on, what to do, and what came of it.
fn entries(view: &FindingView<'_>) -> impl Iterator<Item = (&'static str, String)> {
    let finding = view.finding;
    let share = finding.share_of_time.map(words::time_share);
    let span = finding.span_ns.map(|span| {
        let [from, to] = span.map(|ns| Nanos(ns).as_secs_f64());
        format!("samples from {from:.2} s to {to:.2} s")
    });
    let tested = finding.tested.as_ref();
    let tested = tested.map(|tested| layout::capital(&tested.sentence));
    [
        (
            "Explains",
            share.map(|share| format!("{share} of the time")),
        ),
        ("Evidence", span),
        ("Remedy", remedy(view)),
        ("Sufficient up to", finding.would_pass.clone()),
        ("Then expect", view.expected()),
        ("Counter-test", tested),
    ]
    .into_iter()
    .filter_map(|(name, text)| Some((name, text?)))
}

fn remedy(view: &FindingView<'_>) -> Option<String> {
    view.setting(layout::the).or_else(|| {
        let remedy = view.finding.remedy.as_ref()?;
        let (option, value) = (remedy.fix.setting(), remedy.fix.value());
        Some(format!("{option} {value} on {}", layout::the(remedy.host)))
    })
}

fn figures(finding: &Finding) -> Markup {
    html! {
        @if !finding.figures.is_empty() {
            details {
                summary { "Figures it rests on (" (finding.figures.len()) ")" }
                table {
                    @for figure in &finding.figures {
                        tr {
                            th scope="row" { (figure.name) }
                            td class="number" { (number(figure.value)) }
                            td { (figure.place) }
                        }
                    }
                }
            }
        }
    }
}

/// A figure with as many digits as tell something.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "not known".to_owned();
    }
    let size = value.abs();
    if size >= 1000.0 && value >= 0.0 {
        words::count(whole(value))
    } else if size == 0.0 || size.fract() == 0.0 && size < 1000.0 {
        format!("{value}")
    } else if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 0.1 {
        format!("{value:.2}")
    } else {
        format!("{value:.2e}")
    }
}
