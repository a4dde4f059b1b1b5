//! `--latency`: the session's side of the probes, which phase begins when.

use linerate_kernel::clock;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_model::plan::{Plan, PlanError};
use linerate_model::progress::Event;
use linerate_model::record::Note;
use linerate_model::units::Nanos;
use linerate_model::working_latency::LatencyProbes;

use crate::error::EngineError;

use super::probes::{self, AFTER, IDLE_ANSWERS, IDLE_LEAST, IDLE_MOST, Phase, Probes};
use super::{ClientOptions, Session};

/// How often it is looked at whether enough answers have come.
const LOOK: Nanos = Nanos::from_millis(20);
/// How long the first answer may take; the server waits a little longer for the first stream.
const FIRST_ANSWER: Nanos = Nanos::from_millis(10_000);
const DOING: &str = "measuring the idle latency";

/// What there is of the probes.
pub(super) enum Probing {
    /// Nobody asked for them.
    Off,
    /// They were asked for, and there are none: why.
    Missing(String),
    /// Their thread runs.
    On(Probes),
}

impl Probing {
    pub(super) fn enter(&self, phase: Phase) {
        if let Self::On(probes) = self {
            probes.enter(phase);
        }
    }

    /// When the phase under load begins.
    pub(super) fn loaded_at(&self, plan: &Plan, start: Nanos) -> Option<Nanos> {
        matches!(self, Self::On(_)).then(|| start.plus(probes::ramp(plan)))
    }

    /// Ends them; what they measured.
    pub(super) fn finish(&mut self) -> Option<LatencyProbes> {
        match std::mem::replace(self, Self::Off) {
            Self::Off => None,
            Self::Missing(reason) => Some(probes::none(&reason)),
            Self::On(probes) => Some(probes.finish()),
        }
    }
}

/// Refuses probes beside what has none.
pub(super) fn check(plan: &Plan, options: &ClientOptions) -> Result<(), PlanError> {
    let refuse = |reason: &str| {
        Err(PlanError {
            option: "--latency",
            reason: reason.to_owned(),
        })
    };
    if plan.latency && options.iperf2 {
        return refuse("an iperf 2's server answers no probes: it needs linerate at both ends");
    }
    if plan.latency && options.transfer.is_some() {
        return refuse(
            "the load of a transfer is that of its disks: measure latency in a test without files",
        );
    }
    Ok(())
}

impl Session<'_> {
    /// Opens the probe connection and measures the idle path, before any data stream. A server that answers no probes is no
    /// reason not to test.
    pub(super) fn measure_idle(&mut self) -> Result<(), EngineError> {
        if !self.plan.latency {
            return Ok(());
        }
        let unable = match &self.hello {
            None => Some("the server is no linerate; run `linerate serve` there"),
            Some(hello) if !hello.probe => Some(
                "the server is a linerate that does not know --latency; install this version there",
            ),
            Some(_) => None,
        };
        if let Some(reason) = unable {
            self.measure_none(reason.to_owned());
            return Ok(());
        }
        let cookie = self.cookie.as_bytes();
        let probes = Probes::start(&self.plan, self.remote, cookie)
            .map_err(|error| self.failed("opening the probe connection", error))?;
        let ended = self.wait_for_idle(&probes);
        probes.enter(Phase::Pause);
        self.probing = Probing::On(probes);
        ended
    }

    /// Until enough answers have come; the server takes what comes next with the cookie for a stream only after the first.
    fn wait_for_idle(&mut self, probes: &Probes) -> Result<(), EngineError> {
        let began = clock::monotonic();
        loop {
            let now = clock::monotonic();
            let took = now.since(began);
            let enough = took >= IDLE_LEAST && probes.answered() >= IDLE_ANSWERS;
            let late = took >= IDLE_MOST || probes.is_broken();
            if enough || (late && probes.answered() > 0) {
                return Ok(());
            }
            if probes.is_broken() {
                let text = "the server closed the probe connection without an answer";
                let error = std::io::Error::new(std::io::ErrorKind::ConnectionReset, text);
                return Err(self.failed(DOING, error));
            }
            if took >= FIRST_ANSWER {
                return Err(self.silent(DOING));
            }
            self.hear_in_time(&[self.stop], now.plus(LOOK), DOING)?;
        }
    }

    fn measure_none(&mut self, reason: String) {
        let text = format!("--latency measures nothing: {reason}");
        (self.observe)(&Event::Warning {
            text: text.clone().into(),
        });
        self.notes.push(Note {
            id: "no-latency".into(),
            text: text.into(),
        });
        self.probing = Probing::Missing(reason);
    }

    /// Measures the path after the load. The server waits for our results meanwhile.
    pub(super) fn measure_after(&mut self) {
        if matches!(self.probing, Probing::On(_)) {
            self.probing.enter(Phase::After);
            // A signal ends it at once.
            let mut entries = [PollEntry::new(self.stop, Interest::READ)];
            drop(poll::wait(&mut entries, Some(AFTER)));
        }
    }
}
