//! SIGINT, SIGTERM and SIGHUP as descriptors that can be polled.

use linerate_kernel::thread::{SignalFd, block_signals, ignore_sigpipe, unblock_signals};

use crate::action::Failure;

/// `SIGHUP`.
pub(crate) const HANGUP: i32 = 1;
/// `SIGINT`.
pub(crate) const INTERRUPT: i32 = 2;
/// `SIGTERM`.
pub(crate) const TERMINATE: i32 = 15;

/// Those that end a test or a server of iperf2 and iperf3.
pub(crate) const OF_IPERF: [i32; 3] = [HANGUP, INTERRUPT, TERMINATE];

/// Takes signals as one readable descriptor from now on: to be called before any thread is started.
pub(crate) fn take(group: &[i32]) -> Result<SignalFd, Failure> {
    let fail = |error| Failure::File(format!("taking over the signals: {error}"));
    ignore_sigpipe().map_err(fail)?;
    block_signals(group).map_err(fail)?;
    SignalFd::new(group).map_err(fail)
}

/// Takes those that end a test: they are blocked in threads that begin from now on.
pub(crate) fn take_stops() -> Result<SignalFd, Failure> {
    take(&[INTERRUPT, TERMINATE])
}

/// Gives the signals back their usual effect: the first one was heard, a second one ends the program at
/// once.
pub(crate) fn release(fd: &SignalFd, group: &[i32]) {
    while let Ok(Some(_)) = fd.read() {}
    // Where they stay blocked, draining's own bounds still end the program in seconds.
    drop(unblock_signals(group));
}
