//! The runs of a grading, kept in a folder, so that other rules can judge the same runs.
//!
//! Each leaves two files: its record, which `linerate show` reads as well, and what the grading had of the path.

use std::path::{Path, PathBuf};

use linerate_analysis::evidence::Evidence;
use linerate_experiment::grade::Observed;
use linerate_experiment::remedy::Promise;
use linerate_model::bounds::MAX_RECORD_BYTES;
use linerate_report::record as record_file;
use linerate_report::view::RunView;

use crate::input;

use crate::action::Failure;
use crate::keep::replace;

pub(super) fn prepare(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::File(format!(
            "cannot make the folder {} for the runs: {error}",
            folder.display()
        ))
    })
}

/// The file of a run's record.
pub(super) fn record(folder: &Path, name: &str, seed: u64) -> PathBuf {
    folder.join(format!("{name}-{seed}.json"))
}

/// The file with what the grading had of the run.
fn observed(folder: &Path, name: &str, seed: u64) -> PathBuf {
    folder.join(format!("{name}-{seed}.path.json"))
}

/// Keeps what is not in the record.
pub(super) fn write(folder: &Path, name: &str, run: &Observed) -> Result<(), String> {
    let path = observed(folder, name, run.seed);
    let text = serde_json::json!(run).to_string();
    replace(&path, text.as_bytes()).map_err(|error| {
        format!(
            "cannot keep what the path did in {}: {error}",
            path.display()
        )
    })
}

/// Reads a run; findings and goodput are computed again from its record.
pub(super) fn read(folder: &Path, name: &str, seed: u64) -> Result<Observed, String> {
    let bytes =
        |path: &Path| input::read(path, MAX_RECORD_BYTES).map_err(|failure| failure.to_string());
    let path = observed(folder, name, seed);
    let mut run: Observed = serde_json::from_slice(&bytes(&path)?).map_err(|error| {
        format!(
            "{} does not record what a path did: {error}",
            path.display()
        )
    })?;
    let path = record(folder, name, seed);
    let kept = record_file::from_json(&bytes(&path)?)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let evidence = Evidence::of(&kept);
    let (findings, _) = crate::test::findings(&evidence);
    let view = RunView::of(&evidence, &findings);
    run.goodput_bps = view.summary.figures.goodput_bps.map(|bps| bps as f64);
    run.promises = findings.iter().filter_map(Promise::of).collect();
    run.findings = findings.into_iter().map(|finding| finding.id).collect();
    Ok(run)
}
