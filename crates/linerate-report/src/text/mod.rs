//! The final report for people: text at most 100 columns wide. The short form fits a screen of 40 lines: goodput and
//! verdict first, then the rate over time, the time budget and the figures, and one line of the ledger.
//!
//! The full form has the hosts, where the rate went, every note, and the ledger. Every rate says where it was
//! measured; what a stock peer does not tell is said to be unknown, and why.

pub(crate) mod book;
mod brief;
mod chart;
pub(crate) mod figures;
pub(crate) mod header;
pub(crate) mod layout;
pub(crate) mod limits;
mod line;
pub(crate) mod questions;
mod streams;
mod style;

use linerate_model::counter_test::{Tested, Verdict};
use linerate_model::finding::{Finding, Severity};
use linerate_model::record::Flow;
use linerate_model::units::{BitRate, whole};

pub use style::{Charset, Style};

use crate::view::RunView;
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
    let verdicts: Vec<usize> = view
        .directions
        .iter()
        .filter_map(|direction| direction.verdict)
        .collect();
    if !view.findings.is_empty() && view.findings.iter().all(withdrawn) {
        page.entry(
            "Verdict",
            "what was found is withdrawn, and nothing else in the record explains the rate",
        );
    }
    let mut left_out = 0;
    let mut others = 0;
    for (number, finding) in view.findings.iter().enumerate() {
        let is_verdict = verdicts.contains(&number) || finding.severity == Severity::Fault;
        others += usize::from(!is_verdict);
        if !is_verdict && most.is_some_and(|most| others > most) {
            left_out += 1;
            continue;
        }
        let label = match finding.severity {
            _ if withdrawn(finding) => "Withdrawn",
            Severity::Fault => "FAULT",
            _ if verdicts.contains(&number) => "Verdict",
            Severity::Limit => "Also",
            Severity::Healthy | Severity::Note => "Note",
        };
        let text = if is_verdict || most.is_none() {
            sentence(finding, several)
        } else {
            finding.sentence.clone()
        };
        page.entry(label, &format!("{}: {text}", finding.id));
        if let Some(tested) = &finding.tested {
            page.entry("", &layout::capital(&tested.sentence));
        }
    }
    if view.findings.is_empty() {
        page.entry("Verdict", "none was asked for");
    }
    left_out
}

/// Whether counter-tests refuted it.
pub(crate) fn withdrawn(finding: &Finding) -> bool {
    let refuted = |tested: &Tested| tested.verdict == Verdict::Refuted;
    finding.tested.as_ref().is_some_and(refuted)
}

fn sentence(finding: &Finding, several: bool) -> String {
    let direction = match finding.flow {
        Some(flow) if several => format!("{}: ", layout::capital(way(flow))),
        _ => String::new(),
    };
    let next = finding
        .next
        .as_ref()
        .map_or_else(String::new, |next| format!("; next: `{next}`"));
    // An option of linerate stands in the next command.
    let setting = finding
        .remedy
        .as_ref()
        .filter(|remedy| !remedy.fix.is_option());
    let remedy = setting.map_or_else(String::new, |remedy| {
        let check = remedy
            .fix
            .check()
            .map_or_else(String::new, |check| format!(" (host audit {check})"));
        format!(
            "; on the {}: {} = {}{check}",
            layout::role(remedy.host),
            remedy.fix.setting(),
            remedy.fix.value()
        )
    });
    let passes = finding
        .would_pass
        .as_ref()
        .map_or_else(String::new, |passes| format!("; {passes}"));
    let expected = finding
        .expected
        .as_ref()
        .map_or_else(String::new, |expected| {
            let rate = |bps: f64| BitRate(whole(bps));
            format!(
                "; then expect {} ({} to {}), limited by {}",
                rate(expected.rate_bps),
                rate(expected.low_bps),
                rate(expected.high_bps),
                expected.then
            )
        });
    format!(
        "{direction}{}{passes}{remedy}{expected}{next}",
        finding.sentence
    )
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
