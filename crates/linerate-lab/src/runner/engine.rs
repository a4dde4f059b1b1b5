//! What carries a path's packets: one of two engines, and what it tells.

use std::io;

use serde::Serialize;

use super::disciplines::{Disciplines, Shaped, Shaping};
use super::queues::{Progress, Queues};
use crate::path::Counters;
use crate::scenario::{Checked, Claim, EngineWish, Scenario, Way};

/// What the thread is called that each engine has, whatever its scenario.
pub(super) const FORWARD_THREAD: &str = "path forward";

/// Processes that run another lab on this machine now, of whatever user. Labs share CPUs: what one carries makes
/// the others late.
pub fn other_labs() -> Vec<u32> {
    linerate_kernel::process::with_thread_named(FORWARD_THREAD)
}

/// A running engine.
#[derive(Debug)]
pub(super) enum Engine {
    /// This program decides on packets that wait in queues of the kernel.
    Queues(Queues),
    /// The kernel's disciplines.
    Disciplines(Disciplines),
}

impl Engine {
    /// Its name in results.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Queues(_) => "NFQUEUE",
            Self::Disciplines(_) => EngineWish::NETEM,
        }
    }

    /// The test begins: the times of changes count from now.
    pub(super) fn begin(&self) {
        match self {
            Self::Queues(queues) => queues.begin(),
            Self::Disciplines(disciplines) => disciplines.begin(),
        }
    }

    /// What it did until now. The calling thread is in the router's namespace.
    pub(super) fn progress(&self) -> Account {
        match self {
            Self::Queues(queues) => Account::Queues(Box::new(queues.progress())),
            Self::Disciplines(disciplines) => {
                Account::Disciplines(Box::new(disciplines.progress()))
            }
        }
    }

    /// Whether it goes on; it ends by itself only by an error.
    pub(super) fn is_running(&self) -> bool {
        match self {
            Self::Queues(queues) => queues.is_running(),
            Self::Disciplines(disciplines) => disciplines.is_running(),
        }
    }

    /// Ends it, and says all that it did. The calling thread is in the router's namespace.
    pub(super) fn stop(&mut self) -> io::Result<Account> {
        match self {
            Self::Queues(queues) => queues.stop().map(|path| Account::Queues(Box::new(path))),
            Self::Disciplines(disciplines) => disciplines
                .stop()
                .map(|path| Account::Disciplines(Box::new(path))),
        }
    }
}

/// What a path did, as far as its engine counts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Account {
    /// Of the engine by packet queues: every packet's fate.
    Queues(Box<Progress>),
    /// Of the engine by netem and tbf: what the disciplines count.
    Disciplines(Box<Shaping>),
}

impl Account {
    /// Every packet's fate in one direction; `None` from an engine that does not decide on each.
    pub fn counters(&self, way: Way) -> Option<&Counters> {
        match self {
            Self::Queues(progress) => Some(&progress.way(way).counters),
            Self::Disciplines(_) => None,
        }
    }

    /// Holds the scenario's claims against what was counted. Those that the engine's counters cannot show are left
    /// out: netem and tbf tell of losses, drops of the queue and changes.
    pub fn check_claims(&self, scenario: &Scenario) -> Vec<Checked> {
        match self {
            Self::Queues(path) => {
                scenario.check_claims(&path.forward.counters, &path.back.counters)
            }
            Self::Disciplines(shaping) => {
                let [forward, back] = [&shaping.forward, &shaping.back].map(Shaped::counted);
                let mut checked = scenario.check_claims(&forward, &back);
                checked.retain(|one| match one.claim {
                    Claim::Loses => shaping.way(one.way).lost.is_some(),
                    Claim::LosesNothing => !shaping.way(one.way).disciplines.is_empty(),
                    Claim::Changes => true,
                    _ => false,
                });
                checked
            }
        }
    }
}
