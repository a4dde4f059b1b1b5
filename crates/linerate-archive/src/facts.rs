//! What hosts were like, and when that changed.

use linerate_model::watch::UnixMillis;
use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::events::{self, EventKind, clamped};
use crate::objects::{RecordHash, unpack};

const LEVEL: i32 = 3;

/// The facts of a host from a moment on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The host.
    pub host: String,
    /// From when on they were so known.
    pub since: UnixMillis,
    /// The JSON that was put.
    pub json: Vec<u8>,
}

/// What became of facts that were put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FactsPut {
    /// They differ from those before.
    Changed,
    /// They are those before, and nothing was written.
    Same,
}

impl Archive {
    /// Keeps what a host is like at a moment, as JSON. Facts that equal those before are not kept again: what changes
    /// from one time to the next without a meaning (counters, uptimes) has to be left out by the caller.
    ///
    /// # Errors
    /// The database's.
    pub fn put_facts(
        &self,
        host: &str,
        at: UnixMillis,
        facts: &[u8],
    ) -> Result<FactsPut, ArchiveError> {
        let hash = RecordHash::of(facts).to_string();
        let json = zstd::bulk::compress(facts, LEVEL)
            .map_err(ArchiveError::file("compress the facts of", host.as_ref()))?;
        let host = host.to_owned();
        self.write(move |connection| put(connection, &host, clamped(at.0), &hash, &json))
    }

    /// What a host was like at a moment; absent = not known.
    ///
    /// # Errors
    /// The database's; damaged facts.
    pub fn facts(&self, host: &str, at: UnixMillis) -> Result<Option<Facts>, ArchiveError> {
        self.read(|connection| at_moment(connection, host, at))
    }

    /// What a host was like at a moment and each time that this changed after it, the oldest first.
    ///
    /// # Errors
    /// The database's; damaged facts.
    pub fn fact_changes(&self, host: &str, since: UnixMillis) -> Result<Vec<Facts>, ArchiveError> {
        let what = ArchiveError::database;
        self.read(|connection| {
            let mut changes: Vec<_> = at_moment(connection, host, since)?.into_iter().collect();
            let mut select = connection
                .prepare(
                    "SELECT host, at, json FROM host_facts JOIN facts USING (hash) WHERE host = ?1 AND at > ?2 ORDER BY at",
                )
                .map_err(what("list facts"))?;
            let rows = select
                .query_map((host, clamped(since.0)), columns)
                .map_err(what("list facts"))?;
            for row in rows {
                changes.push(facts(row.map_err(what("list facts"))?)?);
            }
            Ok(changes)
        })
    }
}

fn put(
    connection: &Connection,
    host: &str,
    at: i64,
    hash: &str,
    json: &[u8],
) -> Result<FactsPut, ArchiveError> {
    let what = ArchiveError::database;
    let beside = |sql: &str| {
        connection
            .query_row(sql, (host, at), |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
            })
            .optional()
            .map_err(what("find facts"))
    };
    let before =
        beside("SELECT at, hash FROM host_facts WHERE host = ?1 AND at <= ?2 ORDER BY at DESC")?;
    if before.is_some_and(|(_, before)| before == hash) {
        return Ok(FactsPut::Same);
    }
    // Facts that come late may be those that are known from a later moment on.
    let after = beside("SELECT at, hash FROM host_facts WHERE host = ?1 AND at > ?2 ORDER BY at")?;
    if let Some((later, _)) = after.filter(|(_, after)| after == hash) {
        connection
            .execute(
                "DELETE FROM host_facts WHERE host = ?1 AND at = ?2",
                (host, later),
            )
            .map_err(what("move facts"))?;
    }
    connection
        .execute("INSERT OR IGNORE INTO facts VALUES (?1, ?2)", (hash, json))
        .and_then(|_| {
            connection.execute(
                "INSERT OR REPLACE INTO host_facts VALUES (?1, ?2, ?3)",
                (host, at, hash),
            )
        })
        .map_err(what("add facts"))?;
    events::record(connection, EventKind::Facts, host)?;
    Ok(FactsPut::Changed)
}

fn at_moment(
    connection: &Connection,
    host: &str,
    at: UnixMillis,
) -> Result<Option<Facts>, ArchiveError> {
    connection
        .query_row(
            "SELECT host, at, json FROM host_facts JOIN facts USING (hash) WHERE host = ?1 AND at <= ?2
             ORDER BY at DESC LIMIT 1",
            (host, clamped(at.0)),
            columns,
        )
        .optional()
        .map_err(ArchiveError::database("find facts"))?
        .map(facts)
        .transpose()
}

type Columns = (String, u64, Vec<u8>);

fn columns(row: &Row<'_>) -> rusqlite::Result<Columns> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

fn facts((host, since, json): Columns) -> Result<Facts, ArchiveError> {
    let json = unpack(&json)
        .map_err(|error| ArchiveError::Damaged(format!("the facts of {host}: {error}")))?;
    Ok(Facts {
        host,
        since: UnixMillis(since),
        json,
    })
}
