//! The final report for people: text at most 100 columns wide. The short form fits a screen of 40 lines: goodput and
//! verdict first, then the rate over time, the time budget and the figures, and one line of the ledger.
//!
//! The full form has the hosts, where the rate went, every note, and the ledger. Every rate says where it was
//! measured; what a stock peer does not tell is said to be unknown, and why.

pub(crate) mod book;
mod brief;
mod chart;
pub(crate) mod delay;
pub(crate) mod figures;
pub(crate) mod header;
pub(crate) mod layout;
pub(crate) mod limits;
mod line;
pub(crate) mod questions;
mod streams;
mod style;
pub(crate) mod transfer;

use linerate_model::finding::Severity;
use linerate_model::record::Flow;

pub use style::{Charset, Style};

use crate::view::{FindingView, RunView};
use crate::words;
use layout::Page;

/// The report that fits a screen of 40 lines, but for a ledger that does not balance.
pub fn brief(view: &RunView, style: Style) -> String {
    brief::report(view, style)
}

/// The whole report; streams are listed only where their books are broken.
pub fn report(view: &RunView, style: Style) -> String {
    page(view, style, false)
}

/// The report with every stream's own figures.
pub fn detailed(view: &RunView, style: Style) -> String {
    page(view, style, true)
}

/// The run in one line, for a server's log.
pub fn one_line(view: &RunView) -> String {
    line::one_line(view)
}

fn page(view: &RunView, style: Style, each_stream: bool) -> String {
    let mut page = Page::of_width(style.text_columns());
    header::write(&mut page, view);
    transfer::write(&mut page, view);
    for direction in &view.directions {
        page.gap();
        chart::write(&mut page, style, direction, chart::HEIGHT);
    }
    page.gap();
    questions::write(&mut page, view);
    figures::write(&mut page, view, style);
    if each_stream {
        page.gap();
        streams::write(&mut page, view);
    }
    page.gap();
    verdict(&mut page, view, None);
    page.gap();
    book::write(&mut page, view);
    notes(&mut page, view);
    style.settle(page.finish())
}

/// The findings, the verdict first. With a bound on those behind the verdict only so many are shown, without their
/// remedies; gives back how many are left out.
fn verdict(page: &mut Page, view: &RunView, most: Option<usize>) -> usize {
    let several = view.directions.len() > 1;
    let findings = FindingView::all(&view.findings, &view.directions);
    if findings.is_empty() {
        page.entry("Verdict", "none was requested");
    } else if findings.iter().all(FindingView::is_withdrawn) {
        page.entry(
            "Verdict",
            "the finding is withdrawn, and nothing else in the record explains the rate",
        );
    }
    let mut left_out = 0;
    let mut others = 0;
    for view in &findings {
        let finding = view.finding;
        let leads = view.is_verdict || finding.severity == Severity::Fault;
        others += usize::from(!leads);
        if !leads && most.is_some_and(|most| others > most) {
            left_out += 1;
            continue;
        }
        let text = if leads || most.is_none() {
            sentence(view, several)
        } else {
            finding.sentence.clone()
        };
        page.entry(view.label(), &format!("{}: {text}", finding.id));
        if let Some(tested) = &finding.tested {
            page.entry("", &layout::capital(&tested.sentence));
        }
    }
    left_out
}

fn sentence(view: &FindingView<'_>, several: bool) -> String {
    let finding = view.finding;
    let opening = match finding.flow {
        Some(flow) if several => format!("{}: ", layout::capital(way(flow))),
        _ => String::new(),
    };
    let check = finding
        .remedy
        .as_ref()
        .and_then(|remedy| remedy.fix.check());
    let check = words::with(check, |check| format!(" (host audit {check})"));
    let setting = view.setting(layout::the);
    let mut parts = vec![format!("{opening}{}", finding.sentence)];
    parts.extend(finding.would_pass.clone());
    parts.extend(setting.map(|setting| format!("{setting}{check}")));
    parts.extend(
        view.expected()
            .map(|expected| format!("then expect {expected}")),
    );
    parts.extend(finding.next.as_ref().map(|next| format!("next: `{next}`")));
    parts.join("; ")
}

/// From the client, or to it, where the client stands on the left.
pub(crate) const fn arrow(flow: Flow) -> &'static str {
    match flow {
        Flow::ClientToServer => "→",
        Flow::ServerToClient => "←",
    }
}

/// `client to server`.
pub(crate) fn way(flow: Flow) -> &'static str {
    match flow {
        Flow::ClientToServer => "client to server",
        Flow::ServerToClient => "server to client",
    }
}

fn notes(page: &mut Page, view: &RunView) {
    for note in &view.notes {
        page.entry("Note", &note.text);
    }
}
