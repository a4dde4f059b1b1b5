//! What was tested between whom, how it came out, and the figures.

use linerate_model::finding::Severity;
use linerate_model::plan::Protocol;
use linerate_model::record::Role;
use linerate_model::units::Nanos;

use crate::date;
use crate::markup::Markup;
use crate::text::{figures, header, layout, limits, questions, way};
use crate::view::{DirectionView, RunView};
use crate::words::{rate, rates};

pub(super) fn head(body: &mut Markup, view: &RunView) {
    let test = header::test(&view.plan);
    match &view.plan.title {
        Some(title) => {
            body.element("h1", &[], title);
            body.element("p", &[("class", "what")], &test);
        }
        None => body.element("h1", &[], &test),
    }
    body.open("dl", &[("class", "ends")]);
    for role in [Role::Client, Role::Server] {
        body.element("dt", &[], layout::role(role));
        body.element("dd", &[], &header::host(view, role));
    }
    if let Some(direction) = view.directions.first() {
        let transport = header::transport(view, direction);
        if !transport.is_empty() {
            body.element("dt", &[], "transport");
            body.element("dd", &[], &transport);
        }
    }
    body.element("dt", &[], "started");
    body.element("dd", &[], &date::rfc1123(view.started_at_unix_ms / 1000));
    body.close("dl");
    if let Some((label, how)) = header::cut_off(view) {
        body.open("p", &[("class", "cut")]);
        body.element("strong", &[], label);
        body.text(&format!(" {how}. What was measured until then is below."));
        body.close("p");
    }
}

/// The answer in a sentence for each direction, and the figures.
pub(super) fn figures(body: &mut Markup, view: &RunView) {
    body.open("section", &[("class", "answer"), ("aria-label", "Result")]);
    for (question, answer) in questions::answers(view) {
        body.open("p", &[("class", "question")]);
        body.element("strong", &[], question);
        body.text(&format!(" {answer}"));
        body.close("p");
    }
    for direction in &view.directions {
        body.open("div", &[("class", "direction")]);
        if view.directions.len() > 1 {
            body.element("h2", &[], &layout::capital(way(direction.flow)));
        }
        verdict(body, view, direction);
        tiles(body, view, direction);
        lines(body, view, direction);
        body.close("div");
    }
    body.close("section");
}

fn verdict(body: &mut Markup, view: &RunView, direction: &DirectionView) {
    let finding = direction.verdict.and_then(|at| view.findings.get(at));
    if let Some(finding) = finding {
        let class = match finding.severity {
            Severity::Healthy => "verdict healthy",
            Severity::Note => "verdict note",
            Severity::Limit => "verdict limit",
            Severity::Fault => "verdict fault",
        };
        body.element("p", &[("class", class)], &finding.sentence);
    }
}

/// The figures that are looked for first, large.
fn tiles(body: &mut Markup, view: &RunView, direction: &DirectionView) {
    let figures = &direction.figures;
    let mut tiles: Vec<(&str, String, String)> = Vec::new();
    let interval = figures.goodput_low_bps.zip(figures.goodput_high_bps);
    tiles.push((
        "Goodput",
        figures
            .goodput_bps
            .map_or_else(|| "not known".to_owned(), rate),
        interval.map_or_else(
            || "no interval of confidence".to_owned(),
            |(low, high)| format!("95 %: {}", rates(low, high)),
        ),
    ));
    if view.plan.protocol == Protocol::Udp {
        tiles.push((
            "Lost",
            direction
                .loss_share
                .map_or_else(|| "not known".to_owned(), crate::words::percent),
            "of the datagrams sent".to_owned(),
        ));
        tiles.extend(direction.jitter_ns.map(|jitter| {
            (
                "Jitter",
                Nanos(jitter).to_string(),
                "RFC 3550, smoothed".to_owned(),
            )
        }));
    } else {
        tiles.push((
            "Retransmits",
            figures
                .retransmits
                .map_or_else(|| "not known".to_owned(), crate::words::count),
            figures.retransmit_share.map_or_else(String::new, |share| {
                format!("{} of the segments", crate::words::percent(share))
            }),
        ));
        tiles.push((
            "Round trip",
            figures
                .rtt_us
                .map_or_else(|| "not known".to_owned(), crate::words::micros),
            figures.min_rtt_us.map_or_else(String::new, |least| {
                format!("least {}", crate::words::micros(least))
            }),
        ));
    }
    tiles.push((
        "Ramp",
        match figures.ramp_ns {
            Some(0) => "none".to_owned(),
            Some(ramp) => crate::words::seconds(ramp),
            None => "not known".to_owned(),
        },
        figures
            .whole_run_bps
            .map_or_else(String::new, |whole| format!("whole run {}", rate(whole))),
    ));
    body.open("ul", &[("class", "tiles")]);
    for (name, value, more) in tiles {
        body.open("li", &[]);
        body.element("span", &[("class", "name")], name);
        body.element("span", &[("class", "value")], &value);
        body.element("span", &[("class", "more")], &more);
        body.close("li");
    }
    body.close("ul");
}

/// The same figures in full, with the places where they were measured.
fn lines(body: &mut Markup, view: &RunView, direction: &DirectionView) {
    let of = &direction.figures;
    let mut lines = vec![("Goodput", figures::goodput(of))];
    lines.extend(figures::whole_run(of).map(|whole| ("Whole run", whole)));
    if view.plan.protocol == Protocol::Udp {
        lines.extend(figures::sent(view, of).map(|sent| ("Sent", sent)));
    } else {
        let told = !view.end(direction.flow.sender()).known && of.retransmits.is_some();
        lines.push((
            "Retransmits",
            figures::repeats(
                of,
                if told {
                    ", as the stock sender says"
                } else {
                    ""
                },
            ),
        ));
        lines.push(("Time", limits::time_words(direction)));
    }
    for (role, used) in [
        (Role::Client, &view.summary.cpu.client),
        (Role::Server, &view.summary.cpu.server),
    ] {
        let name = match role {
            Role::Client => "CPU, client",
            Role::Server => "CPU, server",
        };
        lines.extend(used.as_ref().map(|used| (name, figures::cpu(used))));
    }
    body.open("dl", &[("class", "figures")]);
    for (name, text) in lines {
        body.element("dt", &[], name);
        body.element("dd", &[], &text);
    }
    body.close("dl");
}
