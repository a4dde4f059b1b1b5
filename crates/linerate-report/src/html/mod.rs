//! A run as one HTML file that needs nothing else: no network, no other file.
//!
//! Every chart stands in the page as a drawing, and every figure as text, so that it can be read and printed
//! where scripts do not run. The script in it only draws: it zooms, shows values at an instant and shades what
//! a finding rests on. What came from a peer or a file is escaped (see `markup`), and the page forbids itself to
//! load anything.
//!
//! ```
//! use linerate_analysis::evidence::Evidence;
//! use linerate_model::plan::Plan;
//! use linerate_report::{chart::Charts, html, view::RunView};
//! use linerate_testing::fixture;
//!
//! let record = fixture::run(&Plan::new("server"), &fixture::Traffic::default());
//! let evidence = Evidence::of(&record);
//! let view = RunView::of(&evidence, &[]);
//! let charts = Charts::of(&view, &evidence);
//! let page = html::page(&html::Sheet { view: &view, charts: &charts, kept: Some("run.json") });
//! assert!(page.starts_with("<!DOCTYPE html>"));
//! ```

mod book;
mod charts;
mod comparison;
mod data;
mod facts;
mod findings;
pub(crate) mod limits;
mod streams;
mod summary;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::chart::Charts;
use crate::markup::{finished, json};
use crate::view::RunView;
pub use comparison::{Side, comparison};
use data::Drawn;

/// What a page is made from.
#[derive(Debug, Clone, Copy)]
pub struct Sheet<'a> {
    /// The run.
    pub view: &'a RunView,
    /// The charts of the same run as `view`.
    pub charts: &'a Charts,
    /// Where the full record is kept, for the page to say; absent = it is not kept.
    pub kept: Option<&'a str>,
}

/// The style sheet of all pages.
pub const STYLE: &str = include_str!("page.css");
/// The script of pages with charts.
pub const SCRIPT: &str = include_str!("page.js");

/// Where a server keeps what its pages share, so that its content security policy can forbid everything inline.
#[derive(Debug, Clone, Copy)]
pub struct Served<'a> {
    /// The address of [`STYLE`].
    pub style: &'a str,
    /// The address of [`SCRIPT`].
    pub script: &'a str,
    /// Links above the report: text and address.
    pub links: &'a [(&'a str, &'a str)],
}

/// The page of a run.
pub fn page(sheet: &Sheet<'_>) -> String {
    let drawn = drawn(sheet);
    document(
        &title(sheet.view),
        &body(sheet, &drawn, &Markup::default()),
        &data::of(&[drawn]),
    )
}

/// The page of a run for a server: style sheet and script are files of their own, and the policy is the server's.
pub fn served(sheet: &Sheet<'_>, served: &Served<'_>) -> String {
    let drawn = drawn(sheet);
    let links = html! {
        nav aria-label="Hub" {
            @for (text, address) in served.links { a href=(address) { (text) } " " }
        }
    };
    finished(html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                (shared_head(&title(sheet.view), None))
                link rel="stylesheet" href=(served.style);
                script src=(served.script) defer {}
            }
            body {
                (body(sheet, &drawn, &links))
                script type="application/json" id="data" { (json(&data::of(&[drawn]))) }
            }
        }
        "\n"
    })
}

fn drawn<'a>(sheet: &Sheet<'a>) -> Drawn<'a> {
    Drawn {
        run: 0,
        view: sheet.view,
        charts: sheet.charts,
        span_ns: [sheet.charts.from_ns, sheet.charts.to_ns],
    }
}

fn body(sheet: &Sheet<'_>, drawn: &Drawn<'_>, links: &Markup) -> Markup {
    let kept = sheet.kept.map_or_else(
        || "The full record was not kept: `linerate test -o FILE` keeps it.".to_owned(),
        |kept| format!("The full record: {kept} (`linerate show` reads it)."),
    );
    html! {
        header { (links) (summary::head(sheet.view)) }
        main {
            (summary::figures(sheet.view))
            (findings::section(drawn))
            (limits::section(sheet.view))
            (charts::section(drawn))
            (book::section(sheet.view))
            (streams::sections(sheet.view))
            (facts::sections(sheet.view))
        }
        footer { p { (kept) } }
    }
}

/// What the page is called: the plan's title, or what was tested.
fn title(view: &RunView) -> String {
    let test = crate::text::header::test(&view.plan);
    match &view.plan.title {
        Some(title) => format!("{title}: {test}"),
        None => format!("linerate: {test}"),
    }
}

/// A page whose script draws what `data` has.
fn document(title: &str, body: &Markup, data: &str) -> String {
    const POLICY: &str =
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
    let body = html! {
        (body)
        script type="application/json" id="data" { (json(data)) }
        script { (PreEscaped(SCRIPT)) }
    };
    whole(title, POLICY, "", &body)
}

/// A page without a script; `style` comes behind that of all pages.
pub(crate) fn still(title: &str, style: &str, body: &Markup) -> String {
    const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
    whole(title, POLICY, style, body)
}

fn whole(title: &str, policy: &str, style: &str, body: &Markup) -> String {
    finished(html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                (shared_head(title, Some(policy)))
                style { (PreEscaped(STYLE)) (PreEscaped(style)) }
            }
            body { (body) }
        }
        "\n"
    })
}

fn shared_head(title: &str, policy: Option<&str>) -> Markup {
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        @if let Some(policy) = policy { meta http-equiv="Content-Security-Policy" content=(policy); }
        meta name="color-scheme" content="light dark";
        link rel="icon" href="data:,";
        title { (title) }
    }
}
