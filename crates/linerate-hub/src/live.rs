//! What the hub does at the moment: its driver writes it, pages read it.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{RunClass, RunId, UnixMillis};
use linerate_watch::watched::{Reach, Sampling, Watched};
use serde::Serialize;
use tokio::sync::watch;

use crate::store::OutcomeKind;

/// The state of the running hub, shared between its driver and its pages.
#[derive(Debug)]
pub struct Live {
    now: RwLock<Snapshot>,
    changes: watch::Sender<u64>,
}

/// Everything that pages show of the running hub.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Snapshot {
    /// Hosts whose end the hub starts, and whether it can.
    pub agents: Vec<AgentState>,
    /// Tests that run now.
    pub running: Vec<RunningTest>,
    /// Tests that are due next, the first one first.
    pub next: Vec<DueTest>,
    /// Where alerts are sent, and whether that works.
    pub channels: Vec<ChannelState>,
    /// The plan in force.
    pub plan: PlanSummary,
    /// Why the plan's file, which has changed, is not in force; absent = it is.
    pub plan_trouble: Option<PlainText>,
    /// Tests that ended since the hub started, by what they came to.
    pub ended: EndedTests,
}

/// A host's agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentState {
    /// The host's name in the plan.
    pub host: PlainText,
    /// How it is reached.
    pub reach: ReachedBy,
    /// Whether it answers.
    pub connected: bool,
    /// When it last said something; absent = never.
    pub last_seen: Option<UnixMillis>,
    /// The version of its linerate; absent = not known.
    pub software: Option<PlainText>,
    /// Why it is not connected; absent = it is, or nobody knows.
    pub why: Option<PlainText>,
}

/// How a host's end of a test is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReachedBy {
    /// An agent dials the hub.
    Agent,
    /// The hub starts an agent by ssh.
    Ssh,
    /// `linerate serve` runs there; it is only tested against.
    Linerate,
    /// `iperf3 -s` runs there; it is only tested against.
    Iperf3,
}

/// A test that runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunningTest {
    /// The id that its row will have.
    pub id: RunId,
    /// The task.
    pub task: PlainText,
    /// The sending host.
    pub from: PlainText,
    /// The receiving host.
    pub to: PlainText,
    /// Why it was due.
    pub class: RunClass,
    /// When it began.
    pub started: UnixMillis,
    /// When it ends at the latest.
    pub until: UnixMillis,
}

/// A test that is due.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DueTest {
    /// The task.
    pub task: PlainText,
    /// The sending host.
    pub from: PlainText,
    /// The receiving host.
    pub to: PlainText,
    /// Why it is due.
    pub class: RunClass,
    /// From when on it may run.
    pub due: UnixMillis,
    /// By when it has to have ended.
    pub deadline: UnixMillis,
    /// What it waits for; absent = only for its time.
    pub waits_for: Option<PlainText>,
}

/// A way in which people are told of alerts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChannelState {
    /// Its name in the plan: `alertmanager`, `mail`.
    pub name: PlainText,
    /// Why it does not work; absent = it does.
    pub broken: Option<PlainText>,
    /// Since when it does not work.
    pub broken_since: Option<UnixMillis>,
    /// Notifications that wait.
    pub waiting: u32,
}

/// The plan in force.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PlanSummary {
    /// Its tasks, in the order of the file.
    pub tasks: Vec<TaskSummary>,
    /// Pairs of all tasks.
    pub pairs: usize,
    /// Task, sender and receiver of each; absent = not known, such as before the first plan.
    #[serde(skip)]
    pub names: Option<Arc<BTreeSet<[PlainText; 3]>>>,
    /// Tests that are due in a day.
    pub tests_a_day: f64,
    /// What the file says and this program does not read.
    pub ignored: Vec<PlainText>,
}

/// A task of the plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskSummary {
    /// Its name.
    pub name: PlainText,
    /// Options of `linerate test`, as they are typed.
    pub options: PlainText,
    /// How many pairs it has.
    pub pairs: usize,
    /// One test of each pair in this time, ms.
    pub period_millis: u64,
    /// How the moment is chosen.
    pub sampling: &'static str,
}

/// How many tests came to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct EndedTests {
    /// Ran.
    pub measured: u64,
    /// Began and failed.
    pub failed: u64,
    /// Did not begin.
    pub not_run: u64,
    /// Ran, but do not count.
    pub invalid: u64,
}

impl EndedTests {
    /// Counts one more.
    pub const fn count(&mut self, kind: OutcomeKind) {
        let counter = match kind {
            OutcomeKind::Measured => &mut self.measured,
            OutcomeKind::Failed => &mut self.failed,
            OutcomeKind::NotRun => &mut self.not_run,
            OutcomeKind::Invalid => &mut self.invalid,
        };
        *counter = counter.saturating_add(1);
    }
}

impl PlanSummary {
    /// Of a plan.
    pub fn of(watched: &Watched) -> Self {
        let tasks: Vec<TaskSummary> = watched
            .tasks
            .iter()
            .map(|task| TaskSummary {
                name: task.name.clone(),
                options: task.options.join(" ").into(),
                pairs: task.pairs.len(),
                period_millis: task.schedule.period_millis,
                sampling: match task.schedule.sampling {
                    Sampling::Stratified => "at a random moment of each period",
                    Sampling::Poisson => "at exponential gaps",
                    Sampling::Fixed => "at the beginning of each period",
                },
            })
            .collect();
        let a_day = |task: &TaskSummary| {
            task.pairs as f64 * 86_400_000.0 / task.period_millis.max(1) as f64
        };
        Self {
            pairs: tasks.iter().map(|task| task.pairs).sum(),
            names: Some(Arc::new(names(watched))),
            tests_a_day: tasks.iter().map(a_day).sum(),
            ignored: watched.ignored.clone(),
            tasks,
        }
    }
}

impl PlanSummary {
    /// Whether the plan tests a pair; yes where the plan is not known.
    pub fn has(&self, task: &PlainText, from: &PlainText, to: &PlainText) -> bool {
        let pair = [task.clone(), from.clone(), to.clone()];
        self.names
            .as_ref()
            .is_none_or(|names| names.contains(&pair))
    }
}

fn names(watched: &Watched) -> BTreeSet<[PlainText; 3]> {
    let host = |place: usize| watched.hosts.get(place).map(|host| host.name.clone());
    let tasks = watched.tasks.iter();
    tasks
        .flat_map(|task| task.pairs.iter().map(move |pair| (task, pair)))
        .filter_map(|(task, pair)| Some([task.name.clone(), host(pair.from)?, host(pair.to)?]))
        .collect()
}

impl From<&Reach> for ReachedBy {
    fn from(reach: &Reach) -> Self {
        match reach {
            Reach::Agent => Self::Agent,
            Reach::Ssh => Self::Ssh,
            Reach::Linerate(_) => Self::Linerate,
            Reach::Iperf3(_) => Self::Iperf3,
        }
    }
}

impl Default for Live {
    fn default() -> Self {
        Self {
            now: RwLock::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl Live {
    /// A copy of what is known now.
    pub fn snapshot(&self) -> Snapshot {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        now.clone()
    }

    /// Changes what is known and wakes the open event streams.
    pub fn update(&self, change: impl FnOnce(&mut Snapshot)) {
        change(&mut self.now.write().unwrap_or_else(PoisonError::into_inner));
        self.wake();
    }

    /// Wakes the open event streams: the archive has something new.
    pub fn wake(&self) {
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Ends a wait whenever [`Self::update`] or [`Self::wake`] is called.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
