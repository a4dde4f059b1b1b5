//! The tests to a peer before an audit.

use std::os::fd::AsFd as _;

use linerate_engine::client::{self, ClientOptions};
use linerate_experiment::rfc6349::Gave;
use linerate_experiment::to_peer::{SPAN, Sounding};
use linerate_kernel::thread::SignalFd;
use linerate_model::audit::ToPeer;
use linerate_model::plan::{End, Plan};
use linerate_model::record::{Outcome, RunRecord};

use crate::action::Failure;
use crate::place::HostPlace;
use crate::printer::Printer;
use crate::{signals, successive};

/// The plan of a test to a peer.
///
/// # Errors
/// What is no host.
pub(super) fn plan(host: &str, port: Option<u16>) -> Result<Plan, Failure> {
    let words: Vec<String> = port
        .into_iter()
        .flat_map(|port| ["-p".to_owned(), port.to_string()])
        .collect();
    let mut plan = HostPlace::request(host, &words)?.plan;
    plan.end = End::TimeNs(SPAN);
    Ok(plan)
}

/// Runs the tests.
///
/// # Errors
/// Those of `linerate test` where the first one cannot be run; that it was stopped.
pub(super) fn measure(plan: &Plan, printer: &Printer) -> Result<ToPeer, Failure> {
    let signals = signals::take_stops()?;
    let mut sounding = Sounding::new(plan);
    let mut first = true;
    // It ends with the last step, each of which bounds itself.
    while let Some((step, plan)) = sounding.upcoming() {
        printer.tell(&format!("  to {}: {} …", plan.host, step.words()));
        let gave = if first {
            Ok(begin(&plan, &signals)?)
        } else {
            run(&plan, &signals)?
        };
        first = false;
        sounding.took(gave);
    }
    signals::release(&signals, &[signals::INTERRUPT]);
    Ok(sounding.found())
}

/// The first run, whose failure is that of a test: the peer is not there, or no server.
fn begin(plan: &Plan, stop: &SignalFd) -> Result<RunRecord, Failure> {
    let options = ClientOptions::default();
    let record = client::run(plan, &options, stop.as_fd(), &mut |_| ())?.record;
    match &record.outcome {
        Outcome::Completed => Ok(record),
        Outcome::Interrupted => Err(stopped()),
        Outcome::PeerInterrupted => Err(Failure::Incomplete(format!(
            "{} was stopped during the test, so the host was not judged",
            plan.host
        ))),
        Outcome::Failed { error } => Err(Failure::Incomplete(format!(
            "the test to {} failed before its end: {error}; the host was not judged",
            plan.host
        ))),
    }
}

fn run(plan: &Plan, stop: &SignalFd) -> Result<Gave, Failure> {
    match successive::follow(plan, &ClientOptions::default(), stop) {
        Ok(Some(record)) if record.outcome != Outcome::Interrupted => Ok(Ok(record)),
        Ok(_) => Err(stopped()),
        Err(why) => Ok(Err(why)),
    }
}

fn stopped() -> Failure {
    Failure::Incomplete(
        "it was stopped while it measured to the peer, so the host was not judged".to_owned(),
    )
}
