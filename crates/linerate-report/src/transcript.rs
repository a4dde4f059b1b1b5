//! What is said of other tools' output: as text for people, and as one JSON document.

use linerate_model::finding::{Figure, Finding, Quantity};
use linerate_model::transcript::{Explained, Given, Line, Part, Reading, Transcript};
use serde::Serialize;

use crate::text::layout::Page;
use crate::view::FindingView;
use crate::words::{self, plain};

/// Lines that were not understood and are quoted; the others are counted.
const QUOTED: usize = 12;

/// The report for people, at most 100 columns wide.
pub fn report(reading: &Reading) -> String {
    let mut page = Page::default();
    for (number, transcript) in reading.transcripts.iter().enumerate() {
        page.gap();
        page.line(&format!("linerate explain: {}", plain(&transcript.name)));
        let explained = reading.explained.iter();
        for explained in explained.filter(|one| one.transcript == number) {
            page.gap();
            part(&mut page, explained);
        }
        not_understood(&mut page, transcript);
    }
    if !reading.together.is_empty() {
        page.gap();
        page.line("All inputs together");
        page.gap();
        findings(&mut page, &reading.together, Some("Together"));
    }
    page.finish()
}

fn part(page: &mut Page, explained: &Explained) {
    page.entry("Read", &plain(&explained.title));
    if let Some(text) = &explained.recomputed {
        page.entry("Recomputed", &plain(text));
    }
    findings(page, &explained.findings, None);
}

/// The findings; all of them are labelled `together` where that is given.
fn findings(page: &mut Page, findings: &[Finding], together: Option<&str>) {
    for (number, finding) in findings.iter().enumerate() {
        let is_verdict = number == 0;
        let view = FindingView {
            finding,
            is_verdict,
        };
        let next = words::with(finding.next.as_ref(), |next| {
            format!("; next: `{}`", plain(next))
        });
        page.entry(
            together.unwrap_or_else(|| view.label()),
            &format!("{}: {}{next}", finding.id, plain(&finding.sentence)),
        );
        // Candidates are a list that a sentence cannot hold.
        for figure in &finding.figures {
            candidate(page, figure);
        }
    }
}

fn candidate(page: &mut Page, figure: &Figure) {
    let Some(quantity @ Quantity::IfWrapped { .. }) = figure.quantity else {
        return;
    };
    let (subject, unit) = (quantity.subject(), quantity.unit().unwrap_or_default());
    page.wrapped(
        "            ",
        &format!("{subject}, {:.2} {unit}", figure.value),
    );
}

fn not_understood(page: &mut Page, transcript: &Transcript) {
    let lines = &transcript.not_understood;
    if lines.is_empty() {
        return;
    }
    page.gap();
    for Line { number, text } in lines.iter().take(QUOTED) {
        page.entry("Not read", &format!("line {number}: '{}'", plain(text)));
    }
    if lines.len() > QUOTED {
        let more = lines.len() - QUOTED;
        page.entry("Not read", &format!("and {more} lines more"));
    }
}

/// The document, written straight from what was read: a tree of values would take many times its memory.
#[derive(Serialize)]
struct Document<'a> {
    kind: &'static str,
    given: &'a Given,
    transcripts: Vec<OfTranscript<'a>>,
    together: &'a [Finding],
}

#[derive(Serialize)]
struct OfTranscript<'a> {
    name: &'a str,
    parts: Vec<OfPart<'a>>,
    not_understood: &'a [Line],
}

#[derive(Serialize)]
struct OfPart<'a> {
    title: &'a str,
    recomputed: Option<&'a str>,
    findings: &'a [Finding],
    read: Option<&'a Part>,
}

/// One JSON document, without a newline at its end. What is not known is `null`, never 0.
pub fn document(reading: &Reading) -> String {
    let transcripts = reading.transcripts.iter().map(|transcript| OfTranscript {
        name: &transcript.name,
        parts: Vec::new(),
        not_understood: &transcript.not_understood,
    });
    let mut transcripts: Vec<OfTranscript<'_>> = transcripts.collect();
    for one in &reading.explained {
        let of = reading.transcripts.get(one.transcript);
        if let Some(transcript) = transcripts.get_mut(one.transcript) {
            transcript.parts.push(OfPart {
                title: &one.title,
                recomputed: one.recomputed.as_deref(),
                findings: &one.findings,
                read: of.and_then(|transcript| transcript.parts.get(one.part)),
            });
        }
    }
    let document = Document {
        kind: "transcript",
        given: &reading.given,
        transcripts,
        together: &reading.together,
    };
    crate::json::pretty(&document)
}
