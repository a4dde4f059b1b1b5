//! The schema of the database, in numbered steps. Each step is one transaction; a step that was released never changes.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::error::ArchiveError;

/// Step `n` leads from schema `n` to `n + 1`; schema 0 is an empty database.
const STEPS: [&str; SCHEMA as usize] = [
    include_str!("../migrations/0001.sql"),
    include_str!("../migrations/0002.sql"),
];

/// The newest schema that this build knows.
pub const SCHEMA: u32 = 2;

/// The table that says which schema the others are of. It is the same in every schema.
const META: &str = "CREATE TABLE IF NOT EXISTS meta (
    key TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID";

/// Brings a database to the newest schema.
pub(crate) fn migrate(connection: &mut Connection, folder: &Path) -> Result<(), ArchiveError> {
    let what = ArchiveError::database;
    let mut found = version(connection)?;
    if found > SCHEMA {
        return Err(ArchiveError::Newer {
            folder: folder.to_owned(),
            found,
            known: SCHEMA,
        });
    }
    while found < SCHEMA {
        // Another process may take the same step first.
        let step = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(what("begin a migration"))?;
        found = version(&step)?;
        let Some(sql) = STEPS.get(found as usize) else {
            break;
        };
        step.execute_batch(META)
            .and_then(|()| step.execute_batch(sql))
            .and_then(|()| {
                let sql = "INSERT INTO meta VALUES ('schema', ?1)
                    ON CONFLICT (key) DO UPDATE SET value = excluded.value";
                step.execute(sql, [found + 1])
            })
            .and_then(|_| step.commit())
            .map_err(what("be brought to the present schema"))?;
        found += 1;
    }
    Ok(())
}

/// The schema that a database has; 0 = none.
pub(crate) fn version(connection: &Connection) -> Result<u32, ArchiveError> {
    let what = "say which schema it has";
    let known = connection
        .table_exists(None, "meta")
        .map_err(ArchiveError::database(what))?;
    if !known {
        return Ok(0);
    }
    connection
        .query_row("SELECT value FROM meta WHERE key = 'schema'", [], |row| {
            row.get(0)
        })
        .map_err(ArchiveError::database(what))
}
