//! One run of an experiment in a lab: path up, test, path down, and what is kept of it.

use linerate_experiment::measured::Measured;
use linerate_kernel::thread::SignalFd;
use linerate_lab::runner::Isolation;
use linerate_lab::scenario::Scenario;

use super::run::{self, RunOptions};

/// Makes the run. `None`: the user wants no more.
///
/// A lab that cannot be had is a run that failed, and says why.
pub(crate) fn measure(
    scenario: &Scenario,
    isolation: Isolation,
    signals: &SignalFd,
) -> Option<Measured> {
    let options = RunOptions {
        document: true,
        more: Vec::new(),
    };
    let ran = match run::run(scenario, isolation, &options, signals) {
        Ok(ran) => ran,
        Err(failure) => return Some(Measured::failed(failure.to_string())),
    };
    if ran.stopped {
        return None;
    }
    let Ok(document) = serde_json::from_slice(&ran.document) else {
        return Some(Measured::failed(ran.complaint));
    };
    Some(Measured {
        engine: Some(ran.lab.in_force.engine.to_owned()),
        ..Measured::of_document(&document, ran.lab.bottleneck)
    })
}
