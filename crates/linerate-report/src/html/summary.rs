//! What was tested between whom, how it came out, and the figures.

use linerate_model::finding::Severity;
use linerate_model::plan::Protocol;
use linerate_model::record::Role;
use linerate_model::units::Nanos;
use maud::{Markup, html};

use crate::date;
use crate::markup;
use crate::text::delay::within;
use crate::text::{figures, header, layout, limits, questions, transfer, way};
use crate::view::{DirectionView, Figures, RunView};
use crate::words::{self, known, rate, rates};

pub(super) fn head(view: &RunView) -> Markup {
    let test = header::test(&view.plan);
    let title = view.plan.title.as_deref();
    let mut ends: Vec<(&str, String)> = [Role::Client, Role::Server]
        .map(|role| (layout::role(role), header::host(view, role)))
        .into();
    let first = view.directions.first();
    let transport = first.map(|direction| ("transport", header::transport(view, direction)));
    ends.extend(transport.filter(|(_, text)| !text.is_empty()));
    ends.push(("started", date::rfc1123(view.started_at_unix_ms / 1000)));
    html! {
        h1 { (title.unwrap_or(&test)) }
        @if title.is_some() { p class="what" { (test) } }
        (markup::list(Some("ends"), &ends))
        @if let Some((label, how)) = header::cut_off(view) {
            p class="cut" { strong { (label) } " " (how) ". What was measured until then is below." }
        }
    }
}

/// The answer in a sentence for each direction, and the figures.
pub(super) fn figures(view: &RunView) -> Markup {
    html! {
        section class="answer" aria-label="Result" {
            @for (question, answer) in questions::answers(view) {
                p class="question" { strong { (question) } " " (answer) }
            }
            @let files = transfer::lines(view);
            @if !files.is_empty() { (markup::list(Some("figures"), &files)) }
            @for direction in &view.directions {
                div class="direction" {
                    @if view.directions.len() > 1 { h2 { (layout::capital(way(direction.flow))) } }
                    (verdict(view, direction))
                    (tiles(view, direction))
                    (markup::list(Some("figures"), &lines(view, direction)))
                }
            }
        }
    }
}

fn verdict(view: &RunView, direction: &DirectionView) -> Markup {
    let class = |severity| match severity {
        Severity::Healthy => "verdict healthy",
        Severity::Note => "verdict note",
        Severity::Limit => "verdict limit",
        Severity::Fault => "verdict fault",
    };
    html! {
        @if let Some(finding) = direction.verdict.and_then(|at| view.findings.get(at)) {
            p class=(class(finding.severity)) { (finding.sentence) }
        }
    }
}

/// A figure: its name, its value, and what else is to be said of it.
type Tile = (&'static str, String, String);

/// The figures that are looked for first, large.
fn tiles(view: &RunView, direction: &DirectionView) -> Markup {
    let figures = &direction.figures;
    let interval = figures.goodput_low_bps.zip(figures.goodput_high_bps);
    let interval = interval.map_or_else(
        || "no interval of confidence".to_owned(),
        |(low, high)| format!("95 %: {}", rates(low, high)),
    );
    let ramp = |ramp| match ramp {
        0 => "none".to_owned(),
        ramp => words::seconds(ramp),
    };
    let whole = figures.whole_run_bps.map(rate);
    let whole = words::with(whole, |whole| format!("whole run {whole}"));
    let mut tiles = vec![("Goodput", known(figures.goodput_bps, rate), interval)];
    tiles.extend(if view.plan.protocol == Protocol::Udp {
        losses(direction)
    } else {
        path(figures)
    });
    tiles.push(("Ramp", known(figures.ramp_ns, ramp), whole));
    html! {
        ul class="tiles" {
            @for (name, value, more) in tiles {
                li {
                    span class="name" { (name) }
                    span class="value" { (value) }
                    span class="more" { (more) }
                }
            }
        }
    }
}

/// What became of datagrams.
fn losses(direction: &DirectionView) -> Vec<Tile> {
    let lost = known(direction.loss_share, words::percent);
    let mut tiles = vec![("Lost", lost, "of the datagrams sent".to_owned())];
    tiles.extend(direction.jitter_ns.map(|jitter| {
        let jitter = Nanos(jitter).to_string();
        ("Jitter", jitter, "RFC 3550, smoothed".to_owned())
    }));
    tiles.extend(direction.delay.as_ref().map(|delays| {
        let (name, spread, more) = match &delays.one_way {
            Some(one_way) => (
                "Delay",
                one_way.delay,
                format!(", one way, {}", within(one_way.uncertainty_ns)),
            ),
            None => (
                "Delay varies",
                delays.variation,
                " above the fastest".to_owned(),
            ),
        };
        let [median, p99] = [spread.median_ns, spread.p99_ns].map(Nanos);
        (
            name,
            median.to_string(),
            format!("median; 99 % {p99}{more}"),
        )
    }));
    tiles
}

/// What TCP met on the path.
fn path(figures: &Figures) -> Vec<Tile> {
    let share = figures.retransmit_share.map(words::percent);
    let share = words::with(share, |share| format!("{share} of the segments"));
    let least = figures.min_rtt_us.map(words::micros);
    let least = words::with(least, |least| format!("minimum {least}"));
    vec![
        (
            "Retransmits",
            known(figures.retransmits, words::count),
            share,
        ),
        ("Round trip", known(figures.rtt_us, words::micros), least),
    ]
}

/// The same figures in full, with the places where they were measured.
fn lines(view: &RunView, direction: &DirectionView) -> Vec<(&'static str, String)> {
    let of = &direction.figures;
    let mut lines = vec![("Goodput", figures::goodput(of))];
    lines.extend(figures::whole_run(of).map(|whole| ("Whole run", whole)));
    if view.plan.protocol == Protocol::Udp {
        lines.extend(figures::sent(view, of).map(|sent| ("Sent", sent)));
    } else {
        lines.push(("Retransmits", figures::repeats(view, direction)));
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
    lines
}
