//! Figures, computed again from the records where their definitions have moved.

use linerate_model::watch::{RunId, WatchFigures, WatchOutcome, WatchRun};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use serde::Serialize;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::events::{self, EventKind};
use crate::row;
use crate::runs;

/// What [`Archive::recompute`] did with the tests that measured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Recomputed {
    /// Computed again.
    pub computed: u64,
    /// Those of them whose figures or findings became others.
    pub changed: u64,
    /// Computed by this version, or a newer one, already.
    pub current: u64,
    /// Older ones whose record is gone: they keep their figures, and the version that computed them.
    pub without_record: u64,
    /// Those that could not be computed, and why. They keep their figures.
    pub failed: Vec<(RunId, String)>,
}

/// Runs that are read before their figures are written.
const BATCH: usize = 100;

impl Archive {
    /// Computes the figures of every measured test again whose figures an older version of their definitions computed, from
    /// its record. Whether other traffic used the link is no matter of the record, and stays.
    ///
    /// # Errors
    /// The first of the database's. What was computed before it stays; run it again.
    pub fn recompute(
        &self,
        version: u32,
        mut compute: impl FnMut(&WatchRun, &[u8]) -> Result<WatchFigures, String>,
    ) -> Result<Recomputed, ArchiveError> {
        let mut done = Recomputed::default();
        let mut after = String::new();
        loop {
            let ids = self.read(|connection| measured_after(connection, &after))?;
            let Some((last, _)) = ids.last() else {
                return Ok(done);
            };
            after = last.to_string();
            let mut batch = Vec::new();
            for (id, computed_by) in ids {
                if computed_by >= version {
                    done.current += 1;
                } else if let Some(figures) = self.compute_one(id, &mut compute, &mut done)? {
                    batch.push((id, figures));
                }
            }
            done.computed += batch.len() as u64;
            done.changed += self.write(move |connection| {
                let mut changed = 0;
                for (id, figures) in &batch {
                    changed += u64::from(replace(connection, *id, figures, version)?);
                }
                Ok(changed)
            })?;
        }
    }

    fn compute_one(
        &self,
        id: RunId,
        compute: &mut impl FnMut(&WatchRun, &[u8]) -> Result<WatchFigures, String>,
        done: &mut Recomputed,
    ) -> Result<Option<WatchFigures>, ArchiveError> {
        let Some(stored) = self.run(id)? else {
            return Ok(None);
        };
        let json = match self.record(id) {
            Ok(Some(json)) => json,
            Ok(None) => {
                done.without_record += 1;
                return Ok(None);
            }
            Err(error @ ArchiveError::Damaged(_)) => {
                done.failed.push((id, error.to_string()));
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let WatchOutcome::Measured(old) = &stored.run.outcome else {
            return Ok(None);
        };
        match compute(&stored.run, &json) {
            Ok(mut figures) => {
                figures.with_traffic = old.with_traffic;
                Ok(Some(figures))
            }
            Err(why) => {
                done.failed.push((id, why));
                Ok(None)
            }
        }
    }
}

/// The next tests that measured, by id, with the versions that computed their figures.
fn measured_after(connection: &Connection, id: &str) -> Result<Vec<(RunId, u32)>, ArchiveError> {
    let what = ArchiveError::database;
    let sql = format!(
        "SELECT id, computed_by FROM run WHERE outcome = 'measured' AND id > ?1 ORDER BY id LIMIT {BATCH}"
    );
    let mut select = connection.prepare(&sql).map_err(what("list tests"))?;
    let rows = select
        .query_map([id], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))
        .map_err(what("list tests"))?;
    rows.map(|row| {
        let (id, version) = row.map_err(what("list tests"))?;
        let id = id
            .parse()
            .map_err(|_| ArchiveError::Damaged(format!("test {id} has no id")))?;
        Ok((id, version))
    })
    .collect()
}

/// Writes new figures; whether they differ.
fn replace(
    connection: &Connection,
    id: RunId,
    figures: &WatchFigures,
    version: u32,
) -> Result<bool, ArchiveError> {
    let what = ArchiveError::database;
    let Some(stored) = runs::run(connection, id)? else {
        return Ok(false);
    };
    let outcome = WatchOutcome::Measured(figures.clone());
    let changed = stored.run.outcome != outcome;
    let values = row::figures(id, figures)?;
    let number: i64 = connection
        .query_row(
            "UPDATE run SET goodput = ?3, low = ?4, high = ?5, whole = ?6, ramp = ?7, retransmitted = ?8, lost = ?9, rtt = ?10,
                sender_cpu = ?11, receiver_cpu = ?12, with_traffic = ?13, computed_by = ?2 WHERE id = ?1 RETURNING run",
            params_from_iter(
                [Value::Text(id.to_string()), Value::Integer(version.into())]
                    .into_iter()
                    .chain(values.0),
            ),
            |row| row.get(0),
        )
        .map_err(what("write new figures"))?;
    if changed {
        runs::put_findings(connection, number, &outcome)?;
        events::record(connection, EventKind::Run, &id.to_string())?;
    }
    Ok(changed)
}
