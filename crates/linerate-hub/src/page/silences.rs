//! Silences, below the alerts.

use linerate_model::alert::{AlertKind, MatcherOf, Silence};
use linerate_model::watch::UnixMillis;
use maud::{Markup, html};

use super::time;
use crate::access::Caller;
use crate::access::users::Role;

/// How long a silence may last on the form, minutes.
const TIMES: [(u64, &str); 6] = [
    (60, "1 hour"),
    (240, "4 hours"),
    (1_440, "1 day"),
    (3 * 1_440, "3 days"),
    (7 * 1_440, "7 days"),
    (30 * 1_440, "30 days"),
];

/// The silences in force and, for those who may, a form for another one, which silences `alert` where that is not empty.
pub(crate) fn section(
    silences: &[Silence],
    caller: &Caller,
    alert: &str,
    now: UnixMillis,
) -> Markup {
    let may = caller.role >= Role::Operator;
    html! {
        section aria-labelledby="silences" {
            h2 id="silences" { "Silences (" (silences.len()) ")" }
            p class="about" { "Alerts that match a silence stay on this page, and nobody is notified of them." }
            @if !silences.is_empty() { (table(silences, may, now)) }
            @if may { (form(caller, alert)) }
        }
    }
}

fn table(silences: &[Silence], may: bool, now: UnixMillis) -> Markup {
    html! {
        div class="wide" tabindex="0" role="region" aria-label="Silences" {
            table class="rows" {
                thead { tr { th scope="col" { "What" } th scope="col" { "Until" } th scope="col" { "By" } th scope="col" { "Why" } @if may { th scope="col" { "End" } } } }
                tbody {
                    @for silence in silences {
                        tr {
                            th scope="row" { (conditions(silence)) }
                            td { (time(silence.until, now, false)) }
                            td { (silence.by) }
                            td { (silence.why) }
                            @if may { td { form method="post" action={ "/silences/" (silence.id) "/end" } { button type="submit" { "End" span class="spoken" { " the silence of " (conditions(silence)) } } } } }
                        }
                    }
                }
            }
        }
    }
}

fn conditions(silence: &Silence) -> String {
    let condition = |matcher: &linerate_model::alert::Matcher| {
        format!("{} {}", word(matcher.of), matcher.pattern)
    };
    let all: Vec<String> = silence.matchers.iter().map(condition).collect();
    all.join(", ")
}

const fn word(of: MatcherOf) -> &'static str {
    match of {
        MatcherOf::Alert => "alert",
        MatcherOf::Task => "task",
        MatcherOf::Kind => "kind",
        MatcherOf::Finding => "finding",
        MatcherOf::Host => "host",
        MatcherOf::From => "from",
        MatcherOf::To => "to",
    }
}

fn form(caller: &Caller, alert: &str) -> Markup {
    let fields = [
        ("host", "Host, at either end"),
        ("from", "From"),
        ("to", "To"),
        ("task", "Task"),
        ("finding", "Finding"),
    ];
    html! {
        details open[!alert.is_empty()] {
            summary { "New silence" }
            form class="plain" method="post" action="/silences" {
                p class="about" { "Every condition that you fill in has to match; * stands for any text, such as node1*." }
                p { label for="s-alert" { "Alert" } " " input id="s-alert" name="alert" maxlength="256" value=(alert); }
                @for (name, words) in fields {
                    p { label for={ "s-" (name) } { (words) } " " input id={ "s-" (name) } name=(name) maxlength="256"; }
                }
                p {
                    label for="s-kind" { "Kind" } " "
                    select id="s-kind" name="kind" {
                        option value="" { "any" }
                        @for kind in AlertKind::ALL { option value=(kind.word()) { (kind.word()) } }
                    }
                }
                p {
                    label for="s-minutes" { "For" } " "
                    select id="s-minutes" name="minutes" { @for (minutes, words) in TIMES { option value=(minutes) { (words) } } }
                }
                p { label for="s-why" { "Why" } " " input id="s-why" name="why" required maxlength="1000"; }
                @if caller.name.is_none() {
                    p { label for="s-by" { "Your name" } " " input id="s-by" name="by" required maxlength="64"; }
                }
                p { button type="submit" { "Silence" } }
            }
        }
    }
}
