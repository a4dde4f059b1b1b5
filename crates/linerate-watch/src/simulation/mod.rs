//! A plan on virtual time: the real dispatcher, hosts that a script makes fail or go away, and a hub that is restarted.
//!
//! A test takes its load and an overhead; its result is reported when its agents are connected and the hub runs.

mod figures;
mod overlaps;
mod script;
mod world;

use linerate_model::watch::{RunClass, RunId, UnixMillis, WatchRun};

use crate::dispatch::{BudgetLevel, OVERHEAD_MILLIS};
use crate::watched::Watched;

pub use figures::Figures;
pub use overlaps::{Overlap, overlaps};
pub use script::{Rates, script};

/// Under what conditions a plan is simulated.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// Decides the moments of tests and which of them fail.
    pub seed: u64,
    /// What a test takes beyond its load, ms.
    pub overhead_millis: u64,
    /// The share of tests that fail without a reason that lasts, 0 to 1.
    pub failures: f64,
    /// What happens to hosts and the hub, in any order. All agents are connected at the beginning.
    pub events: Vec<Event>,
}

impl Default for Conditions {
    /// Nothing happens, and no test fails.
    fn default() -> Self {
        Self {
            seed: 0,
            overhead_millis: OVERHEAD_MILLIS,
            failures: 0.0,
            events: Vec::new(),
        }
    }
}

/// Something that happens.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When.
    pub at: UnixMillis,
    /// What.
    pub what: Happening,
}

/// What happens; hosts are places in [`Watched::hosts`].
#[derive(Debug, Clone, PartialEq)]
pub enum Happening {
    /// The agent of a host is lost. What runs there goes on.
    Lost(usize),
    /// The agent connects again.
    Connected(usize),
    /// Tests at a host fail from now on, and checks of it.
    Fails(usize),
    /// They work again.
    Works(usize),
    /// An agent runs something else and refuses tests as busy until this moment.
    Busy(usize, UnixMillis),
    /// From now on traffic other than tests uses this share of a host's link.
    Traffic(usize, f64),
    /// The hub dies, and starts again at a moment.
    HubAway {
        /// When it starts again.
        until: UnixMillis,
        /// Whether it then knows the leases that it had granted.
        keeps_leases: bool,
    },
    /// Somebody asks for a test of a pair of a task, to end within ten minutes.
    Asked {
        /// Place of the task.
        task: usize,
        /// Place of the pair in the task.
        pair: usize,
        /// Why.
        class: RunClass,
    },
    /// The plan is replaced.
    Plan(Box<Watched>),
}

/// What became of a plan.
#[derive(Debug, Clone)]
pub struct Simulated {
    /// The rows of the tests that were due in the span, in the order in which they came.
    pub rows: Vec<WatchRun>,
    /// Tests that got more than one row: none, if all is well.
    pub twice: Vec<RunId>,
    /// The figures of the rows.
    pub figures: Figures,
    /// What was left of the budgets at the end.
    pub budgets: Vec<BudgetLevel>,
}

/// Runs a plan from one moment until another, and on until each test that was due in that time has a row.
pub fn simulate(
    watched: &Watched,
    conditions: &Conditions,
    from: UnixMillis,
    until: UnixMillis,
) -> Simulated {
    let mut world = world::World::new(watched, conditions, from);
    world.run(until);
    let (all, twice, budgets) = world.end();
    let in_span = |row: &WatchRun| row.due >= from && row.due < until;
    let rows: Vec<WatchRun> = all.into_iter().filter(in_span).collect();
    let figures = Figures::of(watched, &rows, conditions.overhead_millis, from, until);
    Simulated {
        rows,
        twice,
        figures,
        budgets,
    }
}
