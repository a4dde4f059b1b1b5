//! Where the runs of an experiment are made: in a lab, or between this host and its peer.

pub(crate) mod guard;
mod host;

use std::time::SystemTime;

use linerate_experiment::measured::Measured;
use linerate_kernel::thread::SignalFd;
use linerate_lab::runner::{self, Isolation};
use linerate_lab::scenario::Scenario;
use linerate_model::units::Nanos;
use linerate_tune::profile::Wish;
use linerate_tune::state_folder::Lock;

use crate::action::Failure;
use crate::{lab, signals};

pub(crate) use host::HostPlace;

/// A run that is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// What is set on the hosts while it runs.
    pub(crate) wishes: &'a [Wish],
    /// Arguments of `linerate test`, without the host.
    pub(crate) words: &'a [String],
    /// The lab with all of that; `None` on hosts.
    pub(crate) scenario: Option<&'a Scenario>,
    /// Decides the lab's chance in this run.
    pub(crate) seed: u64,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Gave {
    /// A run, which may have failed.
    Measured(Box<Measured>),
    /// It cannot be made here, and why.
    Impossible(String),
    /// The user wants no more.
    Stopped,
}

pub(crate) trait Place {
    /// Makes a run. What was set for it is as it was before when this returns.
    ///
    /// # Errors
    /// What makes further runs senseless: a setting that cannot be restored.
    fn measure(&mut self, wanted: Wanted<'_>) -> Result<Gave, Failure>;
}

/// Where runs to this peer are made, or in a lab where there is none; `lock` is asked for the right to change this
/// host's settings where there are wishes.
pub(crate) fn of<'a>(
    peer: Option<&str>,
    wishes: impl IntoIterator<Item = &'a Wish>,
    lock: impl FnOnce() -> Result<Lock, Failure>,
) -> Result<Box<dyn Place>, Failure> {
    let signals = signals::take_stops()?;
    let Some(peer) = peer else {
        let isolation = runner::isolate()?;
        return Ok(Box::new(LabPlace { isolation, signals }));
    };
    Ok(Box::new(HostPlace::prepare(peer, wishes, signals, lock)?))
}

/// A lab, made anew for each run, so that nothing is left to restore.
#[derive(Debug)]
struct LabPlace {
    isolation: Isolation,
    signals: SignalFd,
}

impl Place for LabPlace {
    fn measure(&mut self, wanted: Wanted<'_>) -> Result<Gave, Failure> {
        let Some(scenario) = wanted.scenario else {
            return Err(Failure::Lab("there is no path to make".to_owned()));
        };
        let mut scenario = scenario.clone();
        scenario.seed = wanted.seed;
        let measured = lab::measure(&scenario, self.isolation, &self.signals);
        Ok(measured.map_or(Gave::Stopped, |run| Gave::Measured(Box::new(run))))
    }
}

/// Milliseconds since 1970: a label.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// How long runs take, for the time that is left.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    runs: u32,
    total: Nanos,
}

impl Pace {
    /// A run took so long.
    pub(crate) fn took(&mut self, span: Nanos) {
        self.runs += 1;
        self.total = self.total.plus(span);
    }

    /// Words on the time that so many runs take; empty before the first.
    pub(crate) fn left(&self, runs: usize) -> String {
        if self.runs == 0 || runs == 0 {
            return String::new();
        }
        let seconds = self.total.as_secs_f64() / f64::from(self.runs) * runs as f64;
        #[expect(clippy::cast_possible_truncation, reason = "a time in seconds")]
        let seconds = seconds.round() as u64;
        let text = match seconds {
            0..=99 => format!("{seconds} s"),
            100..=5999 => format!("{} min {:02} s", seconds / 60, seconds % 60),
            _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
        };
        format!(", about {text} left")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_the_runs_before() {
        let mut pace = Pace::default();
        assert_eq!(pace.left(3), "");
        pace.took(Nanos::from_millis(4000));
        pace.took(Nanos::from_millis(6000));
        assert_eq!(pace.left(3), ", about 15 s left");
        assert_eq!(pace.left(30), ", about 2 min 30 s left");
        assert_eq!(pace.left(3000), ", about 4 h 10 min left");
        assert_eq!(pace.left(0), "");
    }
}
