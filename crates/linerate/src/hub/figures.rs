//! What the record of a test says: its figures, what limits it, what a counter-test made of that.

use linerate_analysis::evidence::Evidence;
use linerate_model::alert::{AlertCounterTest, AlertFinding};
use linerate_model::finding::Finding;
use linerate_model::plain_text::PlainText;
use linerate_model::record::{Flow, Role, RunRecord};
use linerate_model::units::Bytes;
use linerate_model::watch::{UnixMillis, WatchFigures};
use linerate_report::view::RunView;
use linerate_report::watch_figures;

use crate::test;

/// What a record says of its test.
pub(super) struct Read {
    pub(super) figures: WatchFigures,
    /// Payload that it moved.
    pub(super) bytes: Option<Bytes>,
    /// What limits it; absent = nothing that was found.
    pub(super) finding: Option<AlertFinding>,
}

/// Reads one direction of a record, which ended at `ended`.
///
/// # Errors
/// Why it measured nothing.
pub(super) fn read(record: &RunRecord, flow: Flow, ended: UnixMillis) -> Result<Read, String> {
    let evidence = Evidence::of(record);
    let view = test::view(&evidence);
    let figures = watch_figures::of(&view, Some(flow)).map_err(|error| error.to_string())?;
    let direction = view.directions.iter().find(|one| one.flow == flow);
    // Also one that is as it should be: the pacing or the path that it names is what limits.
    let first = direction.and_then(|direction| view.findings.get(direction.verdict?));
    Ok(Read {
        bytes: direction.and_then(|direction| direction.figures.bytes.map(Bytes)),
        finding: first.map(|one| finding(one, &view, ended)),
        figures,
    })
}

fn finding(finding: &Finding, view: &RunView, ended: UnixMillis) -> AlertFinding {
    let host = finding.remedy.as_ref().and_then(|remedy| {
        let end = match remedy.host {
            Role::Client => &view.client,
            Role::Server => &view.server,
        };
        end.name.clone()
    });
    AlertFinding {
        id: finding.id.clone(),
        sentence: PlainText::from(finding.sentence.as_str()),
        remedy: finding.remedy.clone(),
        host,
        page: finding.page.as_str().into(),
        counter_test: finding.tested.as_ref().map(|tested| AlertCounterTest {
            ended,
            verdict: tested.verdict,
            sentence: tested.sentence.as_str().into(),
        }),
        votes: (0, 0),
    }
}
