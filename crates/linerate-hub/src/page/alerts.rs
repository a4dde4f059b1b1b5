//! Alerts: what is broken, since when, why, what to do.

use linerate_model::alert::{AlertKind, AlertPair, AlertState};
use linerate_model::watch::UnixMillis;
use maud::{Markup, html};

use super::{Sheet, counted, document, pair_address, time};
use crate::access::Caller;
use crate::access::users::Role;
use crate::live::ChannelState;
use crate::moment;
use crate::view::alert::{AlertView, comparison};
use crate::view::cell::CellState;

/// Pairs of an alert that are listed openly.
const MOST_PAIRS: usize = 8;
/// Sentences of an alert above the grid: the finding, its counter-test, what changed on the host.
const SHORT: usize = 4;

pub(crate) fn page(
    views: &[AlertView],
    channels: &[ChannelState],
    silences: &Markup,
    caller: &Caller,
    now: UnixMillis,
) -> String {
    let firing = firing(views);
    let of = |state: AlertState| views.iter().filter(move |view| view.alert.state == state);
    let content = html! {
        h1 { "Alerts" }
        (broken_channels(channels, now))
        section aria-labelledby="firing" {
            h2 id="firing" { "Firing (" (of(AlertState::Firing).count()) ")" }
            @if of(AlertState::Firing).next().is_none() { p { "Nothing is broken." } }
            @for view in of(AlertState::Firing) { (article(view, caller, now)) }
        }
        @if of(AlertState::Suspect).next().is_some() {
            section aria-labelledby="suspect" {
                h2 id="suspect" { "Suspect (" (of(AlertState::Suspect).count()) ")" }
                p class="about" { "A test was bad. Confirming tests run within minutes; nobody is notified before." }
                @for view in of(AlertState::Suspect) { (article(view, caller, now)) }
            }
        }
        (silences)
        section aria-labelledby="resolved" {
            h2 id="resolved" { "Resolved in the last 7 days (" (of(AlertState::Resolved).count()) ")" }
            (resolved(of(AlertState::Resolved), now))
        }
    };
    let title = match firing {
        0 => "Alerts".to_owned(),
        _ => format!("{} firing", counted(firing, "alert")),
    };
    document(
        Sheet {
            title: &title,
            place: "/alerts",
            now,
            firing,
        },
        &content,
    )
}

/// How many fire and are not silenced.
pub(crate) fn firing(views: &[AlertView]) -> usize {
    let fires =
        |view: &&AlertView| view.alert.state == AlertState::Firing && view.silenced.is_none();
    views.iter().filter(fires).count()
}

/// Notifications that do not arrive, since when and why.
pub(super) fn broken_channels(channels: &[ChannelState], now: UnixMillis) -> Markup {
    html! {
        @for channel in channels {
            @if let Some(broken) = &channel.broken {
                p class="warning" role="alert" {
                    strong { "Notifications by " (channel.name) " do not arrive" }
                    @if let Some(since) = channel.broken_since { " since " (time(since, now, true)) }
                    ": " (broken) ". " (counted(channel.waiting as usize, "notification")) " wait."
                }
            }
        }
    }
}

const fn class(view: &AlertView) -> CellState {
    match (view.alert.state, view.alert.kind) {
        (AlertState::Resolved, _) => CellState::Good,
        (AlertState::Suspect, _) => CellState::Suspect,
        (AlertState::Firing, AlertKind::Slow) => CellState::Slow,
        (AlertState::Firing, AlertKind::Failing) => CellState::Failing,
        (AlertState::Firing, AlertKind::Silent) => CellState::Silent,
        (AlertState::Firing, AlertKind::Changed) => CellState::Changed,
    }
}

fn heading(view: &AlertView) -> Markup {
    let state = class(view);
    html! {
        span class="glyph" aria-hidden="true" { (state.glyph()) } " " (view.title)
        @if view.alert.state == AlertState::Suspect { span class="tag" { "suspect" } }
        @if view.silenced.is_some() { span class="tag" { "silenced" } }
    }
}

/// The four answers.
fn answers(view: &AlertView, now: UnixMillis, most: usize) -> Markup {
    html! {
        dl {
            dt { "Since" }
            dd { (time(view.alert.since, now, true)) }
            dt { "Why" }
            dd { @for sentence in view.why.iter().take(most) { p { (code(sentence)) } } }
            dt { "What to do" }
            dd {
                @if view.what_to_do.is_empty() { p { "Wait for the confirming tests." } }
                @for step in view.what_to_do.iter().take(most) { p { (code(step)) } }
            }
        }
    }
}

