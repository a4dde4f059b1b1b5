//! What an address asks for.

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{RunId, UnixMillis};
use serde::Deserialize;

use super::answer::Refusal;
use crate::store::{OutcomeKind, RunFilter};
use crate::view::pair::{TIMES, Wanted};

/// Runs in an answer where nothing is said.
const ROWS: usize = 100;
/// The most runs in an answer.
const MOST_ROWS: usize = 10_000;
/// The most runs in a CSV table.
const MOST_CSV_ROWS: usize = 200_000;
/// The most days of a pair's page.
const MOST_DAYS: u64 = 3660;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct OfTask {
    pub(super) task: String,
}

impl OfTask {
    pub(super) fn only(&self) -> Option<&str> {
        (!self.task.is_empty()).then_some(self.task.as_str())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct OfHost {
    pub(super) name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct OfAlerts {
    pub(super) days: Option<u64>,
}

/// The page of alerts.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct OfAlertsPage {
    /// The alert that somebody is about to silence.
    pub(super) silence: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct OfPair {
    task: String,
    from: String,
    to: String,
    days: Option<u64>,
    before: Option<String>,
}

impl OfPair {
    pub(super) fn wanted(self) -> Result<Wanted, Refusal> {
        for (name, value) in [("task", &self.task), ("from", &self.from), ("to", &self.to)] {
            if value.is_empty() {
                return Err(Refusal::Query(format!(
                    "The address lacks '{name}'; it needs task, from and to."
                )));
            }
        }
        Ok(Wanted {
            task: self.task.into(),
            from: self.from.into(),
            to: self.to.into(),
            days: self.days.unwrap_or(TIMES[2]).clamp(1, MOST_DAYS),
            before: self.before.as_deref().map(run_id).transpose()?,
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct OfRuns {
    task: Option<PlainText>,
    from: Option<PlainText>,
    to: Option<PlainText>,
    since: Option<u64>,
    until: Option<u64>,
    outcome: Option<OutcomeKind>,
    limit: Option<usize>,
    before: Option<String>,
}

impl OfRuns {
    fn filter(self, usual: usize, most: usize) -> Result<RunFilter, Refusal> {
        Ok(RunFilter {
            task: self.task,
            from: self.from,
            to: self.to,
            since: self.since.map(UnixMillis),
            until: self.until.map(UnixMillis),
            outcome: self.outcome,
            limit: self.limit.unwrap_or(usual).clamp(1, most),
            before: self.before.as_deref().map(run_id).transpose()?,
        })
    }

    pub(super) fn page(self) -> Result<RunFilter, Refusal> {
        self.filter(ROWS, MOST_ROWS)
    }

    pub(super) fn table(self) -> Result<RunFilter, Refusal> {
        self.filter(MOST_CSV_ROWS, MOST_CSV_ROWS)
    }
}

pub(super) fn run_id(text: &str) -> Result<RunId, Refusal> {
    text.parse()
        .map_err(|error: linerate_model::watch::RunIdError| Refusal::Query(error.to_string()))
}
