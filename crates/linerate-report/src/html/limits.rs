//! Where the time went, as a bar; where the rate went, as steps from the line's rate down to goodput.

use linerate_analysis::time_budget::Class;
use linerate_analysis::waterfall::StepKind;
use maud::{Markup, html};

use crate::chart::svg::{class_style, px};
use crate::markup;
use crate::text::{layout, limits, way};
use crate::view::{BudgetView, DirectionView, RunView, StepView, WaterfallView};
use crate::words::{rate, time_share};

/// Width of the time bar's picture.
const BAR: f64 = 1000.0;
/// Width of a step's picture.
const STEP: f64 = 320.0;
/// A part of the bar below this share has no room for its figure.
const ROOM: f64 = 0.06;

pub(super) fn section(view: &RunView) -> Markup {
    let known = |direction: &DirectionView| {
        direction.time_budget.is_some()
            || direction.waterfall.is_some()
            || direction.time_budget_unknown.is_some()
    };
    html! {
        @if view.directions.iter().any(known) {
            section class="limits" {
                h2 { "Where the time and the rate went" }
                @for direction in &view.directions {
                    @if view.directions.len() > 1 { h3 { (layout::capital(way(direction.flow))) } }
                    @match (&direction.time_budget, &direction.time_budget_unknown) {
                        (Some(budget), _) => (time(budget)),
                        (None, Some(reason)) => p class="absent" { "Where the time went is not known: " (reason) },
                        (None, None) => {},
                    }
                    @match (&direction.waterfall, &direction.waterfall_unknown) {
                        (Some(waterfall), _) => (steps(waterfall)),
                        (None, Some(reason)) => p class="absent" { "Where the rate went is not known: " (reason) },
                        (None, None) => {},
                    }
                }
            }
        }
    }
}

/// The parts of the sending streams' time.
fn time(budget: &BudgetView) -> Markup {
    let shares: Vec<(Class, f64)> = Class::ALL
        .into_iter()
        .map(|class| (class, budget.share(class)))
        .filter(|(_, share)| *share > 0.0)
        .collect();
    let said = |(class, share): &(Class, f64)| format!("{} {}", class.words(), time_share(*share));
    let said: Vec<String> = shares.iter().map(said).collect();
    let [from, to] = budget.span_ns.map(|ns| ns as f64 / 1e9);
    html! {
        h3 { "Where the time went" }
        (bar(&shares, &format!("Time of the sending streams: {}", said.join(", "))))
        ul class="legend" {
            @for ((class, _), said) in shares.iter().zip(&said) { (entry(*class, said)) }
        }
        p class="about" {
            "Of the sending streams' time from " (format_args!("{from:.2} s to {to:.2} s"))
            ", each sample classified. "
            @if let Some(clocks) = &budget.kernel_clocks {
                "Its kernel's clocks alone say: application " (time_share(clocks.application))
                ", send buffer " (time_share(clocks.send_buffer))
                ", receive window " (time_share(clocks.receive_window))
                ", network " (time_share(clocks.network)) "."
            } @else {
                "Its kernel's own clocks do not show it."
            }
        }
    }
}

/// The shares side by side.
fn bar(shares: &[(Class, f64)], label: &str) -> Markup {
    let mut next = 0.0;
    let placed = shares.iter().map(|(class, share)| {
        let (x, width) = (next, share * BAR);
        next += width;
        (*class, *share, x, width)
    });
    html! {
        svg class="bar-of-time" viewBox="0 0 1000 34" role="img" aria-label=(label) {
            @for (class, share, x, width) in placed {
                rect class={ "part " (class_style(class)) } x=(px(x)) y="0" width=(px(width)) height="34" {}
                @if share >= ROOM {
                    text class="inside middle" x=(px(x + width / 2.0)) y="22" { (time_share(share)) }
                }
            }
        }
    }
}

/// A class in a legend.
pub(super) fn entry(class: Class, text: &str) -> Markup {
    html! {
        li {
            svg class="key" viewBox="0 0 22 10" aria-hidden="true" {
                rect class={ "part " (class_style(class)) } width="22" height="10" {}
            }
            span class="name" { (text) }
        }
    }
}

fn steps(waterfall: &WaterfallView) -> Markup {
    const COLUMNS: [&str; 5] = [
        "From the line to goodput",
        "Share",
        "Taken",
        "Left",
        "Rests on",
    ];
    let note = limits::line_note(waterfall.line).unwrap_or_default();
    let (line, goodput) = (waterfall.line_bps, waterfall.goodput_bps);
    let left = waterfall.steps.iter().map(|step| step.left_bps);
    let before = std::iter::once(line).chain(left);
    let rows = html! {
        (whole(limits::line_name(waterfall.line), line, line, note))
        @for (step, before) in waterfall.steps.iter().zip(before) { (one(waterfall, step, before)) }
        (whole("goodput of the whole run", goodput, line, ""))
    };
    html! {
        h3 { "Where the rate went" }
        div class="waterfall" { (markup::table(&COLUMNS, 2..4, &rows)) }
    }
}

/// A row that stands on zero.
fn whole(name: &str, bps: u64, line: u64, says: &str) -> Markup {
    html! {
        tr class="sum" {
            th scope="row" { (name) }
            (picture("part whole", [0, bps], line))
            td class="number" {}
            td class="number" { (rate(bps)) }
            td class="about" { (says) }
        }
    }
}

/// A row that hangs between what was left before it and after it.
fn one(waterfall: &WaterfallView, step: &StepView, before: u64) -> Markup {
    let kind = match step.step {
        StepKind::Path => "part k6",
        StepKind::CongestionWindow => "part k3",
        StepKind::Recovery | StepKind::Loss => "part k4",
        StepKind::Timeout => "part k5",
        StepKind::ReceiveWindow | StepKind::ReceiverDrop => "part k2",
        StepKind::SendBuffer => "part k1",
        StepKind::Application => "part k0",
        StepKind::Framing | StepKind::NotKnown | StepKind::Ramp => "part other",
    };
    let sign = if step.bps < 0 { "+" } else { "−" };
    let ends = [before.min(step.left_bps), before.max(step.left_bps)];
    html! {
        tr {
            th scope="row" class="part" { (limits::name(step.step, waterfall)) }
            (picture(kind, ends, waterfall.line_bps))
            td class="number" { (sign) (rate(step.bps.unsigned_abs())) }
            td class="number" { (rate(step.left_bps)) }
            td class="about" { (step.source) }
        }
    }
}

fn picture(kind: &str, ends: [u64; 2], line: u64) -> Markup {
    let [from, to] = ends.map(|bps| (bps as f64 / line.max(1) as f64).min(1.0) * STEP);
    // A step too small to see still leaves a mark.
    let width = (to - from).max(1.0);
    html! {
        td class="picture" {
            svg viewBox="0 0 320 14" aria-hidden="true" {
                rect class=(kind) x=(px(from.min(STEP - width))) y="1" width=(px(width)) height="12" {}
            }
        }
    }
}
