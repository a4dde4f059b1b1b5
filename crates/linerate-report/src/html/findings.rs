//! What was found, on what evidence, what to do, and what to expect then.

use linerate_model::finding::{Finding, Severity};
use linerate_model::units::{BitRate, Nanos, whole};

use super::data::Drawn;
use crate::markup::Markup;
use crate::text::{self, layout, way};
use crate::words;

pub(super) fn write(body: &mut Markup, drawn: &Drawn<'_>) {
    let view = drawn.view;
    if view.findings.is_empty() {
        return;
    }
    body.open("section", &[("class", "findings")]);
    body.element("h2", &[], "Findings");
    let verdicts: Vec<usize> = view
        .directions
        .iter()
        .filter_map(|direction| direction.verdict)
        .collect();
    for (number, finding) in view.findings.iter().enumerate() {
        let evidence = drawn.charts.evidence.get(number).copied().flatten();
        one(
            body,
            drawn,
            number,
            finding,
            evidence,
            verdicts.contains(&number),
        );
    }
    body.close("section");
}

fn one(
    body: &mut Markup,
    drawn: &Drawn<'_>,
    number: usize,
    finding: &Finding,
    evidence: Option<[i64; 2]>,
    verdict: bool,
) {
    let (class, label) = match finding.severity {
        _ if text::withdrawn(finding) => ("finding note", "Withdrawn"),
        Severity::Fault => ("finding fault", "Fault"),
        Severity::Limit if verdict => ("finding limit", "Verdict: limit"),
        Severity::Limit => ("finding limit", "Also"),
        Severity::Healthy => ("finding healthy", "Healthy"),
        Severity::Note => ("finding note", "Note"),
    };
    let key = drawn.finding(number);
    body.open("article", &[("class", class), ("data-finding", &key)]);
    body.open("h3", &[]);
    body.element("span", &[("class", "severity")], label);
    body.text(" ");
    body.element("span", &[("class", "id")], &finding.id);
    if let Some(flow) = finding.flow.filter(|_| drawn.view.directions.len() > 1) {
        body.text(&format!(", {}", way(flow)));
    }
    body.close("h3");
    body.element("p", &[("class", "sentence")], &finding.sentence);
    body.open("dl", &[]);
    let mut entry = |name: &str, text: &str| {
        body.element("dt", &[], name);
        body.element("dd", &[], text);
    };
    if let Some(share) = finding.share_of_time {
        entry(
            "Explains",
            &format!("{} of the time", words::time_share(share)),
        );
    }
    if let Some([from, to]) = finding.span_ns {
        let seconds = |ns| format!("{:.2}", Nanos(ns).as_secs_f64());
        entry(
            "Evidence",
            &format!("samples from {} s to {} s", seconds(from), seconds(to)),
        );
    }
    if let Some(remedy) = &finding.remedy {
        let (host, setting, value) = (
            layout::role(remedy.host).trim_end(),
            remedy.fix.setting(),
            remedy.fix.value(),
        );
        // An option stands in the next command.
        let text = if remedy.fix.is_option() {
            format!("{setting} {value} on the {host}")
        } else {
            format!("on the {host}: {setting} = {value}")
        };
        entry("Remedy", &text);
    }
    if let Some(passes) = &finding.would_pass {
        entry("Would pass", passes);
    }
    if let Some(expected) = &finding.expected {
        let rate = |bps: f64| BitRate(whole(bps));
        entry(
            "Then expect",
            &format!(
                "{} ({} to {}), limited by {}",
                rate(expected.rate_bps),
                rate(expected.low_bps),
                rate(expected.high_bps),
                expected.then
            ),
        );
    }
    if let Some(tested) = &finding.tested {
        entry("Counter-test", &layout::capital(&tested.sentence));
    }
    if let Some(next) = &finding.next {
        body.element("dt", &[], "Next");
        body.open("dd", &[]);
        body.element("code", &[], next);
        body.close("dd");
    }
    if !finding.page.is_empty() {
        body.element("dt", &[], "More");
        body.element("dd", &[], &finding.page);
    }
    body.close("dl");
    figures(body, finding);
    if evidence.is_some() {
        // The script shows it: without one it would do nothing.
        body.element(
            "button",
            &[
                ("type", "button"),
                ("class", "show"),
                ("aria-pressed", "false"),
                ("hidden", ""),
            ],
            "Show the evidence on the charts",
        );
    }
    body.close("article");
}

fn figures(body: &mut Markup, finding: &Finding) {
    if finding.figures.is_empty() {
        return;
    }
    body.open("details", &[]);
    body.element(
        "summary",
        &[],
        &format!("Figures it rests on ({})", finding.figures.len()),
    );
    body.open("table", &[]);
    for figure in &finding.figures {
        body.open("tr", &[]);
        body.element("th", &[("scope", "row")], &figure.name);
        body.element("td", &[("class", "number")], &number(figure.value));
        body.element("td", &[], &figure.place);
        body.close("tr");
    }
    body.close("table");
    body.close("details");
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
