//! A record from a file, of a test, of an observation or of disks, to every output that shows it.

use linerate_analysis::evidence::Evidence;
use linerate_experiment::counter_test;
use linerate_explain::explain;
use linerate_model::bounds::Extent;
use linerate_model::record::{Kind, RunRecord};
use linerate_report::chart::Charts;
use linerate_report::compare::{self, Comparison, Side};
use linerate_report::disk_watch::{self, DiskWatchView};
use linerate_report::html::{self, Sheet};
use linerate_report::observation::{self, ObservationView};
use linerate_report::text::{self, Style};
use linerate_report::view::RunView;
use linerate_report::{json, record, stream, svg};

/// Samples of an input at most: as many as the program reads take long, and no other path.
pub(crate) const MOST_SAMPLES: usize = 1 << 20;

/// Feeds one input.
pub fn run(data: &[u8]) {
    let extent = serde_json::from_slice::<Extent>(data);
    if extent.is_ok_and(|extent| extent.samples() > MOST_SAMPLES) {
        return;
    }
    if record::kind_of(data) == Some(Kind::Observation) {
        let Ok(seen) = observation::from_json(data) else {
            return;
        };
        let view = ObservationView::of(&seen, &mut explain);
        assert!(!view.text().is_empty());
        is_json(&view.json());
        is_json(&view.end_line());
        assert!(observation::from_json(&observation::to_json(&seen)).is_ok());
    } else if record::kind_of(data) == Some(Kind::DiskWatch) {
        let Ok(seen) = disk_watch::from_json(data) else {
            return;
        };
        let view = DiskWatchView::of(&seen, linerate_explain::disk::explain(&seen));
        assert!(!view.text().is_empty());
        is_json(&view.json());
        is_json(&view.end_line());
        assert!(disk_watch::from_json(&disk_watch::to_json(&seen)).is_ok());
    } else if let Ok(run) = record::from_json(data) {
        show(&run);
    }
}

/// Shows a run in every format.
pub(crate) fn show(run: &RunRecord) {
    let evidence = Evidence::of(run);
    let mut findings = explain(&evidence);
    counter_test::judge(&mut findings, &evidence);
    let view = RunView::of(&evidence, &findings);
    is_json(&json::document(&view, run));
    is_json(&stream::end_line(&view, run));
    assert!(!text::report(&view, Style::plain()).is_empty());
    assert!(!text::detailed(&view, Style::plain()).is_empty());
    let charts = Charts::of(&view, &evidence);
    assert!(svg::figure(&view, &charts).ends_with("</svg>\n"));
    let page = html::page(&Sheet {
        view: &view,
        charts: &charts,
        kept: None,
    });
    assert!(page.ends_with("</html>\n"));
    let sides = ["a", "b"].map(|name| Side::of(name, vec![&view]));
    let comparison = Comparison::of(&sides);
    is_json(&linerate_report::json::pretty(&comparison));
    assert!(!compare::report(&comparison, Style::plain()).is_empty());
    assert!(record::from_json(&record::to_json(run)).is_ok());
}

fn is_json(text: &str) {
    assert!(serde_json::from_str::<serde_json::Value>(text).is_ok());
}