/// A sentence whose commands stand in backquotes.
fn code(sentence: &str) -> Markup {
    html! {
        @for (place, part) in sentence.split('`').enumerate() {
            @if place % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// An alert above the grid.
pub(crate) fn short(view: &AlertView, now: UnixMillis) -> Markup {
    html! {
        article class={ "alert " (class(view).word()) } {
            h2 class="heading" { a href={ "/alerts#a-" (view.alert.id) } { (heading(view)) } }
            (answers(view, now, SHORT))
        }
    }
}

/// An alert with its pairs.
fn article(view: &AlertView, caller: &Caller, now: UnixMillis) -> Markup {
    let alert = &view.alert;
    let may = caller.role >= Role::Operator;
    html! {
        article class={ "alert " (class(view).word()) } id={ "a-" (alert.id) } {
            h3 { (heading(view)) }
            p class="about" {
                "Task " (alert.task)
                @if let Some(fired) = alert.fired { ". Confirmed " (moment::span(fired.since(alert.since))) " after the first bad test" }
                @if let Some(silenced) = &view.silenced { ". Silenced " (silenced) }
                ". "
                @if may && view.silenced.is_none() { a href={ "/alerts?silence=" (alert.id) "#silences" } { "Silence" span class="spoken" { " " (view.title) } } }
            }
            (answers(view, now, usize::MAX))
            @if may && alert.pairs.iter().any(AlertPair::is_below_its_past) { (acceptance(view, caller)) }
            (pairs(view))
        }
    }
}

/// A form by which the level becomes the right one.
fn acceptance(view: &AlertView, caller: &Caller) -> Markup {
    let id = view.alert.id;
    html! {
        details {
            summary { "Accept this level" span class="spoken" { " of the alert " (view.title) } }
            form class="plain" method="post" action={ "/alerts/" (id) "/accept" } {
                p class="about" {
                    "Say that this is right from now on, such as after a link was replaced by a slower one. The alert ends, and a new "
                    "baseline begins with its first bad test."
                }
                @if caller.name.is_none() {
                    p { label for={ "by-" (id) } { "Your name" } " " input id={ "by-" (id) } name="by" required maxlength="64"; }
                }
                p { button type="submit" { "Accept" } }
            }
        }
    }
}

/// An alert on the page of one of its pairs.
pub(crate) fn of_pair(view: &AlertView, from: &str, to: &str, now: UnixMillis) -> Markup {
    let own: Vec<AlertPair> = view
        .alert
        .pairs
        .iter()
        .filter(|pair| pair.from == *from && pair.to == *to)
        .cloned()
        .collect();
    let others = view.alert.pairs.len() - own.len();
    html! {
        article class={ "alert " (class(view).word()) } {
            h2 class="heading" { a href={ "/alerts#a-" (view.alert.id) } { (heading(view)) } }
            (answers(view, now, usize::MAX))
            @if others > 0 { @for pair in &own { p { "This pair: " (evidence(pair)) } } }
            @if others > 0 { p class="about" { a href={ "/alerts#a-" (view.alert.id) } { (counted(others, "more pair")) } " with the same cause" } }
        }
    }
}

fn pairs(view: &AlertView) -> Markup {
    let pairs = &view.alert.pairs;
    html! {
        @if pairs.len() > MOST_PAIRS {
            details { summary { (counted(pairs.len(), "pair")) } (table(view, pairs)) }
        } @else {
            (table(view, pairs))
        }
    }
}

fn table(view: &AlertView, pairs: &[AlertPair]) -> Markup {
    html! {
        div class="wide" tabindex="0" role="region" aria-label={ "Pairs of the alert " (view.title) } {
            table class="rows" {
                thead { tr { th scope="col" { "Pair" } th scope="col" { "State" } th scope="col" { "Latest bad test" } } }
                tbody {
                    @for pair in pairs {
                        tr {
                            th scope="row" { a href=(pair_address(&view.alert.task, &pair.from, &pair.to)) { (pair.from) " → " (pair.to) } }
                            td { (pair.kind.word()) ", " (pair.state.word()) }
                            td class="text" { (evidence(pair)) }
                        }
                    }
                }
            }
        }
    }
}

fn evidence(pair: &AlertPair) -> Markup {
    html! {
        @if let Some(failure) = &pair.failure {
            @if !failure.stage.is_empty() { (failure.stage) ": " }
            (failure.why)
        } @else if let Some(compared) = &pair.compared {
            (comparison(compared))
        } @else {
            "No test has figures."
        }
        @if let Some(run) = pair.runs.first() { " " a href={ "/run/" (run.id) } { "Its report" span class="spoken" { " of " (pair.from) " to " (pair.to) } } }
    }
}

fn resolved<'a>(views: impl Iterator<Item = &'a AlertView> + Clone, now: UnixMillis) -> Markup {
    html! {
        @if views.clone().next().is_none() {
            p { "None." }
        } @else {
            div class="wide" tabindex="0" role="region" aria-label="Resolved alerts" {
                table class="rows" {
                    thead { tr { th scope="col" { "What" } th scope="col" { "From" } th scope="col" { "For" } th scope="col" { "Why" } } }
                    tbody {
                        @for view in views {
                            tr id={ "a-" (view.alert.id) } {
                                th scope="row" { (view.title) @if let Some(into) = view.alert.merged_into { span class="tag" { a href={ "#a-" (into) } { "part of another" } } } @else if let Some(accepted) = &view.alert.accepted { span class="tag" { "accepted by " (accepted.by) } } @else if view.alert.fired.is_none() { span class="tag" { "not confirmed" } } }
                                td { (time(view.alert.since, now, false)) }
                                td { (view.alert.until.map_or_else(String::new, |until| moment::span(until.since(view.alert.since)))) }
                                td { @if let Some(why) = view.why.first() { (code(why)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
