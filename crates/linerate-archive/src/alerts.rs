//! Alerts, each as it is now, and silences. What they say is the caller's: the archive keeps their JSON.

use linerate_model::watch::UnixMillis;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::events::{self, EventKind, clamped};

/// What an alert is found by. The alert itself is kept as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlertKey<'a> {
    /// Its id.
    pub id: &'a str,
    /// The task of the plan.
    pub task: &'a str,
    /// The word for its state: `suspect`, `firing`, `resolved`.
    pub state: &'a str,
    /// Since when the trouble has lasted.
    pub since: UnixMillis,
    /// When the alert last changed.
    pub changed: UnixMillis,
}

/// Which alerts. Without a condition it is all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AlertFilter {
    /// Of this task alone.
    pub task: Option<String>,
    /// In one of these states; empty = any.
    pub states: Vec<String>,
    /// Changed at or after this moment.
    pub changed_since: Option<UnixMillis>,
    /// At most so many; 0 = all.
    pub limit: usize,
}

/// What a silence is found by. The silence itself is kept as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SilenceKey<'a> {
    /// Its id.
    pub id: &'a str,
    /// From when on.
    pub since: UnixMillis,
    /// Until when. A silence ends early by being put again with another end.
    pub until: UnixMillis,
}

impl Archive {
    /// Keeps an alert, in place of what the archive had of the same id.
    ///
    /// # Errors
    /// The database's; an alert that is not to be had as JSON.
    pub fn put_alert(&self, key: AlertKey<'_>, alert: &impl Serialize) -> Result<(), ArchiveError> {
        let json = to_json("an alert", alert)?;
        let (id, task, state) = (key.id.to_owned(), key.task.to_owned(), key.state.to_owned());
        let (since, changed) = (clamped(key.since.0), clamped(key.changed.0));
        self.write(move |connection| {
            connection
                .execute(
                    "INSERT OR REPLACE INTO alert VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    (&id, &task, &state, since, changed, &json),
                )
                .map_err(ArchiveError::database("put an alert"))?;
            events::record(connection, EventKind::Alert, &id)
        })
    }

    /// Alerts, those that began last first.
    ///
    /// # Errors
    /// The database's; [`ArchiveError::Damaged`] where one is not what the caller reads.
    pub fn alerts<A: DeserializeOwned>(
        &self,
        filter: &AlertFilter,
    ) -> Result<Vec<A>, ArchiveError> {
        let mut sql = "SELECT json FROM alert WHERE changed >= ?".to_owned();
        let since = filter.changed_since.unwrap_or(UnixMillis(0));
        let mut parameters = vec![Value::Integer(clamped(since.0))];
        if let Some(task) = &filter.task {
            sql += " AND task = ?";
            parameters.push(Value::Text(task.clone()));
        }
        if !filter.states.is_empty() {
            let marks = vec!["?"; filter.states.len()].join(", ");
            sql.extend([" AND state IN (", &marks, ")"]);
            parameters.extend(filter.states.iter().cloned().map(Value::Text));
        }
        sql += " ORDER BY since DESC, id DESC";
        if filter.limit > 0 {
            sql.extend([" LIMIT ", &filter.limit.to_string()]);
        }
        self.read(|connection| values(connection, "an alert", &sql, parameters))
    }

    /// The alert of this id.
    ///
    /// # Errors
    /// As [`Self::alerts`].
    pub fn alert<A: DeserializeOwned>(&self, id: &str) -> Result<Option<A>, ArchiveError> {
        let parameters = vec![Value::Text(id.to_owned())];
        let sql = "SELECT json FROM alert WHERE id = ?";
        self.read(|connection| Ok(values(connection, "an alert", sql, parameters)?.pop()))
    }

    /// Keeps a silence, in place of the one of the same id.
    ///
    /// # Errors
    /// As [`Self::put_alert`].
    pub fn put_silence(
        &self,
        key: SilenceKey<'_>,
        silence: &impl Serialize,
    ) -> Result<(), ArchiveError> {
        let json = to_json("a silence", silence)?;
        let id = key.id.to_owned();
        let (since, until) = (clamped(key.since.0), clamped(key.until.0));
        self.write(move |connection| {
            connection
                .execute(
                    "INSERT OR REPLACE INTO silence VALUES (?1, ?2, ?3, ?4)",
                    (&id, since, until, &json),
                )
                .map_err(ArchiveError::database("put a silence"))?;
            events::record(connection, EventKind::Silence, &id)
        })
    }

    /// Silences that end after a moment, those that end first first.
    ///
    /// # Errors
    /// As [`Self::alerts`].
    pub fn silences<S: DeserializeOwned>(&self, after: UnixMillis) -> Result<Vec<S>, ArchiveError> {
        let sql = "SELECT json FROM silence WHERE until > ? ORDER BY until, id";
        let parameters = vec![Value::Integer(clamped(after.0))];
        self.read(|connection| values(connection, "a silence", sql, parameters))
    }
}

fn to_json(what: &'static str, value: &impl Serialize) -> Result<String, ArchiveError> {
    serde_json::to_string(value).map_err(|error| ArchiveError::UnfitValue {
        what,
        why: error.to_string(),
    })
}

/// The JSON in the only column of each row, read.
fn values<T: DeserializeOwned>(
    connection: &Connection,
    what: &str,
    sql: &str,
    parameters: Vec<Value>,
) -> Result<Vec<T>, ArchiveError> {
    let database = ArchiveError::database;
    let mut select = connection.prepare(sql).map_err(database("list alerts"))?;
    let rows = select
        .query_map(params_from_iter(parameters), |row| row.get::<_, String>(0))
        .map_err(database("list alerts"))?;
    rows.map(|json| {
        let json = json.map_err(database("list alerts"))?;
        serde_json::from_str(&json)
            .map_err(|error| ArchiveError::Damaged(format!("{what} cannot be read: {error}")))
    })
    .collect()
}
