//! Runs one after the other, against servers of which many take one test at a time.

use std::os::fd::AsFd as _;

use linerate_engine::EngineError;
use linerate_engine::client::{self, ClientOptions};
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::thread::SignalFd;
use linerate_model::plan::Plan;
use linerate_model::record::RunRecord;
use linerate_model::units::Nanos;

/// A server may still be clearing up after the last test: it is asked again so often, after this time.
const TRIES: u32 = 20;
const PAUSE: Nanos = Nanos::from_millis(250);

/// Makes a run. `None`: the user wants no more, and it did not begin.
///
/// # Errors
/// Why it could not be made, in words.
pub(crate) fn run(
    plan: &Plan,
    options: &ClientOptions,
    stop: &SignalFd,
) -> Result<Option<RunRecord>, String> {
    let again = |error: &EngineError| {
        matches!(
            error,
            EngineError::Busy { .. } | EngineError::Connect { .. }
        )
    };
    try_again(plan, options, stop, again)
}

/// Makes a run to a server that answered just now: one that cannot be connected to is gone, and not asked again.
///
/// # Errors
/// Why it could not be made, in words.
pub(crate) fn follow(
    plan: &Plan,
    options: &ClientOptions,
    stop: &SignalFd,
) -> Result<Option<RunRecord>, String> {
    let again = |error: &EngineError| matches!(error, EngineError::Busy { .. });
    try_again(plan, options, stop, again)
}

fn try_again(
    plan: &Plan,
    options: &ClientOptions,
    stop: &SignalFd,
    again: impl Fn(&EngineError) -> bool,
) -> Result<Option<RunRecord>, String> {
    let mut last = String::new();
    for _ in 0..TRIES {
        match client::run(plan, options, stop.as_fd(), &mut |_| ()) {
            Ok(ended) => return Ok(Some(ended.record)),
            Err(EngineError::StoppedEarly) => return Ok(None),
            Err(error) if again(&error) => {
                last = error.to_string();
                let mut entries = [PollEntry::new(stop.as_fd(), Interest::READ)];
                if !matches!(poll::wait(&mut entries, Some(PAUSE)), Ok(0)) {
                    return Ok(None);
                }
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(last)
}
