//! What pages read of an archive, and silences, which they write.

use std::io::Write;
use std::ops::Range;

use linerate_model::alert::{Alert, HostChange, Silence};
use linerate_model::plain_text::PlainText;
use linerate_model::watch::{RunId, UnixMillis, WatchRun};

/// What pages, the API, events and metrics read. Implementations answer from any thread and may block.
pub trait Store: Send + Sync {
    /// Every pair that has a row, with its latest one.
    fn pairs(&self) -> Result<Vec<PairState>, StoreError>;
    /// One run; `None` where there is none of this id.
    fn run(&self, id: RunId) -> Result<Option<WatchRun>, StoreError>;
    /// The JSON of a run's record; `None` where none is kept.
    fn record(&self, id: RunId) -> Result<Option<Vec<u8>>, StoreError>;
    /// Runs that match, the latest due first.
    fn runs(&self, filter: &RunFilter) -> Result<Vec<WatchRun>, StoreError>;
    /// Writes the same runs as CSV, in the archive's notation ([`linerate_archive::CsvWriter`]).
    fn runs_csv(&self, filter: &RunFilter, out: &mut dyn Write) -> Result<(), StoreError>;
    /// Alerts that are open or changed since, the latest first.
    fn alerts(&self, changed_since: UnixMillis) -> Result<Vec<Alert>, StoreError>;
    /// Silences that are in force at this moment.
    fn silences(&self, at: UnixMillis) -> Result<Vec<Silence>, StoreError>;
    /// Keeps a silence, in place of the one of the same id.
    fn put_silence(&self, silence: &Silence) -> Result<(), StoreError>;
    /// The JSON of a host's latest facts and when they were read; `None` where there are none.
    fn facts(&self, host: &str) -> Result<Option<(UnixMillis, Vec<u8>)>, StoreError>;
    /// What changed on a host within this time, the latest first.
    fn host_changes(
        &self,
        host: &str,
        within: Range<UnixMillis>,
    ) -> Result<Vec<HostChange>, StoreError>;
    /// What happened after an event, in order, at most `limit`.
    fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, StoreError>;
    /// The id of the latest event; 0 where there is none.
    fn last_event(&self) -> Result<u64, StoreError>;
}

/// A pair of a task and what its tests came to.
#[derive(Debug, Clone, PartialEq)]
pub struct PairState {
    /// The task of the plan.
    pub task: PlainText,
    /// The sending host.
    pub from: PlainText,
    /// The receiving host.
    pub to: PlainText,
    /// The latest test that was due.
    pub latest: WatchRun,
    /// The latest one that measured; absent = none did.
    pub measured: Option<WatchRun>,
    /// How many failed since then.
    pub failures_in_a_row: u32,
}

/// Which runs are asked for; what is absent matches every run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunFilter {
    /// The task.
    pub task: Option<PlainText>,
    /// The sending host.
    pub from: Option<PlainText>,
    /// The receiving host.
    pub to: Option<PlainText>,
    /// Due at this moment or later.
    pub since: Option<UnixMillis>,
    /// Due before this moment.
    pub until: Option<UnixMillis>,
    /// Only those that came to this.
    pub outcome: Option<OutcomeKind>,
    /// At most so many; 0 = any number.
    pub limit: usize,
    /// Only those before this one in the order of ids: the next page.
    pub before: Option<RunId>,
}

/// What a test came to, without figures and reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// It ran.
    Measured,
    /// It began and failed.
    Failed,
    /// It did not begin.
    NotRun,
    /// It ran, but does not count.
    Invalid,
}

/// Something that happened to what pages show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number; later events have higher ones.
    pub id: u64,
    /// What happened.
    pub what: Happened,
}

/// What an [`Event`] is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// A test of this pair has its row.
    Run {
        /// The task.
        task: PlainText,
        /// The sending host.
        from: PlainText,
        /// The receiving host.
        to: PlainText,
    },
    /// An alert is new or changed.
    Alert,
    /// A host's facts changed.
    Facts {
        /// Which host.
        host: PlainText,
    },
}

/// The archive did not answer.
#[derive(Debug, thiserror::Error)]
#[error("the archive does not answer for {what}: {why}; `linerate archive verify` checks it")]
pub struct StoreError {
    /// What was read or written.
    pub what: &'static str,
    /// Why it failed.
    pub why: String,
}

impl RunFilter {
    /// Whether a run matches, its place in the order left aside.
    pub fn matches(&self, run: &WatchRun) -> bool {
        let is = |wanted: &Option<PlainText>, found: &PlainText| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        is(&self.task, &run.task)
            && is(&self.from, &run.from)
            && is(&self.to, &run.to)
            && self.since.is_none_or(|since| run.due >= since)
            && self.until.is_none_or(|until| run.due < until)
            && self.before.is_none_or(|before| run.id < before)
            && self.outcome.is_none_or(|kind| kind == OutcomeKind::of(run))
    }
}

impl OutcomeKind {
    /// Of a run.
    pub const fn of(run: &WatchRun) -> Self {
        use linerate_model::watch::WatchOutcome;
        match run.outcome {
            WatchOutcome::Measured(_) => Self::Measured,
            WatchOutcome::Failed { .. } => Self::Failed,
            WatchOutcome::NotRun { .. } => Self::NotRun,
            WatchOutcome::Invalid { .. } => Self::Invalid,
        }
    }

    /// Its word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Failed => "failed",
            Self::NotRun => "not_run",
            Self::Invalid => "invalid",
        }
    }
}
