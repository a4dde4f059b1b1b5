//! SIGINT and SIGTERM as descriptors that can be polled.

use linerate_kernel::thread::{SignalFd, block_signals, ignore_sigpipe};

use crate::action::Failure;

/// `SIGINT`.
pub(crate) const INTERRUPT: i32 = 2;
/// `SIGTERM`.
pub(crate) const TERMINATE: i32 = 15;

/// Takes signals as readable descriptors from now on: to be called before any thread is started.
pub(crate) fn take(groups: &[&[i32]]) -> Result<Vec<SignalFd>, Failure> {
    let fail = |error| Failure::File(format!("taking over the signals: {error}"));
    ignore_sigpipe().map_err(fail)?;
    for group in groups {
        block_signals(group).map_err(fail)?;
    }
    groups
        .iter()
        .map(|group| SignalFd::new(group).map_err(fail))
        .collect()
}
