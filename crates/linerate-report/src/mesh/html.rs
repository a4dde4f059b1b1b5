//! A mesh as one HTML page that needs no script and no other file.

use maud::{Markup, html};

use super::cause::{self, CauseView};
use super::failure::FailureView;
use super::heat_map;
use super::text;
use super::view::{HostView, Margin, MeshView, VerdictKind, bit_rate, counted, grouped};
use crate::date;
use crate::html::still;
use crate::markup;
use crate::text::layout::capital;
use crate::words;

/// So many hosts are listed without a click.
const MOST_LISTED: usize = 20;

/// What a page is made from.
#[derive(Clone, Copy)]
pub struct Page<'a> {
    /// The mesh.
    pub view: &'a MeshView,
    /// The file of the report of a record, both relative to the page; `None` where there is none.
    pub report: &'a dyn Fn(&str) -> Option<String>,
    /// Where the mesh is kept, for the page to say; absent = it is not kept.
    pub kept: Option<&'a str>,
}

/// The page.
pub fn page(page: &Page<'_>) -> String {
    let view = page.view;
    let title = format!("linerate mesh: {}", counted(view.hosts.len(), "host"));
    let kept = page.kept.map_or_else(
        || "The records were not kept: `linerate mesh -o FOLDER` keeps them.".to_owned(),
        |kept| format!("The records: {kept} (`linerate mesh show` reads them)."),
    );
    let body = html! {
        header { (head(view)) }
        main {
            (tiles(view))
            (causes(view))
            (heat_map::section(page))
            (heat_map::ports(view))
            (failures(&view.failures))
            (hosts(view))
        }
        footer { p { (kept) } }
    };
    still(&title, include_str!("mesh.css"), &body)
}

fn head(view: &MeshView) -> Markup {
    let class = match view.verdict.kind {
        VerdictKind::Healthy => "healthy",
        VerdictKind::Cause => "fault",
        VerdictKind::Unexplained => "limit",
    };
    let more = view.causes.len().saturating_sub(1);
    html! {
        h1 { "Mesh of " (view.names) }
        p class="what" { (text::tests(view)) }
        p class="about" { (date::rfc1123(view.started_unix_s)) }
        p class={ "verdict " (class) } {
            (view.verdict.sentence)
            @if more > 0 { " There " (words::when(more == 1, "is")) (words::when(more > 1, "are")) " " (counted(more, "more cause")) "." }
        }
    }
}

fn tiles(view: &MeshView) -> Markup {
    let counts = &view.counts;
    let lost = counts.failed + counts.not_run;
    let time = words::known(view.rounds.elapsed, |time| {
        format!("{:.1} s", time.as_secs_f64())
    });
    let expected = words::known(view.expected_bps, bit_rate);
    let how = if view.expected_given {
        "the expected rate"
    } else {
        "the fastest tenth of the tests reaches it"
    };
    let rounds = &view.rounds;
    let tiles = [
        ("Hosts", grouped(view.hosts.len()), unreachable(view)),
        (
            "Tests measured",
            grouped(counts.measured),
            format!("of {}", grouped(counts.tests)),
        ),
        (
            "Without a rate",
            grouped(lost),
            format!(
                "{} failed, {} did not begin",
                grouped(counts.failed),
                grouped(counts.not_run)
            ),
        ),
        (
            "Rounds",
            rounds.planned.to_string(),
            format!("lower bound {}", rounds.bound),
        ),
        ("Time", time, "from the first byte to the last".to_owned()),
        ("100 %", expected, how.to_owned()),
    ];
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

fn unreachable(view: &MeshView) -> String {
    let gone = view.hosts.iter().filter(|host| host.unreachable.is_some());
    match gone.count() {
        0 => "all reached".to_owned(),
        gone => format!("{gone} not reached"),
    }
}

fn causes(view: &MeshView) -> Markup {
    html! {
        @if !view.causes.is_empty() {
            section class="causes prose" {
                h2 { "Causes" }
                @for (number, cause) in view.causes.iter().enumerate() { (article(number, cause)) }
                @if view.causes.len() > 1 { (table(view)) }
                @for note in &view.notes { p class="cut" { (note) } }
            }
        }
    }
}

fn article(number: usize, cause: &CauseView) -> Markup {
    let severity = if number == 0 { "fault" } else { "limit" };
    html! {
        article class={ "finding " (severity) } {
            h3 { span class="severity" { (capital(cause::kind(cause.kind))) } " " (cause.name) }
            p class="sentence" { (cause.sentence) }
            dl {
                @if !cause.evidence.is_empty() {
                    dt { "Evidence" }
                    dd { (capital(&cause.evidence.join("; "))) "." }
                }
                @if !cause.in_common.is_empty() {
                    dt { (cause.only) }
                    dd { (cause.in_common.join(", ")) }
                }
                @if !cause.next.is_empty() {
                    dt { "Next" }
                    dd {
                        @for step in &cause.next {
                            span class="command" { "To see " (step.what) ": " code { (step.command) } }
                        }
                    }
                }
            }
        }
    }
}

fn table(view: &MeshView) -> Markup {
    let rows = html! {
        @for cause in &view.causes {
            tr {
                td { (capital(cause::kind(cause.kind))) }
                th scope="row" { (cause.name) }
                td class="number" { (words::time_share(cause.share)) }
                td class="number" { (cause.left.map_or_else(|| "none".to_owned(), words::percent)) }
            }
        }
    };
    markup::table(
        &[
            "What",
            "Name",
            "Explains of all slow and failed tests",
            "Rate left",
        ],
        2..4,
        &rows,
    )
}

fn failures(all: &[FailureView]) -> Markup {
    let rows = html! {
        @for one in all {
            tr {
                td class="number" { (grouped(one.tests)) }
                td { (one.between()) }
                td { (one.sentence()) }
            }
        }
    };
    html! {
        @if !all.is_empty() {
            section class="failures" {
                h2 { "Tests without a rate" }
                (markup::table(&["Tests", "Hosts", "Why"], 0..1, &rows))
            }
        }
    }
}

fn hosts(view: &MeshView) -> Markup {
    let grouped = view.hosts.iter().any(|host| host.group.is_some());
    let mut order: Vec<&HostView> = view.hosts.iter().collect();
    order.sort_by_key(|host| host.unreachable.is_none());
    let mut columns = vec![
        "Host",
        "Sends",
        "Receives",
        "Pairs without a rate",
        "Not reached because",
    ];
    if grouped {
        columns.insert(1, "Group");
    }
    let numbers = if grouped { 2..5 } else { 1..4 };
    let rows = html! {
        @for host in order {
            tr {
                th scope="row" { (host.name) }
                @if grouped { td { (host.group.as_deref().unwrap_or_default()) } }
                td class="number" { (margin(&host.out)) }
                td class="number" { (margin(&host.inbound)) }
                td class="number" { (host.out.failed + host.inbound.failed) }
                td { (host.unreachable.as_deref().unwrap_or_default()) }
            }
        }
    };
    let table = markup::table(&columns, numbers, &rows);
    html! {
        section class="hosts" {
            h2 { "Hosts" }
            @if view.hosts.len() > MOST_LISTED {
                details { summary { (counted(view.hosts.len(), "host")) ", medians of each" } (table) }
            } @else {
                (table)
            }
        }
    }
}

/// `9.41 Gbit/s (97 %)`.
fn margin(margin: &Margin) -> String {
    match margin.goodput_bps.zip(margin.share) {
        Some((rate, share)) => format!("{} ({})", bit_rate(rate), words::percent(share)),
        None => "not measured".to_owned(),
    }
}
