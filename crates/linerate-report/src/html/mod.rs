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
//! use linerate_testing::fixture;
//! use linerate_report::{html, view::RunView};
//!
//! let record = fixture::run(&Plan::new("server"), &fixture::Traffic::default());
//! let view = RunView::of(&Evidence::of(&record), &[]);
//! let page = html::page(&html::Sheet { view: &view, record: &record, kept: Some("run.json") });
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

use linerate_model::record::RunRecord;

use crate::chart::Charts;
use crate::markup::Markup;
use crate::view::RunView;
pub use comparison::{Side, comparison};
use data::Drawn;

/// What a page is made from.
#[derive(Debug, Clone, Copy)]
pub struct Sheet<'a> {
    /// The run.
    pub view: &'a RunView,
    /// Its record, from which the charts are drawn.
    pub record: &'a RunRecord,
    /// Where the full record is kept, for the page to say; absent = it is not kept.
    pub kept: Option<&'a str>,
}

/// The page of a run.
pub fn page(sheet: &Sheet<'_>) -> String {
    let charts = Charts::of(sheet.view, sheet.record);
    let drawn = Drawn {
        run: 0,
        view: sheet.view,
        charts: &charts,
        span_ns: [charts.from_ns, charts.to_ns],
    };
    let mut body = Markup::default();
    body.open("header", &[]);
    summary::head(&mut body, sheet.view);
    body.close("header");
    body.open("main", &[]);
    summary::figures(&mut body, sheet.view);
    findings::write(&mut body, &drawn);
    limits::write(&mut body, sheet.view);
    charts::write(&mut body, &drawn);
    book::write(&mut body, sheet.view);
    streams::write(&mut body, sheet.view);
    facts::write(&mut body, sheet.view);
    body.close("main");
    foot(&mut body, sheet);
    document(&title(sheet.view), &body, &data::of(&[drawn]))
}

/// What the page is called: the plan's title, or what was tested.
fn title(view: &RunView) -> String {
    let test = crate::text::header::test(&view.plan);
    match &view.plan.title {
        Some(title) => format!("{title}: {test}"),
        None => format!("linerate: {test}"),
    }
}

/// A whole document.
fn document(title: &str, body: &Markup, data: &data::Data) -> String {
    let mut page = Markup::default();
    page.own("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.own("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.own("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n");
    page.own("<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n");
    page.element("title", &[], title);
    page.own("\n<style>\n");
    page.own(include_str!("page.css"));
    page.own("</style>\n</head>\n<body>\n");
    page.append(body);
    page.own("\n<script type=\"application/json\" id=\"data\">");
    page.json(&data.json);
    page.own("</script>\n<script>\n");
    page.own(include_str!("page.js"));
    page.own("</script>\n</body>\n</html>\n");
    page.finish()
}

fn foot(body: &mut Markup, sheet: &Sheet<'_>) {
    body.open("footer", &[]);
    let kept = sheet.kept.map_or_else(
        || "The full record was not kept: `linerate test -o FILE` keeps it.".to_owned(),
        |kept| format!("The full record: {kept} (`linerate show` reads it)."),
    );
    body.element("p", &[], &kept);
    body.close("footer");
}
