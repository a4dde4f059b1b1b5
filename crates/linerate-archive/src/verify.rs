//! Whether the archive is what was written.

use std::collections::HashSet;

use linerate_model::watch::RunId;
use serde::Serialize;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::objects::RecordHash;

/// What [`Archive::verify`] found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Verification {
    /// What SQLite says of the database; empty = `ok`.
    pub database: Vec<String>,
    /// Tests in the archive.
    pub tests: u64,
    /// Those of them with a record.
    pub records: u64,
    /// Tests whose record's file is not there.
    pub missing: Vec<RunId>,
    /// Tests whose record's file does not hold what was written, and what is wrong.
    pub damaged: Vec<(RunId, String)>,
    /// Tests whose record retention removed.
    pub gone: u64,
    /// Files that no row names. They are no damage: a process that was killed leaves them, and retention removes them.
    pub orphans: u64,
    /// Bytes of those.
    pub orphan_bytes: u64,
    /// Rows that a late result has replaced.
    pub late_results: u64,
    /// Records that were removed because the disk was full.
    pub removed_from_full_disk: u64,
}

impl Verification {
    /// Whether nothing is damaged or missing.
    pub fn is_sound(&self) -> bool {
        self.database.is_empty() && self.missing.is_empty() && self.damaged.is_empty()
    }
}

impl Archive {
    /// Checks the database, and reads every record.
    ///
    /// # Errors
    /// Where the check itself cannot be made. Damage is no error but a finding.
    pub fn verify(&self) -> Result<Verification, ArchiveError> {
        let _stay = self.records_stay();
        let mut found = Verification {
            late_results: self.late_results()?,
            removed_from_full_disk: self.removed_from_full_disk()?,
            ..Verification::default()
        };
        let mut seen = HashSet::new();
        let mut named = HashSet::new();
        let what = ArchiveError::database;
        self.read(|connection| {
            found.database = integrity(connection)?;
            let mut select = connection
                .prepare("SELECT id, record, record_gone IS NOT NULL FROM run ORDER BY id")
                .map_err(what("list tests"))?;
            let mut rows = select.query([]).map_err(what("list tests"))?;
            while let Some(row) = rows.next().map_err(what("list tests"))? {
                found.tests += 1;
                let id: String = row.get(0).map_err(what("list tests"))?;
                let record: Option<String> = row.get(1).map_err(what("list tests"))?;
                found.gone += u64::from(row.get::<_, bool>(2).map_err(what("list tests"))?);
                let Some(record) = record else { continue };
                found.records += 1;
                let (Ok(id), Ok(hash)) = (id.parse::<RunId>(), record.parse::<RecordHash>()) else {
                    found
                        .database
                        .push(format!("test {id} has no id or no hash"));
                    continue;
                };
                named.insert(hash);
                if seen.insert(hash) {
                    self.verify_record(id, hash, &mut found)?;
                }
            }
            Ok(())
        })?;
        self.objects.each(|object| {
            // A test that was appended since has a row that was not read: ask again.
            let known = match object.hash {
                Some(hash) => {
                    named.contains(&hash)
                        || self.read(|connection| crate::retention::is_named(connection, hash))?
                }
                None => false,
            };
            if !known {
                found.orphans += 1;
                found.orphan_bytes += object.bytes;
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn verify_record(
        &self,
        id: RunId,
        hash: RecordHash,
        found: &mut Verification,
    ) -> Result<(), ArchiveError> {
        match self.objects.get(hash) {
            Ok(Some(_)) => {}
            // Another process may have removed it since.
            Ok(None) if self.run(id)?.is_none_or(|stored| stored.record.is_none()) => {}
            Ok(None) => found.missing.push(id),
            Err(error) => found.damaged.push((id, error.to_string())),
        }
        Ok(())
    }
}

fn integrity(connection: &rusqlite::Connection) -> Result<Vec<String>, ArchiveError> {
    let what = ArchiveError::database;
    let mut said = Vec::new();
    for (sql, columns) in [
        ("PRAGMA integrity_check", 1),
        ("PRAGMA foreign_key_check", 3),
    ] {
        let mut check = connection.prepare(sql).map_err(what("be checked"))?;
        let mut rows = check.query([]).map_err(what("be checked"))?;
        while let Some(row) = rows.next().map_err(what("be checked"))? {
            let cell = |at| row.get::<_, rusqlite::types::Value>(at);
            let cells = (0..columns).map(|at| cell(at).map(|value| spelled(&value)));
            let cells: Vec<_> = cells
                .collect::<Result<_, _>>()
                .map_err(what("be checked"))?;
            said.push(cells.join(" "));
        }
    }
    said.retain(|line| line != "ok");
    Ok(said)
}

fn spelled(value: &rusqlite::types::Value) -> String {
    match value {
        rusqlite::types::Value::Text(text) => text.clone(),
        rusqlite::types::Value::Integer(number) => number.to_string(),
        _ => String::new(),
    }
}
