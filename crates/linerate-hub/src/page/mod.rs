//! The pages, complete without JavaScript. `maud` escapes every string.

pub(crate) mod alerts;
pub(crate) mod chart;
pub(crate) mod grid;
pub(crate) mod hosts;
pub(crate) mod login;
pub(crate) mod pair;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod silences;

use linerate_model::calendar::rfc3339;
use linerate_model::plain_text::acts_on_terminal;
use linerate_model::watch::UnixMillis;
use maud::{DOCTYPE, Markup, html};

use crate::moment;

/// The pages that every page links to.
const NAVIGATION: [(&str, &str); 4] = [
    ("/", "Grid"),
    ("/alerts", "Alerts"),
    ("/hosts", "Hosts"),
    ("/plan", "Plan and schedule"),
];

/// What a page is besides its content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sheet<'a> {
    /// Its title.
    pub(crate) title: &'a str,
    /// Which entry of the navigation it is; empty = none.
    pub(crate) place: &'a str,
    /// When it was made.
    pub(crate) now: UnixMillis,
    /// Alerts that fire.
    pub(crate) firing: usize,
}

/// A whole page.
pub(crate) fn document(sheet: Sheet<'_>, content: &Markup) -> String {
    let page = html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (sheet.title) " – linerate" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/static/hub.css";
                script type="module" src="/static/hub.js" {}
            }
            body {
                a class="skip" href="#content" { "Skip to the content" }
                header class="top" {
                    a class="name" href="/" { "linerate" }
                    nav aria-label="Pages" {
                        @for (address, name) in NAVIGATION {
                            a href=(address) aria-current=[(address == sheet.place).then_some("page")] {
                                (name)
                                @if address == "/alerts" && sheet.firing > 0 {
                                    " " span class="badge" { (sheet.firing) span class="spoken" { " firing" } }
                                }
                            }
                        }
                    }
                }
                main id="content" tabindex="-1" { (content) }
                footer {
                    p {
                        "As of " (time(sheet.now, sheet.now, false)) ". "
                        span id="live" role="status" {}
                        noscript { "Reload the page for newer figures." }
                        " " a href="/account" { "Account" }
                    }
                }
            }
        }
        "\n"
    };
    let page = page.into_string();
    let unfit =
        |c: char| c != '\n' && (acts_on_terminal(c) || matches!(c, '\u{fffe}' | '\u{ffff}'));
    if page.contains(unfit) {
        return page.replace(unfit, "\u{fffd}");
    }
    page
}

/// A moment; with its age where `aged`.
pub(crate) fn time(at: UnixMillis, now: UnixMillis, aged: bool) -> Markup {
    html! {
        time datetime=(rfc3339(at)) {
            (moment::minute(at))
            @if aged { span class="age" { " (" (moment::ago(at, now)) ")" } }
        }
    }
}

/// A text as part of a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            encoded.push('%');
            encoded.push(char::from(HEX[usize::from(byte >> 4)]));
            encoded.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    encoded
}

/// The address of a pair's page.
pub(crate) fn pair_address(task: &str, from: &str, to: &str) -> String {
    let (task, from, to) = (encoded(task), encoded(from), encoded(to));
    format!("/pair?task={task}&from={from}&to={to}")
}

/// The address of a host's page.
pub(crate) fn host_address(name: &str) -> String {
    format!("/host?name={}", encoded(name))
}

/// `1 pair`, `3 pairs`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    let number = linerate_model::units::grouped(count as u64);
    if count == 1 {
        format!("{number} {what}")
    } else {
        format!("{number} {what}s")
    }
}

/// A page that says why there is nothing to show.
pub(crate) fn failure(title: &str, sentence: &str, now: UnixMillis) -> String {
    let sheet = Sheet {
        title,
        place: "",
        now,
        firing: 0,
    };
    document(
        sheet,
        &html! { h1 { (title) } p { (sentence) } p { a href="/" { "Back to the grid" } } },
    )
}
